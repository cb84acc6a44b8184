#!/usr/bin/env bats
# --min-hold: the lock is kept for a while although the command has ended.
load helper/common

setup() { setup_one_server; }

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
ended [0-9.]+m?s ago, exit status 0$"
  refute_output --partial "held by"
  run -75 --separate-stderr redlock-cli status -k demo --exit-code --json
  assert_equal "$(json '[j["locks"][0]["holder"][name] for name in ("renewed", "command_exit")]')" \
    "[False, 0]"
  assert_in_range "$(json 'j["locks"][0]["holder"]["finished_ms"]')" 0 20000
  assert_equal "$(json '[j["locks"][0]["holder"][name] for name in ("program", "note")]')" \
    "['true', 'once a night']"
  assert [ "$(redis 0 pttl demo)" -le "$left" ]
}

@test "--min-hold: a kept lock has no process, so it can be released by hand" {
  local mode
  for mode in -x -s '--slots 2'; do
    # shellcheck disable=SC2086
    run -0 redlock-cli run -k demo $mode --min-hold 100s -- sh -c 'echo "$REDLOCK_LEASE"'
    REDLOCK_LEASE=$output run -0 redlock-cli release
    assert_unlocked demo 0
  done
}

@test "--min-hold: a kept lock is free when the time has passed, and not sooner" {
  local began now
  began=$(date +%s%3N)
  run -0 redlock-cli run -k demo --min-hold 1500ms -- true
  run -0 redlock-cli run -q -k demo -w 20s -- date +%s%3N
  assert [ "$output" -ge "$((began + 1500))" ]
  assert_equal "$(keys_at 0)" ""
}

@test "--min-hold: a longer command does not extend the hold" {
  run -0 redlock-cli run -k demo --min-hold 300ms -- sleep 0.4
  assert_equal "$(keys_at 0)" ""
}

@test "--min-hold applies however the command ended" {
  local how told
  for how in 'exit 3' 'kill -TERM $$'; do
    run redlock-cli run -k demo --min-hold 100s -- sh -c "$how"
    assert_in_range "$(redis 0 pttl demo)" 50000 100000
    if [[ $how == exit* ]]; then told='exit status 3'; else told='signal 15'; fi
    assert_refused 75 "ago, $told" redlock-cli run -k demo -n -- true
    run -0 redlock-cli release -k demo --force
  done
}

@test "--min-hold: also after TERM; the busy message names the command that frees the lock, and the token frees it, too" {
  start_background ours redlock-cli run -k demo --min-hold 100s -- \
    sh -c 'echo "$REDLOCK_TOKEN"; exec sleep 1000'
  wait_until grep -qs . "$(background_stdout ours)"
  kill -TERM "${BACKGROUND_PID[ours]}"
  wait_background ours
  assert_equal "$status" 143
  assert_refused 75 "\`redlock-cli release -k demo --force\` releases it now" \
    redlock-cli run -k demo -n -- true
  REDLOCK_TOKEN=$(<"$(background_stdout ours)") run -0 redlock-cli release -k demo
  run -0 redlock-cli run -k demo -n -- true
}

@test "--min-hold: a kept slot is shown as kept" {
  run -0 redlock-cli run -k demo --slots 2 --min-hold 100s -- true
  run -0 redlock-cli status -k demo
  assert_line --regexp \
    "^  slot 0: kept until .* by --min-hold of .* \\(true\\); ended [0-9.]+m?s ago, exit status 0$"
}

# bats test_tags=redis
@test "--min-hold applies on every server" {
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

@test "--min-hold is not applied to a command that was stopped because the lock was lost" {
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

@test "--min-hold: it is refused within a run of the same key, and the outer run continues" {
  run -0 --separate-stderr redlock-cli run -k demo -- \
    sh -c 'redlock-cli run -k demo --min-hold 100s -- echo ran; echo "$?"
      redlock-cli run -k other -k demo --min-hold 100s -- echo ran; echo "$?"
      redlock-cli status demo --exit-code >/dev/null; echo "$?"'
  assert_equal "${lines[*]}" "64 64 75"
  assert_equal "${stderr_lines[0]}" "redlock-cli: demo: --min-hold needs a lease of its own, but \
the enclosing run or acquire holds the lock: give --min-hold to that run"
  assert_equal "$(keys_at 0)" ""
}

@test "--min-hold, --once-per: they are refused within a run before a wait for another key" {
  redlock-cli acquire -k busy --ttl 60s >/dev/null
  run -0 --separate-stderr redlock-cli run -k demo -- \
    sh -c 'for option in "--min-hold 100s" "--once-per 1h"; do
        redlock-cli run -w 0 -k busy -k demo $option -- echo ran; echo "$?"
      done'
  assert_output $'64\n64'
  assert_equal "$(redis 0 exists busy)" 1
}

# bats test_tags=redis
@test "--min-hold: within a run that no server reports at first it is refused once one does" {
  local events=$BATS_TEST_TMPDIR/events
  start_background outer redlock-cli run -k demo -t 60s -- sh -c 'kill -STOP "$1"
    redlock-cli run -q -w 60 -k demo --min-hold 100s --events-fd 8 -- echo ran 8>"$0"
    echo "$?"' "$events" "${SERVER_PID[0]}"
  wait_until grep -qs '"waiting"' "$events"
  resume_server 0
  wait_background outer
  assert_equal "$(cat "$(background_stdout outer)")" 64
}

@test "--min-hold: it is also refused under a lease of acquire, which stays valid" {
  eval "$(redlock-cli acquire -k demo --ttl 60s --export)"
  assert_refused 64 "the enclosing run or acquire holds the lock" \
    redlock-cli run -k demo --min-hold 100s -- echo ran
  run -0 redlock-cli release
  assert_unlocked demo 0
}

@test "--min-hold: as a setting, or of 0, it does not affect a nested run, and keeps only its own lock" {
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
