#!/usr/bin/env bats
# A hold on a quorum: the clients that meet it restore it where a server lost it, and never where it
# was lifted.
load helper/common
load helper/hold_quorum

setup() { setup_hold_quorum; }

has_hold() { redis "$1" hget 'redlock:owner:{demo}' record | grep -q hold_ms; }
is_restorable() { is_old .holder "$@"; }

@test "rolling restarts with one client that waits: the hold is kept, and ends at its time" {
  redlock-cli hold demo --for 1h
  await_hold
  local ends nr
  ends=$(redis 0 pexpiretime demo)
  start_background next redlock-cli run -k demo -- echo next
  wait_for_queued 1
  for nr in 0 1 2 0 1 2; do
    restart_server "$nr"
    wait_until has_hold_everywhere
  done
  kill -0 "${BACKGROUND_PID[next]}"
  for nr in 0 1 2; do
    assert_in_range "$(redis "$nr" pexpiretime demo)" $((ends - 5000)) $((ends + 5000))
  done
  redlock-cli release demo
  wait_background next
  assert_equal "$status $output" "0 next"
}

@test "a refused attempt restores it, and so does status" {
  redlock-cli hold demo --for 1h
  await_hold
  restart_server 1
  run -75 redlock-cli run -k demo -n -- true
  wait_until has_hold_everywhere
  restart_server 2
  redlock-cli status demo
  wait_until has_hold_everywhere
}

@test "lifted in the middle of rolling restarts it never returns" {
  redlock-cli hold demo --for 1h
  await_hold
  start_background next redlock-cli run -k demo -- \
    sh -c 'echo next; until [ -e "$0" ]; do sleep 0.1; done' "$BATS_TEST_TMPDIR/end"
  wait_for_queued 1
  restart_server 0
  wait_until has_hold_everywhere
  restart_server 1
  redlock-cli release demo
  wait_for_stdout next next
  restart_server 2
  redlock-cli status demo
  run -75 redlock-cli run -k demo -n -- true
  has_none_anywhere
  touch "$BATS_TEST_TMPDIR/end"
  wait_background next
  assert_equal "$status" 0
}

@test "a lift that a quorum did not confirm says so, and can be repeated" {
  redlock-cli hold demo --for 1h
  wait_until has_hold_everywhere
  stop_server 1
  stop_server 2
  run -69 --separate-stderr redlock-cli release demo --server-timeout 1s
  assert_regex "$stderr" 'no quorum answered'
  launch_server 1 && wait_for_server 1
  # Two servers are a quorum; one of them forgot the hold.
  run -0 --separate-stderr redlock-cli release demo --server-timeout 1s
  assert_regex "$stderr" 'demo: lifted'
  run -0 redlock-cli run -k demo -n --server-timeout 1s -- true
}

@test "a server that missed the lift is cleared by the next release" {
  redlock-cli hold demo --for 1h
  wait_until has_hold_everywhere
  pause_server 2
  redlock-cli release demo --server-timeout 1s
  resume_server 2
  redlock-cli release demo
  wait_until has_none_anywhere
}

@test "the length of a hold does not raise the restart guard" {
  unset REDLOCK_RESTART_GUARD
  # The servers started a moment ago.
  run -69 --separate-stderr redlock-cli hold demo --for 1d -n --restart-guard 1h
  assert_regex "$stderr" 'its vote counts in (1h|59m)'
  run -0 redlock-cli hold demo --for 1d -w 60s --restart-guard 1s
}

@test "users with the rights to lock may hold, restore and lift; a user who may look restores nothing" {
  local nr user=team
  for nr in 0 1 2; do
    # The rules of docs/recipes/rights.md.
    redis "$nr" acl setuser team on '>pw' '~demo' '~redlock:*:{demo}' resetchannels \
      '&redlock:wake:*:{demo}' +eval +evalsha +set +get +getrange +del +pexpire +pttl +time +type \
      +hset +hget +hmget +hdel +zadd +zrem +zscore +zcard +zcount +zrank +zrange +zrangebyscore \
      +zremrangebyscore +publish '+pubsub|numsub' +subscribe +role
    redis "$nr" acl setuser monitor on '>pw' '~*' resetchannels +eval +evalsha +get +getrange +pttl \
      +time +type +hget +hmget +zscore +zcard +zcount +zrange +zrangebyscore +scan +role
  done
  export REDISCLI_AUTH=pw
  redlock-cli hold demo --for 1h --user "$user"
  wait_until is_restorable --user "$user"
  redis 1 flushall
  run -0 redlock-cli status demo --user monitor
  run -1 has_hold 1
  run -75 redlock-cli run -k demo -n --user "$user" -- true
  wait_until has_hold 1
  run -0 redlock-cli release demo --user "$user"
  run -0 redlock-cli run -k demo -n --user "$user" -- true
}
