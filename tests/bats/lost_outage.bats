#!/usr/bin/env bats
# A lock that is about to be lost, because no server confirms the lease: the command is stopped in
# time, and the status is 79.
load helper/common
load helper/family

# silence_servers I…: in one step each server reports when the key expires, and falls silent.
# EXPIRES is the time in milliseconds when the last of these keys expires.
silence_servers() {
  local i at
  EXPIRES=0
  for i; do
    at=$(redis "$i" <<<$'multi\npexpiretime demo\nclient pause 600000 all\nexec' | sed -n 4p)
    ((at > 0))
    if ((at > EXPIRES)); then EXPIRES=$at; fi
  done
}

# Checks at the first instant at which another client may have the key which of FAMILY are alive.
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
  start_family ours -t 9s --grace 400ms -- ignore
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
  start_family ours -t 9s --grace 400ms -- ignore
  silence_servers 0
  kill_server 0
  watch_expiry
  assert_dead_at_expiry
  wait_background ours
  assert_equal "$status" 79
  assert_family_dead
}

@test "a quorum that falls silent: the same, whatever the others answer" {
  start_servers 2
  export REDLOCK_SERVER=$SERVERS
  # The release does not wait long for the silent servers.
  start_family ours -t 9s --grace 400ms --server-timeout 1s -- ignore
  local nr
  for nr in 0 1 2; do wait_for_key "$nr" demo; done
  silence_servers 0 2
  watch_expiry
  assert_dead_at_expiry
  wait_background ours
  assert_equal "$status" 79
  assert_family_dead
  # Servers that still read release the lock.
  assert_equal "$(keys_at 1)" ""
}

@test "without a server the command continues until its lease is about to expire" {
  start_background ours redlock-cli run -t 15s --grace 3s --server-timeout 1500ms -k demo -- \
    bash -c 'trap "echo \${EPOCHREALTIME/[.,]/}; exit 0" TERM
      echo ready; while :; do sleep 0.1; done'
  wait_for_stdout ours ready
  silence_servers 0
  wait_background ours
  assert_equal "$status" 79
  # The stop signal comes no earlier than grace, margin, drift and the time of the answer before the
  # key's end, plus what a busy machine adds to the margin. Another test checks the latest time.
  local told=${lines[1]}
  assert [ $((told / 1000)) -ge $((EXPIRES - 3000 - 250 - 152 - 1500 - 500)) ]
}

@test "a server that returns in time saves the lease, and the command notices nothing" {
  start_family ours -vv -t 15s
  pause_server 0
  wait_for_stderr ours "cannot renew; retrying"
  resume_server 0
  wait_for_stderr ours "renewed again"
  run redlock-cli run -n -k demo --server-timeout 4s -- true
  assert_failure 75
  local pid
  for pid in "${FAMILY[@]}"; do assert [ -e "/proc/$pid" ]; done
  kill -TERM "${BACKGROUND_PID[ours]}"
  wait_background ours
  assert_equal "$status" 143
  # A slow machine may have had another outage afterwards.
  assert_equal "$(sed '/renewed again/q' <<<"$stderr" | grep -c "cannot renew")" 1
}

remains_at_most() { (($(redis 0 pttl demo) <= $1)); }

@test "with --on-lost warn, an outage that the lease survives is no loss" {
  start_background ours redlock-cli run -vv -t 15s --grace 8s --server-timeout 200ms \
    --on-lost warn -k demo -- \
    sh -c 'until [ -e "$0" ]; do sleep 0.1; done; exit 3' "$BATS_TEST_TMPDIR/end"
  wait_for_stderr ours "acquired after"
  redis 0 client pause 600000 write
  wait_for_stderr ours "cannot renew; retrying"
  # With --on-lost kill, the stop signal would be due by now.
  wait_until remains_at_most 8000
  redis 0 client unpause
  wait_for_stderr ours "renewed again"
  touch "$BATS_TEST_TMPDIR/end"
  wait_background ours
  assert_equal "$status" 3
  refute_regex "$stderr" "lost|without the lock"
}

@test "a server that returns empty has lost the lock: 79" {
  start_family ours -t 9s
  restart_server 0
  wait_background ours
  assert_equal "$status" 79
  assert_family_dead
  assert_equal "$(keys_at 0)" ""
}
