#!/usr/bin/env bats
# Runs that work under a lease that was handed over: it is free when its keeper and they are done.
load helper/common

setup() {
  setup_one_server
  # With a ttl of 12 s, for a busy machine.
  export REDLOCK_SERVER_TIMEOUT=1s
  FILE=$BATS_TEST_TMPDIR/lease
}

teardown() {
  [[ -z ${HOLDER-} ]] || kill -KILL "$HOLDER" 2>/dev/null || true
  common_teardown
}

# detach OPTION…: a background holder keeps the lease in FILE; sets HOLDER to its pid.
detach() {
  redlock-cli acquire -k demo --detach --token-file "$FILE" "$@"
  HOLDER=$(redlock-cli status demo --json | jq .locks[0].holder.pid)
}

# use NAME OPTION…: a run works under the lease in FILE until release_hold NAME, or until it is
# stopped: then it writes `stopped`, and ends when the file NAME.dead exists.
use() {
  local name=$1
  shift
  # shellcheck disable=SC2016
  start_background "$name" env $(tr -d "'" <"$FILE") redlock-cli run -k demo -n "$@" -- \
    bash -c 'trap "echo stopped; until [[ -e \$0.dead ]]; do sleep 0.1; done; exit 5" TERM
      echo entered; until [[ -e $0.end ]]; do sleep 0.1; done' "$BATS_TEST_TMPDIR/$name"
  wait_for_stdout "$name" entered
}

# await_next: another run waits for the lock.
await_next() {
  start_background next redlock-cli run -k demo -- echo next
  wait_until has_waiter
}
has_waiter() { redlock-cli status demo --json | jq -e '.locks[0].waiters.count == 1' >/dev/null; }
is_waiting() { has_waiter && ! has_written "$(background_stdout next)" next; }

# users: the programs that use the lease, as `status` shows them.
users() { redlock-cli status demo --json | jq -r '[.locks[0].holder.users[]?.program] | join(" ")'; }
has_no_users() { [[ -z $(users) ]]; }

@test "at the end of --max-hold a run under the lease is stopped, and nothing starts before it is dead" {
  detach --max-hold 5s --ttl 1h
  use step -t 12s --grace 3s
  await_next
  wait_until has_ended "$HOLDER"
  wait_for_stdout step stopped
  is_waiting
  touch "$BATS_TEST_TMPDIR/step.dead"
  wait_background step
  assert_equal "$status" 5
  assert_regex "$stderr" 'demo: asked to stop by .* \("--max-hold 5s has ended"\); stopping'
  wait_background next
  assert_equal "$status $output" "0 next"
  assert_unlocked demo 0
}

@test "an early release leaves the lease to the run that works under it" {
  detach --max-hold 1h --ttl 12s
  use step -t 12s
  await_next
  run -0 redlock-cli release --token-file "$FILE"
  wait_until has_ended "$HOLDER"
  is_waiting
  release_hold step
  assert_equal "$status" 0
  wait_background next
  assert_equal "$status $output" "0 next"
  assert_unlocked demo 0
}

@test "the end of the script of --while-pid leaves the lease to a run in another tree" {
  start_background script bash -c 'redlock-cli acquire -k demo --while-pid $$ --ttl 12s \
    --token-file "$0"; echo acquired; until [[ -e $0.end ]]; do sleep 0.1; done' "$FILE"
  wait_for_stdout script acquired
  HOLDER=$(redlock-cli status demo --json | jq .locks[0].holder.pid)
  use step -t 12s
  await_next
  touch "$FILE.end"
  wait_background script
  wait_until lease_is_refused
  is_waiting
  release_hold step
  wait_background next
  assert_equal "$status $output" "0 next"
  unset HOLDER
}
# Only once the keeper has left, the lease is no longer extended for it.
lease_is_refused() { ! redlock-cli extend --token-file "$FILE" --ttl 12s; }

