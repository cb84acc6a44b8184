#!/usr/bin/env bats
# CI agents find what a job left by a variable in the environment, and kill it. The guards survive
# that, kill what it does not find, and release the lock.
load helper/common
load helper/supervision
load helper/while_pid

COOKIES=(BUILD_ID HUDSON_COOKIE JENKINS_NODE_COOKIE JENKINS_SERVER_COOKIE RUNNER_TRACKING_ID)

setup() {
  setup_supervision
  allow_late_answers
  local name
  for name in "${COOKIES[@]}"; do export "$name=of this job"; done
}

# The names of the cookies that a process shows, sorted, in one line.
cookies_of() {
  tr '\0' '\n' <"/proc/$1/environ" | sed -n 's/=of this job$//p' | sort | paste -sd ' '
}

# clean_up NAME PID: as the agents do it, one pass over all processes, with KILL for each that has
# the cookie, in any order: here this process first.
clean_up() {
  /usr/bin/python3 -c '
import os, sys
cookie = sys.argv[1].encode() + b"=of this test " + sys.argv[3].encode() + b"\0"
first = int(sys.argv[2])
for pid in [first, *(int(name) for name in os.listdir("/proc") if name.isdigit())]:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            if cookie in file.read(): os.kill(pid, 9)
    except OSError:
        pass' "$1" "$2" "$BATS_TEST_TMPDIR"
}

# A command with children that have no cookie, in its group and out of it.
without_cookies() {
  executable without_cookies <<'END'
#!/bin/bash
note='echo "$$" >>"$0"; exec sleep 1000'
echo "$$" >"$1"
env -i sh -c "$note" "$1" &
env -i setsid sh -c "$note" "$1" &
until [[ $(wc -l <"$1") == 3 ]]; do sleep 0.1; done
echo ready
wait
END
}

@test "the front process and the command show the cookies, their guards do not" {
  start_under_witness ours -k demo -- sh -c 'echo $$ >"$0"; echo ready; exec sleep 1000' \
    "$BATS_TEST_TMPDIR/pids"
  assert_equal "$(cookies_of "$FRONT")" "${COOKIES[*]}"
  assert_equal "$(cookies_of "$COMMAND")" "${COOKIES[*]}"
  assert_equal "$(cookies_of "$HOLDER")" ""
  assert_regex "$(tr '\0' '\n' <"/proc/$HOLDER/environ")" "REDLOCK_SERVER=$REDLOCK_SERVER"
  kill "$FRONT"
  wait_background ours
}

@test "neither does a shield" {
  start_background ours sh -c 'sleep 1000 & echo $! >"$0"; exec redlock-cli run -k demo -- \
    sh -c "echo ready; exec sleep 1000"' "$BATS_TEST_TMPDIR/helper"
  wait_for_stdout ours ready
  FRONT=${BACKGROUND_PID[ours]}
  HOLDER=$(holder_of "$FRONT")
  local shield
  read -r _ _ _ shield _ <"/proc/$HOLDER/stat"
  assert_equal "$(<"/proc/$shield/comm")" lock-shield
  assert_equal "$(cookies_of "$shield")$(cookies_of "$HOLDER")" ""
  kill "$FRONT"
  wait_background ours
  kill "$(<"$BATS_TEST_TMPDIR/helper")"
}

@test "a clean-up by cookie: the whole command is dead before the lock is free" {
  local name first
  for first in FRONT COMMAND; do
    for name in "${COOKIES[@]}"; do
      rm -f "$BATS_TEST_TMPDIR/pids"
      export "$name=of this test $BATS_TEST_TMPDIR"
      start_under_witness ours -k demo -t 30s -- "$(without_cookies)" "$BATS_TEST_TMPDIR/pids"
      export "$name=of this job"
      watch_lock
      clean_up "$name" "${!first}"
      assert_dead_before_free
      assert_in_range "$LEFT" 1 30000 # released, not expired
      assert_tree_dead
      wait_background ours
      assert_equal "$status" 137
    done
  done
}

@test "the holder of --while-pid shows none, one of --detach shows them" {
  start_script ours -t 30s
  assert_equal "$(cookies_of "$SCRIPT")" "${COOKIES[*]}"
  assert_equal "$(cookies_of "$HOLDER")" ""
  touch "$BATS_TEST_TMPDIR/end"
  wait_background ours
  wait_until no_holders

  redlock-cli acquire -k demo --detach --max-hold 1h --token-file "$BATS_TEST_TMPDIR/lease"
  find_holder
  assert_equal "$(cookies_of "$HOLDER")" "${COOKIES[*]}"
  run -0 redlock-cli release --token-file "$BATS_TEST_TMPDIR/lease"
  wait_until has_ended "$HOLDER"
}
