#!/usr/bin/env bats
# shellcheck disable=SC2030,SC2031,SC2034,SC2154
# One server under two names has one vote.
load helper/common
load helper/redis
load helper/checks

setup() {
  common_setup
  start_tcp_server
  start_server
  start_server
}

# Nothing runs, and nothing stays locked in either database of the server.
assert_found_out() {
  assert_refused 78 "two of the servers given are the same one" redlock-cli run -S "$1" -k demo -n -- touch "$BATS_TEST_TMPDIR/ran"
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
  # The third says nothing, so that the other two decide.
  pause_server 1
  assert_found_out "${SERVER_URL[0]},unix://${SERVER_SOCKET[0]}?db=1,${SERVER_URL[1]}"
}

@test "without the right to ask, the token still tells" {
  redis 0 acl setuser default -info
  assert_found_out "${SERVER_URL[0]},unix://${SERVER_SOCKET[0]}"
}

@test "different servers are not taken for one" {
  run -0 redlock-cli run -S "${SERVER_URL[0]},${SERVER_URL[1]},${SERVER_URL[2]}" -k demo -n -- true
}
