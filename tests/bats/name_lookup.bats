#!/usr/bin/env bats
# Names whose lookup takes longer than an attempt. This needs a private network, resolv.conf and
# name server, and therefore root.
load helper/common

setup() {
  unshare --net --mount --pid --fork true 2>/dev/null || skip "needs root with CAP_SYS_ADMIN"
  [[ -e /etc/resolv.conf ]] || skip "there is no resolv.conf to replace"
  setup_one_server
  export D=$BATS_TEST_TMPDIR SOCKET=${SERVER_SOCKET[0]} HELPERS=$BATS_TEST_DIRNAME/helper
}

# in_network SCRIPT: in a network where REDLOCK_SERVER names the server by a name, which is looked
# up at once or, while the file $D/held exists, not at all. All of it ends with SCRIPT.
in_network() {
  unshare --net --mount --pid --fork --kill-child --mount-proc bash -euo pipefail -c '
    rm -f "$D/names" "$D/port"
    ip link set lo up
    printf "nameserver 127.0.0.53\noptions timeout:30 attempts:1\n" >"$D/resolv.conf"
    mount --bind "$D/resolv.conf" /etc/resolv.conf
    /usr/bin/python3 "$HELPERS/names.py" "$D/held" >"$D/names" 3>&- &
    /usr/bin/python3 "$HELPERS/proxy.py" "$SOCKET" end >"$D/port" 3>&- &
    until [[ -s $D/names && -s $D/port ]]; do sleep 0.05; done
    export REDLOCK_SERVER=redis://redis.example:$(<"$D/port")
    '"$1"
}

@test "a lookup that outlasts an attempt serves the next, and messages name the lookup as the cause" {
  touch "$D/held"
  run -69 in_network 'redlock-cli run -k demo -n --server-timeout 500ms -- true'
  # On a busy machine, a part of the 500 ms has passed when the lookup begins.
  assert_output --regexp "no answer to the name lookup \(DNS\) of redis.example (within|in what was left of) 500ms \(--server-timeout\);"
  start_background waiter in_network \
    'redlock-cli run -k demo --unavailable-wait 5m --server-timeout 500ms -- echo ran'
  wait_for_stderr waiter "name lookup (DNS)"
  rm "$D/held"
  wait_background waiter
  assert_equal "$status $output" "0 ran"
}

@test "a run whose connection breaks reconnects to the known address" {
  start_background holder in_network '
    redlock-cli run -k demo -t 9s -- sh -c "echo entered; until [ -e \$D/end ]; do sleep 0.2; done"'
  wait_for_stdout holder entered
  touch "$D/held"
  force_reconnect 0
  touch "$D/end"
  wait_background holder
  assert_equal "$status" 0
  assert_unlocked demo 0
}

@test "a command ends although its lookup does not" {
  touch "$D/held"
  start_background limit sleep 20
  run -69 in_network 'redlock-cli run -k demo -n --server-timeout 500ms -- true'
  refute background_has_ended limit
}

@test "a name for 127.0.0.1 is found on a host with only IPv6" {
  run -0 in_network 'ip addr add fd00::1/64 dev lo; redlock-cli run -k demo -n -- true'
}

@test "the same by /etc/hosts, while the name server does not answer" {
  touch "$D/held"
  printf '127.0.0.1 redlock.hosts\n' >"$D/hosts"
  run -0 in_network 'ip addr add fd00::1/64 dev lo
    printf "nameserver 127.0.0.53\noptions timeout:1 attempts:1\n" >"$D/resolv.conf"
    mount --bind "$D/hosts" /etc/hosts
    redlock-cli run -S "redis://redlock.hosts:$(<"$D/port")" --server-timeout 60s -t 30m -k demo -n -- true'
}
