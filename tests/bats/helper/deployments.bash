# shellcheck shell=bash
# Sentinels and clusters of real servers; these are numbered like all others, and end with the test.

# start_replica I [OPTION…]: one more server, on a port, a replica of server I that has caught up.
start_replica() {
  local of=$1
  shift
  start_tcp_server --replicaof 127.0.0.1 "${SERVER_PORT[of]}" --repl-diskless-sync-delay 0 "$@" ||
    return
  wait_until is_linked_replica "$((${#SERVER_PID[@]} - 1))"
}

# start_sentinels N [LINE…]: N sentinels, which watch server 0 under the name `mymaster`, and know
# its replica, server 1 (if there is one yet), and each other. A server that is silent for two
# seconds is down. SENTINEL_URL names them; the first is server SENTINEL. LINE: further lines of
# their configuration.
# With SENTINEL_TLS set they speak TLS only.
start_sentinels() {
  local n=$1 i first=${#SERVER_PID[@]} hosts='' tries
  shift
  SENTINEL=$first
  # Each must know the others' ports before it starts, and a port may be taken meanwhile.
  for ((tries = 0; tries < 20; ++tries)); do
    if launch_sentinels "$first" "$n" "$@"; then break; fi
    for ((i = first; i < ${#SERVER_PID[@]}; ++i)); do kill_child "${SERVER_PID[i]}"; done
  done
  if ((tries == 20)); then
    echo "start_sentinels: no free ports: $(tail -qn 1 "$SERVER_DIR"/*.log)" >&2
    return 1
  fi
  for ((i = first; i < first + n; ++i)); do
    hosts+=${hosts:+,}127.0.0.1:${SERVER_PORT[i]}
    # Faster than in any real deployment. (With a shorter ping-period no replica would be fresh
    # enough to be promoted.)
    redis "$i" sentinel debug ask-period 100 info-period 200 >/dev/null || return
  done
  # A sentinel that has not yet learned of the replica does not promote it for a long time.
  for ((i = first; i < first + n; ++i)); do
    wait_until sentinel_is_ready "$i" "$first" || return
  done
  SENTINEL_URL=sentinel://$hosts/mymaster
}

# start_cluster [OPTION…]: three masters, servers 0 to 2, each with a third of the slots. A server
# that is silent for 15 seconds has failed.
# CLUSTER_URL names them; CLUSTER_KEY[I] is a key of server I's, CLUSTER_SLOT[I] its slot.
start_cluster() {
  local i range=('0 5460' '5461 10922' '10923 16383')
  CLUSTER_KEY=(demo key1 key0)
  for i in 0 1 2; do
    start_tcp_server --cluster-enabled yes --cluster-config-file "nodes-$BATS_TEST_NUMBER-$i.conf" \
      --cluster-node-timeout 1000 \
      --repl-diskless-sync-delay 0 "$@" || return
    # shellcheck disable=SC2086
    redis "$i" cluster addslotsrange ${range[i]} >/dev/null &&
      redis "$i" cluster set-config-epoch "$((i + 1))" >/dev/null || return
  done
  join_cluster 0 1 2
  for i in 0 1 2; do
    wait_until cluster_is ok "$i" || return
    CLUSTER_SLOT[i]=$(redis "$i" cluster keyslot "${CLUSTER_KEY[i]}")
  done
  # A short one lets them find each other faster, but would call a busy master failed.
  set_node_timeout 15000
  CLUSTER_URL=cluster://127.0.0.1:${SERVER_PORT[0]},127.0.0.1:${SERVER_PORT[1]},\
127.0.0.1:${SERVER_PORT[2]}
}

# set_node_timeout MILLISECONDS: sets the silence after which a node of the cluster has failed, on
# the masters that are alive.
set_node_timeout() {
  local i
  for i in 0 1 2; do
    server_is_down "$i" || redis "$i" config set cluster-node-timeout "$1" >/dev/null || return
  done
}

# start_cluster_replica I [OPTION…]: one more server of the cluster, a replica of server I that has
# caught up.
start_cluster_replica() {
  local of=$1 i=${#SERVER_PID[@]}
  shift
  start_tcp_server --cluster-enabled yes --cluster-config-file "nodes-$BATS_TEST_NUMBER-$i.conf" \
    --cluster-node-timeout 1000 "$@" || return
  join_cluster 0 "$i" || return
  wait_until redis_says "$i" OK cluster replicate "$(node_id "$of")" || return
  wait_until is_linked_replica "$i"
  for i in 0 1 2; do wait_until knows_replica_of "$i" "$of" || return; done
}

# begin_migration SLOT FROM TO: the slot begins to move. move_keys FROM TO KEY…: moves keys.
# end_migration SLOT TO: the slot has moved.
begin_migration() {
  redis "$3" cluster setslot "$1" importing "$(node_id "$2")" >/dev/null &&
    redis "$2" cluster setslot "$1" migrating "$(node_id "$3")" >/dev/null
}
end_migration() {
  local i
  for i in "$2" 0 1 2; do
    redis "$i" cluster setslot "$1" node "$(node_id "$2")" >/dev/null || return
  done
}
move_keys() {
  local from=$1 to=$2
  shift 2
  redis "$from" migrate 127.0.0.1 "${SERVER_PORT[to]}" '' 0 5000 keys "$@" >/dev/null
}

# --- Internals ---

reserve_port() {
  SERVER_PORT[$1]=$(random_port)
  while "${SERVER_NET[@]}" ss -Hltn "sport = :${SERVER_PORT[$1]}" | grep -q .; do
    SERVER_PORT[$1]=$(random_port)
  done
}

# launch_sentinels FIRST N [LINE…]: starts them; succeeds if all have their ports.
launch_sentinels() {
  local first=$1 n=$2 i
  shift 2
  for ((i = first; i < first + n; ++i)); do
    prepare_server "$i" || return
    reserve_port "$i"
  done
  for ((i = first; i < first + n; ++i)); do launch_sentinel "$i" "$first" "$n" "$@" || return; done
  for ((i = first; i < first + n; ++i)); do
    wait_for_server "$i" 2>/dev/null || return
  done
}

sentinel_id() { printf '%040d' "$1"; }

launch_sentinel() {
  local i=$1 first=$2 n=$3 other line
  shift 3
  {
    if [[ -n ${SENTINEL_TLS-} ]]; then
      printf '%s\n' 'port 0' "tls-port ${SERVER_PORT[i]}"
    else
      echo "port ${SERVER_PORT[i]}"
    fi
    printf '%s\n' 'bind 127.0.0.1' "unixsocket ${SERVER_SOCKET[i]}" "dir $SERVER_DIR" \
      "logfile $SERVER_DIR/$i.log" \
      "sentinel monitor mymaster 127.0.0.1 ${SERVER_PORT[0]} $((n / 2 + 1))" \
      "sentinel myid $(sentinel_id "$i")" \
      'sentinel down-after-milliseconds mymaster 2000' 'sentinel failover-timeout mymaster 5000'
    ((first == 1)) || echo "sentinel known-replica mymaster 127.0.0.1 ${SERVER_PORT[1]}"
    for ((other = first; other < first + n; ++other)); do
      ((other == i)) ||
        echo "sentinel known-sentinel mymaster 127.0.0.1 ${SERVER_PORT[other]} \
$(sentinel_id "$other")"
    done
    for line; do echo "$line"; done
  } >"$SERVER_DIR/sentinel-$i.conf"
  SERVER_URL[i]=redis://127.0.0.1:${SERVER_PORT[i]}
  : >"$SERVER_DIR/$i.log"
  "${SERVER_NET[@]}" setpriv --pdeathsig KILL redis-server "$SERVER_DIR/sentinel-$i.conf" \
    --sentinel </dev/null >"$SERVER_DIR/$i.out" 2>&1 3>&- &
  SERVER_PID[i]=$!
}

sentinel_is_ready() {
  redis "$1" sentinel ckquorum mymaster | grep -q '^OK' || return
  (($2 == 1)) ||
    redis "$1" sentinel replicas mymaster | grep -A 1 -x master-link-status | grep -qx ok
}

join_cluster() {
  local first=$1 i
  shift
  for i; do redis "$first" cluster meet 127.0.0.1 "${SERVER_PORT[i]}" >/dev/null || return; done
}

node_id() { redis "$1" cluster myid; }
cluster_is() { redis "$2" cluster info | grep -q "^cluster_state:$1"; }
redis_says() { [[ $(redis "$1" "${@:3}") == "$2" ]]; }
is_linked_replica() { redis "$1" info replication | grep -q '^master_link_status:up'; }
is_master() { redis "$1" role | head -n 1 | grep -qx master; }
knows_replica_of() { [[ -n $(redis "$1" cluster replicas "$(node_id "$2")") ]]; }
# master_is I: the sentinels that are alive agree that it is server I.
master_is() {
  local i
  for ((i = SENTINEL; i < ${#SERVER_PID[@]}; ++i)); do
    server_is_down "$i" ||
      [[ $(redis "$i" sentinel get-master-addr-by-name mymaster |
        tail -n 1) == "${SERVER_PORT[$1]}" ]] ||
      return
  done
  is_master "$1"
}
