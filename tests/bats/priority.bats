#!/usr/bin/env bats
# run --priority: higher classes of waiters come first.
load helper/common

setup() { setup_one_server; }

# run_all NAME…: the lock is released, and they end.
run_all() {
  release_hold holder
  assert_equal "$status" 0
  local name
  for name; do
    wait_background "$name"
    assert_equal "$status" 0
  done
}

@test "a hotfix comes before the nightly queue, and within a class the first; the holder goes on" {
  hold holder
  find_promptly
  waits nightly-1
  waits nightly-2
  waits hotfix-1 --priority 5
  waits hotfix-2 --priority 5
  waits urgent --priority 9
  kill -0 "${BACKGROUND_PID[holder]}"
  run_all nightly-1 nightly-2 hotfix-1 hotfix-2 urgent
  assert_equal "$(ran)" "urgent hotfix-1 hotfix-2 nightly-1 nightly-2"
}

@test "status, its JSON, the events and -v show the class" {
  hold holder
  exec 7>"$BATS_TEST_TMPDIR/events"
  waits hotfix --priority 5 --events-fd 7
  run --separate-stderr redlock-cli status demo
  assert_regex "$output" "waiting: .*\"hotfix\", for .*, priority 5"
  assert_equal "$(redlock-cli status demo --json | jq '.locks[0].waiters.first[0].priority')" 5
  assert_equal "$(jq -s 'map(select(.event == "waiting"))[-1].priority' "$BATS_TEST_TMPDIR/events")" 5
  wait_for_stderr hotfix "1st in queue, priority 5"
  run_all hotfix
}

# bats test_tags=redis
@test "on three servers" {
  start_servers 2
  export REDLOCK_SERVER=$SERVERS
  hold holder
  waits nightly
  waits hotfix --priority 1
  run_all nightly hotfix
  assert_equal "$(ran)" "hotfix nightly"
}

@test "--supersede compares the time, not the class, and --max-waiting counts all classes" {
  hold holder
  waits old --priority 9 --supersede
  waits new --supersede
  wait_background old
  assert_equal "$status" 75
  assert_refused 75 "demo: the queue is full (1 waiting)" \
    redlock-cli run -k demo --max-waiting 1 --priority 9 -- true
  run_all new
  assert_equal "$(ran)" new
}

@test "acquire has it, too, and a number beyond 9 is refused" {
  hold holder
  waits nightly
  start_background hotfix redlock-cli acquire -k demo --ttl 1m --priority 3 --note hotfix \
    --token-file "$BATS_TEST_TMPDIR/lease"
  wait_until note_waits hotfix
  release_hold holder
  wait_background hotfix
  assert_equal "$status" 0
  redlock-cli release --token-file "$BATS_TEST_TMPDIR/lease"
  wait_background nightly
  assert_refused 64 "--priority" redlock-cli run -k demo --priority 10 -- true
}
