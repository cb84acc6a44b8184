#!/usr/bin/env bats
# The commands' own shells expand; each test is a subshell; bats and helpers set variables:
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2154
# How long run keeps the lock, and how it ends what runs under it: --descendants, --min-hold,
# --grace, --stop-signal, --on-lost, --status-fd.
load helper/common
load helper/redis
load helper/locks
load helper/checks
load helper/supervision

setup() { setup_supervision; }
teardown() { teardown_supervision; }

# A command that leaves three processes: one that says what it was told when it gets TERM, one in a
# session of its own that has lost its parent, and, the last in the file $1, one that ignores TERM.
# When the file $2 appears it ends with the code $3.
leaver() {
  executable leaver <<'EOF'
#!/bin/bash
pids=$1 end=$2 code=$3
note='echo "$BASHPID" >>"$0"'
echo "$$" >"$pids"
# It has no child, not even for a moment: who is left is counted.
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

# reported EXPRESSION: of the line that --status-fd got.
reported() {
  output=$(report)
  json "$1"
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
    assert_equal "$(keys_at 0)" ""
    assert_regex "$stderr" "^redlock-cli: demo: processes that the command left running: [0-9 ]+; "
    for pid in "${LEFT_PIDS[@]}"; do
      assert is_alive "$pid"
      assert_regex "$stderr" " $pid[ ;]"
    done
    assert_equal "$(reported 'sorted(j["left"])')" \
      "$(printf '%s\n' "${LEFT_PIDS[@]}" | sort -n | paste -sd , | sed 's/,/, /g; s/.*/[&]/')"
    assert_equal "$(reported '(j["result"], j["exit_code"], j["released"])')" \
      "('released', 5, True)"
    run -0 redlock-cli run -k demo -n --server-timeout 4s -- true
    end_tree
  done
}

@test "-q says nothing of what is left where --descendants leave is given: it is expected" {
  start_leaver 5 -q --descendants leave
  end_leaver
  wait_background ours
  assert_equal "$status $stderr" "5 "
}

@test "--descendants leave says nothing when nothing is left" {
  run -0 --separate-stderr redlock-cli run -k demo --descendants leave -- sh -c 'sleep 0.1 & wait'
  assert_equal "$output$stderr" ""
}

# bats test_tags=redis
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

@test "--descendants wait: a signal that the command died of is passed on when the rest has ended" {
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

@test "--descendants wait: what is waited for is stopped when the lock is lost" {
  start_leaver 0 -t 6s --grace 300ms --descendants wait
  end_leaver
  redis 0 del demo
  wait_background ours
  assert_equal "$status" 79
  assert_tree_dead
  assert_equal "$(reported '(j["result"], j["exit_code"], j["command_exit"], j["left"])')" \
    "('lost', 79, 0, [])"
}

# bats test_tags=redis
@test "--descendants kill: they are told, killed after the grace, and dead before the lock is free; the status is the command's" {
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

@test "--descendants kill waits for the grace no longer than anything lives" {
  start_leaver 5 -t 200s --grace 100s --descendants kill
  kill -KILL "${LEFT_PIDS[2]}"
  end_leaver
  # Less than the grace.
  wait_background ours
  assert_equal "$status" 5
  assert_equal "${lines[*]}" "ready told"
  assert_tree_dead
}

@test "--descendants kill tells them with --stop-signal" {
  start_background ours redlock-cli run -k demo --stop-signal USR1 --descendants kill -- bash -c '
    bash -c "trap \"echo USR1; exit\" USR1; trap \"echo TERM\" TERM
      echo ready; while :; do sleep 0.1; done" &
    until [[ -e $0 ]]; do sleep 0.1; done' "$BATS_TEST_TMPDIR/end"
  wait_for_stdout ours ready
  touch "$BATS_TEST_TMPDIR/end"
  wait_background ours
  assert_equal "$status ${lines[*]}" "0 ready USR1"
}

@test "--descendants takes nothing else" {
  local value
  for value in never Leave "" "leave " 1; do
    assert_refused 64 "must be leave, wait or kill" \
      redlock-cli run -k demo --descendants="$value" -- true
  done
  REDLOCK_DESCENDANTS=never assert_refused 78 "must be leave, wait or kill" \
    redlock-cli run -k demo -- true
  assert_equal "$(redis 0 dbsize)" 0
}

# --- --min-hold ---

@test "--min-hold: run exits at once, and others wait for the rest" {
  local left
  run -0 --separate-stderr redlock-cli run -k demo -t 20s --min-hold 100s \
    --note "once a night" -- true
  assert_equal "$output$stderr" ""
  left=$(redis 0 pttl demo)
  assert_in_range "$left" 50000 100000
  assert_refused 75 "once a night" redlock-cli run -k demo -n -- true
  assert_refused 75 "(true)" redlock-cli acquire -k demo --ttl 10s -n
  local until='kept until ([0-9]{4}-[0-9]{2}-[0-9]{2} )?[0-9]{2}:[0-9]{2}:[0-9]{2} '\
'by --min-hold of '
  run -0 redlock-cli status -k demo
  assert_line --regexp \
    "^demo: ${until}$(id -un)@$(hostname) \\(true\\), \"once a night\"; \
finished [0-9.]+m?s ago with 0$"
  refute_output --partial "held by"
  run -75 --separate-stderr redlock-cli status -k demo --exit-code --json
  assert_equal "$(json '[j["locks"][0]["holder"][name] for name in ("renewed", "command_exit")]')" \
    "[False, 0]"
  assert_in_range "$(json 'j["locks"][0]["holder"]["finished_ms"]')" 0 20000
  assert_equal "$(json '[j["locks"][0]["holder"][name] for name in ("program", "note")]')" \
    "['true', 'once a night']"
  assert [ "$(redis 0 pttl demo)" -le "$left" ]
}

@test "--min-hold: what is kept is free when it has ended, and not sooner" {
  local began now
  began=$(date +%s%3N)
  run -0 redlock-cli run -k demo --min-hold 1500ms -- true
  run -0 redlock-cli run -q -k demo -w 20s -- date +%s%3N
  assert [ "$output" -ge "$((began + 1500))" ]
  assert_equal "$(keys_at 0)" ""
}

@test "--min-hold: a command that takes longer is not held for a moment more" {
  run -0 redlock-cli run -k demo --min-hold 300ms -- sleep 0.4
  assert_equal "$(keys_at 0)" ""
}

@test "--min-hold holds, however the command ended" {
  local how told
  for how in 'exit 3' 'kill -TERM $$'; do
    run redlock-cli run -k demo --min-hold 100s -- sh -c "$how"
    assert_in_range "$(redis 0 pttl demo)" 50000 100000
    if [[ $how == exit* ]]; then told='with 3'; else told='by signal 15'; fi
    assert_refused 75 "ago $told" redlock-cli run -k demo -n -- true
    run -0 redlock-cli release -k demo --force
  done
}

@test "--min-hold: a slot that is kept says so, too" {
  run -0 redlock-cli run -k demo --slots 2 --min-hold 100s -- true
  run -0 redlock-cli status -k demo
  assert_line --regexp \
    "^  slot 0: kept until .* by --min-hold of .* \\(true\\); finished [0-9.]+m?s ago with 0$"
}

# bats test_tags=redis
@test "--min-hold holds at every server" {
  start_servers 2
  export REDLOCK_SERVER=$SERVERS
  run -0 redlock-cli run -k demo --min-hold 100s -- "$(granted_by_all)" true
  local i
  for i in 0 1 2; do assert_in_range "$(redis "$i" pttl demo)" 50000 100000; done
  assert_refused 75 "kept until" redlock-cli run -k demo -n -- true
}

# bats test_tags=redis
@test "--min-hold is not applied to a lock that was lost" {
  run -79 redlock-cli run -k demo --min-hold 100s -- redis-cli -s "$SERVER_SOCKET" del demo
  assert_equal "$(redis 0 exists demo)" 0
  run -79 redlock-cli run -k demo --min-hold 100s -- redis-cli -s "$SERVER_SOCKET" set demo theirs
  assert_equal "$(redis 0 get demo) $(redis 0 pttl demo)" "theirs -1"
}

@test "--min-hold is not applied to a command that was stopped since the lock was lost" {
  start_background ours redlock-cli run -k demo -t 6s --grace 300ms --server-timeout 1s \
    --min-hold 100s -- sh -c 'echo ready; exec sleep 1000'
  wait_for_stdout ours ready
  redis 0 set demo theirs
  wait_background ours
  assert_equal "$status" 79
  assert_equal "$(redis 0 get demo) $(redis 0 pttl demo)" "theirs -1"
}

@test "--min-hold is not applied to a command that could not start" {
  local script
  script=$(executable script <<<'#!/no/such/interpreter')
  run redlock-cli run -k demo --min-hold 100s -- "$script"
  assert_in_range "$status" 126 127
  assert_equal "$(keys_at 0)" ""
}

@test "--min-hold is a duration of at most 365 days" {
  assert_refused 64 "at most 365d" redlock-cli run -k demo --min-hold 400d -- true
  local value
  for value in never -1s ""; do
    assert_refused 64 "min-hold" redlock-cli run -k demo --min-hold="$value" -- true
  done
  assert_refused 64 "min-hold" redlock-cli acquire -k demo --ttl 10s --min-hold 1s
  assert_equal "$(redis 0 dbsize)" 0
  run -0 redlock-cli run -k demo --min-hold 0 -- true
  assert_equal "$(keys_at 0)" ""
}

@test "--min-hold: within a run of the same key it is refused, and the outer run goes on" {
  run -0 --separate-stderr redlock-cli run -k demo -- \
    sh -c 'redlock-cli run -k demo --min-hold 100s -- echo ran; echo "$?"
      redlock-cli run -k other -k demo --min-hold 100s -- echo ran; echo "$?"
      redlock-cli status demo --exit-code >/dev/null; echo "$?"'
  assert_equal "${lines[*]}" "64 64 75"
  assert_equal "${stderr_lines[0]}" "redlock-cli: demo: --min-hold needs a lease of its own, and \
the run or acquire around this one holds the lock: give --min-hold to that run"
  assert_equal "$(keys_at 0)" ""
}

@test "--min-hold: under a lease of acquire it is refused, too, and that lease stands" {
  eval "$(redlock-cli acquire -k demo --ttl 60s --export)"
  assert_refused 64 "the run or acquire around this one holds the lock" \
    redlock-cli run -k demo --min-hold 100s -- echo ran
  run -0 redlock-cli release
  assert_unlocked demo 0
}

@test "--min-hold: as a setting, or of 0, it does not break a nested run, and keeps only what is its own" {
  local events=$BATS_TEST_TMPDIR/events
  run -0 --separate-stderr redlock-cli run -k demo -- \
    sh -c 'redlock-cli run -k demo --min-hold 0 -- echo zero
      export REDLOCK_MIN_HOLD=100s
      redlock-cli run -k demo --events-fd 8 -- echo variable
      redlock-cli run -k demo -k other -- echo both' 8>"$events"
  assert_equal "$output$stderr" $'zero\nvariable\nboth'
  assert_equal "$(jq -c 'select(.event == "released") | .kept_ms' "$events")" null
  assert_equal "$(redis 0 exists demo)" 0
  assert_in_range "$(redis 0 pttl other)" 1 100000
  echo 'min-hold = "100s"' >"$BATS_TEST_TMPDIR/config.toml"
  run -0 --separate-stderr redlock-cli run -k demo -- \
    redlock-cli run --config "$BATS_TEST_TMPDIR/config.toml" -k demo -- echo file
  assert_equal "$output$stderr" file
  assert_unlocked demo 0
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

# start_telltale KEY OPTION…: a command under that lock that says which signal it was told with, and
# ends with 7.
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
  # All at once, as each takes until its next renewal.
  for given in "${!wanted[@]}"; do start_telltale "$given" --stop-signal "$given"; done
  for given in "${!wanted[@]}"; do redis 0 del "$given"; done
  for given in "${!wanted[@]}"; do
    wait_background "$given"
    assert_equal "$given: $status ${lines[*]}" "$given: 79 ready ${wanted[$given]}"
  done
}

@test "--stop-signal is what the guard in front sends, too, when the holder hangs" {
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

@test "--grace 0: KILL comes right behind the stop signal" {
  start_tree ours -t 6s --grace 0
  redis 0 del demo
  wait_background ours
  assert_equal "$status" 79
  assert_tree_dead
}

# --- --on-lost ---

@test "--on-lost kill, term and warn: 79 each, and what became of the command" {
  local choice wanted
  while read -r choice wanted; do
    rm -f "$BATS_TEST_TMPDIR/end"
    start_background ours redlock-cli run -k demo -t 4s --grace 100ms --on-lost "$choice" \
      --status-fd 8 -- bash -c '
      trap "echo told" TERM; echo ready; until [[ -e $0 ]]; do sleep 0.1; done; echo ended
      exit 3' "$BATS_TEST_TMPDIR/end" 8>"$BATS_TEST_TMPDIR/report"
    wait_for_stdout ours ready
    redis 0 set demo theirs
    wait_for_stderr ours "demo: lost"
    [[ $choice == kill ]] || touch "$BATS_TEST_TMPDIR/end"
    wait_background ours
    assert_equal "$choice: $status" "$choice: 79"
    assert_equal \
      "$choice: $(reported '(j["result"], j["exit_code"], j.get("command_exit"),
        j.get("command_signal"), j["released"])')" \
      "$choice: $wanted"
    [[ $choice != warn ]] || assert_equal "${lines[*]}" "ready ended"
    assert_equal "$(redis 0 get demo)" theirs
    redis 0 del demo
  done <<'END'
kill ('lost', 79, None, 9, False)
term ('lost', 79, 3, None, False)
warn ('lost', 79, 3, None, False)
END
}

@test "--on-lost kill: guards that were both stopped for longer than the lease kill the tree as soon as they go on, and say 80 and by how much they were late" {
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

@test "--on-lost takes nothing else" {
  assert_refused 64 "must be kill, term or warn" redlock-cli run -k demo --on-lost never -- true
  REDLOCK_ON_LOST=never assert_refused 78 "must be kill, term or warn" \
    redlock-cli run -k demo -- true
}

# --- --status-fd ---

# run_reported OPTION… -- CMD: what --status-fd says of it is then in $output, and in $status what
# it exited with.
run_reported() {
  run redlock-cli run -k demo --status-fd 8 "$@" 8>"$BATS_TEST_TMPDIR/report"
  output=$(report)
  assert_equal "$(wc -l <"$BATS_TEST_TMPDIR/report")" 1
}

@test "--status-fd: a command that ended by itself" {
  run_reported -- sh -c 'sleep 0.3; exit 3'
  assert_equal "$status" 3
  assert_equal "$(json 'sorted(j)')" \
    "['acquired_at', 'command', 'command_exit', 'ended_at', 'exit_code', 'fence', 'held_ms', \
'key', 'left', 'released', 'result', 'shared', 'started_at', 'waited_ms']"
  assert_equal \
    "$(json '(j["command"], j["key"], j["result"], j["exit_code"], j["command_exit"],
      j["released"], j["left"])')" \
    "('run', 'demo', 'released', 3, 3, True, [])"
  assert_equal "$(json 'j["fence"]')" "$(fence_at 0 demo)"
  assert [ "$(json 'j["held_ms"]')" -ge 300 ]
  assert [ "$(json 'j["waited_ms"]')" -ge 0 ]
}

@test "--status-fd: a command that died of a signal" {
  run_reported -- sh -c 'kill -KILL $$'
  assert_equal "$status" 137
  assert_equal "$(json '(j["result"], j["exit_code"], j["command_signal"], "command_exit" in j)')" \
    "('released', 137, 9, False)"
}

@test "--status-fd: the time that was waited" {
  redis 0 set demo theirs px 3000
  run_reported -- true
  assert_equal "$status" 0
  # Less what had passed before it began.
  assert [ "$(json 'j["waited_ms"]')" -gt 0 ]
}

@test "--status-fd: a lock that another holds" {
  redis 0 set demo theirs
  run_reported -n -- true
  assert_equal "$status" 75
  assert_equal \
    "$(json '(j["result"], j["exit_code"], j["released"], j["holder"]["foreign"],
      "fence" in j, "command_exit" in j)')" \
    "('busy', 75, False, True, False, False)"
  run_reported -n -E 0 -- true
  assert_equal "$status $(json '(j["result"], j["exit_code"])')" "0 ('busy', 0)"
}

@test "--status-fd: a command that could not be executed, and one whose own status is ours" {
  run_reported -- "$(executable script <<<'#!/no/such/interpreter')"
  assert_in_range "$status" 126 127
  assert_equal \
    "$(json '(j["result"], j["exit_code"] == '"$status"', j["released"], "command_exit" in j)')" \
    "('not_started', True, True, False)"
  run_reported -- sh -c 'exit 75'
  assert_equal "$status $(json '(j["result"], j["exit_code"], j["command_exit"])')" \
    "75 ('released', 75, 75)"
}

@test "--status-fd: an error that is found before the wait" {
  local -A result=([64]=usage [78]=config [126]=not_started [127]=not_started)
  run_reported --ttl never -- true
  check_early 64
  run_reported --ttl -n -- true
  check_early 64
  run_reported -S nonsense -- true
  check_early 78
  run_reported -- /etc
  check_early 126
  run -127 redlock-cli run -k demo --status-fd 8 -- /no/such/program 8>"$BATS_TEST_TMPDIR/report"
  output=$(<"$BATS_TEST_TMPDIR/report")
  check_early 127
  REDLOCK_STATUS_FD=8 run redlock-cli run -k demo --ttl never -- true 8>"$BATS_TEST_TMPDIR/report"
  output=$(<"$BATS_TEST_TMPDIR/report")
  check_early 64
  # What is no descriptor to write to gets nothing.
  run -64 redlock-cli run -k demo --status-fd 77 -- true
}

check_early() {
  assert_equal "$status" "$1"
  assert_equal \
    "$(json '[j["command"], j["result"], j["exit_code"], j["released"], len(j["message"]) > 0]')" \
    "['run', '${result[$1]}', $1, False, True]"
}

@test "--status-fd: a wait that a signal ended" {
  redis 0 set demo theirs
  start_background ours redlock-cli run -k demo --status-fd 8 -- true 8>"$BATS_TEST_TMPDIR/report"
  wait_for_stderr ours "waiting for"
  kill -TERM "${BACKGROUND_PID[ours]}"
  wait_background ours
  assert_equal "$status $(reported '(j["result"], j["exit_code"])')" "143 ('interrupted', 143)"
}
