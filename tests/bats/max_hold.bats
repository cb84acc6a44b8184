#!/usr/bin/env bats
# --max-hold: no command holds a lock for longer, and the lock is released only when everything that
# ran under it is dead.
load helper/common
load helper/supervision
load helper/while_pid

@test "at its end the whole tree gets TERM, then KILL, and is dead before the lock is free; 124" {
  await_lock
  start_tree ours --max-hold 12s --grace 300ms
  wait_background ours
  assert_equal "$status $output" "124 ready"
  assert_regex "$stderr" \
    "redlock-cli: demo: held for 12s, the limit of --max-hold; stopping the command"
  assert_dead_before_free
  assert_tree_dead
  assert_equal "$(keys_at 0)" ""
  assert_equal \
    "$(reported '(j["result"], j["exit_code"], j["command_signal"], j["released"], j["left"])')" \
    "('timed_out', 124, 15, True, [])"
  assert_in_range "$(reported 'j["held_ms"]')" 12000 100000
}

@test "a command that ignores TERM has the grace, and forking does not save it" {
  local events=$BATS_TEST_TMPDIR/events
  await_lock
  start_under_witness ours -k demo --max-hold 12s --grace 400ms --events-fd 7 -- bash -c '
    trap "" TERM
    echo $$ >"$0"
    echo ready
    while :; do setsid sleep 1000 & sleep 0.1; done' "$BATS_TEST_TMPDIR/pids" 7>"$events"
  wait_background ours
  assert_equal "$status" 124
  assert_dead_before_free
  assert_equal \
    "$(jq -r '[.event, .why, .command_signal, .left] | map(select(. != null) | tostring) |
      join(" ")' "$events" | paste -sd ,)" \
    "acquired,stopping max_hold,ended 9 [],released"
  run -0 redlock-cli run -n -k demo --server-timeout 4s -- true
}

@test "it counts from the grant, not from the start of the wait" {
  hold theirs
  start_background ours redlock-cli run -k demo --max-hold 100s -- echo entered
  wait_for_queued 1
  release_hold theirs
  wait_background ours
  assert_equal "$status $output" "0 entered"
}

@test "a command that ends in time notices nothing, and keeps its exit status" {
  run -5 --separate-stderr redlock-cli run -k demo --max-hold 100s -- sh -c 'exit 5'
  assert_equal "$output$stderr" ""
}

@test "a command that exits with 0 after TERM has not done its work: 124" {
  run -124 redlock-cli run -k demo --max-hold 5s --status-fd 8 -- \
    bash -c 'trap "exit 0" TERM; while :; do sleep 0.1; done' 8>"$BATS_TEST_TMPDIR/report"
  assert_equal "$(reported '(j["result"], j["exit_code"], j["command_exit"])')" \
    "('timed_out', 124, 0)"
}

@test "--stop-signal is sent first" {
  run -124 --separate-stderr redlock-cli run -k demo --max-hold 5s --stop-signal USR1 -- \
    bash -c 'trap "echo USR1; exit 3" USR1; trap "echo TERM" TERM; while :; do sleep 0.1; done'
  assert_output USR1
}

@test "the limit also applies to a suspended command" {
  start_background ours redlock-cli run -k demo --max-hold 5s --grace 300ms \
    -- bash -c 'echo ready; kill -STOP $$; echo went on'
  wait_background ours
  assert_equal "$status $output" "124 ready"
  assert_equal "$(keys_at 0)" ""
}

@test "the limit applies whatever --on-lost says" {
  local on_lost
  for on_lost in term warn; do
    run -124 redlock-cli run -k demo --on-lost "$on_lost" --max-hold 200ms --grace 200ms -- \
      bash -c 'trap "" TERM; while :; do sleep 0.1; done'
    assert_equal "$(keys_at 0)" ""
  done
}

@test "a lease that is lost first: 79" {
  start_tree ours --max-hold 100s -t 6s --grace 300ms
  redis 0 del demo
  wait_background ours
  assert_equal "$status" 79
  assert_equal "$(reported 'j["result"]')" lost
  assert_tree_dead
}

