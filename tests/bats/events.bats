#!/usr/bin/env bats
# --events-fd: a line of JSON for each event; and the schema of all JSON that the program writes.
load helper/common
load helper/supervision

setup() {
  setup_supervision
  allow_late_answers
  EVENTS=$BATS_TEST_TMPDIR/events
  : >"$EVENTS"
}

valid() { /usr/bin/python3 "$BATS_TEST_DIRNAME/helper/valid_output.py"; }

# The names of the events in the file EVENTS, in one line.
happened() { jq -r .event "$EVENTS" | paste -sd ' '; }
# The same, without attempts that took too long: on a busy machine they may precede the grant of a
# free lock.
happened_at_last() { happened | sed -E 's/^(waiting )+//'; }
has_happened() { grep -q "\"event\":\"$1\"" "$EVENTS"; }
# of EVENT FILTER: the result of a jq filter on the first event of that name.
of() { jq -rs "[.[] | select(.event == \"$1\")][0] | $2" "$EVENTS"; }

@test "a lock that is free: acquired, ended, released, each with time, key and fence" {
  run -3 --separate-stderr redlock-cli run -k demo --events-fd 8 -- sh -c 'exit 3' 8>"$EVENTS"
  assert_equal "$output$stderr" ""
  assert_equal "$(happened_at_last)" "acquired ended released"
  valid <"$EVENTS"
  assert_equal "$(jq -s 'map(.key == "demo" and .fence > 0) | all' "$EVENTS")" true
  assert_equal "$(jq -rs 'map(.at) == (map(.at) | sort)' "$EVENTS")" true
  assert_equal "$(of acquired '"\(.votes) \(.servers)"')" "1 1"
  assert_equal "$(of ended '"\(.command_exit) \(.left)"')" "3 []"
  assert_equal "$(of released .confirmed)" true
}

@test "a wait: waiting with holder and position, and again when that changes" {
  hold first --note "for now"
  hold_in_queue second
  start_background third redlock-cli run -k demo --events-fd 8 -- true 8>"$EVENTS"
  wait_until has_position 2
  release_hold first
  wait_until has_position 1
  release_hold second
  wait_background third
  assert_equal "$status" 0
  valid <"$EVENTS"
  assert_equal "$(jq -rs '[.[].holder | values][0] | "\(.note) \(.kept_by)"' "$EVENTS")" \
    "for now run"
  assert_regex "$(happened)" '^waiting (waiting )+acquired ended released$'
  assert [ "$(of acquired .waited_ms)" -gt 0 ]
}

@test "a waiter that is superseded: superseded names the newer one, and is the last" {
  hold first
  start_background old redlock-cli run -k demo --supersede --events-fd 8 -- true 8>"$EVENTS"
  wait_until has_position 1
  start_background new redlock-cli run -k demo --supersede --note "commit 2" -- true
  wait_background old
  assert_equal "$status" 75
  valid <"$EVENTS"
  assert_regex "$(happened)" '^waiting (waiting )*superseded$'
  assert_equal "$(of superseded '"\(.key) \(.superseded_by.note) \(.superseded_by.pid)"')" \
    "demo commit 2 ${BACKGROUND_PID[new]}"
  assert [ "$(of superseded .waited_ms)" -gt 0 ]
  release_hold first
  wait_background new
}

@test "a run that gets no lock: not_acquired has the reason, and is the last" {
  hold first --note "for now"
  run -75 redlock-cli run -k demo -n -q --events-fd 8 -- true 8>"$EVENTS"
  assert_equal "$(happened)" not_acquired
  assert_equal "$(of not_acquired '"\(.key) \(.result) \(.exit_code) \(.holder.note)"')" \
    "demo busy 75 for now"
  valid <"$EVENTS"

  run -0 redlock-cli run -k demo -w 300ms -E 0 -q --events-fd 8 -- true 8>"$EVENTS"
  assert_regex "$(happened)" '^waiting (waiting )*not_acquired$'
  assert_equal "$(of not_acquired '"\(.result) \(.exit_code)"')" "busy 0"
  assert [ "$(of not_acquired .waited_ms)" -ge 300 ]
  valid <"$EVENTS"

  start_background waiter redlock-cli run -k demo --events-fd 8 -- true 8>"$EVENTS"
  wait_until has_happened waiting
  kill -TERM "${BACKGROUND_PID[waiter]}"
  wait_background waiter
  assert_regex "$(happened)" '^waiting (waiting )*not_acquired$'
  assert_equal "$(of not_acquired '"\(.result) \(.exit_code) \(.message)"')" \
    "interrupted 143 null"
  valid <"$EVENTS"
  release_hold first
}

@test "a run without servers: not_acquired names the fault" {
  run -69 redlock-cli run -S "unix://$BATS_TEST_TMPDIR/none" -k demo -n -q --events-fd 8 -- true \
    8>"$EVENTS"
  assert_equal "$(happened) $(of not_acquired .result)" "not_acquired unavailable"
  assert_equal "$(of not_acquired '.faults | length')" 1
  valid <"$EVENTS"
}

