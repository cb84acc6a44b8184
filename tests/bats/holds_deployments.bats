#!/usr/bin/env bats
# A hold in a Cluster, and behind Sentinels.
load helper/common
load helper/deployments

# assert_is_a_hold KEY: nothing runs under it until it is lifted.
assert_is_a_hold() {
  run -75 redlock-cli run -k "$1" -n -- true
  assert_output --partial "on hold until"
  run -0 redlock-cli status "$1"
  assert_line --regexp "^$1: on hold until"
  run -0 redlock-cli release "$1"
  run -0 redlock-cli run -k "$1" -n -- true
}

@test "a hold lies at the master of its slot" {
  start_cluster
  export REDLOCK_SERVER=$CLUSTER_URL REDLOCK_SERVER_TIMEOUT=4s
  local key
  for key in "${CLUSTER_KEY[@]}"; do
    redlock-cli hold "$key" --for 1h
    assert_is_a_hold "$key"
  done
}

@test "a hold moves with the master, if a replica has it" {
  start_tcp_server --repl-diskless-sync-delay 0
  start_replica 0
  start_sentinels 3
  export REDLOCK_SERVER=$SENTINEL_URL REDLOCK_SERVER_TIMEOUT=4s
  redlock-cli hold demo --for 1h --replicas 1
  kill_server 0
  wait_until master_is 1
  assert_is_a_hold demo
}
