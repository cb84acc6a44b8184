#!/usr/bin/env bats
# --sd-notify: the messages to a service manager.
load helper/common
load helper/supervision

# start_manager ADDRESS: listens there as systemd does; each message is a line that begins with the
# sender's pid.
start_manager() {
  start_background manager /usr/bin/python3 -uc '
import socket, struct, sys
manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
manager.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
manager.bind(sys.argv[1].replace("@", "\0"))
print("up")
while True:
    text, extra, *_ = manager.recvmsg(65536, 1024)
    print(struct.unpack("3i", extra[0][2])[0], text.decode().strip().replace("\n", "|"))' "$1"
  wait_for_stdout manager up
  export NOTIFY_SOCKET=$1
}
told() { grep -qE "$1" "$(background_stdout manager)"; }

@test "a standby reports its wait, and is ready when it leads; all from the main process" {
  start_manager "$BATS_TEST_TMPDIR/notify"
  hold leader --note "on a"
  start_background standby redlock-cli run -k demo --sd-notify \
    -- sh -c 'echo entered; exec sleep 1000'
  local pid=${BACKGROUND_PID[standby]}
  wait_until told "^$pid STATUS=waiting for demo: held by .*\"on a\""
  assert [ "$(grep -c READY "$(background_stdout manager)")" = 0 ]
  release_hold leader
  wait_until told "^$pid READY=1"
  # STATUS may be in one message with READY=1, if the previous message was still being sent.
  wait_until told "^$pid (READY=1\|)?STATUS=holds demo, fence [0-9]+\$"
  wait_for_stdout standby entered
  kill -TERM "$pid"
  wait_background standby
  wait_until told "^$pid STOPPING=1"
  assert_equal "$(grep -vc "^$pid \|^up" "$(background_stdout manager)")" 0
}

@test "an address in the abstract namespace" {
  start_manager "@redlock-test-$$-$BATS_TEST_NUMBER"
  run -0 redlock-cli run -k demo --sd-notify -- true
  wait_until told "READY=1"
  wait_until told "STOPPING=1"
}

@test "a lost lease: the status has the reason" {
  start_manager "$BATS_TEST_TMPDIR/notify"
  start_background ours redlock-cli run -k demo -t 2s --sd-notify -- sleep 1000
  wait_until told READY=1
  redis 0 set demo theirs
  wait_background ours
  assert_equal "$status" 79
  wait_until told "STATUS=lost demo: "
  wait_until told "STOPPING=1"
}

@test "a run that is asked to stop, or replaced: the status names the requester" {
  start_manager "$BATS_TEST_TMPDIR/notify"
  start_background ours redlock-cli run -k demo -t 9s --replace --sd-notify -- sleep 1000
  wait_until told READY=1
  run -0 redlock-cli run -k demo --replace --note new -- true
  wait_background ours
  assert_equal "$status" 143
  wait_until told "STATUS=stops the command under demo: asked to stop for a newer run of .*\"new\""
  start_background ours redlock-cli run -k demo -t 9s --sd-notify -- sleep 1000
  wait_for_key 0 demo
  run -0 redlock-cli stop demo -w 60s --reason why
  wait_background ours
  wait_until told "STATUS=stops the command under demo: asked to stop by .*\"why\""
}

@test "a skipped run also reports ready: a service that exits before that has failed" {
  start_manager "$BATS_TEST_TMPDIR/notify"
  run -0 redlock-cli run -k demo --once-per 20h -- true
  run -0 redlock-cli run -k demo --once-per 20h --sd-notify -q -- echo ran
  assert_output ""
  wait_until told "STOPPING=1"
  # How many of them are in one message is a matter of time, and with it the place of STATUS.
  output=$(sed -E '1d; s/^[0-9]+ //; s/ran [0-9.ms]+ ago[^|]*/ran/; s/\|/\n/g' \
    "$(background_stdout manager)" | sed '/^STATUS=waiting /d')
  assert_equal "$(grep STATUS <<<"$output")" "STATUS=demo already ran"
  assert_equal "$(grep -v STATUS <<<"$output")" $'READY=1\nSTOPPING=1'
}

@test "a missing, dead or hanging manager changes nothing" {
  local address
  for address in "" relative "vsock:2:1" "$BATS_TEST_TMPDIR/no-socket" \
    "/$(printf 'x%.0s' {1..200})"; do
    NOTIFY_SOCKET=$address run -0 --separate-stderr redlock-cli run -k demo --sd-notify \
      -- sh -c 'echo "$NOTIFY_SOCKET"'
    assert_equal "$output$stderr" "$address"
  done
  # One that reads nothing: its queue is full.
  start_background full /usr/bin/python3 -uc '
import socket, sys, time
manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
manager.bind(sys.argv[1])
writer = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
writer.connect(sys.argv[1])
writer.setblocking(False)
try:
    while True: writer.send(b"x" * 1000)
except BlockingIOError: print("up")
time.sleep(1000)' "$BATS_TEST_TMPDIR/full"
  wait_for_stdout full up
  NOTIFY_SOCKET=$BATS_TEST_TMPDIR/full run -0 redlock-cli run -k demo --sd-notify -- true
}

@test "without --sd-notify nothing is sent" {
  start_manager "$BATS_TEST_TMPDIR/notify"
  run -0 redlock-cli run -k demo -- true
  run -0 redlock-cli run -k demo --sd-notify -- true
  wait_until told STOPPING=1
  assert_equal "$(grep -c READY=1 "$(background_stdout manager)")" 1
}
