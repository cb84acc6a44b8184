#!/usr/bin/env bats
# The ACL rules of the manual: each feature works with exactly these rights, and names the missing
# one.
load helper/common
load helper/deployments

setup() {
  common_setup
  # The denial must arrive within one attempt, even on a busy machine.
  export REDLOCK_SERVER_TIMEOUT=4s
  mapfile -t RULE < <(rule_of locker)
  assert [ "${#RULE[@]}" -ge 15 ]
}

# The page of the manual that has the rules, as text.
manual() {
  mandoc -Tascii -Owidth=200 "$BATS_TEST_DIRNAME/../../man/redlock-cli-servers.7" |
    sed 's/.\x08//g'
}

# rule_of NAME: the manual's rule for this user, one word per line, without name and password.
rule_of() {
  manual | sed -n "/ACL SETUSER $1/,/^$/p" | tr -s ' ' '\n' |
    grep -vxE "|ACL|SETUSER|$1|reset|on|>PASSWORD"
}

# more_for FEATURE: the rights that the manual adds for it.
more_for() {
  manual | sed -n '/^ *Additional rights$/,/^ *Missing rights$/p' | grep -A1 "^ *$1\( \|\$\)" |
    grep -m 1 -oE '\+[a-z][a-z +|]*' | head -n 1
}

# allow I RIGHT…: gives the user `locker` of server I these rights, and names that server alone in
# REDLOCK_SERVER.
allow() {
  local nr=$1
  shift
  assert_equal "$(redis "$nr" acl setuser locker reset on '>geheim' "$@")" OK
  export REDLOCK_SERVER=unix://locker:geheim@${SERVER_SOCKET[nr]}
}

# allow_all RIGHT…: the same for all servers, which make a quorum.
allow_all() {
  local nr urls=()
  for nr in "${!SERVER_PID[@]}"; do
    allow "$nr" "$@"
    urls+=("$REDLOCK_SERVER")
  done
  REDLOCK_SERVER=$(IFS=, && echo "${urls[*]}")
}

# Which of the servers 0 to 2 of a cluster has the key.
holder_of() {
  local nr
  for nr in 0 1 2; do [[ $(redis "$nr" exists "$1") != 1 ]] || echo "$nr"; done
}

# All queries of a kind share one server timeout, and an answer that takes a quarter of it is a
# warning: long enough for a busy machine.
doctor() { REDLOCK_SERVER_TIMEOUT=20s redlock-cli doctor "$@"; }

# without RIGHT: the manual's rule, except for this right.
without() { printf '%s\n' "${RULE[@]}" | grep -vxF -- "$1"; }

@test "without the right to release, run says that the lock stays, and exits as its command did" {
  start_server
  allow 0 "${RULE[@]}" -del
  run -7 --separate-stderr redlock-cli run -k deploy -- sh -c 'exit 7'
  assert_regex "$stderr" "deploy: no quorum allows the release: other processes have to wait until \
the lock expires, within 30s; .*a right is missing"
  assert_equal "$(redis 0 exists deploy)" 1
}

@test "all commands work with the rule of the manual" {
  start_server
  allow 0 "${RULE[@]}"
  run -0 redlock-cli run -k deploy -- true
  eval "$(redlock-cli acquire -k deploy -t 1m --export)"
  run -0 redlock-cli extend -t 2m
  run -75 env -u REDLOCK_LEASE redlock-cli run -k deploy -n -- true
  run -75 redlock-cli status -k deploy --exit-code
  run -0 redlock-cli release
  run -79 redlock-cli extend -t 2m
  assert_output --partial "it was released"
  redis 0 set deploy foreign >/dev/null
  run -64 redlock-cli release -k deploy --force
  assert_output --partial "lost: a string, without expiry"
  run -0 redlock-cli release -k deploy --force --foreign
  redis 0 lpush deploy x >/dev/null
  run -75 redlock-cli run -k deploy -n -- true
  assert_output --partial "a key of type list"
}

@test "the rule allows no other key, and the message names the key" {
  start_server
  allow 0 "${RULE[@]}"
  assert_refused 77 "key" redlock-cli run -k other -n -- true
  allow 0 "${RULE[@]}" resetkeys '~deploy'
  assert_refused 77 "redlock:*" redlock-cli run -k deploy -n -- true
  assert_equal "$(redis 0 exists deploy)" 0
}

# The rule of an administrator who allowed each key by name before keys for the last runs existed.
without_last_runs() {
  printf '%s\n' "${RULE[@]}" | sed 's/^~redlock:.*//'
  printf '~redlock:%s:{deploy}\n' fence owner released readers shares slots queue waiters
}

