#!/usr/bin/env bats
# hold: a lock without a command, until it ends by itself or `release KEY` lifts it. Restarts of
# servers are in holds_quorum.bats.
load helper/common

setup() {
  setup_one_server
  allow_late_answers
}

# use NAME OPTION…: a run works under the lease in the file `lease` until release_hold NAME, or
# until it is stopped.
use() {
  local name=$1
  shift
  # shellcheck disable=SC2016,SC2046
  start_background "$name" env $(tr -d "'" <"$BATS_TEST_TMPDIR/lease") \
    redlock-cli run -k demo -n "$@" -- \
    bash -c 'trap "exit 5" TERM; echo entered; until [[ -e $0.end ]]; do sleep 0.1; done' \
    "$BATS_TEST_TMPDIR/$name"
  wait_for_stdout "$name" entered
}

# freeze OPTION…: holds the key demo; its lease is in the file `lease`.
freeze() { redlock-cli hold demo --token-file "$BATS_TEST_TMPDIR/lease" "$@"; }

holder() { redlock-cli status demo --json | jq -r ".locks[0].holder.$1"; }

@test "a hold keeps every command out until release KEY lifts it, without a lease" {
  run -0 --separate-stderr redlock-cli hold demo --for 1h --note 'database move'
  assert_output ""
  assert_regex "${stderr_lines[0]}" \
    'demo: on hold until [0-9: -]+; `redlock-cli release -k demo` lifts it'
  run -75 --separate-stderr redlock-cli run -k demo -n -- true
  assert_regex "$stderr" \
    "demo: on hold until [0-9: -]+ by $(id -un)@$(hostname): database move; the command was not run"
  run -75 --separate-stderr redlock-cli hold demo --for 1h -n
  run -0 --separate-stderr redlock-cli release demo
  assert_regex "$stderr" 'demo: lifted$'
  run -0 redlock-cli run -k demo -n -- echo free
  assert_output free
  run -0 --separate-stderr redlock-cli release demo
  assert_regex "$stderr" 'demo: nothing to release: the lock is free'
}

@test "a waiter learns of the hold, and starts when it is lifted" {
  freeze --for 1h --note 'database move'
  start_background next redlock-cli run -k demo -- echo next
  wait_for_stderr next 'waiting for demo: on hold until'
  redlock-cli release demo
  wait_background next
  assert_equal "$status $output" "0 next"
}

@test "a hold waits like run, and ends by itself" {
  hold first
  start_background freeze redlock-cli hold demo --for 5s
  wait_until is_awaited
  release_hold first
  wait_background freeze
  assert_equal "$status" 0
  run -0 --separate-stderr redlock-cli run -k demo -- echo over
  assert_output over
}
is_awaited() { redlock-cli status demo --json | jq -e '.locks[0].waiters.count == 1'; }

@test "a hold with a priority comes before those who wait, and status tells it from them" {
  hold ours
  start_background waits redlock-cli run -k demo --note turn -- echo "my turn"
  wait_until note_waits turn
  start_background freeze redlock-cli hold demo --for 1h --priority 1 --note why
  wait_until note_waits why
  run -0 redlock-cli status demo
  assert_line --regexp '^ *waiting to put it on hold: .*"why", for .*, priority 1$'
  release_hold ours
  wait_background freeze
  assert_equal "$status" 0
  redlock-cli release demo
  wait_background waits
  assert_equal "$status $output" "0 my turn"
}

@test "--until ends at its time, in local time or with a zone" {
  TZ=UTC run -0 --separate-stderr redlock-cli hold demo --until "$(date -u -d '+2 days' +%F) 09:00"
  assert_regex "$stderr" "on hold until $(date -u -d '+2 days' +%F) 09:00;"
  assert_ends "$(date -u -d '+2 days' +%FT)09:00Z"
  redlock-cli release demo
  local day
  day=$(date -u -d '+3 days' +%F)
  redlock-cli hold demo --until "${day}T09:00+02:00"
  assert_ends "${day}T07:00Z"
}
# Clocks and answers differ a little.
assert_ends() {
  local shown expected
  shown=$(date -d "$(holder hold_ends_at)" +%s)
  expected=$(date -d "$1" +%s)
  assert_in_range "$shown" $((expected - 3)) $((expected + 3))
}

