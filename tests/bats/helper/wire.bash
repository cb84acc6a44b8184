# shellcheck shell=bash
# A network of its own for servers and clients: packets of at most 1500 bytes, each of which takes
# its time (wire.py).

CLIENT_NET=()
WIRE_DELAY=20 # milliseconds

# start_wire: servers that are started from now on are reached over the wire alone, by what
# "${CLIENT_NET[@]}" runs, at 127.0.0.1 as ever. To them it comes from elsewhere: they need
# --protected-mode no.
start_wire() {
  if ((EUID != 0)) || [[ ! -c /dev/net/tun ]] || ! unshare --net true 2>/dev/null; then
    skip "needs root with CAP_SYS_ADMIN, and /dev/net/tun"
  fi
  local servers clients
  start_background wire /usr/bin/python3 "$BATS_TEST_DIRNAME/helper/wire.py" "$WIRE_DELAY"
  wait_for_stdout wire
  read -r servers clients <"$(background_stdout wire)"
  SERVER_NET=(nsenter "--net=$servers")
  CLIENT_NET=(nsenter "--net=$clients")
  # However busy this machine is, no server is given up, as that would cost round trips.
  export REDLOCK_SERVER_TIMEOUT=15s REDLOCK_TTL=5m
}

# on_wire COUNT CMD…: runs it at the clients' end, until it has ended COUNT connections. Of each, in
# the order of their ends, WIRE_ROUNDS has the round trips after the one of connect, WIRE_SENT and
# WIRE_RECEIVED the bytes to the server and from it, WIRE_PORT its port there.
on_wire() {
  local count=$1 before
  shift
  before=$(wc -l <"$(background_stdout wire)")
  run -0 "${CLIENT_NET[@]}" "$@"
  wait_until wire_has "$((before + count))"
  WIRE_PORT=() WIRE_ROUNDS=() WIRE_SENT=() WIRE_RECEIVED=()
  local port rounds sent received
  while read -r port rounds sent received; do
    WIRE_PORT+=("$port") WIRE_ROUNDS+=("$rounds") WIRE_SENT+=("$sent") WIRE_RECEIVED+=("$received")
  done < <(tail -n "+$((before + 1))" "$(background_stdout wire)")
}

wire_has() { (($(wc -l <"$(background_stdout wire)") >= $1)); }
