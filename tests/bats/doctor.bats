#!/usr/bin/env bats
# bats file_tags=smoke
# doctor: it finds what makes servers unfit, and leaves nothing on them.
load helper/common

# The settings with which a single server is fit.
readonly DURABLE=(--appendonly yes --appendfsync always --maxmemory-policy noeviction)

# All queries of a kind share one server timeout, and an answer that takes a quarter of it is a
# warning: long enough for a busy machine.
doctor() { REDLOCK_SERVER_TIMEOUT=20s redlock-cli doctor "$@"; }

# doctor_says CODE TEXT [OPTION…]: doctor exits with CODE, and a line says TEXT.
doctor_says() {
  local code=$1 text=$2
  shift 2
  run --separate-stderr doctor "$@"
  assert_equal "$status: $stderr" "$code: "
  assert_output --partial "$text"
}

# The grades and checks of all findings that are not good, as `2 warning eviction`, sorted, in one
# line.
findings() {
  json '", ".join(sorted("%d %s %s" % (i, f["grade"], f["check"])
    for i, s in enumerate(j["servers"]) for f in s["findings"] if f["grade"] != "good"))'
}

assert_nothing_left() {
  local nr
  for nr in "${!SERVER_PID[@]}"; do
    assert_equal "server $nr: $(redis "$nr" keys '*')" "server $nr: "
  done
}

# Only the keys that any run with this key leaves are left.
assert_nothing_left_but() {
  local key
  while read -r key; do
    [[ -z $key || $key == redlock:*:"{$1}" ]] || fail "left: $key"
  done < <(redis 0 keys '*')
}

@test "a server that keeps its data and evicts nothing is fit" {
  start_server "${DURABLE[@]}"
  export REDLOCK_SERVER=$SERVERS
  doctor_says 0 "fit: 1 of 1 servers can vote now, 1 needed"
  assert_line --regexp "^SERVER +VOTES +ANSWERS +SOFTWARE +ROLE +UP +KEEPS +EVICTS$"
  assert_line --regexp \
    "^${SERVER_URL[0]} +yes +[0-9.]+ms +(redis|valkey) [0-9.]+ +master +[0-9].* +aof always \
+noeviction$"
  run -0 doctor --json
  assert_equal \
    "$(json '[j["result"], j["exit_code"], j["voting"], j["needed"],
      j["servers"][0]["votes"], j["servers"][0]["role"]]')" \
    "['fit', 0, 1, 1, True, 'master']"
  assert_equal "$(findings)" ""
  assert_nothing_left
}

@test "five servers without persistence are fit with the restart guard, and not without" {
  start_servers 5
  export REDLOCK_SERVER=$SERVERS
  wait_until eval '(($(redis 4 info server | tr -d "\r" | sed -n "s/^uptime_in_seconds://p") > 2))'
  doctor_says 0 "fit: 5 of 5 servers can vote now, 3 needed" --restart-guard 1
  doctor_says 1 "it persists nothing, so a restart loses every lock" --restart-guard 0
  assert_nothing_left
}

@test "eviction, missing persistence and occasional fsync are found" {
  start_server --maxmemory-policy allkeys-lru
  start_server --maxmemory 100mb --maxmemory-policy volatile-lru --appendonly yes \
    --appendfsync everysec
  run -1 doctor -S "$SERVERS" --json
  assert_equal "$(findings)" \
    "0 warning eviction, 0 warning persistence, 1 warning eviction, 1 warning persistence"
  doctor_says 1 \
    "warning: ${SERVER_URL[0]}: it evicts locks once it has a maxmemory (allkeys-lru): \
set maxmemory-policy noeviction" -S "$SERVERS"
  assert_line \
    "warning: ${SERVER_URL[1]}: it evicts locks when its memory is full (volatile-lru): \
set maxmemory-policy noeviction"
  assert_line --partial \
    "${SERVER_URL[1]}: a crash of its host loses the last locks: set appendfsync always"
}

