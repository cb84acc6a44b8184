#!/usr/bin/env bats
# run --replace: the newest wins, and a running command is stopped for it if it was started with
# --replace, too.
load helper/common
load helper/supervision

# Whether each line of stdin has the documented shape.
valid() { /usr/bin/python3 "$BATS_TEST_DIRNAME/helper/valid_output.py"; }

# replaces NAME [OPTION…]: a run that reports its start, and ends when the file NAME.end exists.
replaces() {
  local name=$1
  shift
  start_background "$name" redlock-cli run -k demo -t 9s --replace --note "$name" "$@" -- \
    sh -c 'echo entered; until [ -e "$0" ]; do sleep 0.2; done' "$BATS_TEST_TMPDIR/$name.end"
}

stop_request() { redlock-cli status demo --json | jq -er '.locks[0].holder.stop_request.reason'; }

# bats test_tags=redis
@test "the newest run stops the running one, and starts when the whole tree is dead" {
  await_lock
  start_tree old -t 12s --grace 300ms --on-lost term --replace --events-fd 7 7>"$BATS_TEST_TMPDIR/events"
  replaces new
  wait_background old
  # The command's own end: TERM.
  assert_equal "$status $output" "143 ready"
  assert_regex "$stderr" \
    "demo: asked to stop for a newer run of $(id -un)@$(hostname) \(\"new\"\); stopping"
  assert_dead_before_free
  assert_tree_dead
  wait_for_stdout new entered
  assert_equal \
    "$(reported '(j["result"], j["exit_code"], j["command_signal"], j["released"], j["left"])')" \
    "('stopped', 143, 15, True, [])"
  assert_equal "$(reported '(j["stop_request"]["reason"], j["stop_request"]["replaces"])')" \
    "('new', True)"
  assert_equal "$(reported 'j["message"]')" \
    "stopped for a newer run of $(id -un)@$(hostname) (\"new\")"
  assert_equal \
    "$(jq -r 'select(.event == "stopping") | "\(.why) \(.by) \(.reason)"' \
      "$BATS_TEST_TMPDIR/events")" \
    "replaced $(id -un)@$(hostname) new"
  cat "$BATS_TEST_TMPDIR/events" "$BATS_TEST_TMPDIR/report" | valid
  redlock-cli status demo --json | valid
  release_hold new
  assert_equal "$status" 0
}

