#!/usr/bin/env bats
# status --max-held, a monitoring check, alone and beside --max-age.
load helper/common

setup() {
  setup_one_server
  # Even on a busy machine no server may time out.
  export REDLOCK_SERVER_TIMEOUT=4s
}

@test "--max-held is a check in one line: 1 when the lock has been held for longer, else 0" {
  run -0 redlock-cli status demo --max-held 2h
  assert_output "demo: free"
  hold ours
  run -0 redlock-cli status demo --max-held 2h
  assert_output --regexp \
    "^demo: held by $(id -un)@$(hostname) \(run pid .*, for [0-9.ms]+, last renewed [0-9]+s ago; not longer than 2h\$"
  run -1 redlock-cli status demo --max-held 1ms
  assert_output --regexp "^demo: held by .*, for [0-9.ms]+, last renewed [0-9]+s ago; longer than 1ms\$"
  run -1 redlock-cli status demo --max-held 1ms -q
  assert_output ""
  run -1 redlock-cli status demo --max-held 1ms --json
  assert_equal "$(json 'j["exit_code"], j["locks"][0]["state"]')" "(1, 'held')"
  run -1 redlock-cli status other demo --max-held 1ms
  assert_line "other: free"
  release_hold ours
}

@test "with --max-age both are in one line, and either can make it 1" {
  run -1 redlock-cli status demo --max-age 26h --max-held 2h
  assert_output "demo: no successful run is known; free"
  run -0 redlock-cli run -k demo -- true
  run -0 redlock-cli status demo --max-age 26h --max-held 2h
  assert_output --regexp '^demo: last success [0-9.ms]+ ago on .* \(.*, exit 0\), within 26h; free$'
  hold ours
  run -1 redlock-cli status demo --max-age 26h --max-held 1ms
  assert_output --regexp '^demo: last success .*, within 26h; held by .*; longer than 1ms$'
  assert_equal "${#lines[@]}" 1
  release_hold ours
}

@test "a lock that --min-hold keeps is held by no command" {
  run -0 redlock-cli run -k demo --min-hold 1h -- true
  run -0 redlock-cli status demo --max-held 1ms
  assert_output --regexp '^demo: kept until .* by --min-hold of '
}

@test "of several shares the oldest counts" {
  hold old -s
  hold young -s
  run -1 redlock-cli status demo --max-held 1ms
  assert_output --regexp \
    '^demo: held by processes that share it, .*; a share for [0-9.ms]+, longer than 1ms$'
  release_hold old
  release_hold young
}

# bats test_tags=redis
@test "a foreign client that has held it for an unknown time does not pass" {
  redis 0 set demo theirs >/dev/null
  run -1 redlock-cli status demo --max-held 2h
  assert_output "demo: held by a foreign client, never expires; how long is unknown"
}

# bats test_tags=redis
@test "--max-held without a quorum exits with 69, not with a result" {
  stop_server 0
  run -69 --separate-stderr redlock-cli status demo --max-held 2h
  assert_output "demo: unknown: no quorum of servers answered"
}

@test "--max-held cannot be combined with --watch, --exit-code, --runs and a status of all locks" {
  assert_refused 64 "needs KEY" redlock-cli status --max-held 2h
  local other
  for other in --watch --exit-code --runs; do
    assert_refused 64 "cannot be combined" redlock-cli status demo --max-held 2h "$other"
  done
}