@test "a replica given as an independent server is found" {
  start_tcp_server "${DURABLE[@]}"
  start_server "${DURABLE[@]}" --replicaof 127.0.0.1 "${SERVER_PORT[0]}"
  wait_until eval 'redis 1 info replication | grep -q master_link_status:up'
  start_server "${DURABLE[@]}"
  doctor_says 1 \
    "bad: ${SERVER_URL[1]}: it is a replica of 127.0.0.1:${SERVER_PORT[0]}: \
name the master instead" -S "$SERVERS"
  assert_line --partial \
    "${SERVER_URL[1]}: it is not independent: it and ${SERVER_URL[0]} are replicas of each other"
  assert_line "fit, with warnings: 2 of 3 servers can vote now, 2 needed"
  # A writable replica is no better.
  redis 1 config set replica-read-only no
  run -69 doctor -S "${SERVER_URL[0]},${SERVER_URL[1]}"
  assert_line "no quorum: 1 of 2 servers can vote now, 2 needed"
}

@test "one server under two names is found" {
  start_tcp_server "${DURABLE[@]}"
  doctor_says 78 "it is the same server as ${SERVER_URL[0]}, which has only one vote" \
    -S "${SERVER_URL[0]},unix://${SERVER_SOCKET[0]}?db=1"
  # There would be a quorum, but commands that lock refuse such a set.
  start_servers 2 "${DURABLE[@]}"
  doctor_says 78 "refused: two of the servers are the same; name each server once; \
3 of 4 servers can vote now, 3 needed" -S "$SERVERS,unix://${SERVER_SOCKET[0]}"
  assert_nothing_left
}

@test "a clock that is a minute off is found" {
  start_tcp_server "${DURABLE[@]}"
  local offset text
  for offset in 60 -60; do
    ((offset > 0)) && text=ahead || text=behind
    start_background "relay$offset" \
      /usr/bin/python3 "$BATS_TEST_DIRNAME/helper/wrong_clock.py" "${SERVER_PORT[0]}" "$offset"
    wait_for_stdout "relay$offset"
    doctor_says 1 "its clock is " -S "redis://127.0.0.1:$(<"$(background_stdout "relay$offset")")"
    # A slow answer may shift it by a few seconds.
    assert_output --regexp "its clock is (5[5-9]s|1m|1m[1-5]s) $text (of )?ours"
  done
}

replica_is_at() { redis 0 info replication | grep -q "port=$1,state=online"; }

@test "a replica's clock that is a minute off is found, and one that cannot be reached is unknown" {
  start_tcp_server "${DURABLE[@]}" --repl-diskless-sync-delay 0
  start_tcp_server --replicaof 127.0.0.1 "${SERVER_PORT[0]}"
  wait_until replica_is_at "${SERVER_PORT[1]}"
  run -0 doctor -S "${SERVER_URL[0]}" --json
  assert_equal "$(json '[f["grade"] for f in j["servers"][0]["findings"]
    if f["check"] == "replica-clock"]')" "['good']"
  local offset port text
  for offset in 60 -60 none; do
    port=1
    if [[ $offset != none ]]; then
      start_background "relay$offset" \
        /usr/bin/python3 "$BATS_TEST_DIRNAME/helper/wrong_clock.py" "${SERVER_PORT[1]}" "$offset"
      wait_for_stdout "relay$offset"
      port=$(<"$(background_stdout "relay$offset")")
    fi
    # The replica tells its master where it is when it connects.
    redis 1 config set replica-announce-port "$port" >/dev/null
    redis 0 client kill type replica >/dev/null
    wait_until replica_is_at "$port"
    text="the clock of its replica 127.0.0.1:$port is not known: cannot connect"
    ((offset <= 0)) || text="ahead of its own: after a fail-over locks expire that much too early"
    ((offset >= 0)) || text="behind its own: after a fail-over locks of dead hosts stay"
    run doctor -S "${SERVER_URL[0]}"
    assert_output --partial "$text"
  done
}

@test "an address that leads to several servers is found" {
  start_tcp_server "${DURABLE[@]}"
  start_tcp_server "${DURABLE[@]}"
  start_background balancer /usr/bin/python3 "$BATS_TEST_DIRNAME/helper/relay.py" \
    "${SERVER_PORT[0]},${SERVER_PORT[1]}" 65536
  wait_for_stdout balancer
  doctor_says 69 "connections to its address reach 2 different servers" \
    -S "redis://127.0.0.1:$(<"$(background_stdout balancer)")"
  assert_nothing_left
}

