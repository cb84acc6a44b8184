#!/usr/bin/env bats
# The commands' own shells expand; each test is a subshell; bats sets stderr:
# shellcheck disable=SC2016,SC2030,SC2031,SC2154
# A lock that is lost, or about to be, while the command runs: the command is stopped in time, and
# the status is 79.
load helper/common
load helper/redis
load helper/locks
load helper/checks
load helper/supervision

setup() {
  setup_one_server
  FAMILY=()
}

# What a failed test may have left of it.
teardown() {
  local pid
  for pid in "${FAMILY[@]}"; do
    if grep -qsE 'sleep|family' "/proc/$pid/cmdline"; then kill -KILL "$pid"; fi
  done
  common_teardown
}

# A command with descendants of every kind: a shell, its child, one in a session of its own, one
# forked twice. Their pids go to $1, a line each, and `ready` to stdout. $2 is what each does about
# TERM: die, or ignore it.
family() {
  executable family <<'END'
#!/bin/bash
[[ $2 != ignore ]] || trap '' TERM
pids=$1
touch "$pids"
note='echo "$BASHPID" >>"$0"; exec sleep 1000'
bash -c "$note" "$pids" &
setsid bash -c "$note" "$pids" &
(setsid bash -c "$note" "$pids" & )
echo "$$" >>"$pids"
until (($(wc -l <"$pids") == 4)); do sleep 0.02; done
echo ready
wait
END
}

