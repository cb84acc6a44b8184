#!/usr/bin/env bats
# bats file_tags=smoke
# The exit status: the command's own, or that of the failure in the table of exit codes.
load helper/common

setup() {
  setup_one_server
  # On a busy machine a single attempt needs as much time as the default ttl allows.
  export REDLOCK_SERVER_TIMEOUT=4s
}

# --- The command's own ---

@test "every exit code of the command is returned" {
  local code got wrong=
  for code in {0..255}; do
    got=0
    redlock-cli run -k demo -- sh -c 'exit "$0"' "$code" || got=$?
    [[ $got == "$code" ]] || wrong+=" $code->$got"
  done
  assert_equal "$wrong" ""
  assert_equal "$(keys_at 0)" ""
}

# For each signal that kills: the status that a shell sees of a command that died of it, and the one
# that it sees of run; one line each.
all_deaths() {
  /usr/bin/python3 - "$@" <<'END'
import signal, subprocess, sys
for number in sorted(signal.valid_signals()):
    # Ignored by default.
    if number in (signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH):
        continue
    if number in (signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU):
        continue
    command = [*sys.argv[1:], "sh", "-c", f"ulimit -c 0; kill -{int(number)} $$"]
    print(int(number), subprocess.run(command).returncode)
END
}

@test "when any signal kills the command, run dies of the same signal" {
  run all_deaths env --default-signal
  assert_success
  assert_line "9 -9"
  assert_line "15 -15"
  assert [ "${#lines[@]}" -gt 50 ]
  local expected=$output
  run all_deaths env --default-signal redlock-cli run -k demo --
  assert_equal "$output" "$expected"
  assert_equal "$(keys_at 0)" ""
}

@test "a signal that was ignored at the start but killed the command also kills run" {
  run /usr/bin/python3 "$BATS_TEST_DIRNAME/helper/ending.py" "$BATS_TEST_TMPDIR/pid" \
    env --ignore-signal=USR1,TERM \
    "$REDLOCK_CLI" run -k demo -- env --default-signal=USR1 sh -c 'kill -USR1 $$'
  assert_output "signal 10"
}

@test "the shell sees 128 + n" {
  run --separate-stderr bash -c 'redlock-cli run -k demo -- sh -c "kill -TERM \$\$"; echo "$?"'
  assert_output 143
}

@test "the command's core is the only one" {
  cd "$BATS_TEST_TMPDIR"
  ulimit -c unlimited 2>/dev/null || skip "this user may not have cores"
  run /usr/bin/python3 "$BATS_TEST_DIRNAME/helper/ending.py" pid sh -c 'kill -QUIT $$'
  [[ $output == "signal 3 core" ]] || skip "this system leaves no cores: $output"
  run /usr/bin/python3 "$BATS_TEST_DIRNAME/helper/ending.py" pid "$REDLOCK_CLI" run -k demo \
    -- sh -c 'kill -QUIT $$'
  assert_output "signal 3"
}

# --- Each row of the table ---

@test "0: done" {
  run redlock-cli run -k demo -- true
  assert_success
  assert_output ""
}

@test "64: the command line is wrong" {
  local -a wrong=(
    'no-such-command'
    'run'
    'run -- true'
    'run -k demo --no-such-option -- true'
    'run -k demo -t 1x -- true'
    'run -k demo -t 0 -- true'
    'run -k demo -w -1 -- true'
    'run -k demo -E 256 -- true'
    'run -k demo --grace 1h -- true'
    'run -k demo --on-lost perhaps -- true'
    'run -k demo --stop-signal NONE -- true'
    'run -k demo --status-fd 77 -- true'
    'acquire -k demo'
    'acquire --ttl 60s'
    'acquire -k demo --ttl 60s -- true'
    'extend -k demo'
    'release --force'
    'release --if-fence 3'
    'status --no-such-option'
  )
  local line
  for line in "${wrong[@]}"; do
    # shellcheck disable=SC2086
    run --separate-stderr redlock-cli $line
    assert_equal "$line: $status" "$line: 64"
    assert_equal "$output" ""
    assert_regex "$stderr" '^redlock-cli: [^'$'\n'']+$'
  done
  assert_equal "$(redis 0 dbsize)" 0
}

@test "64 is also reported in JSON, whatever the words are" {
  run -64 --separate-stderr redlock-cli $'\xff' --json
  assert_regex "$output" '^\{"command":.*"exit_code":64,.*\}$'
}

@test "69: no quorum of servers answers" {
  kill_server 0
  local -a lines_to_try=('run -n -k demo -- touch entered'
    'run --unavailable-wait 300ms -k demo -- touch entered'
    'acquire -n -k demo --ttl 60s' 'status -k demo' 'status' 'release --force -k demo')
  local line
  cd "$BATS_TEST_TMPDIR"
  for line in "${lines_to_try[@]}"; do
    # shellcheck disable=SC2086
    run --separate-stderr redlock-cli $line
    assert_equal "$line: $status" "$line: 69"
    assert_regex "$stderr" "${SERVER_SOCKET[0]}"
  done
  assert [ ! -e entered ]
}