@test "without the right to record the last run, everything that does not need it works" {
  start_server
  local rights
  mapfile -t rights < <(without_last_runs | grep .)
  allow 0 "${rights[@]}"
  run -0 --separate-stderr redlock-cli run -k deploy -- true
  assert_equal "$stderr" ""
  run -0 redlock-cli run -k deploy --min-hold 1ms -- true
  assert_equal "$(redis 0 exists deploy 'redlock:last:{deploy}')" 0
  eval "$(redlock-cli acquire -k deploy -t 1m --export)"
  run -0 redlock-cli extend -t 2m
  run -75 redlock-cli status deploy --exit-code
  run -0 redlock-cli release
  run -0 redlock-cli status deploy
  assert_line "deploy: free"
  assert_line --partial "last run not shown: the user lacks access to the key"
}

@test "without the right to record the last run, --once-per and --max-age are refused with the reason" {
  start_server
  local rights
  mapfile -t rights < <(without_last_runs | grep .)
  allow 0 "${rights[@]}"
  assert_refused 77 "its redlock:* keys" redlock-cli run -k deploy --once-per 20h -- true
  assert_equal "$(redis 0 exists deploy)" 0
  run -77 --separate-stderr redlock-cli status deploy --max-age 26h
  assert_output "deploy: unknown: no quorum of servers answered"
  assert_regex "$stderr" "its redlock:\* keys"
  run -1 doctor -k deploy
  assert_output --partial "locks work, but the last run cannot be recorded"
}

@test "one rule can allow keys with a common prefix, also with braces" {
  start_server
  local key patterns
  mapfile -t patterns < <(manual | sed -n '/begin with .job:./,/A user for monitoring/p' |
    grep -oE '[~&][^ ,]*job:\*')
  assert_equal "${#patterns[@]}" 5
  allow 0 "${RULE[@]}" resetkeys resetchannels "${patterns[@]}"
  for key in job:1 'job:{eu}:1' 'job:}' 'job:a}b{c'; do
    run -0 redlock-cli run -k "$key" -n -- true
    run -1 doctor -k "$key"
    assert_output --partial "fit as far as can be seen"
    refute_output --partial "missing"
  done
  run -77 redlock-cli run -k deploy -n -- true
}

@test "the rule for monitoring allows all of status, and no changes" {
  start_server
  local rights key=deploy mode
  mapfile -t rights < <(rule_of monitor)
  assert [ "${#rights[@]}" -ge 10 ]
  run -0 redlock-cli run -k deploy -S "${SERVER_URL[0]}" -- true
  allow 0 "${rights[@]}"
  run -0 --separate-stderr redlock-cli status deploy
  assert_line "deploy: free"
  assert_line --partial "last run"
  assert_equal "$stderr" ""
  run -0 redlock-cli status deploy --max-age 1h
  for mode in -x -s '--slots 2'; do
    # shellcheck disable=SC2086
    redlock-cli acquire -k deploy -S "${SERVER_URL[0]}" --ttl 1m $mode --note "mode $mode" \
      >/dev/null
    run -75 --separate-stderr redlock-cli status deploy --exit-code
    assert_output --partial "\"mode $mode\""
    assert_equal "$stderr" ""
    run -0 redlock-cli release -k deploy -S "${SERVER_URL[0]}" --force
  done
  redis 0 set deploy theirs >/dev/null
  run -0 redlock-cli status deploy
  assert_output --partial "held by a foreign client"
  redis 0 del deploy >/dev/null
  run -0 redlock-cli status
  run -77 redlock-cli run -k deploy -n -- true
  assert_equal "$(redis 0 exists deploy)" 0
  redlock-cli acquire -k deploy -S "${SERVER_URL[0]}" --ttl 1m >/dev/null
  run -77 redlock-cli release -k deploy --force
  assert_equal "$(redis 0 exists deploy)" 1
}

@test "a rule from before GETRANGE was needed works, and doctor names what it lacks" {
  start_server
  local rights
  mapfile -t rights < <(without +getrange)
  allow 0 "${rights[@]}"
  run -0 redlock-cli run -k deploy -- true
  run -0 redlock-cli run -k deploy -s -- true
  eval "$(redlock-cli acquire -k deploy -t 1m --export)"
  run -0 redlock-cli extend -t 2m
  run -75 env -u REDLOCK_LEASE redlock-cli run -k deploy -n -- true
  run -75 redlock-cli status deploy --exit-code
  run -0 redlock-cli release
  redis 0 set deploy theirs >/dev/null
  run -75 redlock-cli run -k deploy -n -- true
  redis 0 set deploy '' >/dev/null
  run -75 redlock-cli run -k deploy -n -- true
  redis 0 del deploy >/dev/null
  run -1 doctor -k deploy
  assert_output --partial "locks work, but these rights are missing: +getrange"
}

