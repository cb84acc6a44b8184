#!/usr/bin/env bats
# A shell dies of a signal at once, and the step that it runs may take a while: the lock stays until
# what is left of the command's process group has ended.
load helper/common
load helper/supervision

# start_steps OPTION…: a shell whose step in the foreground notes each TERM in the file heard, and
# ends when the file step_end appears. A daemon of the command is in a session of its own.
start_steps() {
  local step
  step=$(executable step <<'EOF'
#!/bin/bash
trap 'echo TERM >>"$1/heard"' TERM
touch "$1/heard"
echo "$$" >>"$1/pids"
until [[ -e $1/step_end ]]; do sleep 0.05; done
EOF
  )
  start_under_witness ours -k demo "$@" -- bash -c '
    setsid sh -c "echo \$\$ >>\"\$0/pids\"; exec sleep 1000" "$0" &
    (until [[ $(wc -l <"$0/pids") == 2 ]]; do sleep 0.05; done; echo ready) &
    "$1" "$0"; echo next step' "$BATS_TEST_TMPDIR" "$step"
  DAEMON=$(pid_named sleep) STEP=$(pid_named step)
}

# The process of TREE with this name.
pid_named() {
  local pid
  for pid in "${TREE[@]}"; do
    [[ $(<"/proc/$pid/comm") != "$1" ]] || echo "$pid"
  done
}

has_heard() { [[ $(wc -l <"$BATS_TEST_TMPDIR/heard") == "$1" ]]; }

# TERM as `docker stop` and `systemctl stop` send it; the shell has died of it then.
term_front() {
  local command
  command=$(ps -o ppid= "$STEP" | tr -d ' ')
  kill -TERM "$FRONT"
  wait_until is_dead "$command"
}

@test "a step that outlives the shell keeps the lock, and is named after a second" {
  start_steps --events-fd 2
  term_front
  wait_for_stderr ours "redlock-cli: demo: a signal ended the command; keeping the lock until the \
rest of its process group has ended: step $STEP"
  assert_regex "$(<"$(background_stderr ours)")" "\"awaiting\".*\"pids\":\[$STEP[],].*\"names\":\[\"step\"[],]"
  run -0 redlock-cli status demo
  assert_line --partial "keeping the lock until these have ended: step $STEP"
  run -0 redlock-cli status demo --json
  assert_regex "$(jq -c .locks[0].awaits <<<"$output")" "^\[$STEP[],]"
  assert_regex "$(jq -c .locks[0].awaits_names <<<"$output")" '^\["step"[],]'
  assert has_heard 1
  assert_equal "$(redis 0 exists demo)" 1
  touch "$BATS_TEST_TMPDIR/step_end"
  wait_background ours
  assert_equal "$status $output" "143 ready"
  assert is_dead "$STEP"
  assert is_alive "$DAEMON"
  assert_regex "$stderr" "processes that the command left running: sleep $DAEMON;"
  assert_equal "$(locks_at 0)" ""
}

@test "a step that outlives the shell keeps the lock whoever signals the command's group" {
  start_steps
  local command group
  command=$(ps -o ppid= "$STEP")
  group=$(ps -o pgid= "$STEP")
  kill -TERM -- -"${group// /}"
  wait_until is_dead "$command"
  wait_for_stderr ours "a signal ended the command; keeping the lock"
  assert_equal "$(redis 0 exists demo)" 1
  touch "$BATS_TEST_TMPDIR/step_end"
  wait_background ours
  assert_equal "$status" 143
  assert_equal "$(locks_at 0)" ""
}

@test "a second signal goes to the step" {
  start_steps
  term_front
  wait_until has_heard 1
  nap 50  # what comes sooner counts as the same signal
  kill -TERM "$FRONT"
  wait_until has_heard 2
  touch "$BATS_TEST_TMPDIR/step_end"
  wait_background ours
  assert_equal "$status" 143
}

@test "if only the shell gets the signal, its step gets the stop signal when the shell has ended" {
  start_steps --signal-to command
  term_front
  wait_until has_heard 1
  touch "$BATS_TEST_TMPDIR/step_end"
  wait_background ours
  assert_equal "$status" 143
}

@test "KILL of the front process kills the step, and the lock is free then" {
  start_steps -t 60s
  term_front
  watch_lock
  kill -KILL "$FRONT"
  assert_dead_before_free
  assert_tree_dead
}

@test "--max-hold stops the step" {
  start_steps --max-hold 12s --grace 300ms
  watch_lock
  term_front
  wait_background ours
  assert_equal "$status" 124
  assert_dead_before_free
}

@test "a loss stops the step" {
  start_steps -t 6s --grace 300ms --server-timeout 1s
  term_front
  redis 0 set demo theirs
  wait_background ours
  assert_equal "$status" 79
  assert_tree_dead
}

@test "--descendants kill kills the step after the grace, and --descendants wait waits for all" {
  start_steps --descendants kill --grace 300ms
  term_front
  wait_background ours
  assert_equal "$status" 143
  assert_tree_dead
  assert has_heard 1

  rm "$BATS_TEST_TMPDIR/pids" "$BATS_TEST_TMPDIR/heard"
  start_steps --descendants wait
  term_front
  wait_for_stderr ours "a signal ended the command; keeping the lock"
  touch "$BATS_TEST_TMPDIR/step_end"
  wait_until is_dead "$STEP"
  assert_equal "$(redis 0 exists demo)" 1
  kill -KILL "$DAEMON"
  wait_background ours
  assert_equal "$status" 143
}

@test "a command that ends by itself leaves its group as --descendants says" {
  run -0 --separate-stderr redlock-cli run -k demo -- \
    sh -c 'sleep 1000 >/dev/null 2>&1 3>&- & echo $!'
  assert is_alive "$output"
  assert_equal "$(locks_at 0)" ""
  assert_regex "$stderr" "processes that the command left running: sleep $output;"
  kill -KILL "$output"
}

@test "processes that are being killed are not reported as left running" {
  local i
  for i in {1..10}; do
    run --separate-stderr redlock-cli run -q -k demo --status-fd 8 -- \
      timeout 0.1 sh -c 'sleep 100; :' 8>"$BATS_TEST_TMPDIR/report"
    assert_equal "$status $stderr" "124 "
    assert_equal "$(reported 'j["left"]')" "[]"
  done
}
