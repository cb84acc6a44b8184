#!/usr/bin/env bats
# How long run keeps the lock, and how it ends what runs under it: --descendants, --grace,
# --stop-signal, --on-lost.
load helper/common
load helper/supervision

# A command that leaves three processes: one that reports the signal when it gets TERM, one in a
# session of its own that has lost its parent, and, the last in the file $1, one that ignores TERM.
# It exits with $3 when the file $2 appears.
leaver() {
  executable leaver <<'EOF'
#!/bin/bash
pids=$1 end=$2 code=$3
note='echo "$BASHPID" >>"$0"'
echo "$$" >"$pids"
# It has no child, not even for a moment, because the remaining processes are counted.
bash -c "trap 'echo told; exit' TERM; exec {silent}<> <(:); wait \$!; $note
  while :; do read -r -t 1 <&\$silent; done" "$pids" &
(setsid bash -c "$note; exec sleep 1000" "$pids" &)
until [[ $(wc -l <"$pids") == 3 ]]; do sleep 0.1; done
bash -c "trap '' TERM; $note; exec sleep 1000" "$pids" &
until [[ $(wc -l <"$pids") == 4 ]]; do sleep 0.1; done
echo ready
until [[ -e $end ]]; do sleep 0.1; done
exit "$code"
EOF
}

# start_leaver CODE OPTION…: runs it as `ours` under the lock demo. LEFT_PIDS are the three.
start_leaver() {
  local code=$1
  shift
  start_under_witness ours -k demo --status-fd 8 "$@" \
    -- "$(leaver)" "$BATS_TEST_TMPDIR/pids" "$BATS_TEST_TMPDIR/end" "$code"
  LEFT_PIDS=("${TREE[@]:1}")
}

end_leaver() {
  touch "$BATS_TEST_TMPDIR/end"
  wait_until is_dead "$COMMAND"
}

# --- --descendants ---

@test "--descendants leave, the default: the lock is released at once, and the pids are named" {
  local options pid
  for options in "" --descendants=leave -q; do
    rm -f "$BATS_TEST_TMPDIR/end" "$BATS_TEST_TMPDIR/report"
    start_leaver 5 $options
    end_leaver
    wait_background ours
    assert_equal "$status $output" "5 ready"
    assert_equal "$(locks_at 0)" ""
    assert_regex "$stderr" "^redlock-cli: demo: processes that the command left running: [^;]+; "
    for pid in "${LEFT_PIDS[@]}"; do
      assert is_alive "$pid"
      assert_regex "$stderr" " [^ ]+ $pid[,;]"
    done
    assert_equal "$(reported 'sorted(j["left"])')" \
      "$(printf '%s\n' "${LEFT_PIDS[@]}" | sort -n | paste -sd , | sed 's/,/, /g; s/.*/[&]/')"
    assert_equal "$(reported '(j["result"], j["exit_code"], j["released"])')" \
      "('released', 5, True)"
    run -0 redlock-cli run -k demo -n --server-timeout 4s -- true
    end_tree
  done
}

@test "-q does not report what is left with an explicit --descendants leave: it is expected" {
  start_leaver 5 -q --descendants leave
  end_leaver
  wait_background ours
  assert_equal "$status $stderr" "5 "
}

@test "--descendants leave reports nothing when nothing is left" {
  run -0 --separate-stderr redlock-cli run -k demo --descendants leave -- sh -c 'sleep 0.1 & wait'
  assert_equal "$output$stderr" ""
}

@test "--descendants wait: the lock is held until the last of them has ended, and the status is the command's" {
  local pid
  start_leaver 5 -t 6s --grace 300ms --server-timeout 1s --descendants wait
  end_leaver
  wait_until expires_after 0 "$(($(expires_at 0) + 6000))"
  assert_refused 75 "held by" redlock-cli run -k demo -n -- true
  for pid in "${LEFT_PIDS[@]}"; do
    assert is_alive "$FRONT"
    assert_equal "$(redis 0 exists demo)" 1
    kill -KILL "$pid"
  done
  wait_background ours
  assert_equal "$status $stderr" "5 "
  assert_equal "$(keys_at 0)" ""
  assert_equal "$(reported '(j["result"], j["exit_code"], j["command_exit"], j["left"])')" \
    "('released', 5, 5, [])"
}

