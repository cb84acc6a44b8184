#!/usr/bin/env bats
# The holder process is killed or stopped: the front process ends the command on its own.
load helper/common
load helper/supervision

@test "holder killed: the tree is dead when run exits with 71" {
  start_tree ours -t 12s
  watch_lock
  kill -KILL "$HOLDER"
  wait_background ours
  assert_equal "$status" 71
  assert_tree_dead
  assert_regex "$stderr" "the holder process was killed"
  run report
  assert_output --partial '"exit_code":71'
  assert_dead_before_free
}

@test "holder killed while waiting: 71, and no lock" {
  redis 0 set demo x
  start_background ours redlock-cli run -k demo -- touch "$BATS_TEST_TMPDIR/entered"
  wait_for_stderr ours "waiting for demo"
  kill -KILL "$(holder_of "${BACKGROUND_PID[ours]}")"
  wait_background ours
  assert_equal "$status" 71
  assert_regex "$stderr" "the holder process was killed; the command had not started"
  assert [ ! -e "$BATS_TEST_TMPDIR/entered" ]
  assert_equal "$(redis 0 get demo)" x
  # The next notification drops its queue entry, which also expires by itself.
  assert [ "$(redis 0 pttl 'redlock:queue:{demo}')" -le 35000 ]
  redis 0 del demo
  run -0 redlock-cli run -n -k demo --server-timeout 4s -- true
  assert_equal "$(keys_at 0)" ""
}

@test "holder killed: --json still has a line about it" {
  redis 0 set demo x
  start_background ours redlock-cli run --json -k demo -- true
  wait_for_key 0 'redlock:queue:{demo}'
  kill -KILL "$(holder_of "${BACKGROUND_PID[ours]}")"
  wait_background ours
  assert_equal "$status" 71
  assert_regex "$stderr" '"result":"os_error","exit_code":71'
}

@test "holder killed while stderr is full: the reader of --status-fd is told before" {
  local pipe
  mkfifo "$BATS_TEST_TMPDIR/pipe"
  exec {pipe}<>"$BATS_TEST_TMPDIR/pipe"
  run timeout 1 bash -c "cat /dev/zero >&$pipe"
  assert_equal "$status" 124
  start_background ours bash -c "redlock-cli run -k demo --status-fd 8 -- \
    sh -c 'echo ready; exec sleep 1000' 8>\"\$0\" 2>&$pipe & echo \$! >\"\$0.pid\"; wait \$!" \
    "$BATS_TEST_TMPDIR/report"
  wait_for_stdout ours ready
  kill -KILL "$(holder_of "$(<"$BATS_TEST_TMPDIR/report.pid")")"
  wait_until grep -q '"exit_code":71' "$BATS_TEST_TMPDIR/report"
  cat <&"$pipe" >/dev/null &
  wait_background ours
  kill "$!"
  assert_equal "$status" 71
}

@test "holder stopped: the tree is dead before the lease can end, and the status is 79" {
  start_tree ours -t 5s --grace 300ms
  watch_lock
  kill -STOP "$HOLDER"
  assert_dead_before_free
  wait_background ours
  assert_equal "$status" 79
  assert_tree_dead
  assert is_dead "$HOLDER"
  assert_regex "$stderr" \
    "the holder process was stopped \(SIGSTOP\); \
the command was stopped before the lock could expire"
  run report
  assert_output --partial '"exit_code":79'
}

@test "holder stopped during the grace, beside earlier children: also 79" {
  start_background ours bash -c '
    sleep 1000 & echo $! >"$0"
    exec redlock-cli run -k demo -t 12s --grace 4s --server-timeout 1s -- bash -c "
      trap \"\" TERM; echo ready; while :; do sleep 0.1; done"' "$BATS_TEST_TMPDIR/helper"
  wait_for_stdout ours ready
  local holder helper
  holder=$(holder_of "${BACKGROUND_PID[ours]}")
  helper=$(<"$BATS_TEST_TMPDIR/helper")
  redis 0 del demo
  wait_for_stderr ours "lost"
  kill -STOP "$holder"
  wait_background ours
  assert_equal "$status" 79
  assert_regex "$stderr" "the holder process was stopped \(SIGSTOP\)"
  assert is_alive "$helper"
  kill -KILL "$helper"
}

