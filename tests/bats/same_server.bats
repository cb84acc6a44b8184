#!/usr/bin/env bats
# One server under two names has one vote.
load helper/common

setup() {
  common_setup
  start_tcp_server
  start_server
  start_server
}

# Nothing runs, and nothing is left locked in either database of the server.
assert_found_out() {
  assert_refused 78 "two of the servers are the same" redlock-cli run -S "$1" -k demo -n \
    -- touch "$BATS_TEST_TMPDIR/ran"
  assert [ ! -e "$BATS_TEST_TMPDIR/ran" ]
  assert_unlocked demo 0
  assert_equal "$(redis 0 -n 1 exists demo)" 0
}

@test "two of two are one server, by port and by socket" {
  assert_found_out "${SERVER_URL[0]},unix://${SERVER_SOCKET[0]}"
}

@test "two databases of a server are one server" {
  assert_found_out "${SERVER_URL[0]},unix://${SERVER_SOCKET[0]}?db=1"
}

@test "two of three make a quorum only if they are two" {
  # The third is silent, so that the other two decide.
  pause_server 1
  assert_found_out "${SERVER_URL[0]},unix://${SERVER_SOCKET[0]}?db=1,${SERVER_URL[1]}"
}

# A relay to server 0 that is paused until its process, "${BACKGROUND_PID[relay]}", gets CONT; RELAY
# is its URL.
paused_relay() {
  start_background relay /usr/bin/python3 "$BATS_TEST_DIRNAME/helper/relay.py" \
    "${SERVER_PORT[0]}" 4096
  wait_for_stdout relay
  RELAY=redis://127.0.0.1:$(<"$(background_stdout relay)")
  kill -STOP "${BACKGROUND_PID[relay]}"
}

@test "a duplicate that is found only after a quorum has granted is reported then" {
  paused_relay
  start_background held redlock-cli run -S "${SERVER_URL[0]},${SERVER_URL[1]},$RELAY" -k demo -n \
    -t 1m --server-timeout 10s -- sh -c 'echo ready; until [ -e "$0" ]; do sleep 0.1; done' \
    "$BATS_TEST_TMPDIR/end"
  wait_for_stdout held ready
  kill -CONT "${BACKGROUND_PID[relay]}"
  wait_for_stderr held "$RELAY is the same server as another one"
  touch "$BATS_TEST_TMPDIR/end"
  wait_background held
  assert_equal "$status" 0
}

@test "without the right to query, the token still reveals it" {
  redis 0 acl setuser default -info
  assert_found_out "${SERVER_URL[0]},unix://${SERVER_SOCKET[0]}"
}

# moving ADDRESS I: makes an address lead to server I from now on; existing connections stay.
moving() { ln -sfn "${SERVER_SOCKET[$2]}" "$1"; }

@test "an address that moves to another server during a lease gives that server no second vote" {
  local address=$BATS_TEST_TMPDIR/address
  moving "$address" 1
  start_background held redlock-cli run \
    -S "unix://${SERVER_SOCKET[0]},unix://$address,unix://${SERVER_SOCKET[2]}" \
    -k demo -t 12s --restart-guard 0 --grace 100ms -- sh -c 'echo ready; exec sleep 1000'
  wait_for_stdout held ready
  kill_server 2
  moving "$address" 0
  redis 1 client kill type normal >/dev/null
  wait_background held
  assert_equal "$status" 79
  assert_regex "$stderr" "its address leads to the same server as another one"
}

@test "extend gives a server under two names one vote" {
  local address=$BATS_TEST_TMPDIR/address
  moving "$address" 1
  export REDLOCK_SERVER=unix://${SERVER_SOCKET[0]},unix://$address,unix://${SERVER_SOCKET[2]}
  redlock-cli acquire -k demo -t 60s --restart-guard 0 --token-file "$BATS_TEST_TMPDIR/lease"
  kill_server 2
  moving "$address" 0
  assert_refused 69 "its address leads to the same server as another one" \
    redlock-cli extend -t 60s --token-file "$BATS_TEST_TMPDIR/lease"
}

@test "different servers are not mistaken for one" {
  run -0 redlock-cli run -S "${SERVER_URL[0]},${SERVER_URL[1]},${SERVER_URL[2]}" -k demo -n -- true
}
