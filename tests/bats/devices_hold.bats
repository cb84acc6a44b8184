#!/usr/bin/env bats
# hold --slot: one device of a pool, or one slot by number, is on hold until it ends by itself or
# `release KEY --slot` lifts it.
load helper/common

setup() { setup_one_server; }

# freeze OPTION…: holds b of the pool a,b,c; its lease is in the file `lease`.
freeze() {
  redlock-cli hold demo --slots a,b,c --slot b --for 1h --note broken \
    --token-file "$BATS_TEST_TMPDIR/lease" "$@"
}
shares() { redlock-cli status demo --json | jq -r ".locks[0].shares.first[] | $1"; }

@test "a device on hold is left out of the pool until release KEY --slot lifts it" {
  run -0 --separate-stderr redlock-cli hold demo --slots a,b,c --slot b --for 1h --note broken
  assert_output ""
  assert_regex "${stderr_lines[0]}" \
    'demo: slot b on hold until [0-9: -]+; `redlock-cli release -k demo --slot b` lifts it'
  run -75 --separate-stderr redlock-cli run -k demo --slots a,b,c --slot b -n -- true
  assert_regex "$stderr" "demo: on hold until [0-9: -]+ by $(id -un)@$(hostname): broken"
  # Hosts with another list leave the same device alone.
  run -0 redlock-cli run -k demo --slots b,c --take 1 -n -- sh -c 'echo "$REDLOCK_SLOT_NAME"'
  assert_output c
  run -75 redlock-cli run -k demo --slots a,b --take 2 -n -- true
  run -75 redlock-cli run -k demo -n -- true
  run -0 --separate-stderr redlock-cli release demo --slot b
  assert_regex "$stderr" 'demo: slot b lifted$'
  run -0 --separate-stderr redlock-cli release demo --slot b
  assert_regex "$stderr" 'demo: nothing to release: slot b is free'
  run -0 redlock-cli run -k demo --slots b,c -n -- sh -c 'echo "$REDLOCK_SLOT_NAME"'
  assert_output b
  assert_equal "$(keys_at 0 | grep -v released || true)" ""
}

@test "slots by number can be on hold, too" {
  run -0 --separate-stderr redlock-cli hold demo --slots 3 --slot 1 --for 1h
  assert_regex "$stderr" 'demo: slot 1 on hold until .*`redlock-cli release -k demo --slot 1` lifts'
  run -0 redlock-cli run -k demo --slots 3 --take 2 -n -- sh -c 'echo "$REDLOCK_SLOT_LIST"'
  assert_output "0 2"
  assert_refused 78 "the slots of this lock have numbers" redlock-cli run -k demo --slots a,b -- true
  run -0 redlock-cli status demo
  assert_regex "$output" $'demo: 1 of 3 slots taken, the last on hold by [^\n]*\n.*slot 1: on hold until '
  run -0 redlock-cli release demo --slot 1
  run -0 redlock-cli run -k demo --slots 3 --slot 1 -n -- true
}

@test "status shows the device, by whom, until when and why, beside those in use" {
  hold one --slots a,b,c --note mine
  freeze
  run -0 redlock-cli status demo --slots a,b,c
  assert_line --regexp '^demo: 2 of 3 slots taken, the latest by .*"mine"'
  assert_line --regexp '^ *a: .*"mine"'
  assert_line --regexp "^ *b: on hold until [0-9: -]+ by $(id -un)@$(hostname): broken$"
  assert_line --regexp '^ *free: c$'
  run -0 redlock-cli status
  assert_line --regexp '^demo +slots .*2 of 3'
  redlock-cli status demo --json >"$BATS_TEST_TMPDIR/status"
  /usr/bin/python3 "$BATS_TEST_DIRNAME/helper/valid_output.py" <"$BATS_TEST_TMPDIR/status"
  assert_equal "$(shares 'select(.slot_name == "b") | "\(.kept_by) \(.note) \(.renewed)"')" \
    "hold broken false"
  assert_in_range "$(shares 'select(.slot_name == "b") | .hold_remaining_ms')" 3500000 3600000
  assert_equal "$(redlock-cli status demo --json | jq '.locks[0].holder.hold_remaining_ms')" null
  run -75 --separate-stderr redlock-cli stop demo --slot b
  assert_regex "$stderr" \
    'nothing runs under it: on hold until .*`redlock-cli release -k demo --slot b` lifts the hold'
  release_hold one
}

