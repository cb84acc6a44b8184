#!/usr/bin/env bats
# run --slots NAME,NAME,… and --slot: a pool of named things.
load helper/common

setup() { setup_one_server; }

@test "the name is in the environment, and no number" {
  run -0 redlock-cli run -k demo --slots phone1,phone2 -- \
    sh -c 'echo "$REDLOCK_SLOT_NAME/$REDLOCK_SLOT_NAME_LIST/${REDLOCK_SLOT-none}"'
  assert_output "phone1/phone1/none"
  hold one --slots phone2,phone1
  run -0 env REDLOCK_SLOT=7 REDLOCK_SLOT_LIST=7 redlock-cli run -k demo --slots phone1,phone2 --json \
    -- sh -c 'echo "$REDLOCK_SLOT_NAME/${REDLOCK_SLOT-none}/${REDLOCK_SLOT_LIST-none}"'
  assert_line "phone1/none/none"
  run -0 redlock-cli run -k demo --slots a,b,c,d --take 3 -- \
    sh -c 'echo "$REDLOCK_SLOT_NAME: $REDLOCK_SLOT_NAME_LIST"'
  assert_output "a: a b c"
  release_hold one
  assert_equal "$status" 0
  assert_equal "$(keys_at 0)" ""
}

@test "hosts with other lists never mean two devices by one slot" {
  hold one --slots a,b
  run -0 redlock-cli run -n -k demo --slots b,a -- sh -c 'echo "$REDLOCK_SLOT_NAME"'
  assert_output b
  hold two --slots b,a,c
  run -0 redlock-cli run -n -k demo --slots c,b,a -- sh -c 'echo "$REDLOCK_SLOT_NAME"'
  assert_output c
  assert_refused 75 "demo: 2 of 2 slots taken" redlock-cli run -n -k demo --slots b,a -- true
  release_hold one
  release_hold two
}

@test "slots with numbers and with names exclude each other, both ways" {
  hold names --slots a,b
  assert_refused 78 "the slots of this lock have names: write --slots NAME,NAME" \
    redlock-cli run -n -k demo --slots 4 -- true
  assert_refused 78 "the slots of this lock have names" redlock-cli run -k demo --slots 4 -- true
  assert_refused 78 "the slots of this lock have names" redlock-cli stop demo --slot 0
  release_hold names
  hold numbers --slots 4
  assert_refused 78 "the slots of this lock have numbers: write --slots N" \
    redlock-cli run -k demo --slots a,b -- true
  release_hold numbers
  run -0 redlock-cli run -n -k demo --slots a,b -- true
}

@test "--slot takes exactly that one" {
  run -0 redlock-cli run -k demo --slots a,b,c --slot b -- sh -c 'echo "$REDLOCK_SLOT_NAME"'
  assert_output b
  run -0 redlock-cli run -k demo --slots 4 --slot 2 -- sh -c 'echo "$REDLOCK_SLOT/$REDLOCK_SLOT_LIST"'
  assert_output 2/2
  hold one --slots a,b,c --slot b
  assert_refused 75 "demo: " redlock-cli run -n -k demo --slots a,b,c --slot b -- true
  run -0 redlock-cli run -n -k demo --slots b,c -- sh -c 'echo "$REDLOCK_SLOT_NAME"'
  assert_output c
  release_hold one
}

@test "a waiter for one device neither keeps others waiting nor starves" {
  hold one --slots a,b --slot a
  find_promptly
  start_background first "${PROMPTLY[@]}" redlock-cli run -k demo --slots a,b --slot a --note first \
    -- sh -c 'echo "first $REDLOCK_SLOT_NAME" >>"$0"' "$BATS_TEST_TMPDIR/order"
  wait_until note_waits first
  run -0 redlock-cli run -k demo --slots a,b -w 20s -- sh -c 'echo "$REDLOCK_SLOT_NAME"'
  assert_output b
  run -0 redlock-cli status demo
  assert_output --partial "waiting for a: "
  # One that may take either waits, too, while both are taken.
  hold two --slots b
  start_background any "${PROMPTLY[@]}" redlock-cli run -k demo --slots a,b --note any \
    -- sh -c 'echo "any $REDLOCK_SLOT_NAME" >>"$0"' "$BATS_TEST_TMPDIR/order"
  wait_until note_waits any
  # It is told of the device that the first does not want.
  release_hold two
  wait_background any
  assert_equal "$(cat "$BATS_TEST_TMPDIR/order")" "any b"
  release_hold one
  wait_background first
  assert_equal "$(tail -n 1 "$BATS_TEST_TMPDIR/order")" "first a"
}

