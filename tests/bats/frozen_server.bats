#!/usr/bin/env bats
# A server that is frozen while a client locks and releases, and reads everything after the client
# is gone: nothing may be left there. Servers differ in how much they read at a time, and in what
# they do if no client reads the answer.
load helper/common

setup() {
  common_setup
  # Longer than any test: a lock that is left over stays.
  export REDLOCK_TTL=5m
}

# While a server is frozen no client can query it.
ran_more_than() { (($(scripts_run "$1") > $2)); }

# leaves_nothing I CMD…: runs CMD while server I is frozen, which continues when CMD has ended.
leaves_nothing() {
  local frozen=$1 before
  shift
  before=$(scripts_run "$frozen")
  pause_server "$frozen"
  "$@"
  resume_server "$frozen"
  # It has read the attempt when it has run a script.
  wait_until ran_more_than "$frozen" "$before"
  wait_for_no_key "$frozen" demo
}

# prepare N START…: starts N servers, which have loaded the scripts.
prepare() {
  local n=$1 i
  shift
  for ((i = 0; i < n; ++i)); do "$@"; done
  export REDLOCK_SERVER=$SERVERS
  run -0 redlock-cli status -k demo --server-timeout 4s
}

a_run() { run -0 redlock-cli run -k demo -- true; }
a_busy_run() { run -75 redlock-cli run -k demo -n -- true; }

@test "a run leaves nothing on a frozen server, over a unix socket" {
  prepare 3 start_server
  local nr
  for nr in 1 2 3 4 5 6 7 8; do leaves_nothing $((nr % 3)) a_run; done
}

@test "a run leaves nothing on a frozen server, over TCP" {
  prepare 3 start_tcp_server
  local nr
  for nr in 1 2 3 4; do leaves_nothing $((nr % 3)) a_run; done
}

@test "a run leaves nothing on a frozen server without the scripts" {
  prepare 3 start_server
  redis 1 script flush
  leaves_nothing 1 a_run
}

@test "a failed attempt leaves nothing on a frozen server" {
  prepare 3 start_server
  redis 0 set demo theirs
  redis 1 set demo theirs
  local nr
  for nr in 1 2 3; do leaves_nothing 2 a_busy_run; done
}

@test "a run that had waited leaves nothing on a frozen server" {
  prepare 3 start_server
  a_run_that_waits() {
    redis 0 set demo theirs px 500
    redis 1 set demo theirs px 500
    a_run
  }
  leaves_nothing 2 a_run_that_waits
}

# A slow server has read the attempt when the run ends, and answers it when the client has gone.
@test "a run leaves nothing on a server that answers after the run has ended" {
  LATE_SERVER=1 start_servers 3
  export REDLOCK_SERVER=$SERVERS
  run -0 redlock-cli run -k demo -- "$(granted_by_all)" true
  local nr before
  for nr in 1 2 3; do
    before=$(scripts_run 1)
    a_run
    wait_until ran_more_than 1 "$before"
    wait_for_no_key 1 demo
  done
}

# An attempt on the longest key is 37 KB, more than any server reads at a time. There is no greeting
# before it, whose answer would show the server earlier that the client is gone.
@test "a run that had waited for the longest possible key leaves nothing on a frozen server" {
  printf -v long '%04096d' 0
  prepare 3 start_server
  redis 0 set "$long" theirs
  redis 1 set "$long" theirs
  start_background waiter redlock-cli run -k "$long" -- true
  wait_until has_fence
  pause_server 2
  redis 0 del "$long"
  redis 1 del "$long"
  wait_background waiter
  assert_equal "$status" 0
  resume_server 2
  # What the run sent has been read, or dropped.
  wait_until no_other_client_is_connected
  wait_until is_free
}

# Only by names: the long texts must not be printed.
has_fence() { [[ $(redis 2 exists "redlock:fence:{$long}") == 1 ]]; }
no_other_client_is_connected() {
  redis 2 info clients | grep -q '^connected_clients:1[[:space:]]*$'
}
is_free() { [[ $(redis 2 exists "$long") == 0 ]]; }

# The servers have loaded the scripts already, so that bytes written to a silent one would lock it
# later.
three_silent_servers_of_five() {
  export REDLOCK_SERVER=$SERVERS
  run -0 redlock-cli status -k warm --server-timeout 4s
  local nr
  for nr in 0 1 2; do pause_server "$nr"; done
  assert_refused 69 "3 of 5 servers must answer" \
    redlock-cli run -k demo -n --server-timeout 500ms -- true
  for nr in 0 1 2; do assert_regex "$stderr" "${SERVER_URL[nr]}: no answer"; done
  assert_unlocked demo 3 4
  for nr in 0 1 2; do
    resume_server "$nr"
    assert_equal "$(redis "$nr" ping)" PONG
    # It has read all that was left for it once the connection is gone.
    wait_until connections_are 1 "$nr"
    # Whether the attempt did get there: the counter is its trace.
    assert_equal "$(redis "$nr" exists 'redlock:fence:{demo}')" 1
    assert_unlocked demo "$nr"
  done
  run -0 redlock-cli run -k demo -n -- true
}

connections_are() { redis "$2" info clients | grep -q "^connected_clients:$1[[:space:]]*$"; }

@test "three of five servers silent: 69 names each, and no stale lock appears when they wake up" {
  start_servers 5
  three_silent_servers_of_five
}

@test "no stale lock appears over TCP either when three of five silent servers wake up" {
  local nr
  for nr in 0 1 2 3 4; do start_tcp_server; done
  three_silent_servers_of_five
}

# More connections wait for the server than its backlog allows.
queue_is_full() {
  local waiting room
  read -r _ _ waiting room _ < <(ss -Hlx "src $SERVER_SOCKET")
  ((waiting > room))
}

@test "a connection to a unix socket with a full backlog is retried until the timeout" {
  local i
  start_server --tcp-backlog 1
  export REDLOCK_SERVER=$SERVERS
  pause_server 0
  for i in 1 2 3; do start_background "client$i" redis-cli -s "$SERVER_SOCKET" ping; done
  wait_until queue_is_full
  run -69 --separate-stderr redlock-cli run -n -k demo --server-timeout 500ms -- true
  assert_regex "$stderr" "no connection within"
  start_background ours redlock-cli run -n -k demo --server-timeout 20s -- echo entered
  resume_server 0
  wait_background ours
  assert_equal "$status $output" "0 entered"
}
