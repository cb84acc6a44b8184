#!/usr/bin/env bats
# All senders of signals and all places of the command: it gets each signal, and only once wherever
# that can be determined.
load helper/common
load helper/terminal

setup() { setup_signal_test; }

teardown() {
  terminal_teardown
  [[ -z ${UNIT-} ]] || wait_until rmdir "$UNIT" "$MANAGER" "${UNIT%/*}"
}

# The command in our process group, outside it, and in a session of its own.
readonly RECEIVERS=("" ./own_group setsid)

# at_terminal SIGNAL SEND…: every kind of receiver gets SIGNAL once when SEND is called.
at_terminal() {
  local signal=$1 receiver
  shift
  open_terminal
  for receiver in "${RECEIVERS[@]}"; do
    type_line "$PROGRAM run -k demo -- $receiver ./counter $signal"
    wait_for_counter
    FRONT=$(foreground)
    echo "receiver: ${receiver:-in our group}"
    "$@"
    assert_heard "$FRONT" "$signal"
    # A second one is no repetition of the first.
    "$@"
    assert_heard "$FRONT" "$signal" "$signal"
    end_counter
    see_status 23
    rm counting heard
  done
}

# The same without a terminal: the command leads a group of its own.
start_job() {
  cd "$BATS_TEST_TMPDIR" || return
  start_background job setsid "$PROGRAM" run -k demo -- ./counter TERM
  wait_for_counter
  FRONT=${BACKGROUND_PID[job]}
}

without_terminal() {
  start_job
  "$@"
  assert_heard "$FRONT" TERM
  "$@"
  assert_heard "$FRONT" TERM TERM
  end_counter
  wait_background job
  assert_equal "$status" 23
}

to_group() { kill -TERM -- "-$FRONT"; }
by_name() { pkill -TERM -f "^$PROGRAM run "; }
by_command_name() { pkill -TERM -x "${PROGRAM##*/}"; }

# As start-stop-daemon --exec, killall /path, fuser -k and kill $(pidof /path) do.
by_executable() {
  local exe pids=()
  for exe in /proc/[0-9]*/exe; do
    if [[ $exe -ef $PROGRAM ]]; then
      exe=${exe%/exe}
      pids+=("${exe##*/}")
    fi
  done
  assert [ "${#pids[@]}" -ge 2 ]
  kill -TERM "${pids[@]}"
}

# --- At a terminal ---

@test "^C reaches the command once, in our process group and outside it" {
  at_terminal INT press "$CTRL_C"
}

@test "^\\ reaches the command once, in our process group and outside it" {
  at_terminal QUIT press "$CTRL_BACKSLASH"
}

@test "a signal to our whole process group reaches the command once, in it and outside it" {
  at_terminal TERM to_group
}

@test "a signal to all processes with the program's name reaches the command once" {
  at_terminal TERM by_command_name
}

@test "a signal to all processes with our arguments reaches the command once" {
  at_terminal TERM by_name
}

@test "a signal to all that run the program reaches the command once" {
  at_terminal TERM by_executable
}

@test "^C ends timeout at the terminal, and what it runs" {
  open_terminal
  type_line "redlock-cli run -k demo -- timeout 1000 sh -c 'echo read\"\"y; exec sleep 1000'"
  see ready
  press "$CTRL_C"
  see_status 130
  wait_for_no_key 0 demo
}

@test "a signal to us alone after one to the whole group from the same process reaches the command" {
  open_terminal
  type_line "$PROGRAM run -k demo -- ./counter TERM"
  wait_for_counter
  FRONT=$(foreground)
  to_group
  assert_heard "$FRONT" TERM
  kill -TERM "$FRONT"
  assert_heard "$FRONT" TERM TERM
  end_counter
  see_status 23
}

@test "a resized window reaches a command outside our process group" {
  open_terminal
  type_line "redlock-cli run -k demo -- ./own_group ./counter WINCH"
  wait_for_counter
  ask resize 30 100
  assert_heard "$(foreground)" WINCH
  end_counter
  see_status 23
}