@test "--descendants wait: run dies of the command's signal once the rest has ended" {
  start_leaver 0 --descendants wait
  kill -KILL "$COMMAND"
  wait_until is_dead "$COMMAND"
  kill -KILL "${LEFT_PIDS[@]}"
  wait_background ours
  assert_equal "$status" 137
  assert_equal "$(reported '(j["result"], j["exit_code"], j["command_signal"])')" \
    "('released', 137, 9)"
}

@test "--descendants wait: a signal reaches those that are waited for" {
  start_leaver 5 --descendants wait
  end_leaver
  kill -TERM "$FRONT"
  wait_until is_dead "${LEFT_PIDS[0]}"
  wait_until is_dead "${LEFT_PIDS[1]}"
  kill -KILL "${LEFT_PIDS[2]}"
  wait_background ours
  assert_equal "$status" 5
  assert_tree_dead
}

@test "--descendants wait: the remaining processes are stopped when the lock is lost" {
  start_leaver 0 -t 6s --grace 300ms --descendants wait
  end_leaver
  redis 0 del demo
  wait_background ours
  assert_equal "$status" 79
  assert_tree_dead
  assert_equal "$(reported '(j["result"], j["exit_code"], j["command_exit"], j["left"])')" \
    "('lost', 79, 0, [])"
}

@test "--descendants kill: they get TERM, KILL after the grace, and are dead before the lock is free; the status is the command's" {
  start_leaver 0 --grace 4s --descendants kill
  watch_lock
  end_leaver
  wait_background ours
  assert_equal "$status $stderr" "0 "
  assert_equal "${lines[*]}" "ready told"
  assert_dead_before_free
  assert_tree_dead
  assert_equal "$(keys_at 0)" ""
  assert_equal \
    "$(reported '(j["result"], j["exit_code"], j["command_exit"], j["released"], j["left"])')" \
    "('released', 0, 0, True, [])"
}

@test "--descendants kill does not wait out the grace once all are dead" {
  start_leaver 5 -t 200s --grace 100s --descendants kill
  kill -KILL "${LEFT_PIDS[2]}"
  end_leaver
  # Less than the grace.
  wait_background ours
  assert_equal "$status" 5
  assert_equal "${lines[*]}" "ready told"
  assert_tree_dead
}

@test "--descendants kill sends --stop-signal" {
  start_background ours redlock-cli run -k demo --stop-signal USR1 --descendants kill -- bash -c '
    bash -c "trap \"echo USR1; exit\" USR1; trap \"echo TERM\" TERM
      echo ready; while :; do sleep 0.1; done" &
    until [[ -e $0 ]]; do sleep 0.1; done' "$BATS_TEST_TMPDIR/end"
  wait_for_stdout ours ready
  touch "$BATS_TEST_TMPDIR/end"
  wait_background ours
  assert_equal "$status ${lines[*]}" "0 ready USR1"
}

@test "--descendants takes no other value" {
  local value
  for value in never Leave "" "leave " 1; do
    assert_refused 64 "must be leave, wait or kill" \
      redlock-cli run -k demo --descendants="$value" -- true
  done
  REDLOCK_DESCENDANTS=never assert_refused 78 "must be leave, wait or kill" \
    redlock-cli run -k demo -- true
  assert_equal "$(redis 0 dbsize)" 0
}

@test "--min-hold and --descendants wait: the hold counts from the grant to the last end" {
  start_leaver 0 --descendants wait --min-hold 100s
  end_leaver
  kill -KILL "${LEFT_PIDS[@]}"
  wait_background ours
  assert_equal "$status" 0
  assert_in_range "$(redis 0 pttl demo)" 1 100000
}

