#!/usr/bin/env bats
# run --once-per: at most one successful run in a period, on one server or on local:. Quorums are in
# once_per_quorum.bats.
load helper/common

setup() { setup_one_server; }

# once PERIOD [--success-codes N,N] CMD…: a run of the key demo that prints `ran` if it runs CMD.
once() { redlock-cli run -k demo --once-per "$@"; }

# The period is open, and closed by a run that succeeds now.
assert_runs_once() {
  run -0 once 20h echo ran
  assert_output ran
  run -0 once 20h echo ran
  refute_line ran
}

# record_success IN: records a success that starts in IN ms by the server's clock; negative: in the
# past.
record_success() {
  local at=$(($(redis 0 time | head -n 1) * 1000 + $1))
  redis 0 set 'redlock:last:{demo}' "0 $at 7"$'\n'"1 7 $at $at 0 released 0 - {}" >/dev/null
}

@test "a successful run closes the period for the next, which reports that and exits with 0" {
  run -0 --separate-stderr once 20h echo ran
  assert_equal "$output$stderr" "ran"
  run -0 --separate-stderr once 20h echo ran
  assert_equal "$output" ""
  assert_regex "$stderr" \
    "^redlock-cli: demo: already ran [0-9.ms]+ ago on $(hostname) \([0-9.ms]+, exit 0\); \
next run possible in 19h59m$"
  assert_equal "$(keys_at 0)" ""
}

@test "the period ends: the next run runs its command" {
  run -0 once 20h true
  run -0 redlock-cli run -k demo --once-per 1ms -- echo ran
  assert_output ran
}

@test "-q is silent, --fresh-exit-code replaces the 0, and --json shows the successful run" {
  run -0 once 20h true
  run -0 redlock-cli run -k demo --once-per 20h -q -- echo ran
  assert_output ""
  run -9 redlock-cli run -k demo --once-per 20h -q --fresh-exit-code 9 -- echo ran
  assert_output ""
  run -9 --separate-stderr redlock-cli run -k demo --once-per 20h --json \
    --fresh-exit-code 9 -- echo ran
  output=$stderr
  assert_equal \
    "$(json '(j["result"], j["exit_code"],
      j["last"]["result"], j["last"]["command_exit"], j["last"]["program"])')" \
    "('fresh', 9, 'released', 0, 'true')"
}

@test "a failed, a killed and a lost run leave the period open" {
  run -3 once 20h sh -c 'exit 3'
  run -137 once 20h sh -c 'kill -9 $$'
  # Broken by force at the end: nothing may be recorded under another holder's lease.
  run -79 once 20h sh -c 'redlock-cli release demo --force -q; exit 0'
  run -127 once 20h /no/such/command
  run -0 once 20h echo ran
  assert_output ran
}

@test "--success-codes names other exit statuses that close the period, and 0 always does" {
  local status
  for status in 0 1 24; do
    run -"$status" once 20h --success-codes 1,24 sh -c "exit $status"
    run -0 once 20h echo ran
    refute_line ran
    run -0 redlock-cli status demo --max-age 1h
    redis 0 del 'redlock:last:{demo}' >/dev/null
  done
  run -2 once 20h --success-codes 1,24 sh -c 'exit 2'
  run -143 once 20h --success-codes 1,24,143 sh -c 'kill -TERM $$'
  run -0 once 20h echo ran
  assert_output ran
}

@test "status calls a run succeeded if its exit status does not show that" {
  run -1 redlock-cli run -k demo --success-codes 0,1 -- sh -c 'exit 1'
  run -0 redlock-cli status demo --runs 1
  assert_line --regexp 'exit 1, succeeded\)$'
  run -0 redlock-cli run -k demo --success-codes 0,1 -- true
  run -0 redlock-cli status demo --runs 1
  assert_line --regexp 'exit 0\)$'
}

