#!/usr/bin/env bats
# The helpers that all other files rely on, with real servers.
load helper/common

# These tests need no redlock-cli.
setup() { isolate_environment; }

# shows_the_same CMD…: ask-redis and redis-cli show the same, and their statuses are the same.
shows_the_same() {
  assert_equal "$("$ASK_REDIS" "$SERVER_SOCKET" "$@" 2>&1; echo "$?")" \
    "$(redis-cli -s "$SERVER_SOCKET" "$@" 2>&1; echo "$?")"
}

@test "ask-redis shows each kind of reply as redis-cli does" {
  find_binary
  find_ask_redis || skip "this program was not built with the tests"
  start_servers 1
  shows_the_same set demo 'a value'
  shows_the_same get demo
  shows_the_same get none
  shows_the_same exists demo demo
  shows_the_same keys 'none*'
  shows_the_same no-such-command
  shows_the_same eval 'return {1, {"two", {}}, {}, false, redis.status_reply("three")}' 0
  shows_the_same info persistence
  shows_the_same client no-evict
  kill_server 0
  shows_the_same ping
}

@test "a socket path stays short enough whatever the test's directory" {
  BATS_TEST_TMPDIR=$BATS_TEST_TMPDIR/$(printf 'long%.0s' {1..25})
  mkdir "$BATS_TEST_TMPDIR"
  start_servers 1
  assert [ ${#SERVER_SOCKET} -lt 108 ]
  local dir=$SERVER_DIR
  end_servers
  assert [ ! -e "$dir" ]
}

@test "servers die with the test's shell, even when that is killed" {
  local pid
  pid=$(bash -c "$(declare -f)"'
    . "$1"; declare -A BACKGROUND_PID
    WAIT_LIMIT=5 BATS_TEST_TMPDIR=$2
    start_servers 1
    pause_server 0
    echo "$SERVER_PID"
    kill -KILL $$' - "$BATS_TEST_DIRNAME/helper/redis.bash" "$BATS_TEST_TMPDIR") || true
  assert [ -n "$pid" ]
  wait_until test ! -e "/proc/$pid"
}

@test "ask-redis retries a query no longer than its limit, and names the query" {
  find_binary
  find_ask_redis || skip "this program was not built with the tests"
  start_servers 1
  redis 0 set demo x
  WAIT_LIMIT=1 run --separate-stderr -1 wait_for_no_key 0 demo
  assert_equal "$stderr" "ask-redis: $SERVER_SOCKET: exists demo: not 0 within 1 seconds, but 1"
  pause_server 0
  WAIT_LIMIT=1 run --separate-stderr -1 wait_for_key 0 demo
  assert_equal "$stderr" "ask-redis: $SERVER_SOCKET: exists demo: not 1 within 1 seconds, but \
Error: Resource temporarily unavailable"
  kill_server 0
  WAIT_LIMIT=1 run --separate-stderr -1 wait_for_key 0 demo
  assert_regex "$stderr" "not 1 within 1 seconds, but Could not connect to Redis at"
  run --separate-stderr -64 "$ASK_REDIS" --until 1 20s "$SERVER_SOCKET" exists demo
  assert_equal "$stderr" "ask-redis: not a number of seconds: 20s"
}

# failing LINE…: bats' report of a file whose only test has these lines, the first being line 3.
failing() {
  printf '%s\n' "load $BATS_TEST_DIRNAME/helper/common" '@test "fails" {' "$@" '}' \
    >"$BATS_TEST_TMPDIR/failing.bats"
  find_binary
  run -1 env -u BATS_RUN_TMPDIR REDLOCK_CLI="$REDLOCK_CLI" bats "$BATS_TEST_TMPDIR/failing.bats"
  assert_line 'not ok 1 fails'
}

@test "a failure of a test, of an assertion and of a helper is shown at the test's own line" {
  failing 'true' '[[ 1 == 2 ]]' 'true'
  assert_line --partial 'failing.bats, line 4)'
  failing 'run true' 'assert_output nonsense' 'true'
  assert_line --partial 'failing.bats, line 4)'
  failing 'true' 'true' 'wait_until true' 'WAIT_LIMIT=0 wait_until false' 'true'
  assert_line --partial 'failing.bats, line 6)'
}

@test "background commands that are stopped or ignore TERM end with the test" {
  start_background stopped sleep 60
  start_background deaf bash -c 'trap "" TERM; echo ready; while :; do sleep 0.1; done'
  local stopped=${BACKGROUND_PID[stopped]} deaf=${BACKGROUND_PID[deaf]}
  kill -STOP "$stopped"
  wait_for_stdout deaf ready
  end_background
  assert [ ! -e "/proc/$stopped" ]
  assert [ ! -e "/proc/$deaf" ]
  assert_equal "${#BACKGROUND_PID[@]}" 0
}

@test "none of the caller's settings reaches a test" {
  REDLOCK_SERVER=redis://elsewhere
  export REDLOCK_SERVER REDLOCK_TTL=1s REDISCLI_AUTH=secret REDLOCK_CLI=/bin/true
  export BASH_ENV=/dev/null
  isolate_environment
  assert_equal "$(env | grep REDLOCK_)" REDLOCK_RESTART_GUARD=0
  run env
  refute_output --partial REDISCLI_AUTH
  refute_output --partial BASH_ENV
  assert_equal "$REDLOCK_CLI" /bin/true
  assert [ -d "$HOME" ]
  assert_equal "$XDG_CONFIG_HOME" "$HOME/.config"
}
