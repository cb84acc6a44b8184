#!/usr/bin/env bats
# Signals to redlock-cli, without a controlling terminal: they end a wait, and reach a running
# command once.
load helper/common

setup() {
  setup_one_server
  allow_late_answers
}

readonly -A NUMBER=([HUP]=1 [INT]=2 [QUIT]=3 [USR1]=10 [USR2]=12 [TERM]=15)

# More whose default action ends a process.
readonly -A RARE_NUMBER=([ALRM]=14 [STKFLT]=16 [XCPU]=24 [XFSZ]=25 [VTALRM]=26 [PROF]=27 [IO]=29
  [PWR]=30 [RTMIN]=34 [RTMIN+5]=39 [RTMAX]=64)

# start_ours NAME WORD…: redlock-cli in a session of its own. Sets PID to its pid; wait_background
# reports how it really ended.
start_ours() {
  local name=$1
  shift
  start_background "$name" \
    /usr/bin/python3 -u "$BATS_TEST_DIRNAME/helper/ending.py" "$BATS_TEST_TMPDIR/$name.pid" "$@"
  wait_until test -e "$BATS_TEST_TMPDIR/$name.pid"
  PID=$(<"$BATS_TEST_TMPDIR/$name.pid")
}

# --- While waiting ---

@test "every signal that ends a process ends the wait and redlock-cli, and nothing is left on the server" {
  redis 0 set demo x
  local signal
  for signal in "${!NUMBER[@]}" "${!RARE_NUMBER[@]}"; do
    start_ours "$signal" redlock-cli run -k demo -- touch "$BATS_TEST_TMPDIR/entered"
    wait_for_stderr "$signal" "waiting for demo"
    kill -s "$signal" "$PID"
    wait_background "$signal"
    assert_equal "$signal: $output" \
      "$signal: signal ${NUMBER[$signal]-}${RARE_NUMBER[$signal]-}"
    assert_equal "$(redis 0 keys '*')" demo
  done
  assert [ ! -e "$BATS_TEST_TMPDIR/entered" ]
  assert_equal "$(redis 0 get demo)" x
}

@test "a signal ends the wait for a server that does not answer, and no lock appears when it does" {
  pause_server 0
  start_ours waiter redlock-cli run --server-timeout 200ms --unavailable-wait 1h -k demo \
    -- touch "$BATS_TEST_TMPDIR/entered"
  wait_for_stderr waiter "waiting for demo"
  kill -TERM "$PID"
  wait_background waiter
  assert_equal "$output" "signal 15"
  resume_server 0
  wait_until redis 0 ping
  assert_equal "$(keys_at 0)" ""
  assert [ ! -e "$BATS_TEST_TMPDIR/entered" ]
}

@test "a signal ends even the first attempt" {
  pause_server 0
  start_ours waiter redlock-cli run --server-timeout 2s -k demo -- touch "$BATS_TEST_TMPDIR/entered"
  # It has sent its request, which will not be answered.
  wait_until server_has_unread_bytes
  kill -TERM "$PID"
  wait_background waiter
  assert_equal "$output" "signal 15"
  resume_server 0
  wait_until redis 0 ping
  assert_equal "$(keys_at 0)" ""
  assert [ ! -e "$BATS_TEST_TMPDIR/entered" ]
}

# A connection to the server's socket that is not yet accepted, or not read.
server_has_unread_bytes() {
  ss -Hxl "src $SERVER_SOCKET" | awk '$3 > 0 { found = 1 } END { exit !found }'
}

@test "acquire is also ended by a signal, and prints nothing" {
  redis 0 set demo x
  local signal
  for signal in "${!NUMBER[@]}"; do
    start_ours "$signal" redlock-cli acquire -k demo --ttl 60s
    wait_for_stderr "$signal" "waiting for demo"
    kill -s "$signal" "$PID"
    wait_background "$signal"
    assert_equal "$output" "signal ${NUMBER[$signal]}"
    assert_equal "$(redis 0 keys '*')" demo
  done
}

