#!/usr/bin/env bats
# The last run that the servers remember, in status: text, JSON, --max-age, --all.
load helper/common

setup() {
  setup_one_server
  # Even on a busy machine no server may time out.
  export REDLOCK_SERVER_TIMEOUT=4s
}

@test "status shows the last run of a free lock, and the last success if that was another" {
  run -0 redlock-cli status demo
  assert_output $'demo: free\n  no runs are recorded'
  run -0 redlock-cli run -k demo --note 'release 4' -- true
  run -0 redlock-cli status demo
  assert_regex "$output" \
    $'^demo: free\n  last run [0-9.ms]+ ago, at [0-9:]{8}: '"$(id -un)@$(hostname)"\
' \(true\), "release 4" \([0-9.ms]+, exit 0\)$'
  run -3 redlock-cli run -k demo -- sh -c 'exit 3'
  run -0 redlock-cli status demo
  assert_line --regexp '^  last run .* \(sh\) \([0-9.ms]+, exit 3\)$'
  assert_line --regexp '^  last success .* \(true\), "release 4" \([0-9.ms]+, exit 0\)$'
}

@test "--json has last and last_success, while the lock is held as well" {
  run -0 redlock-cli run -k demo -- true
  run -143 redlock-cli run -k demo --note why -- sh -c 'kill -TERM $$'
  hold ours
  run -0 redlock-cli status demo --json
  assert_equal \
    "$(json '[j["locks"][0][name][field] for name, field in (("last", "command_signal"),
      ("last", "result"), ("last", "note"), ("last", "program"),
      ("last_success", "command_exit"), ("last_success", "program"))]')" \
    "[15, 'released', 'why', 'sh', 0, 'true']"
  assert_equal \
    "$(json '(j["locks"][0]["state"],
      j["locks"][0]["last"]["fence"] > j["locks"][0]["last_success"]["fence"])')" \
    "('held', True)"
  assert_equal \
    "$(json '[j["locks"][0]["last"][ago] >= 0
      for ago in ("started_ago_ms", "ended_ago_ms", "waited_ms")]')" \
    "[True, True, True]"
  run -0 redlock-cli status demo
  refute_output --partial "last run"
  release_hold ours
}

@test "a run that lost its lock is not a success" {
  run -0 redlock-cli run -k demo -- true
  run -79 redlock-cli run -k demo --ttl 20s --server-timeout 1s \
    -- sh -c 'redlock-cli release demo --force -q; exec sleep 100'
  run -0 redlock-cli status demo
  assert_line --regexp 'last (run|success) .* \(true\)'
  refute_line --regexp 'last success .* \(sh\)'
}

@test "a run of several keys that lost one of them is a success of none" {
  run -79 redlock-cli run -k demo -k other -- redlock-cli release demo --force -q
  run -1 redlock-cli status other --max-age 1h
  assert_output --partial "other: no successful run is known; last run "
  run -0 redlock-cli status other --runs
  assert_output --partial "exit 0, lost)"
}

# bats test_tags=redis
@test "a run that lost its lock at a quorum closes no period at the server that still had it" {
  start_servers 2
  export REDLOCK_SERVER=$SERVERS REDLOCK_RESTART_GUARD=0
  run -79 redlock-cli run -k demo --once-per 1h -- "$(granted_by_all)" \
    redlock-cli release demo --force -q --server "${SERVERS%,*}"
  run -0 redlock-cli run -k demo --once-per 1h -- echo ran
  assert_output ran
}

@test "--max-age is a check in one line: 0 when the last success is recent, else 1" {
  run -1 redlock-cli status demo --max-age 26h
  assert_output "demo: no successful run is known"
  run -7 redlock-cli run -k demo -- sh -c 'exit 7'
  run -1 redlock-cli status demo --max-age 26h
  assert_output --regexp \
    '^demo: no successful run is known; last run [0-9.ms]+ ago on .* \([0-9.ms]+, exit 7\)$'
  run -0 redlock-cli run -k demo -- true
  run -0 redlock-cli status demo --max-age 26h
  assert_output --regexp \
    '^demo: last success [0-9.ms]+ ago on .* \([0-9.ms]+, exit 0\), within 26h$'
  run -1 redlock-cli status demo --max-age 1ms
  assert_output --regexp '^demo: last success .*, not within 1ms$'
  run -1 redlock-cli status demo other --max-age 26h
  assert_line "other: no successful run is known"
  run -0 redlock-cli status demo --max-age 26h -q
  assert_output ""
  hold ours
  run -0 redlock-cli status demo --max-age 26h
  release_hold ours
}

@test "--max-age beyond the time for which runs are remembered is reported if no success is known" {
  run -1 redlock-cli status demo --max-age 71d
  assert_output \
    "demo: no successful run is known; runs are remembered for 70d only, less than --max-age 71d"
  run -1 redlock-cli status demo --max-age 70d
  assert_output "demo: no successful run is known"
  run -7 redlock-cli run -k demo --once-per 90d -- sh -c 'exit 7'
  run -1 redlock-cli status demo --max-age 90d
  refute_output --partial "remembered"
  run -0 redlock-cli run -k demo -- true
  run -0 redlock-cli status demo --max-age 100d
  refute_output --partial "remembered"
}

@test "--max-age cannot be combined with --watch, --exit-code and a status of all locks" {
  assert_refused 64 "needs KEY" redlock-cli status --max-age 26h
  assert_refused 64 "cannot be combined" redlock-cli status demo --max-age 26h --exit-code
  assert_refused 64 "cannot be combined" redlock-cli status demo --max-age 26h --watch
  assert_refused 64 "cannot be combined with KEY" redlock-cli status demo --all
}

# bats test_tags=redis
@test "--max-age without a quorum exits with 69, not with a result" {
  stop_server 0
  run -69 --separate-stderr redlock-cli status demo --max-age 26h
  assert_output "demo: unknown: no quorum of servers answered"
}

# bats test_tags=redis
@test "a user who may not read the record is denied, instead of shown none" {
  run -0 redlock-cli run -k demo -- true
  redis 0 acl setuser narrow on nopass '~demo' '~redlock:[^l]*' '&*' +@all >/dev/null
  run -77 --separate-stderr redlock-cli status demo --user narrow --max-age 26h
  assert_output "demo: unknown: no quorum of servers answered"
  assert_regex "$stderr" "the user lacks access to the key, or to its redlock:\* keys"
  run -0 redlock-cli status demo --user narrow
  assert_line "demo: free"
  assert_line --partial "last run not shown: the user lacks access to the key"
}

@test "status --all lists recently used locks, status those that are held" {
  run -0 redlock-cli run -k 'used}lately' -- true
  hold ours
  run -0 redlock-cli status
  assert_line --regexp "^demo +held "
  refute_line --partial "used}lately"
  run -0 redlock-cli status --all
  assert_line --regexp "^demo +held "
  assert_line --regexp "^used}lately +free "
  assert_line --partial "last run "
  release_hold ours
  run -0 redlock-cli status --all
  assert_line --regexp "^demo +free "
  run -0 redlock-cli status
  assert_output "no locks"
}

@test "shared runs and slots are remembered, the latest start as the last run" {
  run -0 redlock-cli run -k demo -s -- true
  run -0 redlock-cli status demo --max-age 1h
  run -0 redlock-cli run -k demo --slots 2 -- redlock-cli run -k demo --slots 2 --note inner \
    -- sh -c 'exit 0'
  run -0 redlock-cli status demo
  assert_line --partial "last run"
}