@test "^C reaches the processes that are waited for, those in our process group once" {
  open_terminal
  executable leave >/dev/null <<<$'#!/bin/sh\n./counter INT & ./own_group ./other INT &'
  mkdir there
  sed 's/realpath(sys.argv\[0\]))/& + "\/there"/' counter >other
  chmod +x other
  type_line "redlock-cli run --descendants wait -k demo -- ./leave"
  wait_for_counter
  wait_until test -e there/counting
  wait_until leader_has_ended
  press "$CTRL_C"
  wait_until grep -qx INT there/heard
  wait_until grep -qx INT heard
  # Late signals have arrived before this one.
  kill -USR1 "$(foreground)"
  wait_until grep -qx USR1 heard
  wait_until grep -qx USR1 there/heard
  assert_equal "$(grep -cx INT heard) $(grep -cx INT there/heard)" "1 1"
  end_counter
  local other _
  read -r other _ <there/counting
  kill -USR2 "$other"
  see_status 0
}

# Then the counter is the holder's child.
leader_has_ended() {
  [[ $(ps -o ppid= -p "$COUNTER") -eq $(pgrep -P "$(foreground)" -x lock-holder) ]]
}

# --- Without one ---

@test "without a terminal, a signal to our whole process group reaches the command once" {
  without_terminal to_group
}

@test "without a terminal, a signal by name reaches the command once" {
  without_terminal by_command_name
}

@test "without a terminal, a signal by arguments reaches the command once" {
  without_terminal by_name
}

@test "without a terminal, a signal to all that run the program reaches the command once" {
  without_terminal by_executable
}

@test "without a terminal, a command that has left its process group still gets the signal" {
  cd "$BATS_TEST_TMPDIR"
  executable other_group >/dev/null <<'END'
#!/usr/bin/python3
import os, sys, time
child = os.fork()
if child == 0:
    os.setpgid(0, 0)
    time.sleep(1000)
os.setpgid(child, child)
os.setpgid(0, child)
os.execv(sys.argv[1], sys.argv[1:])
END
  start_background job setsid redlock-cli run --descendants kill -k demo -- \
    ./other_group ./counter TERM
  wait_for_counter
  FRONT=${BACKGROUND_PID[job]}
  kill -TERM "$FRONT"
  assert_heard "$FRONT" TERM
  end_counter
  wait_background job
  assert_equal "$status" 23
}

# --- One by one to all in a control group ---

# The directory of the control group by which systemd keeps track of us.
tracked_group() {
  local mount path
  path=$(sed -n 's/^[0-9]*:name=systemd://p' /proc/self/cgroup)
  if [[ -n $path ]]; then
    mount=$(awk '$4 == "/" && / - cgroup .*name=systemd/ { print $5; exit }' /proc/self/mountinfo)
  else
    path=$(sed -n 's/^0:://p' /proc/self/cgroup)
    mount=$(awk '$4 == "/" && / - cgroup2 / { print $5; exit }' /proc/self/mountinfo)
  fi
  [[ -n $mount && -n $path ]] && realpath -e "$mount$path" 2>/dev/null
}

# The layout of systemd: UNIT, and MANAGER beside it.
needs_manager() {
  local group
  group=$(tracked_group) || skip "the hierarchy that systemd uses is not mounted"
  [[ -w $group/cgroup.procs ]] || skip "needs root"
  group=$(mktemp -d "$group/redlock-test.XXXXXX") || skip "no control group can be made"
  UNIT=$group/a.service MANAGER=$group/init.scope
  mkdir "$UNIT" "$MANAGER"
}

