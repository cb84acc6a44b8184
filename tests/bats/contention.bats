#!/usr/bin/env bats
# bats file_tags=smoke
# Several processes compete for one lock: the holder keeps it, and the others report the holder.
load helper/common

setup() { setup_one_server; }

has_lines() { (($(wc -l <"$2") >= $1)); }

@test "a command of thirty seconds holds a lock of nine throughout" {
  # The command itself reads the key: each line has its value and its remaining ttl at one instant.
  local seen=$BATS_TEST_TMPDIR/seen at start=$SECONDS
  start_background holder redlock-cli run -t 9s -k demo -- sh -c '
    echo "$REDLOCK_TOKEN"
    exec redis-cli -s "$0" -r 300 -i 0.1 eval \
      "return redis.call(\"get\", KEYS[1]) .. \" \" .. redis.call(\"pttl\", KEYS[1])" 1 demo' \
    "$SERVER_SOCKET"
  seen=$(background_stdout holder)
  for at in 2 75 150 225; do
    wait_until has_lines "$at" "$seen"
    run redlock-cli run -n -k demo --server-timeout 4s -- touch "$BATS_TEST_TMPDIR/entered"
    assert_failure 75
  done
  wait_background holder
  assert_equal "$status" 0
  assert_equal "$stderr" ""
  assert [ ! -e "$BATS_TEST_TMPDIR/entered" ]
  assert [ $((SECONDS - start)) -ge 29 ]

  # The key never disappeared (the script would have failed), never belonged to another process, and
  # always had an expiry within the ttl.
  assert_equal "${#lines[@]}" 301
  local token=${lines[0]}
  run awk -v token="$token" '
    NR == 1 { next }
    $1 != token || $2 <= 0 || $2 > 9000 { print "line", NR ":", $0 }
    $2 > last { ++renewals }
    { last = $2 }
    END { print (renewals >= 4 ? "renewed" : "renewed only " renewals " times") }' "$seen"
  assert_output renewed
  assert_equal "$(keys_at 0)" ""
}

@test "a second run with -n reports who holds the lock" {
  hold first --note 'release 1.2'
  run --separate-stderr redlock-cli run -n -k demo -- touch "$BATS_TEST_TMPDIR/entered"
  assert_failure 75
  assert_equal "$output" ""
  assert_equal "${#stderr_lines[@]}" 1
  assert_regex "$stderr" "^redlock-cli: demo: held by "
  assert_regex "$stderr" \
    " $(id -un 2>/dev/null || id -u)@$(uname -n) \\(run pid ${BACKGROUND_PID[first]}: sh\\)"
  assert_regex "$stderr" '"release 1.2"'
  assert [ ! -e "$BATS_TEST_TMPDIR/entered" ]
  release_hold first
  assert_equal "$status" 0
}

@test "the holder's record cannot harm a terminal" {
  hold first --note $'red \e[31m and \u202e bidi\nnext line'
  run --separate-stderr redlock-cli run -n -k demo -- true
  assert_failure 75
  assert_equal "${#stderr_lines[@]}" 1
  refute grep -qP '[\x00-\x08\x0b-\x1f\x7f]|\xe2\x80\xae' <<<"$stderr"
}

@test "a second run with -E 0 -q ends without output" {
  hold first
  run --separate-stderr redlock-cli run -n -E 0 -q -k demo -- touch "$BATS_TEST_TMPDIR/entered"
  assert_success
  assert_equal "$output" ""
  assert_equal "$stderr" ""
  assert [ ! -e "$BATS_TEST_TMPDIR/entered" ]
}

@test "-E replaces 75 and nothing else" {
  hold first
  local code
  for code in 0 1 255; do
    run redlock-cli run -n -E "$code" -k demo -- true
    assert_equal "$status" "$code"
  done
  run redlock-cli run -n -E 5 -k other -- sh -c 'exit 75'
  assert_failure 75
}

