#!/usr/bin/env bats
# status --openmetrics: the metrics of the locks for Prometheus.
load helper/common

setup() {
  setup_one_server
  # Even on a busy machine no server may time out.
  export REDLOCK_SERVER_TIMEOUT=4s
}

# metrics [OPTION…]: runs it, and fails unless it prints valid OpenMetrics; promtool also checks it,
# if installed.
metrics() {
  run -0 --separate-stderr redlock-cli status --openmetrics "$@"
  assert_equal "$stderr" ""
  python3 "$BATS_TEST_DIRNAME/helper/openmetrics.py" <<<"$output" || fail "not OpenMetrics: $output"
  if command -v promtool >/dev/null; then promtool check metrics <<<"$output"; fi
}

# value NAME [KEY]: the value of a sample; fails if there is none.
value() { grep -oP "^redlock_lock_$1\{key=\"${2-demo}\"\} \K.*" <<<"$output"; }

@test "the check of the format refuses malformed metrics" {
  local check=(python3 "$BATS_TEST_DIRNAME/helper/openmetrics.py") head=$'# TYPE a gauge\n# HELP a Text.\n'
  printf '%sa{k="\\"\\\\"} 1.5\n# EOF\n' "$head" | "${check[@]}"
  printf '# TYPE a_seconds gauge\n# UNIT a_seconds seconds\na_seconds 1\n# EOF\n' | "${check[@]}"
  local wrong
  for wrong in 'a 1\n' 'a 1\n# EOF\n\n' 'a 1\n\n# EOF\n' 'a one\n# EOF\n' 'b 1\n# EOF\n' \
    'a{k="x"} 1\na{k="x"} 2\n# EOF\n' 'a{k="\\x"} 1\n# EOF\n' 'a{k=x} 1\n# EOF\n' \
    '# UNIT a seconds\n# EOF\n' '# TYPE a gauge\n# EOF\n' 'a 1\n# TYPE b gauge\na{k="x"} 1\n# EOF\n'; do
    # shellcheck disable=SC2059  # the escapes are the format's
    run ! "${check[@]}" < <(printf "$head$wrong")
  done
}

@test "without locks there are metrics without samples" {
  metrics
  refute_line --regexp '^[^#]'
}

@test "a lock that is held, free or kept, its waiters, and how its last run ended" {
  local before
  before=$(date +%s)
  run -0 redlock-cli run -k demo -- true
  metrics
  assert_equal "$(value held) $(value held_seconds) $(value waiters)" "0 0.000 0"
  assert_equal "$(value longest_wait_seconds) $(value last_run_exit_status)" "0.000 0"
  local success
  success=$(value last_success_timestamp_seconds)
  # It is rounded.
  ((success >= before - 1 && success <= $(date +%s) + 1)) || fail "$success"
  run -143 redlock-cli run -k demo -- sh -c 'kill -TERM $$'
  hold ours
  start_background waiter redlock-cli run -k demo -- true
  wait_for_answer 0 1 zcard 'redlock:queue:{demo}'
  metrics
  assert_equal "$(value held) $(value waiters) $(value last_run_exit_status)" "1 1 143"
  (($(value last_success_timestamp_seconds) - success <= 1)) || fail "another success"
  assert_regex "$(value held_seconds)" '^[0-9]+\.[0-9]{3}$'
  refute_line --regexp 'held_seconds.* 0\.000$'
  assert_regex "$(value last_run_duration_seconds)" '^[0-9]+\.[0-9]{3}$'
  release_hold ours
  wait_background waiter
  run -0 redlock-cli run -k kept --min-hold 1h -- true
  metrics kept
  assert_equal "$(value held kept) $(value held_seconds kept)" "1 0.000"
  refute_line --partial 'key="demo"'
}

@test "slots: how many are taken, and of how many" {
  hold ours --slots 3
  metrics
  assert_equal "$(value slots_taken) $(value slots) $(value held)" "1 3 1"
  release_hold ours
  metrics demo --slots 3
  assert_equal "$(value slots_taken) $(value slots) $(value held)" "0 3 0"
}

@test "keys with quotes, backslashes, newlines and bytes that are not UTF-8 have distinct labels" {
  local key
  for key in 'a"b' 'a\b' $'a\nb' $'a\xffb' $'a\xfeb'; do
    run -0 redlock-cli run -k "$key" -- true
  done
  metrics
  assert_line 'redlock_lock_held{key="a\"b"} 0'
  assert_line 'redlock_lock_held{key="a\\b"} 0'
  assert_line 'redlock_lock_held{key="a\nb"} 0'
  assert_equal "$(grep -c '^redlock_lock_held{key=".*",key_base64=".*"} 0$' <<<"$output")" 2
}

# bats test_tags=redis
@test "without a quorum it exits with 69, and has no sample of the lock" {
  stop_server 0
  run -69 --separate-stderr redlock-cli status demo --openmetrics
  refute_line --regexp '^[^#]'
  assert_line "# EOF"
}

@test "--openmetrics cannot be combined with options that show or check something else" {
  local other
  for other in --watch --exit-code '--max-age 1h' '--max-held 1h' --runs; do
    # shellcheck disable=SC2086  # an option and its value
    assert_refused 64 "cannot be combined" redlock-cli status demo --openmetrics $other
  done
  run -64 redlock-cli status --openmetrics --json
  assert_output --partial "cannot be combined"
}