# start_family NAME OPTION… [-- WHAT]: runs it under the lock demo, with a status file. Its pids are
# then in FAMILY.
start_family() {
  local name=$1 what=die
  shift
  local -a options=()
  while (($#)) && [[ $1 != -- ]]; do
    options+=("$1")
    shift
  done
  (($# < 2)) || what=$2
  start_background "$name" redlock-cli run -k demo --status-fd 9 "${options[@]}" \
    -- "$(family)" "$BATS_TEST_TMPDIR/pids" "$what" \
    9>"$BATS_TEST_TMPDIR/report"
  wait_until grep -q ready "$(background_stdout "$name")"
  mapfile -t FAMILY <"$BATS_TEST_TMPDIR/pids"
}

# None of them lives. A zombie is dead; its pid is still its own.
assert_family_dead() {
  assert_equal "${#FAMILY[@]}" 4
  local pid
  for pid in "${FAMILY[@]}"; do
    run sed 's/.*) //' "/proc/$pid/stat"
    assert_output --regexp '^Z|No such'
  done
}

report() { cat "$BATS_TEST_TMPDIR/report"; }

# --- Lost at the server ---

@test "a lock that another client deletes: the command and all that descends from it is dead when we exit with 79" {
  start_family ours -t 2s
  redis 0 del demo
  wait_background ours
  assert_equal "$status" 79
  assert_family_dead
  assert_regex "$stderr" "redlock-cli: demo: lost: it is gone"
  run report
  assert_output --partial '"result":"lost","exit_code":79'
  assert_output --partial '"command_signal":15'
  assert_output --partial '"released":false'
  assert_output --partial '"left":[]'
  assert_equal "$(redis 0 exists demo)" 0
}

@test "a lock that another client overwrites: the same, and the other's lock is not touched" {
  start_family ours -t 2s
  redis 0 set demo theirs px 600000
  wait_background ours
  assert_equal "$status" 79
  assert_family_dead
  assert_regex "$stderr" "demo: lost: it is held by a foreign client"
  assert_equal "$(redis 0 get demo)" theirs
  assert [ "$(redis 0 pttl demo)" -gt 60000 ]
  run report
  assert_output --partial '"result":"lost","exit_code":79'
}

@test "an expiry that another client takes away is given back by the next renewal" {
  hold ours -t 2s
  redis 0 persist demo
  wait_until has_expiry
  release_hold ours
  assert_equal "$status" 0
  assert_equal "$(keys_at 0)" ""
}

has_expiry() { (($(redis 0 pttl demo) > 0)); }

@test "a lock that is broken by release --force: the command is stopped, and says who did it, why, and who is in now" {
  start_family ours -t 9s
  local holder
  holder=$(holder_of "${BACKGROUND_PID[ours]}")
  # So that no renewal comes between the two.
  kill -STOP "$holder"
  redlock-cli release -k demo --force --reason 'stuck since noon'
  redlock-cli acquire -k demo --ttl 60s --note 'the next one' >"$BATS_TEST_TMPDIR/token"
  kill -CONT "$holder"
  wait_background ours
  assert_equal "$status" 79
  assert_family_dead
  assert_regex "$stderr" \
    "lost: $(id -un)@$(uname -n) broke it with \`release --force\` \\(\"stuck since noon\"\\); \
now it is held by .*\"the next one\""
  assert_equal "$(redis 0 get demo)" "$(<"$BATS_TEST_TMPDIR/token")"
}

@test "a lock that is broken while the command ends is told as such, too" {
  run -79 --separate-stderr redlock-cli run -k demo -- sh -c 'redlock-cli release -k demo --force'
  assert_regex "$stderr" \
    "lost while the command ran: $(id -un)@$(uname -n) broke it with \`release --force\`$"
}

@test "--reason goes with --force, and is no longer than a note" {
  assert_refused 64 "--reason: goes with --force" redlock-cli release -k demo --reason why
  assert_refused 64 "--reason: longer than 512 bytes" \
    redlock-cli release -k demo --force --reason "$(printf '%0513d' 0)"
}

@test "a lock that was lost unnoticed is 79 all the same, whatever the command's own status" {
  local code
  for code in 0 3; do
    run redlock-cli run -k demo --status-fd 9 \
      -- sh -c 'redis-cli -s "$0" del demo; exit "$1"' "$SERVER_SOCKET" "$code" \
      9>"$BATS_TEST_TMPDIR/report"
    assert_failure 79
    assert_output --partial "lost while the command ran"
    run report
    assert_output --partial '"result":"lost","exit_code":79'
    assert_output --partial "\"command_exit\":$code"
    assert_output --partial '"released":false'
  done
}

# --- How the command is stopped ---

@test "the command is told first, and may clean up" {
  start_background ours redlock-cli run -t 2s -k demo -- \
    bash -c 'trap "echo cleaned up; exit 7" TERM; echo ready; while :; do sleep 0.02; done'
  wait_until grep -q ready "$(background_stdout ours)"
  redis 0 del demo
  wait_background ours
  assert_equal "$status" 79
  assert_equal "${lines[*]}" "ready cleaned up"
}

@test "--stop-signal is what it is told with" {
  start_background ours redlock-cli run -t 2s --stop-signal USR1 -k demo --status-fd 9 -- \
    bash -c 'trap "echo USR1; exit 7" USR1; trap "echo TERM" TERM
      echo ready; while :; do sleep 0.02; done' 9>"$BATS_TEST_TMPDIR/report"
  wait_until grep -q ready "$(background_stdout ours)"
  redis 0 del demo
  wait_background ours
  assert_equal "$status" 79
  assert_equal "${lines[*]}" "ready USR1"
  run report
  assert_output --partial '"command_exit":7'
}

@test "a command that is stopped is woken to be told" {
  start_family ours -t 2s
  kill -STOP "${FAMILY[@]}"
  redis 0 del demo
  wait_background ours
  assert_equal "$status" 79
  assert_family_dead
}

@test "a command that ignores TERM is killed after --grace, with all that descends from it" {
  start_family ours -t 3s --grace 300ms -- ignore
  redis 0 del demo
  wait_background ours
  assert_equal "$status" 79
  assert_family_dead
  run report
  assert_output --partial '"command_signal":9'
  assert_output --partial '"result":"lost","exit_code":79'
}

@test "between TERM and KILL lies the grace" {
  start_background ours redlock-cli run -t 12s --grace 4s -k demo -- /usr/bin/python3 -uc '
import os, signal, time
def say(word):
    os.write(1, f"{word} {time.monotonic()}\n".encode())
signal.signal(signal.SIGTERM, lambda *_: say("told"))
say("ready")
while True:
    time.sleep(0.01)
    say("alive")'
  wait_until grep -q ready "$(background_stdout ours)"
  redis 0 del demo
  wait_background ours
  assert_equal "$status" 79
  # From being told to the last sign of life, less what one of a hundred signs a second may miss.
  run awk '$1 == "told" { told = $2; ++times }
    { last = $2 }
    END { print times, (last - told > 2.5 ? "lived" : last - told) }' <<<"$output"
  assert_output "1 lived"
}

# Longer than the graces and the leases of these tests; the server keeps the time.
outlast_the_lease() {
  redis 0 set timer x px 4500
  wait_for_no_key 0 timer
}

@test "--on-lost term: the command is told, and may end in its own time" {
  start_background ours redlock-cli run -t 4s --grace 100ms --on-lost term -k demo \
    --status-fd 9 -- \
    bash -c 'trap "echo told" TERM; echo ready; until [[ -e $0 ]]; do sleep 0.02; done
      echo ended' "$BATS_TEST_TMPDIR/end" 9>"$BATS_TEST_TMPDIR/report"
  wait_until grep -q ready "$(background_stdout ours)"
  redis 0 del demo
  wait_until grep -q told "$(background_stdout ours)"
  outlast_the_lease
  touch "$BATS_TEST_TMPDIR/end"
  wait_background ours
  assert_equal "$status" 79
  assert_equal "${lines[*]}" "ready told ended"
  run report
  assert_output --partial '"result":"lost","exit_code":79'
  assert_output --partial '"command_exit":0'
}

@test "--on-lost warn: the command is left alone, and the status is 79 nonetheless" {
  start_background ours redlock-cli run -t 4s --grace 100ms --on-lost warn -k demo \
    --status-fd 9 -- \
    bash -c 'trap "echo told" TERM; echo ready; until [[ -e $0 ]]; do sleep 0.02; done
      echo ended' "$BATS_TEST_TMPDIR/end" 9>"$BATS_TEST_TMPDIR/report"
  wait_until grep -q ready "$(background_stdout ours)"
  redis 0 del demo
  wait_until grep -q "demo: lost: it is gone" "$(background_stderr ours)"
  outlast_the_lease
  touch "$BATS_TEST_TMPDIR/end"
  wait_background ours
  assert_equal "$status" 79
  assert_equal "${lines[*]}" "ready ended"
  assert_regex "$stderr" "ran on without the lock"
  run report
  assert_output --partial '"result":"lost","exit_code":79'
  assert_output --partial '"command_exit":0'
}

@test "a signal while the command is being stopped does not save it" {
  start_background ours redlock-cli run -t 3s --grace 500ms -k demo -- \
    bash -c 'trap "echo told" TERM; trap "echo interrupted" INT
      echo ready; while :; do sleep 0.02; done'
  wait_until grep -q ready "$(background_stdout ours)"
  redis 0 del demo
  wait_until grep -q told "$(background_stdout ours)"
  kill -INT "${BACKGROUND_PID[ours]}"
  wait_background ours
  assert_equal "$status" 79
}

# --- About to be lost: no server confirms the lease any more ---

# silence_servers I…: in one step each server says when the key expires and falls silent. EXPIRES is
# when the last of those keys does, in milliseconds.
silence_servers() {
  local i at
  EXPIRES=0
  for i; do
    at=$(redis "$i" <<<$'multi\npexpiretime demo\nclient pause 600000 all\nexec' | sed -n 4p)
    ((at > 0))
    if ((at > EXPIRES)); then EXPIRES=$at; fi
  done
}

# Looks at the first instant at which the key may be anybody's, and says who of FAMILY lives then.
watch_expiry() {
  start_background expiry /usr/bin/python3 -c '
import sys, time
expires, pids = int(sys.argv[1]) / 1000, sys.argv[2:]
while (now := time.time()) < expires:
    time.sleep(expires - now)
def lives(pid):
    try:
        return open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False
print("alive:", *filter(lives, pids))' "$EXPIRES" "${FAMILY[@]}"
}

assert_dead_at_expiry() {
  wait_background expiry
  assert_success
  assert_equal "$output" "alive:"
}

@test "a server that falls silent: the command is dead before its key can expire" {
  start_family ours -t 4s --grace 400ms -- ignore
  silence_servers 0
  watch_expiry
  assert_dead_at_expiry
  wait_background ours
  assert_equal "$status" 79
  assert_family_dead
  assert_equal "$(grep -c "cannot renew: " <<<"$stderr")" 1
  assert_regex "$stderr" "lost: it could not be renewed in time|the command was stopped"
  run report
  assert_output --partial '"result":"lost","exit_code":79'
  assert_output --partial '"command_signal":9'
  assert_output --partial '"released":false'
}

@test "a server that is killed: the same" {
  start_family ours -t 4s --grace 400ms -- ignore
  silence_servers 0
  kill_server 0
  watch_expiry
  assert_dead_at_expiry
  wait_background ours
  assert_equal "$status" 79
  assert_family_dead
}

@test "a quorum that falls silent: the same, whatever the rest says" {
  start_servers 2
  export REDLOCK_SERVER=$SERVERS
  start_family ours -t 4s --grace 400ms -- ignore
  wait_for_key 1 demo
  wait_for_key 2 demo
  silence_servers 0 2
  watch_expiry
  assert_dead_at_expiry
  wait_background ours
  assert_equal "$status" 79
  assert_family_dead
  # Where we are still heard the lock is released.
  assert_equal "$(keys_at 1)" ""
}

@test "without a server the command runs on until its lease is nearly over" {
  start_background ours redlock-cli run -t 6s --grace 500ms -k demo -- bash -c '
    trap "date +%s%3N; exit 0" TERM; echo ready; while :; do sleep 0.02; done'
  wait_until grep -q ready "$(background_stdout ours)"
  silence_servers 0
  wait_background ours
  assert_equal "$status" 79
  # Told not before: grace, margin, drift, and the time that the answer may have taken, before the
  # key's end. Later is another test.
  local told=${lines[1]}
  assert [ "$told" -ge $((EXPIRES - 500 - 250 - 62 - 300 - 50)) ]
}

@test "a server that comes back in time saves the lease, and the command notices nothing" {
  start_family ours -vv -t 4s
  pause_server 0
  wait_until grep -q "cannot renew, trying on" "$(background_stderr ours)"
  resume_server 0
  wait_until grep -q "renewed again" "$(background_stderr ours)"
  run redlock-cli run -n -k demo -- true
  assert_failure 75
  local pid
  for pid in "${FAMILY[@]}"; do assert [ -e "/proc/$pid" ]; done
  kill -TERM "${BACKGROUND_PID[ours]}"
  wait_background ours
  assert_equal "$status" 143
  assert_equal "$(grep -c "cannot renew" "$(background_stderr ours)")" 1
}

@test "a server that comes back empty has lost the lock, and that is 79" {
  start_family ours -t 4s
  restart_server 0
  wait_background ours
  assert_equal "$status" 79
  assert_family_dead
  assert_equal "$(keys_at 0)" ""
}
