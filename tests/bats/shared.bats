#!/usr/bin/env bats
# Shared locks and slots.
load helper/common
load helper/supervision

setup() { setup_one_server; }

@test "readers share it, a writer is excluded, and sees who they are" {
  hold one -s
  hold two -s
  run --separate-stderr redlock-cli run -n -k demo -- true
  assert_failure 75
  assert_regex "$stderr" \
    "demo: held by processes that share it, the latest .*run pid ${BACKGROUND_PID[two]}: "
  run -0 redlock-cli run -n -s -k demo -- true
  release_hold one
  run -75 redlock-cli run -n -x -k demo -- true
  release_hold two
  run -0 redlock-cli run -n -k demo -- true
  assert_equal "$(keys_at 0)" ""
}

@test "a writer excludes readers" {
  hold one
  run -75 redlock-cli run -n -s -k demo -- true
  run -75 redlock-cli run -n --slots 3 -k demo -- true
  release_hold one
}

@test "a waiting writer comes before later readers" {
  hold reader -s
  find_promptly
  start_background writer "${PROMPTLY[@]}" redlock-cli run -k demo \
    -- sh -c 'echo writer >>"$0"' "$BATS_TEST_TMPDIR/order"
  wait_for_queued 1
  assert_refused 75 "demo: an earlier waiter wants it alone and comes first; held by" \
    redlock-cli run -n -s -k demo --server-timeout 4s -- true
  start_background late "${PROMPTLY[@]}" redlock-cli run -s -k demo \
    -- sh -c 'echo reader >>"$0"' "$BATS_TEST_TMPDIR/order"
  wait_for_queued 2
  release_hold reader
  wait_background writer
  wait_background late
  assert_equal "$(paste -sd ' ' "$BATS_TEST_TMPDIR/order")" "writer reader"
}

@test "a share is renewed while its command runs, and ends with its own ttl when its guards are killed" {
  start_background short redlock-cli run -s -t 9s -k demo -- sleep 60
  wait_for_key 0 demo
  redis 0 set timer x px 12000
  wait_for_no_key 0 timer
  run -75 redlock-cli run -n -k demo -- true
  kill -KILL "${BACKGROUND_PID[short]}" "$(holder_of "${BACKGROUND_PID[short]}")"
  run -0 redlock-cli run -w 20s -k demo -- true
}

@test "a share that was deleted ends its command with 79, and no other" {
  start_background one redlock-cli run -s -t 9s -k demo -- sleep 60
  wait_for_key 0 'redlock:readers:{demo}'
  local share
  share=$(redis 0 zrange 'redlock:readers:{demo}' 0 0)
  hold two -s -t 9s
  redis 0 zrem 'redlock:readers:{demo}' "$share" >/dev/null
  wait_background one
  assert_equal "$status" 79
  release_hold two
  assert_equal "$status" 0
}

@test "a shared lock whose key was deleted ends all its commands with 79" {
  hold first -s -t 6s
  hold second --slots 2 -t 6s
  redis 0 del demo >/dev/null
  local name
  for name in first second; do
    wait_background "$name"
    assert_equal "$status" 79
    assert_regex "$stderr" "demo: lost: it is gone"
  done
  run -0 redlock-cli run -k demo -s -n -- true
}

@test "acquire, extend and release of a share, in the environment and in a file" {
  hold other -s
  eval "$(redlock-cli acquire -s -k demo -t 60s --export)"
  assert_equal "$(redis 0 zcard 'redlock:readers:{demo}')" 2
  run -0 redlock-cli extend -t 90s
  run -0 redlock-cli release
  run -0 redlock-cli release
  unset REDLOCK_LEASE REDLOCK_KEY REDLOCK_TOKEN REDLOCK_FENCE
  run -0 redlock-cli acquire -k demo --slots 2 -t 60s --token-file "$BATS_TEST_TMPDIR/lease"
  assert_equal "$(. "$BATS_TEST_TMPDIR/lease" && echo "$REDLOCK_SLOT")" 0
  run -0 redlock-cli extend -t 90s --token-file "$BATS_TEST_TMPDIR/lease"
  run -0 redlock-cli release --token-file "$BATS_TEST_TMPDIR/lease"
  release_hold other
  # A release by hand is remembered for as long as the lease would have lasted.
  assert_equal "$(keys_at 0)" "redlock:released:{demo}"
}

