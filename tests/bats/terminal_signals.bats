#!/usr/bin/env bats
# Signals to a job at a real terminal: the command gets each exactly once, and the shell sees the
# same as without redlock-cli.
load helper/common
load helper/terminal

setup() {
  setup_one_server
  allow_late_answers
}

# A command that its signals end.
readonly SLEEPER="sh -c 'echo read\"\"y; exec sleep 1000'"

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
  see_background_job
  wait_for_counter
}

see_background_job() {
  see '\[1\] \d+'
  FRONT=$(grep -o '[0-9]*' <<<"${REPLY#*]}")
  see_status 0
}

# A command that survived its signals ends by itself, and the lock is free.
see_end_of_counting() {
  end_counter
  see_status "${1-23}"
  wait_for_no_key 0 demo
}

end_of_counting_behind() {
  end_counter
  type_and_see_status 'wait $!' 23
  wait_for_no_key 0 demo
}

# The process in the group of FRONT that is neither FRONT nor the command.
group_watcher() {
  ps -o pid=,pgid= --ppid "$FRONT" | awk -v group="$FRONT" '$2 == group { print $1 }'
}

# timeout sends its signal to its child and then to its group. Where we may say so, nothing else
# runs in between, so that front takes the two for one.
make_swift() { chrt --fifo --pid 50 "$1" 2>/dev/null || true; }

only_child() { ps -o pid= --ppid "$1" | tr -d ' '; }

# --- From the keyboard ---

@test "with an earlier background job, the command is still in the foreground" {
  open_terminal
  type_line \
    "(sleep 1000 & echo \$! >helper; exec redlock-cli run -k demo -- \
sh -c 'echo read\"\"y; read line; echo \"got \$line\"; exec sleep 1000')"
  see 'ready'
  type_line 'a line'
  see 'got a line'
  press "$CTRL_C"
  see_status 130
  wait_for_no_key 0 demo
  type_and_see_status "kill -KILL \$(<helper)" 0
}

@test "^C reaches the command once, however slow the watcher of the group is" {
  start_counting INT
  local watcher
  watcher=$(group_watcher)
  kill -STOP "$watcher"
  wait_until is_stopped "$watcher"
  press "$CTRL_C"
  assert_heard "$FRONT" INT
  kill -CONT "$watcher"
  see_end_of_counting
}

@test "a ^C that the command survived hides no later signal to us alone" {
  start_counting INT
  press "$CTRL_C"
  assert_heard "$FRONT" INT
  kill -INT "$FRONT"
  assert_heard "$FRONT" INT INT
  kill -INT "$FRONT"
  assert_heard "$FRONT" INT INT INT
  see_end_of_counting
}

@test "^C aborts the calling script, and the shell shows 130" {
  open_terminal
  executable script <<<$'#!/bin/bash\nredlock-cli run -k demo -- '"$SLEEPER"$'\ntouch went-on' \
    >/dev/null
  type_line ./script
  see ready
  press "$CTRL_C"
  see_status 130
  assert [ ! -e went-on ]
  wait_for_no_key 0 demo
  type_and_see_status '(exit 7)' 7
}

@test "a script continues when the command survives ^C" {
  open_terminal
  counter >/dev/null
  executable script \
    <<<$'#!/bin/bash\nredlock-cli run -k demo -- ./counter INT\necho "went on: $?"' >/dev/null
  type_line ./script
  wait_for_counter
  press "$CTRL_C"
  wait_until heard_at_least INT
  end_counter
  see 'went on: 23'
  see_status 0
}

@test "^C also ends a wait, and aborts the calling script" {
  redis 0 set demo x
  open_terminal
  executable script <<<$'#!/bin/bash\nredlock-cli run -k demo -- touch entered\ntouch went-on' \
    >/dev/null
  type_line ./script
  see 'waiting for demo'
  press "$CTRL_C"
  see_status 130
  assert [ ! -e went-on ]
  assert [ ! -e entered ]
  assert_equal "$(redis 0 keys '*')" demo
}

