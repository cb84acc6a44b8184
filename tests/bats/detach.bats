#!/usr/bin/env bats
# acquire --detach: a lease that renews itself, bound to no process.
load helper/common

setup() {
  setup_one_server
  allow_late_answers
  FILE=$BATS_TEST_TMPDIR/lease
}

# detach OPTION…: sets HOLDER to the pid of the holder process. It must close our pipe, or this
# would wait for it.
detach() {
  local printed
  printed=$(redlock-cli acquire -k demo --detach --token-file "$FILE" "$@")
  assert_equal "$printed" ""
  HOLDER=$(redlock-cli status demo --json | jq .locks[0].holder.pid)
  kill -0 "$HOLDER"
}

is_older_than() {
  redlock-cli status demo --json |
    jq -es --argjson ms "$1" 'any(.[].locks[0].holder; .age_ms > $ms)' >/dev/null
}

# Waits until a lease of 6 s has lived longer than that.
outlive_ttl() { wait_until is_older_than 7000; }

# The holder of a failed test must not stay.
teardown() {
  [[ -z ${HOLDER-} ]] || kill -KILL "$HOLDER" 2>/dev/null || true
  common_teardown
}

@test "the lease outlives its ttl and the process that acquired it, until it is released" {
  local token
  detach --max-hold 1h --ttl 6s --server-timeout 1s --note "three steps"
  token=$(redis 0 get demo)
  run -0 redlock-cli status demo
  assert_line --regexp \
    "^demo: held by .* \\(detached holder pid $HOLDER: .*\\), \"three steps\", for .*, last renewed .* ago$"
  run -0 redlock-cli status
  assert_line --regexp '^demo +held +.* \(detached\) "three steps" .* renewed$'
  outlive_ttl
  assert_equal "$(redis 0 get demo)" "$token"
  run -0 redlock-cli release --token-file "$FILE"
  assert_unlocked demo 0
  wait_until has_ended "$HOLDER"
}

@test "it is released at the end of --max-hold" {
  # Long enough for a busy machine to see it held.
  detach --max-hold 6s --ttl 1h
  wait_for_no_key 0 demo
  wait_until has_ended "$HOLDER"
  run -79 redlock-cli release --token-file "$FILE"
}

@test "a killed holder leaves the lock until its ttl ends" {
  detach --max-hold 1h --ttl 9s --server-timeout 1s
  kill -KILL "$HOLDER"
  run -75 redlock-cli status demo --exit-code
  wait_for_no_key 0 demo
}

@test "a broken lock ends the holder, a signal from the terminal does not" {
  detach --max-hold 1h --ttl 6s --server-timeout 1s
  kill -HUP "$HOLDER"
  kill -INT "$HOLDER"
  kill -TERM "$HOLDER"
  outlive_ttl
  run -0 redlock-cli release demo --force
  wait_until has_ended "$HOLDER"
}

@test "it waits for a held lock, or exits with 75" {
  hold other
  run -75 redlock-cli acquire -k demo --detach --max-hold 1h --token-file "$FILE" -n
  assert [ ! -e "$FILE" ]
  release_hold other
}

fence_of_demo() { redlock-cli status demo --json | jq .locks[0].holder.fence; }

# detach_within KEY…: tries to detach within a run of demo, and prints the result and the exit code.
# The lock and FILE must stay unchanged.
detach_within() {
  local fence
  fence=$(fence_of_demo)
  redlock-cli acquire "${@/#/--key=}" --detach --max-hold 1h --token-file "$FILE" --json |
    jq -r '"\(.result) \(.exit_code)"'
  [[ $(fence_of_demo) == "$fence" && $(<"$FILE") == before ]] || echo "not as it was"
}