# Moves the processes of the job into UNIT, and sets JOB to their pids, without the tree witness.
put_job_into_unit() {
  JOB=("$FRONT")
  local pid child
  for ((pid = 0; pid < ${#JOB[@]}; pid++)); do
    for child in $(pgrep -P "${JOB[pid]}"); do
      [[ $(<"/proc/$child/comm") == 3 ]] || JOB+=("$child")
    done
  done
  for pid in "${JOB[@]}"; do echo "$pid" >"$UNIT/cgroup.procs"; done
}

# assert_swept PID…: when the manager signals these, the command gets the signal once; perhaps twice
# when that took too long.
assert_swept() {
  start_background manager \
    /usr/bin/python3 "$BATS_TEST_DIRNAME/helper/manager.py" "$MANAGER" TERM "$@"
  wait_for_stdout manager
  wait_until heard_at_least TERM
  if grep -qx swift "$(background_stdout manager)"; then assert_heard "$FRONT" TERM; fi
  kill "${BACKGROUND_PID[manager]}"
  wait_background manager
}

@test "a signal that a cgroup manager sends to all in any order reaches the command once" {
  needs_manager
  start_job
  put_job_into_unit
  assert_equal "${#JOB[@]}" 3
  run -0 /usr/bin/python3 "$BATS_TEST_DIRNAME/helper/sweep.py" "$MANAGER" heard 10 "${JOB[@]}"
  local sent slow count
  read -r sent slow <<<"$output"
  assert [ "$slow" -lt "$((sent / 2))" ]
  end_counter
  wait_background job
  count=$(grep -cx TERM heard)
  assert [ "$count" -ge "$sent" ]
  assert [ "$count" -le "$((sent + slow))" ]
}

@test "at a terminal, a signal that the manager sends to all reaches the command once, wherever it is" {
  needs_manager
  open_terminal
  local receiver
  for receiver in "${RECEIVERS[@]}"; do
    type_line "redlock-cli run -k demo -- $receiver ./counter TERM"
    wait_for_counter
    FRONT=$(foreground)
    put_job_into_unit
    assert_swept "${JOB[@]}"
    end_counter
    see_status 23
    rm counting heard
  done
}

@test "a signal that the manager sends to us alone (KillMode=mixed) reaches the command once" {
  needs_manager
  start_job
  put_job_into_unit
  assert_swept "$FRONT"
  end_counter
  wait_background job
}

@test "a command in another cgroup gets the signal that the manager sends to ours" {
  needs_manager
  start_job
  put_job_into_unit
  echo "$COUNTER" >"${UNIT%/*}/cgroup.procs"
  local pid guards=()
  for pid in "${JOB[@]}"; do [[ $pid == "$COUNTER" ]] || guards+=("$pid"); done
  assert_swept "${guards[@]}"
  end_counter
  wait_background job
}

@test "a signal that another process sends to the whole job reaches the command, perhaps twice" {
  start_job
  local holder
  holder=$(pgrep -P "$FRONT" -x lock-holder)
  kill -TERM "$FRONT" "$holder"
  assert_heard "$FRONT" TERM
  kill -TERM "$FRONT" "$holder" "$COUNTER"
  wait_until heard_at_least TERM TERM
  end_counter
  wait_background job
}

# --- The group, or the command alone ---

# A command with a child in its process group; both count.
start_with_child() {
  cd "$BATS_TEST_TMPDIR" || return
  mkdir there
  sed 's/realpath(sys.argv\[0\]))/& + "\/there"/' counter >other
  chmod +x other
  executable pair >/dev/null <<<$'#!/bin/sh\n./other TERM & exec ./counter TERM'
  start_background job setsid redlock-cli run "$@" --descendants kill -k demo -- ./pair
  wait_for_counter
  wait_until test -e there/counting
  FRONT=${BACKGROUND_PID[job]}
}

@test "without a terminal, the command's process group gets the signal" {
  start_with_child
  kill -TERM "$FRONT"
  assert_heard "$FRONT" TERM
  wait_until grep -qx TERM there/heard
  end_counter
  wait_background job
  assert_equal "$status" 23
}

@test "with --signal-to command only the command gets the signal, the rest when it has ended" {
  start_with_child --signal-to command
  kill -TERM "$FRONT"
  assert_heard "$FRONT" TERM
  assert [ ! -s there/heard ]
  # The processes that it leaves get TERM.
  end_counter
  wait_until grep -qx TERM there/heard
  local other _
  read -r other _ <there/counting
  kill -USR2 "$other"
  wait_background job
  assert_equal "$status" 23
}

# A command and a helper in a session of its own, which write to `log` what happens at TERM. The
# command ends then, unless $1 is `stays`.
start_with_helper() {
  cd "$BATS_TEST_TMPDIR" || return
  executable helper >/dev/null <<'EOF'
#!/bin/bash
trap 'echo helper >>log; exit' TERM
: >ready
while :; do sleep 0.05; done
EOF
  executable user >/dev/null <<'EOF'
#!/bin/bash
setsid ./helper &
helper=$!
trap 'kill -0 $helper && echo "command, helper lives" >>log; [[ $1 == stays ]] || exit' TERM
while :; do sleep 0.05; done
EOF
  start_background job redlock-cli run -k demo --signal-to command --grace 3s -- ./user "$1"
  wait_until test -e ready
}

@test "with --signal-to command a stop reaches the rest when the command has ended" {
  start_with_helper ends
  run -0 redlock-cli stop demo
  wait_background job
  assert_equal "$(<log)" $'command, helper lives\nhelper'
}

@test "with --signal-to command a stop reaches the rest before KILL though the command stays" {
  start_with_helper stays
  run -0 redlock-cli stop demo
  wait_background job
  assert_equal "$(<log)" $'command, helper lives\nhelper'
}
