#!/usr/bin/env bats
# Several keys at once: all or none.
load helper/common

setup() { setup_one_server; }

@test "the command runs when all are locked, and all are free again when it has ended" {
  run redlock-cli run -k b -k a -k b -- sh -c '
    redlock-cli status --exit-code -q -k a; echo $?
    redlock-cli status --exit-code -q -k b; echo $?'
  assert_success
  assert_output $'75\n75'
  assert_equal "$(redis 0 exists a b)" 0
}

# bats test_tags=redis
@test "the command gets keys, tokens and fences on a line each, sorted, and one handle" {
  run redlock-cli run -k b -k a -- sh -c 'echo "$REDLOCK_KEY"
    [ "$(redis-cli -s "$0" mget a b)" = "$REDLOCK_TOKEN" ] && echo tokens
    [ "$(redis-cli -s "$0" mget "redlock:fence:{a}" "redlock:fence:{b}")" = "$REDLOCK_FENCE" ] &&
      echo fences
    redlock-cli extend -t 9s' "${SERVER_SOCKET[0]}"
  assert_success
  assert_output $'a\nb\ntokens\nfences'
}

@test "one is busy: nothing is locked, and the message names it" {
  redis 0 set b theirs
  run --separate-stderr redlock-cli run -n -k a -k b -- touch "$BATS_TEST_TMPDIR/ran"
  assert_equal "$status" 75
  assert_regex "$stderr" "^redlock-cli: b: held by a foreign client"
  assert [ ! -e "$BATS_TEST_TMPDIR/ran" ]
  assert_equal "$(redis 0 exists a)" 0
  run --separate-stderr redlock-cli run -n --json -k a -k b -- true
  assert_equal "$(jq -r '.result, .key' <<<"$stderr" | paste -sd ' ')" "busy b"
}

@test "while it waits for one, it keeps the others for longer than their ttl" {
  redis 0 set b theirs
  start_background ours redlock-cli run -t 9s -k a -k b -- echo entered
  wait_for_stderr ours "waiting for b"
  redis 0 set timer x px 13500
  wait_for_no_key 0 timer
  run redlock-cli run -n -k a -- true
  assert_failure 75
  redis 0 del b
  wait_background ours
  assert_equal "$status $output" "0 entered"
  assert_equal "$(redis 0 exists a b)" 0
}

@test "a waiter that gives up, by a timeout or ^C, keeps none" {
  redis 0 set b theirs
  run redlock-cli run -w 300ms -k a -k b -- true
  assert_failure 75
  assert_equal "$(redis 0 exists a)" 0
  start_background ours redlock-cli run -k a -k b -- true
  wait_for_stderr ours "waiting for b"
  kill -INT "${BACKGROUND_PID[ours]}"
  wait_background ours
  assert_equal "$status" 130
  assert_equal "$(redis 0 exists a)" 0
}

@test "a lost one ends the command, and the others are released" {
  start_background ours redlock-cli run -t 9s -k a -k b -k c -- sh -c 'echo ready; exec sleep 1000'
  wait_for_stdout ours ready
  redis 0 del b
  wait_background ours
  assert_equal "$status" 79
  assert_regex "$stderr" "^redlock-cli: b: lost: "
  assert_equal "$(redis 0 exists a b c)" 0
}

@test "in any order, repeatedly: never a deadlock, never one left locked" {
  local round
  for round in {1..60}; do
    echo "run -w 90s -k a -k b -- true"
    echo "run -w 90s -k b -k a -- true"
    echo "run -n -k c -k a -- true"
  done >"$BATS_TEST_TMPDIR/lines"
  # Busy (75) is fine for those that do not wait; a deadlock would be a 75 for those that do.
  run xargs -a "$BATS_TEST_TMPDIR/lines" -P 6 -L 1 \
    sh -c 'shift; redlock-cli run -q --server-timeout 4s "$@"; s=$?; [ $s = 0 ] || echo "$1 $s"' -
  refute_line --regexp '^-w'
  refute_line --regexp ' (64|69|7[016-9])$'
  assert_equal "$(redis 0 exists a b c)" 0
}

# bats test_tags=redis
@test "acquire passes on all, extend and release handle all" {
  local file=$BATS_TEST_TMPDIR/lease before
  redlock-cli acquire -t 20s -k b -k a --token-file "$file"
  assert_equal "$(. "$file" && echo "$REDLOCK_TOKEN")" "$(redis 0 mget a b)"
  before=$(redis 0 pexpiretime a)
  redlock-cli extend -t 60s --token-file "$file"
  assert [ "$(redis 0 pexpiretime a)" -gt "$before" ]
  assert [ "$(redis 0 pexpiretime b)" -gt "$before" ]
  run redlock-cli release --token-file "$file" -k a
  assert_failure 64
  assert_output --partial "the lease is for a, b, not for a"
  run --separate-stderr redlock-cli release --json --token-file "$file" -k a -k b
  assert_success
  assert_equal "$(jq -r '.result, .keys[].key' <<<"$output" | paste -sd ' ')" "released a b"
  assert_equal "$(redis 0 exists a b)" 0
}

