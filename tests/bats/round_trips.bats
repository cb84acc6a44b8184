#!/usr/bin/env bats
# bats file_tags=smoke
# The cost of an uncontended lock, counted at the server and at the socket.
load helper/common
load helper/tls
load helper/deployments
load helper/wire

setup() {
  common_setup
  # However busy this machine is, no server is given up: that would cost an undo, and another try.
  export REDLOCK_SERVER_TIMEOUT=15s REDLOCK_TTL=5m
}

# agree_on_fences COUNT [REDIS-CLI-OPTION…]: the servers grant the same fence, whatever their clocks
# say, so that none is raised.
agree_on_fences() {
  local count=$1 i
  shift
  for ((i = 0; i < count; ++i)); do
    redis "$i" "$@" set 'redlock:fence:{demo}' 4000000000000 >/dev/null
  done
}

# watch_commands I [REDIS-CLI-OPTION…]: from now on $(commands_seen) are the commands that clients
# send to server I.
watch_commands() {
  local i=$1
  shift
  start_background monitor redis-cli -s "${SERVER_SOCKET[i]}" "$@" monitor
  wait_until grep -qx OK "$(background_stdout monitor)"
}

# end_watch I [REDIS-CLI-OPTION…]: sets $seen to the names of the commands, one per line. Calls by a
# script are marked "lua" and do not count.
end_watch() {
  local i=$1
  shift
  redis "$i" "$@" echo end-of-watch >/dev/null
  wait_for_stdout monitor end-of-watch
  seen=$(sed -n '/end-of-watch/q; /^[0-9.]* \[[0-9]* lua\]/d
    s/^[0-9.]* \[[^]]*\] "\([^"]*\)".*/\1/p' "$(background_stdout monitor)" |
    tr '[:lower:]' '[:upper:]')
  end_child "${BACKGROUND_PID[monitor]}"
  unset "BACKGROUND_PID[monitor]"
}

# is_scripts N: the commands are exactly N calls of scripts.
is_scripts() {
  assert_equal "$(grep -Ec '^EVAL(SHA)?$' <<<"$seen")" "$1"
  assert_equal "$(grep -c . <<<"$seen")" "$1"
}

# trace FILE STRING-LENGTH CMD…: what CMD and its processes write, without a stop at any other call.
# Each has a file of its own: in a shared one a call may be in two halves.
trace() {
  local calls=$1 strace
  # A build with AddressSanitizer cannot look for leaks under strace.
  local -x ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"
  strace=(strace -ff --seccomp-bpf -s "$2" -e 'trace=write,writev,send,sendto,sendmsg,sendmmsg')
  "${strace[@]}" -o "$BATS_TEST_TMPDIR/probe" true 2>/dev/null || skip "strace cannot run here"
  shift 2
  run -0 "${strace[@]}" -o "$calls" "$@"
  # Requests to the server begin with a RESP array.
  cat "$calls".* | grep '"\*[0-9]*\\r\\n' >"$calls"
}

# teach: each server in SERVERS knows the scripts from now on.
teach() { run -0 redlock-cli status -S "$SERVERS" -k demo; }

@test "a run costs a server two commands, and two more if it does not know the scripts" {
  start_servers 1
  local commands seen
  for commands in 4 2 2; do
    watch_commands 0
    run -0 redlock-cli run -S "$SERVERS" -k demo -- true
    end_watch 0
    is_scripts "$commands"
  done
}

@test "neither of the two commands of a run is longer than a packet" {
  start_tcp_server
  teach
  local calls=$BATS_TEST_TMPDIR/calls lengths
  trace "$calls" 100 redlock-cli run -S "$SERVERS" -k demo -- true
  mapfile -t lengths < <(sed 's/.* = //' "$calls")
  assert_equal "${#lengths[@]}" 2
  ((lengths[0] < 1460 && lengths[1] < 1460))
}

