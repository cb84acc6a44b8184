#!/usr/bin/env bats
# A command that overloads its machine is dead before its lease can expire, or the exit status
# reports that it was not.
load helper/common
load helper/load

setup() { common_setup; }

# How this process is scheduled: its session, policy, priority, nice level and limits.
place_of() { ps -o sid=,cls=,rtprio=,ni= -p "$1" && sed -n '/nice\|real-time/p' "/proc/$1/limits"; }

@test "the guards are scheduled apart from the command, and the command sees nothing of it" {
  local holder front
  load helper/supervision
  setup_supervision
  start_under_witness ours -k demo \
    -- bash -c 'echo "$$" >"$0/pids"; echo ready; exec sleep 1000' "$BATS_TEST_TMPDIR"
  assert_equal "$(place_of "$COMMAND")" "$(place_of "$$")"
  holder=$(ps -o sid= -p "$HOLDER")
  front=$(ps -o sid= -p "$FRONT")
  assert [ "$holder" != "$front" ]
  if ((EUID == 0)); then
    # A real-time class, or a nice level where process groups may not have one.
    run ps -o cls=,ni= -p "$HOLDER"
    assert_output --regexp '(RR +-|TS +-20)'
    run ps -o cls=,ni= -p "$FRONT"
    assert_output --regexp '(RR +-|TS +-20)'
  fi
  kill -KILL "$COMMAND"
  wait_background ours
  teardown_supervision
}

@test "the command keeps the priority set by nice and chrt" {
  setup_one_server
  local -r level=$(($(nice) + 3))
  run --separate-stderr nice -n 3 redlock-cli run -k demo -- sh -c 'ps -o cls=,ni= -p $$'
  assert_output --regexp "^ *TS +$level\$"
  run --separate-stderr chrt --batch 0 redlock-cli run -k demo -- sh -c 'ps -o cls= -p $$'
  assert_output --regexp '^ *B$'
}

@test "many busy processes are dead in time" {
  strike busy 100
  assert_in_time
}

@test "many busy processes in sessions of their own are dead in time" {
  strike busy 100 --sessions
  assert_in_time
}

@test "at a terminal, many busy processes are dead in time" {
  strike --terminal busy 100
  assert_in_time
}

@test "many idle processes are dead in time" {
  strike idle 1500
  assert_in_time
}

@test "a process with much memory is dead in time" {
  strike fat 1000
  assert_in_time
}

@test "processes that fork all the time are dead in time" {
  strike forks 10
  assert_in_time
}
