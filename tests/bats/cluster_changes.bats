#!/usr/bin/env bats
# cluster://: slots that move and masters that fail while a lock is held.
load helper/common
load helper/deployments

setup() {
  common_setup
  start_cluster
  export REDLOCK_SERVER=$CLUSTER_URL
}

# asking I CMD…: asks server I about a slot that it is importing.
asking() {
  local i=$1
  shift
  printf 'asking\n%s\n' "$*" | redis "$i" | tail -n 1
}

replica_has() { [[ $(printf 'readonly\nexists %s\n' "$1" | redis 3 | tail -n 1) == 1 ]]; }

@test "a slot that moves takes a running lease with it" {
  hold holder -t 12s
  begin_migration "${CLUSTER_SLOT[0]}" 0 1
  move_keys 0 1 demo 'redlock:fence:{demo}' 'redlock:owner:{demo}'
  end_migration "${CLUSTER_SLOT[0]}" 1
  wait_until has_run_scripts 1 1
  release_hold holder
  assert_equal "$status" 0
  assert_unlocked demo 1
}

@test "a slot that moves takes the last run with it" {
  run -0 redlock-cli run -k demo --once-per 20h -- true
  begin_migration "${CLUSTER_SLOT[0]}" 0 1
  move_keys 0 1 'redlock:fence:{demo}' 'redlock:last:{demo}'
  end_migration "${CLUSTER_SLOT[0]}" 1
  run -0 redlock-cli run -k demo --once-per 20h -- echo ran
  refute_line ran
}

@test "while a slot moves, a lease is extended and released wherever its key is, and none is granted" {
  eval "$(redlock-cli acquire -k demo -t 1m --export)"
  begin_migration "${CLUSTER_SLOT[0]}" 0 1
  # Some keys are absent: the server refuses every command that names them.
  run -0 redlock-cli extend -t 2m
  assert_in_range "$(redis 0 pttl demo)" 60001 120000
  move_keys 0 1 'redlock:fence:{demo}' 'redlock:owner:{demo}'
  run -0 redlock-cli extend -t 3m
  assert_in_range "$(redis 0 pttl demo)" 120001 180000
  # There is nothing left where it was asked first.
  move_keys 0 1 demo
  run -0 redlock-cli extend -t 4m
  assert_in_range "$(asking 1 pttl demo)" 180001 240000
  run -0 redlock-cli release
  assert_equal "$(asking 1 exists demo)" 0
  assert_refused 69 "its cluster is moving this key" redlock-cli run -k demo -n -- true
  assert_equal "$(asking 1 exists demo)" 0
  end_migration "${CLUSTER_SLOT[0]}" 1
  run -0 redlock-cli run -k demo -n -- true
}

@test "a move that stalls before any key has moved ends no wait and no lease, be it shared, in a slot or nested" {
  local end mode holder waiter first_end inner=$BATS_TEST_TMPDIR/inner
  printf '%s\n' 'echo entered' 'until [ -e "$1" ]; do sleep 0.1; done' >"$inner"
  for mode in '' -s '--slots 2'; do
    end=$BATS_TEST_TMPDIR/end${mode// /} holder=holder${mode//[ -]/} waiter=waiter${mode//[ -]/}
    # shellcheck disable=SC2086
    start_background "$holder" redlock-cli run -k demo $mode -t 3s -- \
      redlock-cli run -k demo $mode -t 3s -- sh "$inner" "$end"
    wait_for_stdout "$holder" entered
    start_background "$waiter" redlock-cli run -k demo -t 3s --unavailable-wait 1s -- echo got it
    wait_for_queued 1
    first_end=$(expires_at 0)
    begin_migration "${CLUSTER_SLOT[0]}" 0 1
    # It was renewed: it lives longer than it would have otherwise.
    wait_until expires_after 0 "$((first_end + 3500))"
    run -75 redlock-cli status demo --exit-code
    touch "$end"
    wait_background "$holder"
    assert_equal "$status: $stderr" "0: "
    for i in 0 1; do redis "$i" cluster setslot "${CLUSTER_SLOT[0]}" stable >/dev/null; done
    wait_background "$waiter"
    assert_equal "$status: $output" "0: got it"
  done
}

@test "while a slot moves, stop sees that the holder released, and no lock is broken whose holder would not learn of it" {
  local where i
  for where in none records; do
    hold "$where" -t 6s
    begin_migration "${CLUSTER_SLOT[0]}" 0 1
    [[ $where == none ]] || move_keys 0 1 demo 'redlock:fence:{demo}' 'redlock:owner:{demo}'
    # It was never broken, so there is no key for tombstones.
    run -69 --separate-stderr redlock-cli release demo --force
    assert_regex "$stderr" "its cluster is moving this key"
    run -0 --separate-stderr redlock-cli stop demo -w 30s
    assert_regex "$stderr" "demo: stopped; released after"
    wait_background "$where"
    assert_equal "$status" 143
    for i in 0 1; do redis "$i" flushall >/dev/null; done
    end_migration "${CLUSTER_SLOT[0]}" 0
  done
}

@test "a run survives the whole move of a slot" {
  hold holder -t 12s
  begin_migration "${CLUSTER_SLOT[0]}" 0 1
  wait_until has_run_scripts 0 2
  move_keys 0 1 demo
  wait_until has_run_scripts 1 1
  # The helper keys come later.
  release_hold holder
  assert_equal "$status" 0
  assert_equal "$(asking 1 exists demo)" 0
}

@test "a lease that is lost while its slot moves is lost" {
  hold holder -t 12s
  begin_migration "${CLUSTER_SLOT[0]}" 0 1
  redis 0 del demo
  wait_background holder
  assert_equal "$status" 79
}

@test "the master fails while a command runs, and its replica has the lease: the command continues, and so do waiters" {
  set_node_timeout 1000
  start_cluster_replica 0
  hold holder -t 30s --server-timeout 3s
  wait_until replica_has demo
  start_background waiter redlock-cli run -k demo --unavailable-wait 1m -- echo entered
  wait_until has_run_scripts 0 2
  kill_server 0
  wait_until is_master 3
  wait_until cluster_is ok 3
  wait_until cluster_is ok 1
  wait_for_extend 3
  release_hold holder
  assert_equal "$status" 0
  wait_background waiter
  assert_equal "$status: $output" "0: entered"
  assert_unlocked demo 3
}
