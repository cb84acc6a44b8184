#!/usr/bin/env bats
# REDLOCK_TRACE=FD: for developers, what the guards and the engine see and decide.
load helper/common
load helper/locks
setup() { setup_one_server; }

shown_trace() { cat "$BATS_TEST_TMPDIR/trace"; }

# traced_run OPTION… -- CMD
traced_run() {
  REDLOCK_TRACE=9 run redlock-cli run -k demo "$@" 9>"$BATS_TEST_TMPDIR/trace"
  TRACE=$(shown_trace)
}

# assert_traced EXPRESSION…: each matches a line, in any order.
assert_traced() {
  local expression
  for expression; do assert_regex "$TRACE" "$expression"; done
}

@test "both guards trace messages, steps and votes" {
  traced_run --max-hold 300ms -- sleep 1000
  assert_failure 124
  local time='[0-9]+\.[0-9]{6}'
  assert_traced "$time holder\[[0-9]+\] vote: .*: granted, fence 1" \
    "$time holder\[[0-9]+\] channel: sent: may_start 1" \
    "$time front\[[0-9]+\] channel: received: may_start 1" \
    "$time front\[[0-9]+\] channel: sent: go 1" \
    "$time holder\[[0-9]+\] stop: wait, next at $time" \
    "$time holder\[[0-9]+\] stop: terminate max_hold, next at $time" \
    "$time holder\[[0-9]+\] vote: .*: released" \
    "$time front\[[0-9]+\] channel: received: exited 124"
}

@test "a signal: why it was passed on, and to whom" {
  REDLOCK_TRACE=9 start_background ours redlock-cli run -k demo -- \
    sh -c 'echo ready; exec sleep 1000' 9>"$BATS_TEST_TMPDIR/trace"
  wait_for_stdout ours ready
  kill -TERM "${BACKGROUND_PID[ours]}"
  wait_background ours
  TRACE=$(shown_trace)
  assert_traced "front\[[0-9]+\] signal: TERM from [0-9]+: passed on: there is no witness" \
    "holder\[[0-9]+\] channel: received: signal 15 from [0-9]+" \
    "holder\[[0-9]+\] signal: TERM has reached none" \
    "holder\[[0-9]+\] signal: TERM sent to the group of command [0-9]+" \
    "holder\[[0-9]+\] signal: one has ended the command"
}

@test "a vote that is none names its server and the fault" {
  kill_server 0
  traced_run -n --server-timeout 1s -- true
  assert_failure 69
  assert_traced "vote: .*: silent: "
}

@test "it shows neither token nor arguments, and the command gets neither variable nor descriptor" {
  REDLOCK_TRACE=9 start_background ours redlock-cli run -k demo -- \
    sh -c ': an-argument; echo "${REDLOCK_TRACE-unset}"; ls -l /proc/self/fd; exec sleep 1000' \
    9>"$BATS_TEST_TMPDIR/trace"
  wait_for_key 0 demo
  local token
  token=$(redis 0 get demo)
  wait_for_stdout ours unset
  kill -TERM "${BACKGROUND_PID[ours]}"
  wait_background ours
  refute_regex "$output" "trace"
  TRACE=$(shown_trace)
  assert_traced "vote: .*: granted"
  refute_regex "$TRACE" "an-argument|$token"
}

has_traced() { [[ $(shown_trace) =~ $1 ]]; }

@test "a background holder traces on after the hand-over, without the token" {
  REDLOCK_TRACE=9 redlock-cli acquire -k demo --detach --max-hold 300ms \
    --token-file "$BATS_TEST_TMPDIR/lease" 9>"$BATS_TEST_TMPDIR/trace"
  # shellcheck source=/dev/null
  source "$BATS_TEST_TMPDIR/lease"
  wait_until has_traced "holder\[[0-9]+\] vote: [^ ]+ released"
  TRACE=$(shown_trace)
  assert_traced "channel: sent: exited 0" "channel: received: handed_over"
  refute_regex "$TRACE" "${REDLOCK_TOKEN:?}"
}

@test "a trace that is not read is dropped, and delays nothing" {
  mkfifo "$BATS_TEST_TMPDIR/full"
  exec 8<>"$BATS_TEST_TMPDIR/full"
  head -c 65536 /dev/zero >&8
  REDLOCK_TRACE=8 run redlock-cli run -k demo -- true
  exec 8>&-
  assert_success
}

@test "what is not a descriptor for writing is refused: 78" {
  local value
  for value in x 99 -1 7; do
    REDLOCK_TRACE=$value run redlock-cli run -k demo -- true 7</dev/null
    assert_failure 78
    assert_output "redlock-cli: REDLOCK_TRACE: $value: not a descriptor that is open for writing"
  done
  REDLOCK_TRACE='' run redlock-cli run -k demo -- true
  assert_success
  assert_output ""
}
