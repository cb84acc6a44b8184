#!/usr/bin/env bats
# run --supersede: the newest waiter wins.
load helper/common

setup() { setup_one_server; }

# supersedes NAME [OPTION…]: waits in the background for the key demo, and records in `ran` that it
# got it.
supersedes() {
  local name=$1
  shift
  start_background "$name" "${PROMPTLY[@]}" redlock-cli run -k demo --supersede "$@" \
    -- sh -c 'echo "$0" >>"$1"' "$name" "$BATS_TEST_TMPDIR/ran"
}

waiters_are() {
  [[ $(redlock-cli status demo --json | jq '.locks[0].waiters.count // 0') == "$1" ]]
}

@test "the older of two waiters gives up with 75 and names the newer; the running command is left alone" {
  hold holder
  supersedes old --note "commit 1"
  wait_until note_waits "commit 1"
  supersedes new --note "commit 2"
  wait_background old
  assert_equal "$status" 75
  assert_regex "$stderr" \
    "demo: superseded by $(id -un)@$(hostname) \(run pid ${BACKGROUND_PID[new]}: sh\), \"commit 2\""
  wait_until waiters_are 1
  kill -0 "${BACKGROUND_PID[holder]}"
  release_hold holder
  assert_equal "$status" 0
  wait_background new
  assert_equal "$status" 0
  assert_equal "$(ran)" new
}

@test "waiters without it are neither superseded nor overtaken" {
  hold holder
  find_promptly
  start_background plain "${PROMPTLY[@]}" redlock-cli run -k demo --note plain \
    -- sh -c 'echo plain >>"$0"' "$BATS_TEST_TMPDIR/ran"
  wait_until note_waits plain
  supersedes old --note old
  wait_until note_waits old
  supersedes new --note new
  wait_background old
  assert_equal "$status" 75
  release_hold holder
  wait_background plain
  assert_equal "$status" 0
  wait_background new
  assert_equal "$(ran)" "plain new"
}

@test "-E and --json apply, too" {
  hold holder
  start_background old redlock-cli run -k demo --supersede -E 9 --json --note old -- true
  wait_until note_waits old
  supersedes new --note "commit 2"
  wait_background old
  assert_equal "$status" 9
  assert_equal \
    "$(jq -r '[.result, .exit_code, .superseded_by.note] | join(" ")' <<<"${stderr##*$'\n'}")" \
    "superseded 9 commit 2"
  release_hold holder
  wait_background new
}

@test "acquire supports it, too" {
  hold holder
  start_background old redlock-cli acquire -k demo --ttl 1m --supersede --note old
  wait_until note_waits old
  supersedes new
  wait_background old
  assert_equal "$status $output" "75 "
  release_hold holder
  wait_background new
}

@test "a free lock is simply acquired, repeatedly" {
  local i
  for i in 1 2 3; do run -0 redlock-cli run -k demo --supersede -- true; done
}

@test "it needs a wait, and an exclusive lock" {
  assert_refused 64 \
    "--supersede takes the place of older waiters, and -n (or --wait 0) does not wait" \
    redlock-cli run -k demo --supersede -n -- true
  assert_refused 64 "--supersede takes the place of older waiters" \
    redlock-cli run -k demo --supersede -w 0 -- true
  assert_refused 64 "--supersede is for a lock that one process holds alone" \
    redlock-cli run -k demo --supersede -s -- true
  assert_refused 64 "--supersede is for a lock that one process holds alone" \
    redlock-cli run -k demo --supersede --slots 2 -- true
  assert_refused 64 "--supersede allows only one -k" \
    redlock-cli run -k demo -k other --supersede -- true
}
