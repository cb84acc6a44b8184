#!/usr/bin/env bats
# The shield, which stands between guards where front has children of others: killed, stopped, or
# never there.
load helper/common
load helper/supervision

# The helper is of the test, and holds no witness.
teardown() {
  if [[ -s $BATS_TEST_TMPDIR/helper ]]; then kill -KILL "$(<"$BATS_TEST_TMPDIR/helper")" || true; fi
  teardown_supervision
}

# A shell that has a helper, which leaves an orphan when the file orphan appears, and then becomes
# the run of `$1`…, as entry scripts do.
readonly BECOME_RUN='
  sh -c "until [ -e \"\$0/orphan\" ]; do sleep 0.1; done
    sh -c \"sleep 0.1 & echo \\\$! >\\\"\\\$0/orphan\\\"\" \"\$0\"; exec sleep 1000" "$0" \
    </dev/null >/dev/null 2>&1 3>&- 8>&- 9>&- &
  echo $! >"$0/helper"
  flock -s 9
  exec redlock-cli run "$@"'

# start_shielded OPTION…: such a shell; the command ends with 5 when the file end appears.
start_shielded() {
  start_background ours sh -c "$BECOME_RUN" "$BATS_TEST_TMPDIR" -k demo "$@" -- sh -c '
    setsid sh -c "echo \$\$ >>\"\$0/pids\"; echo ready; exec sleep 1000" "$0" &
    until [ -e "$0/end" ]; do sleep 0.1; done; kill "$!"; exit 5' "$BATS_TEST_TMPDIR" \
    8>"$BATS_TEST_TMPDIR/report" 9<"$WITNESS"
  wait_for_stdout ours ready
  mapfile -t TREE <"$BATS_TEST_TMPDIR/pids"
  FRONT=${BACKGROUND_PID[ours]}
  HOLDER=$(holder_of "$FRONT")
  SHIELD=$(ps -o ppid= "$HOLDER" | tr -d ' ')
  wait_until guards_hold_nothing
}

@test "shield killed: the tree is dead when the lock is free, and 71 says why" {
  start_shielded -t 60s
  watch_lock
  kill -KILL "$SHIELD"
  assert_dead_before_free
  assert [ "$LEFT" -gt 30000 ]
  assert_tree_dead
  wait_background ours
  assert_equal "$status" 71
  assert_equal "$stderr" "redlock-cli: demo: a process that guards the lock (lock-shield) was \
killed; the command was killed"
  assert_equal "$(keys_at 0)" ""
  assert is_alive "$(<"$BATS_TEST_TMPDIR/helper")"
}

@test "shield killed while waiting: 71, and no lock is taken" {
  redis 0 set demo x
  start_background ours sh -c "$BECOME_RUN" "$BATS_TEST_TMPDIR" -k demo -- true 9<"$WITNESS"
  wait_for_stderr ours "waiting for demo"
  HOLDER=$(holder_of "${BACKGROUND_PID[ours]}")
  kill -KILL "$(ps -o ppid= "$HOLDER" | tr -d ' ')"
  wait_background ours
  assert_equal "$status" 71
  assert_regex "$stderr" "\(lock-shield\) was killed; the command was not run"
  assert_equal "$(redis 0 keys '*')" demo
}

@test "shield stopped: it is continued, and the command's status comes back" {
  start_shielded
  kill -STOP "$SHIELD"
  wait_until is_continued "$SHIELD"
  touch "$BATS_TEST_TMPDIR/end"
  wait_background ours
  assert_equal "$status" 5
}

is_continued() { ! is_stopped "$1"; }

@test "shield stopped, and then the holder killed: the tree is dead, 71" {
  start_shielded -t 60s
  kill -STOP "$SHIELD"
  kill -KILL "$HOLDER"
  wait_background ours
  assert_equal "$status" 71
  assert_tree_dead
}

@test "a shield that cannot fork: 71, and nothing was locked" {
  needs_shared_libc
  local library=$BATS_TEST_TMPDIR/no_fork.so
  # Only the shield has that name when it forks.
  c++ -x c -shared -fPIC -o "$library" - <<'EOF'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/types.h>
pid_t fork(void) {
  char name[16] = "";
  prctl(PR_GET_NAME, name);
  if (strcmp(name, "lock-shield") == 0) return errno = EAGAIN, -1;
  return ((pid_t (*)(void))dlsym(RTLD_NEXT, "fork"))();
}
EOF
  start_background ours env LD_PRELOAD="$library" sh -c "$BECOME_RUN" "$BATS_TEST_TMPDIR" -k demo \
    --status-fd 8 -- touch "$BATS_TEST_TMPDIR/entered" 8>"$BATS_TEST_TMPDIR/report" 9<"$WITNESS"
  wait_background ours
  assert_equal "$status" 71
  assert_equal "$stderr" "redlock-cli: demo: cannot fork the holder process; nothing \
was locked, and the command was not run"
  assert_equal "$(reported 'j["exit_code"]')" 71
  assert [ ! -e "$BATS_TEST_TMPDIR/entered" ]
}

@test "foreign orphans are reaped" {
  start_shielded
  touch "$BATS_TEST_TMPDIR/orphan"
  wait_until test -s "$BATS_TEST_TMPDIR/orphan"
  wait_until has_no_process "$(<"$BATS_TEST_TMPDIR/orphan")"
  touch "$BATS_TEST_TMPDIR/end"
  wait_background ours
  assert_equal "$status" 5
}

has_no_process() { [[ ! -e /proc/$1 ]]; }
