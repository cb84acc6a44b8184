#!/usr/bin/env bats
# A server that restarted may have forgotten a lock: for a while its vote for a new one does not
# count.
load helper/common

readonly GUARD=12

# The message of a client that only lacks the votes of recently restarted servers, as a pattern.
readonly RESTARTED='no quorum without recently restarted servers \(--restart-guard\)'

uptime() { redis "$1" info server | tr -d '\r' | sed -n 's/^uptime_in_seconds://p'; }

# Whether server I has run long enough for its vote to count under $GUARD.
is_old() { (($(uptime "$1") > GUARD + 1)); }

# start_old_servers N: N servers whose votes count, because they report an uptime above the guard.
# After a restart they report the real one.
start_old_servers() {
  local nr library
  library=$(preload aged_server)
  for ((nr = 0; nr < $1; ++nr)); do SERVER_PRELOAD[nr]=$library; done
  start_servers "$1"
  SERVER_PRELOAD=()
  for ((nr = 0; nr < $1; ++nr)); do wait_until is_old "$nr"; done
}

# A client that only reaches the first three of five servers has a lease there for as long as the
# guard. Then one of these three restarts, empty.
lock_three_and_restart_one() {
  start_old_servers 5
  local dead=unix://$BATS_TEST_TMPDIR/none
  run -0 redlock-cli acquire -k demo -t "${GUARD}s" --restart-guard "$GUARD" \
    -S "${SERVER_URL[0]},${SERVER_URL[1]},${SERVER_URL[2]},${dead}1,${dead}2"
  restart_server 2
  assert_equal "$(redis 2 exists demo)" 0
}

# A client that reaches all five; prints the tokens on the first two servers when it gets the lock.
second_client() {
  redlock-cli run -S "$SERVERS" -k demo "$@" -- \
    sh -c 'for socket; do redis-cli -s "$socket" get demo; done' sh "${SERVER_SOCKET[@]:0:2}"
}

@test "without the guard a server that lost its data lets a second holder in" {
  lock_three_and_restart_one
  local first
  first=$(redis 0 get demo)
  run -0 second_client -n --restart-guard 0
  # The first lease is still there where it was not forgotten.
  assert_equal "$output" "$first"$'\n'"$first"
}

@test "with the guard it does not, whatever the ttl of the second client" {
  lock_three_and_restart_one
  local ttl
  for ttl in 6s "${GUARD}s"; do
    run --separate-stderr -69 second_client -n --restart-guard "$GUARD" -t "$ttl" \
      --grace 100ms --server-timeout 1s
    assert_equal "$output" ""
    assert_regex "$stderr" \
      "^redlock-cli: demo: $RESTARTED: ${SERVER_URL[2]} started [0-9.]+m?s ago \
and may have forgotten a lock; its vote counts in [0-9.]+s; the guard is ${GUARD}s; \
the command was not run$"
  done
  # And nothing of it is left.
  assert_unlocked demo 2 3 4
}

@test "a waiter gets the lock when the first lease has expired, and reports what it waits for" {
  lock_three_and_restart_one
  local first
  first=$(redis 0 get demo)
  # With -vv it is reported at once, however short the wait.
  run -0 --separate-stderr second_client -vv -t 6s --restart-guard "$GUARD"
  # The three votes are those of the last two servers and of one where the first lease has expired.
  refute [ "$output" == "$first"$'\n'"$first" ]
  assert_regex "$stderr" "demo: $RESTARTED: ${SERVER_URL[2]} started "
}

@test "a waiter gets the lock when the guard ends" {
  start_servers 3
  run -0 --separate-stderr redlock-cli run -S "$SERVERS" -k demo -vv -t 2s \
    --restart-guard "$GUARD" -- true
  assert_regex "$stderr" "demo: $RESTARTED: "
  assert_in_range "$(uptime 0)" $((GUARD + 1)) 60
}

@test "a wait that times out within the guard does not report a busy lock" {
  start_servers 3
  run -69 redlock-cli run -S "$SERVERS" -k demo -w 300ms --restart-guard 1h -- true
  assert_line --regexp "$RESTARTED: .* started .*; .* started "
  run -69 --separate-stderr \
    redlock-cli acquire -S "$SERVERS" -k demo -n --restart-guard 1h -t 1m --json
  assert_equal "$(json 'j["result"]')" unavailable
}

@test "by default it is a minute" {
  unset REDLOCK_RESTART_GUARD
  start_servers 3
  run -69 redlock-cli run -S "$SERVERS" -k demo -n -- true
  assert_output --regexp "its vote counts in (1m|5[0-9]s)"
}

@test "a lock that is really held is still busy" {
  start_servers 3
  hold holder -S "$SERVERS"
  run -75 redlock-cli run -S "$SERVERS" -k demo -n --restart-guard 1h -- true
  release_hold holder
}

