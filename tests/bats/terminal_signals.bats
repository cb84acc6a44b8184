#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2030,SC2031,SC2154  # the commands' own shells expand; each test is a subshell; bats sets stderr
# Signals to a job at a real terminal: the command gets each exactly once, and the shell sees what it would see without us.
load helper/common
load helper/redis
load helper/locks
load helper/terminal

setup() { setup_one_server; }

# A job in the foreground that counts; FRONT is then its first process.
start_counting() {
  open_terminal
  type_line "redlock-cli run -k demo -- $(counter "$@")"
  wait_for_counter
  FRONT=$(foreground)
}

# The same in the background.
start_counting_behind() {
  open_terminal
  type_line "redlock-cli run -k demo -- $(counter "$@") &"
  see '\[1\] (\d+)'
  FRONT=$(grep -o '[0-9]*' <<<"${REPLY#*]}")
  see_status 0
  wait_for_counter
}

# A command that survives its signals ends with its own status, and the lock is free.
see_end_of_counting() {
  end_counter
  see_status "${1-23}"
  wait_for_no_key 0 demo
}

# The process in the group of FRONT that is neither FRONT nor the command.
group_watcher() { ps -o pid=,pgid= --ppid "$FRONT" | awk -v group="$FRONT" '$2 == group { print $1 }'; }

@test "^C reaches the command once, each time" {
  start_counting INT
  press "$CTRL_C"
  assert_heard "$FRONT" INT
  press "$CTRL_C"
  assert_heard "$FRONT" INT INT
  see_end_of_counting
}

@test "^\\ reaches the command once" {
  start_counting QUIT
  press "$CTRL_BACKSLASH"
  assert_heard "$FRONT" QUIT
  see_end_of_counting
}

@test "^C reaches the command once even when nobody watches the group" {
  start_counting INT
  kill -STOP "$(group_watcher)"
  press "$CTRL_C"
  assert_heard "$FRONT" INT
  kill -CONT "$(group_watcher)"
  see_end_of_counting
}

@test "^C, survived, hides no later signal to us alone" {
  start_counting INT
  press "$CTRL_C"
  assert_heard "$FRONT" INT
  kill -INT "$FRONT"
  assert_heard "$FRONT" INT INT
  kill -INT "$FRONT"
  assert_heard "$FRONT" INT INT INT
  see_end_of_counting
}

@test "^C aborts the script that called us, and the shell shows 130" {
  open_terminal
  executable script <<<$'#!/bin/bash\nredlock-cli run -k demo -- sh -c "echo read\'\'y; exec sleep 1000"\necho went on' >/dev/null
  type_line ./script
  see ready
  press "$CTRL_C"
  see_status 130
  type_and_see_status 'grep -c . /dev/null; cat script >/dev/null' 0
  refute [ "$(grep -c 'went on' "$(screen)")" != 0 ]
  wait_for_no_key 0 demo
}

@test "a script goes on when the command survives ^C" {
  open_terminal
  executable script <<<$'#!/bin/bash\nredlock-cli run -k demo -- ./counter INT\necho "went on: $?"' >/dev/null
  counter >/dev/null
  type_line ./script
  wait_for_counter
  press "$CTRL_C"
  wait_until heard_at_least INT
  end_counter
  see 'went on: 23'
}