@test "a run that is not needed: fresh names the one that succeeded, and is the only event" {
  run -0 redlock-cli run -k demo --once-per 20h --note "the first" -- true
  run -0 redlock-cli run -k demo --once-per 20h -q --events-fd 8 -- echo ran 8>"$EVENTS"
  assert_output ""
  valid <"$EVENTS"
  assert_equal "$(happened_at_last)" fresh
  assert_equal "$(of fresh '"\(.key) \(.last.note) \(.last.command_exit) \(.last.fence > 0)"')" \
    "demo the first 0 true"
}

hold_in_queue() {
  start_background "$1" redlock-cli run -k demo \
    -- sh -c 'until [ -e "$0" ]; do sleep 0.1; done' "$BATS_TEST_TMPDIR/$1.end"
  wait_for_queued 1
}
# With -s, because jq 1.6 succeeds on empty input.
has_position() { jq -es "any(.position == $1)" "$EVENTS" >/dev/null; }

@test "a lost lease: lost with the reason, stopping, ended, released" {
  start_background ours redlock-cli run -k demo -t 9s --server-timeout 1s --events-fd 8 \
    -- sleep 1000 8>"$EVENTS"
  wait_until has_happened acquired
  redis 0 set demo theirs
  wait_background ours
  assert_equal "$status" 79
  valid <"$EVENTS"
  assert_regex "$(happened_at_last)" "^acquired (renewal_failed )?lost stopping ended released$"
  assert_equal "$(of stopping .why) $(of released .confirmed)" "lost false"
  assert_regex "$(of lost .reason)" "foreign"
}

@test "--on-lost warn stops nothing" {
  start_background ours redlock-cli run -k demo -t 9s --server-timeout 1s --on-lost warn \
    --events-fd 8 -- \
    sh -c 'until [ -e "$0" ]; do sleep 0.1; done' "$BATS_TEST_TMPDIR/end" 8>"$EVENTS"
  wait_until has_happened acquired
  redis 0 set demo theirs
  wait_until has_happened lost
  touch "$BATS_TEST_TMPDIR/end"
  wait_background ours
  assert_regex "$(happened_at_last)" "^acquired (renewal_failed )?lost ended released$"
}

# bats test_tags=redis
@test "an outage: renewal_failed with the faults, then renewed_again" {
  start_background ours redlock-cli run -k demo -t 20s --server-timeout 200ms --events-fd 8 -- \
    sh -c 'until [ -e "$0" ]; do sleep 0.1; done' "$BATS_TEST_TMPDIR/end" 8>"$EVENTS"
  wait_until has_happened acquired
  pause_server 0
  wait_until has_happened renewal_failed
  resume_server 0
  wait_until has_happened renewed_again
  touch "$BATS_TEST_TMPDIR/end"
  wait_background ours
  assert_equal "$status" 0
  valid <"$EVENTS"
  assert_regex "$(happened_at_last)" "^acquired (renewal_failed renewed_again )+ended released$"
  assert_equal "$(of renewal_failed '.faults | length')" 1
}

@test "--max-hold: stopping has the reason" {
  run -124 redlock-cli run -k demo --max-hold 300ms --events-fd 8 -- sleep 1000 8>"$EVENTS"
  valid <"$EVENTS"
  assert_equal "$(happened_at_last)" "acquired stopping ended released"
  assert_equal "$(of stopping .why) $(of ended .command_signal)" "max_hold 15"
}

@test "the holder is killed: the front process reports the loss" {
  start_background ours redlock-cli run -k demo --events-fd 8 -- sh -c 'echo runs; exec sleep 1000' \
    8>"$EVENTS"
  wait_for_stdout ours runs
  kill -KILL "$(holder_of "${BACKGROUND_PID[ours]}")"
  wait_background ours
  assert_equal "$status" 71
  valid <"$EVENTS"
  assert_equal "$(happened_at_last)" "acquired lost"
}

@test "several keys: leases instead of fence, and an event about one key names it" {
  run -0 redlock-cli run -k demo -k other --events-fd 8 -- true 8>"$EVENTS"
  valid <"$EVENTS"
  assert_equal "$(of ended '[.leases[].key] | join(" ")') $(of ended 'has("fence")')" \
    "demo other false"
}

@test "the command does not get the descriptor, unless it is stdout or stderr" {
  run -0 redlock-cli run -k demo --events-fd 8 -- sh -c '[ ! -e /proc/self/fd/8 ]' 8>"$EVENTS"
  run -0 sh -c 'redlock-cli run -k demo --events-fd 2 -- sh -c "echo from the command >&2" 2>"$0"' \
    "$EVENTS"
  assert_equal "$(grep -c "^from the command" "$EVENTS")" 1
  sed -i '/^from/d' "$EVENTS"
  assert_equal "$(happened_at_last)" "acquired ended released"
  run -0 --separate-stderr redlock-cli run -k demo --events-fd 1 -- echo from the command
  assert_regex "$output" '"acquired".*from the command.*"ended".*"released"'
}