@test "a lease that is gone after a reconnect leads to doctor" {
  start_tcp_server
  start_tcp_server
  start_background balancer /usr/bin/python3 "$BATS_TEST_DIRNAME/helper/relay.py" \
    "${SERVER_PORT[0]},${SERVER_PORT[1]}" 65536
  wait_for_stdout balancer
  start_background held redlock-cli run -S "redis://127.0.0.1:$(<"$(background_stdout balancer)")" \
    -k demo -t 1m -- sh -c 'echo ready; exec sleep 1000'
  wait_for_stdout held ready
  redis 0 client kill type normal >/dev/null
  wait_background held
  assert_equal "$status" 79
  assert_regex "$stderr" "behind a load balancer \(see .redlock-cli doctor.\)"
}

@test "a server that is open to every host without a password is found, one with a password is not" {
  unshare --mount true 2>/dev/null || skip "needs root with CAP_SYS_ADMIN"
  start_tcp_server "${DURABLE[@]}"
  # The program sees an ordinary host, which its own hosts file maps to this one.
  echo "127.0.0.1 server.example" >"$BATS_TEST_TMPDIR/hosts"
  doctor() {
    REDLOCK_SERVER_TIMEOUT=20s unshare --mount --propagation private sh -c '
      mount --bind "$BATS_TEST_TMPDIR/hosts" /etc/hosts && exec redlock-cli doctor "$@"' sh "$@"
  }
  local url=redis://server.example:${SERVER_PORT[0]}
  doctor_says 1 "warning: $url: it requires no password" -S "$url"
  # A password that the server does not ask for protects nothing.
  REDISCLI_AUTH=secret run -1 doctor -S "$url"
  assert_output --partial "warning: $url: it requires no password"
  run -0 doctor -S "${SERVER_URL[0]}"
  refute_output --partial "password"

  redis 0 config set requirepass secret >/dev/null
  REDISCLI_AUTH=secret run -0 doctor -S "$url"
  refute_output --partial "password"
}

@test "a server that has just restarted has no vote yet" {
  start_servers 3
  doctor_says 69 "started " -S "$SERVERS" --restart-guard 1h
  assert_output --regexp \
    "warning: ${SERVER_URL[1]}: it started [0-9.]+m?s ago, its vote counts in (1h|59m[0-9]+s) \
\(--restart-guard\)"
  assert_line "no quorum: 0 of 3 servers can vote now, 2 needed"
}

@test "two of three servers gone: no quorum, and a reason for each" {
  start_server "${DURABLE[@]}"
  start_servers 2
  kill_server 1
  pause_server 2
  doctor_says 69 "bad: ${SERVER_URL[1]}: cannot connect: " -S "$SERVERS" --server-timeout 900ms
  # Connecting has used a part of the server timeout.
  assert_output --regexp "bad: ${SERVER_URL[2]}: no answer within [0-9]+ms"
  assert_line --regexp "^${SERVER_URL[1]} +no +- +-"
}