# bats test_tags=redis
@test "eval of --export, and tokens on stdout: a line each" {
  eval "$(redlock-cli acquire -t 20s --export -k b -k a)"
  assert_equal "$REDLOCK_TOKEN" "$(redis 0 mget a b)"
  redlock-cli release
  unset REDLOCK_KEY REDLOCK_TOKEN REDLOCK_FENCE REDLOCK_LEASE
  run redlock-cli acquire -t 20s -k b -k a
  assert_output "$(redis 0 mget a b)"
}

@test "acquire --json and run --json name each lease" {
  run redlock-cli acquire -t 20s --json -k b -k a
  assert_equal "$(jq -r '[.leases[] | .key, .token] | join(" ")' <<<"$output")" \
    "a $(redis 0 get a) b $(redis 0 get b)"
  redlock-cli release --force -q -k a -k b
  run --separate-stderr redlock-cli run --json -k b -k a -- true
  assert_equal "$(jq -r '[.leases[] | .key, .fence] | join(" ")' <<<"$stderr")" \
    "a $(redis 0 get 'redlock:fence:{a}') b $(redis 0 get 'redlock:fence:{b}')"
}

# bats test_tags=redis
@test "each lease lasts its whole ttl from the moment it is passed on" {
  local free_at
  redis 0 set b theirs px 2500
  free_at=$(redis 0 pexpiretime b)
  redlock-cli acquire -q -t 10s -k a -k b >/dev/null
  # Not from the time when a was granted or renewed, before b was.
  assert [ "$(redis 0 pexpiretime a)" -ge $((free_at + 10000)) ]
}

# bats test_tags=redis
@test "extend and release continue after a lost one, and exit with 79" {
  eval "$(redlock-cli acquire -t 20s --export -k a -k b -k c)"
  redis 0 del b
  local before
  before=$(redis 0 pexpiretime c)
  run redlock-cli extend -t 60s
  assert_failure 79
  assert_output --regexp "^redlock-cli: b: cannot extend"
  assert [ "$(redis 0 pexpiretime c)" -gt "$before" ]
  run redlock-cli release
  assert_failure 79
  assert_equal "$(redis 0 exists a b c)" 0
}

@test "release --force breaks each, and --if-fence is for one" {
  redlock-cli acquire -k a -k b --ttl 1m >/dev/null
  run redlock-cli release --force -k a -k b --if-fence 3
  assert_failure 64
  redlock-cli release --force -q -k a -k b
  assert_equal "$(redis 0 exists a b)" 0
}

@test "for --while-pid: all are kept, and all are released when the process ends" {
  start_background shell \
    bash -c 'redlock-cli acquire -t 9s -k a -k b --while-pid $$ >/dev/null
      echo ready; exec sleep 1000'
  wait_for_stdout shell ready
  redis 0 set timer x px 12000
  wait_for_no_key 0 timer
  assert_equal "$(redis 0 exists a b)" 2
  kill -KILL "${BACKGROUND_PID[shell]}"
  wait_for_no_key 0 a
  wait_for_no_key 0 b
}

@test "more keys than a variable can hold are refused" {
  local -a many=()
  local i
  for i in {1..65}; do many+=(-k "key$i"); done
  run redlock-cli run "${many[@]}" -- true
  assert_failure 64
  assert_output "redlock-cli: --key: at most 64 keys at a time, of 32768 bytes together"
}

# bats test_tags=redis
@test "the same on three servers with one dead" {
  start_servers 2
  export REDLOCK_SERVER=$SERVERS
  kill_server 2
  run redlock-cli run -n -k a -k b -- sh -c 'redlock-cli status --exit-code -q -k a -k b; echo $?'
  assert_output --regexp '75$'
  assert_equal "$(redis 0 exists a b) $(redis 1 exists a b)" "0 0"
}

@test "status names the key that a run still waits for, and its place; no command has held the lock" {
  start_background first redlock-cli run -q -k b -- sleep 60
  wait_for_key 0 b
  start_background second redlock-cli run -k b -- true
  wait_for_stderr second "waiting for b"
  start_background both redlock-cli run -k a -k b -k c -- sh -c 'echo started; exec sleep 60'
  wait_for_stderr both "waiting for b"

  run redlock-cli status a
  assert_output --partial "no command runs yet: it waits for b, 2nd in queue"
  run redlock-cli status
  assert_output --partial "(waits for b)"
  run redlock-cli status a --max-held 1ms
  assert_success
  run redlock-cli status a --json
  assert_equal "$(jq -c '.locks[0].holder.waits_for' <<<"$output")" '{"key":"b","ahead":1}'
  run redlock-cli status a --openmetrics
  assert_line 'redlock_lock_held_seconds{key="a"} 0.000'

  kill "${BACKGROUND_PID[first]}"
  wait_for_stdout both started
  run redlock-cli status a b
  refute_output --partial "waits for"
  run redlock-cli status a --max-held 1ms
  assert_failure 1
  kill "${BACKGROUND_PID[both]}"
}

@test "status names the key that a share waits for" {
  redis 0 set b theirs
  start_background both redlock-cli run -s -k a -k b -- true
  wait_for_stderr both "waiting for b"
  run redlock-cli status a
  assert_line --regexp "shared: .*; no command runs yet: it waits for b, 1st in queue"
  run redlock-cli status a --max-held 1ms
  assert_success
}
