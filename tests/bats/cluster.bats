#!/usr/bin/env bats
# cluster://: the lock is at the master that has the key's slot.
load helper/common
load helper/deployments

setup() {
  common_setup
  start_cluster
  # Even on a busy machine no server may time out.
  export REDLOCK_SERVER=$CLUSTER_URL REDLOCK_SERVER_TIMEOUT=4s
}

@test "keys are locked at their masters, whichever server is asked first, and nothing is left behind" {
  local nr first key
  for nr in 0 1 2; do
    key=${CLUSTER_KEY[nr]}
    for first in 0 1 2; do
      run -0 redlock-cli run -S "cluster://127.0.0.1:${SERVER_PORT[first]}" -k "$key" -n -- \
        redis-cli -s "${SERVER_SOCKET[nr]}" exists "$key" "redlock:owner:{$key}"
      assert_output 2
    done
    assert_unlocked "$key" "$nr"
  done
  # With hash tags, and with braces that are none.
  for key in 'a{tag}b' '{tag}' 'a{}b' 'a}b' 'a{b' '{' '}{' $'\xff}\x80'; do
    run -64 --separate-stderr redlock-cli run -k "$key" -n -- \
      env -u REDLOCK_HELD redlock-cli run -k "$key" -n -- touch "$BATS_TEST_TMPDIR/ran"
    run -0 redlock-cli run -k "$key" -n -- true
  done
  assert [ ! -e "$BATS_TEST_TMPDIR/ran" ]
}

@test "several keys at different masters are acquired together, shown, extended and released" {
  local nr
  eval "$(redlock-cli acquire -k "${CLUSTER_KEY[0]}" -k "${CLUSTER_KEY[1]}" \
    -k "${CLUSTER_KEY[2]}" -t 1m --export)"
  run -0 redlock-cli status
  for nr in 0 1 2; do assert_output --partial "${CLUSTER_KEY[nr]}"; done
  run -0 redlock-cli extend -t 2m
  for nr in 0 1 2; do assert_in_range "$(redis "$nr" pttl "${CLUSTER_KEY[nr]}")" 60001 120000; done
  run -0 redlock-cli release
  for nr in 0 1 2; do assert_unlocked "${CLUSTER_KEY[nr]}" "$nr"; done
}

@test "a waiter gets the lock once it is free, and a lock can be broken" {
  hold holder -t 12s --server-timeout 1s
  start_background waiter redlock-cli run -k demo -- echo entered
  wait_until has_run_scripts 0 2
  run -0 redlock-cli release -k demo --force
  wait_background waiter
  assert_equal "$status: $output" "0: entered"
  wait_background holder
  assert_equal "$status" 79
}

@test "the newest waiter wins, and the last run is remembered, at each key's own master" {
  local nr key
  for nr in 0 1 2; do
    key=${CLUSTER_KEY[nr]}
    start_background "holder$nr" redlock-cli run -k "$key" \
      -- sh -c 'until [ -e "$0" ]; do sleep 0.1; done' "$BATS_TEST_TMPDIR/end"
    wait_for_key "$nr" "$key"
    start_background "old$nr" redlock-cli run -k "$key" --supersede -- echo entered
    wait_until waits_at "$nr" "$key"
    start_background "new$nr" redlock-cli run -k "$key" --supersede -- echo entered
    wait_background "old$nr"
    assert_equal "$status $output" "75 "
  done
  touch "$BATS_TEST_TMPDIR/end"
  for nr in 0 1 2; do
    key=${CLUSTER_KEY[nr]}
    wait_background "new$nr"
    assert_equal "$status $output" "0 entered"
    assert_equal "$(redis "$nr" exists "redlock:last:{$key}")" 1
    run -0 redlock-cli run -k "$key" --once-per 20h -- echo ran
    refute_line ran
    assert_line --partial "$key: already ran"
  done
  # In all three together.
  run -0 redlock-cli run -k "${CLUSTER_KEY[0]}" -k "${CLUSTER_KEY[1]}" -k "${CLUSTER_KEY[2]}" \
    --once-per 20h -- echo ran
  refute_line ran
  run -0 redlock-cli status "${CLUSTER_KEY[@]}" --max-age 1h
}

@test "with --replace the newest run stops the running one, at the master of their slot" {
  local -a replace=(redlock-cli run -k "${CLUSTER_KEY[1]}" -t 15s --server-timeout 2s --replace)
  start_background old "${replace[@]}" -- sh -c 'echo entered; exec sleep 99'
  wait_for_stdout old entered
  run -0 "${replace[@]}" -- echo new
  assert_output --partial new
  wait_background old
  assert_equal "$status" 143
}

