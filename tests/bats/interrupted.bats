#!/usr/bin/env bats
# A command that a signal asked to end has not succeeded, even if it exits with 0: the period of
# --once-per stays open, --max-age is not content, and `status --runs` says "interrupted".
load helper/common
load helper/terminal

setup() {
  setup_one_server
  allow_late_answers
}

# A job that cleans up and exits with 0 after each of these signals.
job() {
  executable job <<'END_OF_JOB'
#!/bin/bash
trap 'exit 0' TERM INT HUP QUIT
echo "ready $$"
while :; do read -rt 1 <>"$0.never" || :; done
END_OF_JOB
  mkfifo "$BATS_TEST_TMPDIR/job.never"
}

# The last run counts as none: it may be repeated, a check fails, and the list says why.
assert_not_recorded_as_success() {
  run -1 redlock-cli status demo --max-age 26h
  assert_output --regexp "^demo: no successful run is known; last run .*, exit 0, interrupted\)$"
  run -0 redlock-cli status demo --runs 1
  assert_line --regexp 'exit 0, interrupted\)$'
  run -0 redlock-cli status demo --json
  assert_equal "$(jq -c '.locks[0].last | [.result, .command_exit]' <<<"$output")" \
    '["interrupted",0]'
  run -0 redlock-cli run -k demo --once-per 20h -- echo ran
  assert_output ran
}

@test "a command that exits with 0 after a signal that was passed on leaves the period open" {
  local job signal
  job=$(job)
  for signal in TERM INT HUP QUIT; do
    start_background "$signal" redlock-cli run -k demo --once-per 20h -- "$job"
    wait_for_stdout "$signal" ready
    kill -s "$signal" "${BACKGROUND_PID[$signal]}"
    wait_background "$signal"
    assert_equal "$signal $status" "$signal 0"
    assert_regex "$stderr" "demo: a signal asked the command to end; exit status 0; not recorded as \
a success: it may run again within --once-per 20h"
    assert_not_recorded_as_success
    redis 0 del 'redlock:last:{demo}' >/dev/null
  done
}

@test "the same holds for a run without --once-per, which says nothing about it" {
  local job
  job=$(job)
  start_background ours redlock-cli run -k demo -- "$job"
  wait_for_stdout ours ready
  kill -TERM "${BACKGROUND_PID[ours]}"
  wait_background ours
  assert_equal "$status $stderr" "0 "
  assert_not_recorded_as_success
}

@test "one of --success-codes is no success either after a signal" {
  start_background ours redlock-cli run -k demo -q --once-per 20h --success-codes 0,3 -- \
    bash -c 'trap "exit 3" TERM; echo ready; while :; do sleep 0.05; done'
  wait_for_stdout ours ready
  kill -TERM "${BACKGROUND_PID[ours]}"
  wait_background ours
  assert_equal "$status" 3
  run -1 redlock-cli status demo --max-age 26h
  assert_output --regexp ', exit 3, interrupted\)$'
}

@test "an earlier success stays recorded after a run that was interrupted" {
  local job
  job=$(job)
  run -0 redlock-cli run -k demo -- true
  start_background ours redlock-cli run -k demo -- "$job"
  wait_for_stdout ours ready
  kill -TERM "${BACKGROUND_PID[ours]}"
  wait_background ours
  run -0 redlock-cli status demo --max-age 26h
  run -0 redlock-cli run -k demo --once-per 20h -- echo ran
  refute_line ran
}

@test "other signals do not interrupt: the command has succeeded" {
  start_background ours redlock-cli run -k demo --once-per 20h -- \
    bash -c 'trap "exit 0" USR1; echo ready; while :; do sleep 0.05; done'
  wait_for_stdout ours ready
  kill -USR1 "${BACKGROUND_PID[ours]}"
  wait_background ours
  assert_equal "$status" 0
  run -0 redlock-cli status demo --max-age 26h
}

@test "a signal after the command's end does not count, though it ends what the command left" {
  start_background ours redlock-cli run -k demo --descendants wait --events-fd 2 -- \
    bash -c 'sleep 1000 & echo "ready $!"; until [[ -e $0 ]]; do sleep 0.05; done' \
    "$BATS_TEST_TMPDIR/end"
  wait_for_stdout ours ready
  local rest command
  read -r _ rest <"$(background_stdout ours)"
  command=$(ps -o ppid= "$rest")
  touch "$BATS_TEST_TMPDIR/end"
  wait_until is_reaped "${command// /}"
  kill -TERM "${BACKGROUND_PID[ours]}"
  wait_background ours
  assert_equal "$status" 0
  run -0 redlock-cli status demo --max-age 26h
}

is_reaped() { [[ ! -e /proc/$1 ]]; }

@test "a ^C that the command handles interrupts it, too" {
  local job
  job=$(job)
  open_terminal
  type_line "redlock-cli run -k demo -q --once-per 20h -- $job"
  see 'ready \d+'
  press "$CTRL_C"
  see_status 0
  assert_not_recorded_as_success
}

@test "a signal to the whole group of a terminal's job interrupts it, though it is not passed on" {
  local job
  job=$(job)
  open_terminal
  type_line "redlock-cli run -k demo -q --once-per 20h -- $job"
  see 'ready \d+'
  kill -TERM -- "-$(foreground)"
  see_status 0
  assert_not_recorded_as_success
}

@test "a nested run is interrupted by a signal to the run around it" {
  local job
  job=$(job)
  start_background outer redlock-cli run -k outer -- \
    redlock-cli run -k demo -q --once-per 20h -- "$job"
  wait_for_stdout outer ready
  kill -TERM "${BACKGROUND_PID[outer]}"
  wait_background outer
  assert_equal "$status" 0
  assert_not_recorded_as_success
}
