#!/usr/bin/env bats
# A lost lease of acquire --while-pid: the end of the process for which it was kept.
load helper/common
load helper/supervision
load helper/while_pid

@test "a deleted key: the script and all its descendants are dead, and nothing is under the key" {
  start_script ours -t 8s --grace 3s
  redis 0 del demo
  wait_until is_dead "$HOLDER"
  assert_tree_dead
  wait_background ours
  assert_equal "$status" 143
  assert_equal "$(redis 0 exists demo)" 0
}

@test "an overwritten key: the same, and the other lock stays unchanged" {
  start_script ours -t 4s --grace 300ms
  redis 0 set demo theirs
  wait_until is_dead "$HOLDER"
  assert_tree_dead
  assert_equal "$(redis 0 get demo) $(redis 0 pttl demo)" "theirs -1"
}

@test "a stopped server: the script and all its descendants are dead before the key could expire" {
  start_script ours -t 3s --grace 300ms
  stop_servers_for_good 3000 0
  assert_dead_before_expiry
  assert_tree_dead
  wait_until is_dead "$HOLDER"
  resume_server 0
  run -0 redlock-cli run -w 10s -k demo -- true
  assert_equal "$(locks_at 0)" ""
}

@test "a script that ignores TERM, or is stopped, is dead before the lock is free" {
  local manner
  for manner in 'trap "" TERM; echo ready; while :; do sleep 0.1; done' \
    'echo ready; kill -STOP $$; echo went on; sleep 1000'; do
    start_watched ours bash -c '
      redlock-cli acquire -k demo --while-pid $$ -t 4s --grace 300ms --token-file "$0/lease"
      '"$manner" "$BATS_TEST_TMPDIR"
    redis 0 pexpire demo 1
    wait_until is_dead "$HOLDER"
    flock -xn "$WITNESS" true
    wait_background ours
    assert_equal "$output" ready
    assert_in_range "$status" 137 143
  done
}

@test "none of the children of a script that forks all the time survives" {
  start_watched ours /usr/bin/python3 -c '
import os, signal, subprocess, sys, time
subprocess.run(["redlock-cli", "acquire", "-k", "demo", "--while-pid", str(os.getpid()),
                "-t", "15s", "--grace", "3s", "--token-file", sys.argv[1]],
               check=True, close_fds=False)
print("ready", flush=True)
while not os.path.exists(sys.argv[2]):
    time.sleep(0.001)
# Each stays until it is killed; TERM is not enough.
for forks in range(3000):
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            signal.pause()
    time.sleep(0.001)
time.sleep(1000)' "$BATS_TEST_TMPDIR/lease" "$BATS_TEST_TMPDIR/go"
  # Lost by the next renewal, which is due when 10 s are left: while it forks.
  wait_until expires_within 0 12000
  redis 0 del demo
  touch "$BATS_TEST_TMPDIR/go"
  wait_until is_dead "$HOLDER"
  flock -xn "$WITNESS" true
  wait_background ours
  assert_equal "$status" 143
}

@test "none of the children of a script that forks slowly survives, however often the lease is lost" {
  local round
  # A process that dies while it forks would leave a child behind that the holder does not find.
  cat >"$BATS_TEST_TMPDIR/forks.py" <<'EOF'
import os, signal, subprocess, sys
memory = b"x" * (400 << 20)
subprocess.run(["redlock-cli", "acquire", "-k", "demo", "--while-pid", str(os.getpid()),
                "-t", "9s", "--grace", "2s", "--token-file", sys.argv[1]],
               check=True, close_fds=False)
print("ready", flush=True)
open(sys.argv[2]).close()
# Each stays until it is killed; TERM is not enough.
for forks in range(400):
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            signal.pause()
while True:
    signal.pause()
EOF
  mkfifo "$BATS_TEST_TMPDIR/go"
  for round in 1 2 3; do
    start_watched ours /usr/bin/python3 "$BATS_TEST_TMPDIR/forks.py" "$BATS_TEST_TMPDIR/lease" \
      "$BATS_TEST_TMPDIR/go"
    # Its next renewal, which is due when it goes on, finds that the key is gone.
    kill -STOP "$HOLDER"
    redis 0 del demo
    redis 0 set timer x px 3000
    wait_for_no_key 0 timer
    timeout 60 sh -c ': >"$0"' "$BATS_TEST_TMPDIR/go"
    kill -CONT "$HOLDER"
    wait_until is_dead "$HOLDER"
    flock -xn "$WITNESS" true
    wait_background ours
  done
}

@test "the script's descendants have the grace, even if the script itself ends at once" {
  start_watched ours bash -c '
    redlock-cli acquire -k demo --while-pid $$ -t 15s --grace 6s --token-file "$0/lease"
    bash -c "trap \"sleep 0.5; touch \$0/cleaned; exit\" TERM
      echo ready; while :; do sleep 0.1; done" "$0"
    exit 3' "$BATS_TEST_TMPDIR"
  redis 0 del demo
  wait_until is_dead "$SCRIPT"
  wait_until is_dead "$HOLDER"
  flock -xn "$WITNESS" true
  assert [ -e "$BATS_TEST_TMPDIR/cleaned" ]
}

@test "the script gets --stop-signal" {
  start_watched ours bash -c '
    redlock-cli acquire -k demo --while-pid $$ -t 12s --grace 5s --stop-signal USR1 \
      --token-file "$0/lease"
    trap "echo USR1; exit 7" USR1; trap "echo TERM" TERM
    echo ready; while :; do sleep 0.1; done' "$BATS_TEST_TMPDIR"
  redis 0 del demo
  wait_background ours
  assert_equal "$status ${lines[*]}" "7 ready USR1"
  wait_until is_dead "$HOLDER"
}

@test "--on-lost term: the script and its descendants get TERM, and may end in their own time" {
  start_watched ours bash -c '
    redlock-cli acquire -k demo --while-pid $$ -t 5s --grace 1s --on-lost term \
      --token-file "$0/lease"
    bash -c "trap \"echo child\" TERM; echo up; until [[ -e \$0/end ]]; do sleep 0.1; done" "$0" &
    trap "echo told" TERM; echo ready; until [[ -e $0/end ]]; do sleep 0.1; done; exit 5' \
    "$BATS_TEST_TMPDIR"
  wait_for_stdout ours up
  redis 0 del demo
  wait_until is_dead "$HOLDER"
  wait_for_stdout ours told
  wait_for_stdout ours child
  redis 0 set timer x px 5500
  wait_for_no_key 0 timer
  assert is_alive "$SCRIPT"
  touch "$BATS_TEST_TMPDIR/end"
  wait_background ours
  assert_equal "$status" 5
}

@test "--on-lost warn: no process gets a signal, and the holder ends" {
  start_pet
  by_pet redlock-cli acquire -k demo --while-pid "$PET" -t 4s --on-lost warn
  find_holder
  redis 0 set demo theirs
  wait_until is_dead "$HOLDER"
  assert_equal "$(redis 0 get demo)" theirs
  assert_pet_untouched
}
