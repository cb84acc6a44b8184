# shellcheck shell=bash
# A private network for servers and clients, with delayed packets of at most 1500 bytes (wire.py).

CLIENT_NET=()
WIRE_DELAY=20 # milliseconds

# start_wire: servers that are started from now on are reached only over the wire, by programs under
# "${CLIENT_NET[@]}", at 127.0.0.1 as usual. To the servers these are remote clients, so they need
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
  # Even on a busy machine no server may time out, as that would cost round trips.
  export REDLOCK_SERVER_TIMEOUT=15s REDLOCK_TTL=5m
}

# on_wire COUNT CMD…: runs it at the clients' end until it has closed COUNT connections. For each,
# in the order of closing, WIRE_ROUNDS has the round trips after connect, WIRE_WAITS these and those
# that were spent on acknowledgements, WIRE_SENT and WIRE_RECEIVED the bytes to and from the server,
# WIRE_PORT its port there.
on_wire() {
  local count=$1 before
  shift
  before=$(wc -l <"$(background_stdout wire)")
  run -0 "${CLIENT_NET[@]}" "$@"
  wait_until wire_has "$((before + count))"
  WIRE_PORT=() WIRE_ROUNDS=() WIRE_WAITS=() WIRE_SENT=() WIRE_RECEIVED=()
  local port rounds waits sent received
  while read -r port rounds waits sent received; do
    WIRE_PORT+=("$port") WIRE_ROUNDS+=("$rounds") WIRE_WAITS+=("$waits")
    WIRE_SENT+=("$sent") WIRE_RECEIVED+=("$received")
  done < <(tail -n "+$((before + 1))" "$(background_stdout wire)")
}

wire_has() { (($(wc -l <"$(background_stdout wire)") >= $1)); }