@test "each of three servers gets two commands, and first one that identifies it" {
  start_servers 3
  teach
  local seen
  agree_on_fences 3
  watch_commands 0
  run -0 redlock-cli run -S "$SERVERS" -k demo -- "$(granted_by_all)" true
  end_watch 0
  # EXISTS is asked by the command.
  seen=$(grep -v EXISTS <<<"${seen//EVALSHA/EVAL}")
  assert_equal "${seen//$'\n'/ }" "INFO EVAL EVAL"
}

@test "acquire, extend and release cost one command each" {
  start_servers 1
  teach
  export REDLOCK_SERVER=$SERVERS
  local seen exports
  watch_commands 0
  exports=$(redlock-cli acquire -k demo -t 5m --export)
  end_watch 0
  is_scripts 1
  eval "$exports"
  watch_commands 0
  run -0 redlock-cli extend -t 5m
  end_watch 0
  is_scripts 1
  watch_commands 0
  run -0 redlock-cli release
  end_watch 0
  is_scripts 1
}

@test "a login and a database add commands but no round trips: they are sent with the first script" {
  start_tcp_server --requirepass secret
  REDISCLI_AUTH=secret teach
  local seen
  watch_commands 0 --no-auth-warning -a secret
  run -0 env REDISCLI_AUTH=secret redlock-cli run -S "${SERVER_URL[0]}/2" -k demo -- true
  end_watch 0 --no-auth-warning -a secret
  # MONITOR never shows AUTH.
  assert_equal "$(grep -v '^AUTH$' <<<"$seen" | sed 's/EVALSHA/EVAL/' | paste -sd ' ')" \
    "SELECT EVAL EVAL"
}

@test "AUTH, SELECT, INFO and the script are one write" {
  start_tcp_server --requirepass secret
  start_tcp_server --requirepass secret
  REDISCLI_AUTH=secret teach
  local calls=$BATS_TEST_TMPDIR/calls
  agree_on_fences 2 --no-auth-warning -a secret -n 2
  REDISCLI_AUTH=secret trace "$calls" 1000000 \
    redlock-cli run -S "${SERVER_URL[0]}/2,${SERVER_URL[1]}/2" -k demo -- true
  assert_equal "$(wc -l <"$calls")" 4
  local line
  for line in 1 2; do
    run -0 sed -n "${line}p" "$calls"
    assert_output --regexp \
      '"\*[0-9]+\\r\\n\$4\\r\\nAUTH\\r\\n.*\$6\\r\\nSELECT\\r\\n'\
'.*\$4\\r\\nINFO\\r\\n.*\$7\\r\\nEVALSHA\\r\\n'
  done
  run -0 sed -n 3,4p "$calls"
  assert_output --regexp '\\r\\nEVALSHA\\r\\n'
}

# --- Over a network of packets of 1500 bytes. The round trip of connect does not count. ---

# costs ROUNDS: each connection took at most so many round trips, acknowledgements included, and
# carried at most 1.5 KB either way.
costs() {
  local i
  for i in "${!WIRE_ROUNDS[@]}"; do
    echo "port ${WIRE_PORT[i]}: ${WIRE_ROUNDS[i]} round trips, ${WIRE_WAITS[i]} with waits," \
      "${WIRE_SENT[i]} bytes there, ${WIRE_RECEIVED[i]} back"
    ((WIRE_WAITS[i] <= $1 && WIRE_SENT[i] <= 1500 && WIRE_RECEIVED[i] <= 1500)) || return
  done
}

@test "a run takes two round trips, and two more at a server that does not know the scripts" {
  start_wire
  start_tcp_server --protected-mode no
  local trips
  # NOSCRIPT, and the text.
  for trips in 4 2 2; do
    on_wire 1 redlock-cli run -S "$SERVERS" -k demo -- true
    assert_equal "${WIRE_ROUNDS[*]}" "$trips"
  done
  costs 2
  on_wire 1 redlock-cli run -S "$SERVERS" -k demo -- redis-cli -s "${SERVER_SOCKET[0]}" script flush
  assert_equal "${WIRE_ROUNDS[*]}" 4
  on_wire 1 redlock-cli run -S "$SERVERS" -k demo -- true
  costs 2
}