@test "acquire --export that is ended by a signal makes the eval fail" {
  redis 0 set demo x
  start_ours waiter redlock-cli acquire -k demo --ttl 60s --export
  wait_for_stderr waiter "waiting for demo"
  kill -TERM "$PID"
  wait_background waiter
  assert_equal "${lines[1]}" "signal 15"
  assert_equal "${lines[0]}" \
    "unset REDLOCK_KEY REDLOCK_TOKEN REDLOCK_FENCE REDLOCK_LEASE; (exit 143)"
}

@test "acquire --json that is ended by a signal prints the result, in the background too" {
  redis 0 set demo x
  local how i=0
  for how in "--ttl 60s" "--while-pid $$" "--detach --max-hold 1h --token-file $HOME/lease"; do
    # shellcheck disable=SC2086
    start_ours $((++i)) redlock-cli acquire -k demo $how --json
    wait_for_stderr $i "waiting for demo"
    kill -TERM "$PID"
    wait_background $i
    assert_equal "$how: $(jq -r '"\(.key) \(.result) \(.exit_code)"' <<<"${lines[0]}")" \
      "$how: demo interrupted 143"
    assert_equal "${lines[1]}" "signal 15"
  done
}

@test "a signal that was ignored at the start does not end the wait" {
  redis 0 set demo x
  start_ours waiter env --ignore-signal=HUP,INT,TERM redlock-cli run -k demo -- echo entered
  wait_for_stderr waiter "waiting for demo"
  kill -HUP "$PID"
  kill -INT "$PID"
  kill -TERM "$PID"
  redis 0 del demo
  wait_background waiter
  assert_equal "${lines[*]}" "entered exit 0"
}

@test "nohup keeps a wait and a command alive" {
  redis 0 set demo x
  start_ours waiter nohup redlock-cli run -k demo \
    -- sh -c 'kill -HUP $$; kill -HUP $PPID; echo survived'
  wait_for_stderr waiter "waiting for demo"
  kill -HUP "$PID"
  redis 0 del demo
  wait_background waiter
  assert_equal "${lines[*]}" "survived exit 0"
}

@test "signals that are harmless by default do not end the wait" {
  redis 0 set demo x
  start_ours waiter redlock-cli run -k demo -- echo entered
  wait_for_stderr waiter "waiting for demo"
  kill -WINCH "$PID"
  kill -CONT "$PID"
  kill -CHLD "$PID"
  kill -URG "$PID"
  redis 0 del demo
  wait_background waiter
  assert_equal "${lines[*]}" "entered exit 0"
}

# --- While the command runs ---

# A command that records each signal that it gets, and exits with 23 when the file `end` appears.
witness() {
  executable witness <<'END'
#!/usr/bin/python3
import os, signal, sys, time
for name in sys.argv[2:]:
    signal.signal(getattr(signal, "SIG" + name), lambda number, _:
                  os.write(1, signal.Signals(number).name[3:].encode() + b"\n"))
os.write(1, b"ready\n")
while not os.path.exists(sys.argv[1]):
    time.sleep(0.02)
sys.exit(23)
END
}

start_witness() {
  start_ours witness "$@" redlock-cli run -k demo -- \
    "$(witness)" "$BATS_TEST_TMPDIR/end" "${!NUMBER[@]}" WINCH CONT
  wait_for_stdout witness ready
}

end_witness() {
  touch "$BATS_TEST_TMPDIR/end"
  wait_background witness
  assert_equal "${lines[-1]}" "exit 23"
}

heard() { [[ $(grep -cx "$1" "$(background_stdout witness)") == "$2" ]]; }

