#!/usr/bin/env bats
# The reports about a lost lease of acquire --while-pid.
load helper/common
load helper/supervision
load helper/while_pid

# A script that records the signal that it gets in the file $1.said, and then ends.
telltale() {
  executable telltale <<'EOF'
#!/bin/bash
redlock-cli acquire -k demo --while-pid $$ -t 10s --grace 4s --token-file "$1" || exit
exec 2>>"$1.said"
trap 'echo stop signal >>"$1.said"; exit 7' TERM
echo ready
while :; do sleep 0.1; done
EOF
}

# Without bash's message about a sleep that the signal has ended.
said() { grep -vx Terminated "$BATS_TEST_TMPDIR/lease.said"; }

@test "a loss is reported on the script's stderr, before the stop signal" {
  start_watched ours "$(telltale)" "$BATS_TEST_TMPDIR/lease"
  redis 0 set demo theirs ex 60
  wait_background ours
  assert_equal "$status" 7
  assert_regex "$(said)" \
    "^redlock-cli: demo: lost: it is held by a foreign client.*; \
process $SCRIPT relies on the lock: \
stopping it and its descendants
stop signal$"
}

@test "a lease that cannot be renewed is reported, too" {
  start_watched ours "$(telltale)" "$BATS_TEST_TMPDIR/lease"
  pause_server 0
  wait_background ours
  assert_equal "$status" 7
  run said
  assert_line --index 0 --regexp \
    "^redlock-cli: demo: cannot renew: .*; process $SCRIPT relies on the lock: stopping it "
  assert_line --index 1 "stop signal"
  resume_server 0
}

@test "a stderr that is a file opened with > gets the line as if the script had written it" {
  as_root
  start_watched ours bash -c '
    redlock-cli acquire -k demo --while-pid $$ -t 10s --grace 4s --token-file "$0"
    trap "echo stop signal >&2; exit 7" TERM
    echo ready; echo before >&2; while :; do sleep 0.1; done' "$BATS_TEST_TMPDIR/lease"
  redis 0 pexpire demo 1
  wait_background ours
  assert_regex "$stderr" "^before
redlock-cli: demo: lost: .*
.*stop signal$"
}

@test "--on-lost term and warn report what happens to the script" {
  start_pet
  by_pet redlock-cli acquire -k demo --while-pid "$PET" -t 6s --grace 100ms --server-timeout 1s \
    --on-lost warn
  redis 0 set demo theirs
  wait_until grep -q "lost: .*process $PET relies on the lock: it runs on without the lock" \
    "$(background_stderr pet)"
  redis 0 del demo
  by_pet redlock-cli acquire -k demo --while-pid "$PET" -t 6s --grace 100ms --server-timeout 1s \
    --on-lost term
  redis 0 set demo theirs
  wait_until grep -q "lost: .*process $PET relies on the lock: sending it the stop signal" \
    "$(background_stderr pet)"
  wait_for_stdout pet told
}

@test "a stderr that is closed, full, or without a reader delays nothing" {
  local manner
  for manner in 'exec 2>&-' 'mkfifo "$1.full"; exec 2<>"$1.full"; timeout 1 cat /dev/zero >&2' \
    'exec 2> >(exit 0)'; do
    start_watched ours bash -c "$manner"'
      redlock-cli acquire -k demo --while-pid $$ -t 10s --grace 4s --token-file "$1"
      echo ready; while :; do sleep 0.1; done' - "$BATS_TEST_TMPDIR/lease"
    redis 0 pexpire demo 1
    wait_until is_dead "$HOLDER"
    flock -xn "$WITNESS" true
    wait_background ours
    assert_equal "$status" 143
    rm -f "$BATS_TEST_TMPDIR/lease.full"
  done
}

# A program `with_log DIRECTORY CMD…` that runs CMD with a /dev of its own, in DIRECTORY, where
# start_log has made a log.
with_log() {
  executable with_log <<'EOF'
#!/bin/bash
if [[ $1 != inside ]]; then exec unshare --mount "$0" inside "$@"; fi
dev=$2
shift 2
for name in null zero full random urandom tty; do
  touch "$dev/$name" && mount --bind "/dev/$name" "$dev/$name" || exit
done
ln -sf /proc/self/fd "$dev/fd"
mount --rbind "$dev" /dev && exec "$@"
EOF
}