@test "a wrong password and missing rights are found, and the right is named" {
  start_server "${DURABLE[@]}" --requirepass secret
  REDLOCK_SERVER="unix://:wrong@${SERVER_SOCKET[0]}" run -69 doctor
  assert_output --partial "bad: ${SERVER_URL[0]}: wrong user or password"
  REDLOCK_SERVER=$SERVERS run -69 doctor
  assert_line --partial "bad: ${SERVER_URL[0]}: it requires a password: set REDISCLI_AUTH"
  refute_output --partial "unknown: "
  export REDISCLI_AUTH=secret REDLOCK_SERVER=$SERVERS
  local right
  for right in set get del pexpire pttl time hset hmget zscore zadd zremrangebyscore; do
    redis-cli -s "${SERVER_SOCKET[0]}" -a secret acl setuser default "-$right" 2>/dev/null
    run doctor
    [[ $status == 69 || $status == 1 ]]
    assert_output --regexp "(bad|warning): .*missing(: | rights: | rights:).*\+$right\b"
    redis-cli -s "${SERVER_SOCKET[0]}" -a secret acl setuser default "+$right" 2>/dev/null
  done
  redis-cli -s "${SERVER_SOCKET[0]}" -a secret acl setuser default -type 2>/dev/null
  run -1 doctor
  assert_line "warning: ${SERVER_URL[0]}: locks work, but these rights are missing: +type"
  redis-cli -s "${SERVER_SOCKET[0]}" -a secret acl setuser default +type -eval 2>/dev/null
  run -69 doctor
  assert_line --regexp "bad: .*: cannot take a lock: .*'eval'"
  redis-cli -s "${SERVER_SOCKET[0]}" -a secret acl setuser default +eval 2>/dev/null
  run -0 doctor
  # A key that could not be deleted expires.
  wait_until eval '[[ -z $(redis-cli -s "${SERVER_SOCKET[0]}" -a secret keys "*" 2>/dev/null) ]]'
}

@test "facts that may not be queried are unknown: fit as far as can be seen, 1" {
  start_server "${DURABLE[@]}"
  redis 0 acl setuser default -info -config >/dev/null
  run -1 doctor -S "$SERVERS"
  assert_line "fit as far as can be seen, 5 checks unknown: 1 of 1 servers can vote now, 1 needed"
  assert_line --regexp "^${SERVER_URL[0]} +yes +[0-9.]+ms +\? +\? +\? +\? +\?$"
  assert_line --regexp "^unknown: ${SERVER_URL[0]}: it does not report its maxmemory-policy: \
INFO memory: NOPERM .*'info'"
  run -1 doctor -S "$SERVERS" --json
  assert_equal "$(json 'j["result"]')" unknown
  assert_equal "$(findings)" \
    "0 unknown eviction, 0 unknown persistence, 0 unknown role, 0 unknown software, \
0 unknown uptime"
  assert_equal "$(json 'j["servers"][0]["eviction_policy"]')" None
}

# proxy NAME WAY COMMAND…: REDLOCK_SERVER is a proxy in front of server 0 (helper/proxy.py).
proxy() {
  start_background "$1" /usr/bin/python3 "$BATS_TEST_DIRNAME/helper/proxy.py" \
    "${SERVER_SOCKET[0]}" "${@:2}"
  wait_for_stdout "$1"
  export REDLOCK_SERVER
  REDLOCK_SERVER=redis://127.0.0.1:$(<"$(background_stdout "$1")")
}

@test "a command that the server has renamed or disabled is named" {
  start_server "${DURABLE[@]}" --rename-command ZRANK '' --rename-command PUBLISH ''
  run -1 doctor -S "$SERVERS"
  assert_line "warning: ${SERVER_URL[0]}: locks work, but these rights are missing:\
 +zrank (renamed or disabled) +publish (renamed or disabled)"
}

# The checks with this grade, sorted.
graded() {
  json '" ".join(sorted(f["check"] for f in j["servers"][0]["findings"] if f["grade"] == "'"$1"'"))'
}

# unanswered CHECKS FACTS WAY QUESTION [OPTION…]: through a proxy that does not pass on this question
# exactly these checks are unknown, with the question as the reason, and these facts are not known.
unanswered() {
  local checks=$1 facts=$2 way=$3 question=$4 name="$3-${4// /-}"
  proxy "$name" "$way" "$question"
  run --separate-stderr doctor --json "${@:5}"
  assert_equal "$way $question: $status $(json 'j["result"]') $(graded unknown)" \
    "$way $question: 1 unknown $checks"
  assert_equal "$way $question: $(json '" ".join(sorted(
    name for name, value in j["servers"][0].items() if value is None))')" "$way $question: $facts"
  assert_equal "$(json '[f["text"] for f in j["servers"][0]["findings"]
    if f["grade"] == "unknown" and "'"${question^^}"'" not in f["text"].upper()]')" "[]"
  end_background
}

