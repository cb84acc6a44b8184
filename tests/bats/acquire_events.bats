#!/usr/bin/env bats
# acquire --events-fd: the events of a lease, also after acquire has ended.
load helper/common
load helper/supervision
load helper/while_pid

setup() {
  setup_supervision
  EVENTS=$BATS_TEST_TMPDIR/events
  FILE=$BATS_TEST_TMPDIR/lease
  exec 8>>"$EVENTS"
}

valid() { /usr/bin/python3 "$BATS_TEST_DIRNAME/helper/valid_output.py" <"$EVENTS"; }

# The names of the events, in one line.
happened() { jq -r .event "$EVENTS" | paste -sd ' '; }
# The same, without attempts that took too long: on a busy machine they may precede the grant of a
# free lock.
happened_at_last() { happened | sed -E 's/^(waiting )+//'; }
has_happened() { grep -q "\"event\":\"$1\"" "$EVENTS"; }
# of EVENT FILTER: the result of a jq filter on the first event of that name.
of() { jq -rs "[.[] | select(.event == \"$1\")][0] | $2" "$EVENTS"; }

# detach MAX-HOLD [OPTION…]
detach() {
  run -0 redlock-cli acquire -k demo --detach --max-hold "$1" --token-file "$FILE" \
    --events-fd 8 "${@:2}"
}

@test "by hand: only the wait and the grant" {
  hold first
  start_background ours redlock-cli acquire -k demo -t 1m --events-fd 8
  wait_until has_happened waiting
  release_hold first
  wait_background ours
  assert_equal "$status" 0
  run -0 redlock-cli release demo --force
  valid
  assert_regex "$(happened)" '^waiting (waiting )*acquired$'
  assert [ "$(of acquired .fence)" -gt 0 ]
}

@test "a waiter that is superseded" {
  hold first
  start_background old redlock-cli acquire -k demo -t 1m --supersede --events-fd 8
  wait_for_queued 1
  start_background new redlock-cli run -k demo --supersede --note "commit 2" -- true
  wait_background old
  assert_equal "$status" 75
  release_hold first
  wait_background new
  valid
  assert_regex "$(happened)" '^waiting (waiting )*superseded$'
  assert_equal "$(of superseded .superseded_by.note)" "commit 2"
}

@test "a wait that ends without the lock: not_acquired has the reason, and is the last" {
  local option
  hold first
  for option in "-t 1m" "--while-pid $$" "--detach --max-hold 1h --token-file $FILE"; do
    : >"$EVENTS"
    # shellcheck disable=SC2086
    run -75 redlock-cli acquire -k demo -n --events-fd 8 $option
    valid
    assert_equal "$(happened) $(of not_acquired '"\(.result) \(.exit_code)"')" \
      "not_acquired busy 75"
    : >"$EVENTS"
    # shellcheck disable=SC2086
    start_background ours redlock-cli acquire -k demo --events-fd 8 $option
    wait_until has_happened waiting
    kill -INT "${BACKGROUND_PID[ours]}"
    wait_background ours
    valid
    assert_regex "$(happened) $(of not_acquired '"\(.result) \(.exit_code)"')" \
      '^waiting (waiting )*not_acquired interrupted 130$'
  done
  release_hold first
}

@test "a lease that cannot be passed to the caller is released" {
  local option
  for option in "" "--while-pid $$" "--detach --max-hold 1h --token-file $FILE --json"; do
    : >"$EVENTS"
    # shellcheck disable=SC2086
    run -71 sh -c 'redlock-cli acquire -k demo -t 1m --events-fd 8 "$@" >/dev/full' - $option
    valid
    assert_equal "$(happened_at_last) $(of released .confirmed)" "acquired released true"
  done
}

@test "--while-pid: released when the process has ended" {
  start_script ours --events-fd 8
  assert_equal "$(happened_at_last)" acquired
  touch "$BATS_TEST_TMPDIR/end"
  wait_background ours
  wait_until no_holders
  valid
  assert_equal "$(happened_at_last) $(of released .confirmed)" "acquired released true"
  assert_equal "$(jq -s 'map(.key == "demo" and .fence > 0) | all' "$EVENTS")" true
}