@test "^\\ shows 131, and the prompt survives" {
  open_terminal
  type_line "redlock-cli run -k demo -- $SLEEPER"
  see ready
  press "$CTRL_BACKSLASH"
  see Quit
  see_status 131
  wait_for_no_key 0 demo
  type_and_see_status '(exit 7)' 7
}

@test "INT that was ignored at the start stays ignored at the terminal" {
  open_terminal
  type_line "(trap '' INT; exec redlock-cli run -k demo -- $SLEEPER)"
  see ready
  press "$CTRL_C"
  # Behind it, in order.
  press "$CTRL_BACKSLASH"
  see_status 131
  wait_for_no_key 0 demo
}

@test "a resized window reaches the command once" {
  start_counting WINCH
  ask resize 30 100
  assert_heard "$FRONT" WINCH
  ask resize 31 101
  assert_heard "$FRONT" WINCH WINCH
  see_end_of_counting
}

# --- From other programs ---

@test "timeout at the terminal: the command gets TERM once" {
  open_terminal
  type_line "timeout 1000 redlock-cli run -k demo -- $(counter TERM)"
  wait_for_counter
  local timeout
  timeout=$(foreground)
  FRONT=$(only_child "$timeout")
  make_swift "$timeout"
  # Its time is over.
  kill -ALRM "$timeout"
  assert_heard "$FRONT" TERM
  see_end_of_counting 124
}

@test "timeout at the terminal that really expires: 124, and the lock is free" {
  open_terminal
  type_and_see_status "timeout 1 redlock-cli run -k demo -- sleep 1000" 124
  wait_for_no_key 0 demo
  type_and_see_status '(exit 7)' 7
}

@test "timeout without a terminal: the command gets TERM once" {
  cd "$BATS_TEST_TMPDIR"
  # shellcheck disable=SC2046  # a command line
  start_background timeout setsid timeout 1000 redlock-cli run -k demo -- $(counter TERM)
  wait_for_counter
  FRONT=$(only_child "${BACKGROUND_PID[timeout]}")
  make_swift "${BACKGROUND_PID[timeout]}"
  kill -ALRM "${BACKGROUND_PID[timeout]}"
  assert_heard "$FRONT" TERM
  end_counter
  wait_background timeout
  assert_equal "$status" 124
  wait_for_no_key 0 demo
}

@test "kill %1 reaches the command once, each time" {
  start_counting_behind TERM HUP
  type_and_see_status 'kill %1' 0
  assert_heard "$FRONT" TERM
  type_and_see_status 'kill -HUP %1' 0
  assert_heard "$FRONT" TERM HUP
  type_and_see_status 'kill %1' 0
  assert_heard "$FRONT" TERM HUP TERM
  end_of_counting_behind
}

@test "kill %1 of a stopped job reaches the command once" {
  start_counting TERM
  press "$CTRL_Z"
  see_status 148
  type_line 'kill %1'
  assert_heard "$FRONT" TERM
  # It went on, too, in the background.
  end_counter
  wait_until is_dead "$FRONT"
  type_line ''
  see 'Exit 23'
}

@test "a signal to the whole group reaches the command once, however late the watcher of the group is" {
  start_counting TERM
  local watcher
  watcher=$(group_watcher)
  # Not before it is asked: then it says what it had got before, and goes on.
  kill -STOP "$watcher"
  wait_until is_stopped "$watcher"
  kill -TERM -- "-$FRONT"
  wait_until continue_once_asked "$watcher"
  assert_heard "$FRONT" TERM
  see_end_of_counting
}

@test "--stop-signal replaces no TERM that the whole group got, only one to us alone" {
  export REDLOCK_STOP_SIGNAL=INT
  start_counting INT TERM
  kill -TERM -- "-$FRONT"
  assert_heard "$FRONT" TERM
  kill -TERM "$FRONT"
  assert_heard "$FRONT" TERM INT
  see_end_of_counting
}

# The last real-time signal is pending: the highest bit.
is_asked() { grep -q '^ShdPnd:[[:space:]]*[89a-f]' "/proc/$1/status"; }
# At once: its answer is not waited for for ever.
continue_once_asked() { is_asked "$1" && kill -CONT "$1"; }