@test "with three servers, a login, a database and INFO it takes two, and 1.5 KB each way" {
  start_wire
  local i
  for i in 1 2 3; do start_tcp_server --requirepass secret; done
  export REDISCLI_AUTH=secret
  local databases=${SERVER_URL[0]}/2,${SERVER_URL[1]}/2,${SERVER_URL[2]}/2
  # It ends when all have granted the lock: one that answers later is asked to release it on another
  # connection.
  local held_by_all='for s; do until [ "$(redis-cli -n 2 -s "$s" exists demo)" = 1 ]; do :; done; done'
  on_wire 3 redlock-cli run -S "$databases" -k demo -- sh -c "$held_by_all" - "${SERVER_SOCKET[@]}"
  agree_on_fences 3 -n 2
  on_wire 3 redlock-cli run -S "$databases" -k demo -- sh -c "$held_by_all" - "${SERVER_SOCKET[@]}"
  costs 2
  assert_equal "${#WIRE_ROUNDS[@]}" 3
}

@test "with TLS it takes one more, for the handshake" {
  start_wire
  prepare_tls
  make_authority ca
  make_certificate good ca DNS:localhost,IP:127.0.0.1
  start_tls_server good ca --tls-auth-clients no --protected-mode no
  local trips
  for trips in 5 3; do
    on_wire 1 redlock-cli run -S "$SERVERS" --cacert "$TLS/ca.crt" -k demo -- true
    assert_equal "${WIRE_ROUNDS[*]}" "$trips"
  done
}

@test "in a cluster it takes two at the key's master, and one at the server that names it" {
  start_wire
  # In force are the last of each: masters that answer late are not down.
  start_cluster --protected-mode no --cluster-node-timeout 15000
  local trips
  # The first server that is asked is the master of no such key.
  for trips in 4 2; do
    on_wire 2 redlock-cli run -S "$CLUSTER_URL" -k "${CLUSTER_KEY[1]}" -- true
    local -A at=(["${WIRE_PORT[0]}"]=${WIRE_ROUNDS[0]} ["${WIRE_PORT[1]}"]=${WIRE_ROUNDS[1]})
    assert_equal "${at[${SERVER_PORT[0]}]}, ${at[${SERVER_PORT[1]}]}" "1, $trips"
  done
  costs 2
}

@test "with a sentinel it takes two at the master, which is asked whether it is one" {
  start_wire
  start_tcp_server --protected-mode no
  start_sentinels 1 'protected-mode no'
  local trips
  for trips in 4 2; do
    on_wire 2 redlock-cli run -S "$SENTINEL_URL" -k demo -- true
    local -A at=(["${WIRE_PORT[0]}"]=${WIRE_ROUNDS[0]} ["${WIRE_PORT[1]}"]=${WIRE_ROUNDS[1]})
    assert_equal "${at[${SERVER_PORT[SENTINEL]}]}, ${at[${SERVER_PORT[0]}]}" "1, $trips"
  done
  costs 2
}

@test "a replica that became the master is sent the scripts" {
  start_wire
  start_tcp_server --protected-mode no
  start_replica 0 --protected-mode no
  on_wire 1 redlock-cli run -S "${SERVER_URL[0]}" -k demo -- true
  redis 1 replicaof no one >/dev/null
  # A replica is not told of scripts.
  on_wire 1 redlock-cli run -S "${SERVER_URL[1]}" -k demo -- true
  assert_equal "${WIRE_ROUNDS[*]}" 4
  on_wire 1 redlock-cli run -S "${SERVER_URL[1]}" -k demo -- true
  costs 2
}