@test "--while-pid: a lost lease" {
  start_script ours -t 6s --grace 300ms --server-timeout 1s --events-fd 8
  redis 0 set demo theirs
  wait_until no_holders
  assert_tree_dead
  valid
  assert_regex "$(happened_at_last) $(of stopping .why) $(of released .confirmed)" \
    "^acquired (renewal_failed )?lost stopping released lost false$"
  assert_regex "$(of lost .reason)" foreign
}

@test "--while-pid: --on-lost warn stops nothing" {
  start_script ours -t 6s --grace 300ms --server-timeout 1s --on-lost warn --events-fd 8
  redis 0 set demo theirs
  wait_until no_holders
  assert_regex "$(happened_at_last)" "^acquired (renewal_failed )?lost released$"
  touch "$BATS_TEST_TMPDIR/end"
  wait_background ours
  assert_equal "$status" 23
}

# bats test_tags=redis
@test "--while-pid: of several leases the lost one is named, even if another is renewed later" {
  start_pet
  hold first
  pet_begins waiter redlock-cli acquire -k demo -k other -t 6s --grace 300ms --server-timeout 1s \
    --while-pid "$PET" --events-fd 8
  wait_until has_happened waiting
  # While it is paused, the lease has not been passed on, so the script is not stopped yet.
  kill -STOP "${JOB_PID[waiter]}"
  release_hold first
  wait_until has_happened acquired
  redis 0 set other theirs
  wait_until expires_after 0 "$(($(expires_at 0) + 4500))"
  kill -CONT "${JOB_PID[waiter]}"
  wait_until no_holders
  wait_background pet
  valid
  assert_equal "$(of lost .key) $(of stopping .why)" "other lost"
  assert_regex "$stderr" "redlock-cli: other: lost: it is held by a foreign client"
}

@test "--while-pid: the end of --max-hold" {
  start_script ours --max-hold 12s --grace 300ms --events-fd 8
  wait_until no_holders
  assert_tree_dead
  valid
  assert_equal "$(happened_at_last) $(of stopping .why) $(of released .confirmed)" \
    "acquired stopping released max_hold true"
  assert [ "$(of released .held_ms)" -ge 12000 ]
}

@test "--detach: released by hand, or at the end of --max-hold" {
  detach 1h
  run -0 redlock-cli release --token-file "$FILE"
  wait_until has_happened released
  valid
  assert_equal "$(happened_at_last) $(of released .confirmed)" "acquired released true"
  : >"$EVENTS"
  detach 300ms
  wait_until has_happened released
  assert_equal "$(happened_at_last) $(of released .confirmed)" "acquired released true"
  assert [ "$(of released .held_ms)" -ge 300 ]
}

@test "--detach: a lock that is broken is lost" {
  detach 1h -t 10s
  run -0 redlock-cli release demo --force --reason "in the way"
  wait_until has_happened released
  valid
  assert_regex "$(happened_at_last) $(of released .confirmed)" \
    "^acquired (renewal_failed )?lost released false$"
  assert_regex "$(of lost .reason)" "in the way"
}

# bats test_tags=redis
@test "--detach: an outage that the lease survives" {
  detach 1h -t 20s --server-timeout 200ms
  pause_server 0
  wait_until has_happened renewal_failed
  resume_server 0
  wait_until has_happened renewed_again
  run -0 redlock-cli release --token-file "$FILE"
  wait_until has_happened released
  valid
  assert_regex "$(happened_at_last)" \
    "^acquired (renewal_failed renewed_again )+(renewal_failed )?released$"
}

@test "a reader of events from a pipe sees their end when the lock is released" {
  mkfifo "$BATS_TEST_TMPDIR/pipe"
  start_background reader cat "$BATS_TEST_TMPDIR/pipe"
  exec 8>"$BATS_TEST_TMPDIR/pipe"
  detach 1h
  exec 8>&-
  run -0 redlock-cli release --token-file "$FILE"
  wait_background reader
  EVENTS=$(background_stdout reader)
  assert_equal "$(happened_at_last)" "acquired released"
}

@test "a descriptor that is not open for writing, or is used otherwise, is refused before the lock is acquired" {
  local fd
  for fd in 1 2; do
    assert_refused 64 "--events-fd: acquire needs a descriptor of its own for events, 3 or higher" \
      redlock-cli acquire -k demo -t 1m --events-fd "$fd"
  done
  assert_refused 64 "--events-fd: descriptor 9 is not open for writing" \
    redlock-cli acquire -k demo -t 1m --events-fd 9
  assert_equal "$(redis 0 exists demo)" 0
}
