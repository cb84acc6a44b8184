#!/usr/bin/env bats
# A stderr that is not read (a full pipe, a stopped terminal) delays no wait, no stop, no release
# and no command. An acquire whose stdout is not read waits for the reader until a signal comes.
load helper/common
load helper/supervision
load helper/terminal

# Descriptor 7 is a pipe that is read only by drain_pipe.
setup() {
  setup_supervision
  allow_late_answers
  mkfifo "$BATS_TEST_TMPDIR/pipe"
  exec 7<>"$BATS_TEST_TMPDIR/pipe"
}

# The pipe is full to the last byte.
fill_pipe() {
  /usr/bin/python3 -c '
import os
pipe = os.open("/proc/self/fd/7", os.O_WRONLY | os.O_NONBLOCK)
for size in 4096, 1:
    try:
        while True: os.write(pipe, b"x" * size)
    except BlockingIOError:
        pass'
}

# Reads all that is in it: into the file drained, without what filled it.
drain_pipe() {
  /usr/bin/python3 -c '
import os
pipe = os.open("/proc/self/fd/7", os.O_RDONLY | os.O_NONBLOCK)
try:
    while True: print(os.read(pipe, 65536).decode().replace("x" * 4096, "").lstrip("x"), end="")
except BlockingIOError:
    pass' >>"$BATS_TEST_TMPDIR/drained"
}
has_drained() {
  drain_pipe
  grep -q "$1" "$BATS_TEST_TMPDIR/drained"
}

# unread WORD…: `redlock-cli WORD…` writes its messages to the pipe. A hanging one is ended.
unread() { timeout --kill-after=1 "$WAIT_LIMIT" redlock-cli "$@" 2>&7; }

# start_unread NAME WORD…: the same in the background.
start_unread() { start_background "$1" sh -c 'exec redlock-cli "$@" 2>&7' - "${@:2}"; }

@test "a wait ends at its timeout" {
  hold first
  fill_pipe
  run -75 unread run -k demo -w 2 -- true
  run -75 unread acquire -k demo -w 2 -t 1m
  run -75 unread acquire -k demo -w 2 --while-pid $$
  run -75 unread run -k demo -n --json -- true
  release_hold first
}

@test "a signal ends a wait" {
  local signal
  hold first
  fill_pipe
  for signal in TERM INT; do
    start_unread waiter run -k demo -vv -- true
    wait_for_queued 1
    kill -"$signal" "${BACKGROUND_PID[waiter]}"
    wait_background waiter
    assert_equal "$status" $((128 + $(kill -l "$signal")))
    wait_for_queued 0
  done
  release_hold first
}

@test "the command starts, runs, and is not stopped because of an unread line" {
  fill_pipe
  run -0 unread run -k demo -vv -- true
  run -0 unread run -k demo -v --json --status-fd 7 -- true
  drain_pipe
  # Two renewals have messages.
  start_unread ours run -k demo -vv -t 6s --grace 300ms --server-timeout 1s -- \
    sh -c 'echo up; until [ -e "$0" ]; do sleep 0.1; done' "$BATS_TEST_TMPDIR/end"
  wait_for_stdout ours up
  fill_pipe
  wait_for_extend
  wait_for_extend
  touch "$BATS_TEST_TMPDIR/end"
  wait_background ours
  assert_equal "$status" 0
  assert_unlocked demo 0
}

@test "the lock is released at the end of --max-hold, and when the command leaves something running" {
  fill_pipe
  run -124 unread run -k demo --max-hold 300ms -- sleep 1000
  assert_unlocked demo 0
  run -0 unread run -k demo -- sh -c 'sleep 1000 >&2 7>&- & echo $!'
  assert_unlocked demo 0
  kill "$output"
}

@test "after a loss the command has only its grace, not the rest of the lease" {
  start_unread ours run -k demo -t 30s --grace 300ms --server-timeout 1s -- \
    sh -c 'trap "" TERM; echo $$; while :; do sleep 0.1; done'
  wait_for_stdout ours
  fill_pipe
  redis 0 del demo
  # The next renewal is within 10 s, the end of the lease behind what is waited for here.
  wait_until is_dead "$(<"$(background_stdout ours)")"
  wait_background ours
  assert_equal "$status" 79
}