@test "a hold of a device in use waits for it, or gives 75" {
  hold one --slots a,b,c --slot b
  run -75 --separate-stderr redlock-cli hold demo --slots a,b,c --slot b --for 1h -n
  start_background freeze redlock-cli hold demo --slots c,b,a --slot b --for 1h --note repair
  wait_until note_waits repair
  # It keeps nobody from the other devices.
  run -0 redlock-cli run -k demo --slots a,b,c -n -- sh -c 'echo "$REDLOCK_SLOT_NAME"'
  assert_output a
  start_background behind redlock-cli run -k demo --slots b --note behind -- echo behind
  wait_until note_waits behind
  release_hold one
  wait_background freeze
  assert_equal "$status" 0
  assert_equal "$(shares '"\(.slot_name) \(.note)"')" "b repair"
  redlock-cli release demo --slot b
  wait_background behind
  assert_equal "$status $output" "0 behind"
}

@test "it ends by itself, also at the time of --until" {
  redlock-cli hold demo --slots a,b --slot a --for 4s
  run -0 --separate-stderr redlock-cli run -k demo --slots a,b --slot a -- sh -c 'echo "$REDLOCK_SLOT_NAME"'
  assert_output a
  redlock-cli hold demo --slots a,b --slot a --until "$(date -u -d '+2 days' +%FT%H:%M)Z"
  assert_in_range "$(shares .hold_remaining_ms)" $((2 * 86400000 - 70000)) $((2 * 86400000))
}

@test "its own commands run under it; when it is lifted they keep the device until they end" {
  freeze
  # shellcheck disable=SC2016,SC2046
  start_background repair env $(tr -d "'" <"$BATS_TEST_TMPDIR/lease") \
    redlock-cli run -k demo --slots a,b,c -n -- \
    sh -c 'echo "$REDLOCK_SLOT_NAME"; until [ -e "$0" ]; do sleep 0.1; done' "$BATS_TEST_TMPDIR/end"
  wait_for_stdout repair b
  run -75 redlock-cli run -k demo --slots b -n -- true
  run -0 --separate-stderr redlock-cli release demo --slot b
  assert_regex "$stderr" 'demo: slot b lifted; run pid .* works on under the lock'
  run -0 redlock-cli status demo
  assert_regex "$output" $'\n *b: held under the lifted hold of '
  run -75 redlock-cli run -k demo --slots b -n -- true
  run -0 --separate-stderr redlock-cli release demo --slot b
  assert_regex "$stderr" 'demo: already lifted; run pid '
  touch "$BATS_TEST_TMPDIR/end"
  wait_background repair
  assert_equal "$status" 0
  run -0 redlock-cli run -k demo --slots b -n -- true
}

@test "release leaves alone what is no hold, another fence and another slot" {
  hold one --slots a,b,c --slot a
  freeze
  run -64 --separate-stderr redlock-cli release demo --slot a
  assert_regex "$stderr" \
    'demo: not on hold, .*held by .*`redlock-cli stop -k demo --slot a` ends that command'
  run -64 --separate-stderr redlock-cli release demo
  assert_regex "$stderr" 'demo: choose a slot with --slot SLOT: 2 of 3 slots taken|demo: choose a slot'
  run -0 --separate-stderr redlock-cli release demo --slot c
  assert_regex "$stderr" 'nothing to release: slot c is free'
  local fence
  fence=$(shares 'select(.slot_name == "b") | .fence')
  run -79 --separate-stderr redlock-cli release demo --slot b --if-fence $((fence + 1))
  assert_regex "$stderr" 'left alone, it has another fence: on hold until'
  run -0 redlock-cli release demo --slot b --if-fence "$fence"
  release_hold one
  redlock-cli hold demo --for 1h
  run -64 --separate-stderr redlock-cli release demo --slot b
  assert_regex "$stderr" 'demo: it has no slots: leave out --slot: on hold until'
  run -0 redlock-cli release demo
}

