#!/usr/bin/env bats
# The front process is killed or stopped: the holder process keeps the lock and the command on its
# own.
load helper/common
load helper/supervision

@test "front killed: the tree is dead when the lock is free, long before the lease could expire" {
  start_tree ours -t 60s
  watch_lock
  kill -KILL "$FRONT"
  assert_dead_before_free
  assert [ "$LEFT" -gt 30000 ]
  assert_tree_dead
  wait_until is_dead "$HOLDER"
  assert_equal "$(keys_at 0)" ""
  wait_background ours
  assert_equal "$status" 137
  refute_regex "$stderr" "passed on"
}

@test "front killed while waiting: the holder ends, too, and takes no lock" {
  redis 0 set demo x
  start_background ours redlock-cli run -k demo -- touch "$BATS_TEST_TMPDIR/entered"
  wait_for_stderr ours "waiting for demo"
  HOLDER=$(holder_of "${BACKGROUND_PID[ours]}")
  kill -KILL "${BACKGROUND_PID[ours]}"
  wait_until is_dead "$HOLDER"
  assert [ ! -e "$BATS_TEST_TMPDIR/entered" ]
  assert_equal "$(redis 0 keys '*')" demo
  wait_background ours
}

@test "front stopped: the lease is renewed, the command continues, and its status is returned when front continues" {
  start_tree ours -t 6s --grace 300ms --server-timeout 1s
  watch_lock
  kill -STOP "$FRONT"
  wait_until is_stopped "$FRONT"
  # One ttl later than it would expire without renewal.
  wait_until expires_after 0 "$(($(expires_at 0) + 6000))"
  local pid
  for pid in "${TREE[@]}"; do assert is_alive "$pid"; done
  kill -CONT "$FRONT"
  touch "$BATS_TEST_TMPDIR/end"
  # Its descendants stay, as the plan says; not past the test.
  wait_background ours
  assert_equal "$status" 23
  assert_equal "$(locks_at 0)" ""
}

@test "front stopped when the command ends: the lock is still released" {
  start_under_witness ours -k demo \
    -- sh -c 'echo $$ >"$0/pids"; echo ready; until [ -e "$0/end" ]; do sleep 0.1; done; exit 5' \
    "$BATS_TEST_TMPDIR"
  watch_lock
  kill -STOP "$FRONT"
  wait_until is_stopped "$FRONT"
  touch "$BATS_TEST_TMPDIR/end"
  assert_dead_before_free
  kill -CONT "$FRONT"
  wait_background ours
  assert_equal "$status" 5
}

@test "front stopped, and then the network gone: the tree is dead before the lease could end" {
  start_tree ours -t 5s --grace 300ms
  kill -STOP "$FRONT"
  wait_until is_stopped "$FRONT"
  stop_servers_for_good 5000 0
  assert_dead_before_expiry
  assert_tree_dead
  kill -CONT "$FRONT"
  wait_background ours
  assert_equal "$status" 79
}

@test "front stopped, and then killed: the tree is dead when the lock is free" {
  start_tree ours -t 60s
  kill -STOP "$FRONT"
  wait_until is_stopped "$FRONT"
  watch_lock
  kill -KILL "$FRONT"
  assert_dead_before_free
  assert [ "$LEFT" -gt 30000 ]
  assert_tree_dead
}