@test "a question that is refused, or cut off, leaves what the others tell" {
  start_server "${DURABLE[@]}"
  local way
  for way in error end; do
    unanswered "software uptime" "run_id software up_s version" "$way" "info server"
    unanswered eviction eviction_policy "$way" "info memory"
    unanswered persistence append_only "$way" "info persistence"
    unanswered role role "$way" "info replication"
    unanswered persistence append_fsync "$way" "config get appendfsync"
  done
  unanswered "clock rights" clock_offset_ms end time
  unanswered report save end "config get save"
  unanswered rights "" end zrank
  # No check needs it, and services refuse it for ever.
  proxy saves error "config get save"
  run -0 doctor
  assert_nothing_left
}

@test "a question without an answer takes its own time only" {
  start_server "${DURABLE[@]}"
  unanswered eviction eviction_policy silence "info memory" --server-timeout 3s
  unanswered rights "" silence zrank --server-timeout 3s
  assert_nothing_left
}

@test "a server whose uptime is only slow to come is not told to allow INFO" {
  start_servers 3 "${DURABLE[@]}"
  wait_until eval '(($(redis 2 info server | tr -d "\r" | sed -n "s/^uptime_in_seconds://p") > 2))'
  proxy slow silence "info server"
  run -1 doctor -S "$REDLOCK_SERVER,${SERVER_URL[1]},${SERVER_URL[2]}" --server-timeout 3s \
    --restart-guard 1ms
  assert_line --regexp "^bad: $REDLOCK_SERVER: it does not report its uptime, which --restart-guard \
needs: INFO server: no answer within 3s \(--server-timeout\)$"
}

@test "a proxy that closes the connection on unknown commands can vote if runs work through it" {
  start_server "${DURABLE[@]}"
  proxy ending end info time config subscribe scan publish ping role eval-without-key
  run -0 redlock-cli run -k demo -n -- true
  run -1 doctor
  assert_output --partial "1 of 1 servers can vote now"
  assert_line --partial "it does not report its version"
  assert_line --regexp "^warning: .*waiters cannot subscribe there, so they poll"
  assert_nothing_left_but demo
  kill_server 0
  run -69 doctor
  assert_output --partial "bad: $REDLOCK_SERVER: "
}

@test "a proxy that refuses to subscribe gets a warning that waiters poll" {
  start_server "${DURABLE[@]}"
  proxy refusing error subscribe eval-without-key
  run -1 doctor --json
  assert_equal "$(findings)" "0 warning notifications"
  run -1 doctor
  assert_line --regexp "^warning: .*waiters cannot subscribe there, so they poll .*unknown command"
}

@test "a user who may only lock some keys names one to probe with" {
  start_server "${DURABLE[@]}"
  redis 0 acl setuser default resetkeys '~job:*' '~redlock:*:{job:*' >/dev/null
  run -69 doctor -S "$SERVERS"
  assert_output --partial "cannot take a lock: the user lacks access to the key"
  redis 0 acl setuser default resetchannels '&redlock:wake:*:{job:*' >/dev/null
  run -69 doctor -S "$SERVERS"
  assert_output --regexp \
    "cannot take a lock: the user lacks access to the key.*; missing rights: \+subscribe "
  run -0 doctor -S "$SERVERS" -k job:probe
  assert_unlocked job:probe 0
  # Another holder's lock is left alone.
  eval "$(redlock-cli acquire -S "$SERVERS" -k job:probe -t 1m --export)"
  run -1 doctor -S "$SERVERS" -k job:probe
  assert_output --partial "unknown: ${SERVER_URL[0]}: another process holds the key"
  run -0 redlock-cli extend -S "$SERVERS" -t 2m
}

@test "a server that cannot save is found" {
  start_server "${DURABLE[@]}" --enable-protected-configs yes
  assert_equal "$(redis 0 config set dir /proc)" OK
  redis 0 bgsave
  wait_until eval 'redis 0 info persistence | grep -q rdb_last_bgsave_status:err'
  doctor_says 1 "it fails to save its data" -S "$SERVERS"
}

