# shellcheck shell=bash
# A command with descendants of every kind, for tests of locks that are lost.

setup() {
  setup_one_server
  FAMILY=()
}

# Processes that a failed test may have left.
teardown() {
  local pid
  for pid in "${FAMILY[@]}"; do
    if grep -qsE 'sleep|family' "/proc/$pid/cmdline"; then kill -KILL "$pid"; fi
  done
  common_teardown
}

# A command with descendants of every kind: a shell, its child, one in a session of its own, one
# forked twice. It writes their pids to $1, one per line, and `ready` to stdout. $2 is their
# reaction to TERM: die, or ignore it.
family() {
  executable family <<'END'
#!/bin/bash
[[ $2 != ignore ]] || trap '' TERM
pids=$1
touch "$pids"
note='echo "$BASHPID" >>"$0"; exec sleep 1000'
bash -c "$note" "$pids" &
setsid bash -c "$note" "$pids" &
(setsid bash -c "$note" "$pids" & )
echo "$$" >>"$pids"
until (($(wc -l <"$pids") == 4)); do sleep 0.1; done
echo ready
wait
END
}

# start_family NAME OPTION… [-- WHAT]: runs it under the lock demo, with a status file, and sets
# FAMILY to its pids.
start_family() {
  local name=$1 what=die
  shift
  local -a options=()
  while (($#)) && [[ $1 != -- ]]; do
    options+=("$1")
    shift
  done
  (($# < 2)) || what=$2
  start_background "$name" redlock-cli run -k demo --status-fd 9 "${options[@]}" \
    -- "$(family)" "$BATS_TEST_TMPDIR/pids" "$what" \
    9>"$BATS_TEST_TMPDIR/report"
  wait_for_stdout "$name" ready
  mapfile -t FAMILY <"$BATS_TEST_TMPDIR/pids"
}

# None of them lives. A zombie is dead, although it keeps its pid.
assert_family_dead() {
  assert_equal "${#FAMILY[@]}" 4
  local pid
  for pid in "${FAMILY[@]}"; do
    run sed 's/.*) //' "/proc/$pid/stat"
    assert_output --regexp '^Z|No such'
  done
}

report() { cat "$BATS_TEST_TMPDIR/report"; }
