#!/usr/bin/env bats
# --status-fd: the result of a run, as one line of JSON.
load helper/common
load helper/supervision

# run_reported OPTION… -- CMD: sets $output to the line of --status-fd, and $status to the exit
# status.
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
'key', 'left', 'left_names', 'released', 'result', 'shared', 'started_at', 'waited_ms']"
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

@test "--status-fd: the waiting time" {
  redis 0 set demo theirs px 3000
  run_reported -- true
  assert_equal "$status" 0
  # Minus the time before it began.
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

@test "--status-fd: a command that could not be executed, and one that exits with such a status" {
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
  # A descriptor that is not open for writing gets nothing.
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
