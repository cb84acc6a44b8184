#!/usr/bin/env bats
# run --on-stop: stops what a daemon or another host does for the command, before the lock is free.
load helper/common
load helper/supervision
load helper/terminal

setup() {
  setup_supervision
  STOPPED=$BATS_TEST_TMPDIR/stopped
  export WITNESS STOPPED
}
teardown() {
  end_tree
  terminal_teardown
}

# The beginning of a hook: it records the reason, and holds the witness.
readonly NOTE='exec 9<"$WITNESS"; flock -s 9; echo "$REDLOCK_STOP_REASON $REDLOCK_KEY" >>"$STOPPED"'

# start OPTION… -- SCRIPT: a command that records its pid, reports ready, and runs SCRIPT.
start() {
  start_under_witness ours -k demo --status-fd 8 "${@:1:$#-1}" \
    bash -c "echo \$\$ >$BATS_TEST_TMPDIR/pids; echo ready; ${*: -1}"
}
readonly SLEEP='exec sleep 1000'

# A hook that only KILL ends, like its children; the witness shows them.
readonly HANG='trap "" TERM; setsid sleep 1000 & while :; do sleep 1000 & sleep 0.1; done'

# waits_for FILE: waits until the test creates the file.
waits_for() { echo "until [ -e $BATS_TEST_TMPDIR/$1 ]; do sleep 0.05; done"; }

stopped() { paste -sd , "$STOPPED"; }

assert_not_released() {
  assert_equal "$(redis 0 exists demo)" 1
  assert_equal "$(reported '(j["result"], j["exit_code"], j["released"])')" \
    "('unconfirmed', 80, False)"
}

@test "at the end of --max-hold it runs, and the lock is not free before it has ended" {
  await_lock
  start --max-hold 5s --grace 2s --on-stop "$NOTE; $(waits_for go); echo done >>\$STOPPED" -- "$SLEEP"
  wait_until is_dead "$COMMAND"
  wait_until test -e "$STOPPED"
  assert_equal "$(redis 0 exists demo)" 1
  touch "$BATS_TEST_TMPDIR/go"
  wait_background ours
  assert_equal "$status" 124
  assert_equal "$(stopped)" "max_hold demo,done"
  assert_dead_before_free
  assert_equal "$(keys_at 0)" ""
}

@test "it runs under /bin/sh, whatever SHELL says" {
  local shell
  for shell in /usr/sbin/nologin /bin/true /no/such/shell; do
    rm -f "$STOPPED"
    SHELL=$shell run -124 redlock-cli run -k demo --max-hold 100ms --on-stop "$NOTE" -- sleep 1000
    assert_equal "$(stopped)" "max_hold demo"
  done
}

@test "when the lock is lost" {
  start --on-stop "$NOTE" -- "$SLEEP"
  redis 0 del demo
  wait_background ours
  assert_equal "$status" 79
  assert_equal "$(stopped)" "lost demo"
}

@test "when the parent process has ended" {
  start_background asker bash -c 'redlock-cli run -k demo --with-parent --on-stop "$1" -- \
    bash -c "echo ready; exec sleep 1000" & wait' - "$NOTE"
  wait_for_stdout asker ready
  kill -KILL "${BACKGROUND_PID[asker]}"
  wait_background asker
  wait_for_no_key 0 demo
  assert_equal "$(stopped)" "parent_gone demo"
}

@test "when a TERM is passed on: once, however many come, and the status is the command's" {
  start --on-stop "$NOTE" -- "trap 'echo TERM' TERM; trap 'echo HUP' HUP; $(waits_for end); exit 5"
  kill -TERM "$FRONT"
  wait_for_stdout ours TERM
  wait_until test -s "$STOPPED"
  kill -HUP "$FRONT"
  wait_for_stdout ours HUP
  touch "$BATS_TEST_TMPDIR/end"
  wait_background ours
  assert_equal "$status" 5
  assert_equal "$(stopped)" "signal demo"
  assert_equal "$(keys_at 0)" ""
}

@test "^C ends the command at once: the hook still runs, and the lock is kept until it has ended" {
  open_terminal
  type_line "redlock-cli run -k demo --on-stop '$NOTE; $(waits_for go)' -- sh -c 'echo read\"\"y; exec sleep 1000'"
  see ready
  press "$CTRL_C"
  wait_until test -s "$STOPPED"
  assert_equal "$(redis 0 exists demo)" 1
  touch "$BATS_TEST_TMPDIR/go"
  see_status 130
  assert_equal "$(stopped)" "signal demo"
  assert_equal "$(keys_at 0)" ""
}

@test "it does not run when nothing is stopped" {
  run -5 redlock-cli run -k demo --on-stop "$NOTE" -- sh -c 'exit 5'
  assert [ ! -e "$STOPPED" ]
}

@test "it has the command's environment, no input, and writes to standard error" {
  export OURS='a b'
  start --on-stop 'echo "$OURS, $(cat), $REDLOCK_FENCE"' -- "$SLEEP"
  kill -TERM "$FRONT"
  wait_background ours
  assert_equal "$status $output" "143 ready"
  assert_equal "$stderr" "a b, , $(reported 'j["fence"]')"
}

