#!/usr/bin/env bats
# How the command of a lock that is lost is stopped.
load helper/common
load helper/family

@test "the command gets the stop signal first, and may clean up" {
  start_background ours redlock-cli run -t 12s --grace 4s -k demo -- \
    bash -c 'trap "echo cleaned up; exit 7" TERM; echo ready; while :; do sleep 0.1; done'
  wait_for_stdout ours ready
  redis 0 del demo
  wait_background ours
  assert_equal "$status" 79
  assert_equal "${lines[*]}" "ready cleaned up"
}

@test "a stopped command is continued to receive the stop signal" {
  start_family ours -t 9s
  kill -STOP "${FAMILY[@]}"
  redis 0 del demo
  wait_background ours
  assert_equal "$status" 79
  assert_family_dead
}

@test "the grace lies between TERM and KILL" {
  start_background ours redlock-cli run -t 15s --grace 6s -k demo -- /usr/bin/python3 -uc '
import os, signal, time
def say(word):
    os.write(1, f"{word} {time.monotonic()}\n".encode())
signal.signal(signal.SIGTERM, lambda *_: say("told"))
say("ready")
while True:
    time.sleep(0.01)
    say("alive")'
  wait_for_stdout ours ready
  redis 0 del demo
  wait_background ours
  assert_equal "$status" 79
  # From the signal to the last sign of life, less one interval between signs, of which there are a
  # hundred per second.
  run awk '$1 == "told" { told = $2; ++times }
    { last = $2 }
    END { print times, (last - told > 2.5 ? "lived" : last - told) }' <<<"$output"
  assert_output "1 lived"
}

# Longer than the graces and the leases of these tests; the server keeps the time.
outlast_the_lease() {
  redis 0 set timer x px 9000
  wait_for_no_key 0 timer
}

@test "--on-lost term: the command gets TERM, and may end in its own time" {
  start_background ours redlock-cli run -t 8s --grace 100ms --on-lost term -k demo \
    --status-fd 9 -- \
    bash -c 'trap "echo told" TERM; echo ready; until [[ -e $0 ]]; do sleep 0.1; done
      echo ended' "$BATS_TEST_TMPDIR/end" 9>"$BATS_TEST_TMPDIR/report"
  wait_for_stdout ours ready
  redis 0 del demo
  wait_for_stdout ours told
  outlast_the_lease
  touch "$BATS_TEST_TMPDIR/end"
  wait_background ours
  assert_equal "$status" 79
  assert_equal "${lines[*]}" "ready told ended"
  run report
  assert_output --partial '"result":"lost","exit_code":79'
  assert_output --partial '"command_exit":0'
}

@test "--on-lost warn: the command is left alone, and the status is 79 nonetheless" {
  start_background ours redlock-cli run -t 8s --grace 100ms --on-lost warn -k demo \
    --status-fd 9 -- \
    bash -c 'trap "echo told" TERM; echo ready; until [[ -e $0 ]]; do sleep 0.1; done
      echo ended' "$BATS_TEST_TMPDIR/end" 9>"$BATS_TEST_TMPDIR/report"
  wait_for_stdout ours ready
  redis 0 del demo
  wait_for_stderr ours "demo: lost: it is gone"
  outlast_the_lease
  touch "$BATS_TEST_TMPDIR/end"
  wait_background ours
  assert_equal "$status" 79
  assert_equal "${lines[*]}" "ready ended"
  assert_regex "$stderr" "ran on without the lock"
  run report
  assert_output --partial '"result":"lost","exit_code":79'
  assert_output --partial '"command_exit":0'
}

@test "a signal while the command is being stopped does not save it" {
  start_background ours redlock-cli run -t 12s --grace 4s -k demo -- \
    bash -c 'trap "echo told" TERM; trap "echo interrupted" INT
      echo ready; while :; do sleep 0.1; done'
  wait_for_stdout ours ready
  redis 0 del demo
  wait_for_stdout ours told
  kill -INT "${BACKGROUND_PID[ours]}"
  wait_background ours
  assert_equal "$status" 79
}
