#!/usr/bin/env bats
# sentinel://: the lock is at the master that the sentinels name, and moves with it.
load helper/common
load helper/deployments

# Server 0 is the master, server 1 its replica, servers 2 to 4 are sentinels.
start_deployment() {
  start_tcp_server --repl-diskless-sync-delay 0
  start_replica 0
  start_sentinels 3
  # Even on a busy machine no server may time out.
  export REDLOCK_SERVER=$SENTINEL_URL REDLOCK_SERVER_TIMEOUT=4s
}

@test "a lock is taken at the master and released there" {
  start_deployment
  hold holder -t 1m
  assert_equal "$(redis 0 exists demo)" 1
  run -0 redlock-cli status -k demo
  assert_output --partial "$(hostname)"
  release_hold holder
  assert_equal "$status" 0
  assert_unlocked demo 0
}

@test "dead sentinels are skipped, and the next query starts with the one that answered" {
  start_deployment
  kill_server 2
  pause_server 3
  run -0 redlock-cli run -k demo -n --server-timeout 3s -- true
  kill_server 3
  kill_server 4
  assert_refused 69 "the sentinel 127.0.0.1:${SERVER_PORT[2]}: cannot connect" \
    redlock-cli run -k demo -n -- true
}

@test "a master that does not answer is named" {
  start_deployment
  pause_server 0
  assert_refused 69 "the master redis://127.0.0.1:${SERVER_PORT[0]}: no answer within" \
    redlock-cli run -k demo -n --server-timeout 1s -- true
  resume_server 0
}

@test "a name that is unknown to the sentinels is a wrong configuration, and so is a server that is not a sentinel" {
  start_deployment
  local url=${SENTINEL_URL/mymaster/other}
  assert_refused 78 "it knows no master other" redlock-cli run -S "$url" -k demo -n -- true
  assert_refused 78 "it is not a Sentinel: write redis://" \
    redlock-cli run -S "sentinel://127.0.0.1:${SERVER_PORT[0]}/mymaster" -k demo -n -- true
}

@test "the master fails while a command runs, the replica has the lease: the command continues" {
  start_deployment
  hold holder -t 1m --replicas 1
  # Idle until its next request: the release reaches the new master.
  kill_server 0
  wait_until master_is 1
  assert_equal "$(redis 1 exists demo)" 1
  release_hold holder
  assert_equal "$status" 0
  assert_unlocked demo 1
}

@test "the lease is extended at the new master" {
  start_deployment
  # The first half of it is enough for the fail-over, on a busy machine, too.
  hold holder -t 24s --server-timeout 3s
  wait_for_key 1 demo
  kill_server 0
  wait_until master_is 1
  wait_until has_run_scripts 1 2
  release_hold holder
  assert_equal "$status" 0
  assert_unlocked demo 1
}

@test "the lease is extended at once when the master changes" {
  start_deployment
  # A third of it is far longer than any test waits.
  hold holder -t 10m --server-timeout 3s
  wait_for_key 1 demo
  redis "$SENTINEL" sentinel failover mymaster >/dev/null
  wait_until master_is 1
  wait_for_extend 1
  release_hold holder
  assert_equal "$status" 0
  assert_unlocked demo 1
}

@test "a device stays on hold at the new master, where it is lifted" {
  start_deployment
  redlock-cli hold demo --slots a,b --slot a --for 1h --note broken
  wait_for_key 1 demo
  kill_server 0
  wait_until master_is 1
  run -75 redlock-cli run -k demo --slots a,b --slot a -n -- true
  assert_output --partial "broken"
  run -0 redlock-cli run -k demo --slots a,b -n -- sh -c 'echo "$REDLOCK_SLOT_NAME"'
  assert_output b
  run -0 redlock-cli release demo --slot a
  run -0 redlock-cli run -k demo --slots a -n -- true
}

@test "the replica did not get the lease: the command is stopped in time" {
  start_deployment
  # The sentinels still consider it a good replica.
  redis 1 replicaof no one >/dev/null
  hold holder -t 9s --server-timeout 500ms
  assert_equal "$(redis 1 exists demo)" 0
  kill_server 0
  wait_background holder
  assert_equal "$status" 79
}

@test "with --replicas nothing is granted when the replica is gone" {
  start_deployment
  kill_server 1
  assert_refused 69 "only 0 of the 1 replicas" \
    redlock-cli run -k demo -n --replicas 1 -t 2m -- true
  assert_unlocked demo 0
}

@test "waiters continue at the new master" {
  start_deployment
  hold holder -t 1m --replicas 1
  start_background waiter redlock-cli run -k demo --unavailable-wait 1m -- echo entered
  wait_until has_run_scripts 0 3
  kill_server 0
  wait_until master_is 1
  release_hold holder
  assert_equal "$status" 0
  wait_background waiter
  assert_equal "$status: $output" "0: entered"
}

