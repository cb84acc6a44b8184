#!/usr/bin/env bats
# One node's view of its cluster is used until it fails; then another node is asked.
load helper/common
load helper/deployments

# leave_cluster: server 0 passes its slots and the named keys to server 1, and leaves the cluster
# properly.
leave_cluster() {
  local id i
  id=$(node_id 0)
  begin_migration "${CLUSTER_SLOT[0]}" 0 1
  move_keys 0 1 "$@"
  end_migration "${CLUSTER_SLOT[0]}" 1
  redis 0 cluster delslotsrange 0 "$((CLUSTER_SLOT[0] - 1))" "$((CLUSTER_SLOT[0] + 1))" 5460
  for i in 1 2; do
    redis "$i" cluster delslotsrange 0 "$((CLUSTER_SLOT[0] - 1))" "$((CLUSTER_SLOT[0] + 1))" 5460
  done
  redis 1 cluster addslotsrange 0 "$((CLUSTER_SLOT[0] - 1))" "$((CLUSTER_SLOT[0] + 1))" 5460
  for i in 1 2; do wait_until cluster_is ok "$i"; done
  wait_until redis_says 2 16384 eval \
    'local n = 0
     for _, r in ipairs(redis.call("cluster", "slots")) do n = n + r[2] - r[1] + 1 end
     return n' 0 || true
  for i in 1 2; do redis "$i" cluster forget "$id"; done
  redis 0 cluster reset
}

# scripted_node SLOTS ERROR: a node with these answers (scripted_cluster.py); NODE is its address.
scripted_node() {
  start_background node /usr/bin/python3 "$BATS_TEST_DIRNAME/helper/scripted_cluster.py" "$@"
  wait_for_stdout node
  NODE=127.0.0.1:$(<"$(background_stdout node)")
}

# The cluster, by way of the scripted node first.
cluster_after_node() { echo "cluster://$NODE,${CLUSTER_URL#cluster://}"; }

@test "a node that left the cluster properly ends no run, blocks no lock, and hides none" {
  start_cluster
  export REDLOCK_SERVER=$CLUSTER_URL REDLOCK_SERVER_TIMEOUT=2s
  hold holder -t 12s --server-timeout 1s
  leave_cluster demo 'redlock:fence:{demo}' 'redlock:owner:{demo}' >/dev/null
  run -0 redlock-cli status
  assert_output --partial demo
  run -0 redlock-cli run -k other -n -- true
  wait_for_extend 1
  release_hold holder
  assert_equal "$status" 0
  assert_unlocked demo 1
  run -0 redlock-cli status
  assert_output --partial "no locks"
}

@test "an incomplete map of a cluster is never \"no locks\"" {
  start_cluster
  redis 2 config set cluster-require-full-coverage no >/dev/null
  scripted_node '*0\r\n' x
  run -69 redlock-cli status -S "cluster://$NODE"
  assert_output --partial "no server of its cluster has 16384 of the 16384 slots"
  refute_output --partial "no locks"
  run -0 redlock-cli status -S "$(cluster_after_node)"
}

@test "a node that names a dead master is corrected by the others in the same attempt" {
  start_cluster
  scripted_node '*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:1\r\n' x
  run -0 redlock-cli run -S "$(cluster_after_node)" -k demo -n --server-timeout 4s -- true
  assert_unlocked demo 0
  run -0 redlock-cli run -S "$(cluster_after_node)" -k demo --server-timeout 4s -- \
    redlock-cli status -S "$(cluster_after_node)"
  assert_output --partial "held"
  assert_refused 69 "127.0.0.1:1: cannot connect" \
    redlock-cli run -S "cluster://$NODE" -k demo -n -- true
}

# other_host: servers that are started from now on run on another host, 10.77.0.1, to which
# "${HERE[@]}" on this one, 10.77.0.2, is connected.
other_host() {
  if ((EUID != 0)) || ! unshare --net true 2>/dev/null; then
    skip "needs root with CAP_SYS_ADMIN"
  fi
  local hosts=$BATS_TEST_TMPDIR/hosts
  start_background hosts unshare --net "$(executable two_hosts <<'END'
#!/bin/bash
ip link set lo up
unshare --net sleep 1000 &
until [[ $(readlink /proc/$!/ns/net) != "$(readlink /proc/self/ns/net)" ]]; do sleep 0.02; done
ip link add here type veth peer name there netns $!
ip address add 10.77.0.2/24 dev here
ip link set here up
nsenter --target $! --net sh -c 'ip link set lo up
  ip address add 10.77.0.1/24 dev there
  ip link set there up'
echo "$$ $!"
trap 'kill %1' TERM
wait
END
  )"
  wait_for_stdout hosts
  local here there
  read -r here there <"$(background_stdout hosts)"
  HERE=(nsenter "--net=/proc/$here/ns/net")
  SERVER_NET=(nsenter "--net=/proc/$there/ns/net")
}

@test "a loopback address that another host announces is refused, and the message names both addresses" {
  other_host
  start_tcp_server --bind 10.77.0.1 127.0.0.1 --protected-mode no --cluster-enabled yes \
    --cluster-announce-ip 127.0.0.1 --cluster-config-file nodes.conf
  redis 0 cluster addslotsrange 0 16383 >/dev/null
  wait_until cluster_is ok 0
  local url=cluster://10.77.0.1:${SERVER_PORT[0]}
  assert_refused 78 "10.77.0.1:${SERVER_PORT[0]}: it announces 127.0.0.1:${SERVER_PORT[0]}" \
    "${HERE[@]}" "$REDLOCK_CLI" run -S "$url" -k demo -n --server-timeout 4s -- true
  # On its own host that address is right.
  run -0 "${SERVER_NET[@]}" "$REDLOCK_CLI" run -S "$url" -k demo -n --server-timeout 4s -- true

  start_tcp_server --bind 10.77.0.1 127.0.0.1 --protected-mode no
  local port
  port=$(random_port)
  printf '%s\n' "port $port" 'bind 10.77.0.1 127.0.0.1' 'protected-mode no' \
    "sentinel monitor m 127.0.0.1 ${SERVER_PORT[1]} 1" >"$BATS_TEST_TMPDIR/sentinel.conf"
  start_background sentinel "${SERVER_NET[@]}" redis-server "$BATS_TEST_TMPDIR/sentinel.conf" \
    --sentinel
  wait_until "${SERVER_NET[@]}" redis-cli -p "$port" ping
  url=sentinel://10.77.0.1:$port/m
  assert_refused 78 \
    "the sentinel 10.77.0.1:$port: it announces 127.0.0.1:${SERVER_PORT[1]}" \
    "${HERE[@]}" "$REDLOCK_CLI" run -S "$url" -k demo -n --server-timeout 4s -- true
  run -0 "${SERVER_NET[@]}" "$REDLOCK_CLI" run -S "$url" -k demo -n --server-timeout 4s -- true
}