@test "it is refused within a run of the same key, because that lease ends with the run" {
  export FILE
  export -f detach_within fence_of_demo
  echo before >"$FILE"
  run -0 --separate-stderr redlock-cli run -k demo -- bash -c 'detach_within demo'
  assert_equal "$output" "usage 64"
  assert_equal "$stderr" "redlock-cli: demo: --detach needs a lease of its own, but the enclosing \
run or acquire holds the lock: use --detach outside of that, or with another key"
  assert_unlocked demo 0
  # Of several keys none is kept.
  run -0 --separate-stderr redlock-cli run -k demo -- bash -c 'detach_within other demo third'
  assert_equal "$output" "usage 64"
  assert_equal "$(keys_at 0)" ""
}

@test "it is refused within a run of one of its keys, before it waits for another" {
  redlock-cli acquire -k busy --ttl 60s >/dev/null
  run -0 --separate-stderr redlock-cli run -k demo -- sh -c 'redlock-cli acquire -w 0 \
    -k busy -k demo --detach --max-hold 1h --token-file "$0"; echo "$?"' "$FILE"
  assert_output 64
}

@test "it is also refused under a lease of acquire, which stays valid" {
  eval "$(redlock-cli acquire -k demo --ttl 60s --export)"
  echo before >"$FILE"
  run -0 --separate-stderr detach_within demo
  assert_equal "$output" "usage 64"
  assert_regex "$stderr" "the enclosing run or acquire holds the lock"
  run -0 redlock-cli release
  assert_unlocked demo 0
}

@test "within a run of another key it acquires the lock, and keeps it after that run" {
  run -0 redlock-cli run -k other -q --descendants leave -- \
    redlock-cli acquire -k demo --detach --max-hold 1h --token-file "$FILE"
  HOLDER=$(redlock-cli status demo --json | jq .locks[0].holder.pid)
  run -75 redlock-cli status demo --exit-code
  run -0 redlock-cli release --token-file "$FILE"
  assert_unlocked demo 0
}

# bats test_tags=redis
@test "a lease is released if its file and result cannot be written, and nothing else is reported: 71" {
  local -a keys=()
  local i how
  for i in {1..60}; do keys+=(-k "key-for-a-lease-without-room-$i"); done
  for how in "--detach --max-hold 1h" "--while-pid \$\$"; do
    # The limit is not for the files that bats keeps stdout and stderr in.
    run -71 --separate-stderr bash -c "{
        (ulimit -f 0; trap '' XFSZ
          exec redlock-cli acquire \"\$@\" $how --token-file '$FILE' --json) 2>&1 >&3 | cat >&2
        exit \${PIPESTATUS[0]}
      } 3>&1 | cat; exit \${PIPESTATUS[0]}" - "${keys[@]}"
    assert_equal "${#stderr_lines[@]}" 1
    assert_regex "$stderr" "$FILE.*; the lock was released$"
    assert_equal "$(json 'j["result"], j["exit_code"]')" "('os_error', 71)"
    assert_equal "$(json 'j["message"]')" "${stderr#redlock-cli: *: }"
    assert_equal "$(locks_at 0)" ""
  done
}

@test "it needs a limit, a file, and no process" {
  assert_refused 64 "--detach needs --max-hold DUR" \
    redlock-cli acquire -k demo --detach --token-file "$FILE"
  assert_refused 64 "--detach needs --token-file FILE" \
    redlock-cli acquire -k demo --detach --max-hold 1h
  assert_refused 64 "--detach and --while-pid cannot be combined" \
    redlock-cli acquire -k demo --detach --max-hold 1h --token-file "$FILE" --while-pid $$
  assert_refused 64 "--detach needs --max-hold DUR" \
    redlock-cli acquire -k demo --detach --max-hold infinity --token-file "$FILE"
}

@test "it leaves the directory of its caller, and finds a relative token file" {
  mkdir "$BATS_TEST_TMPDIR/disk"
  cd "$BATS_TEST_TMPDIR/disk"
  FILE=../lease detach --max-hold 1h
  assert_equal "$(readlink "/proc/$HOLDER/cwd")" /
  cd /
  redlock-cli release --token-file "$BATS_TEST_TMPDIR/lease"
}