@test "a holder keeps extending its lease while servers restart" {
  start_old_servers 3
  local nr
  hold holder -S "$SERVERS" -t 9s --restart-guard "$GUARD"
  # A quorum may have been enough.
  for nr in 0 1 2; do wait_for_key "$nr" demo; done
  for nr in 0 1 2; do
    restart_server "$nr"
    wait_for_key "$nr" demo
    # The server's vote has counted: the lease expires later there than when it was restored.
    wait_for_extend "$nr"
  done
  release_hold holder
  assert_equal "$status" 0
}

@test "one server and two have no guard" {
  start_servers 2
  run -0 redlock-cli run -S "${SERVER_URL[0]}" -k demo -n --restart-guard 1h -- true
  run -0 redlock-cli run -S "$SERVERS" -k demo -n --restart-guard 1h -- true
  # Nor does it limit the ttl there.
  run -0 redlock-cli run -S "$SERVERS" -k demo -n -t 2h --restart-guard 1h -- true
}

@test "a ttl or a --min-hold above the guard raises it, and one line says what other clients need" {
  start_servers 3
  local option
  for option in '--ttl 1h' '--min-hold 1h'; do
    # shellcheck disable=SC2086
    run -69 redlock-cli run -S "$SERVERS" -k demo -n --restart-guard 1s $option -- true
    assert_output --regexp \
      "redlock-cli: --restart-guard is raised from 1s to 1h, the ${option% *}: \
every client of this key needs --restart-guard 1h"
    assert_output --regexp "its vote counts in (1h|59m).*; the guard is 1h, the ${option% *}"
  done
  # A setting is raised without a line, except with -v: cron jobs would send mail.
  REDLOCK_RESTART_GUARD=1s run -69 redlock-cli acquire -S "$SERVERS" -k demo -n --ttl 1h
  assert_output --regexp "^redlock-cli: demo: $RESTARTED: .* its vote counts in (1h|59m)"
  assert_output --regexp "the guard is 1h, the --ttl"
  refute_output --partial raised
}

@test "with the guard off no ttl turns it on" {
  start_servers 3
  run -0 redlock-cli acquire -S "$SERVERS" -k demo -n -v --restart-guard 0 --ttl 1h --export
  refute_output --partial raised
  eval "${lines[-1]}"
  run -0 redlock-cli extend -S "$SERVERS" --restart-guard 60s --ttl 2h -v
  assert_output --partial "every client of this key needs --restart-guard 2h"
}

# Each line of a document that calls redlock-cli with one of these options, as a crontab or a script
# has it.
lines_with() {
  local root=$BATS_TEST_DIRNAME/../..
  {
    grep -h -- "$1" "$root"/README.md "$root"/man/*.[157]
    redlock-cli run --help
    redlock-cli acquire --help
  } | grep -oE "redlock-cli (run|acquire) .*$1.*"
}

@test "the examples with a long ttl or a --min-hold work as printed on three servers" {
  unset REDLOCK_RESTART_GUARD
  # There is no server: 69 is the result if the line itself is valid.
  export REDLOCK_SERVER=redis://127.0.0.1:1,redis://127.0.0.1:2,redis://127.0.0.1:3
  cd "$BATS_TEST_TMPDIR"
  # The command of lines without `--`.
  executable job <<<$'#!/bin/sh' >/dev/null
  PATH=$PWD:$PATH
  local line count=0
  while read -r line; do
    [[ $line != *" run "* || $line != *" -- "* ]] || line="${line%% -- *} -- true"
    line=${line%%(*}
    [[ $line == *" -n "* ]] || line=${line/ -k / -n -k }
    run -69 bash -c "$line"
    count=$((count + 1))
  done < <(lines_with --min-hold; lines_with '--ttl 1h')
  assert_in_range "$count" 3 20
}

@test "every crontab line sets how long it excludes the others" {
  local line root=$BATS_TEST_DIRNAME/../.. count=0
  while read -r line; do
    [[ $line == *" --min-hold "* || $line == *" --once-per "* ]] ||
      fail "neither --min-hold nor --once-per: $line"
    count=$((count + 1))
  done < <({ cat "$root"/README.md "$root"/man/*.[157]; redlock-cli run --help; } |
    grep -E 'redlock-cli run .*-E 0')
  assert_in_range "$count" 4 20
}

@test "a server that refuses to report its uptime has no vote, and the message says what to allow" {
  local nr
  for nr in 0 1 2; do
    start_server
    redis "$nr" acl setuser default -info >/dev/null
  done
  assert_refused 77 "allow INFO (+info)" \
    redlock-cli run -S "$SERVERS" -k demo -n --restart-guard 60s -- true
  run -0 redlock-cli run -S "$SERVERS" -k demo -n --restart-guard 0 -- true
}