@test "release by hand refuses the share of a run, and --force ends them all" {
  start_background one redlock-cli run -s -t 9s -k demo \
    -- sh -c 'env >"$0.new"; mv "$0.new" "$0"; sleep 60' "$BATS_TEST_TMPDIR/env"
  wait_until test -s "$BATS_TEST_TMPDIR/env"
  run -64 env "$(grep ^REDLOCK_LEASE= "$BATS_TEST_TMPDIR/env")" redlock-cli release
  run -0 redlock-cli release -k demo --force
  run -0 redlock-cli run -n -k demo -- true
  wait_background one
  assert_equal "$status" 79
}

@test "the command knows its slot, and slots of living holders differ" {
  hold one --slots 2
  run redlock-cli run -n --slots 2 -k demo -- sh -c 'echo "$REDLOCK_SLOT"'
  assert_success
  assert_output 1
  start_background two redlock-cli run --slots 2 -k demo -- sh -c 'echo "$REDLOCK_SLOT"; sleep 60'
  wait_for_stdout two 1
  run -75 redlock-cli run -n --slots 2 -k demo -- true
  run redlock-cli run -n --slots 3 -k demo -- sh -c 'echo "$REDLOCK_SLOT"'
  assert_output 2
  run -75 redlock-cli run -n -k demo -- true
  run -0 redlock-cli run -n -s -k demo -- true
  release_hold one
  run redlock-cli run -n --slots 2 -k demo -- sh -c 'echo "$REDLOCK_SLOT"'
  assert_output 0
}

@test "slots are granted in order of arrival, and a free one is available at once" {
  hold one --slots 1
  local name
  find_promptly
  for name in a b c; do
    start_background "$name" "${PROMPTLY[@]}" redlock-cli run --slots 1 -k demo \
      -- sh -c 'echo "$0" >>"$1"' "$name" "$BATS_TEST_TMPDIR/order"
    wait_for_queued "$((++count))"
  done
  release_hold one
  for name in a b c; do wait_background "$name"; done
  assert_equal "$(paste -sd ' ' "$BATS_TEST_TMPDIR/order")" "a b c"
}

@test "status shows readers and slots" {
  hold reader -s --note 'a long report'
  hold slotted --slots 4
  run redlock-cli status -k demo --server-timeout 4s
  assert_line --regexp '^  shared: .*"a long report", for [0-9.]+m?s, last renewed [0-9]+s ago$'
  assert_line --regexp "^  slot 0: .*run pid ${BACKGROUND_PID[slotted]}: "
  run redlock-cli status -k demo --json --server-timeout 4s
  assert_equal \
    "$(jq -c '.locks[0] | [.holder.shared, .shares.count, ([.shares.first[].slot] | sort)]' \
      <<<"$output")" '[true,2,[null,0]]'
  run -75 redlock-cli status -k demo --exit-code --server-timeout 4s
  release_hold reader
  release_hold slotted
}

@test "--json and --status-fd show the share and the slot" {
  run redlock-cli acquire -k demo --slots 2 -t 60s --json
  assert_equal "$(jq -c '[.shared, .slot]' <<<"$output")" '[true,0]'
  redlock-cli run -k demo --slots 2 --status-fd 3 -- true 3>"$BATS_TEST_TMPDIR/report"
  assert_equal "$(jq -c '[.shared, .slot]' "$BATS_TEST_TMPDIR/report")" '[true,1]'
}