@test "a descriptor that is not open for writing is refused before anything is locked" {
  assert_refused 64 "--events-fd: descriptor 8 is not open for writing" \
    redlock-cli run -k demo --events-fd 8 -- true
  run --separate-stderr redlock-cli run -k demo --events-fd 8 -- true 8</dev/null
  assert_equal "$status" 64
  assert_refused 64 "whole number" redlock-cli run -k demo --events-fd=-1 -- true
  assert_refused 64 "whole number" redlock-cli run -k demo --events-fd x -- true
  assert_equal "$(redis 0 exists demo)" 0
}

@test "a reader that reads nothing delays nothing, and is told how many events it missed" {
  mkfifo "$BATS_TEST_TMPDIR/pipe"
  exec 7<>"$BATS_TEST_TMPDIR/pipe"
  # Full, except for less room than any event needs.
  /usr/bin/python3 -c '
import fcntl, os
os.set_blocking(7, False)
fcntl.fcntl(7, 1031, 4096)
os.write(7, b"x" * 4095 + b"\n")
os.set_blocking(7, True)'
  start_background ours redlock-cli run -k demo --events-fd 7 -- \
    sh -c 'echo ready; until [ -e "$0" ]; do sleep 0.1; done' "$BATS_TEST_TMPDIR/end"
  wait_for_stdout ours ready
  # redlock-cli has not made it non-blocking.
  assert_equal "$((8#$(awk '/flags/ { print $2 }' /proc/self/fdinfo/7) & 8#4000))" 0
  head -c 4096 <&7 >/dev/null
  touch "$BATS_TEST_TMPDIR/end"
  wait_background ours
  assert_equal "$status" 0
  timeout 20 head -n 2 <&7 >"$EVENTS"
  valid <"$EVENTS"
  # The grant, and on a busy machine attempts before it that took too long.
  assert_regex "$(happened) $(of ended .dropped) $(of released .dropped)" \
    "^ended released [1-9] null$"
}

@test "a reader that is gone changes nothing" {
  run -0 bash -c 'redlock-cli run -k demo --events-fd 8 -- sh -c "sleep 0.1" 8> >(:)'
  assert_equal "$(keys_at 0)" ""
}

@test "a socket is as good as a pipe" {
  run -0 /usr/bin/python3 -c '
import socket, subprocess, sys
ours, theirs = socket.socketpair()
subprocess.run(
    ["redlock-cli", "run", "-k", "demo", "--events-fd", str(theirs.fileno()), "--", "true"],
    pass_fds=[theirs.fileno()], check=True)
theirs.close()
while text := ours.recv(65536): sys.stdout.write(text.decode())'
  echo "$output" >"$EVENTS"
  assert_equal "$(happened_at_last)" "acquired ended released"
}

@test "all JSON has the documented shape, with times beside durations" {
  local key=$'odd \xff key'
  {
    redlock-cli run -k demo --status-fd 8 -- true 8>&1
    redlock-cli run -k "$key" -k demo --json -- true 2>&1
    redlock-cli acquire -k "$key" --ttl 60s --note why --json --token-file "$BATS_TEST_TMPDIR/lease"
    redlock-cli extend --ttl 70s --json --token-file "$BATS_TEST_TMPDIR/lease"
    redlock-cli status --json
    redlock-cli release --json --token-file "$BATS_TEST_TMPDIR/lease"
    redlock-cli acquire -k demo -k other -s --ttl 60s --json
    redlock-cli status -k demo -k none --json
    redlock-cli run -n -k demo --json -- true 2>&1 || true
    redlock-cli release demo other --force --json
    redlock-cli run -k slot --slots 2 --min-hold 60s --json -- sh -c 'exit 3' 2>&1 || true
    redlock-cli status -k slot --json
    redlock-cli doctor --json || true
    redlock-cli doctor --settings --json
    redlock-cli run --json -k demo --ttl never -- true 2>/dev/null || true
    redlock-cli run -k demo --status-fd 8 -- /nonexistent 8>&1 2>/dev/null || true
  } >"$BATS_TEST_TMPDIR/all"
  grep '^{' "$BATS_TEST_TMPDIR/all" | valid
  assert_equal "$(grep -c '^{' "$BATS_TEST_TMPDIR/all")" 15
  output=$(head -n 1 "$BATS_TEST_TMPDIR/all")
  assert_equal "$(json 'j["acquired_at"] <= j["started_at"] <= j["ended_at"]')" True
}

@test "how a lease is kept: run, while-pid, by hand" {
  run -0 redlock-cli run -k demo -- redlock-cli status -k demo --json
  assert_equal "$(json 'j["locks"][0]["holder"]["kept_by"]')" run
  redlock-cli acquire -k two --ttl 60s
  run -0 redlock-cli status -k two --json
  assert_equal "$(json 'j["locks"][0]["holder"]["kept_by"]')" "by hand"
  start_background pet \
    bash -c 'redlock-cli acquire -k three --while-pid $$; until [[ -e $0 ]]; do sleep 0.1; done' \
    "$BATS_TEST_TMPDIR/end"
  wait_until test -s "$(background_stdout pet)"
  run -0 redlock-cli status -k three --json
  assert_equal "$(json 'j["locks"][0]["holder"]["kept_by"]')" while-pid
  touch "$BATS_TEST_TMPDIR/end"
  wait_background pet
}
