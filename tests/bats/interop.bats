#!/usr/bin/env bats
# Other clients of the same servers, with the locks of the literature: on the same key they and
# redlock-cli exclude each other. The locks of libraries are in tests/peers.
load helper/common

setup() {
  /usr/bin/python3 -c 'import redis' 2>/dev/null || skip "python3-redis is not installed"
  setup_one_server
  # Even on a busy machine no server may time out.
  export REDLOCK_SERVER_TIMEOUT=4s
}

# recipe NAME acquire|release KEY [TOKEN]
recipe() { /usr/bin/python3 "$BATS_TEST_DIRNAME/helper/recipes.py" "$SERVER_SOCKET" "$@"; }

refute_entering() {
  run --separate-stderr redlock-cli run -n -k demo -- touch "$BATS_TEST_TMPDIR/entered"
  assert_failure 75
  assert_regex "$stderr" "^redlock-cli: demo: held by a foreign client"
  assert [ ! -e "$BATS_TEST_TMPDIR/entered" ]
}

# They hold the lock: redlock-cli is excluded and leaves it unchanged; they can release it, and
# redlock-cli gets it.
stays_out_while_they_hold() {
  local token value
  token=$(recipe "$1" acquire demo)
  value=$(redis 0 get demo)
  refute_entering
  # Waiting neither helps nor harms.
  run redlock-cli run -w 300ms -k demo -- touch "$BATS_TEST_TMPDIR/entered"
  assert_failure 75
  assert_equal "$(redis 0 get demo)" "$value"
  start_background waiter redlock-cli run -k demo -- redis-cli -s "$SERVER_SOCKET" get demo
  wait_for_stderr waiter "waiting for demo"
  recipe "$1" release demo "$token"
  wait_background waiter
  assert_equal "$status" 0
  refute [ "$output" = "$value" ]
  assert_equal "$(redis 0 exists demo)" 0
}

# redlock-cli holds the lock: they are excluded and cannot release it; afterwards they get it.
stay_out_while_we_hold() {
  hold ours
  local value
  value=$(redis 0 get demo)
  run recipe "$1" acquire demo
  assert_failure 1
  assert_output ""
  if [[ ${2-} != releases-blindly ]]; then
    run recipe "$1" release demo not-the-token
    assert_failure 1
  fi
  assert_equal "$(redis 0 get demo)" "$value"
  release_hold ours
  assert_equal "$status" 0
  assert_equal "$stderr" ""
  run recipe "$1" acquire demo
  assert_success
  refute_entering
}

@test "SETNX and EXPIRE, released under WATCH and MULTI: they hold" {
  stays_out_while_they_hold setnx-expire
}

@test "SETNX and EXPIRE, released under WATCH and MULTI: we hold" {
  stay_out_while_we_hold setnx-expire
}

@test "SET NX EX: they hold" { stays_out_while_they_hold set-nx-ex; }
@test "SET NX EX: we hold" { stay_out_while_we_hold set-nx-ex; }

@test "SET NX PX, released by comparing script: they hold" { stays_out_while_they_hold set-nx-px; }
@test "SET NX PX, released by comparing script: we hold" { stay_out_while_we_hold set-nx-px; }

@test "INCR to 1 and EXPIRE: they hold" { stays_out_while_they_hold incr; }
@test "INCR to 1 and EXPIRE: we hold" { stay_out_while_we_hold incr releases-blindly; }

@test "the timestamp lock of SETNX and GETSET: they hold" { stays_out_while_they_hold getset; }

@test "the timestamp lock of SETNX and GETSET keeps us out even when its time has passed: it has no expiry" {
  redis 0 setnx demo 1000000000
  refute_entering
  assert_regex "$stderr" "never expires"
  assert_equal "$(redis 0 get demo)" 1000000000
}

@test "the timestamp lock of SETNX and GETSET takes over foreign locks by design: our command is stopped, and the status is 79" {
  start_background ours redlock-cli run -t 9s --server-timeout 1s -k demo -- sleep 1000
  wait_for_key 0 demo
  local token
  token=$(recipe getset acquire demo)
  wait_background ours
  assert_equal "$status" 79
  assert_regex "$stderr" "demo: lost: it is held by a foreign client"
  # And theirs stays theirs.
  assert_equal "$(redis 0 get demo)" "$token"
  recipe getset release demo "$token"
}

@test "a token of ours is no number that the timestamp lock could take for a time" {
  run redlock-cli run -k demo -- sh -c 'echo "$REDLOCK_TOKEN"'
  refute_output --regexp '^[0-9]+$'
}

@test "redis-py's Lock without a timeout can become an orphan: held, without expiry" {
  /usr/bin/python3 -c '
import redis, sys
assert redis.Redis(unix_socket_path=sys.argv[1]).lock("demo").acquire()' "$SERVER_SOCKET"
  assert_equal "$(redis 0 pttl demo)" -1
  refute_entering
  assert_regex "$stderr" "never expires"
}

@test "a key of any other type is held by a foreign client, and stays as it is" {
  local -A made_by=([hash]="hset demo uuid:1 1" [list]="rpush demo x" [set]="sadd demo x"
    [zset]="zadd demo 1 x"
    [stream]="xadd demo 1-1 a b")
  local type
  for type in "${!made_by[@]}"; do
    # shellcheck disable=SC2086
    redis 0 ${made_by[$type]}
    redis 0 pexpire demo 60000
    refute_entering
    assert_regex "$stderr" "a key of type $type"
    refute [ "$(redis 0 pttl demo)" -le 0 ]
    run redlock-cli status -k demo
    assert_success
    assert_output --partial "a key of type $type"
    assert_equal "$(redis 0 type demo)" "$type"
    redis 0 del demo
  done
}

@test "an orphan without expiry is named as such" {
  redis 0 setnx demo crashed-before-expire
  refute_entering
  assert_regex "$stderr" "never expires"
  refute_regex "$stderr" "--force"
  run redlock-cli status -k demo
  assert_success
  assert_line --regexp '^demo: held by a foreign client, never expires'
  run redlock-cli status -k demo --json
  assert_output --partial '"foreign":true'
  assert_output --partial '"remaining_ms":null'
}

@test "an empty value is a lock as well" {
  redis 0 set demo '' px 60000
  refute_entering
}