@test "a lease that is lost while the command is being stopped: 124, and the report has both" {
  start_background ours redlock-cli run -k demo -t 15s --max-hold 5500ms --grace 6500ms \
    --status-fd 8 -- \
    bash -c 'trap "echo told" TERM; while :; do sleep 0.1; done' 8>"$BATS_TEST_TMPDIR/report"
  wait_for_stdout ours told
  # Well before the extension that is due at two thirds of the ttl; KILL comes later still.
  redis 0 set demo theirs
  wait_for_stderr ours lost
  wait_background ours
  assert_equal "$status" 124
  assert_equal "$(reported '(j["result"], j["released"], "reason" in j)')" \
    "('timed_out', False, True)"
  assert_equal "$(redis 0 get demo)" theirs
}

@test "--descendants wait: the limit also covers the remaining processes" {
  run -124 redlock-cli run -k demo --max-hold 5s --grace 200ms --descendants wait --status-fd 8 -- \
    bash -c "(trap '' TERM; exec sleep 1000) &" 8>"$BATS_TEST_TMPDIR/report"
  assert_equal "$(reported '(j["result"], j["command_exit"], j["left"], j["released"])')" \
    "('timed_out', 0, [], True)"
}

@test "a nested run is dead before the lock is free" {
  await_lock
  start_under_witness ours -k demo --max-hold 12s --grace 300ms -- bash -c '
    redlock-cli run -k demo -- sh -c "trap \"\" TERM; echo \$\$ >>$0
      while :; do sleep 0.1; done" &
    until [[ -s $0 ]]; do sleep 0.1; done
    echo ready; wait' "$BATS_TEST_TMPDIR/pids"
  wait_background ours
  assert_equal "$status" 124
  assert_dead_before_free
}

@test "--min-hold still applies after it" {
  run -124 redlock-cli run -k demo --max-hold 300ms --grace 100ms --min-hold 300ms -- sleep 1000
  assert_refused 64 "--min-hold: 2s is longer than the --max-hold of 1s" \
    redlock-cli run -k demo --max-hold 1s --min-hold 2s -- true
}

@test "a configuration limits all runs, and the command line overrides it" {
  echo 'max-hold = "300ms"' >"$BATS_TEST_TMPDIR/config.toml"
  run -124 redlock-cli run --config "$BATS_TEST_TMPDIR/config.toml" -k demo \
    --grace 100ms -- sleep 1000
  run -0 redlock-cli run --config "$BATS_TEST_TMPDIR/config.toml" -k demo \
    --max-hold infinity -- sleep 0.6
  REDLOCK_MAX_HOLD=300ms run -124 redlock-cli run -k demo -- sleep 1000
  # Nothing can stop a script that renews by hand, so its lease must not last longer.
  assert_refused 64 "--ttl: 10s is longer than the --max-hold of 300ms" \
    redlock-cli acquire --config "$BATS_TEST_TMPDIR/config.toml" -k demo -t 10s
  run -0 redlock-cli acquire --max-hold 10s -k demo -t 10s
}

@test "it takes a duration above zero" {
  assert_refused 64 "must be at least 1ms" redlock-cli run -k demo --max-hold 0 -- true
  assert_refused 64 "is not a duration" redlock-cli run -k demo --max-hold soon -- true
}

@test "--while-pid: the script and all its descendants are dead before the lock is free" {
  start_script ours --max-hold 11s --grace 3s
  wait_until is_dead "$HOLDER"
  assert_tree_dead
  wait_background ours
  assert_equal "$status" 143
  assert_regex "$stderr" \
    "redlock-cli: demo: held for 11s, the limit of --max-hold; stopping process $SCRIPT and its \
descendants"
  assert_equal "$(locks_at 0)" ""
}

@test "--while-pid: the limit applies whatever --on-lost says" {
  start_script ours --max-hold 11s --grace 300ms --on-lost warn
  wait_until is_dead "$HOLDER"
  assert_tree_dead
  assert_equal "$(locks_at 0)" ""
}
