#!/usr/bin/env bats
# Each test is a subshell; the helpers read and set variables:
# shellcheck disable=SC2030,SC2031,SC2034,SC2154
# The helpers that all other files rely on, with real servers.
load helper/common
load helper/redis

# These tests need no redlock-cli.
setup() { isolate_environment; }

@test "three servers are separate, empty and answer" {
  start_servers 3
  assert_equal "${#SERVER_PID[@]}" 3
  assert_equal "$SERVERS" "${SERVER_URL[0]},${SERVER_URL[1]},${SERVER_URL[2]}"
  redis 1 set demo x
  assert_equal "$(redis 0 exists demo) $(redis 1 exists demo) $(redis 2 exists demo)" "0 1 0"
  assert_equal "$(redis 2 info server | grep -c "process_id:${SERVER_PID[2]}")" 1
  assert_equal "$(redis 0 config get save | tail -n 1)" ""
}

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

@test "a server is asked what is read, too, where no command is named" {
  start_servers 1
  assert_equal "$(printf 'set demo x\nget demo\n' | redis 0)" $'OK\nx'
}

@test "what a command in the background writes is waited for, and no longer than the limit" {
  start_background writer sh -c 'echo one; echo two words >&2; exec sleep 1000'
  wait_for_stdout writer one
  wait_for_stdout writer
  wait_for_stderr writer "two words"
  WAIT_LIMIT=0
  run ! wait_for_stdout writer two
  assert_output --partial "not within 0 seconds"
  run ! wait_for_stderr writer one
  start_background silent sh -c 'echo; exec sleep 1000'
  wait_until test -s "$(background_stdout silent)"
  run ! wait_for_stdout silent
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

@test "servers on TCP have a port each and options of their own" {
  start_tcp_server
  start_tcp_server --requirepass secret
  assert [ "${SERVER_PORT[0]}" != "${SERVER_PORT[1]}" ]
  assert_equal "$(redis-cli -u "${SERVER_URL[0]}" ping)" PONG
  run redis-cli -u "${SERVER_URL[1]}" ping
  assert_output --partial NOAUTH
  assert_equal "$(redis 1 --no-auth-warning -a secret ping)" PONG
}

@test "a port that is taken makes start_tcp_server take another" {
  start_tcp_server
  local taken=${SERVER_PORT[0]} draws=$BATS_TEST_TMPDIR/draws
  random_port() {
    echo draw >>"$draws"
    echo $((taken - 1 + $(wc -l <"$draws")))
  }
  start_tcp_server
  assert [ "$(wc -l <"$draws")" -ge 2 ]
  assert [ "${SERVER_PORT[1]}" -gt "$taken" ]
  assert_equal \
    "$(redis-cli -u "${SERVER_URL[1]}" info server | grep -c "process_id:${SERVER_PID[1]}")" 1
}

@test "a server that does not start says why" {
  run ! start_server --no-such-option 1
  assert_output --partial "server 0 did not start"
}

@test "a killed server is gone, and the others are not" {
  start_servers 3
  kill_server 1
  assert [ ! -e "/proc/${SERVER_PID[1]}" ]
  run ! redis 1 ping
  assert_equal "$(redis 0 ping) $(redis 2 ping)" "PONG PONG"
}

@test "a stopped server is gone too" {
  start_servers 1
  stop_server 0
  assert [ ! -e "/proc/${SERVER_PID[0]}" ]
}

@test "a paused server is silent until it is resumed" {
  start_servers 1
  pause_server 0
  run ! timeout 0.3 redis-cli -s "$SERVER_SOCKET" ping
  resume_server 0
  wait_until timeout 5 redis-cli -s "$SERVER_SOCKET" ping
}

@test "a restarted server has the same address and no data" {
  start_servers 1
  start_tcp_server
  local i pid
  for i in 0 1; do
    pid=${SERVER_PID[i]}
    redis "$i" set demo x
    restart_server "$i"
    assert [ "$pid" != "${SERVER_PID[i]}" ]
    assert_equal "$(redis "$i" exists demo)" 0
  done
  assert_equal "$(redis-cli -u "${SERVER_URL[1]}" ping)" PONG
}

@test "a killed server can be started again" {
  start_servers 1
  kill_server 0
  restart_server 0
  assert_equal "$(redis 0 ping)" PONG
}

@test "servers die with the test's shell, even when that is killed" {
  local pid
  # shellcheck disable=SC2016
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

@test "keys are waited for" {
  start_servers 1
  start_background writer bash -c "sleep 0.2; redis-cli -s '$SERVER_SOCKET' set demo x"
  wait_for_key 0 demo
  redis 0 pexpire demo 300
  wait_for_no_key 0 demo
}

@test "ask-redis repeats a question no longer than it may, and says which" {
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

@test "a condition that does not come true is named" {
  WAIT_LIMIT=1
  run ! wait_until ls /no/such/file
  assert_output --partial "not within 1 seconds: ls /no/such/file"
  assert_output --partial "No such file or directory"
}

# failing LINE…: what bats says of a file whose only test has these lines, the first being line 3.
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

@test "a background command leaves its status and both its outputs" {
  start_background worker bash -c 'echo out; echo err >&2; exit 3'
  wait_background worker
  assert_equal "$status" 3
  assert_equal "$output" out
  assert_equal "$stderr" err
  start_background worker true
  wait_background worker
  assert_equal "$status" 0
}

@test "a background command is killed by INT as one in the foreground is" {
  start_background sleeper sleep 60
  local pid=${BACKGROUND_PID[sleeper]}
  wait_until bash -c "[[ \$(ps -o comm= -p $pid) == sleep ]]"
  kill -INT "$pid"
  wait_background sleeper
  assert_equal "$status" 130
}

@test "background commands that are stopped or deaf to TERM end with the test" {
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

@test "nothing of the caller's settings reaches a test" {
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

@test "the binary under test is the first in PATH, and a missing one is named" {
  ln -s /bin/true "$BATS_TEST_TMPDIR/redlock-cli"
  REDLOCK_CLI=$BATS_TEST_TMPDIR/redlock-cli
  find_binary
  assert_equal "$(command -v redlock-cli)" "$REDLOCK_CLI"
  REDLOCK_CLI=/no/such/program
  run ! find_binary
  assert_output --partial "no program at /no/such/program"
}