@test "a share and slots are left to their users, too" {
  local mode
  for mode in -s "--slots 2"; do
    # shellcheck disable=SC2086
    redlock-cli acquire -k demo --ttl 60s $mode --token-file "$FILE"
    # shellcheck disable=SC2086
    use "step$mode" $mode
    run -0 redlock-cli release --token-file "$FILE"
    run -75 redlock-cli run -k demo -n -- true
    release_hold "step$mode"
    assert_equal "$status" 0
    run -0 redlock-cli run -k demo -n -- true
    rm "$FILE"
  done
}

@test "the lease is free when the last of two runs ends, and no run comes after the release" {
  redlock-cli acquire -k demo --ttl 60s --token-file "$FILE"
  use first
  use second
  run -0 redlock-cli release --token-file "$FILE"
  # shellcheck disable=SC2046
  run -75 env $(tr -d "'" <"$FILE") redlock-cli run -k demo -n -- true
  release_hold second
  run -75 redlock-cli run -k demo -n -- true
  release_hold first
  run -0 redlock-cli run -k demo -n -- true
}

@test "a run that ends leaves the lease to its keeper, and the next run works under it" {
  redlock-cli acquire -k demo --ttl 60s --token-file "$FILE"
  use first
  release_hold first
  run has_no_users
  assert_success
  run -75 redlock-cli run -k demo -n -- true
  use second
  release_hold second
  run -0 redlock-cli release --token-file "$FILE"
  assert_unlocked demo 0
}

# bats test_tags=redis
@test "under a long lease a run outlives a silence of the server" {
  redlock-cli acquire -k demo --ttl 24h --token-file "$FILE"
  use step -t 2s --server-timeout 200ms --grace 200ms --events-fd 7 7>"$BATS_TEST_TMPDIR/events"
  pause_server 0
  # For longer than two ttls.
  wait_until is_in_trouble_for 4000
  resume_server 0
  release_hold step
  assert_equal "$status" 0
  run -75 redlock-cli run -k demo -n -- true
  run -0 redlock-cli release --token-file "$FILE"
}
is_in_trouble_for() {
  local first last
  [[ -v TROUBLE ]] || { grep -q renewal_failed "$BATS_TEST_TMPDIR/events" && TROUBLE=${EPOCHREALTIME/[.,]/}; }
  [[ -v TROUBLE ]] && ((${EPOCHREALTIME/[.,]/} - TROUBLE > $1 * 1000))
}

@test "status shows the run, and stop stops it" {
  redlock-cli acquire -k demo --ttl 1h --token-file "$FILE"
  use step -t 12s --grace 3s
  assert_equal "$(users)" bash
  run -0 redlock-cli status demo
  assert_output --regexp "^demo: held by .*; used by run pid ${BACKGROUND_PID[step]} on $(hostname): bash"
  start_background stop redlock-cli stop demo -w 60s
  wait_for_stdout step stopped
  touch "$BATS_TEST_TMPDIR/step.dead"
  wait_background step
  assert_equal "$status" 5
  wait_background stop
  # No process keeps the lease, so none releases it.
  assert_equal "$status" 75
  assert_regex "$stderr" "demo: asking run pid .*, under the lease of .*@.*, to stop; waiting"
  assert_regex "$stderr" "what ran under it has stopped within .*, but it is still held by"
}

@test "stop succeeds when the lease that its keeper has left is gone" {
  redlock-cli acquire -k demo --ttl 1h --token-file "$FILE"
  use step -t 12s --grace 3s
  run -0 redlock-cli release --token-file "$FILE"
  start_background stop redlock-cli stop demo -w 60s
  wait_for_stdout step stopped
  touch "$BATS_TEST_TMPDIR/step.dead"
  wait_background stop
  assert_equal "$status" 0
  wait_background step
  assert_equal "$status" 5
  assert_unlocked demo 0
}

@test "a break stops the run, with 79" {
  redlock-cli acquire -k demo --ttl 1h --token-file "$FILE"
  use step -t 3s --grace 500ms --server-timeout 300ms
  run -0 redlock-cli release --token-file "$FILE"
  run -0 redlock-cli release demo --force
  touch "$BATS_TEST_TMPDIR/step.dead"
  wait_background step
  assert_equal "$status" 79
}