@test "within a shared run: a share is inherited, the whole lock is refused at once" {
  run -0 redlock-cli run -s -k demo -- redlock-cli run -s -n -k demo -- true
  run --separate-stderr redlock-cli run -s -k demo -- redlock-cli run -k demo -- true
  assert_failure 64
  assert_regex "$stderr" "the enclosing run or acquire only shares the lock"
  assert_refused 64 "nor another slot" redlock-cli run -s -k demo \
    -- redlock-cli run --slots 2 -k demo -- true
  run -0 redlock-cli run -k demo -- redlock-cli run -s -n -k demo -- true
  run redlock-cli run --slots 2 -k demo -- redlock-cli run --slots 2 -n -k demo \
    -- sh -c 'echo "$REDLOCK_SLOT"'
  assert_output 0
  run redlock-cli run -k demo -- redlock-cli run --slots 2 -n -k demo \
    -- sh -c 'echo "$REDLOCK_SLOT"'
  assert_output 0
}

@test "a slot of an outer run is not passed on to a command under another lock" {
  run redlock-cli run --slots 2 -k demo -- redlock-cli run -k other \
    -- sh -c 'echo "${REDLOCK_SLOT-none}"'
  assert_output none
}

@test "meaningless combinations are refused" {
  assert_refused 64 "cannot be combined" redlock-cli run -s -x -k demo -- true
  assert_refused 64 "cannot be combined" redlock-cli run -s --slots 2 -k demo -- true
  assert_refused 64 "at least 1" redlock-cli run --slots 0 -k demo -- true
  assert_refused 64 "from 1 to 1000" redlock-cli run --slots 1001 -k demo -- true
  assert_refused 64 "only one -k" redlock-cli run --slots 2 -k demo -k other -- true
  REDLOCK_SHARED=yes run -0 redlock-cli run -x -k demo -- true
}

@test "several keys can be shared together" {
  run redlock-cli run -s -k a -k b \
    -- sh -c 'env -u REDLOCK_HELD -u REDLOCK_LEASE redlock-cli run -n -s -k b -k a -- echo inside
    env -u REDLOCK_HELD -u REDLOCK_LEASE redlock-cli run -n -k b -- true 2>/dev/null; echo $?'
  assert_output $'inside\n64'
}

# bats test_tags=redis
@test "foreign clients are excluded, and exclude us, with readers, slots and waiters present" {
  /usr/bin/python3 -c 'import redis' 2>/dev/null || skip "python3-redis is not installed"
  recipe() { /usr/bin/python3 "$BATS_TEST_DIRNAME/helper/recipes.py" "$SERVER_SOCKET" "$@"; }
  hold reader -s
  hold slotted --slots 2
  start_background writer redlock-cli run -k demo -- true
  wait_for_queued 1
  run recipe set-nx-px acquire demo
  assert_failure
  release_hold reader
  release_hold slotted
  wait_background writer
  assert_equal "$status" 0
  local token
  token=$(recipe set-nx-px acquire demo)
  run -75 redlock-cli run -n -s -k demo -- true
  run -75 redlock-cli run -n --slots 9 -k demo -- true
  start_background writer redlock-cli run -s -k demo -- echo in
  wait_for_queued 1
  recipe set-nx-px release demo "$token"
  wait_background writer
  assert_equal "$status $output" "0 in"
}

# bats test_tags=redis
@test "on five servers: a share that one of them lost is restored there, with its slot" {
  local i
  for i in 1 2 3 4; do start_server; done
  export REDLOCK_SERVER=$SERVERS
  hold one --slots 2 -t 12s
  # A quorum is enough for the start.
  for i in 0 1 2; do wait_for_key "$i" 'redlock:slots:{demo}'; done
  redis 3 flushall >/dev/null
  redis 4 flushall >/dev/null
  for i in 3 4; do
    wait_until eval '[[ $(redis '"$i"' hget "redlock:slots:{demo}" 0) == \
      "$(redis 0 hget "redlock:slots:{demo}" 0)" ]]'
  done
  run redlock-cli run -n --slots 2 -k demo -- sh -c 'echo "$REDLOCK_SLOT"'
  assert_output 1
  release_hold one
  assert_equal "$status" 0
}
