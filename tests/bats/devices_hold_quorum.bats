#!/usr/bin/env bats
# hold --slot on a quorum: the clients that meet it restore it where a server lost it, and never
# where it was lifted.
load helper/common
load helper/hold_quorum

setup() { setup_hold_quorum; }

freeze() { redlock-cli hold demo --slots a,b,c --slot b --for 1h --note broken; }
has_hold() {
  redis "$1" hvals 'redlock:shares:{demo}' | grep -q hold_ms &&
    [[ $(redis "$1" hget 'redlock:slots:{demo}' b) ]]
}
is_restorable() { is_old '.shares.first[] | select(.slot_name == "b")'; }

@test "a refused attempt restores it, and so does status" {
  freeze
  await_hold
  restart_server 1
  run -75 redlock-cli run -k demo --slots a,b,c --slot b -n -- true
  wait_until has_hold_everywhere
  restart_server 2
  redlock-cli status demo
  wait_until has_hold_everywhere
  # One that wants all of the lock meets it, too.
  restart_server 0
  run -75 redlock-cli run -k demo -n -- true
  wait_until has_hold_everywhere
  assert_equal "$(redis 0 hkeys 'redlock:slots:{demo}')" b
}

@test "rolling restarts with one client that waits: it is kept beside devices in use, and ends in time" {
  start_background one redlock-cli run -k demo --slots a,b,c --slot a -t 9s --grace 1s \
    --server-timeout 500ms -- sleep 60
  wait_until in_use
  freeze
  await_hold
  local ends nr id
  id=$(redis 0 hget 'redlock:slots:{demo}' b)
  ends=$(redis 0 zscore 'redlock:readers:{demo}' "$id")
  start_background next redlock-cli run -k demo --slots c,b --slot b -- \
    sh -c 'echo "$REDLOCK_SLOT_NAME"'
  wait_for_queued 1
  for nr in 0 1 2 0; do
    restart_server "$nr"
    wait_until has_hold_everywhere
    wait_until has_device "$nr" a
    assert_in_range "$(redis "$nr" zscore 'redlock:readers:{demo}' "$id")" \
      $((ends - 5000)) $((ends + 5000))
  done
  kill -0 "${BACKGROUND_PID[next]}"
  redlock-cli release demo --slot b
  wait_background next
  assert_equal "$status $output" "0 b"
  kill -0 "${BACKGROUND_PID[one]}"
}
has_device() { [[ $(redis "$1" hget 'redlock:slots:{demo}' "$2") ]]; }
in_use() { redlock-cli status demo --json | jq -e '.locks[0].shares.count == 1'; }

@test "lifted in the middle of rolling restarts it never returns" {
  freeze
  await_hold
  restart_server 1
  redlock-cli release demo --slot b
  run -0 redlock-cli run -k demo --slots b -n -- true
  restart_server 2
  redlock-cli status demo
  has_none_anywhere
}

@test "a server that missed the lift is cleared by the next client that meets it on a quorum" {
  freeze
  await_hold
  pause_server 2
  redlock-cli release demo --slot b --server-timeout 1s
  resume_server 2
  redlock-cli release demo --slot b
  wait_until has_none_anywhere
}

@test "a server where another has the device does not get the hold" {
  freeze
  await_hold
  restart_server 1
  # As if an attempt had been granted there, and were not undone.
  REDLOCK_SERVER=${SERVER_URL[1]} redlock-cli acquire -k demo --slots b --ttl 1m -q >/dev/null
  local other
  other=$(redis 1 hget 'redlock:slots:{demo}' b)
  # Its table of slots alone is lost.
  redis 1 del 'redlock:slots:{demo}' >/dev/null
  redlock-cli status demo
  run -75 redlock-cli run -k demo --slots b -n -- true
  assert_equal "$(redis 1 zrange 'redlock:readers:{demo}' 0 -1)" "$other"
}

@test "release --force --slot keeps it from returning, also where it was lost" {
  freeze
  wait_until has_hold_everywhere
  restart_server 1
  run -0 redlock-cli release demo --force --slot b
  [[ $(redis 1 exists 'redlock:released:{demo}') == 1 ]]
  wait_until has_none_anywhere
}