@test "status shows each device, and stop and release --force take one" {
  hold one --slots a,b,c --note mine
  hold two --slots a,b,c --note theirs
  run -0 redlock-cli status demo --slots a,b,c
  assert_line --regexp '^ *a: .*"mine"'
  assert_line --regexp '^ *b: .*"theirs"'
  assert_line --regexp '^ *free: c$'
  run -0 redlock-cli status
  assert_line --regexp "^demo +slots .* 2 of 3$"
  assert_equal "$(redlock-cli status demo --slots c,b,a --json |
    jq -c '.locks[0] | [(.shares.first | map(.slot_name) | sort), .free_slot_names]')" \
    '[["a","b"],["c"]]'
  run -0 redlock-cli status demo --slots a,b,c --exit-code
  run -75 redlock-cli status demo --slots a,b --exit-code
  run -75 redlock-cli status demo --slots 4 --exit-code
  assert_refused 64 "choose a slot with --slot SLOT" redlock-cli stop demo

  run -0 redlock-cli stop demo --slot a
  wait_background one
  assert_equal "$status" 143
  run -0 redlock-cli stop demo --slot a
  assert_output --partial "nothing to stop: slot a is free"
  run -0 redlock-cli release demo --force --slot a
  assert_output --partial "nothing to break: slot a is free"
  run -0 redlock-cli release demo --force --slot b --reason stuck
  assert_output --partial "broken; it was held by"
  wait_background two
  assert_equal "$status" 79
  assert_regex "$stderr" "stuck"
}

@test "acquire, extend and release work with the handle" {
  eval "$(redlock-cli acquire -k demo --ttl 1m --slots a,b,c.d --take 2 --export)"
  assert_equal "$REDLOCK_SLOT_NAME: $REDLOCK_SLOT_NAME_LIST ${REDLOCK_SLOT-none}" "a: a b none"
  run -0 redlock-cli extend --ttl 2m
  run -75 env -u REDLOCK_LEASE redlock-cli run -n -k demo --slots b,a -- true
  # Another lease forgets them.
  eval "$(env -u REDLOCK_LEASE redlock-cli acquire -k other --ttl 1m --export)"
  assert_equal "${REDLOCK_SLOT_NAME-none}" none
  run -0 redlock-cli release -k other
  unset REDLOCK_LEASE
  run -0 redlock-cli release demo --force
  run -0 redlock-cli acquire -k demo --ttl 1m --slots a,b --take 2 --json \
    --token-file "$BATS_TEST_TMPDIR/lease"
  assert_equal "$(jq -c '[.slot_name, .slot_names, .slot]' <<<"$output")" '["a",["a","b"],null]'
  assert_equal "$(. "$BATS_TEST_TMPDIR/lease" && echo "$REDLOCK_SLOT_NAME_LIST")" "a b"
  run -0 redlock-cli release --token-file "$BATS_TEST_TMPDIR/lease"
}

@test "a nested run has the same device" {
  run -0 redlock-cli run -k demo --slots a,b -- sh -c '
    redlock-cli run -k demo --slots b,a -n -- sh -c "echo \$REDLOCK_SLOT_NAME"
    redlock-cli run -k other -n -- sh -c "echo \${REDLOCK_SLOT_NAME-none}"'
  assert_output $'a\nnone'
  run -64 redlock-cli run -k demo --slots a,b -- redlock-cli run -k demo --slots b,c -- true
  run -64 redlock-cli run -k demo --slots a,b -- redlock-cli run -k demo --slots 2 -- true
  run -0 redlock-cli run -k demo -- \
    redlock-cli run -k demo --slots b,a -- sh -c 'echo "$REDLOCK_SLOT_NAME/${REDLOCK_SLOT-none}"'
  assert_output b/none
}