@test "status and stop show the hold, its end, its note, and how to lift it" {
  freeze --for 1h --note 'database move'
  run -0 redlock-cli status demo
  assert_regex "${lines[0]}" "demo: on hold until [0-9: -]+ by $(id -un)@$(hostname): database move"
  run -0 redlock-cli status
  assert_regex "${lines[1]}" 'demo +on hold +.*"database move".*(59|60)m left|1h left'
  assert_equal "$(holder kept_by) $(holder renewed)" "hold false"
  run -75 --separate-stderr redlock-cli stop demo
  assert_regex "$stderr" 'nothing runs under it: on hold until .*`redlock-cli release -k demo` lifts'
  run -75 redlock-cli status demo --exit-code -q
}

@test "its own commands run under it; when it is lifted they keep the lock until they end" {
  freeze --for 1h
  use deploy
  run -0 redlock-cli status demo
  assert_regex "${lines[0]}" "on hold until .*; used by run pid ${BACKGROUND_PID[deploy]} on"
  run -75 redlock-cli run -k demo -n -- true
  run -0 --separate-stderr redlock-cli release demo
  assert_regex "$stderr" \
    "demo: lifted; run pid ${BACKGROUND_PID[deploy]} on $(hostname): bash works on under the lock"
  run -0 redlock-cli status demo
  assert_regex "${lines[0]}" "held under the lifted hold of .*; used by run pid"
  run -75 redlock-cli run -k demo -n -- true
  run -0 --separate-stderr redlock-cli release demo
  assert_regex "$stderr" "demo: already lifted; run pid ${BACKGROUND_PID[deploy]} "
  start_background next redlock-cli run -k demo -- echo next
  release_hold deploy
  assert_equal "$status" 0
  wait_background next
  assert_equal "$status $output" "0 next"
}

@test "a command that outlasts its hold keeps the lock, which is free when it ends" {
  freeze --for 5s
  use deploy
  wait_until has_ended_hold
  run -0 redlock-cli status demo
  assert_regex "${lines[0]}" "held under the ended hold of .*; used by run pid"
  run -75 redlock-cli run -k demo -n -- true
  release_hold deploy
  run -0 redlock-cli run -k demo -n -- true
}
has_ended_hold() { [[ $(holder hold_ends_at) == null ]]; }

@test "stop ends what runs under a hold, and says that the hold stays" {
  freeze --for 1h
  use deploy
  run -75 --separate-stderr redlock-cli stop demo -w 60s
  assert_regex "$stderr" \
    'what ran under it has stopped within .*on hold until .*`redlock-cli release -k demo` lifts the hold'
  wait_background deploy
  assert_equal "$status" 5
  assert_equal "$(holder kept_by)" hold
}

@test "release KEY leaves alone what is no hold, another fence and another key" {
  hold first
  run -64 --separate-stderr redlock-cli release demo
  assert_regex "$stderr" 'demo: not on hold, .*held by .*`redlock-cli stop -k demo` ends that command'
  release_hold first
  freeze --for 1h
  local fence
  fence=$(holder fence)
  run -79 --separate-stderr redlock-cli release demo --if-fence $((fence + 1))
  assert_regex "$stderr" 'left alone, it has another fence: on hold until'
  # A lease of another key in the environment does not matter.
  eval "$(redlock-cli acquire -k other -t 1h --export)"
  run -0 redlock-cli release demo --if-fence "$fence"
  run -75 redlock-cli status other --exit-code -q
  # With a lease of the key it is a release of that lease.
  run -64 --separate-stderr redlock-cli release other --if-fence "$fence"
  assert_regex "$stderr" '--if-fence goes with --force'
  redlock-cli release
}