@test "a signal reaches the command exactly once, and its status is returned" {
  start_witness
  local signal round
  # Never the same twice in a row: within a hundredth of a second that may be one signal, sent to a
  # process and to its group.
  for round in 1 2 3; do
    for signal in "${!NUMBER[@]}"; do
      kill -s "$signal" "$PID"
      wait_until heard "$signal" "$round"
    done
  done
  end_witness
  # A repetition would have arrived by now: each was followed by others, one after the other.
  for signal in "${!NUMBER[@]}"; do
    assert_equal "$signal $(grep -cx "$signal" <<<"$output")" "$signal 3"
  done
  assert_equal "$(keys_at 0)" ""
}

@test "--stop-signal replaces a TERM that is passed on, and no other signal" {
  start_witness env REDLOCK_STOP_SIGNAL=INT
  kill -TERM "$PID"
  wait_until heard INT 1
  kill -INT "$PID"
  wait_until heard INT 2
  local signal
  for signal in HUP QUIT USR1; do
    kill -s "$signal" "$PID"
    wait_until heard "$signal" 1
  done
  end_witness
  refute_line TERM
}

@test "a TERM that ends a wait ends run by TERM, whatever --stop-signal says" {
  redis 0 set demo x
  start_ours waiter redlock-cli run -k demo --stop-signal INT -- true
  wait_for_stderr waiter "waiting for demo"
  kill -TERM "$PID"
  wait_background waiter
  assert_equal "$output" "signal 15"
}

@test "CONT right after another signal also reaches the command" {
  start_witness
  kill -TERM "$PID"
  kill -CONT "$PID"
  wait_until heard TERM 1
  wait_until heard CONT 1
  end_witness
}

@test "when the command dies of the signal, so does run, and the lock is released" {
  local signal
  for signal in "${!NUMBER[@]}"; do
    start_ours "$signal" redlock-cli run -k demo -- sh -c 'ulimit -c 0; echo ready; exec sleep 1000'
    wait_for_stdout "$signal" ready
    kill -s "$signal" "$PID"
    wait_background "$signal"
    assert_equal "${lines[*]}" "ready signal ${NUMBER[$signal]}"
    assert_equal "$(keys_at 0)" ""
  done
}

@test "every signal that ends a process reaches the command once, and leaves the guard alive" {
  start_ours counter redlock-cli run -k demo -- \
    "$(number_counter)" "$BATS_TEST_TMPDIR/end" "${RARE_NUMBER[@]}" 10
  wait_for_stdout counter ready
  local signal round=0
  for signal in "${!RARE_NUMBER[@]}"; do
    kill -s "$signal" "$PID"
    wait_until counted "${RARE_NUMBER[$signal]}" 1
    kill -USR1 "$PID"
    round=$((round + 1))
    wait_until counted 10 "$round"
  done
  touch "$BATS_TEST_TMPDIR/end"
  wait_background counter
  assert_equal "${lines[-1]}" "exit 23"
  for signal in "${!RARE_NUMBER[@]}"; do
    assert_equal "$signal $(grep -cx "${RARE_NUMBER[$signal]}" <<<"$output")" "$signal 1"
  done
  assert_equal "$(keys_at 0)" ""
}

# The same as witness, by number: not every signal has a name everywhere.
number_counter() {
  executable number_counter <<'END'
#!/usr/bin/python3
import os, signal, sys, time
for number in map(int, sys.argv[2:]):
    signal.signal(number, lambda got, _: os.write(1, b"%d\n" % got))
os.write(1, b"ready\n")
while not os.path.exists(sys.argv[1]):
    time.sleep(0.02)
sys.exit(23)
END
}

counted() { [[ $(grep -cx "$1" "$(background_stdout counter)") == "$2" ]]; }

@test "a command that survives the signal keeps its lock" {
  start_witness
  kill -INT "$PID"
  wait_until heard INT 1
  assert_equal "$(redis 0 exists demo)" 1
  run redlock-cli run -n -k demo -- true
  assert_failure 75
  end_witness
}

