#!/usr/bin/env bats
# A server that refuses the release has done nothing: the release is retried in the background,
# while the caller continues, until the server has executed it.
load helper/common

setup() {
  common_setup
  # Longer than any test: a lock that is free earlier was released.
  export REDLOCK_TTL=5m
}

# start_hold [OPTION…]: a run whose command ends when $go is there.
start_hold() {
  go=$BATS_TEST_TMPDIR/go
  start_background hold redlock-cli run -S "$SERVERS" -k demo "$@" \
    -- sh -c 'until test -e "$0"; do sleep 0.1; done' "$go"
  local i
  # A server that answered late has the key from the first extension on.
  for i in "${!SERVER_PID[@]}"; do WAIT_LIMIT=110 wait_for_key "$i" demo; done
}

@test "two of three servers are busy when the command ends: the lock is free as soon as they are not" {
  start_servers 3 --lua-time-limit 50
  # Enough for a busy machine: all three grant the lock at the first attempt.
  start_hold --server-timeout 4s
  make_busy 0
  make_busy 1
  touch "$go"
  wait_background hold
  assert_equal "$status" 0
  assert_regex "$stderr" "no quorum confirmed the release yet; retrying in the background"
  # On a busy machine its answer, too, may come late. The other two keep both processors busy.
  WAIT_LIMIT=110 wait_for_no_key 2 demo
  end_busy 0
  end_busy 1
  wait_for_no_key 0 demo
  wait_for_no_key 1 demo
  run -0 redlock-cli run -S "$SERVERS" -k demo -n -- true
}

@test "a server that was busy for a moment when the command ended costs nothing but this moment" {
  start_servers 1 --lua-time-limit 50
  start_hold --server-timeout 20s
  make_busy 0
  touch "$go"
  end_busy 0
  wait_background hold
  assert_equal "$status: $stderr" "0: "
  assert_unlocked demo 0
}

@test "a silent server that refuses after the command has ended" {
  start_servers 3 --lua-time-limit 4000
  start_hold --server-timeout 1s
  local begun=$SECONDS
  start_background busy redis-cli -s "${SERVER_SOCKET[0]}" eval 'while true do end' 0
  wait_until server_is_silent 0
  # Silent for as long as its script may run before it answers, without keeping a processor busy.
  pause_server 0
  touch "$go"
  wait_background hold
  assert_equal "$status" 0
  wait_until are_over 4 "$begun"
  resume_server 0
  wait_until says 0 BUSY ping
  end_busy 0
  wait_for_no_key 0 demo
  # The requests of the silent time were refused.
  assert_regex "$(redis 0 info commandstats)" 'cmdstat_evalsha:[^ ]*rejected_calls=[1-9]'
}
# are_over SECONDS SINCE
are_over() { ((SECONDS - $2 > $1)); }
server_is_silent() { ! timeout 0.2 redis-cli -s "${SERVER_SOCKET[$1]}" ping >/dev/null; }

@test "a server that had become a read-only replica when the command ended" {
  start_servers 3
  start_hold
  redis 0 replicaof 127.0.0.1 1
  touch "$go"
  wait_background hold
  assert_equal "$status" 0
  redis 0 replicaof no one
  wait_for_no_key 0 demo
}

@test "a server that could not save to disk when the command ended" {
  mkdir "$BATS_TEST_TMPDIR/disk"
  start_servers 1 --dir "$BATS_TEST_TMPDIR/disk" --save "3600 1"
  start_hold
  rmdir "$BATS_TEST_TMPDIR/disk"
  wait_until says 0 MISCONF eval 'return redis.call("set", "other", 1)' 1 other || redis 0 bgsave
  wait_until says 0 MISCONF eval 'return redis.call("set", "other", 1)' 1 other
  touch "$go"
  wait_background hold
  assert_equal "$status" 0
  redis 0 config set stop-writes-on-bgsave-error no
  wait_for_no_key 0 demo
}

@test "the background process keeps no pipe, no descriptor and no terminal open" {
  start_servers 1 --lua-time-limit 50
  local pipe=$BATS_TEST_TMPDIR/pipe
  mkfifo "$pipe"
  # Ends when the last process has closed it.
  start_background reader cat "$pipe"
  redlock-cli run -S "$SERVERS" -k demo -- sh -c '
    echo said
    redis-cli -s "$0" eval "while true do end" 0 >/dev/null 2>&1 8>&- &
    until redis-cli -s "$0" ping 2>&1 | grep -q BUSY; do sleep 0.1; done' \
    "${SERVER_SOCKET[0]}" >"$pipe" 2>&1 8>"$pipe"
  wait_background reader
  assert_regex "$output" '^said'
  assert says 0 BUSY ping
  end_busy 0
  wait_for_no_key 0 demo
}

@test "release by hand is retried within the server timeout, and then reports what is left" {
  start_tcp_server --lua-time-limit 50
  start_servers 2
  start_background relay /usr/bin/python3 "$BATS_TEST_DIRNAME/helper/relay.py" \
    "${SERVER_PORT[0]}" 65536 BUSY
  wait_for_stdout relay
  local relay
  read -r relay <"$(background_stdout relay)"
  export REDLOCK_SERVER=redis://127.0.0.1:$relay,${SERVER_URL[1]},${SERVER_URL[2]}
  acquire_at_all
  make_busy 0
  # The quorum's second server confirms after the first one's refusal was read. The relay may see
  # the second refusal before the client does; the third is the answer to a question behind it.
  pause_server 1
  start_background release redlock-cli release --server-timeout 5s
  wait_until has_refused 3
  resume_server 1
  wait_background release
  assert_equal "$status" 0
  assert_regex "$stderr" "not confirmed by .*:$relay.*busy.*; it expires there by itself"
  assert_unlocked demo 1 2
  end_busy 0
  assert_equal "$(redis 0 exists demo)" 1

  redis 0 del demo
  acquire_at_all
  wait_background busy0
  make_busy 0
  pause_server 1
  local refusals
  refusals=$(grep -c BUSY "$(background_stdout relay)")
  start_background release redlock-cli release --server-timeout 20s
  wait_until has_refused $((refusals + 2))
  end_busy 0
  wait_for_no_key 0 demo
  resume_server 1
  wait_background release
  assert_equal "$status: $stderr" "0: "
  assert_unlocked demo 0 1 2
}
has_refused() { (($(grep -c BUSY "$(background_stdout relay)") >= $1)); }

@test "a server is busy when the process of --while-pid ends" {
  start_servers 1 --lua-time-limit 50
  start_background script \
    bash -c 'redlock-cli acquire -S "$0" -k demo --while-pid $$ && exec sleep infinity' "$SERVERS"
  wait_for_stdout script
  make_busy 0
  kill_child "${BACKGROUND_PID[script]}"
  unset "BACKGROUND_PID[script]"
  end_busy 0
  wait_for_no_key 0 demo
}

@test "a lock with --min-hold stays kept when its release is retried" {
  start_servers 1 --lua-time-limit 50
  start_hold --min-hold 1h
  make_busy 0
  touch "$go"
  wait_background hold
  assert_equal "$status" 0
  end_busy 0
  wait_until ends_in_more_than_the_ttl
}
ends_in_more_than_the_ttl() { (($(redis 0 pttl demo) > 300000)); }
