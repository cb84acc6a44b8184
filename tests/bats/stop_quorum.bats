#!/usr/bin/env bats
# stop with three servers, some of which may be away.
load helper/common
load helper/supervision

setup() {
  common_setup
  start_servers 3
  export REDLOCK_SERVER=$SERVERS
  WITNESS=$BATS_TEST_TMPDIR/witness
  touch "$WITNESS"
}

request_at() {
  redis "$1" hget 'redlock:owner:{demo}' record | jq -e .stop_request.reason
}

@test "the whole tree is dead before a quorum is free" {
  await_lock 0 1 2
  start_tree ours -t 12s --grace 300ms
  run -0 redlock-cli stop demo -w 60s
  wait_background ours
  assert_equal "$status" 143
  assert_dead_before_free
  assert_tree_dead
}

@test "a request on one server is enough, and a server that lost the lease gets it with the lease" {
  hold ours -t 12s
  pause_server 1
  pause_server 2
  run -69 redlock-cli stop demo -w 0
  assert_regex "$output" "no quorum"
  resume_server 1
  resume_server 2
  wait_until has_key 0 demo
  start_background stop redlock-cli stop demo -w 60s
  wait_background ours
  assert_equal "$status" 143
  wait_background stop
  assert_equal "$status" 0
}

@test "an unreachable server does not prevent a stop" {
  hold ours -t 12s
  pause_server 2
  run -0 redlock-cli stop demo -w 60s
  wait_background ours
  assert_equal "$status" 143
  resume_server 2
}

@test "servers that fall silent after the request: 69, and the request stands" {
  hold ours -t 30s
  start_background stop redlock-cli stop demo -w 6s --reason stands
  wait_until request_at 1
  pause_server 0
  pause_server 2
  wait_background stop
  assert_equal "$status" 69
  assert_regex "$stderr" "no quorum answered; the request stands"
  resume_server 0
  resume_server 2
  wait_background ours
  assert_equal "$status" 143
}

@test "a lease on less than a quorum is not held, and there is nothing to stop" {
  redis 0 set demo left px 60000
  run -0 redlock-cli stop demo
  assert_regex "$output" "nothing to stop"
}