@test "a signal that was ignored at the start is not passed on" {
  start_witness env --ignore-signal=HUP,USR2
  kill -HUP "$PID"
  kill -USR2 "$PID"
  kill -USR1 "$PID"
  wait_until heard USR1 1
  end_witness
  # The witness itself would have received it, because it does not ignore it.
  refute grep -qxE 'HUP|USR2' <<<"$output"
}

# --- A command that leaves the group that was made for it ---

@test "setsid becomes the job, so its exit status is that of run, and the lock lasts as long" {
  start_ours ours redlock-cli run -k demo -- setsid sh -c 'redis-cli -s "$0" exists demo; exit 3' \
    "${SERVER_SOCKET[0]}"
  wait_background ours
  assert_equal "$output" $'1\nexit 3'
  assert_equal "$(keys_at 0)" ""
}

# start_two_groups OPTION…: a command that has become a session leader, with a helper in its new
# group, and one that it left in the group which was made for it. Each notes TERM in the file heard,
# and ends when the file end appears.
start_two_groups() {
  local noting
  noting=$(executable noting <<'EOF'
#!/bin/bash
trap 'echo "$2 TERM" >>"$1/heard"' TERM
[[ $2 != leader ]] || "$0" "$1" member &
echo "$2" >>"$1/up"
until [[ -e $1/end ]]; do sleep 0.05; done
exit 0
EOF
  )
  start_ours ours redlock-cli run -k demo "$@" -- \
    bash -c '"$0" "$1" left & exec setsid "$0" "$1" leader' "$noting" "$BATS_TEST_TMPDIR"
  wait_until has_lines up 3
}

has_lines() { [[ -e $BATS_TEST_TMPDIR/$1 && $(wc -l <"$BATS_TEST_TMPDIR/$1") -ge $2 ]]; }

# All have heard TERM once: who ends has handled every signal that it got.
assert_each_heard_one() {
  wait_until has_lines heard 3
  touch "$BATS_TEST_TMPDIR/end"
  wait_background ours
  assert_equal "$(sort "$BATS_TEST_TMPDIR/heard")" $'leader TERM\nleft TERM\nmember TERM'
}

@test "a signal that is passed on reaches a command in a session of its own, and both groups, once" {
  start_two_groups
  kill -TERM "$PID"
  assert_each_heard_one
}

@test "a stop reaches a command in a session of its own, and both groups, once" {
  start_two_groups --grace 4s --ttl 30s
  start_background stop redlock-cli stop demo -w 60s
  assert_each_heard_one
  wait_background stop
  assert_equal "$status" 0
}

@test "with --signal-to command, only the command gets what is passed on, until it has ended" {
  start_two_groups --signal-to command
  kill -TERM "$PID"
  wait_until has_lines heard 1
  assert_equal "$(<"$BATS_TEST_TMPDIR/heard")" "leader TERM"
  touch "$BATS_TEST_TMPDIR/end"
  wait_background ours
}

@test "KILL reaches a command in a session of its own" {
  start_ours ours redlock-cli run -k demo --max-hold 1s --grace 100ms -- \
    setsid bash -c 'trap "" TERM; while :; do sleep 0.1; done'
  wait_background ours
  assert_equal "$output" "exit 124"
  assert_equal "$(keys_at 0)" ""
}

@test "the command is in a group without a leader, and one that cannot be executed leaves nothing" {
  start_ours ours redlock-cli run -k demo -- \
    sh -c 'group=$(ps -o pgid= $$ | tr -d " "); ls -d "/proc/$group" 2>&1; [ "$group" != "$$" ]'
  wait_background ours
  assert_output --partial "No such file"
  assert_line "exit 0"
  printf 'no program' >"$BATS_TEST_TMPDIR/garbage"
  chmod +x "$BATS_TEST_TMPDIR/garbage"
  start_ours other redlock-cli run -k demo -- "$BATS_TEST_TMPDIR/garbage"
  wait_background other
  refute_output "exit 0"
  assert_equal "$(keys_at 0)" ""
}