@test "--success-codes needs numbers from 0 to 255, and no variable sets it" {
  local codes
  for codes in 0, 0,,1 256 -1 one 1-3; do
    assert_refused 64 "--success-codes: must be exit statuses from 0 to 255, separated by commas" \
      redlock-cli run -k demo "--success-codes=$codes" -- true
  done
  assert_refused 64 "--success-codes: is empty" redlock-cli run -k demo --success-codes= -- true
  REDLOCK_SUCCESS_CODES=1 run -1 once 20h sh -c 'exit 1'
  run -0 once 20h echo ran
  assert_output ran
}

@test "a run that is killed with all its processes leaves the period open" {
  hold ours --once-per 20h --ttl 9s
  kill -9 -- "$(ps -o ppid= -p "$(pgrep -P "${BACKGROUND_PID[ours]}")")" \
    $(pgrep -P "${BACKGROUND_PID[ours]}")
  wait_background ours
  run -0 once 20h echo ran
  assert_line ran
}

@test "a waiter after a successful run finds it fresh; after a failed one it runs" {
  local code expected
  for code in 4 0; do
    rm -f "$BATS_TEST_TMPDIR/end"
    start_background first redlock-cli run -k demo --once-per 20h -- \
      sh -c 'echo entered; until [ -e "$0" ]; do sleep 0.1; done; exit '"$code" \
      "$BATS_TEST_TMPDIR/end"
    wait_for_stdout first entered
    start_background second redlock-cli run -k demo --once-per 20h -- sh -c 'echo ran; exit 5'
    wait_for_queued 1
    touch "$BATS_TEST_TMPDIR/end"
    wait_background first
    wait_background second
    if ((code == 0)); then expected="0 "; else expected="5 ran"; fi
    assert_equal "$status $output" "$expected"
  done
}

@test "a run without --once-per closes the period as well, and so does one with another period" {
  run -0 redlock-cli run -k demo -- true
  run -0 once 20h echo ran
  refute_line ran
  run -0 redlock-cli run -k other --once-per 1ms -- true
  run -0 redlock-cli run -k other --once-per 1h -- echo ran
  refute_line ran
}

@test "a failure after a success does not open the period" {
  run -0 redlock-cli run -k demo -- true
  run -1 redlock-cli run -k demo -- false
  run -0 once 20h echo ran
  refute_line ran
}

@test "a success of --min-hold counts when the lock is free again" {
  run -0 redlock-cli run -k demo --min-hold 100ms --once-per 20h -- true
  run -0 once 20h echo ran
  refute_line ran
}

@test "with several keys each of them must have a success" {
  run -0 redlock-cli run -k one -- true
  run -0 redlock-cli run -k one -k two --once-per 20h -- echo ran
  assert_output ran
  run -0 redlock-cli run -k two -- true
  run -0 redlock-cli run -k one -k two --once-per 20h -- echo ran
  refute_line ran
  assert_line --partial "one, two: already ran"
}

@test "-s and --slots with --once-per are refused with the reason" {
  assert_refused 64 "needs the lock alone" redlock-cli run -k demo --once-per 20h -s -- true
  assert_refused 64 "needs the lock alone" redlock-cli run -k demo --once-per 20h --slots 2 -- true
  assert_refused 64 "--once-per" redlock-cli run -k demo --once-per 0 -- true
  assert_refused 64 "--once-per" redlock-cli run -k demo --once-per never -- true
}

@test "within a run of the same key --once-per is refused: the outer run records" {
  run -64 --separate-stderr redlock-cli run -k demo \
    -- redlock-cli run -k demo --once-per 20h -- echo ran
  assert_equal "$output" ""
  assert_regex "$stderr" "give --once-per to that run"
}

@test "under a lease of acquire it is refused, too" {
  eval "$(redlock-cli acquire -k demo -t 60s --export)"
  assert_refused 64 "the enclosing run or acquire holds the lock" once 20h echo ran
  run -0 redlock-cli release
}

