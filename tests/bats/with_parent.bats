#!/usr/bin/env bats
# run --with-parent: it ends with the process that started it.
load helper/common
load helper/supervision

# ask OPTION… -- CMD…: a process starts `redlock-cli run -k demo --with-parent OPTION…` and waits for
# it; FRONT is the pid of run. It inherits the test's disposition of HUP.
ask() {
  start_background asker bash -c 'redlock-cli run -k demo --with-parent --status-fd 8 \
    --events-fd 7 "$@" & echo $! >"$0"; wait' "$BATS_TEST_TMPDIR/front" "$@" \
    7>"$BATS_TEST_TMPDIR/events" 8>"$BATS_TEST_TMPDIR/report" 9<"$WITNESS"
  wait_until test -s "$BATS_TEST_TMPDIR/front"
  FRONT=$(<"$BATS_TEST_TMPDIR/front")
}

# Like a CI agent that crashes, or sshd when the connection is gone.
kill_asker() {
  kill -KILL "${BACKGROUND_PID[asker]}"
  wait_background asker
}

# events: their names and reasons.
events() {
  jq -r '[.event, .why, .result] | map(select(.)) | join(" ")' "$BATS_TEST_TMPDIR/events" |
    paste -sd ,
}

# What it wrote has the shape that the schema describes.
assert_valid() {
  cat "$BATS_TEST_TMPDIR/events" "$BATS_TEST_TMPDIR/report" |
    /usr/bin/python3 "$BATS_TEST_DIRNAME/helper/valid_output.py"
}

# ready SCRIPT: a command that records its pid, reports ready, and runs SCRIPT.
ready() { echo "flock -s 9; echo \$\$ >$BATS_TEST_TMPDIR/pids; echo ready; $1"; }

@test "the wait ends, and the command never runs" {
  hold theirs
  ask -- touch "$BATS_TEST_TMPDIR/entered"
  wait_for_queued 1
  kill_asker
  wait_until is_dead "$FRONT"
  assert_equal "$(redis 0 exists 'redlock:queue:{demo}')" 0
  release_hold theirs
  assert [ ! -e "$BATS_TEST_TMPDIR/entered" ]
  assert_equal "$(reported '(j["result"], j["exit_code"], j["message"])')" "('parent_gone', 129, \
'the process that started redlock-cli has ended; the command was not run')"
  assert_regex "$(events)" '^waiting,.*not_acquired parent_gone$'
  assert_valid
}

@test "a command is stopped, and the lock is free only when all of it is dead" {
  ask --grace 300ms -- bash -c "$(ready "trap '' TERM; while :; do setsid sleep 1000 & sleep 0.1; done")"
  wait_for_stdout asker ready
  watch_lock
  kill_asker
  assert_dead_before_free
  wait_until is_dead "$FRONT"
  assert_equal "$(reported '(j["result"], j["exit_code"], j["command_signal"], j["released"])')" \
    "('parent_gone', 137, 9, True)"
  assert_equal "$(events)" "acquired,stopping parent_gone,ended,released"
  assert_valid
}

@test "it exits as its command ended, which is not a success for --once-per" {
  ask --once-per 1h -- bash -c "$(ready "trap 'exit 0' TERM; while :; do sleep 0.1; done")"
  wait_for_stdout asker ready
  kill_asker
  wait_until is_dead "$FRONT"
  assert_equal "$(reported '(j["result"], j["exit_code"], j["command_exit"], j["message"])')" \
    "('parent_gone', 0, 0, 'the command was stopped because the process that started redlock-cli \
has ended')"
  run -0 redlock-cli run -k demo -n --once-per 1h -- echo ran
  assert_output ran
}

@test "also where HUP is ignored, with --stop-signal, and whatever --on-lost says" {
  trap '' HUP
  ask --on-lost warn --stop-signal USR1 -- \
    bash -c "$(ready "trap 'exit 7' USR1; while :; do sleep 0.1; done")"
  trap - HUP
  wait_for_stdout asker ready
  kill_asker
  wait_until is_dead "$FRONT"
  assert_equal "$(reported '(j["result"], j["exit_code"], j["released"])')" \
    "('parent_gone', 7, True)"
}

@test "also while the front process is stopped" {
  ask -- bash -c "$(ready "exec sleep 1000")"
  wait_for_stdout asker ready
  watch_lock
  kill -STOP "$FRONT"
  wait_until is_stopped "$FRONT"
  kill_asker
  assert_dead_before_free
  kill -CONT "$FRONT"
  wait_until is_dead "$FRONT"
}

@test "a nested run is stopped, too" {
  ask --descendants leave -- bash -c "redlock-cli run -k demo -- bash -c \
    '$(ready "exec sleep 1000")' 3>&- 7>&- 8>&- & wait"
  wait_for_stdout asker ready
  watch_lock
  kill_asker
  assert_dead_before_free
  wait_until is_dead "$FRONT"
  assert_equal "$(reported 'j["result"]')" parent_gone
}

@test "while the process lives, nothing changes" {
  run -5 --separate-stderr redlock-cli run -k demo --with-parent -- sh -c 'exit 5'
  assert_equal "$output$stderr" ""
}

@test "a parent that may have ended already is 64, an invisible one is 71" {
  unshare --pid --fork true 2>/dev/null || skip "needs root with CAP_SYS_ADMIN"
  assert_refused 64 "--with-parent: the parent of redlock-cli is process 1: what started it may \
have ended already" unshare --pid --fork sh -c 'redlock-cli run -k demo --with-parent -- true; exit $?'
  assert_refused 71 "--with-parent: the process that started redlock-cli is in another pid \
namespace" unshare --pid --fork redlock-cli run -k demo --with-parent -- true
  assert_equal "$(keys_at 0)" ""
}
