#!/usr/bin/env bats
# run --once-per on many hosts, night after night: one success each, and never two runs at once.
load helper/common

setup() {
  common_setup
  start_servers 3
  # Forty clients at once may keep a server busy for longer than the usual timeout.
  export REDLOCK_SERVER=$SERVERS REDLOCK_RESTART_GUARD=0 REDLOCK_SERVER_TIMEOUT=3s
}

# a_day_later: makes all recorded runs a day older, as if the servers' clocks had advanced.
a_day_later() {
  local i
  for i in 0 1 2; do
    redis "$i" eval "local runs = redis.call('GET', KEYS[1]) or ''
      return redis.call('SET', KEYS[1], (string.gsub(runs, '%d%d%d%d%d%d%d%d%d%d%d%d%d',
        function(time)
          return string.format('%.0f', time - 86400000)
        end)))" 1 'redlock:last:{demo}' >/dev/null
  done
}

# The job of a host; $1 is its number, $2 the night, $3 the log. A job that cannot lock $3
# exclusively reports an overlap.
nightly_job() {
  executable job <<'EOF'
#!/bin/bash
exec 9>>"$3.alone"
flock -n 9 || echo overlap >>"$3"
case $1 in 38) exit 3 ;; 39) kill -9 $$ ;; esac
echo "$2" >>"$3"
EOF
}

no_releasers() { [[ -z $(processes_named lock-releaser) ]]; }

@test "forty hosts for three nights, their clocks up to 90 s off, a server down in one: one success a night, and no overlap" {
  local night host job shift log=$BATS_TEST_TMPDIR/log
  : >"$log"
  job=$(nightly_job)
  shifted() { "${REDLOCK_CLI%/*}/../tests/shifted-clock" "$@"; }
  mkdir -m 700 "$BATS_TEST_TMPDIR/locks"
  run -0 shifted 90 redlock-cli run -S "local:$BATS_TEST_TMPDIR/locks" -k clock -- \
    sh -c 'echo $((REDLOCK_FENCE / 1000))'
  assert_in_range "$((output - $(date +%s)))" 85 95
  # NIGHTS=20, for example, for more of them.
  for ((night = 1; night <= ${NIGHTS:-3}; ++night)); do
    ((night % 3 != 2)) || kill_server 1
    # The host whose clock is ahead begins first.
    for host in {39..0}; do
      shift=$((host * 180 / 39 - 90))
      start_background "c$night.$host" shifted "$shift" redlock-cli run -k demo --once-per 20h -q \
        -- "$job" "$host" "$night" "$log"
    done
    for host in {0..39}; do WAIT_LIMIT=120 wait_background "c$night.$host"; done
    ((night % 3 != 2)) || restart_server 1
    assert_equal "$(grep -cx "$night" "$log") $(grep -c . "$log")" "1 $night"
    a_day_later
  done
  # Before their servers end, as some hosts were content with a quorum's answers to a release.
  wait_until no_releasers
}
