#!/usr/bin/env bats
# Descriptors and processes that the guards keep, leave alone, or leave when the command ends by
# itself.
load helper/common
load helper/supervision

# A command that prints `ready` when its pids are in the file pids, and exits with 5 when the file
# end appears. $1: commands to run before.
until_end() {
  echo "$1"' echo $$ >>"$0/pids"; echo ready; until [ -e "$0/end" ]; do sleep 0.1; done; exit 5'
}

@test "a daemon that the command leaves is named, and the lock is released" {
  start_under_witness ours -k demo --status-fd 8 -- \
    sh -c "$(until_end 'setsid sleep 1000 & echo $! >>"$0/pids";')" "$BATS_TEST_TMPDIR"
  touch "$BATS_TEST_TMPDIR/end"
  wait_background ours
  assert_equal "$status" 5
  assert_equal "$(locks_at 0)" ""
  assert is_alive "${TREE[0]}"
  assert_equal "$stderr" "redlock-cli: demo: processes that the command left running: sleep ${TREE[0]}; \
they run on without the lock (see --descendants)"
  run report
  assert_output --partial "\"left\":[${TREE[0]}],\"left_names\":[\"sleep\"]"
  assert_output --partial '"released":true'
}

@test "of many processes that the command leaves, five are named, and JSON has all" {
  run -0 --separate-stderr redlock-cli run -k demo --status-fd 8 -- bash -c '
    exec >/dev/null 2>&1 </dev/null 3>&-
    for i in 1 2 3 4 5 6 7; do sleep 1000 & echo $! >>"$0/pids"; done' \
    "$BATS_TEST_TMPDIR" 8>"$BATS_TEST_TMPDIR/report"
  assert_regex "$stderr" "left running: sleep [0-9]+(, sleep [0-9]+){4} and 2 more; they run on"
  assert_equal "$(jq -c '[(.left | length), .left_names]' "$BATS_TEST_TMPDIR/report")" \
    '[7,["sleep","sleep","sleep","sleep","sleep","sleep","sleep"]]'
  kill -KILL $(<"$BATS_TEST_TMPDIR/pids")
}

@test "a name cannot break the line that names its process" {
  local odd=$BATS_TEST_TMPDIR/$'\e[2J'
  cp "$(command -v sleep)" "$odd"
  run -0 --separate-stderr redlock-cli run -k demo -- \
    bash -c '"$0" 1000 >/dev/null 2>&1 3>&- & echo $!' "$odd"
  assert_regex "$stderr" "left running: \\\\x1b\\[2J $output; they run on"
  kill -KILL "$output"
}

@test "a run that the command leaves is named, and so is another program with a guard's name" {
  # Each is up when it has written its pid; neither may keep a descriptor of the test open.
  start_background ours redlock-cli run -k demo --status-fd 8 -- bash -c '
    exec >/dev/null 2>&1 </dev/null 3>&-
    setsid redlock-cli run -k other -- sh -c "echo \$\$ >\"\$0/inner\"; exec sleep 1000" "$0" &
    echo $! >"$0/pids"
    setsid sh -c "printf lock-holder >/proc/self/comm; echo \$\$ >>\"\$0/pids\"
      while :; do sleep 0.1; done" "$0" &
    until [[ -s $0/inner && $(wc -l <"$0/pids") == 2 ]]; do sleep 0.1; done' \
    "$BATS_TEST_TMPDIR" 8>"$BATS_TEST_TMPDIR/report"
  wait_background ours
  assert_equal "$status" 0
  local pid left
  mapfile -t left < <(cat "$BATS_TEST_TMPDIR/pids" "$BATS_TEST_TMPDIR/inner")
  assert_equal "${#left[@]}" 3
  for pid in "${left[@]}"; do
    assert is_alive "$pid"
    assert_regex "$stderr" "left running: .*\<$pid\>"
    assert_equal "$(jq ".left | index($pid) != null" "$BATS_TEST_TMPDIR/report")" true
  done
  # The first takes the last with it.
  kill -KILL "${left[@]}" || true
}

