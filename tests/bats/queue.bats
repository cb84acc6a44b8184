#!/usr/bin/env bats
# Waiters are queued: first in, first out.
load helper/common
load helper/supervision

setup() {
  setup_one_server
  find_promptly
  # Even on a busy machine no server may time out.
  export REDLOCK_SERVER_TIMEOUT=4s
}

# joins NAME [OPTION…]: a `run` that records its name when it has the lock; returns when it is
# queued.
joins() {
  local name=$1 before
  shift
  before=$(redis 0 zcard 'redlock:queue:{demo}')
  start_background "$name" "${PROMPTLY[@]}" redlock-cli run -k demo "$@" \
    -- sh -c 'echo "$0" >>"$1"' "$name" "$BATS_TEST_TMPDIR/order"
  wait_for_queued $((before + 1))
}

# kill_9 NAME: kills both of its guards at the same instant.
kill_9() { kill -KILL "${BACKGROUND_PID[$1]}" "$(holder_of "${BACKGROUND_PID[$1]}")"; }

order() { paste -sd ' ' "$BATS_TEST_TMPDIR/order"; }

all_end() {
  local name
  for name; do
    wait_background "$name"
    assert_equal "$name $status" "$name 0"
  done
}

@test "waiters are served in order of arrival, and nothing is left behind" {
  hold first
  local name names=(a b c d e f g h)
  for name in "${names[@]}"; do joins "$name"; done
  release_hold first
  all_end "${names[@]}"
  assert_equal "$(order)" "${names[*]}"
  assert_equal "$(keys_at 0)" ""
}

@test "killed waiters are skipped, wherever they were in the queue" {
  hold first
  local name
  for name in a b c d e f; do joins "$name"; done
  for name in a b e; do kill_9 "$name"; done
  release_hold first
  all_end c d f
  assert_equal "$(order)" "c d f"
  assert_equal "$(keys_at 0)" ""
}

@test "the first in the queue is skipped while it is stopped, and keeps its position" {
  hold first
  joins a
  joins b
  local holder
  holder=$(holder_of "${BACKGROUND_PID[a]}")
  kill -STOP "$holder"
  release_hold first
  all_end b
  assert_equal "$(order)" b
  kill -CONT "$holder"
  all_end a
  assert_equal "$(order)" "b a"
}

@test "a waiter that gives up, by a timeout or a signal, blocks no other" {
  hold first
  joins a
  # Long enough for a busy machine to let c join before it ends.
  joins b -w 12s
  joins c
  kill -TERM "${BACKGROUND_PID[a]}"
  wait_background a
  assert_equal "$status" 143
  wait_background b
  assert_equal "$status" 75
  wait_for_queued 1
  release_hold first
  all_end c
  assert_equal "$(order)" c
}

@test "a run that does not wait does not jump the queue" {
  # Not released by redlock-cli, so none is notified before the attempt: a waiter that is notified
  # and stopped is passed over after a second, however late a busy machine gets to the attempt.
  redis 0 set demo theirs
  joins a
  local holder
  holder=$(holder_of "${BACKGROUND_PID[a]}")
  kill -STOP "$holder"
  redis 0 del demo
  comes_too_early
  # The attempt has notified it. It is to be notified anew, and not to be passed over.
  forget_notification
  comes_too_early
  kill -CONT "$holder"
  all_end a
}

@test "free slots are no use behind an earlier waiter for the whole lock, and -n says so" {
  hold first --slots 3
  joins alone
  assert_refused 75 "demo: earlier waiters come first" \
    redlock-cli run -n -k demo --slots 3 -- true
  release_hold first
  all_end alone
}

comes_too_early() {
  run --separate-stderr redlock-cli run -n -k demo -- touch "$BATS_TEST_TMPDIR/entered"
  assert_failure 75
  assert_equal "$stderr" \
    "redlock-cli: demo: earlier waiters come first; the command was not run"
  assert [ ! -e "$BATS_TEST_TMPDIR/entered" ]
}

# As if the first waiter, which was notified, had polled since.
forget_notification() {
  local id mode polls ends notified rest
  id=$(redis 0 zrange 'redlock:queue:{demo}' 0 0)
  read -r mode polls ends notified rest <<<"$(redis 0 hget 'redlock:waiters:{demo}' "$id")"
  assert [ "$notified" -gt 0 ]
  redis 0 hset 'redlock:waiters:{demo}' "$id" "$mode $polls $ends 0 $rest"
}

@test "acquire waits in the same queue" {
  hold first
  joins a
  start_background mine "${PROMPTLY[@]}" redlock-cli acquire -k demo -t 60s \
    --token-file "$BATS_TEST_TMPDIR/lease"
  wait_for_queued 2
  joins b
  release_hold first
  wait_background mine
  assert_equal "$status" 0
  assert_equal "$(order)" a
  redlock-cli release --token-file "$BATS_TEST_TMPDIR/lease"
  all_end a b
  assert_equal "$(order)" "a b"
}

@test "a broken lock goes to the first in the queue" {
  start_background first redlock-cli run -k demo --on-lost warn -- sleep 60
  wait_for_key 0 demo
  joins a
  run redlock-cli release -k demo --force
  assert_success
  all_end a
}

@test "status shows who waits, and for how long" {
  hold first
  joins a --note 'the nightly one'
  joins b -s
  run redlock-cli status -k demo
  assert_success
  assert_line --regexp \
    "^  waiting: .*run pid ${BACKGROUND_PID[a]}: sh\\), \"the nightly one\", for "
  assert_line --regexp "^  waiting to share it: .*run pid ${BACKGROUND_PID[b]}: "
  run redlock-cli status -k demo --json
  assert_equal \
    "$(jq -c '.locks[0].waiters | [.count, .first[0].note, .first[0].shared, .first[1].shared]' \
      <<<"$output")" \
    '[2,"the nightly one",false,true]'
  release_hold first
  all_end a b
}

@test "-v reports how many waiters come first" {
  hold first
  joins a
  joins b -vv
  wait_for_stderr b "; 1 before us in the queue"
  release_hold first
  all_end a b
}

# bats test_tags=redis
@test "without the rights to publish and subscribe it works, and -v reports that" {
  redis 0 acl setuser default resetchannels
  hold first
  joins a -v
  joins b
  release_hold first
  all_end a
  assert_regex "$stderr" "cannot subscribe to notifications; polling: unix:.*NOPERM"
  all_end b
  assert_equal "$(order)" "a b"
}


# bats test_tags=redis
@test "a flood of notifications costs a waiter and its server few scripts" {
  hold first
  joins ours
  local word before
  for word in recheck granted standby taken other; do
    before=$(scripts_so_far)
    run -0 /usr/bin/python3 "$BATS_TEST_DIRNAME/helper/flood.py" "${SERVER_SOCKET[0]}" "$word" 5000
    # Twenty at once, then twenty a second.
    assert_in_range "$(($(scripts_so_far) - before))" 0 500
  done
  release_hold first
  all_end ours
}

# How many scripts the server has run.
scripts_so_far() {
  redis 0 info commandstats | sed -n 's/^cmdstat_evalsha:calls=\([0-9]*\).*/\1/p'
}