@test "a waiter runs when the holder ends, and not before" {
  hold first
  start_background third redlock-cli run -w 20s -k demo --status-fd 9 -- sh -c '
    redis-cli -s "$0" get demo; echo "$REDLOCK_TOKEN"' "$SERVER_SOCKET" 9>"$BATS_TEST_TMPDIR/report"
  wait_for_stderr third "waiting for demo: held by"
  assert_equal "$(<"$(background_stdout third)")" ""
  release_hold first
  assert_equal "$status" 0
  wait_background third
  assert_equal "$status" 0
  assert_equal "${#lines[@]}" 2
  assert_equal "${lines[0]}" "${lines[1]}"
  run cat "$BATS_TEST_TMPDIR/report"
  assert_output --partial '"result":"released","exit_code":0'
  assert_equal "$(keys_at 0)" ""
}

@test "a wait that times out exits with 75, and not too soon" {
  hold first
  local start=${EPOCHREALTIME/[.,]/}
  run --separate-stderr redlock-cli run -w 1s -k demo -- touch "$BATS_TEST_TMPDIR/entered"
  assert_failure 75
  assert [ $((${EPOCHREALTIME/[.,]/} - start)) -ge 990000 ]
  assert_regex "${stderr_lines[-1]}" \
    "held by .*; waited for 1s \\(--wait\\); the command was not run$"
  assert [ ! -e "$BATS_TEST_TMPDIR/entered" ]
  # The holder noticed nothing.
  release_hold first
  assert_equal "$status" 0
}

@test "--wait 0 tries once, as -n does" {
  hold first -t 5m # an extension is a script, too
  redlock-cli run -n -k demo -- true || true # the server knows the scripts from now on
  local option calls
  local -A counted=()
  for option in '-n' '--wait 0' '-w 0ms' '--timeout=0'; do
    calls=$(scripts_run 0)
    # shellcheck disable=SC2086
    run redlock-cli run $option -k demo -- true
    assert_failure 75
    counted[$(($(scripts_run 0) - calls))]=$option
  done
  assert_equal "${#counted[@]}" 1
}

@test "REDLOCK_WAIT is the wait, unless the command line says otherwise" {
  hold first
  REDLOCK_WAIT=0 run redlock-cli run -k demo -- true
  assert_failure 75
  REDLOCK_WAIT=100ms run redlock-cli run -k demo -- true
  assert_failure 75
  REDLOCK_WAIT=1h run redlock-cli run -w 0 -k demo -- true
  assert_failure 75
  REDLOCK_WAIT=1h run redlock-cli run -n -k demo -- true
  assert_failure 75
  REDLOCK_WAIT=soon run redlock-cli run -k demo -- true
  assert_failure 78
  assert_output --partial REDLOCK_WAIT
}

@test "-n together with -w is refused" {
  run redlock-cli run -n -w 5s -k demo -- true
  assert_failure 64
  run redlock-cli run --wait=0 --nonblock -k demo -- true
  assert_failure 64
  assert_equal "$(redis 0 dbsize)" 0
}

@test "--wait limits only the wait, never the command" {
  run redlock-cli run -w 100ms -k demo -- sh -c 'sleep 0.5; echo done'
  assert_success
  assert_output 'done'
}

@test "a waiter gets a lock that expires" {
  redis 0 set demo x px 700
  run redlock-cli run -w 20s -k demo -- echo entered
  assert_success
  assert_line entered
}

@test "many processes compete, and one at a time holds the lock" {
  local worker inside=$BATS_TEST_TMPDIR/inside count=$BATS_TEST_TMPDIR/count
  echo 0 >"$count"
  for worker in {1..8}; do
    # mkdir fails if another is inside; the counter is read and written with time in between.
    start_background "$worker" redlock-cli run -q -k demo --retry-delay 10ms -- sh -c '
      mkdir "$0" && n=$(cat "$1") && sleep 0.02 && echo $((n + 1)) >"$1" && rmdir "$0"' \
      "$inside" "$count"
  done
  for worker in {1..8}; do
    wait_background "$worker"
    assert_equal "$worker: $status $stderr" "$worker: 0 "
  done
  assert_equal "$(<"$count")" 8
}
