#!/usr/bin/env bats
# bats file_tags=smoke
# The fencing token only ever grows.
load helper/common

setup() {
  common_setup
  # Even on a busy machine no server may time out.
  export REDLOCK_SERVER_TIMEOUT=4s
}

# next_fence: acquires the lock, sets $fence, and fails unless it is above the previous one. Without
# -n, so that a first attempt that is too slow on a busy machine is repeated.
fence=0
next_fence() {
  local before=$fence
  run -0 --separate-stderr redlock-cli run -k demo -- sh -c 'echo "$REDLOCK_FENCE"'
  fence=$output
  [[ $fence =~ ^[1-9][0-9]*$ ]] || fail "no fence: $fence"
  ((fence > before)) || fail "the fence $fence is not above $before"
}

# counters_at_least N: how many servers that answer have a counter of at least N.
counters_at_least() {
  local nr count=0 at
  for nr in "${!SERVER_PID[@]}"; do
    at=$(fence_at "$nr" demo)
    if ((${at:-0} >= $1)); then count=$((count + 1)); fi
  done
  echo "$count"
}

@test "the environment, status, JSON and the counter have the same fence" {
  start_servers 1
  export REDLOCK_SERVER=$SERVERS
  run -0 --separate-stderr redlock-cli acquire -k demo -t 60s --json
  local fence
  fence=$(json 'j["fence"]')
  assert_equal "$(fence_at 0 demo)" "$fence"
  run -0 redlock-cli status -k demo
  assert_line "  fence $fence"
  run -0 redlock-cli status -k demo --json
  assert_equal "$(json 'j["locks"][0]["holder"]["fence"]')" "$fence"
}

@test "a quorum has the fence before the lease counts, even if only one server's counter was that high" {
  start_servers 3
  export REDLOCK_SERVER=$SERVERS
  local ahead=$(($(date +%s%3N) + 10000000000)) high low other
  # Two servers decide, and one of them is far ahead. When that one is gone, its fence must not be
  # lost.
  for high in 0 1 2; do
    low=$(((high + 1) % 3))
    other=$(((high + 2) % 3))
    ahead=$((ahead + 1000000))
    redis "$high" set 'redlock:fence:{demo}' "$ahead"
    pause_server "$other"
    next_fence
    assert_in_range "$fence" $((ahead + 1)) $((ahead + 10))
    assert_equal "$(fence_at "$high" demo) $(fence_at "$low" demo)" "$fence $fence"
    pause_server "$high"
    resume_server "$other"
    next_fence
    assert [ "$(fence_at "$low" demo)" -ge "$fence" ]
    assert [ "$(fence_at "$other" demo)" -ge "$fence" ]
    resume_server "$high"
  done
}

@test "fences grow with any quorum of five servers" {
  start_servers 5
  export REDLOCK_SERVER=$SERVERS
  # Counters must be beyond the clock, or the clock alone would suffice.
  local nr pair ahead=$(($(date +%s%3N) + 10000000000))
  for nr in 0 1 2 3 4; do redis "$nr" set 'redlock:fence:{demo}' $((ahead + nr * 1000)); done
  for pair in 01 23 40 12 34 02 13 24 30 41; do
    pause_server "${pair:0:1}"
    pause_server "${pair:1:1}"
    next_fence
    assert [ "$fence" -gt "$ahead" ]
    resume_server "${pair:0:1}"
    resume_server "${pair:1:1}"
    assert [ "$(counters_at_least "$fence")" -ge 3 ]
  done
}

@test "a server whose counter lags or was lost catches up" {
  start_servers 3
  export REDLOCK_SERVER=$SERVERS
  local ahead=$(($(date +%s%3N) + 10000000000))
  redis 0 set 'redlock:fence:{demo}' "$ahead"
  redis 1 set 'redlock:fence:{demo}' "$ahead"
  redis 2 set 'redlock:fence:{demo}' 5
  next_fence
  kill_server 0
  next_fence
  assert_equal "$(fence_at 1 demo)" "$fence"
  assert_equal "$(fence_at 2 demo)" "$fence"
  restart_server 0
  kill_server 1
  next_fence
}

@test "the counter outlives the lock by 30 days" {
  start_servers 1
  run -0 redlock-cli run -S "$SERVERS" -k demo -- true
  assert_in_range "$(redis 0 ttl 'redlock:fence:{demo}')" $((86400 * 30 - 60)) $((86400 * 30 + 60))
}

@test "a counter that is not a number is a clear error, and nothing stays locked" {
  start_servers 1
  export REDLOCK_SERVER=$SERVERS
  local garbage
  for garbage in junk -5 1.5 "" nan inf 9007199254740993 4503599627370496 \
    4503599627370495; do
    redis 0 set 'redlock:fence:{demo}' "$garbage"
    assert_refused 78 "the fence counter of this key was overwritten" redlock-cli run -k demo -n \
      -- touch "$BATS_TEST_TMPDIR/ran"
    assert_unlocked demo 0
    assert_refused 78 "the fence counter of this key was overwritten" \
      redlock-cli acquire -k demo -t 60s
    assert_unlocked demo 0
    assert_equal "$(redis 0 get 'redlock:fence:{demo}')" "$garbage"
  done
  assert [ ! -e "$BATS_TEST_TMPDIR/ran" ]
  # The largest fence there can be, which can be extended.
  redis 0 set 'redlock:fence:{demo}' 4503599627370494
  run -0 redlock-cli acquire -k demo -t 60s --token-file "$BATS_TEST_TMPDIR/lease"
  run -0 redlock-cli extend -t 61s --token-file "$BATS_TEST_TMPDIR/lease"
  run -0 redlock-cli release --token-file "$BATS_TEST_TMPDIR/lease"
  assert_equal "$(redis 0 get 'redlock:fence:{demo}')" 4503599627370495
  redis 0 del 'redlock:fence:{demo}'
  next_fence
}

@test "one broken counter of three costs one vote, two cost the quorum" {
  start_servers 3
  export REDLOCK_SERVER=$SERVERS
  redis 1 set 'redlock:fence:{demo}' junk
  next_fence
  redis 2 set 'redlock:fence:{demo}' junk
  assert_refused 78 "${SERVER_URL[1]}: the fence counter" redlock-cli run -k demo -n -- true
  assert_regex "$stderr" "${SERVER_URL[2]}: the fence counter"
  assert_unlocked demo 0 1 2
}
