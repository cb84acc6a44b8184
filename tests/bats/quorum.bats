#!/usr/bin/env bats
# Several servers: a quorum suffices without the others, and less than a quorum does nothing.
load helper/common

@test "everything works whichever two of five servers were killed" {
  start_servers 5
  # Even on a busy machine no server may time out.
  export REDLOCK_SERVER=$SERVERS REDLOCK_SERVER_TIMEOUT=4s
  local a b nr
  for a in 0 1 2 3; do
    for ((b = a + 1; b < 5; ++b)); do
      kill_server "$a"
      kill_server "$b"
      use_all_commands
      for nr in 0 1 2 3 4; do
        ((nr == a || nr == b)) || assert_unlocked demo "$nr"
      done
      restart_server "$a"
      restart_server "$b"
    done
  done
}

@test "everything works whichever two of five servers are silent" {
  start_servers 5
  # A status waits as long for the silent servers.
  export REDLOCK_SERVER=$SERVERS REDLOCK_SERVER_TIMEOUT=1500ms
  local pair nr
  for pair in 01 12 34 40; do
    pause_server "${pair:0:1}"
    pause_server "${pair:1:1}"
    use_all_commands
    for nr in 0 1 2 3 4; do
      [[ $pair == *$nr* ]] || assert_unlocked demo "$nr"
    done
    resume_server "${pair:0:1}"
    resume_server "${pair:1:1}"
  done
}

@test "two silent servers of five delay nothing: a quorum decides" {
  start_servers 5
  export REDLOCK_SERVER=$SERVERS REDLOCK_SERVER_TIMEOUT=60s REDLOCK_TTL=10m
  pause_server 1
  pause_server 3
  start_background three_quarters_of_the_server_timeout sleep 45
  run -0 redlock-cli run -k demo -- true
  run -0 --separate-stderr redlock-cli acquire -k demo --export
  eval "$output"
  run -0 redlock-cli extend
  refute background_has_ended three_quarters_of_the_server_timeout
}

@test "a release that a quorum has confirmed does not wait for silent servers either" {
  start_servers 5
  export REDLOCK_SERVER=$SERVERS
  # A server that never granted confirms no release.
  acquire_at_all
  pause_server 1
  pause_server 3
  start_background three_quarters_of_the_server_timeout sleep 15
  run -0 redlock-cli release --server-timeout 20s
  refute background_has_ended three_quarters_of_the_server_timeout
}

@test "status with two silent servers of five names them" {
  start_servers 5
  pause_server 1
  pause_server 3
  run -0 redlock-cli status -S "$SERVERS" -k demo --server-timeout 4s
  assert_line "demo: free"
  assert_line --partial "${SERVER_URL[0]}: free"
  assert_line --partial "${SERVER_URL[1]}: no answer"
  assert_line --partial "${SERVER_URL[3]}: no answer"
}

@test "a command continues when two of five servers fall silent while it runs" {
  start_servers 5
  hold holder -S "$SERVERS" -t 12s
  # A quorum is enough for the start.
  local nr
  for nr in 2 3 4; do wait_for_key "$nr" demo; done
  pause_server 0
  kill_server 1
  wait_for_extend 4
  release_hold holder
  assert_equal "$status" 0
  assert_unlocked demo 2 3 4
}

@test "three of five servers killed: 69 names each one's fault, and nothing stays locked" {
  start_servers 5
  local nr
  for nr in 0 2 4; do kill_server "$nr"; done
  assert_refused 69 "3 of 5 servers must answer" redlock-cli run -S "$SERVERS" -k demo -n \
    -- touch "$BATS_TEST_TMPDIR/ran"
  for nr in 0 2 4; do assert_regex "$stderr" "${SERVER_URL[nr]}: cannot connect: [A-Z]"; done
  for nr in 1 3; do [[ $stderr != *"${SERVER_URL[nr]}"* ]]; done
  assert_unlocked demo 1 3
  assert [ ! -e "$BATS_TEST_TMPDIR/ran" ]
  assert_refused 69 "${SERVER_URL[2]}" redlock-cli acquire -S "$SERVERS" -k demo -n -t 60s
  assert_unlocked demo 1 3
}

@test "a lost quorum is a lost quorum to extend, release and status, too" {
  start_servers 5
  export REDLOCK_SERVER=$SERVERS
  eval "$(redlock-cli acquire -k demo -t 60s --export)"
  local nr
  for nr in 0 2 4; do kill_server "$nr"; done
  assert_refused 69 "${SERVER_URL[2]}" redlock-cli extend -t 60s
  assert_refused 69 "${SERVER_URL[2]}" redlock-cli release
  run --separate-stderr redlock-cli status -k demo --exit-code
  assert_equal "$status" 69
  assert_line "demo: unknown: no quorum of servers answered"
  assert_regex "$stderr" "${SERVER_URL[2]}"
}

@test "a wait tolerates a missing quorum for --unavailable-wait, and gets the lock when the servers return" {
  start_servers 3
  export REDLOCK_SERVER=$SERVERS
  kill_server 0
  kill_server 1
  run --separate-stderr redlock-cli run -k demo --unavailable-wait 300ms -- true
  assert_equal "$status" 69
  assert_regex "$stderr" "2 of 3 servers must answer"
  start_background waiter redlock-cli run -k demo --unavailable-wait 1h -- echo ran
  wait_for_stderr waiter "no quorum"
  restart_server 0
  wait_background waiter
  assert_equal "$status" 0
  assert_equal "$output" ran
}