@test "holder stopped for less than that: nothing happens" {
  start_tree ours -t 12s --grace 100ms
  kill -STOP "$HOLDER"
  # The extension was due after a third of the ttl.
  wait_until expires_within 0 7500
  local before
  before=$(expires_at 0)
  kill -CONT "$HOLDER"
  wait_until expires_after 0 "$before"
  local pid
  for pid in "${TREE[@]}"; do assert is_alive "$pid"; done
  touch "$BATS_TEST_TMPDIR/end"
  wait_background ours
  assert_equal "$status" 23
}

# bats test_tags=unsanitized
@test "holder held up before the command starts, for longer than the lease: 79, and nothing counts as unsafe" {
  # Its first fork, of the command, takes longer than the lease.
  run -79 --separate-stderr strace -f -o /dev/null -e trace=clone,clone3,fork,vfork \
    -e inject=clone,clone3,fork,vfork:delay_exit=2500000:when=1 \
    "$REDLOCK_CLI" run -k demo -t 1500ms -- touch "$BATS_TEST_TMPDIR/entered"
  refute [ -e "$BATS_TEST_TMPDIR/entered" ]
  assert_regex "$stderr" "(the command had|it was) not started"
}

@test "holder stopped while waiting: ^C still ends it" {
  redis 0 set demo x
  start_background ours redlock-cli run -k demo -- touch "$BATS_TEST_TMPDIR/entered"
  wait_for_stderr ours "waiting for demo"
  local holder
  holder=$(holder_of "${BACKGROUND_PID[ours]}")
  kill -STOP "$holder"
  wait_until is_stopped "$holder"
  kill -INT "${BACKGROUND_PID[ours]}"
  wait_background ours
  assert_equal "$status" 130
  assert is_dead "$holder"
  assert_equal "$(redis 0 keys '*')" demo
}

@test "pkill by our name misses the holder process, and signals that it could catch change nothing" {
  start_tree ours -t 60s
  assert_equal "$(<"/proc/$HOLDER/comm")" lock-holder
  refute grep -qa redlock "/proc/$HOLDER/cmdline"
  local signal
  for signal in HUP INT QUIT TERM USR1 USR2 PIPE ALRM TSTP TTIN TTOU; do
    kill -s "$signal" "$HOLDER"
  done
  touch "$BATS_TEST_TMPDIR/end"
  wait_background ours
  assert_equal "$status" 23
}

@test "both guards killed at the same instant: the command dies, and only its descendants are left" {
  start_tree ours -t 8s --grace 300ms
  # The kernel itself sends HUP to a group that has a stopped process when the command, its last tie
  # to its session, dies.
  kill -CONT "${TREE[@]}"
  # Stopped first, so that neither can react.
  kill -STOP "$FRONT" "$HOLDER"
  wait_until is_stopped "$FRONT"
  wait_until is_stopped "$HOLDER"
  kill -KILL "$HOLDER" "$FRONT"
  wait_until is_dead "$COMMAND"
  wait_background ours
  assert_equal "$status" 137
  wait_for_no_key 0 demo
  local pid
  assert_equal "${#TREE[@]}" 7
  for pid in "${TREE[@]:1}"; do assert is_alive "$pid"; done
}

@test "earlier children and their orphans outlive a killed holder" {
  # The shell becomes redlock-cli, with a helper as its child; the helper ends, and what it started
  # is orphaned.
  start_background ours bash -c '
    bash -c "sleep 1000 & echo \$! >\"\$0\"; exec sleep 1000" "$0/orphan" & echo $! >"$0/helper"
    until [[ -s $0/orphan ]]; do sleep 0.1; done
    exec redlock-cli run -k demo -- bash -c "
      setsid sleep 1000 & echo \$! >\"\$0\"; echo ready; exec sleep 1000" "$0/ours"' \
    "$BATS_TEST_TMPDIR"
  wait_for_stdout ours ready
  local helper orphan daemon
  helper=$(<"$BATS_TEST_TMPDIR/helper")
  orphan=$(<"$BATS_TEST_TMPDIR/orphan")
  daemon=$(<"$BATS_TEST_TMPDIR/ours")
  kill -KILL "$helper"
  wait_until grep -qx "PPid:[[:space:]]*${BACKGROUND_PID[ours]}" "/proc/$orphan/status"

  kill -KILL "$(holder_of "${BACKGROUND_PID[ours]}")"
  wait_background ours
  assert_equal "$status" 71
  assert is_dead "$daemon"
  assert is_alive "$orphan"
  kill -KILL "$orphan"
}