@test "its lease makes it longer and releases it; one of another slot does not matter" {
  eval "$(redlock-cli hold demo --slots a,b --slot a --for 1m --export)"
  assert_equal "$REDLOCK_SLOT_NAME" a
  redlock-cli extend -t 1h
  assert_in_range "$(shares .hold_remaining_ms)" 3500000 3600000
  env -u REDLOCK_LEASE redlock-cli hold demo --slots a,b --slot b --for 1m
  run -0 --separate-stderr redlock-cli release demo --slot b
  assert_regex "$stderr" 'slot b lifted'
  run -0 redlock-cli release demo --slot a
  run -0 env -u REDLOCK_LEASE redlock-cli run -k demo --slots a -n -- true
}

@test "release --force --slot breaks the hold" {
  freeze
  run -0 --separate-stderr redlock-cli release demo --force --slot b
  assert_regex "$stderr" 'broken; it was on hold until .*: broken'
  run -0 redlock-cli run -k demo --slots b -n -- true
}

@test "without --slot a hold is for the whole lock, whatever a setting says of slots" {
  run -0 env REDLOCK_SLOTS=a,b redlock-cli hold demo --for 1h
  run -75 redlock-cli run -k demo --slots a,b -n -- true
  run -0 redlock-cli status demo
  assert_regex "${lines[0]}" 'demo: on hold until '
  redlock-cli release demo
  freeze
  run -75 redlock-cli hold demo --for 1h -n
  redlock-cli release demo --slot b
  run -0 env REDLOCK_SLOTS=a,b REDLOCK_SHARED=1 redlock-cli hold demo --slot b --for 1h
  run -0 redlock-cli run -k demo --slots a,b -n -- sh -c 'echo "$REDLOCK_SLOT_NAME"'
  assert_output a
}

@test "hold refuses a slot that is none, naming what is needed" {
  assert_refused 64 "--slot: needs --slots" redlock-cli hold demo --for 1h --slot b
  assert_refused 64 "--slot: d is not among the slots of --slots" \
    redlock-cli hold demo --for 1h --slots a,b --slot d
  assert_refused 64 "--slots: needs --slot, the one to hold" \
    redlock-cli hold demo --for 1h --slots a,b
  assert_refused 64 "hold needs a lease of its own" redlock-cli run -k demo --slots a,b -- \
    redlock-cli hold demo --slots a,b --slot a --for 1h
  assert_refused 64 "the enclosing run or acquire only shares the lock" \
    redlock-cli run -k demo --slots a,b -- redlock-cli hold demo --slots a,b --slot b --for 1h
  redlock-cli hold demo --slots a,b --slot a --for 1h
  assert_refused 78 "the slots of this lock have names" \
    redlock-cli hold demo --slots 4 --slot 1 --for 1h
}

@test "the token of a device's hold is shown to no user" {
  freeze
  local token
  # shellcheck disable=SC2016
  token=$(env -i sh -c '. "$0"; echo "$REDLOCK_TOKEN"' "$BATS_TEST_TMPDIR/lease")
  [[ -n $token ]]
  {
    redlock-cli status demo -v
    redlock-cli status demo --json
    redlock-cli run -k demo --slots a,b,c --slot b -n -vv --events-fd 2 -- true || true
    redlock-cli run -k demo --slots b -n -vv -- true || true
    redlock-cli run -k demo -n -vv --json -- true || true
    redlock-cli stop demo --slot b -vv --json || true
    REDLOCK_TRACE=2 redlock-cli release demo --slot b -vv --json
  } &>"$BATS_TEST_TMPDIR/shown"
  run -1 grep -F "$token" "$BATS_TEST_TMPDIR/shown"
}
