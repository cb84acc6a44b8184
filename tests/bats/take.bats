#!/usr/bin/env bats
# run --slots N --take M: several slots at once.
load helper/common

setup() { setup_one_server; }

@test "both slots are in the environment, the lowest as REDLOCK_SLOT" {
  hold small --slots 4
  run --separate-stderr -0 redlock-cli run -k demo --slots 4 --take 2 --json -- \
    sh -c 'echo "$REDLOCK_SLOT: $REDLOCK_SLOT_LIST"'
  assert_equal "$output" "1: 1 2"
  run -0 redlock-cli run -k demo --slots 4 -- sh -c 'echo "$REDLOCK_SLOT: $REDLOCK_SLOT_LIST"'
  assert_equal "$output" "1: 1"
  release_hold small
}

@test "others find both slots taken, and status shows who has each" {
  hold big --slots 3 --take 2 --note "two GPUs"
  run -0 redlock-cli run -n -k demo --slots 3 -- sh -c 'echo "$REDLOCK_SLOT"'
  assert_output 2
  assert_refused 75 "demo: 2 of 2 slots taken, the latest by" \
    redlock-cli run -n -k demo --slots 2 -- true
  assert_refused 75 "demo: 2 of 3 slots taken, the latest by" \
    redlock-cli run -n -k demo --slots 3 --take 2 -- true
  assert_refused 75 "demo: the wanted slot is taken; of all 3, the latest by" \
    redlock-cli run -n -k demo --slots 3 --slot 0 -- true
  assert_refused 75 "demo: held in slots, the latest by" redlock-cli run -n -k demo -- true
  run -0 redlock-cli status demo
  assert_regex "$output" $'slot 0: [^\n]*"two GPUs"[^\n]*\n *slot 1: [^\n]*"two GPUs"'
  run -0 redlock-cli status
  assert_line --regexp "^demo +slots +[^ ]+ sh \"two GPUs\" +${BACKGROUND_PID[big]} .* 2 of 3$"
  assert_equal "$(redlock-cli status demo --json |
    jq -c '.locks[0].shares.first | [map(.slot), (map(.lease_id) | unique | length)]')" "[[0,1],1]"
  release_hold big
  assert_equal "$status" 0
  assert_equal "$(keys_at 0)" ""
}

@test "a waiter for several slots is not starved, and -n beside its reserved slot names it" {
  hold one --slots 2
  hold two --slots 2
  find_promptly
  start_background big "${PROMPTLY[@]}" redlock-cli run -k demo --slots 2 --take 2 --note big \
    -- sh -c 'echo big >>"$0"' "$BATS_TEST_TMPDIR/order"
  wait_until note_waits big
  start_background small "${PROMPTLY[@]}" redlock-cli run -k demo --slots 2 --note small \
    -- sh -c 'echo small >>"$0"' "$BATS_TEST_TMPDIR/order"
  wait_until note_waits small
  release_hold one
  local who
  who="$(id -un)@$(hostname) (run pid ${BACKGROUND_PID[big]}: sh), \"big\""
  assert_refused 75 "demo: a slot is free, but $who waits for 2 of them and comes first" \
    redlock-cli run -n -k demo --slots 2 -- true
  run -0 redlock-cli status demo
  assert_output --partial "waiting for 2 slots: $who"
  release_hold two
  wait_background big
  wait_background small
  assert_equal "$(paste -sd ' ' "$BATS_TEST_TMPDIR/order")" "big small"
}

@test "a holder that loses one of its slots loses the lock" {
  start_background big redlock-cli run -k demo --slots 3 --take 2 -t 6s -- sleep 60
  wait_for_key 0 'redlock:slots:{demo}'
  local id
  id=$(redis 0 hget 'redlock:slots:{demo}' 1)
  redis 0 zrem 'redlock:readers:{demo}' "$id" >/dev/null
  hold other --slots 3
  [[ $(redis 0 hget 'redlock:slots:{demo}' 1) != "$id" ]] || skip "it was given back before"
  wait_background big
  assert_equal "$status" 79
  release_hold other
  assert_equal "$status" 0
}

@test "acquire, extend and release work with the handle" {
  eval "$(redlock-cli acquire -k demo --ttl 1m --slots 4 --take 3 --export)"
  assert_equal "$REDLOCK_SLOT: $REDLOCK_SLOT_LIST" "0: 0 1 2"
  run -0 redlock-cli extend --ttl 2m
  run -75 env -u REDLOCK_LEASE redlock-cli run -n -k demo --slots 3 -- true
  run -0 redlock-cli release
  unset REDLOCK_LEASE
  run -0 redlock-cli acquire -k demo --ttl 1m --slots 2 --take 2 --json
  assert_equal "$(jq -c '[.slot, .slots]' <<<"$output")" "[0,[0,1]]"
}

@test "--min-hold keeps all of them" {
  redlock-cli run -k demo --slots 3 --take 2 --min-hold 5m -- true
  run -75 redlock-cli run -n -k demo --slots 2 -- true
  run -0 redlock-cli run -n -k demo --slots 3 -- sh -c 'echo "$REDLOCK_SLOT"'
  assert_output 2
  run -0 redlock-cli status demo
  assert_regex "$output" $'slot 0: [^\n]*kept until[^\n]*\n *slot 1: [^\n]*kept until'
}

@test "a nested run has the same slots, and acquires other locks as usual" {
  run -0 redlock-cli run -k demo --slots 4 --take 2 -- sh -c '
    redlock-cli run -k demo --slots 4 --take 2 -n -- sh -c "echo \$REDLOCK_SLOT_LIST" &&
      redlock-cli run -k other -n -- sh -c "echo \${REDLOCK_SLOT_LIST-none}"'
  assert_output $'0 1\nnone'
  run -64 redlock-cli run -k demo --slots 4 -- redlock-cli run -k demo --slots 4 --take 2 -- true
}

# bats test_tags=redis
@test "with three servers one quorum must grant the whole set" {
  start_servers 2
  export REDLOCK_SERVER=$SERVERS
  hold one --slots 4
  run -0 redlock-cli run -k demo --slots 4 --take 3 -- sh -c 'echo "$REDLOCK_SLOT_LIST"'
  assert_output "1 2 3"
  release_hold one
}

@test "contradictions are refused" {
  assert_refused 64 "--take: needs --slots" \
    redlock-cli run -k demo --take 2 -- true
  assert_refused 64 "--take: 5 is more than the 4 of --slots" \
    redlock-cli acquire -k demo --ttl 1m --slots 4 --take 5
  assert_refused 64 "--take: must be at least 1" \
    redlock-cli run -k demo --slots 4 --take 0 -- true
}
