#!/usr/bin/env bats
# Job control at a real terminal: stop, fg, bg, and the state of the lock meanwhile.
load helper/common
load helper/supervision
load helper/terminal

setup() {
  setup_one_server
  allow_late_answers
}

# The lock has been renewed so often, every third of a ttl, that it would have expired otherwise.
renewed_for_a_ttl() {
  local before
  before=$(scripts_run 0)
  wait_until has_run_scripts 0 $((before + 4))
}

@test "^Z stops the command and redlock-cli, the lock is kept for longer than a ttl, and fg continues both" {
  open_terminal
  type_line "redlock-cli run -t 6s --server-timeout 500ms -k demo -- $(counter INT)"
  wait_for_counter
  local front
  front=$(foreground)
  press "$CTRL_Z"
  see Stopped
  see_status 148
  wait_until is_stopped "$front"
  wait_until is_stopped "$COUNTER"
  renewed_for_a_ttl
  assert is_stopped "$COUNTER"
  assert_equal "$(redis 0 get demo)" "$TOKEN"
  run redlock-cli run -n -k demo -- true
  assert_failure 75
  type_line fg
  wait_until goes_on "$COUNTER"
  wait_until goes_on "$front"
  press "$CTRL_C"
  assert_heard "$front" INT
  end_counter
  see_status 23
  wait_for_no_key 0 demo
}

# A run of the counter that ^Z has stopped; its front process is the caller's `front`.
pause_counter() {
  open_terminal
  type_line "redlock-cli run -k demo -- $(counter INT)"
  wait_for_counter
  front=$(foreground)
  press "$CTRL_Z"
  see_status 148
}

# suspend_shell COMMAND: starts a shell under the lock, which is suspended, continued, and exits.
suspend_shell() {
  open_terminal
  type_line "$1"
  see_status 0
  type_line suspend
  see Stopped
  see_status 148
  assert_equal "$(redis 0 exists demo)" 1
  type_line fg
  type_line 'echo "under: $REDLOCK_KEY"'
  see "^under: demo"
  see_status 0
  type_line 'exit 9'
  see_status 9
  wait_for_no_key 0 demo
}

@test "a shell under the lock: suspend gives the terminal back, fg returns to it" {
  suspend_shell "redlock-cli run -k demo -- bash --norc --noprofile"
}

@test "the same beside an earlier background job, which is never touched" {
  suspend_shell \
    "(sleep 1000 & echo \$! >helper; exec redlock-cli run -k demo -- bash --norc --noprofile)"
  type_and_see_status 'kill -KILL $(<helper)' 0
}

@test "^Z that the command ignores stops no process" {
  open_terminal
  type_line "redlock-cli run -k demo -- bash -c 'trap \"\" TSTP; echo deaf; read -r line; exit 4'"
  see '^deaf'
  local front
  front=$(foreground)
  press "$CTRL_Z"
  press $'\r'
  see_status 4
}

@test "a command that is stopped on its own stops the job, and continues with it or on its own" {
  open_terminal
  type_line "redlock-cli run -k demo -- $(counter INT)"
  wait_for_counter
  local front
  front=$(foreground)
  kill -STOP "$COUNTER"
  see Stopped
  see_status 148
  wait_until is_stopped "$front"
  type_line fg
  wait_until goes_on "$COUNTER"
  wait_until goes_on "$front"
  kill -STOP "$COUNTER"
  see_status 148
  kill -CONT "$COUNTER"
  wait_until goes_on "$front"
  end_counter
  type_line 'wait %1; (exit $?)'
  see_status 23
}

@test "front continued alone after ^Z continues the command, and another ^Z stops both" {
  local front
  pause_counter
  wait_until is_stopped "$front"
  kill -CONT "$front"
  wait_until goes_on "$COUNTER"
  wait_until goes_on "$front"
  type_line fg
  wait_until has_terminal "$front"
  press "$CTRL_Z"
  see_status 148
  assert is_stopped "$COUNTER"
  type_line fg
  wait_until goes_on "$COUNTER"
  end_counter
  see_status 23
}