@test "--settings shows every setting with its origin, and no password" {
  mkdir -p "$XDG_CONFIG_HOME/redlock-cli"
  echo 'server = ["redis://:hunter2@a", "redis://b"]' >"$XDG_CONFIG_HOME/redlock-cli/config.toml"
  REDLOCK_TTL=40s run -0 redlock-cli doctor --settings --server-timeout 2s
  assert_line \
    "server = redis://...@a:6379,redis://b:6379 ($XDG_CONFIG_HOME/redlock-cli/config.toml: server)"
  assert_line "ttl = 40s (REDLOCK_TTL)"
  assert_line "server-timeout = 2s (--server-timeout)"
  assert_line "grace = a fifth of the ttl, at most 5s (default)"
  refute_output --partial hunter2
  run -0 redlock-cli doctor --settings --json
  assert_equal "$(json '[s["value"] for s in j["settings"] if s["name"] == "server"]')" \
    "['redis://...@a:6379,redis://b:6379']"
}

# The help of every command has the same "default X" as --settings.
@test "--settings shows the default of a setting that is not set" {
  run -0 redlock-cli doctor --settings
  local line expected=(
    'nonblock = false (default)' 'wait = infinity (default)' 'unavailable-wait = 10s (default)'
    'conflict-exit-code = 75 (default)'
    'shared = false (default)' 'exclusive = true (default)' 'slots (not set)'
    'note = the URL of the CI job (default)' 'retry-delay = 100ms (default)'
    'stop-signal = TERM (default)' 'on-lost = kill (default)' 'descendants = leave (default)'
    'min-hold = 0s (default)'
    'isolate = none (default)' 'status-fd (not set)' 'server (not set)' 'replicas = 0 (default)'
    'user (not set)' 'json = false (default)'
    'quiet = false (default)' 'verbose = 0 (default)')
  for line in "${expected[@]}"; do assert_line "$line"; done
  refute_line --regexp '^[a-z-]+ \(default\)$'
  run -0 env -u REDLOCK_RESTART_GUARD redlock-cli doctor --settings
  assert_line 'restart-guard = 1m (default)'
  run -0 redlock-cli doctor --settings --json
  assert_equal \
    "$(json '[(s["value"], s["where"], s["default"])
      for s in j["settings"] if s["name"] == "on-lost"]')" \
    "[(None, None, 'kill')]"
}

@test "each default, set as a value, is accepted" {
  start_server
  local setting value
  while IFS='=' read -r setting value; do
    setting=${setting% } value=${value# } value=${value% (default)} value=${value%%;*}
    [[ $value != *' '* ]] || continue # said in words
    setting=${setting^^}
    run -0 env "REDLOCK_${setting//-/_}=$value" redlock-cli run -k demo -S "$SERVERS" -- true
  done < <(env -u REDLOCK_RESTART_GUARD redlock-cli doctor --settings | grep ' = .*(default)$' |
    grep -v '^config')
}

@test "without a server it exits with 78, like every command" {
  assert_refused 78 "no server is set" redlock-cli doctor
}

@test "for the store on this host doctor reports only facts that apply to it" {
  mkdir "$BATS_TEST_TMPDIR/locks"
  run -0 doctor -S "local:$BATS_TEST_TMPDIR/locks"
  assert_equal "${#lines[@]}" 3
  assert_line "fit: 1 of 1 servers can vote now, 1 needed"
  refute_output --partial unknown
}

@test "-q reports only by its exit status" {
  start_server
  run -1 --separate-stderr doctor -q -S "$SERVERS"
  assert_equal "$output$stderr" ""
}

@test "too few replicas for --replicas, and enough of them" {
  start_tcp_server --appendonly yes --appendfsync always --repl-diskless-sync-delay 0
  start_server --replicaof 127.0.0.1 "${SERVER_PORT[0]}"
  wait_until eval 'redis 0 info replication | grep -q slave0:.*state=online'
  # The clock of a replica without an address is unknown.
  run -1 doctor -S "${SERVER_URL[0]}" --replicas 1
  assert_line --partial "fit as far as can be seen, 1 check unknown"
  # It waits for the other replica.
  run -69 doctor -S "${SERVER_URL[0]}" --replicas 2 --server-timeout 3s
  assert_output --partial "1 of its replicas are in sync; --replicas needs 2"
}