# start_log read|full: a system log; background_stdout log is what it gets, unless no process
# reads it and it is full.
start_log() {
  mkdir "$BATS_TEST_TMPDIR/dev"
  start_background log /usr/bin/python3 -uc '
import os, socket, sys, time
os.chdir(sys.argv[1])
log = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
log.bind("log")
if sys.argv[2] == "full":
    writer = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    writer.connect("log")
    writer.setblocking(False)
    try:
        while True: writer.send(b"noise")
    except BlockingIOError:
        pass
print("up")
while sys.argv[2] == "full": time.sleep(1000)
while True: print(log.recv(65536).decode())' "$BATS_TEST_TMPDIR/dev" "$1"
  wait_for_stdout log up
}

# start_logged CMD…: start_watched, with that log.
start_logged() { start_watched ours "$(with_log)" "$BATS_TEST_TMPDIR/dev" "$@"; }

@test "a loss is reported in the system log, as an error of user.redlock-cli" {
  as_root
  start_log read
  start_logged "$(telltale)" "$BATS_TEST_TMPDIR/lease"
  redis 0 set demo theirs ex 60
  wait_background ours
  wait_until grep -q \
    "^<11>.* redlock-cli\[[0-9]*\]: demo: lost: it is held by a foreign client.*; \
process [0-9]* relies on the lock: " \
    "$(background_stdout log)"
  wait_until is_dead "$HOLDER"
  refute grep -q UNSAFE "$(background_stdout log)"
}

@test "a lost lease of --detach is reported in the system log, once" {
  as_root
  start_log read
  run -0 "$(with_log)" "$BATS_TEST_TMPDIR/dev" redlock-cli acquire -k demo --detach --max-hold 1h \
    -t 10s --token-file "$BATS_TEST_TMPDIR/lease" --syslog
  find_holder
  redis 0 set demo theirs ex 60
  wait_until is_dead "$HOLDER"
  wait_until grep -q "demo: lost: it is held by a foreign client" "$(background_stdout log)"
  assert_equal "$(grep -c "demo: lost: " "$(background_stdout log)")" 1
}

@test "a system log that hangs delays nothing" {
  as_root
  start_log full
  start_logged "$(telltale)" "$BATS_TEST_TMPDIR/lease"
  redis 0 pexpire demo 1
  wait_until is_dead "$HOLDER"
  wait_background ours
  assert_equal "$status" 7
  assert_regex "$(said)" "lost: it is gone.*
stop signal$"
}

@test "a process that dies only after the end of the lease is reported as unsafe in the system log, with the delay" {
  as_root
  start_log read
  start_logged "$(telltale)" "$BATS_TEST_TMPDIR/lease"
  kill -STOP "$HOLDER"
  wait_for_no_key 0 demo
  kill -CONT "$HOLDER"
  wait_until is_dead "$HOLDER"
  wait_background ours
  wait_until grep -q \
    "^<11>.*: demo: UNSAFE: the descendants of process [0-9]* were seen dead only [0-9.]*m\?s after \
the end of the lease" \
    "$(background_stdout log)"
}

@test "a process that cannot be killed is reported as unsafe in the system log, and the lock is not released" {
  as_root
  start_log read
  # Without CAP_KILL root may not signal another user's process.
  start_logged setpriv --bounding-set=-kill bash -c '
    redlock-cli acquire -k demo --while-pid $$ -t 4s --grace 300ms --token-file "$0/lease"
    setpriv --reuid 65534 --regid 65534 --clear-groups sleep 1000 & echo "$!" >"$0/pids"
    echo ready; wait' "$BATS_TEST_TMPDIR"
  local other
  other=$(<"$BATS_TEST_TMPDIR/pids")
  wait_until grep -q "^Uid:.65534" "/proc/$other/status"
  pause_server 0
  wait_until is_dead "$HOLDER"
  resume_server 0
  # Others may still be dying.
  wait_until grep -qE \
    "UNSAFE: processes could not be killed and still run, .* after the end of the lease: \
([^ ]+ [0-9]+, )*[^ ]+ $other" "$(background_stdout log)"
  assert is_alive "$other"
  kill -KILL "$other"
  wait_background ours
}
