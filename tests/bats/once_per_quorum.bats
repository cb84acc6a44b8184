#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2154
# run --once-per on several servers: any quorum knows of a success that a quorum recorded.
load helper/common
load helper/redis
load helper/locks
load helper/checks

setup() {
  common_setup
  start_servers 3
  export REDLOCK_SERVER=$SERVERS REDLOCK_RESTART_GUARD=0
}

once() { redlock-cli run -k demo --once-per 20h -- "$@"; }
learns() { redlock-cli run -k demo --once-per 20h -q -- false && knows "$1"; }
knows() { [[ $(redis "$1" exists 'redlock:last:{demo}') == 1 ]]; }

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

@test "one server that is left with the record is enough for a quorum, and the other learns of it" {
  run -0 once true
  wait_until knows 0
  restart_server 1
  pause_server 2
  run -0 once echo ran
  refute_line ran
  # A server that grants only when a quorum has decided learns of it from a later run.
  wait_until learns 1
  resume_server 2
  restart_server 2
  kill_server 0
  run -0 once echo ran
  refute_line ran
}

@test "a quorum that lost the record opens the period" {
  local i
  run -0 once true
  for i in 0 1 2; do wait_until knows "$i"; done
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

@test "a success that no quorum recorded is told, and may be repeated" {
  local one=${SERVER_PID[1]} two=${SERVER_PID[2]}
  # Both stand still from before the release until the run has given up.
  run -0 --separate-stderr redlock-cli run -k demo --once-per 20h --ttl 3s --server-timeout 300ms -- sh -c 'kill -STOP "$@"' sh "$one" "$two"
  assert_regex "$stderr" "no quorum of servers has recorded it yet: it may run again within --once-per 20h"
  resume_server 1
  resume_server 2
  # What they had not read yet records it after all.
  wait_until knows 1
  run -0 once echo ran
  refute_line ran
}

@test "a release that is refused records the success when it is repeated in the background" {
  local i
  start_background ours redlock-cli run -k demo --once-per 20h --ttl 5m --server-timeout 300ms -- \
    sh -c 'echo entered; until [ -e "$0" ]; do sleep 0.02; done' "$BATS_TEST_TMPDIR/end"
  wait_until grep -q entered "$(background_stdout ours)"
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
  local i now then record
  run -0 once true
  for i in 0 1 2; do wait_until knows "$i"; done
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

# a_day_later: as if it were, by the servers' clocks: what they know of runs is a day older.
a_day_later() {
  local i
  for i in 0 1 2; do
    redis "$i" eval "local runs = redis.call('GET', KEYS[1]) or ''
      return redis.call('SET', KEYS[1], (string.gsub(runs, '%d%d%d%d%d%d%d%d%d%d%d%d%d', function(time)
        return string.format('%.0f', time - 86400000)
      end)))" 1 'redlock:last:{demo}' >/dev/null
  done
}

@test "ten hosts for ten days, one failing and one killing itself each day: one success a day" {
  local day host log=$BATS_TEST_TMPDIR/log
  : >"$log"
  for day in {1..10}; do
    for host in {0..9}; do
      start_background "c$day.$host" redlock-cli run -k demo --once-per 20h -q -- \
        sh -c 'case $1 in 0) exit 3 ;; 1) kill -9 $$ ;; esac; echo "$0" >>"$2"' "$day" "$host" "$log"
    done
    for host in {0..9}; do wait_background "c$day.$host"; done
    assert_equal "$day: $(grep -cx "$day" "$log")" "$day: 1"
    a_day_later
  done
}

# What a host of these nights runs; $1 is its number, $2 the night, $3 the log. Never two at once:
# whoever fails to lock $3 alone says so.
nightly_job() {
  executable job <<'EOF'
#!/bin/bash
exec 9>>"$3.alone"
flock -n 9 || echo overlap >>"$3"
case $1 in 38) exit 3 ;; 39) kill -9 $$ ;; esac
echo "$2" >>"$3"
EOF
}

@test "forty hosts for three nights, their clocks up to 90 s off, a server down in one: one success a night, and no overlap" {
  local night host job shift log=$BATS_TEST_TMPDIR/log
  : >"$log"
  c++ -x c -shared -fPIC -o "$BATS_TEST_TMPDIR/shifted_clock.so" "$BATS_TEST_DIRNAME/helper/shifted_clock.c"
  job=$(nightly_job)
  shifted() { LD_PRELOAD=$BATS_TEST_TMPDIR/shifted_clock.so CLOCK_IS_OFF=$1 "${@:2}"; }
  assert_in_range "$(($(shifted 90 /usr/bin/python3 -c 'import time; print(int(time.time()))') - $(date +%s)))" 85 95
  for night in 1 2 3; do
    ((night != 2)) || kill_server 1
    # Whose clock is ahead begins first.
    for host in {39..0}; do
      shift=$((host * 180 / 39 - 90))
      start_background "c$night.$host" shifted "$shift" redlock-cli run -k demo --once-per 20h -q -- "$job" "$host" "$night" "$log"
    done
    for host in {0..39}; do wait_background "c$night.$host"; done
    ((night != 2)) || restart_server 1
    assert_equal "$(grep -cx "$night" "$log") $(grep -c . "$log")" "1 $night"
    a_day_later
  done
}