@test "a hook that hangs, forks and ignores TERM is dead before the lock could expire: 80" {
  start -t 5s --grace 500ms --on-stop "$NOTE; $HANG" -- "$SLEEP"
  stop_servers_for_good 5000 0
  assert_dead_before_expiry
  wait_background ours
  assert_equal "$(stopped)" "lost demo"
  assert_equal "$status" 80
  assert_regex "$stderr" "UNSAFE: --on-stop died of SIGKILL: what it should have stopped may outlive"
  assert_equal "$(reported '"late_ms" in j')" False
}

@test "a hook that hangs at --max-hold is killed with the tree, and the lock is not released" {
  start --max-hold 5s --grace 500ms --on-stop "$NOTE; $HANG" -- "trap '' TERM; $(waits_for never)"
  wait_background ours
  assert_equal "$status" 80
  assert_tree_dead
  assert_not_released
}

@test "a hook that fails leaves the lock to expire, also after a signal: 80" {
  start --on-stop 'exit 3' -- "$SLEEP"
  kill -TERM "$FRONT"
  wait_background ours
  assert_equal "$status" 80
  assert_regex "$stderr" "demo: UNSAFE: --on-stop failed \(exit status 3\)"
  assert_not_released
}

@test "a hook that hangs after a signal has until the lease could expire, and dies with all its children" {
  local many='for i in $(seq 100); do setsid sleep 1000 & done'
  start -t 5s --grace 300ms --on-stop "$NOTE; $many; $HANG" -- "$SLEEP"
  kill -TERM "$FRONT"
  wait_background ours
  assert_equal "$status" 80
  assert_tree_dead
  assert_not_released
}

@test "front killed: everything but the hook dies at once, and the release waits for the hook" {
  start_tree ours -t 60s --on-stop "$NOTE; $(waits_for go); echo done >>\$STOPPED"
  watch_lock
  kill -KILL "$FRONT"
  wait_until is_tree_dead
  wait_until test -e "$STOPPED"
  assert_equal "$(redis 0 exists demo)" 1
  touch "$BATS_TEST_TMPDIR/go"
  assert_dead_before_free
  assert [ "$LEFT" -gt 20000 ]
  assert_equal "$(stopped)" "front_killed demo,done"
  wait_background ours
}

@test "front killed while the hook runs: the hook continues" {
  start_tree ours -t 60s --grace 10s --on-stop "$NOTE; $(waits_for go); echo done >>\$STOPPED"
  kill -TERM "$FRONT"
  wait_until test -e "$STOPPED"
  watch_lock
  kill -KILL "$FRONT"
  wait_until is_tree_dead
  assert_equal "$(redis 0 exists demo)" 1
  touch "$BATS_TEST_TMPDIR/go"
  assert_dead_before_free
  assert_equal "$(stopped)" "signal demo,done"
  wait_background ours
}

@test "holder killed or stopped: the hook is not run, and a message says so" {
  start --on-stop "$NOTE" -- "$SLEEP"
  kill -KILL "$HOLDER"
  wait_background ours
  assert_equal "$status" 71
  assert_regex "$stderr" "the lock expires by itself; --on-stop was not run"
  redis 0 del demo
  rm "$BATS_TEST_TMPDIR/pids"
  start -t 5s --grace 300ms --on-stop "$NOTE" -- "$SLEEP"
  kill -STOP "$HOLDER"
  wait_background ours
  assert_equal "$status" 79
  assert_regex "$stderr" "--on-stop was not run"
  assert [ ! -e "$STOPPED" ]
}

@test "inside the isolation, which ends with the hook" {
  unshare --pid --fork --mount-proc true 2>/dev/null || skip "needs root with CAP_SYS_ADMIN"
  start --isolate pidns -t 60s \
    --on-stop "$NOTE; readlink /proc/self/ns/pid >>\$STOPPED; $(waits_for go)" \
    -- "readlink /proc/self/ns/pid >$BATS_TEST_TMPDIR/namespace; $SLEEP"
  wait_until test -s "$BATS_TEST_TMPDIR/namespace"
  watch_lock
  kill -KILL "$FRONT"
  wait_until has_written "$STOPPED" pid:
  assert_equal "$(stopped)" "front_killed demo,$(<"$BATS_TEST_TMPDIR/namespace")"
  touch "$BATS_TEST_TMPDIR/go"
  assert_dead_before_free
  wait_background ours
}

@test "an empty text, as from an unset variable, is refused: it would stop nothing" {
  assert_refused 64 "--on-stop: the text is empty" \
    redlock-cli run -k demo --on-stop "" -- touch "$BATS_TEST_TMPDIR/ran"
  assert [ ! -e "$BATS_TEST_TMPDIR/ran" ]
}

@test "not with --on-lost term or warn, which let the command continue: 64" {
  local on_lost
  for on_lost in term warn; do
    assert_refused 64 "--on-stop: needs --on-lost kill" \
      redlock-cli run -k demo --on-lost "$on_lost" --on-stop true -- true
  done
}