# TSTP is not blocked, as it is while a command runs.
acts_on_keyboard() { ! grep -q '^SigBlk:.*[89a-f]....$' "/proc/$1/status"; }

@test "^Z while run waits for what the command left stops run, and fg continues it" {
  open_terminal
  type_line \
    "redlock-cli run --descendants wait -k demo -- \
sh -c 'sh -c \"until [ -e \$PWD/end ]; do sleep 0.1; done\" & echo left'"
  see '^left'
  # The command has ended, and the keyboard is ours.
  wait_until acts_on_keyboard "$(foreground)"
  press "$CTRL_Z"
  see_status 148
  type_line fg
  touch "$BATS_TEST_TMPDIR/end"
  see_status 0
  wait_for_no_key 0 demo
}

@test "a command that is killed while it is stopped ends a script that waits for run" {
  open_terminal
  executable script >/dev/null <<<"#!/bin/sh
redlock-cli run -k demo -- $(counter INT)
echo \"ended with \$?\""
  type_line ./script
  wait_for_counter
  kill -STOP "$COUNTER"
  wait_until is_stopped "$COUNTER"
  kill -KILL "$COUNTER"
  see 'ended with 137'
  wait_for_no_key 0 demo
}

@test "a command that continues without its lock, and is killed while it is stopped, ends a script that waits for run" {
  open_terminal
  executable script >/dev/null <<<"#!/bin/sh
redlock-cli run -t 6s --server-timeout 500ms --on-lost warn -k demo -- $(counter INT)
echo \"ended with \$?\""
  type_line ./script
  wait_for_counter
  kill -STOP "$COUNTER"
  wait_until is_stopped "$COUNTER"
  wait_until is_stopped "$(pgrep -P "$(foreground)")"
  redis 0 del demo
  see 'demo: lost'
  assert is_stopped "$COUNTER"
  kill -KILL "$COUNTER"
  see 'ended with 79'
}

@test "the whole job is stopped by another process, and fg continues it, however late the holder reacts" {
  open_terminal
  type_line "redlock-cli run -k demo -- $(counter INT)"
  wait_for_counter
  local front holder
  front=$(foreground)
  holder=$(holder_of "$front")
  kill -STOP -- "-$front"
  see_status 147
  wait_until is_stopped "$COUNTER"
  # It has notified front, which cannot read that yet, and does not notice that both were continued.
  wait_until has_no_news "$holder"
  kill -STOP "$holder"
  wait_until is_stopped "$holder"
  type_line fg
  see 'redlock-cli run'
  # Front continues the holder to pass on a signal.
  assert_heard "$front"
  wait_until goes_on "$holder"
  press "$CTRL_C"
  assert_heard "$front" INT
  end_counter
  see_status 23
}

# It waits, and no SIGCHLD is pending.
has_no_news() {
  [[ $(state_of "$1") == S ]] && ! grep -q '^ShdPnd:.*[13579bdf]....$' "/proc/$1/status"
}

@test "stopped and continued before run could follow: the job continues" {
  open_terminal
  type_line "redlock-cli run -t 6s --server-timeout 500ms -k demo -- $(counter INT)"
  wait_for_counter
  local front before
  front=$(foreground)
  kill -STOP "$front"
  wait_until is_stopped "$front"
  kill -STOP "$COUNTER"
  wait_until is_stopped "$COUNTER"
  # The holder has notified front, which cannot read that yet.
  before=$(scripts_run 0)
  wait_until has_run_scripts 0 $((before + 2))
  # It continues front, too.
  kill -CONT "$COUNTER"
  wait_until goes_on "$front"
  # The shell took the terminal when front was stopped: not by the keyboard.
  kill -INT "$front"
  assert_heard "$front" INT
  end_counter
  wait_until is_dead "$front"
  wait_for_no_key 0 demo
}