@test "69 while waiting is not 75, however short the wait" {
  kill_server 0
  run redlock-cli run -w 100ms -k demo -- true
  assert_failure 69
  run redlock-cli run -E 0 -n -k demo -- true
  assert_failure 69
}

@test "71: a result that cannot be written" {
  local command lease
  lease=$(redlock-cli acquire -k demo --ttl 60s)
  for command in status 'status --json' 'doctor --settings' doctor 'extend --json -t 60s' \
    'release --json'; do
    REDLOCK_KEY=demo REDLOCK_TOKEN=$lease \
      run --separate-stderr sh -c "redlock-cli $command >/dev/full"
    assert_equal "$command: $status" "$command: 71"
    assert_regex "$stderr" '^redlock-cli: cannot write to stdout: [^'$'\n'']+$'
  done
  assert_equal "$(redis 0 exists demo)" 0
}

@test "75: another process holds it" {
  redis 0 set demo x px 60000
  run redlock-cli run -n -k demo -- true
  assert_failure 75
  run redlock-cli acquire -n -k demo --ttl 60s
  assert_failure 75
  run redlock-cli status -k demo --exit-code
  assert_failure 75
  run redlock-cli run -n -E 3 -k demo -- true
  assert_failure 3
  run redlock-cli acquire -n -E 0 -k demo --ttl 60s
  assert_success
}

@test "77: no password, or the wrong one" {
  start_server --requirepass right
  export REDLOCK_SERVER=${SERVER_URL[1]}
  local -a lines_to_try=('run -n -k demo -- true' 'run -w 1h -k demo -- true'
    'acquire -k demo --ttl 60s' 'status -k demo' 'status'
    'release -k demo --force')
  local line
  for line in "${lines_to_try[@]}"; do
    # shellcheck disable=SC2086
    run redlock-cli $line
    assert_equal "$line: $status" "$line: 77"
    # shellcheck disable=SC2086
    REDISCLI_AUTH=wrong-secret run redlock-cli $line
    assert_equal "$line: $status" "$line: 77"
    refute_output --partial wrong-secret
  done
  REDISCLI_AUTH=right run redlock-cli run -k demo -- true
  assert_success
}

@test "77: a user who may not touch the key" {
  redis 0 acl setuser worker on '>secret' '~other*' +@all
  REDISCLI_AUTH=secret run redlock-cli run --user worker -n -k demo -- true
  assert_failure 77
  REDISCLI_AUTH=secret run redlock-cli run --user no-such-user -n -k demo -- true
  assert_failure 77
}

@test "78: no server is set" {
  unset REDLOCK_SERVER
  [[ ! -e /etc/redlock-cli.toml ]] || skip "this machine has a /etc/redlock-cli.toml"
  local line
  for line in 'run -k demo -- touch entered' 'acquire -k demo --ttl 60s' 'status' \
    'release -k demo --force'; do
    # shellcheck disable=SC2086
    run redlock-cli $line
    assert_equal "$line: $status" "$line: 78"
    assert_equal "${#lines[@]}" 1
    assert_output --partial "no server is set"
    assert_output --partial -- "-S redis://"
    assert_output --partial config.toml
  done
  assert [ ! -e entered ]
}

@test "79: no longer the holder" {
  redlock-cli acquire -k demo --ttl 60s --token-file "$BATS_TEST_TMPDIR/lease"
  redis 0 del demo
  run redlock-cli extend --ttl 60s --token-file "$BATS_TEST_TMPDIR/lease"
  assert_failure 79
  run redlock-cli release --token-file "$BATS_TEST_TMPDIR/lease"
  assert_failure 79
  run redlock-cli run -k demo -- redis-cli -s "$SERVER_SOCKET" del demo
  assert_failure 79
  assert_output --partial lost
}

@test "79 and the others stay the same when no process reads stderr" {
  redlock-cli acquire -k demo --ttl 60s \
    --token-file "$BATS_TEST_TMPDIR/lease" >"$BATS_TEST_TMPDIR/out"
  redis 0 del demo
  open_broken_pipe 7
  local line
  for line in 'extend --ttl 60s --token-file lease' 'release --token-file lease'; do
    run env --default-signal=PIPE sh -c "cd '$BATS_TEST_TMPDIR'; redlock-cli $line 2>&7"
    assert_equal "$line: $status" "$line: 79"
  done
  kill_server 0
  run env --default-signal=PIPE sh -c "redlock-cli status 2>&7"
  assert_failure 69
}

@test "126: the command cannot be executed" {
  run redlock-cli run -k demo -- "$BATS_TEST_TMPDIR"
  assert_failure 126
  assert_output --partial "$BATS_TEST_TMPDIR"
}

@test "127: the command is not found" {
  run -127 redlock-cli run -k demo -- no-such-program
  assert_output --partial no-such-program
}