# --- --grace and --stop-signal ---

# start_telltale KEY OPTION…: a command under that lock that reports the signal that it gets, and
# exits with 7.
start_telltale() {
  start_background "$1" redlock-cli run -k "$1" -t 9s --grace 4s "${@:2}" -- bash -c '
    for signal in HUP INT QUIT USR1 TERM RTMAX-1 RTMAX; do
      trap "echo $signal; exit 7" "$signal"
    done
    echo ready; while :; do sleep 0.1; done'
  wait_for_stdout "$1" ready
}

@test "--stop-signal: by name, with SIG, by number, and real-time" {
  local given
  local -A wanted=([INT]=INT [SIGHUP]=HUP [3]=QUIT [RTMAX-1]=RTMAX-1 [SIGRTMAX]=RTMAX)
  # In parallel, because each takes until its next renewal.
  for given in "${!wanted[@]}"; do start_telltale "$given" --stop-signal "$given"; done
  for given in "${!wanted[@]}"; do redis 0 del "$given"; done
  for given in "${!wanted[@]}"; do
    wait_background "$given"
    assert_equal "$given: $status ${lines[*]}" "$given: 79 ready ${wanted[$given]}"
  done
}

@test "the front process also sends --stop-signal, when the holder hangs" {
  start_background ours redlock-cli run -k demo -t 9s --grace 4s --stop-signal INT \
    --status-fd 8 -- bash -c '
    trap "echo INT; exit 7" INT; trap "echo TERM" TERM; echo ready; while :; do sleep 0.1; done' \
    8>"$BATS_TEST_TMPDIR/report"
  wait_for_stdout ours ready
  kill -STOP "$(holder_of "${BACKGROUND_PID[ours]}")"
  wait_background ours
  assert_equal "$status ${lines[*]}" "79 ready INT"
}

@test "--grace longer than the ttl allows is refused, and the shortest ttl is named" {
  local shortest
  assert_refused 64 "ttl" redlock-cli run -k demo -t 5s --grace 10s -- true
  shortest=$(grep -oE '[0-9.]+m?s' <<<"$stderr" | tail -n 1)
  run -0 redlock-cli run -k demo -t "$shortest" --grace 10s -- true
  assert_refused 64 "ttl" redlock-cli run -k demo --grace 1m -- true
}

@test "--grace 0: KILL follows the stop signal at once" {
  start_tree ours -t 6s --grace 0
  redis 0 del demo
  wait_background ours
  assert_equal "$status" 79
  assert_tree_dead
}

# --- --on-lost ---

@test "--on-lost kill: guards that were both stopped for longer than the lease kill the tree as soon as they continue, and report 80 and how late they were" {
  local first
  for first in FRONT HOLDER; do
    rm -f "$BATS_TEST_TMPDIR/pids"
    start_tree ours -t 4s --grace 100ms
    kill -STOP "$FRONT" "$HOLDER"
    wait_for_no_key 0 demo
    kill -CONT "${!first}"
    if [[ $first == HOLDER ]]; then
      wait_until is_dead "$COMMAND"
      kill -CONT "$FRONT"
    fi
    wait_background ours
    assert_equal "$first: $status" "$first: 80"
    assert_tree_dead
    assert_regex "$stderr" \
      "UNSAFE: the last process of the command was seen dead [0-9.]+(ms|s) after the lock could \
expire"
    assert_equal \
      "$(reported '(j["result"], j["exit_code"], j["late_ms"] > 0, j["reason"] != "")')" \
      "('unconfirmed', 80, True, True)"
  done
}

@test "--on-lost takes no other value" {
  assert_refused 64 "must be kill, term or warn" redlock-cli run -k demo --on-lost never -- true
  REDLOCK_ON_LOST=never assert_refused 78 "must be kill, term or warn" \
    redlock-cli run -k demo -- true
}