waits_at() { [[ $(redis "$1" zcard "redlock:queue:{$2}") == 1 ]]; }

@test "a device is on hold at its pool's own master" {
  local key
  for key in "${CLUSTER_KEY[@]}"; do
    redlock-cli hold "$key" --slots a,b --slot a --for 1h --note broken
    run -75 redlock-cli run -k "$key" --slots a,b --slot a -n -- true
    assert_output --partial "broken"
    run -0 redlock-cli run -k "$key" --slots a,b -n -- sh -c 'echo "$REDLOCK_SLOT_NAME"'
    assert_output b
    run -0 redlock-cli release "$key" --slot a
    run -0 redlock-cli run -k "$key" --slots a -n -- true
  done
}

@test "doctor examines all masters, and probes a lock" {
  run -1 redlock-cli doctor
  assert_output --partial "1 of 1 servers can vote"
  # There is no replica, so none can take the place of a master.
  refute_output --partial "set --replicas 1"
  run -69 redlock-cli doctor --replicas 1
  assert_output --partial "0 of its replicas are in sync; --replicas needs 1"
  redis 1 config set maxmemory-policy allkeys-lru >/dev/null
  run -1 redlock-cli doctor --json
  assert_equal \
    "$(json '[f["grade"] for f in j["servers"][0]["findings"] if f["check"] == "eviction"]')" \
    "['warning']"
}

@test "status lists the locks of the masters that live, and names the one that does not" {
  local nr
  for nr in 0 1 2; do
    redis "$nr" config set cluster-require-full-coverage no >/dev/null
    run -0 redlock-cli acquire -k "${CLUSTER_KEY[nr]}" -t 1m
  done
  kill_server 2
  run -69 redlock-cli status
  assert_line --regexp "^${CLUSTER_KEY[0]} "
  assert_line --regexp "^${CLUSTER_KEY[1]} "
  assert_line --regexp "^incomplete: .*127.0.0.1:${SERVER_PORT[2]}: cannot connect"
}

@test "dead servers are skipped while the key's own master lives; without it the cluster is down" {
  redis 0 config set cluster-require-full-coverage no >/dev/null
  kill_server 2
  # Whichever of the living masters the probe's lock is on.
  local _
  for _ in {1..4}; do
    run -69 redlock-cli doctor
    assert_output --partial "127.0.0.1:${SERVER_PORT[2]}: cannot connect: Connection refused"
  done
  pause_server 1
  run -0 redlock-cli run -S "cluster://127.0.0.1:${SERVER_PORT[2]},127.0.0.1:${SERVER_PORT[1]},\
127.0.0.1:${SERVER_PORT[0]}" -k demo -n -- true
  assert_refused 69 "127.0.0.1:${SERVER_PORT[2]}: cannot connect" \
    redlock-cli run -k "${CLUSTER_KEY[2]}" -n -- true
  redis 0 config set cluster-node-timeout 1000 >/dev/null
  redis 0 config set cluster-require-full-coverage yes >/dev/null
  wait_until cluster_is fail 0
  assert_refused 69 "its cluster is down" \
    redlock-cli run -S "cluster://127.0.0.1:${SERVER_PORT[0]}" -k demo -n -- true
}

@test "a server that is not a cluster, and redis:// to a cluster, name the right URL" {
  start_tcp_server
  assert_refused 78 "it is part of no cluster: write redis://" \
    redlock-cli run -S "cluster://127.0.0.1:${SERVER_PORT[3]}" -k demo -n -- true
  assert_refused 78 "write cluster://" \
    redlock-cli run -S "redis://127.0.0.1:${SERVER_PORT[1]}" -k demo -n -- true
  assert_refused 78 "database 0 only" redlock-cli run -S "$CLUSTER_URL/1" -k demo -n -- true
}

@test "status of all locks uses few connections to each master" {
  local nr lease=0 before
  local -a befores=()
  for nr in 0 1 2; do
    redlock-cli acquire -q -k "${CLUSTER_KEY[nr]}" --ttl 1h \
      --token-file "$BATS_TEST_TMPDIR/lease$((lease++))"
  done
  for nr in 0 1 2; do befores+=("$(connections_at "$nr")"); done
  run -0 redlock-cli status
  assert_output --partial "3 locks: 3 held"
  for nr in 0 1 2; do
    before=${befores[nr]}
    # For the locks, and for the view of the cluster; one more is that of this question.
    assert_in_range "$(($(connections_at "$nr") - before))" 2 3
  done
}

# The number of connections that server I has accepted so far, including that of this query.
connections_at() {
  redis "$1" info stats | sed -n 's/^total_connections_received:\([0-9]*\).*/\1/p'
}