@test "four servers, two of them with another holder's lock: busy at once, and the other two stay free" {
  start_servers 4
  run -0 redlock-cli acquire -S "${SERVER_URL[0]},${SERVER_URL[1]}" -k demo -t 5m
  start_background marker sleep 60
  assert_refused 75 "held by" redlock-cli run -S "$SERVERS" -k demo -n \
    -- touch "$BATS_TEST_TMPDIR/ran"
  assert_unlocked demo 2 3
  run -75 redlock-cli acquire -S "$SERVERS" -k demo -w 500ms -t 60s
  refute background_has_ended marker
  assert [ ! -e "$BATS_TEST_TMPDIR/ran" ]
  assert_unlocked demo 2 3
  assert_equal "$(redis 0 exists demo) $(redis 1 exists demo)" "1 1"
}

# Starts three `run -n` that wait for the file lock on $gate, and releases them together. A run that
# gets the lock holds it until $leave exists. BEGAN is the time of their release.
start_three() {
  local name gate=$BATS_TEST_TMPDIR/gate leave=$1 door
  exec {door}>"$gate"
  flock -x "$door"
  for name in one two three; do
    start_background "$name" flock -s -F "$gate" redlock-cli run -S "$SERVERS" -k demo -n \
      --server-timeout 4s -- sh -c 'until [ -e "$0" ]; do sleep 0.1; done' "$leave" {door}>&-
  done
  for name in one two three; do wait_until waits_at_gate "${BACKGROUND_PID[$name]}"; done
  BEGAN=$EPOCHREALTIME
  flock -u "$door"
  exec {door}>&-
}

waits_at_gate() { [[ $(<"/proc/$1/comm") == flock ]]; }

two_have_ended() {
  local name ended=0
  for name in one two three; do
    if background_has_ended "$name"; then ended=$((ended + 1)); fi
  done
  ((ended >= 2))
}

@test "of three that start at the same instant exactly one runs, every time" {
  start_servers 3
  local round name statuses
  for ((round = 0; round < 30; ++round)); do
    start_three "$BATS_TEST_TMPDIR/leave.$round"
    wait_until two_have_ended
    touch "$BATS_TEST_TMPDIR/leave.$round"
    statuses=()
    for name in one two three; do
      wait_background "$name"
      statuses+=("$status")
    done
    assert_one_ran "$BEGAN" "${statuses[@]}"
    assert_unlocked demo 0 1 2
  done
  assert [ "$ONE_RAN" -gt 0 ]
}

@test "the same URL twice is refused before any server is asked" {
  assert_refused 78 "redis://h:6379 is named twice" \
    redlock-cli run -S redis://h -S redis://h -k demo -- true
  assert_refused 78 "is named twice" \
    redlock-cli run -S redis://h:6379,redis://g,redis://H/ -k demo -- true
  assert_refused 78 "is named twice" \
    redlock-cli acquire -S 'redis://[::1],redis://[0:0::1]:6379' -k demo -t 60s
  assert_refused 78 "is named twice" redlock-cli status -S unix:///tmp/x,unix:///tmp/x
  assert_refused 78 "is named twice" env REDLOCK_SERVER=redis://h,redis://h redlock-cli status
}

@test "-v names the servers that are missing from a quorum" {
  start_servers 3
  local nr dead=unix://$BATS_TEST_TMPDIR/none
  run -0 redlock-cli run -v -k demo -S "${SERVER_URL[0]},${SERVER_URL[1]},$dead" -- true
  assert_output --partial \
    "redlock-cli: demo: 1 of 3 servers not voting; 1 tolerated: $dead: "
  run -0 redlock-cli run -v -k demo -S "$SERVERS" -t 2m --server-timeout 20s -- true
  refute_output --partial "not voting"
  # And while it runs, when that changes.
  start_background ours redlock-cli run -v -k demo -t 6s -S "$SERVERS" -- sleep 1000
  # A server without the lease when another falls silent: no quorum is left.
  for nr in 0 1 2; do wait_for_key "$nr" demo; done
  pause_server 2
  wait_for_stderr ours "1 of 3 servers not voting"
  resume_server 2
  wait_for_stderr ours "all servers vote again"
  kill -TERM "${BACKGROUND_PID[ours]}"
  wait_background ours
}

# shows_fence I FENCE: server I granted the lease late, with a fence of its own.
shows_fence() { redis "$1" hset 'redlock:owner:{demo}' fence "$2" >/dev/null; }

@test "--if-fence breaks the lease with that fence also on a server that has it with another" {
  start_servers 3
  export REDLOCK_SERVER=$SERVERS
  acquire_at_all
  shows_fence 0 5
  # A server that granted late may have a fence of its own.
  shows_fence 1 "$REDLOCK_FENCE"
  shows_fence 2 "$REDLOCK_FENCE"
  run -0 redlock-cli status -k demo
  assert_line "  fence $REDLOCK_FENCE"
  run -0 redlock-cli release -k demo --force --if-fence "$REDLOCK_FENCE"
  assert_output --partial "broken; it was held by"
  assert_unlocked demo 0 1 2
}

@test "--if-fence reports that it broke the lock on too few servers" {
  start_servers 3
  export REDLOCK_SERVER=$SERVERS
  acquire_at_all
  shows_fence 0 5
  assert_refused 79 "broken at 1 of 3 servers only, the others have another fence" \
    redlock-cli release -k demo --force --if-fence 5
  run -0 redlock-cli extend -t 5m
}
