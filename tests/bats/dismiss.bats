#!/usr/bin/env bats
# stop --waiting and --all: those who wait are sent away.
load helper/common

setup() { setup_one_server; }


# assert_sent_away NAME: it ended with 75 and says who sent it away.
assert_sent_away() {
  wait_background "$1"
  assert_equal "$status" 75
  assert_regex "$stderr" "demo: sent away by $(id -un)@$(hostname) \(\"bad commit\"\)"
}

@test "those who wait give up with 75 and say why, the command runs on, and newcomers wait" {
  hold holder
  find_promptly
  waits first
  waits second
  run --separate-stderr redlock-cli stop demo --waiting --reason "bad commit"
  assert_success
  assert_equal "$stderr" "redlock-cli: demo: 2 waiters sent away"
  assert_sent_away first
  assert_sent_away second
  kill -0 "${BACKGROUND_PID[holder]}"
  waits third
  release_hold holder
  assert_equal "$status" 0
  wait_background third
  assert_equal "$status" 0
  assert_equal "$(cat "$BATS_TEST_TMPDIR/ran")" third
}

@test "--all sends them away and stops the command, and none of them starts" {
  find_promptly
  hold running
  waits first
  waits second
  run --separate-stderr redlock-cli stop demo --all --reason "bad commit" --json
  assert_success
  assert_equal "$(jq -r '[.result, .exit_code, .sent_away, .unreached] | join(" ")' <<<"$output")" \
    "stopped 0 2 0"
  wait_background running
  assert_equal "$status" 143
  assert_sent_away first
  assert_sent_away second
  assert_equal "$(cat "$BATS_TEST_TMPDIR/ran" 2>/dev/null)" ""
  run -0 redlock-cli status demo --exit-code
}

@test "JSON and events of a waiter tell who sent it away, and -E applies" {
  hold holder
  exec 7>"$BATS_TEST_TMPDIR/events"
  waits old --json -E 9 --events-fd 7
  redlock-cli stop demo --waiting --reason "bad commit" -q
  wait_background old
  assert_equal "$status" 9
  assert_equal \
    "$(jq -r '[.result, .exit_code, .dismissed_by.reason] | join(" ")' <<<"${stderr##*$'\n'}")" \
    "dismissed 9 bad commit"
  assert_equal "$(jq -r 'select(.event == "not_acquired").result' "$BATS_TEST_TMPDIR/events")" \
    dismissed
  release_hold holder
}

@test "acquire and hold are sent away, too" {
  hold holder
  start_background acquire redlock-cli acquire -k demo --ttl 1m --note acquire
  start_background hold redlock-cli hold demo --for 1h --note hold
  wait_until note_waits acquire
  wait_until note_waits hold
  redlock-cli stop demo --waiting --reason "bad commit"
  assert_sent_away acquire
  assert_sent_away hold
  release_hold holder
  run -0 redlock-cli status demo --exit-code
}

@test "one that is stopped is named, and gives up when it goes on, also if the lock is free" {
  hold holder
  waits frozen
  local front=${BACKGROUND_PID[frozen]} holder_process
  holder_process=$(pgrep -P "$front")
  kill -STOP "$holder_process"
  run --separate-stderr redlock-cli stop demo --waiting --reason "bad commit"
  assert_success
  assert_regex "$stderr" "demo: 0 waiters sent away; 1 not reached, which gives up when running \
again: $(id -un)@$(hostname) \(run pid $front: sh\), \"frozen\"$"
  release_hold holder
  kill -CONT "$holder_process"
  assert_sent_away frozen
  assert_equal "$(cat "$BATS_TEST_TMPDIR/ran" 2>/dev/null)" ""
}

@test "--all sends no waiter away if it would not stop the holder" {
  start_background first redlock-cli run -k demo --slots 1 -- sh -c 'echo ready; exec sleep 99'
  wait_for_stdout first ready
  waits second --slots 1
  assert_refused 64 "choose a slot with --slot" redlock-cli stop demo --all
  run -79 redlock-cli stop demo --all --slot 0 --if-fence 7
  note_waits second
  run -0 redlock-cli stop demo --all --slot 0 --reason "bad commit"
  assert_sent_away second
  wait_background first
  assert_equal "$status" 143
}

@test "if there are no waiters, it says so; without a quorum it exits with 69" {
  run --separate-stderr redlock-cli stop demo --waiting
  assert_success
  assert_equal "$stderr" "redlock-cli: demo: no waiters"
  assert_refused 69 "demo: no quorum confirmed that those who wait are sent away; unix:///nowhere: " \
    redlock-cli stop demo --waiting -S unix:///nowhere
}

@test "options that do not go together are refused" {
  assert_refused 64 "--all" redlock-cli stop demo --all --waiting
  assert_refused 64 "--slot" redlock-cli stop demo --waiting --slot 2
  assert_refused 64 "--wait" redlock-cli stop demo --waiting -w 3s
}

# bats test_tags=redis
@test "a quorum of three is enough while one is silent" {
  start_servers 2
  export REDLOCK_SERVER=$SERVERS
  hold holder
  waits first
  pause_server 1
  redlock-cli stop demo --waiting --reason "bad commit"
  resume_server 1
  assert_sent_away first
  release_hold holder
}