@test "the lease of --export releases the hold, too, and extend makes it longer" {
  eval "$(redlock-cli hold demo --for 1m --export)"
  redlock-cli extend -t 1h
  local left
  left=$(holder hold_remaining_ms)
  assert_in_range "$left" 3500000 3600000
  run -0 redlock-cli release
  run -0 redlock-cli run -k demo -n -- true
}

@test "hold refuses what it cannot do, naming what is needed" {
  local arguments
  while IFS='|' read -r arguments expected; do
    # shellcheck disable=SC2086
    run -64 --separate-stderr redlock-cli hold $arguments
    assert_regex "$stderr" "$expected"
  done <<'REFUSED'
demo|hold needs --for DUR or --until TIME
--for 1h|hold needs KEY: the lock to hold
demo --for 1h --until 09:00|--for and --until cannot be combined
demo --until tomorrow|--until: 'tomorrow' is not a time; write
demo --until 2020-01-01T00:00Z|--until: .* has passed
demo --until 2999-01-01T00:00Z|--until: a hold lasts for at most a year
demo other --for 1h|hold is for one key at a time
demo --for 1h -s|-s
REFUSED
  run -64 --separate-stderr redlock-cli freeze demo
  assert_regex "$stderr" "did you mean 'hold'"
  run -64 --separate-stderr redlock-cli run -k demo -- redlock-cli hold demo --for 1h
  assert_regex "$stderr" 'hold needs a lease of its own'
}

@test "the record of --json has the lease" {
  run -0 --separate-stderr redlock-cli hold demo --for 1h --json
  assert_equal "$(jq -r '"\(.command) \(.result) \(.ttl_ms)"' <<<"$output")" "hold acquired 3600000"
  /usr/bin/python3 "$BATS_TEST_DIRNAME/helper/valid_output.py" <<<"$output"
  local lease
  lease=$(jq -r .lease <<<"$output")
  run -0 env REDLOCK_LEASE="$lease" redlock-cli run -k demo -n -- echo ours
  assert_output ours
  redlock-cli status demo --json | /usr/bin/python3 "$BATS_TEST_DIRNAME/helper/valid_output.py"
  run -0 --separate-stderr redlock-cli release demo --json
  assert_equal "$(jq -r '"\(.result) \(.exit_code)"' <<<"$output")" "released 0"
}

@test "the token of a hold is shown to no user" {
  freeze --for 1h
  local token
  # shellcheck disable=SC2016
  token=$(env -i sh -c '. "$0"; echo "$REDLOCK_TOKEN"' "$BATS_TEST_TMPDIR/lease")
  {
    redlock-cli status demo -v
    redlock-cli status demo --json
    redlock-cli run -k demo -n -vv -- true || true
    redlock-cli stop demo -vv || true
    REDLOCK_TRACE=2 redlock-cli release demo -vv
  } &>"$BATS_TEST_TMPDIR/shown"
  run -1 grep -F "$token" "$BATS_TEST_TMPDIR/shown"
}

@test "hold says at once that a reboot ends it on this host" {
  [[ ${BATS_STORE-} == local ]] || skip 'for local: alone'
  run -0 --separate-stderr redlock-cli hold demo --for 1h
  assert_regex "$stderr" 'demo: local:.*: a reboot of this host ends the hold'
}

@test "status --runs shows the hold beside the runs, not instead of the last success" {
  redlock-cli run -k demo -- true
  freeze --for 1h --note 'database move'
  run -0 redlock-cli status demo --runs
  assert_regex "$output" 'ago, at [^:]*:[^:]*(:[^:]*)?: on hold .*database move'
  assert_regex "$output" 'exit 0'
  run -0 redlock-cli status demo --max-age 1h
}

# bats test_tags=redis
@test "hold says at once when a restart would end it" {
  run -0 --separate-stderr redlock-cli hold demo --for 1h
  assert_regex "$stderr" "demo: ${SERVER_URL[0]} persists nothing: a restart ends the hold"
  redis 0 config set appendonly yes
  run -0 --separate-stderr redlock-cli hold other --for 1h
  [[ $stderr != *persists* ]]
}