@test "a rule from before ROLE was needed works, status says what it cannot tell, and doctor names it" {
  start_server
  local rights
  mapfile -t rights < <(without +role)
  allow 0 "${rights[@]}"
  run -0 --separate-stderr redlock-cli run -k deploy -- true
  assert_equal "$stderr" ""
  run -0 --separate-stderr redlock-cli status deploy
  assert_line "deploy: free"
  assert_regex "$stderr" "cannot tell whether unix:.* is a replica.*: allow \+role or \+info"
  run -1 doctor -k deploy
  assert_output --partial "locks work, but these rights are missing: +role"
  allow 0 "${rights[@]}" +info
  run -0 --separate-stderr redlock-cli status deploy
  assert_equal "$stderr" ""
  run doctor -k deploy
  refute_output --partial "missing"
}

@test "doctor names any right of the rule that is missing" {
  start_server
  local right rights
  for right in "${RULE[@]}"; do
    [[ $right == +* ]] || continue
    mapfile -t rights < <(without "$right")
    allow 0 "${rights[@]}"
    run doctor -k deploy
    case $right in
      # Without it no query works, and the server itself names it.
      +eval) assert_output --partial "'eval' command" ;;
      # Only the second call of a script on one connection needs it.
      +evalsha) assert_output --partial "'evalsha' command" ;;
      *) assert_output --regexp "missing: |missing rights: " && assert_output --partial " $right" ;;
    esac
    refute_output --partial "redlock-cli doctor"
    [[ $status == 69 || $status == 1 ]]
    redis 0 flushall >/dev/null
  done
}

@test "when a script lacks a right, run refers to doctor" {
  start_server
  local right rights
  for right in +set +hset +pexpire +time; do
    mapfile -t rights < <(without "$right")
    allow 0 "${rights[@]}"
    assert_refused 77 "redlock-cli doctor" redlock-cli run -k deploy -n -- true
    assert_equal "$(redis 0 exists deploy)" 0
  done
}

@test "without the right to pubsub numsub locks work, and doctor names it" {
  start_server
  local rights
  mapfile -t rights < <(without '+pubsub|numsub')
  allow 0 "${rights[@]}"
  start_background holder redlock-cli run -k deploy -- \
    sh -c 'echo entered; until [ -e "$0" ]; do sleep 0.1; done' "$BATS_TEST_TMPDIR/end"
  wait_for_stdout holder entered
  start_background waiter redlock-cli run -v -k deploy --slots 2 -- echo got it
  wait_for_answer 0 1 zcard 'redlock:queue:{deploy}'
  touch "$BATS_TEST_TMPDIR/end"
  wait_background waiter
  assert_equal "$status: $output" "0: got it"
  refute_regex "$stderr" "may not|right"
  wait_background holder
  assert_equal "$status: $stderr" "0: "
  run -1 doctor -k deploy
  assert_line --regexp "^warning: .*locks work, but these rights are missing: \+pubsub.numsub$"
}

@test "a database other than 0 needs one more right" {
  start_server
  assert_equal "$(more_for 'a database other than 0')" +select
  allow 0 "${RULE[@]}"
  REDLOCK_SERVER+='?db=1'
  assert_refused 77 "'select' command" redlock-cli run -k deploy -n -- true
  allow 0 "${RULE[@]}" +select
  REDLOCK_SERVER+='?db=1'
  run -0 redlock-cli run -k deploy -n -- true
}

@test "status without a key needs one more right" {
  start_server
  assert_equal "$(more_for 'status without -k')" +scan
  allow 0 "${RULE[@]}"
  run -77 --separate-stderr redlock-cli status
  assert_regex "$stderr" "redlock-cli: unix:.*: listing locks needs the right \+scan; or name a key"
  allow 0 "${RULE[@]}" +scan
  run -0 redlock-cli status
}

@test "three servers with the restart guard need one more right" {
  start_servers 3
  assert_equal "$(more_for 'three servers or more')" +info
  allow_all "${RULE[@]}"
  assert_refused 77 "+info" redlock-cli run -k deploy -n --restart-guard 30s -- true
  run -0 redlock-cli run -k deploy -n --restart-guard 0 -- true
  allow_all "${RULE[@]}" +info
  run -0 redlock-cli run -k deploy -t 6s --restart-guard 6s --server-timeout 700ms -- true
}

