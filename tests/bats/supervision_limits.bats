#!/usr/bin/env bats
# A system with tight limits, and redlock-cli as process 1.
load helper/common
load helper/supervision

# An ordinary user, with processes of its own alone; only root can become it.
readonly NOBODY_ELSE=61234

# limited LIMIT CMD…: runs it with a server on TCP, as a user with at most LIMIT processes.
limited() {
  local limit=$1
  shift
  start_tcp_server
  # Neither the program's directory nor that of the test is open to others for sure.
  local program
  program=$(mktemp -d /tmp/rl.XXXXXX)
  chmod 755 "$program"
  install -m 755 "$REDLOCK_CLI" "$program/redlock-cli"
  run --separate-stderr setpriv --reuid="$NOBODY_ELSE" --regid="$NOBODY_ELSE" --clear-groups \
    env -u XDG_CONFIG_HOME HOME=/nonexistent prlimit --nproc="$limit" "$program/redlock-cli" \
    run -S "${SERVER_URL[1]}" "$@"
  rm -r "$program"
}

@test "no process can be forked: 71, and no lock" {
  as_root
  limited 0 -k demo -- echo entered
  assert_equal "$status $output" "71 "
  assert_regex "$stderr" "^redlock-cli: .*fork"
  assert_equal "$(redis 1 keys '*')" ""
}

@test "the holder can be forked and the command cannot: 71, and the lock is free" {
  as_root
  limited 2 -k demo -- echo entered
  assert_equal "$status $output" "71 "
  assert_regex "$stderr" "cannot fork"
  assert_equal "$(keys_at 1)" ""
}

@test "--on-stop runs although the command had used up the limit, as soon as processes end" {
  as_root
  # The processes outlive the stop signal for long enough that the first fork fails.
  limited 12 -k demo --max-hold 700ms --grace 10s --on-stop 'echo "hook runs"' -- perl -e '
    $SIG{TERM} = sub { select undef, undef, undef, 0.3; exit };
    1 while my $child = fork; sleep 1000 while 1'
  assert_equal "$status" 124
  assert_regex "$stderr" "hook runs"
  assert_equal "$(keys_at 1)" ""
}

@test "an ordinary user without processes: 71, and no lock" {
  ((EUID != 0)) || skip "root may always fork"
  run --separate-stderr bash -c 'ulimit -u 0; exec redlock-cli run -k demo -- echo entered'
  assert_equal "$status $output" "71 "
  assert_equal "$(redis 0 keys '*')" ""
}

@test "however few files may be open: the command runs once, or an error says why, and no lock is left" {
  local limit
  for limit in {6..40}; do
    run --separate-stderr \
      bash -c 'exec 3>&-; ulimit -n "$0"
        exec redlock-cli run -n -k demo --server-timeout 4s -- echo entered' "$limit"
    if [[ $status != 0 || $output != entered ]]; then
      assert_equal "$limit: $output" "$limit: "
      assert_regex "$limit: $status $stderr" \
        "^$limit: (71 redlock-cli: .*many open files|127 .*shared libraries)"
    fi
    assert_equal "$limit: $(keys_at 0)" "$limit: "
  done
  # The last of them was enough.
  assert_equal "$status" 0
}

@test "however few files may be open: acquire keeps the lock in the background, or an error says why" {
  local how limit
  for how in '--while-pid "$$"' '--detach --max-hold 1s --token-file "$HOME/lease"'; do
    for limit in {7..15} 24 40; do
      run --separate-stderr \
        bash -c 'exec 3>&-; ulimit -n "$0"; redlock-cli acquire -k demo '"$how"'; exit' "$limit"
      [[ $status != 0 ]] || continue
      assert_equal "$limit: $output" "$limit: "
      assert_regex "$limit: $status $stderr" "^$limit: 71 redlock-cli: [^:]*: Too many open files\$"
      assert_equal "$limit: $(locks_at 0)" "$limit: "
    done
    assert_equal "$status" 0
    wait_for_no_key 0 demo
  done
}