@test "^Z, bg, fg, ^Z, fg" {
  local front
  pause_counter
  wait_until is_stopped "$COUNTER"
  type_and_see_status bg 0
  wait_until goes_on "$COUNTER"
  wait_until goes_on "$front"
  # In the background now, so not ours.
  press "$CTRL_C"
  see_status 130
  type_line fg
  wait_until has_terminal "$front"
  press "$CTRL_Z"
  see_status 148
  wait_until is_stopped "$COUNTER"
  type_line fg
  wait_until goes_on "$COUNTER"
  assert_heard "$front"
  end_counter
  see_status 23
}

has_terminal() { [[ $(foreground) == "$1" ]]; }

@test "& then fg: the command has the keyboard" {
  open_terminal
  type_line "redlock-cli run -k demo -- $(counter INT) &"
  see_status 0
  wait_for_counter
  local front
  type_line fg
  see 'redlock-cli run'
  wait_until has_foreground_job
  front=$(foreground)
  press "$CTRL_C"
  assert_heard "$front" INT
  end_counter
  see_status 23
}

has_foreground_job() { [[ $(ps -o comm= -p "$(foreground)") != bash ]]; }

@test "stopped while the lease cannot be renewed: the tree is dead before it could expire, and fg shows 79" {
  WITNESS=$BATS_TEST_TMPDIR/witness
  touch "$WITNESS"
  open_terminal
  type_line \
    "redlock-cli run -t 6s --server-timeout 200ms -k demo -- \
sh -c 'exec 9<witness; flock -s 9; sleep 1000 & echo \$! \$\$ >pids; echo read\"\"y; wait'"
  see ready
  local front tree
  front=$(foreground)
  read -ra tree <pids
  press "$CTRL_Z"
  see_status 148
  wait_until is_stopped "${tree[0]}"
  wait_until is_stopped "${tree[1]}"
  stop_servers_for_good 6000 0
  assert_dead_before_expiry
  assert is_stopped "$front"
  resume_server 0
  type_line fg
  see 'demo: .*stopped'
  see_status 79
  wait_for_no_key 0 demo
}

@test "stopped while the lease is lost: however long the command takes to clean up, fg shows 79" {
  open_terminal
  type_line \
    "redlock-cli run -t 12s --server-timeout 600ms --grace 5s -k demo -- \
bash -c 'trap \"until [ -e cleaned ]; do sleep 0.1; done; exit 3\" TERM; \
echo \$\$ >pid; echo read\"\"y; while :; do sleep 0.1; done'"
  see ready
  local front holder command
  front=$(foreground)
  holder=$(holder_of "$front")
  read -r command <pid
  press "$CTRL_Z"
  see_status 148
  wait_until is_stopped "$command"
  wait_until is_stopped "$front"
  redis 0 del demo
  wait_until goes_on "$command"
  # The holder has seen that, too.
  wait_until has_no_news "$holder"
  assert is_stopped "$front"
  touch cleaned
  wait_until is_dead "$holder"
  assert is_stopped "$front"
  type_line fg
  see 'demo: .*stopped'
  see_status 79
  wait_for_no_key 0 demo
}

@test "a wait that is stopped does not start the command, and does not keep the lock from others" {
  redis 0 set demo x
  open_terminal
  type_line "redlock-cli run -k demo -- sh -c 'echo entered; touch entered'"
  see 'waiting for demo'
  local front
  front=$(foreground)
  press "$CTRL_Z"
  see_status 148
  wait_until is_stopped "$front"
  redis 0 del demo
  # The lock was granted to the job that is stopped ...
  wait_until is_granted
  # ... which releases it: a second one gets it, and a third.
  wait_until redlock-cli run -n -k demo -- true
  hold other
  assert [ ! -e entered ]
  type_line fg
  see 'redlock-cli run'
  wait_until goes_on "$front"
  assert [ ! -e entered ]
  release_hold other
  see '^entered'
  see_status 0
  wait_for_no_key 0 demo
}