@test "a command without a lock of its own does its work, and an error ends it" {
  start_background ours redlock-cli run -k demo -t 9s --server-timeout 1s -- \
    sh -c 'echo ready; exec sleep 1000'
  wait_for_stdout ours ready
  fill_pipe
  run -0 unread stop demo -w 60s
  wait_background ours
  assert_equal "$status" 143
  redlock-cli acquire -k demo -t 60s --token-file "$BATS_TEST_TMPDIR/lease"
  run -0 unread extend -t 60s -vv --token-file "$BATS_TEST_TMPDIR/lease"
  run -0 unread release -vv --token-file "$BATS_TEST_TMPDIR/lease"
  assert_unlocked demo 0
  run -64 unread run -k demo -t 3x -- true
  run -64 unread
  run -69 unread status -S redis://127.0.0.1:1
}

@test "dropped lines are counted, and the count precedes the next line" {
  start_unread ours run -k demo -vv -t 6s --grace 300ms --server-timeout 1s -- sleep 1000
  wait_for_key 0 demo
  fill_pipe
  wait_for_extend
  wait_for_extend
  wait_until has_drained 'redlock-cli: [0-9]* messages\? w[aser]* dropped: stderr was not read'
  wait_until has_drained 'redlock-cli: demo: extended'
  kill "${BACKGROUND_PID[ours]}"
  wait_background ours
}

# start_acquire OPTION…: its stdout is the full pipe, and its lease waits there for a reader.
start_acquire() {
  fill_pipe
  start_background ours sh -c 'exec redlock-cli acquire -k demo -v "$@" >&7' - "$@"
  wait_for_stderr ours "demo: acquired after"
}

# The first TERM may come before the write.
ends_by_term() {
  kill -TERM "${BACKGROUND_PID[ours]}" 2>/dev/null || true
  background_has_ended ours
}

@test "a signal ends an acquire whose stdout is not read, and its lock is released" {
  local how options
  for how in "-t 1m" "--while-pid $$" "--detach --max-hold 1h --token-file $HOME/lease --json"; do
    read -ra options <<<"$how"
    start_acquire "${options[@]}"
    wait_until ends_by_term
    wait_background ours
    assert_equal "$how: $status" "$how: 143"
    assert_regex "$stderr" "redlock-cli: demo: .*; the lock was released\$"
    assert_unlocked demo 0
    assert [ ! -e "$HOME/lease" ]
  done
}

@test "a signal ends the wait of an acquire whose stdout is not read, although it has a result" {
  hold first
  fill_pipe
  start_background waiter sh -c 'exec redlock-cli acquire -k demo -t 1m --json >&7'
  wait_for_stderr waiter "waiting for demo"
  kill -TERM "${BACKGROUND_PID[waiter]}"
  wait_background waiter
  assert_equal "$status" 143
  release_hold first
}

@test "an acquire whose stdout is read late hands the lease over, whatever harmless signal comes" {
  start_acquire -t 1m
  kill -WINCH "${BACKGROUND_PID[ours]}"
  wait_until has_drained '^[0-9a-f]\{32\}$'
  wait_background ours
  assert_equal "$status" 0
  assert_equal "$(redis 0 exists demo)" 1
}

# The program stops the output of its terminal, as ^S does, and calls the rest of the line.
hold_output() {
  executable hold_output <<'END'
#!/usr/bin/python3
import os, sys, termios
termios.tcflow(0, termios.TCOOFF)
os.execvp(sys.argv[1], sys.argv[1:])
END
}

@test "a terminal that is held (^S): the wait ends in time, --max-hold stops and releases" {
  open_terminal
  hold first
  local program
  program=$(hold_output)
  executable lines >/dev/null <<END
export TERM=vt100
$program redlock-cli run -k demo -w 3 -- true; touch waited
redlock-cli run -k other --max-hold 1s -- sleep 1000; touch held
END
  type_line ". ./lines"
  wait_until test -e "$BATS_TEST_TMPDIR/waited"
  wait_until test -e "$BATS_TEST_TMPDIR/held"
  assert_unlocked other 0
  release_hold first
}