@test "a run without --replace is never touched, and the newest waits for its end" {
  local option
  for option in --nonblock --supersede; do
    [[ $option == --nonblock ]] && hold old -t 9s -n || hold old -t 9s "$option"
    replaces new
    wait_until note_waits new
    # For longer than a request takes to arrive.
    wait_for_renewal
    wait_for_renewal
    run ! stop_request
    kill -0 "${BACKGROUND_PID[old]}"
    release_hold old
    assert_equal "$status" 0
    wait_for_stdout new entered
    release_hold new
    assert_equal "$status" 0
    rm "$BATS_TEST_TMPDIR"/*.end
  done
}

# wait_for_renewal: until the lease of the key demo ends later.
wait_for_renewal() {
  local before
  before=$(ends_at)
  wait_until ends_after "$before"
}
ends_at() { date -d "$(redlock-cli status demo --json | jq -r '.locks[0].holder.expires_at')" +%s; }
ends_after() { (($(ends_at) > $1 + 1)); }

@test "a run that only supersedes or waits stops no other" {
  replaces old
  wait_for_stdout old entered
  start_background superseding redlock-cli run -k demo --supersede --note superseding -- true
  wait_until note_waits superseding
  wait_for_renewal
  wait_for_renewal
  run ! stop_request
  kill -0 "${BACKGROUND_PID[old]}"
  release_hold old
  assert_equal "$status" 0
  wait_background superseding
  assert_equal "$status" 0
}

@test "of the waiters with --replace the newest stays, and waiters without it keep their positions" {
  hold holder
  start_background plain redlock-cli run -k demo --note plain -- echo plain
  wait_until note_waits plain
  replaces old -E 9 --json
  wait_until note_waits old
  replaces new
  wait_background old
  assert_equal "$status" 9
  assert_equal \
    "$(jq -r '[.result, .exit_code, .superseded_by.note] | join(" ")' <<<"${stderr##*$'\n'}")" \
    "superseded 9 new"
  release_hold holder
  wait_background plain
  assert_equal "$status $output" "0 plain"
  wait_for_stdout new entered
  release_hold new
}

# all_at_once: ten simultaneous runs while another one runs. Each holds the witness alone, or
# reports in `ran` that it does not.
all_at_once() {
  local ran=$BATS_TEST_TMPDIR/ran witness=$BATS_TEST_TMPDIR/witness end=$BATS_TEST_TMPDIR/end i
  local -a codes=()
  touch "$witness"
  for i in 0 1 2 3 4 5 6 7 8 9 10; do
    start_background "r$i" redlock-cli run -k demo -t 9s --replace --note "r$i" -- \
      sh -c 'exec 9<"$1"; flock -n -x 9 || echo overlap >>"$2"; echo "$0" >>"$2"
        until [ -e "$3" ]; do sleep 0.1; done' "r$i" "$witness" "$ran" "$end"
    ((i)) || wait_until test -e "$ran"
  done
  wait_until one_is_left
  for i in 0 1 2 3 4 5 6 7 8 9 10; do
    [[ $LAST == "r$i" ]] && continue
    wait_background "r$i"
    # Stopped if it ran, else superseded.
    if grep -qx "r$i" "$ran"; then assert_equal "$status" 143; else assert_equal "$status" 75; fi
  done
  touch "$end"
  wait_background "$LAST"
  assert_equal "$status" 0
  run ! grep overlap "$ran"
}
one_is_left() {
  local name left=0
  for name in "${!BACKGROUND_PID[@]}"; do
    is_running_child "${BACKGROUND_PID[$name]}" || continue
    LAST=$name
    ((++left))
  done
  ((left == 1)) && [[ $(tail -n 1 "$BATS_TEST_TMPDIR/ran") == "$LAST" ]]
}

@test "of ten simultaneous runs never two run at the same time, and one is left" {
  all_at_once
}

# bats test_tags=redis
@test "of ten simultaneous runs on three servers the one with the last ticket runs last" {
  start_servers 2
  export REDLOCK_SERVER=$SERVERS
  all_at_once
  local nr newest=
  for nr in 0 1 2; do newest+=$(redis "$nr" hget 'redlock:waiters:{demo}' +)$'\n'; done
  # Each is `ticket id record`.
  newest=$(sort -k 1,1n -k 2,2 <<<"$newest" | tail -n 1)
  assert_equal "$(jq -r .note <<<"${newest#* * }")" "$LAST"
}

@test "run exits as its command ended, and --once-per counts no success" {
  start_background old redlock-cli run -k demo -t 9s --replace --once-per 20h --json -- \
    bash -c 'trap "exit 0" TERM; echo ready; while :; do sleep 0.1; done'
  wait_for_stdout old ready
  replaces new --once-per 20h
  wait_background old
  assert_equal "$status" 0
  assert_equal "$(jq -r '"\(.result) \(.exit_code)"' <<<"${stderr##*$'\n'}")" "stopped 0"
  wait_for_stdout new entered
  release_hold new
  run -0 redlock-cli run -k demo --once-per 20h --server-timeout 4s -- echo again
  refute_output --partial again
}

@test "a wait that times out exits with 75, and the request stands" {
  replaces old
  wait_for_stdout old entered
  run -75 --separate-stderr redlock-cli run -k demo --replace -w 1s --note new -- true
  assert_equal "$(stop_request)" new
  wait_background old
  assert_equal "$status" 143
}

@test "status shows for whom the run is to stop, and a request by hand has priority" {
  replaces old
  wait_for_stdout old entered
  run -75 redlock-cli run -k demo --replace -w 1s --note new -- true
  assert_regex "$(redlock-cli status demo)" \
    "asked to stop for a newer run of $(id -un)@$(hostname) \(\"new\"\)"
  run redlock-cli stop demo -w 0 --reason "wrong branch"
  assert_equal "$(stop_request)" "wrong branch"
  wait_background old
  assert_equal "$status" 143
  assert_regex "$stderr" 'asked to stop by .* \("wrong branch"\)'
}

@test "it waits for a lock that --min-hold keeps" {
  start_background old redlock-cli run -k demo -t 9s --replace --min-hold 5m -- \
    sh -c 'echo ready; exec sleep 99'
  wait_for_stdout old ready
  replaces new
  wait_background old
  assert_equal "$status" 143
  note_waits new
  assert_regex "$(redlock-cli status demo)" "kept until .* by --min-hold"
  redlock-cli release demo --force
  wait_for_stdout new entered
  release_hold new
}

@test "within a run of the same key it has no effect, and everything within that run is replaced together" {
  start_background old redlock-cli run -k demo -t 9s --replace -- \
    redlock-cli run -k demo --replace -- sh -c 'echo ready; exec sleep 99'
  wait_for_stdout old ready
  wait_for_renewal
  run ! stop_request
  replaces new
  wait_background old
  assert_equal "$status" 143
  wait_for_stdout new entered
  release_hold new
}

@test "a run does not stop its enclosing run" {
  run --separate-stderr redlock-cli run -k demo -t 9s --replace -- \
    env -u REDLOCK_HELD redlock-cli run -k demo --replace -w 1m -- true
  assert_equal "$status" 64
  assert_regex "$stderr" "which waits for this command"
  refute_regex "$stderr" "asked to stop"
}

@test "it needs a wait for a single lock, and a command that can be stopped" {
  local -a replace=(redlock-cli run -k demo --replace)
  assert_refused 64 "--replace supersedes older waiters, too; leave out --supersede" \
    "${replace[@]}" --supersede -- true
  assert_refused 64 "--replace takes the place of older waiters, and -n (or --wait 0) does not wait" \
    "${replace[@]}" -n -- true
  assert_refused 64 "--replace takes the place of older waiters" "${replace[@]}" -w 0 -- true
  assert_refused 64 "--replace is for a lock that one process holds alone" "${replace[@]}" -s -- true
  assert_refused 64 "--replace is for a lock that one process holds alone" "${replace[@]}" --slots 2 -- true
  assert_refused 64 "--replace allows only one -k" "${replace[@]}" -k other -- true
  assert_refused 64 "--max-waiting: keeps newcomers out, and --replace puts them first" \
    "${replace[@]}" --max-waiting 2 -- true
  assert_refused 64 "--replace: stops CMD for a newer run, and --on-lost warn never stops it" \
    "${replace[@]}" --on-lost warn -- true
  assert_refused 64 "--replace" redlock-cli acquire -k demo -t 9s --replace
}