is_granted() { [[ -n $(fence_at 0 demo) ]]; }

@test "a wait that is stopped runs when it is continued and the lock is free" {
  redis 0 set demo x
  open_terminal
  type_line "redlock-cli run -k demo -- sh -c 'echo entered; touch entered'"
  see 'waiting for demo'
  press "$CTRL_Z"
  see_status 148
  redis 0 del demo
  wait_until is_granted
  wait_for_no_key 0 demo
  assert [ ! -e entered ]
  type_line fg
  see '^entered'
  see_status 0
}

@test "a stopped wait ends with the job, and nothing is left" {
  redis 0 set demo x
  open_terminal
  type_line "redlock-cli run -k demo -- touch entered"
  see 'waiting for demo'
  local front
  front=$(foreground)
  press "$CTRL_Z"
  see_status 148
  redis 0 del demo
  wait_until is_granted
  wait_for_no_key 0 demo
  type_line 'kill %1'
  wait_until is_dead "$front"
  # The shell may notice it later than this test.
  type_line 'while [[ $(jobs -s) ]]; do sleep 0.1; done'
  see Terminated
  type_line 'exit 0'
  wait_until nothing_left
  assert [ ! -e entered ]
  assert_equal "$(keys_at 0)" ""
}

@test "a command in the background that reads stops the job, and fg lets it read" {
  open_terminal
  type_line "redlock-cli run -k demo -- cat &"
  see '\[1\] \d+'
  local front
  front=$(grep -o '[0-9]*' <<<"${REPLY#*]}")
  see_status 0
  wait_until is_stopped "$front"
  assert_equal "$(redis 0 exists demo)" 1
  type_line fg
  see 'redlock-cli run'
  press $'hello\r'
  see 'hello\r\nhello'
  press "$CTRL_D"
  see_status 0
  wait_for_no_key 0 demo
}

@test "messages from the background do not stop the job with stty tostop" {
  redis 0 set demo x
  open_terminal
  type_and_see_status 'stty tostop' 0
  type_line "redlock-cli run -t 6s --server-timeout 500ms -k demo -- $(counter) &"
  see_status 0
  see 'waiting for demo'
  redis 0 del demo
  wait_for_counter
  renewed_for_a_ttl
  assert_equal "$(redis 0 get demo)" "$TOKEN"
  redis 0 del demo
  see 'demo: lost: '
  type_line 'wait $!'
  see '\[79\]> '
}

@test "a command in the background that writes stops with stty tostop, and keeps its lock" {
  open_terminal
  type_and_see_status 'stty tostop' 0
  type_line \
    "redlock-cli run -t 6s --server-timeout 500ms -k demo -- \
sh -c 'echo writ\"\"ten; (exit 9)' &"
  see '\[1\] \d+'
  local front
  front=$(grep -o '[0-9]*' <<<"${REPLY#*]}")
  see_status 0
  wait_until is_stopped "$front"
  renewed_for_a_ttl
  assert_equal "$(redis 0 exists demo)" 1
  type_line fg
  see written
  see_status 9
}

@test "a terminal whose /dev/tty cannot be opened is still a terminal" {
  local closed="mount --bind /dev/tty /dev/tty && mount -o remount,bind,nodev /dev/tty"
  unshare --mount sh -c "$closed" 2>/dev/null || skip "needs root, and a mount namespace"
  open_terminal unshare --mount sh -c "$closed && exec bash --norc --noprofile -i"
  see_status 0
  type_line "redlock-cli run -k demo -- $(counter INT)"
  wait_for_counter
  assert_equal "$(ps -o pgid= -p "$COUNTER" | tr -d ' ')" "$(foreground)"
  press "$CTRL_C"
  assert_heard "$(foreground)" INT
  end_counter
  see_status 23
}
