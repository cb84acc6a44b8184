#!/usr/bin/env bats
# status of thousands of locks, and the queries that it sends.
load helper/common

setup() {
  setup_one_server
  # Even on a busy machine no server may time out.
  export REDLOCK_SERVER_TIMEOUT=4s
  LOCKS=2000
}

# lock_many: job1 to job$LOCKS, each a copy of one lock.
lock_many() {
  redlock-cli acquire -k job1 --ttl 1h --note many --token-file "$BATS_TEST_TMPDIR/lease"
  # shellcheck disable=SC2016  # Lua
  redis 0 eval 'for i = 2, ARGV[1] do
    for _, form in ipairs{"%s", "redlock:owner:{%s}"} do
      redis.call("RESTORE", string.format(form, "job" .. i), 3600000,
        redis.call("DUMP", string.format(form, "job1")))
    end
  end' 0 "$LOCKS" >/dev/null
}

# told CMD…: the number of bytes that the server sent meanwhile, including the answer to one INFO.
told() {
  local before after
  before=$(bytes_sent)
  "$@" >/dev/null
  after=$(bytes_sent)
  echo $((after - before))
}
bytes_sent() { redis 0 info stats | sed -n 's/^total_net_output_bytes:\([0-9]*\).*/\1/p'; }

@test "2,000 locks: a row for each in natural order, an element for each in JSON, a sample for each" {
  lock_many
  run -0 --separate-stderr redlock-cli status
  assert_equal "$(awk '{ print $1 }' <<<"$output")" "KEY
$(printf 'job%d\n' $(seq "$LOCKS"))
$LOCKS"
  assert_line "$LOCKS locks: $LOCKS held"
  run -0 --separate-stderr redlock-cli status --json
  /usr/bin/python3 "$BATS_TEST_DIRNAME/helper/valid_output.py" <<<"$output"
  assert_equal "$(jq -r '.locks[] | select(.state == "held" and .holder.note == "many") | .key' \
    <<<"$output")" "$(printf 'job%d\n' $(seq "$LOCKS") | sort)"
  run -0 --separate-stderr redlock-cli status --openmetrics
  /usr/bin/python3 "$BATS_TEST_DIRNAME/helper/openmetrics.py" <<<"$output"
  assert_equal "$(grep -c '^redlock_lock_held{.* 1$' <<<"$output")" "$LOCKS"
}

@test "only --runs asks a server for the recorded runs" {
  local i note bytes
  printf -v note '%200s' ''
  for ((i = 0; i < 20; ++i)); do redlock-cli run -k demo -q --note "$note$i" -- true; done
  bytes=$(told redlock-cli status demo --runs)
  ((bytes > 8000)) || fail "with --runs it told $bytes bytes"
  for i in "status demo" "status --all" "status --openmetrics" "run -q -k demo --once-per 1h -- true"; do
    # shellcheck disable=SC2086
    bytes=$(told redlock-cli $i)
    ((bytes < 4000)) || fail "$i: it told $bytes bytes"
  done
}

@test "--watch reports once that it cannot keep its interval" {
  start_servers 2
  pause_server 2
  start_background watcher redlock-cli status -S "$SERVERS" --server-timeout 300ms --watch 100ms
  wait_until has_listed 3
  kill -INT "${BACKGROUND_PID[watcher]}"
  wait_background watcher
  assert_regex "$stderr" '^redlock-cli: reading the locks takes [0-9.ms]+: longer than --watch 100ms$'
}
has_listed() { (($(grep -c 'no locks' "$(background_stdout watcher)") >= $1)); }

@test "status of thousands of locks uses one connection to each server" {
  start_servers 2
  export REDLOCK_SERVER=$SERVERS
  lock_many
  local number before
  local -a befores=()
  for number in 0 1 2; do befores+=("$(connections_at "$number")"); done
  redlock-cli status >/dev/null
  for number in 0 1 2; do
    before=${befores[number]}
    # One more is that of this question.
    assert_equal "server $number: $(($(connections_at "$number") - before))" "server $number: 2"
  done
}

# The number of connections that server I has accepted so far, including that of this query.
connections_at() {
  redis "$1" info stats | sed -n 's/^total_connections_received:\([0-9]*\).*/\1/p'
}

# wide_cluster MASTERS CLOSED SILENT: REDLOCK_SERVER is that cluster (helper/wide_cluster.py).
wide_cluster() {
  start_background wide /usr/bin/python3 "$BATS_TEST_DIRNAME/helper/wide_cluster.py" "$@"
  wait_for_stdout wide
  WIDE_PORT=$(<"$(background_stdout wide)")
  export REDLOCK_SERVER=cluster://127.1.0.1:$WIDE_PORT
}

@test "status of all locks of a cluster with 200 masters keeps few connections at a time" {
  wide_cluster 200 0 0
  run -0 redlock-cli status --server-timeout 5s
  assert_output --partial "200 locks: 200 free"
  assert_in_range "$(redis-cli -p "$WIDE_PORT" most)" 16 64
}

@test "doctor asks 200 masters with few connections at a time" {
  wide_cluster 200 0 0
  run redlock-cli doctor --server-timeout 5s
  assert_output --partial "it does not report its version: INFO server: "
  assert_output --partial "127.1.0.1:$WIDE_PORT: ERR unknown command, and 199 more"
  # One more is for the subscription.
  assert_in_range "$(redis-cli -p "$WIDE_PORT" most)" 1 65
}

@test "status and doctor do not wait for each of many masters that hang" {
  wide_cluster 200 0 199
  run -69 redlock-cli status --server-timeout 1s
  assert_line --regexp "^incomplete: .*127\.1\.0\.2:.*: no answer .*; and 191 more of its masters$"
  # Some of the 64 that are silent at first are under way when that is seen.
  assert_in_range "$(redis-cli -p "$WIDE_PORT" asked)" 64 100
  run redlock-cli doctor --server-timeout 1s
  assert_output --partial "and 199 more"
}

@test "status waits once for the masters that are silent or gone, and names each of them" {
  wide_cluster 60 2 3
  run -69 redlock-cli status --server-timeout 2s
  assert_output --partial "55 locks: 55 free"
  local host
  for host in 2:1 3:1 "4:$WIDE_PORT" "5:$WIDE_PORT" "6:$WIDE_PORT"; do
    assert_line --regexp "^incomplete: .*127\.1\.0\.$host: (cannot connect|no answer)"
  done
  assert_equal "$(redis-cli -p "$WIDE_PORT" scans)" 1
}
