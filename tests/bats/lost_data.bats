#!/usr/bin/env bats
# Servers that lost the lock: a minority gets it back, a majority ends it.
load helper/common

@test "a server that lost its data while a command runs gets the key back, and the command continues" {
  start_servers 3
  hold holder -S "$SERVERS" -t 9s
  local nr
  # A quorum is enough for the start.
  for nr in 0 1 2; do wait_for_key "$nr" demo; done
  local token fence
  token=$(redis 0 get demo)
  redis 2 flushall
  wait_for_key 2 demo
  assert_equal "$(redis 2 get demo)" "$token"
  assert_in_range "$(redis 2 pttl demo)" 1 9000
  # With the lease's fence: a server that granted a lower one gets it at the first extension.
  owner_is_back() {
    fence=$(redis 0 hget 'redlock:owner:{demo}' fence)
    [[ $(redis 2 hget 'redlock:owner:{demo}' fence) == "$fence" ]]
  }
  wait_until owner_is_back
  assert [ "$(fence_at 2 demo)" -ge "$fence" ]
  refute background_has_ended holder
  release_hold holder
  assert_equal "$status" 0
  assert_unlocked demo 0 1 2
}

@test "a restarted, empty server also gets the key back" {
  start_servers 3
  hold holder -S "$SERVERS" -t 9s
  local nr
  for nr in 0 1 2; do wait_for_key "$nr" demo; done
  restart_server 1
  wait_for_key 1 demo
  assert_equal "$(redis 1 get demo)" "$(redis 0 get demo)"
  release_hold holder
  assert_equal "$status" 0
  assert_unlocked demo 0 1 2
}

@test "extend by hand gives a server the key back, too" {
  start_servers 3
  export REDLOCK_SERVER=$SERVERS
  acquire_at_all
  local round
  # A server that answers much later than the quorum is healed by the next one.
  healed() { has_key 2 demo || { redlock-cli extend -t 5m && has_key 2 demo; }; }
  for ((round = 0; round < 10; ++round)); do
    redis 2 flushall
    run -0 redlock-cli extend -t 5m
    wait_until healed
    assert_equal "$(redis 2 get demo)" "$REDLOCK_TOKEN"
  done
}

@test "a foreign lock in place of a lost one is left alone" {
  start_servers 3
  # On a slow machine it must not expire between the end of the command and the release.
  hold holder -S "$SERVERS" -t 9s
  local nr
  for nr in 0 1 2; do wait_for_key "$nr" demo; done
  redis 2 set demo theirs px 60000
  local round
  for round in 1 2; do wait_for_extend 0; done
  refute background_has_ended holder
  release_hold holder
  assert_equal "$status" 0
  assert_equal "$(redis 2 get demo)" theirs
  assert_unlocked demo 0 1
}

@test "a majority that lost its data ends the command with 79, and nothing is restored" {
  start_servers 3
  start_background holder redlock-cli run -S "$SERVERS" -k demo -t 9s -- sleep 60
  local nr
  for nr in 0 1 2; do wait_for_key "$nr" demo; done
  # Without an answer from the third, no renewal finds a quorum between the two losses.
  pause_server 1
  redis 0 flushall
  redis 2 flushall
  wait_background holder
  assert_equal "$status" 79
  assert_regex "$stderr" "demo: lost: it is gone"
  resume_server 1
  assert_unlocked demo 0 1 2
}

@test "extend by hand does not restore what a majority lost" {
  start_servers 3
  export REDLOCK_SERVER=$SERVERS
  acquire_at_all
  redis 0 flushall
  redis 2 flushall
  assert_refused 79 "it is gone" redlock-cli extend -t 5m
  assert_unlocked demo 0 2
}