@test "messages are written even if no file descriptor is left for them" {
  local limit
  for limit in {9..15}; do
    run --separate-stderr bash -c 'exec 3>&-; ulimit -n "$0"
      exec redlock-cli acquire -k "$0" --ttl 60s -v' "$limit"
    assert_regex "$limit: $status $stderr" \
      "^$limit: (0 redlock-cli: $limit: acquired .*|71 .*: Too many open files)\$"
  done
  assert_equal "$status" 0
}

@test "a result that cannot be passed on is lost, but the command's exit status is not" {
  local i keys=()
  for i in {1..60}; do keys+=(-k "demo $i"); done
  run --separate-stderr bash -c 'ulimit -f 1; exec redlock-cli run "$@" -- sh -c "exit 23" 9>&1' \
    redlock-cli "${keys[@]}" --status-fd 9
  assert_equal "$status $output" "23 "
  assert_regex "$stderr" "cannot pass on the result for --json or --status-fd"
  assert_equal "$(keys_at 0)" ""
}

# without_proc CMD…: with an empty /proc.
without_proc() {
  unshare --mount --propagation private sh -c 'mount -t tmpfs none /proc; exec "$@"' - "$@"
}

# bats test_tags=unsanitized
@test "without /proc only the command itself could be stopped: 71, and no lock" {
  as_root
  run --separate-stderr without_proc redlock-cli run -k demo -- echo entered
  assert_equal "$status $output" "71 "
  assert_regex "$stderr" \
    "^redlock-cli: /proc does not show the processes of the command, .*mount /proc .*--on-lost term"
  assert_equal "$(redis 0 keys '*')" ""
}

@test "a /proc of another pid namespace: 71, and no lock" {
  as_root
  run --separate-stderr unshare --pid --fork --kill-child redlock-cli run -k demo -- echo entered
  assert_equal "$status $output" "71 "
  assert_regex "$stderr" "/proc does not show the processes of the command"
  assert_equal "$(redis 0 keys '*')" ""
}

# bats test_tags=unsanitized
@test "without /proc but with fewer promises, the command runs" {
  as_root
  local less
  for less in term warn; do
    run --separate-stderr without_proc redlock-cli run --on-lost "$less" -k demo -- echo entered
    assert_equal "$status $output" "0 entered"
  done
}

# --- As process 1 ---

as_init() { unshare --pid --fork --kill-child --mount-proc "$@"; }

@test "as process 1: exit codes pass, and death by a signal is 128 and its number" {
  as_root
  local code
  for code in 0 1 23 79 255; do
    run as_init redlock-cli run -k demo -- sh -c 'exit "$0"' "$code"
    assert_equal "$status" "$code"
  done
  run as_init redlock-cli run -k demo -- sh -c 'kill -TERM $$'
  assert_equal "$status" 143
  run as_init redlock-cli run -k demo -- sh -c 'ulimit -c 0; kill -KILL $$'
  assert_equal "$status" 137
  assert_equal "$(keys_at 0)" ""
}

@test "as process 1: the command's orphans are reaped" {
  as_root
  run as_init redlock-cli run -k demo -- bash -c '
    test "$PPID" != 1 && for i in {1..20}; do (true & ); done
    for i in {1..1000}; do grep -qs "^State:.Z" /proc/[0-9]*/status || exit 5; sleep 0.02; done'
  assert_equal "$status" 5
}

@test "below a process 1 that does not reap, no zombie is left" {
  as_root
  run -0 as_init setsid -w /usr/bin/python3 -c '
import os, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
pids = [name for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]
print(*(open(f"/proc/{pid}/stat").read() for pid in pids))
' redlock-cli run -q -k demo -- true
  # setsid forks, as it leads its group.
  refute_output --partial " Z "
}

@test "as process 1: TERM reaches the command" {
  as_root
  start_background ours unshare --pid --fork --kill-child --mount-proc redlock-cli run -k demo -- \
    bash -c 'trap "echo told; exit 7" TERM; echo ready; while :; do sleep 0.1; done'
  wait_for_stdout ours ready
  kill -TERM "$(pgrep -P "${BACKGROUND_PID[ours]}")"
  wait_background ours
  assert_equal "$status ${lines[*]}" "7 ready told"
  assert_equal "$(keys_at 0)" ""
}
