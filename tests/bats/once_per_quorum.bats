#!/usr/bin/env bats
# run --once-per on several servers: any quorum finds a success that a quorum recorded.
load helper/common

setup() {
  common_setup
  start_servers 3
  export REDLOCK_SERVER=$SERVERS REDLOCK_RESTART_GUARD=0
}

once() { redlock-cli run -k demo --once-per 20h -- "$@"; }
learns() { redlock-cli run -k demo --once-per 20h -q -- false && knows "$1"; }
knows() { [[ $(redis "$1" exists 'redlock:last:{demo}') == 1 ]]; }

succeed_at_all_servers() {
  local nr
  run -0 once "$(granted_by_all)" true
  for nr in 0 1 2; do wait_until knows "$nr"; done
}

@test "a success that two servers recorded is found by any two" {
  local down
  kill_server 2
  run -0 once echo ran
  assert_output ran
  restart_server 2
  for down in 0 1 2; do
    pause_server "$down"
    run -0 once echo ran
    refute_line ran
    resume_server "$down"
  done
}

@test "one server with the record is enough for a quorum, and the other gets it" {
  succeed_at_all_servers
  restart_server 1
  pause_server 2
  run -0 once echo ran
  refute_line ran
  wait_until learns 1
  resume_server 2
  restart_server 2
  kill_server 0
  run -0 once echo ran
  refute_line ran
}

@test "a quorum that lost the record opens the period" {
  succeed_at_all_servers
  restart_server 1
  restart_server 2
  pause_server 0
  run -0 once echo ran
  assert_output ran
  resume_server 0
  # Of the two successes the later one counts.
  run -0 once echo ran
  refute_line ran
}

@test "a success that no quorum recorded is reported, and may be repeated" {
  local one=${SERVER_PID[1]} two=${SERVER_PID[2]}
  # Both are frozen from before the release until the run has given up.
  run -0 --separate-stderr redlock-cli run -k demo --once-per 20h --ttl 1m \
    --server-timeout 1s -- \
    "$(granted_by_all)" kill -STOP "$one" "$two"
  assert_regex "$stderr" \
    "no quorum of servers has recorded it yet: it may run again within --once-per 20h"
  resume_server 1
  resume_server 2
  # What they had not read yet records it after all.
  wait_until knows 1
  run -0 once echo ran
  refute_line ran
}

@test "a refused release records the success when it is retried in the background" {
  local i
  start_background ours redlock-cli run -k demo --once-per 20h --ttl 1m --server-timeout 1s -- \
    "$(granted_by_all)" sh -c 'echo entered; until [ -e "$0" ]; do sleep 0.1; done' \
    "$BATS_TEST_TMPDIR/end"
  wait_for_stdout ours entered
  for i in 1 2; do
    redis "$i" config set lua-time-limit 50 >/dev/null
    make_busy "$i"
  done
  touch "$BATS_TEST_TMPDIR/end"
  wait_background ours
  assert_equal "$status" 0
  assert_regex "$stderr" "no quorum of servers has recorded it yet"
  for i in 1 2; do end_busy "$i"; done
  for i in 1 2; do wait_until knows "$i"; done
  run -0 once echo ran
  refute_line ran
}

@test "a server whose clock was set back or forward does not outvote the others" {
  local now then record
  succeed_at_all_servers
  record=$(redis 1 get 'redlock:last:{demo}')
  now=$(($(redis 0 time | head -n 1) * 1000))
  # As if server 1's clock had been set forward by two days since, and back by three; the other two
  # may answer first, or one of them last.
  for then in $((now - 172800000)) $((now + 259200000)); do
    redis 1 set 'redlock:last:{demo}' "0 $then 1"$'\n'"1 1 $then $then 0 released 0 - {}" >/dev/null
    run -0 redlock-cli run -k demo --once-per 20h -- echo ran
    refute_line ran
    redis 1 set 'redlock:last:{demo}' "$record" >/dev/null
  done
}