@test "acquire and release by hand record no run" {
  run -0 --separate-stderr redlock-cli acquire -k demo -t 60s --export
  eval "$output"
  run -0 redlock-cli release
  unset REDLOCK_KEY REDLOCK_TOKEN REDLOCK_FENCE REDLOCK_LEASE
  run -0 once 20h echo ran
  assert_output ran
}

# The number of days for which the server keeps the record.
days_kept() { echo $(($(redis 0 pttl 'redlock:last:{demo}') / 86400000)); }

@test "the record is kept for 70 days, or for as long as the longest --once-per asks" {
  run -0 redlock-cli run -k demo -- true
  assert_in_range "$(days_kept)" 69 70
  run -0 redlock-cli run -k demo --once-per 90d -- true # finds it fresh, and passes it on
  run -0 redlock-cli run -k demo -- true
  assert_in_range "$(days_kept)" 89 90
}

# bats test_tags=redis
@test "a server keeps the record for 400 days at most, whatever it was told" {
  redis 0 set 'redlock:last:{demo}' $'99999999999 0 0\n1 7 1 2 0 released 3 - {}' >/dev/null
  run -0 redlock-cli run -k demo -- true
  assert_in_range "$(days_kept)" 399 400
}

# bats test_tags=redis
@test "a success also closes the period after the fence counter was reset" {
  # From a server's clock that was ahead, or from another counter.
  redis 0 set 'redlock:fence:{demo}' 4503599627370000 >/dev/null
  run -0 redlock-cli run -k demo -- true
  run -3 redlock-cli run -k demo -- sh -c 'exit 3'
  redis 0 del 'redlock:fence:{demo}' >/dev/null
  run -0 redlock-cli run -k demo --once-per 1ms -- echo ran
  assert_output ran
  run -0 redlock-cli status demo
  assert_line --regexp '^  last run .* \(echo\) '
  refute_line --partial "last success"
  run -0 --separate-stderr once 20h echo ran
  assert_equal "$output" ""
  assert_regex "$stderr" "demo: already ran"
}

# bats test_tags=redis
@test "the record of a newer version shows when the last success started" {
  local now
  now=$(redis 0 time | head -n 1)
  redis 0 set 'redlock:last:{demo}' \
    "0 $(((now - 3600) * 1000)) 7 more"$'\n''2 7 what only it knows' >/dev/null
  run -0 --separate-stderr once 20h echo ran
  assert_equal "$output" ""
  assert_regex "$stderr" "already ran 1h ago; next run possible in 18h59m"
  run -0 redlock-cli status demo
  assert_output --partial "upgrade redlock-cli"
  run -0 once 30m echo ran
  assert_output ran
}

# bats test_tags=redis
@test "a malformed record is ignored, and replaced" {
  local value
  for value in "rubbish" "0 x 7" ""; do
    redis 0 set 'redlock:last:{demo}' "$value" >/dev/null
    assert_runs_once
  done
}

# bats test_tags=redis
@test "an unreadable record is an error, and the command is not run again" {
  redis 0 rpush 'redlock:last:{demo}' x >/dev/null
  assert_refused 69 WRONGTYPE redlock-cli run -k demo -n --once-per 20h -- touch "$BATS_TEST_TMPDIR/ran"
  [[ ! -e $BATS_TEST_TMPDIR/ran ]]
  run -0 redlock-cli status demo
  # Without a period the record is not read, and the run replaces it.
  run -0 redlock-cli run -k demo -- true
  run -0 redlock-cli status demo --max-age 1h
}

# bats test_tags=redis
@test "a server that lost the record opens the period" {
  run -0 once 20h true
  restart_server 0
  assert_runs_once
}

# bats test_tags=redis
@test "a clock that was set forward opens the period" {
  record_success -172800000
  run -0 once 20h echo ran
  assert_output ran
}

# bats test_tags=redis
@test "with a clock that was set back a success counts for longer, and one far in the future is ignored" {
  record_success 3600000
  run -0 once 20h echo ran
  refute_line ran
  run -0 once 30m echo ran
  assert_output ran
}