@test "different signals to the whole group at once: the command gets each once" {
  start_counting HUP QUIT TERM
  local wanted=() _
  for _ in 1 2 3 4 5 6; do
    kill -HUP -- "-$FRONT"
    kill -TERM -- "-$FRONT"
    kill -QUIT -- "-$FRONT"
    wanted+=(HUP TERM QUIT)
    assert_heard "$FRONT" "${wanted[@]}"
  done
  see_end_of_counting
}

@test "different signals to us alone at once: the command gets each once" {
  start_counting HUP QUIT TERM
  kill -HUP "$FRONT"
  kill -TERM "$FRONT"
  kill -QUIT "$FRONT"
  assert_heard "$FRONT" HUP QUIT TERM
  see_end_of_counting
}

@test "TERM to us alone, as docker stop and systemd send it: the command gets it once, at a terminal of its own" {
  # shellcheck disable=SC2046  # a command line
  open_terminal redlock-cli run -k demo -- $(counter TERM)
  wait_for_counter
  FRONT=$(foreground)
  kill -TERM "$FRONT"
  assert_heard "$FRONT" TERM
  end_counter
  wait_until nothing_left
  wait_for_no_key 0 demo
}

@test "TERM to us alone in the foreground: the shell shows 143" {
  open_terminal
  type_line "redlock-cli run -k demo -- $SLEEPER"
  see ready
  kill -TERM "$(foreground)"
  see Terminated
  see_status 143
  wait_for_no_key 0 demo
  type_and_see_status '(exit 7)' 7
}

@test "TERM to a script that runs redlock-cli reaches neither redlock-cli nor the command" {
  open_terminal
  executable script >/dev/null \
    <<<$'#!/bin/bash\ntrap "echo tra\'\'pped" TERM\nredlock-cli run -k demo -- ./counter TERM'
  counter >/dev/null
  type_line ./script
  wait_for_counter
  local script
  script=$(foreground)
  kill -TERM "$script"
  assert_heard "$(only_child "$script")"
  end_counter
  see trapped
  see_status 23
}

# --- The terminal goes away ---

@test "a closed terminal ends the command in the foreground: nothing is left, no lock either" {
  open_terminal
  type_line "redlock-cli run -k demo -- $SLEEPER"
  see ready
  ask close
  wait_until nothing_left
  wait_for_no_key 0 demo
}

@test "a closed terminal ends a command in the background and one that is stopped" {
  open_terminal
  type_line "redlock-cli run -k demo -- $SLEEPER &"
  see ready
  type_line "redlock-cli run -k other -- $SLEEPER"
  see ready
  press "$CTRL_Z"
  see '\[148\]> '
  ask close
  wait_until nothing_left
  wait_for_no_key 0 demo
  wait_for_no_key 0 other
}

@test "a closed terminal ends a wait" {
  redis 0 set demo x
  open_terminal
  type_line "redlock-cli run -k demo -- touch entered"
  see 'waiting for demo'
  ask close
  wait_until nothing_left
  assert_equal "$(redis 0 keys '*')" demo
}

@test "a closed terminal of a session that redlock-cli leads: the command gets HUP once" {
  # shellcheck disable=SC2046  # a command line
  open_terminal redlock-cli run -k demo -- $(counter HUP)
  wait_for_counter
  FRONT=$(foreground)
  ask close
  assert_heard "$FRONT" HUP
  end_counter
  wait_until nothing_left
  wait_for_no_key 0 demo
}

@test "nohup outlives the terminal, with its lock" {
  open_terminal
  local shell
  shell=$(foreground)
  type_line "nohup redlock-cli run -k demo -- $(counter) &"
  see_background_job
  wait_for_counter
  ask close
  wait_until is_dead "$shell"
  assert_heard "$FRONT"
  assert_equal "$(redis 0 get demo)" "$TOKEN"
  end_counter
  wait_until nothing_left
  wait_for_no_key 0 demo
}
