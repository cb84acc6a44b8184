#!/usr/bin/env bats
# A process that walks the process tree and signals each one (tree-kill, pm2, nodemon): the command
# gets the signal once, and one that looks like such a walk, and is none, still reaches the command.
load helper/common
load helper/terminal

setup() {
  setup_signal_test
  find_promptly
}

teardown() { terminal_teardown; }

# start_job WORD…: the words before the counter, without a terminal.
start_job() {
  cd "$BATS_TEST_TMPDIR" || return
  REDLOCK_TRACE=9 start_background job \
    setsid "$PROGRAM" run -k demo --descendants kill -- "$@" ./counter TERM INT 9>trace
  wait_for_counter
  FRONT=${BACKGROUND_PID[job]}
}

# start_job_at_terminal WORD…: the same in a terminal.
start_job_at_terminal() {
  open_terminal
  type_line "REDLOCK_TRACE=9 $PROGRAM run -k demo -- $* ./counter TERM INT 9>trace"
  wait_for_counter
  FRONT=$(foreground)
}

# witness_is_ready N: for the Nth time.
witness_is_ready() { (($(grep -c "the tree witness is ready" trace) >= $1)); }

# Signals that are walked reach the counter once each.
assert_walks_reach_once() {
  wait_until witness_is_ready 1
  walk TERM "$1" "$FRONT"
  assert_heard "$FRONT" TERM
  wait_until witness_is_ready 2
  walk INT "$1" "$FRONT"
  assert_heard "$FRONT" TERM INT
}

# As quickly as a walk usually is, also on a busy machine: one that takes long may be taken for
# several signals.
walk() { "${PROMPTLY[@]}" /usr/bin/python3 "$BATS_TEST_DIRNAME/helper/tree_walk.py" "$@"; }

holder() { pgrep -P "$FRONT" -x lock-holder; }
# The holder's children besides the command.
witness() { pgrep -P "$(holder)" | grep -vx "$COUNTER"; }

@test "without a terminal, who walks the tree reaches the command once, wherever it is" {
  local order receiver
  for order in children parents; do
    for receiver in "" ./own_group setsid; do
      echo "$order first, receiver: ${receiver:-in the group that was made}"
      # shellcheck disable=SC2086
      start_job $receiver
      assert_walks_reach_once "$order"
      end_counter
      wait_background job
      assert_equal "$status" 23
      rm counting heard
    done
  done
}

@test "at a terminal, who walks the tree reaches the command once, wherever it is" {
  local order receiver
  open_terminal
  open_terminal() { :; }
  for order in children parents; do
    for receiver in "" ./own_group setsid; do
      echo "$order first, receiver: ${receiver:-in our group}"
      # shellcheck disable=SC2086
      start_job_at_terminal $receiver
      assert_walks_reach_once "$order"
      end_counter
      see_status 23
      rm counting heard
    done
  done
}

@test "what a walk and the end of the command by it leave in its group gets the signal once" {
  cd "$BATS_TEST_TMPDIR"
  mkdir there
  sed 's/realpath(sys.argv\[0\]))/& + "\/there"/' counter >other
  chmod +x other
  executable pair >/dev/null <<<$'#!/bin/sh\n./other TERM & exec ./counter USR2'
  REDLOCK_TRACE=9 start_background job setsid "$PROGRAM" run -k demo -- ./pair 9>trace
  wait_for_counter
  wait_until test -e there/counting
  FRONT=${BACKGROUND_PID[job]}
  wait_until witness_is_ready 1
  walk TERM parents "$FRONT"
  wait_until has_ended "$COUNTER"
  wait_until grep -q "TERM has reached" trace
  local other _
  read -r other _ <there/counting
  kill -USR2 "$other"
  wait_background job
  assert_equal "$(<there/heard)" TERM
}

@test "a signal to all processes of our user reaches a command that runs as another" {
  [[ $EUID -eq 0 ]] || skip "needs root"
  start_job setpriv --ruid 65534
  wait_until witness_is_ready 1
  kill -TERM "$FRONT" "$(holder)" "$(witness)"
  assert_heard "$FRONT" TERM
  end_counter
  wait_background job
}

@test "a signal to us and our children alone reaches the command" {
  start_job
  wait_until witness_is_ready 1
  walk TERM top "$FRONT"
  assert_heard "$FRONT" TERM
  end_counter
  wait_background job
}

@test "a signal to all of ours whose command lines have a word in common reaches the command" {
  start_job
  wait_until witness_is_ready 1
  local others
  mapfile -t others < <(pgrep -f lock -P "$(holder)" | grep -vx "$COUNTER")
  kill -TERM "$FRONT" "$(holder)" "${others[@]}"
  assert_heard "$FRONT" TERM
  end_counter
  wait_background job
}

@test "a signal to all of ours that are in a directory reaches the command" {
  start_job
  wait_until witness_is_ready 1
  local pid there=("$FRONT")
  for pid in "$(holder)" $(witness); do
    [[ $(readlink "/proc/$pid/cwd") != "$PWD" ]] || there+=("$pid")
  done
  kill -TERM "${there[@]}"
  assert_heard "$FRONT" TERM
  end_counter
  wait_background job
}

@test "a signal to all that run the program reaches the command, also after one to the witness" {
  start_job
  wait_until witness_is_ready 1
  local exe pids=()
  for exe in /proc/[0-9]*/exe; do
    [[ ! $exe -ef $PROGRAM ]] || pids+=("${exe//[^0-9]/}")
  done
  assert_equal "${#pids[@]}" 2
  kill -TERM "${pids[@]}"
  assert_heard "$FRONT" TERM
  # What the witness gets alone does not count for another signal.
  kill -INT "$(witness)"
  wait_until witness_is_ready 2
  kill -TERM "${pids[@]}"
  assert_heard "$FRONT" TERM TERM
  end_counter
  wait_background job
}

@test "where there is no other program to run, a walk reaches the command, perhaps twice" {
  [[ $EUID -eq 0 ]] || skip "needs root"
  cd "$BATS_TEST_TMPDIR"
  start_background job setsid unshare -m sh -c \
    'mount --bind /dev/null /bin/cat && exec "$@"' - "$PROGRAM" run -k demo -- ./counter TERM INT
  wait_for_counter
  FRONT=${BACKGROUND_PID[job]}
  walk TERM children "$FRONT"
  wait_until heard_at_least TERM
  end_counter
  wait_background job
  assert_equal "$status" 23
}

@test "the witness is gone when the command has ended, and is not reported as left running" {
  start_job
  wait_until witness_is_ready 1
  local witness
  witness=$(witness)
  end_counter
  wait_background job
  assert_equal "$status" 23
  assert has_ended "$witness"
  refute [ "$stderr" ]
}

@test "an outer run does not name the witness of an inner one that its command leaves running" {
  cd "$BATS_TEST_TMPDIR"
  # shellcheck disable=SC2016
  start_background job "$PROGRAM" run -k outer -- sh -c '
    "$0" run -k inner -- ./counter TERM &
    echo "$!" >inner
    until [ -e go ]; do sleep 0.05; done' "$PROGRAM"
  wait_for_counter
  wait_until inner_has_witness
  touch go
  wait_background job
  assert_regex "$stderr" "left running: .* $COUNTER"
  refute_regex "$stderr" "[ ,]3 [0-9]+"
  end_counter
  wait_for_no_key 0 inner
}

inner_has_witness() {
  local holder
  holder=$(pgrep -P "$(<inner)" -x lock-holder) && pgrep -P "$holder" -x 3
}