@test "pipes end when the command closes them, although its guards live" {
  local pipe
  for pipe in out in other; do mkfifo "$BATS_TEST_TMPDIR/$pipe"; done
  start_background out cat "$BATS_TEST_TMPDIR/out"
  start_background other cat "$BATS_TEST_TMPDIR/other"
  start_background in sh -c 'exec yes >"$0"' "$BATS_TEST_TMPDIR/in"
  start_background ours \
    sh -c 'exec redlock-cli run -k demo -- sh -c "$1" "$0" <"$0/in" >"$0/out" 7>"$0/other"' \
    "$BATS_TEST_TMPDIR" 'exec <&- >&- 7>&-; until [ -e "$0/end" ]; do sleep 0.1; done; exit 5'
  wait_background out
  wait_background other
  wait_background in
  assert is_running_child "${BACKGROUND_PID[ours]}"
  assert_equal "$(redis 0 exists demo)" 1
  touch "$BATS_TEST_TMPDIR/end"
  wait_background ours
  assert_equal "$status" 5
}

@test "the command sees the caller's descriptors, and no others" {
  # What it opens to look is closed again when it reads the links.
  local -a list=(/usr/bin/python3 -c 'import os
for fd in sorted(os.listdir("/proc/self/fd")):
    if os.path.lexists("/proc/self/fd/" + fd): print(fd, os.readlink("/proc/self/fd/" + fd))')
  local file=$BATS_TEST_TMPDIR/list
  "${list[@]}" 5</dev/zero 9<"$WITNESS" 12>/dev/full </dev/null >"$file" 2>/dev/full
  local outside
  outside=$(<"$file")
  redlock-cli run -k demo -- "${list[@]}" 5</dev/zero 9<"$WITNESS" \
    12>/dev/full </dev/null >"$file" 2>/dev/full
  assert_equal "$(<"$file")" "$outside"
}

# born_with NAME OPTION…: a shell that has a child, and then becomes the run of $COMMAND_TEXT. CHILD
# is that child's pid.
born_with() {
  local name=$1
  shift
  start_background "$name" \
    sh -c 'flock -s 9; sleep 1000 9<&- & echo $! >"$0/child"; exec redlock-cli run "$@"' \
    "$BATS_TEST_TMPDIR" \
    -k demo "$@" -- sh -c "$(until_end)" "$BATS_TEST_TMPDIR" 9<"$WITNESS"
  wait_for_stdout "$name" ready
  CHILD=$(<"$BATS_TEST_TMPDIR/child")
  wait_until is_the_child "$CHILD"
  mapfile -t TREE <"$BATS_TEST_TMPDIR/pids"
  FRONT=${BACKGROUND_PID[$name]}
  HOLDER=$(holder_of "$FRONT")
}

is_the_child() { [[ $(tr '\0' ' ' <"/proc/$1/cmdline") == "sleep 1000 " ]]; }

# It is not in the file of those that end_tree ends.
end_child_that_was_there() {
  assert is_alive "$CHILD"
  assert is_the_child "$CHILD"
  kill -KILL "$CHILD"
}

@test "an earlier child of front outlives the command" {
  born_with ours
  touch "$BATS_TEST_TMPDIR/end"
  wait_background ours
  assert_equal "$status $stderr" "5 "
  end_child_that_was_there
}

@test "an earlier child of front outlives a lost lock" {
  born_with ours -t 6s --grace 300ms --server-timeout 1s
  redis 0 del demo
  wait_background ours
  assert_equal "$status" 79
  assert_tree_dead
  end_child_that_was_there
}

@test "an earlier child of front outlives the holder" {
  born_with ours -t 60s
  kill -KILL "$HOLDER"
  wait_background ours
  assert_equal "$status" 71
  assert_tree_dead
  end_child_that_was_there
}

@test "orphans of the command are reaped while it runs" {
  start_under_witness ours -k demo \
    -- bash -c "$(until_end 'for i in {1..20}; do (true & ); done;')" "$BATS_TEST_TMPDIR"
  wait_until holder_has_no_zombies
  touch "$BATS_TEST_TMPDIR/end"
  wait_background ours
  assert_equal "$status" 5
}

holder_has_no_zombies() { [[ $(ps -o stat= --ppid "$HOLDER") != *Z* ]]; }

@test "with earlier children, processes that the command leaves are still left running" {
  run --separate-stderr bash -c '
    sleep 1000 >/dev/null 2>&1 & echo $! >"$0/helper"
    exec redlock-cli run -k demo -- sh -c "setsid sleep 1000 >/dev/null 2>&1 3>&- & echo \$!"' \
    "$BATS_TEST_TMPDIR" 3>&-
  local daemon=$output
  kill -KILL "$(<"$BATS_TEST_TMPDIR/helper")"
  assert_equal "$status" 0
  assert_regex "$stderr" "processes that the command left running: sleep $daemon"
  assert is_alive "$daemon"
  kill -KILL "$daemon"
}