@test "--min-hold keeps the device" {
  redlock-cli run -k demo --slots a,b --min-hold 5m -- true
  run -0 redlock-cli run -n -k demo --slots a,b -- sh -c 'echo "$REDLOCK_SLOT_NAME"'
  assert_output b
  run -0 redlock-cli status demo
  assert_regex "$output" $'a: [^\n]*kept until'
}

@test "a pool from a variable, with a name that looks like a number" {
  run -0 env REDLOCK_SLOTS=1e3,0x10 redlock-cli run -k demo -- sh -c 'echo "$REDLOCK_SLOT_NAME"'
  assert_output 1e3
  # One name is a pool of one.
  hold one --slots 1e3
  run -75 redlock-cli run -n -k demo --slots 1e3 -- true
  release_hold one
}

# bats test_tags=redis
@test "with three servers one quorum must grant the same device" {
  start_servers 2
  export REDLOCK_SERVER=$SERVERS
  hold one --slots a,b,c
  run -0 redlock-cli run -k demo --slots c,b,a --take 2 -- sh -c 'echo "$REDLOCK_SLOT_NAME_LIST"'
  assert_output "c b"
  assert_refused 78 "the slots of this lock have names" redlock-cli run -k demo --slots 4 -- true
  release_hold one
}

# bats test_tags=redis
@test "a server that lost the lease of a device is healed by its name" {
  start_background one redlock-cli run -k demo --slots a,b --slot b -t 3s -- sleep 60
  wait_for_key 0 'redlock:slots:{demo}'
  redis 0 del 'redlock:slots:{demo}' >/dev/null
  wait_for_key 0 'redlock:slots:{demo}'
  assert_equal "$(redis 0 hkeys 'redlock:slots:{demo}')" b
  redlock-cli stop demo --slot b
}

@test "what is no pool is refused" {
  local many name
  assert_refused 64 "--slots: has the name a twice" redlock-cli run -k demo --slots a,b,a -- true
  for name in a,7 a, ,a a,-b 'a b' 'a/b' "$(printf 'x%.0s' {1..65})"; do
    assert_refused 64 "--slots: must be a number, or names separated by commas" \
      redlock-cli run -k demo "--slots=$name" -- true
  done
  assert_refused 64 "--slots: is empty" redlock-cli run -k demo --slots= -- true
  assert_refused 64 "--slots: must be a whole number from 1 to 1000" \
    redlock-cli run -k demo --slots 1001 -- true
  many=$(printf 'n%d,' {1..1001})
  assert_refused 64 "--slots: must be at most 1000 names" \
    redlock-cli run -k demo --slots "${many%,}" -- true
  assert_refused 64 "--take: 3 is more than the 2 of --slots" \
    redlock-cli run -k demo --slots a,b --take 3 -- true
  assert_refused 64 "--slot: needs --slots" redlock-cli run -k demo --slot a -- true
  assert_refused 64 "--slot: c is not among the slots of --slots" \
    redlock-cli run -k demo --slots a,b --slot c -- true
  assert_refused 64 "--slot: 4 is not among the slots of --slots" \
    redlock-cli run -k demo --slots 4 --slot 4 -- true
  assert_refused 64 "--slot" redlock-cli run -k demo --slots a,b --slot a --take 2 -- true
  run -0 redlock-cli release demo --slot a
  assert_output --partial "nothing to release: slot a is free"
}

@test "a thousand names work" {
  local many
  many=$(printf 'device-number-%d,' {1..1000})
  run -0 redlock-cli run -k demo --slots "${many%,}" --slot device-number-999 -- \
    sh -c 'echo "$REDLOCK_SLOT_NAME"'
  assert_output device-number-999
  run -0 redlock-cli run -k demo --slots "${many%,}" -- sh -c 'echo "$REDLOCK_SLOT_NAME"'
  assert_output device-number-1
}