@test "with --replace the newest run stops the running one, even if the master changes meanwhile" {
  start_deployment
  local -a replace=(redlock-cli run -k demo -t 24s --server-timeout 3s --unavailable-wait 1m --replace)
  start_background old "${replace[@]}" -- sh -c 'echo entered; exec sleep 99'
  wait_for_stdout old entered
  wait_for_key 1 demo
  start_background new "${replace[@]}" -- echo new
  wait_until eval 'redis 0 hget "redlock:owner:{demo}" record | grep -q replaced_by'
  kill_server 0
  wait_until master_is 1
  wait_background old
  assert_equal "$status" 143
  wait_background new
  assert_equal "$status $output" "0 new"
}

@test "the last run moves to the new master, as far as its replica has it" {
  start_deployment
  run -0 redlock-cli run -k demo --once-per 20h -- true
  wait_for_key 1 'redlock:last:{demo}'
  # The sentinels still consider it a good replica.
  redis 1 replicaof no one >/dev/null
  run -0 redlock-cli run -k other --once-per 20h -- true
  assert_equal "$(redis 0 exists 'redlock:last:{other}') $(redis 1 exists 'redlock:last:{other}')" \
    "1 0"
  kill_server 0
  wait_until master_is 1
  run -0 redlock-cli run -k demo --once-per 20h -- echo ran
  refute_line ran
  run -0 redlock-cli run -k other --once-per 20h -- echo ran
  assert_output ran
}

@test "a master that becomes a replica while a command runs is replaced by the new one" {
  start_deployment
  hold holder -t 1m
  wait_for_key 1 demo
  # By the sentinels, who cut the connections of clients; the old master is a replica afterwards,
  # and alive.
  redis "$SENTINEL" sentinel failover mymaster >/dev/null
  wait_until master_is 1
  wait_until is_linked_replica 0
  release_hold holder
  assert_equal "$status" 0
  assert_unlocked demo 1
}

@test "the master and the sentinels have separate logins" {
  start_tcp_server --requirepass of-the-master
  REDISCLI_AUTH=of-the-sentinels start_sentinels 1 'requirepass of-the-sentinels' \
    'sentinel auth-pass mymaster of-the-master'
  export REDLOCK_SERVER="${SENTINEL_URL/:\/\//://:of-the-master@}\
?sentinel-password=of-the-sentinels"
  run -0 redlock-cli run -k demo -n -- true
  REDLOCK_SERVER="${SENTINEL_URL/:\/\//://:of-the-master@}" \
    assert_refused 77 "the sentinel 127.0.0.1:${SERVER_PORT[1]}: it requires a password of its own: \
add ?sentinel-password=" redlock-cli run -k demo -n -- true
  REDLOCK_SERVER="$SENTINEL_URL?sentinel-password=of-the-sentinels" \
    assert_refused 77 "the master redis://127.0.0.1:${SERVER_PORT[0]}: it requires a password" \
    redlock-cli run -k demo -n -- true
}

@test "a sentinel's password on the command line is refused, and shown nowhere" {
  local url='sentinel://h/m?sentinel-password=swordfish'
  assert_refused 64 "a password on the command line" redlock-cli run -S "$url" -k demo -n -- true
  [[ $stderr != *swordfish* ]]
  REDLOCK_SERVER=$url run -0 redlock-cli doctor --settings
  assert_output --partial 'sentinel://...@h:26379/m'
  refute_output --partial swordfish
}

@test "doctor, status, extend and release work through the sentinels" {
  start_deployment
  run -1 redlock-cli doctor
  assert_output --partial "set --replicas 1"
  run -1 redlock-cli doctor --replicas 1 --server-timeout 3s
  assert_output --partial "1 of 1 servers can vote"
  refute_output --partial "set --replicas 1"
  eval "$(redlock-cli acquire -k demo -t 1m --export)"
  run -0 redlock-cli extend -t 2m
  run -0 redlock-cli status
  assert_output --partial demo
  run -0 redlock-cli release
  assert_unlocked demo 0
}

@test "doctor counts the replicas that --replicas requires" {
  start_deployment
  run -1 redlock-cli doctor --replicas 1 --server-timeout 3s --json
  assert_equal \
    "$(json '[f["grade"] for f in j["servers"][0]["findings"] if f["check"] == "replicas"]')" \
    "['good']"
  run -69 redlock-cli doctor --replicas 2 --server-timeout 1s
  assert_output --partial "1 of its replicas are in sync; --replicas needs 2"
}

@test "masters of sentinels and plain servers are a quorum together" {
  start_deployment
  start_servers 2
  run -0 redlock-cli run -S "$SENTINEL_URL,${SERVER_URL[5]},${SERVER_URL[6]}" -k demo -n \
    -- redlock-cli status -k demo -S "$SENTINEL_URL,${SERVER_URL[5]},${SERVER_URL[6]}"
  assert_output --partial "held"
  assert_unlocked demo 0 5 6
  # The same server under two names has only one vote.
  assert_refused 78 "two of the servers are the same" \
    redlock-cli run -S "$SENTINEL_URL,${SERVER_URL[0]}" -k demo -n -- true
}
