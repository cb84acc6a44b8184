#!/usr/bin/env bats
# run --max-waiting: a queue of limited length.
load helper/common

setup() { setup_one_server; }

# hold_and_wait NAME…: holds the lock, and lets these wait for it in this order.
hold_and_wait() {
  hold holder
  find_promptly
  local name
  for name; do waits "$name" --max-waiting 2; done
}

@test "a run that finds the queue full exits with 75 at once, and the others get the lock" {
  hold_and_wait first second
  assert_refused 75 "demo: the queue is full (2 waiting)" \
    redlock-cli run -k demo --max-waiting 2 -- true
  run --separate-stderr redlock-cli run -k demo --max-waiting 1 -E 9 --json -w 1m -- true
  assert_equal "$status" 9
  assert_equal "$(jq -r '[.result, .message] | join(": ")' <<<"${stderr##*$'\n'}")" \
    "busy: the queue is full (2 waiting); the command was not run"
  release_hold holder
  wait_background first
  assert_equal "$status" 0
  wait_background second
  assert_equal "$status" 0
}

@test "a free lock is acquired, and each run has its own limit" {
  redlock-cli run -k demo --max-waiting 1 -- true
  hold_and_wait first second
  waits third --max-waiting 3
  release_hold holder
  wait_background third
  assert_equal "$status" 0
}

@test "waiters that were killed do not count" {
  hold_and_wait first second
  kill_child "${BACKGROUND_PID[first]}"
  kill_child "${BACKGROUND_PID[second]}"
  waits third --max-waiting 1
  release_hold holder
  wait_background third
  assert_equal "$status" 0
}

@test "acquire supports it, too" {
  hold_and_wait first second
  assert_refused 75 "demo: the queue is full (2 waiting)" \
    redlock-cli acquire -k demo --ttl 1m --max-waiting 2
  release_hold holder
  wait_background second
}

# bats test_tags=redis
@test "of eight simultaneous runs on three servers exactly one stays in the queue" {
  start_servers 2
  export REDLOCK_SERVER=$SERVERS
  hold holder
  find_promptly
  local number left=()
  for number in {1..8}; do start_waiter "$number" --max-waiting 1; done
  one_is_left() {
    left=()
    for number in {1..8}; do background_has_ended "$number" || left+=("$number"); done
    ((${#left[@]} == 1))
  }
  wait_until one_is_left
  for number in {1..8}; do
    [[ $number != "${left[0]}" ]] || continue
    wait_background "$number"
    assert_equal "$status" 75
  done
  wait_until note_waits "${left[0]}"
  release_hold holder
  wait_background "${left[0]}"
  assert_equal "$status" 0
}

@test "it is refused with options that do not wait, or come first" {
  assert_refused 64 "--max-waiting: must be at least 1; -n lets none wait" \
    redlock-cli run -k demo --max-waiting 0 -- true
  assert_refused 64 "--max-waiting: limits how many wait, and -n (or --wait 0) does not wait" \
    redlock-cli run -k demo --max-waiting 2 -n -- true
  assert_refused 64 "--max-waiting: limits how many wait" \
    redlock-cli acquire -k demo --ttl 1m --max-waiting 2 -w 0
  assert_refused 64 "--max-waiting: keeps newcomers out, and --supersede puts them first" \
    redlock-cli run -k demo --max-waiting 2 --supersede -- true
}