@test "replicas need one more right" {
  start_tcp_server
  start_server --replicaof 127.0.0.1 "${SERVER_PORT[0]}"
  wait_until eval 'redis 0 info replication | grep -q slave0:.*state=online'
  assert_equal "$(more_for --replicas)" +wait
  allow 0 "${RULE[@]}"
  assert_refused 77 "'wait' command" redlock-cli run -k deploy -n --replicas 1 -- true
  allow 0 "${RULE[@]}" +wait
  run -0 redlock-cli run -k deploy -n --replicas 1 --server-timeout 5s -t 1m -- true
}

@test "doctor needs two more rights to check everything" {
  start_server --appendonly yes --appendfsync always
  assert_equal "$(more_for doctor)" "+info +config|get"
  allow 0 "${RULE[@]}"
  run -1 doctor -k deploy
  assert_output --partial "unknown: "
  allow 0 "${RULE[@]}" +info '+config|get'
  run -0 doctor -k deploy
  refute_output --partial "unknown: "
}

@test "a master with sentinels needs no more rights, and the sentinels need one of their own" {
  local rest rights
  export REDLOCK_SERVER_TIMEOUT=3s REDLOCK_TTL=1m
  start_tcp_server
  start_sentinels 1 'user asker on >geheim resetchannels -@all +sentinel|get-master-addr-by-name'
  rest=${SENTINEL_URL#sentinel://}'?sentinel-user=asker&sentinel-password=geheim'
  mapfile -t rights < <(without +role)
  allow 0 "${rights[@]}"
  REDLOCK_SERVER=sentinel://locker:geheim@$rest assert_refused 77 "'role' command" \
    redlock-cli run -k deploy -n -- true
  allow 0 "${RULE[@]}"
  REDLOCK_SERVER=sentinel://locker:geheim@$rest run -0 redlock-cli run -k deploy -n -- true
  redis "$SENTINEL" acl setuser asker -@all >/dev/null
  REDLOCK_SERVER=sentinel://locker:geheim@$rest assert_refused 77 "the sentinel 127.0.0.1" \
    redlock-cli run -k deploy -n -- true
}

@test "a cluster needs two more rights" {
  local nr
  start_cluster
  assert_equal "$(more_for cluster://)" "+cluster|slots +cluster|info +asking"
  for nr in 0 1 2; do allow "$nr" "${RULE[@]}"; done
  REDLOCK_SERVER=${CLUSTER_URL/:\/\//://locker:geheim@}
  assert_refused 77 "cluster" redlock-cli run -k deploy -n -- true
  for nr in 0 1 2; do allow "$nr" "${RULE[@]}" '+cluster|slots' +asking; done
  REDLOCK_SERVER=${CLUSTER_URL/:\/\//://locker:geheim@}
  # deploy is the third's, and goes to the first.
  eval "$(redlock-cli acquire -k deploy -t 1m --export)"
  begin_migration "$(redis 2 cluster keyslot deploy)" "$(holder_of deploy)" 0
  move_keys "$(holder_of deploy)" 0 deploy 'redlock:owner:{deploy}'
  run -0 redlock-cli extend -t 2m
  run -0 redlock-cli release
}

# The user `mute` may do everything but notify those who wait.
mute() { redis 0 acl setuser mute on nopass '~*' '&*' +@all "$@" >/dev/null; }

# A waiter is not notified of the release, but gets the lock long before its poll interval.
assert_waiter_is_served() {
  REDLOCK_SERVER=unix://mute:x@${SERVER_SOCKET[0]} start_background holder \
    redlock-cli run -k demo -- \
    sh -c 'echo entered; until [ -e "$0" ]; do sleep 0.1; done' "$BATS_TEST_TMPDIR/end"
  wait_for_stdout holder entered
  start_background waiter redlock-cli run -v -S "unix://${SERVER_SOCKET[0]}" -k demo -- true
  wait_for_queued 1
  touch "$BATS_TEST_TMPDIR/end"
  wait_background holder
  assert_equal "$status" 0
  WAIT_LIMIT=8 wait_background waiter
  assert_equal "$status" 0
  assert_regex "$stderr" "demo: the holder cannot notify waiters"
}

@test "a holder without the right to publish does not stall waiters" {
  start_server
  mute -publish
  assert_waiter_is_served
  REDLOCK_SERVER=unix://mute:x@${SERVER_SOCKET[0]} run doctor
  assert_output --regexp 'these rights are missing:.* \+publish'
  rm "$BATS_TEST_TMPDIR/end"
  mute +publish resetchannels
  assert_waiter_is_served
  REDLOCK_SERVER=unix://mute:x@${SERVER_SOCKET[0]} run doctor
  assert_output --partial "+subscribe (to the channels &redlock:wake:*)"
}
