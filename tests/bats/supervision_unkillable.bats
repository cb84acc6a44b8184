#!/usr/bin/env bats
# A process that may not be killed, because it belongs to another user.
load helper/common
load helper/supervision

readonly ORDINARY_UID=65534

setup() {
  as_root
  setup_supervision
  chmod 755 "$BATS_RUN_TMPDIR" "$BATS_TEST_TMPDIR" "$BATS_TEST_TMPDIR/.." "${BATS_TEST_TMPDIR%/*/*}"
  chmod 755 "${SERVER_SOCKET[0]%/*}"
  chmod 777 "${SERVER_SOCKET[0]}"
  [[ $(findmnt -no OPTIONS -T "$BATS_TEST_TMPDIR") != *nosuid* ]] ||
    skip "setuid programs have no effect here"
  install -m 4755 "$(command -v setpriv)" "$BATS_TEST_TMPDIR/become"
  # The user may not be able to reach the build.
  install -m 755 "$REDLOCK_CLI" "$BATS_TEST_TMPDIR/redlock-cli"
}

teardown() {
  [[ ! -s $BATS_TEST_TMPDIR/unkillable ]] ||
    kill -KILL "$(<"$BATS_TEST_TMPDIR/unkillable")" 2>/dev/null || true
  teardown_supervision
}

# Runs as an ordinary user; the command starts a process of root's, which writes its pid to the file
# unkillable and then does $work.
# With $wrap, those words precede redlock-cli.
work='exec sleep 1000'
wrap=()
start_unkillable() {
  install -m 666 /dev/null "$BATS_TEST_TMPDIR/unkillable"
  install -m 666 /dev/null "$BATS_TEST_TMPDIR/report"
  start_background ours env -u HOME setpriv --reuid "$ORDINARY_UID" --regid "$ORDINARY_UID" \
    --clear-groups "${wrap[@]}" \
    "$BATS_TEST_TMPDIR/redlock-cli" run -k demo --status-fd 8 "$@" -- bash -c '
    "$1/become" --reuid 0 --regid 0 --clear-groups bash -c "echo \$\$ >$1/unkillable; $2" &
    until [[ -s $1/unkillable ]]; do sleep 0.1; done
    echo ready; wait' - "$BATS_TEST_TMPDIR" "$work" 8>"$BATS_TEST_TMPDIR/report"
  wait_for_stdout ours ready
  UNKILLABLE=$(<"$BATS_TEST_TMPDIR/unkillable")
  FRONT=${BACKGROUND_PID[ours]}
  HOLDER=$(holder_of "$FRONT")
}

@test "while a process cannot be killed the lock is kept, one line says so, and its end frees the lock" {
  start_unkillable -t 6s
  kill -KILL "$FRONT"
  wait_for_stderr ours "cannot kill all processes"
  wait_for_extend 0
  assert_equal \
    "$(grep -cE "cannot kill all processes; keeping the lock as long as possible: \
([^ ]+ [0-9]+, )*[^ ]+ $UNKILLABLE" \
      "$(background_stderr ours)")" 1
  kill -KILL "$UNKILLABLE"
  wait_for_no_key 0 demo
  wait_until is_dead "$HOLDER"
  assert_equal "$(grep -c "cannot kill all processes" "$(background_stderr ours)")" 1
}

@test "an unkillable process that keeps forking is given up, too" {
  work='while :; do sleep 0.1; done' start_unkillable -t 6s
  redis 0 set demo theirs
  wait_background ours
  assert_equal "$status" 80
  assert_regex "$stderr" "UNSAFE: .* could not be killed"
}

@test "an unkillable process, and a lost lease: 80, UNSAFE, and nothing is released" {
  start_unkillable -t 6s
  redis 0 set demo theirs
  wait_background ours
  assert_equal "$status" 80
  assert_regex "$stderr" "UNSAFE: .* could not be killed .*: ([^ ]+ [0-9]+, )*[^ ]+ $UNKILLABLE"
  assert is_alive "$UNKILLABLE"
  run report
  assert_output --partial '"exit_code":80'
  assert_output --partial '"released":false'
  assert_equal "$(redis 0 get demo)" theirs
}

# --- The shield ---

# start_shielded: sets SHIELD, and HELPER to the child that the front process has from before.
start_shielded() {
  strace -o "$BATS_TEST_TMPDIR/probe" true 2>/dev/null || skip "strace cannot run here"
  # shellcheck disable=SC2016
  wrap=(sh -c 'sleep 1000 </dev/null >/dev/null 2>&1 8>&- & exec "$@"' -)
  start_unkillable -t 6s
  SHIELD=$(ps -o ppid= -p "$HOLDER" | tr -d ' ')
  HELPER=$(pgrep -P "$FRONT" -x sleep)
  assert_equal "$(<"/proc/$SHIELD/comm")" lock-shield
}

# trace_shield OPTION…: shows its pauses in the file calls.
trace_shield() {
  start_background trace strace -o "$BATS_TEST_TMPDIR/calls" \
    -e trace=clock_nanosleep,nanosleep,waitid "$@" -p "$SHIELD"
  wait_for_stderr trace attached
}

# Its pauses so far, in milliseconds.
pauses() {
  sed -nE 's/^(clock_)?nanosleep\([^{]*\{tv_sec=([0-9]+), tv_nsec=([0-9]+)\}.*/\2 \3/p' \
    "$BATS_TEST_TMPDIR/calls" | awk '{ print $1 * 1000 + $2 / 1000000 }' | paste -sd ' '
}
has_paused_ten_times() { [[ $(pauses | wc -w) -ge 10 ]]; }

end_shielded() {
  kill -TERM "${BACKGROUND_PID[trace]}"
  wait_background trace
  kill -KILL "$UNKILLABLE" "$HELPER"
  wait_background ours
  assert_not_equal "$status" 0
  wait_until has_ended "$SHIELD"
}

readonly GROWING_PAUSES="2 4 8 16 32 64 128 256 500 500"

@test "a shield looks ever more rarely for what it cannot kill" {
  start_shielded
  trace_shield
  kill -KILL "$HOLDER"
  wait_until has_paused_ten_times
  assert_equal "$(pauses | cut -d' ' -f-10)" "$GROWING_PAUSES"
  end_shielded
}

@test "so does one that cannot wait for its children" {
  start_shielded
  trace_shield -e inject=waitid:error=ENOSYS
  wait_until has_paused_ten_times
  assert_equal "$(pauses | cut -d' ' -f-10)" "$GROWING_PAUSES"
  end_shielded
}
