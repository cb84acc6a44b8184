#!/usr/bin/env bats
# --replicas: a vote counts only when replicas have it; and a server that refuses writes without
# them.
load helper/common

# Server 0 and its replica, server 1.
start_pair() {
  start_tcp_server --repl-diskless-sync-delay 0
  start_server --replicaof 127.0.0.1 "${SERVER_PORT[0]}"
  wait_until replica_is_in_step 0
  export REDLOCK_SERVER=${SERVER_URL[0]}
}

replica_is_in_step() {
  [[ $(redis "$1" wait 1 100) == 1 ]] &&
    redis "$1" info replication | grep -q 'slave0:.*state=online'
}

@test "a lock is granted when the replica has it" {
  start_pair
  hold holder --replicas 1 --server-timeout 5s -t 1m
  # At the latest when the command runs.
  assert_equal "$(redis 1 exists demo)" 1
  release_hold holder
  assert_equal "$status" 0
  assert_unlocked demo 0
}

@test "without the replica nothing is granted, the message says why, and nothing is left behind" {
  start_pair
  kill_server 1
  assert_refused 69 "only 0 of the 1 replicas that --replicas needs have confirmed it in time" \
    redlock-cli run -k demo -n --replicas 1 --server-timeout 8s -t 2m \
    -- touch "$BATS_TEST_TMPDIR/ran"
  assert [ ! -e "$BATS_TEST_TMPDIR/ran" ]
  assert_unlocked demo 0
  run -0 redlock-cli run -k demo -n -- true
}

@test "nor is it granted with fewer replicas than required" {
  start_pair
  assert_refused 69 "only 1 of the 2 replicas" \
    redlock-cli run -k demo -n --replicas 2 --server-timeout 8s -t 2m -- true
  assert_unlocked demo 0
}

@test "a lease that no replica confirms is not extended: the command is stopped" {
  start_pair
  # Several answers of the server are needed: a server that is slow is not what this is about.
  hold holder --replicas 1 -t 12s --server-timeout 1500ms
  pause_server 1
  wait_background holder
  assert_equal "$status" 79
}

@test "extend needs the replica, too" {
  start_pair
  eval "$(redlock-cli acquire -k demo -t 1m --export)"
  run -0 redlock-cli extend -t 2m --replicas 1 --server-timeout 5s
  pause_server 1
  assert_refused 69 "only 0 of the 1 replicas" \
    redlock-cli extend -t 3m --replicas 1 --server-timeout 8s
}

@test "a server without replicas among three has no vote, and keeps nothing when the command is done" {
  local nr
  for nr in 0 2; do
    start_tcp_server --repl-diskless-sync-delay 0
    start_server --replicaof 127.0.0.1 "${SERVER_PORT[nr]}"
    wait_until replica_is_in_step "$nr"
  done
  start_server
  # Its WAIT lasts for most of the server's time, far beyond the end of the command; the release
  # lies behind it.
  run -0 redlock-cli run -S "${SERVER_URL[0]},${SERVER_URL[2]},${SERVER_URL[4]}" -k demo \
    --replicas 1 --server-timeout 2s -- true
  assert_unlocked demo 0 2 4
}

# start_job: a job with --once-per that ends well when the file `end` appears.
start_job() {
  start_background job redlock-cli run -k demo --replicas 1 --server-timeout 2s -t 2m \
    --once-per 20h -- sh -c 'echo ready; until [ -e "$0" ]; do sleep 0.05; done' \
    "$BATS_TEST_TMPDIR/end"
  wait_for_stdout job ready
}

@test "a success is recorded when the replica has it" {
  start_pair
  start_job
  touch "$BATS_TEST_TMPDIR/end"
  wait_background job
  assert_equal "$status $stderr" "0 "
  assert_equal "$(redis 1 exists 'redlock:last:{demo}')" 1
}

@test "a success that no replica confirms is reported as not recorded, and the lock is released" {
  start_pair
  start_job
  pause_server 1
  touch "$BATS_TEST_TMPDIR/end"
  wait_background job
  assert_equal "$status" 0
  assert_equal "$stderr" "redlock-cli: demo: the command succeeded, but no quorum of servers has \
recorded it yet: it may run again within --once-per 20h"
  assert_unlocked demo 0
  # It was released once: a repeated script would have found nothing, and reported that.
  assert_equal "$(redlock-cli status demo --json --runs | jq -c '[.locks[0].runs[].result]')" \
    '["released"]'
}

@test "the missing right is named" {
  start_pair
  redis 0 acl setuser default -wait >/dev/null
  assert_refused 77 "'wait' command" redlock-cli run -k demo -n --replicas 1 -- true
  assert_unlocked demo 0
}

@test "an invalid number is refused" {
  local text
  for text in -1 x 1.5 1001 ''; do
    assert_refused 64 "--replicas" \
      redlock-cli run -S redis://127.0.0.1:1 -k demo "--replicas=$text" -- true
  done
}

# Another holder's lock stays held there: writes are refused, reads are not.
@test "a server that can be read but not written is a missing quorum: the attempts are limited in rate and time" {
  start_servers 1
  redlock-cli acquire -S "$SERVERS" -k demo --ttl 5m \
    --token-file "$BATS_TEST_TMPDIR/token" >/dev/null
  redis 0 config set min-replicas-to-write 1
  run -69 --separate-stderr redlock-cli run -S "$SERVERS" -k demo --unavailable-wait 3s \
    -- touch "$BATS_TEST_TMPDIR/ran"
  assert_regex "$stderr" "too few replicas"
  # A read and a refused attempt after each pause, which doubles from 20 ms up to half a second.
  assert_in_range "$(scripts_run 0)" 6 60

  start_background waiter redlock-cli run -S "$SERVERS" -k demo --unavailable-wait 5m -- true
  wait_until has_run_scripts 0 $(($(scripts_run 0) + 6))
  redis 0 config set min-replicas-to-write 0
  wait_for_queued 1
  redlock-cli release -S "$SERVERS" -k demo --token-file "$BATS_TEST_TMPDIR/token"
  wait_background waiter
  assert_equal "$status" 0
}
