#!/usr/bin/env bats
# Runs the examples of the documents: each fenced block with a name after its language, ```sh
# run=NAME.
load helper/common
load helper/documents

setup() {
  DOCS=$BATS_TEST_DIRNAME/../../docs
  setup_documents
}

teardown() {
  stop_postgresql
  # The detached holder of a failed test must not stay.
  [[ -z ${HOLDER-} ]] || kill -KILL "$HOLDER" 2>/dev/null || true
  common_teardown
}

# script FILE NAME AS: a block as a program in this directory.
script() {
  block "$1" "$2" >"$3"
  chmod 755 "$3"
}

# crontab_command NAME [FILE]: the command of a line of the cron recipe or of FILE, with the tests'
# programs.
crontab_command() {
  block "${2:-recipes/cron.md}" "$1" | sed -E 's/^[^ ]+( [^ ]+){4} //; s|/usr/local/bin/||g'
}

@test "each named block is run by a test in this file" {
  local names name
  names=$(grep -rhoE '^ *```[a-z]+ run=[^ ]+$' "$DOCS" | sed 's/.*run=//')
  (($(wc -l <<<"$names") > 30)) || fail "there are $(wc -l <<<"$names") only"
  assert_equal "$(sort <<<"$names" | uniq -d)" ""
  for name in $names; do
    grep -qE "(block|script) [a-z/-]+\.md $name\b|in_image $name\b|crontab_command $name\b|unit_command $name\b" \
      "$BATS_TEST_FILENAME" || fail "$name is run nowhere"
  done
}

# --- cron ---

@test "cron: one of two hosts does the work, the other is silent and succeeds" {
  slow_job backup
  start_background one sh -c "$(crontab_command nightly)"
  wait_until count_runs 1
  run -0 --separate-stderr sh -c "$(crontab_command nightly)"
  assert_equal "$output$stderr" ""
  : >enough
  wait_background one
  assert_equal "$status" 0
  # It ended at once, and others are excluded for another minute.
  run -0 sh -c "$(crontab_command nightly)"
  assert count_runs 1
}

@test "cron: in turn, without overlap, with chronic and with a monitor" {
  program backup <<<$'#!/bin/sh\necho run >>runs'
  program sync-files <<<$'#!/bin/sh\necho sync >>syncs'
  program chronic <<<$'#!/bin/sh\n"$@" >chronic.out'
  program curl <<<$'#!/bin/sh\necho "$@" >>pings'
  run -0 sh -c "$(crontab_command in-turn)"
  run -0 sh -c "$(crontab_command in-turn)"
  assert count_runs 2
  mkdir -m 700 locks
  run -0 sh -c "$(crontab_command no-overlap | sed "s|local:|local:$PWD/locks|")"
  assert_equal "$(<syncs)" sync
  run -0 sh -c "$(crontab_command chronic)"
  assert count_runs 3
  redis 0 flushall >/dev/null
  PING_URL=https://monitor.example/1 run -0 sh -c "$(crontab_command healthchecks)"
  assert_regex "$(<pings)" 'https://monitor.example/1$'
  # Skipped: no ping.
  PING_URL=https://monitor.example/2 run -0 sh -c "$(crontab_command healthchecks)"
  assert_equal "$(wc -l <pings)" 1
}

@test "cron: a dump that fails in a pipe leaves the last good one" {
  program dump-database <<<$'#!/bin/sh\necho good'
  local command
  command=$(crontab_command pipe | sed 's/ --once-per 20h --min-hold 1m//')
  run -0 sh -c "$command"
  program dump-database <<<$'#!/bin/sh\necho part; exit 4'
  run -4 sh -c "$command"
  assert_equal "$(zcat shop.gz)" good
}

@test "cron: a job that fails is not done again on the same day" {
  program send-reports <<<$'#!/bin/sh\necho run >>runs; exit 3'
  run -3 sh -c "$(crontab_command at-most-once)"
  run -0 sh -c "$(crontab_command at-most-once)"
  assert_output ""
  assert count_runs 1
}

@test "cron: a hook takes the lock for the program that runs it" {
  block recipes/cron.md hook >hook
  # Its parent, which runs no other command: the shell must not replace itself by the hook.
  start_background parent sh -c 'sh ./hook && echo >locked; until [ -e enough ]; do sleep 0.1; done'
  wait_until test -e locked
  run -75 redlock-cli run -k backup-target -n -- true
  : >enough
  wait_background parent
  run -0 redlock-cli run -k backup-target -w 20s -- true
}

@test "cron: a command does not see the token" {
  program backup <<<$'#!/bin/sh\nenv >environment'
  run -0 sh -c "$(block recipes/cron.md no-token)"
  run -0 grep -c '^REDLOCK_KEY=' environment
  run -1 grep -E '^REDLOCK_(TOKEN|LEASE|HELD)=' environment
}

@test "cron: a succeeded job is run again without --once-per" {
  program backup <<<$'#!/bin/sh\necho run >>runs'
  local command
  command=$(crontab_command nightly)
  command=${command/--min-hold 1m /}
  run -0 sh -c "$command"
  run -0 sh -c "$command"
  assert count_runs 1
  run -0 sh -c "$(block recipes/cron.md again | sed 's|/usr/local/bin/||')"
  assert count_runs 2
}

@test "cron: a program that ends with a warning has done the work for all hosts" {
  program borg <<<$'#!/bin/sh\necho run >>runs; exit 1'
  local command
  command=$(crontab_command warnings)
  command=${command/--min-hold 1m /}
  run -1 sh -c "$command"
  run -0 sh -c "$command"
  assert count_runs 1
  run -0 redlock-cli status nightly --max-age 26h
}

@test "cron: a program that cleans up at INT gets it in place of TERM" {
  program restic <<<$'#!/bin/bash\ntrap "echo unlocked >>runs; exit 130" INT\necho run >>runs
while :; do sleep 0.05; done'
  start_background backup sh -c "exec $(crontab_command clean-up)"
  wait_until count_runs 1
  kill -TERM "${BACKGROUND_PID[backup]}"
  wait_background backup
  assert_equal "$status $(tail -n 1 runs)" "130 unlocked"
}

@test "cron: a job that hangs is stopped at the limit, and that is reported" {
  slow_job backup
  run -124 sh -c "$(crontab_command hung | sed 's/max-hold 6h/max-hold 1s/; s/--min-hold 1m//')"
  assert_output --partial "held for 1s, the limit of --max-hold"
}

@test "cron: hosts that wait for the servers do the job once after these return" {
  program backup <<<$'#!/bin/sh\necho run >>runs'
  stop_server 0
  local host command
  command=$(crontab_command patient)
  assert_regex "$command" '--unavailable-wait 10m'
  for host in one two; do start_background "$host" sh -c "${command/ -q / -v }"; done
  for host in one two; do wait_for_stderr "$host" "no quorum"; done
  restart_server 0
  for host in one two; do
    wait_background "$host"
    assert_equal "$status" 0
  done
  assert count_runs 1
}

@test "cron: in the morning, a mail only about overdue jobs" {
  program chronic <<<$'#!/bin/sh\n"$@" >said || { code=$?; cat said; exit "$code"; }'
  run -1 sh -c "$(crontab_command overdue)"
  assert_output --partial nightly
  redlock-cli run -k nightly -- true
  run -0 sh -c "$(crontab_command overdue)"
  assert_output ""
}

@test "cron: the configuration is valid" {
  block recipes/cron.md configuration >system.toml
  run -0 env -u REDLOCK_SERVER redlock-cli doctor --settings --config system.toml
  assert_output --partial redis://10.0.0.1
}

# --- systemd ---

# unit_command NAME: the ExecStart of a unit, with the tests' programs.
unit_command() {
  block recipes/systemd.md "$1" | sed -En 's/^ExecStart=//p' |
    sed 's|/usr/bin/||; s|/usr/local/bin/||'
}

@test "systemd: the units pass systemd-analyze, if it is installed" {
  command -v systemd-analyze >/dev/null || skip "no systemd-analyze here"
  block recipes/systemd.md timer-service |
    sed 's|^ExecStart=.*|ExecStart=/bin/true|' >report.service
  block recipes/systemd.md timer >report.timer
  block recipes/systemd.md standby | sed 's|^ExecStart=.*|ExecStart=/bin/true|' >importer.service
  run -0 systemd-analyze --man=no verify ./report.service ./report.timer ./importer.service
}

@test "systemd: the timer's second host exits with 75, and a later one finds the report done" {
  assert_regex "$(block recipes/systemd.md timer)" 'OnCalendar='
  local command
  command=$(unit_command timer-service | sed 's/--min-hold 2m //')
  slow_job report
  start_background one sh -c "exec $command"
  wait_until count_runs 1
  run -75 sh -c "exec $command"
  : >enough
  wait_background one
  run -0 sh -c "exec $command"
  assert count_runs 1
}

standby_waits() { [[ $(redis 0 zcard 'redlock:queue:{importer}') == 1 ]]; }

@test "systemd: the standby starts when the first is stopped with TERM" {
  program importer <<'END_OF_JOB'
#!/bin/sh
echo run >>runs
exec sleep 1000
END_OF_JOB
  unset REDLOCK_SERVER_TIMEOUT # its ttl has no room for it
  start_background first sh -c "exec $(unit_command standby)"
  wait_until count_runs 1
  start_background second sh -c "exec $(unit_command standby)"
  wait_until standby_waits
  kill -TERM "${BACKGROUND_PID[first]}"
  wait_until count_runs 2
  kill -TERM "${BACKGROUND_PID[second]}"
  wait_background second
}

@test "systemd: a timer of a host that was off makes the report only if no other host has" {
  block recipes/systemd.md timer >report.timer
  mkdir report.timer.d
  block recipes/systemd.md timer-persistent >report.timer.d/persistent.conf
  assert_regex "$(<report.timer.d/persistent.conf)" 'Persistent=true'
  if command -v systemd-analyze >/dev/null; then
    block recipes/systemd.md timer-service |
      sed 's|^ExecStart=.*|ExecStart=/bin/true|' >report.service
    run -0 systemd-analyze --man=no verify ./report.service ./report.timer
  fi
  program report <<<$'#!/bin/sh\necho run >>runs'
  local host command
  command=$(unit_command timer-service | sed 's/--min-hold 2m //')
  for host in one two; do run -0 sh -c "exec $command"; done
  assert count_runs 1
}

# --- Monitoring, and rights ---

@test "cron: the last nights are shown" {
  run -0 redlock-cli run -k nightly -- true
  run -3 redlock-cli run -k nightly -- sh -c 'exit 3'
  run -0 sh -c "$(block recipes/cron.md nights)"
  assert_line --partial "exit 3"
  assert_line --partial "exit 0"
}

@test "monitoring: the check is critical without a success, and with a command that hangs" {
  local check
  check=$(block recipes/monitoring.md check)
  run -2 sh -c "$check"
  redlock-cli run -k nightly -- true
  run -0 sh -c "$check"
  slow_job nightly
  start_background job redlock-cli run -k nightly -- nightly
  wait_until count_runs 1
  run -0 sh -c "$check"
  run -2 sh -c "${check/held 6h/held 1ms}"
  assert_output --partial "longer than 1ms"
  : >enough
  wait_background job
  stop_server 0
  run -3 sh -c "$check"
}

@test "monitoring: one check of many locks, with the same limits or with limits of their own" {
  redlock-cli run -k nightly -- true
  redlock-cli run -k hourly -- true
  block recipes/monitoring.md check-all | sed "s|/etc/redlock-keys|keys|" >all
  block recipes/monitoring.md check-each | sed "s|/etc/redlock-limits|limits|" >each
  printf '%s\n' nightly hourly >keys
  printf '%s\n' 'nightly 26h' 'hourly 2h' >limits
  run -0 sh all
  assert_equal "${#lines[@]}" 2
  run -0 sh each
  assert_output ""
  echo weekly >>keys
  echo 'weekly 8d' >>limits
  run -2 sh all
  assert_equal "${#lines[@]}" 3
  run -2 sh each
  assert_equal "${#lines[@]}" 1
  assert_output --partial "weekly: no successful run is known"
  stop_server 0
  run -3 sh all
  run -3 sh each
  assert_output --partial "no quorum of servers answered"
}

# The end of the command of `deploy`, which is held, by the last of these lines.
end_of_deploy() {
  local lines=$1
  start_background ours redlock-cli run -k deploy --ttl 9s --server-timeout 1s -- \
    sh -c 'echo entered; exec sleep 1000'
  wait_for_stdout ours entered
  block recipes/stuck.md stuck | sed -n "$lines" |
    sed "s/ 4711 / ${BACKGROUND_PID[ours]} /; s/1795909198277/$(fence_at 0 deploy)/" >steps
  REDLOCK_SERVER_TIMEOUT=20s run sh steps
  wait_background ours
}

# bats test_tags=redis
@test "at 3 a.m.: each step frees the lock" {
  assert_equal "$(block recipes/stuck.md stuck | wc -l)" 6
  program ssh <<<$'#!/bin/sh\nshift\nexec "$@"'
  end_of_deploy 1,4p
  assert_equal "$status" 143
  assert_regex "$stderr" INC-42
  end_of_deploy 5p
  assert_equal "$status" 137
  end_of_deploy 6p
  assert_equal "$status" 79
}

@test "monitoring: the metrics are replaced atomically, stay when no server answers, and are those of the alerts" {
  mkdir textfiles
  block recipes/monitoring.md textfile | sed "s|/var/lib/prometheus/node-exporter|$PWD/textfiles|" |
    executable metrics.sh >/dev/null
  redlock-cli run -k nightly -- true
  run -0 ./metrics.sh
  assert_equal "$(ls textfiles)" redlock.prom
  assert_equal "$(stat -c %a textfiles/redlock.prom)" 644
  local name
  for name in $(block recipes/monitoring.md alerts | grep -oE 'redlock_[a-z_]+'); do
    grep -q "^$name{key=\"nightly\"} " textfiles/redlock.prom || fail "$name"
  done
  stop_server 0
  cp textfiles/redlock.prom before
  run -69 ./metrics.sh
  assert_equal "$(ls textfiles)" redlock.prom
  cmp before textfiles/redlock.prom
}

@test "rights: the two files are enough for a user of the group" {
  block recipes/rights.md rights-configuration >redlock-cli.toml
  echo secret >redlock-cli.password
  redis 0 acl setuser locker on '>secret' '~*' '&*' +@all >/dev/null
  mkdir etc
  sh -c "$(block recipes/rights.md rights-files |
    sed "s| /etc/| $PWD/etc/|; s|-o root -g [a-z]*|-o $(id -u) -g $(id -g)|")"
  assert_equal "$(stat -c %a etc/redlock-cli.toml) $(stat -c %a etc/redlock-cli.password)" "644 640"
  sed -i "s|redis://locker@10.0.0.1:6379|unix://locker@${SERVER_SOCKET[0]}|; s|/etc/|$PWD/etc/|" \
    etc/redlock-cli.toml
  unset REDLOCK_SERVER
  run -0 redlock-cli run --config etc/redlock-cli.toml -k job -- true
  rm etc/redlock-cli.password
  run -78 redlock-cli run --config etc/redlock-cli.toml -k job -- echo ran
  refute_line ran
}

@test "rights: a team locks and breaks only its own locks" {
  local rule name
  for name in team-a team-b; do
    rule=$(block recipes/rights.md team | tr -s ' \n' ' ')
    # shellcheck disable=SC2086  # words of the rule
    assert_equal "$(set -f; redis 0 ${rule//team-a/$name})" OK
  done
  as() { REDLOCK_SERVER=unix://$1:PASSWORD@${SERVER_SOCKET[0]} redlock-cli "${@:2}"; }
  run -0 as team-b acquire -k team-b:job --ttl 1m
  run -77 as team-a run -k team-b:job -n -- true
  run -77 as team-a release team-b:job --force
  run -75 as team-b run -k team-b:job -n -- true
  run -0 as team-a run -k 'team-a:{x}:job' -n -- true
  # There is no role that locks and does not break.
  run -0 as team-b release team-b:job --force
}

@test "rights: a read-only user sees everything, and changes nothing" {
  local rule
  rule=$(block recipes/rights.md look | tr -s ' \n' ' ')
  # shellcheck disable=SC2086  # words of the rule
  assert_equal "$(set -f; redis 0 $rule)" OK
  run -0 redlock-cli run -k job --note why -- true
  export REDLOCK_SERVER=unix://monitor:PASSWORD@${SERVER_SOCKET[0]}
  run -0 redlock-cli status job --runs
  assert_line --partial '"why"'
  run -0 redlock-cli status --openmetrics
  assert_line 'redlock_lock_held{key="job"} 0'
  run -77 redlock-cli run -k job -n -- true
  redlock-cli acquire -S "${SERVER_URL[0]}" -k job --ttl 1m >/dev/null
  run -77 redlock-cli release job --force
}

# --- CI ---

@test "CI: the action waits, runs its command under the lock, and passes on its status" {
  local action=$BATS_TEST_DIRNAME/../../packaging/github-action
  export LOCK_PACKAGE=installed
  LOCK_KEY=$'  staging \n\tschema\n' \
    LOCK_RUN='echo "$REDLOCK_KEY" ${LOCK_KEY-unset} $LOCK_DIR; exit 7' \
    LOCK_WAIT=5s LOCK_DIR=ours run -7 "$action/run.sh"
  assert_line schema
  assert_line "staging unset ours"
  redlock-cli acquire -k staging --ttl 1m >/dev/null
  LOCK_KEY=staging LOCK_RUN=true LOCK_WAIT=0 LOCK_OPTIONS=$'--retry-delay\n1s' \
    run -75 "$action/run.sh"
}

@test "CI: the action does not run without servers, a key, a command or the checksum of its download" {
  local action=$BATS_TEST_DIRNAME/../../packaging/github-action
  export LOCK_PACKAGE=installed
  REDLOCK_SERVER='' LOCK_KEY=a LOCK_RUN='echo ran' run -78 "$action/run.sh"
  assert_output --partial "input servers is empty"
  LOCK_KEY='' LOCK_RUN='echo ran' run -64 "$action/run.sh"
  assert_output --partial "input key is empty"
  LOCK_KEY=a LOCK_RUN='echo ran' LOCK_PACKAGE=http://x run -64 "$action/run.sh"
  assert_output --partial sha256
  LOCK_KEY=a LOCK_RUN=$'  \n' run -64 "$action/run.sh"
  assert_output --partial "input run is empty"
  LOCK_KEY=a LOCK_RUN='echo ran' LOCK_OPTIONS=$'-q\n --ttl 60s' run -64 "$action/run.sh"
  assert_output --partial "write --ttl=60s"
}

# release_for_action: what the action fetches, of the program under test, by a curl that gets it from
# here; $URL is what it asked for. PATH has no other redlock-cli.
release_for_action() {
  local version
  version=$(redlock-cli --version | sed -n '1s/.* //p')
  NAME=redlock-cli-$version-linux-$(uname -m) TAG=v$version
  mkdir -p "$NAME/bin" runner
  cp "$REDLOCK_CLI" "$NAME/bin/redlock-cli"
  tar -czf release.tar.gz "$NAME"
  program curl <<END
#!/bin/bash
echo "\${@: -1}" >"$PWD/asked"
cp "$PWD/release.tar.gz" "\${@: -2:1}"
END
  export RUNNER_TEMP=$PWD/runner GITHUB_SERVER_URL=https://github.example
  export LOCK_KEY=staging LOCK_RUN='redlock-cli status staging --exit-code -q || echo "held: $?"'
  export LOCK_REPOSITORY=owner/redlock-cli LOCK_REF=$TAG
}

@test "CI: the action fetches the file of its own release, and checks it by its sum" {
  local run=$BATS_TEST_DIRNAME/../../packaging/github-action/run.sh
  release_for_action
  LOCK_SHA256=$(sha256sum release.tar.gz | cut -d ' ' -f 1) run -0 "$run"
  assert_line "held: 75"
  assert_equal "$(<asked)" \
    "https://github.example/owner/redlock-cli/releases/download/$TAG/$NAME.tar.gz"
  LOCK_SHA256=$(printf '0%.0s' {1..64}) run -65 "$run"
  assert_output --partial "is not what the input sha256 says"
  refute_output --partial held
  LOCK_REF=main run -64 "$run"
  assert_output --partial "by the tag of a release"
}

@test "CI: without a sum, the action wants its release's attestation" {
  local run=$BATS_TEST_DIRNAME/../../packaging/github-action/run.sh
  release_for_action
  program gh <<<'#!/bin/sh
echo "$GH_TOKEN: $*" >gh-arguments
exit "${GH_SAYS-0}"'
  LOCK_TOKEN=secret run -0 "$run"
  assert_line "held: 75"
  # Who built it, and from which tag.
  local arguments
  arguments=$(<gh-arguments)
  assert_regex "$arguments" "^secret: attestation verify $RUNNER_TEMP/.* --repo owner/redlock-cli "
  assert_regex "$arguments" " --signer-workflow owner/redlock-cli/.github/workflows/release.yml "
  assert_regex "$arguments" " --source-ref refs/tags/$TAG\$"
  GH_SAYS=1 run -65 "$run"
  assert_output --partial "has no attestation of its release"
  refute_output --partial held
}

# release_for_images: $LOCK_RELEASE has a release of the program under test, for wget and curl alike,
# and the image has nothing else of it.
release_for_images() {
  release_for_action
  mkdir release
  cp "$BATS_TEST_DIRNAME/../../packaging/install.sh" release/
  cp release.tar.gz "release/$NAME.tar.gz"
  (cd release && sha256sum "$NAME.tar.gz" >SHA256SUMS)
  program wget <<END
#!/bin/bash
# -q -O FILE URL, -fsSL --retry 3 -o FILE URL
url=\${@: -1}
[[ \$url == https://*/releases/download/v*/* ]] || exit 1
exec cp "$PWD/release/\${url##*/}" "\${@: -2:1}"
END
  cp "$BIN/wget" "$BIN/curl"
  program apk <<<$'#!/bin/sh\nexit 0'
  program make <<<$'#!/bin/sh\nredlock-cli status staging --exit-code -q; echo "$*: $?"; command -v redlock-cli'
  # An image of Alpine has no make.
  executable deploy.sh <<<$'#!/bin/sh\nexec make deploy' >/dev/null
  PATH=$PWD/local:$BIN:/usr/sbin:/usr/bin:/sbin:/bin
}

# in_image BLOCK FILTER…: the block's commands, as the filter finds them, with another /usr/local/bin.
in_image() {
  block recipes/ci.md "$1" | "${@:2}" | sed "s|/usr/local/bin|$PWD/local|" >commands
  rm -rf local
  run -0 env LOCK_RELEASE="$ADDRESS" sh -e commands
  assert_line "install: installed redlock-cli ${TAG#v} in $PWD/local"
  assert [ -x local/redlock-cli ]
}
# commands: those of YAML's lists that a shell is to run.
commands() { sed -n 's/^ *- \([a-z].* .*\)$/\1/p' | grep -v '^label:\|^name:' | sed 's/\$\$/$/g'; }

@test "CI: each block that begins in an image without the program gets it, and locks" {
  release_for_images
  ADDRESS=$(block recipes/ci.md gitlab-alpine | sed -n 's/^ *LOCK_RELEASE: //p')
  assert_regex "$ADDRESS" "^https://.*/releases/download/$TAG\$"
  in_image get cat
  in_image gitlab-alpine commands
  assert_line "deploy: 75"
  assert_line "$PWD/local/redlock-cli"
  in_image jenkins-alpine sed -n "s/^ *sh '\(.*\)'\$/\1/p"
  assert_line "deploy: 75"
  in_image buildkite commands
  assert_line "deploy: 75"
  in_image woodpecker commands
  assert_line "deploy: 75"
}

# A runner signals only the first process of a step, which is bash.
@test "CI: a step that is cancelled ends the action's command, and releases the lock" {
  local root=$BATS_TEST_DIRNAME/../..
  sed -n "s/^ *run: '\(.*\)'\$/\1/p" "$root/action.yml" >step
  assert [ -s step ]
  slow_job deploy
  export GITHUB_ACTION_PATH=$root LOCK_KEY=staging LOCK_RUN=deploy LOCK_PACKAGE=installed
  start_background step bash --noprofile --norc -e -o pipefail step
  wait_until count_runs 1
  kill -INT "${BACKGROUND_PID[step]}"
  wait_background step
  assert_unlocked staging 0
}

@test "CI: a lease for several steps, and its release by the last one" {
  local RUNNER_TEMP=$PWD
  export RUNNER_TEMP
  run -0 sh -c "$(block recipes/ci.md job-lock-simple)"
  HOLDER=$(redlock-cli status staging --json | jq -e .locks[0].holder.pid)
  run -0 sh -c "$(block recipes/ci.md job-unlock)"
  wait_for_no_key 0 staging
  wait_until has_ended "$HOLDER"
  HOLDER=
}

@test "CI: without a worker above it the step ends, and reports that" {
  program ps <<<$'#!/bin/sh\nexit 1'
  RUNNER_TEMP=$PWD run -1 bash -c "$(block recipes/ci.md job-lock)"
  assert_output --partial "no Runner.Worker above this step"
}

@test "CI: the lock of a job is held over its steps and released when the worker ends" {
  block recipes/ci.md job-lock >step-1
  echo 'touch second-step; until [ -e enough ]; do sleep 0.1; done' >step-2
  program Runner.Worker <<'END_OF_WORKER'
#!/bin/bash
bash step-1
bash step-2
END_OF_WORKER
  RUNNER_TEMP=$PWD start_background worker Runner.Worker
  wait_until test -e second-step
  run -0 redlock-cli status staging
  assert_output --partial held
  : >enough
  wait_background worker
  wait_for_no_key 0 staging
}

# The processes with Jenkins' cookie in their environment, which it kills.
of_the_build() { grep -lsFz "JENKINS_NODE_COOKIE=$1" /proc/[0-9]*/environ | cut -d / -f 3; }

@test "CI: Jenkins ends every process of a build, and the lock is released" {
  block recipes/ci.md jenkins | sed -En "s/.*sh '(.*)'.*/\1/p" >step
  program make <<<$'#!/bin/sh\nsleep 1000 & : >entered; wait'
  start_background build env JENKINS_NODE_COOKIE=build-7 sh step
  wait_until test -e entered
  run -75 redlock-cli status staging --exit-code
  # One may be gone already, since another got the signal.
  of_the_build build-7 | xargs kill -TERM || true
  wait_background build
  wait_for_no_key 0 staging
  wait_until eval '[[ -z $(of_the_build build-7) ]]'
}

@test "CI: Jenkins leaves the holder process of a lease for several steps alone" {
  local WORKSPACE_TMP=$PWD
  export WORKSPACE_TMP
  JENKINS_NODE_COOKIE=build-7 run -0 sh -c "$(block recipes/ci.md jenkins-lock)"
  HOLDER=$(redlock-cli status staging --json | jq -e .locks[0].holder.pid)
  run of_the_build build-7
  assert_output ""
  run -0 sh -c "$(block recipes/ci.md jenkins-unlock)"
  wait_for_no_key 0 staging
  wait_until has_ended "$HOLDER"
  HOLDER=
}

@test "ci: one deployment passes a freeze" {
  run -0 sh -c "$(block recipes/ci.md freeze)"
  assert_output --regexp "staging: on hold until"
  assert_output --partial "staging: lifted"
}

@test "CI: a line at the beginning of GitLab's shell holds the lock until it ends" {
  block recipes/ci.md gitlab-job >job
  echo 'redlock-cli status staging --exit-code -q; echo "status $?"' >>job
  CI_JOB_URL=https://gitlab.example/1 CI_JOB_ID=1 TMPDIR=$PWD run -0 bash job
  assert_output --partial "status 75"
  wait_for_no_key 0 staging
}

@test "CI: the last line of GitLab's script releases it" {
  {
    block recipes/ci.md gitlab-job
    block recipes/ci.md gitlab-release
    echo 'redlock-cli status staging --exit-code -q; echo "status $?"'
  } >job
  CI_JOB_ID=1 TMPDIR=$PWD run -0 bash job
  assert_output --partial "status 0"
}

@test "CI: with --replace the newer job of each system stops the older one" {
  unset REDLOCK_SERVER_TIMEOUT
  export REDLOCK_TTL=9s
  program make <<<$'#!/bin/sh\necho entered; until [ -e enough ]; do sleep 0.2; done'
  block recipes/ci.md github-replace | sed -n 's/^ *- run: //p' >github
  block recipes/ci.md gitlab-replace | sed -n 's/^ *- //p' >gitlab
  block recipes/ci.md jenkins-replace | sed -En "s/.*script: '(.*)'.*/\1/p" >jenkins
  start_background github bash -e github
  wait_for_stdout github entered
  start_background gitlab bash -e gitlab
  wait_background github
  assert_equal "$status" 143
  wait_for_stdout gitlab entered
  start_background jenkins bash -e jenkins
  wait_background gitlab
  assert_equal "$status" 143
  wait_for_stdout jenkins entered
  : >enough
  wait_background jenkins
  assert_equal "$status" 0
}

@test "CI: two keys" {
  program make <<<$'#!/bin/sh\necho "$REDLOCK_KEY: $*"'
  run -0 sh -c "$(block recipes/ci.md two-keys)"
  assert_output --partial "deploy migrate"
  wait_for_no_key 0 deploy:staging
}

# --- Kubernetes ---

@test "Kubernetes: the CronJob's command does its work once in two clusters" {
  local command
  command=$(block recipes/kubernetes.md cronjob | sed -En 's/^ *command: //p' | tr -d '[],"' |
    sed 's|/app/||')
  slow_job nightly
  start_background one sh -c "exec $command"
  wait_until count_runs 1
  run -0 sh -c "exec $command"
  : >enough
  wait_background one
  assert_equal "$status" 0
  assert count_runs 1
}

# --- make ---

# makefile NAME: the block, as the Makefile here.
makefile() { sed 's/^  *\(redlock-cli\|+\|\.\)/\t\1/' >Makefile; }

@test "make: a target takes the lock itself" {
  { block recipes/make.md deploy; echo 'build:'; } | makefile
  executable deploy.sh <<<$'#!/bin/sh\necho "$REDLOCK_KEY"' >/dev/null
  run -0 make -s deploy
  assert_line deploy:staging
}

@test "make -j: targets of one key exclude each other, slots have numbers" {
  mkdir -m 700 locks
  { block recipes/make.md parallel; echo; block recipes/make.md slots; } |
    sed "s|local:|local:$PWD/locks|" | makefile
  # The first holds the lock until the second waits. A second holder would end silently.
  executable second_waits >/dev/null \
    <<<$'#!/bin/sh\nredlock-cli status "$REDLOCK_KEY" --json | jq -e ".locks[0].waiters.count > 0"'
  executable test.sh >/dev/null <<'END_OF_TEST'
#!/bin/sh
[ "$1" = unit ] && exit
mkdir inside || exit
[ -e ended ] || timeout 20 sh -c 'until ./second_waits; do sleep 0.1; done' >&2
rmdir inside
echo "$1" >>ended
END_OF_TEST
  executable simulate.sh >/dev/null <<<$'#!/bin/sh\necho "slot $3" >>slots'
  run -0 make -s -j 4 tests
  assert_equal "$(sort ended | paste -sd ' ')" "browser integration"
  run -0 make -s -j 6 simulations
  assert_equal "$(wc -l <slots)" 6
  assert_equal "$(grep -cxE 'slot [01]' slots)" 6
}

@test "GPUs: a job sees as many as it requested" {
  mkdir -m 700 locks
  block recipes/gpus.md gpus | sed "s|local:|local:$PWD/locks|" | program on-gpus
  program train <<<$'#!/bin/sh\necho "$CUDA_VISIBLE_DEVICES for $*"'
  run -0 on-gpus 2 train --large
  assert_output "0,1 for --large"
  run -0 on-gpus 1 train --small
  assert_output "0 for --small"
}

@test "devices: a test has one by its name, and one can be chosen, seen and freed" {
  script recipes/gpus.md devices on-phone
  run -0 ./on-phone sh -c 'echo "$ANDROID_SERIAL"'
  assert_output pixel-7
  executable run-tests <<<$'#!/bin/sh\nredlock-cli status phones:limit; echo "on $ANDROID_SERIAL"' >/dev/null
  run -0 sh -c "$(block recipes/gpus.md some-devices)"
  assert_line --partial "1 of 2 slots taken"
  assert_line "on pixel-7"
  program flash <<<$'#!/bin/sh\necho "flashed $1"'
  cp "$(command -v flash)" ./flash
  run -0 sh -c "$(block recipes/gpus.md one-device)"
  assert_output "flashed pixel-8"
  start_background test redlock-cli run -k phones --slots s23,pixel-8 --slot pixel-8 --note rack -- \
    sh -c 'echo entered; exec sleep 60'
  wait_for_stdout test entered
  run -0 sh -c "$(block recipes/gpus.md device-status)"
  assert_line --partial 'pixel-8: '
  assert_line --partial "free: pixel-7, s23"
  wait_background test
  assert_equal "$status" 143
}

@test "devices: a broken one is taken out of the pool, and put back" {
  run -0 sh -c "$(block recipes/gpus.md broken-device)"
  assert_output --partial "slot s23 on hold until"
  run -75 redlock-cli run -k phones --slots s23,pixel-8 --slot s23 -n -- true
  assert_output --partial "screen is broken"
  run -0 redlock-cli run -k phones --slots s23,pixel-8 -n -- sh -c 'echo "$REDLOCK_SLOT_NAME"'
  assert_output pixel-8
  run -0 sh -c "$(block recipes/gpus.md repaired-device)"
  run -0 redlock-cli run -k phones --slots s23,pixel-8 -n -- sh -c 'echo "$REDLOCK_SLOT_NAME"'
  assert_output s23
}

@test "make: a make below redlock-cli has the jobs of the one above" {
  mkdir sub
  block recipes/make.md jobserver | makefile
  printf 'all:\n\t@echo "flags $(MAKEFLAGS)"\n' >sub/Makefile
  run -0 make -s -j 3
  assert_output --regexp 'jobserver'
  refute_output --partial "jobserver unavailable"
}

@test "CI: a push replaces its own older run, and queues behind others" {
  slow_job make
  BRANCH=a start_background older sh -c "$(block recipes/ci.md own-push)"
  wait_until count_runs 1
  BRANCH=b start_background other sh -c "$(block recipes/ci.md own-push)"
  wait_until waits_for staging
  BRANCH=a start_background newer sh -c "$(block recipes/ci.md own-push)"
  wait_background older
  assert_equal "$status" 143
  # The other branch was first, the newer push follows.
  : >enough
  wait_background other
  assert_equal "$status" 0
  wait_background newer
  assert_equal "$status" 0
  assert count_runs 3
}
# waits_for KEY: whether a waiter is queued.
waits_for() { [[ $(redis 0 zcard "redlock:queue:{$1}") -ge 1 ]]; }

@test "CI: a hotfix comes before those that wait, and a bad commit sends all away" {
  program make <<<$'#!/bin/sh\necho "$1" >>runs\nuntil [ -e enough ]; do sleep 0.1; done'
  start_background running redlock-cli run -k staging -- make deploy
  wait_until count_runs 1
  start_background nightly redlock-cli run -k staging -- make nightly
  wait_until waits_for staging
  start_background hotfix sh -c "$(block recipes/ci.md hotfix)"
  wait_until count_waiters 2
  : >enough
  wait_background running
  wait_background hotfix
  assert_equal "$status" 0
  wait_background nightly
  assert_equal "$status" 0
  assert_equal "$(paste -sd ' ' runs)" "deploy deploy nightly"

  rm enough runs
  start_background running redlock-cli run -k staging -- make deploy
  wait_until count_runs 1
  start_background nightly redlock-cli run -k staging -- make nightly
  wait_until waits_for staging
  run -0 sh -c "$(block recipes/ci.md bad-commit)"
  wait_background running
  assert_equal "$status" 143
  wait_background nightly
  assert_equal "$status" 75
  assert count_runs 1
}
count_waiters() { [[ $(redis 0 zcard "redlock:queue:{staging}") == "$1" ]]; }

@test "CI: steps on other hosts work under the lease of the job" {
  local RUNNER_TEMP=$PWD
  export RUNNER_TEMP
  run -0 sh -c "$(block recipes/ci.md job-lock-simple)"
  HOLDER=$(redlock-cli status staging --json | jq -e .locks[0].holder.pid)
  # As sshd does: another environment, and a shell for the words.
  program ssh <<'END_OF_SSH'
#!/bin/sh
echo "$1" >>hosts
exec env -i PATH="$PATH" REDLOCK_SERVER="$REDLOCK_SERVER" REDLOCK_SERVER_TIMEOUT=4s sh -c "$2"
END_OF_SSH
  cat >restart.sh <<'END_OF_RESTART'
#!/bin/sh
redlock-cli status staging --json | jq -r '.locks[0].holder.users | length' >>users
END_OF_RESTART
  chmod 755 restart.sh
  run -0 sh -c "$(block recipes/ci.md lease-hosts)"
  assert_equal "$(sort hosts | paste -sd ' ')" "web1 web2"
  assert_equal "$(wc -l <users)" 2
  refute grep -qv '^[12]$' users
  run -0 sh -c "$(block recipes/ci.md job-unlock)"
  wait_for_no_key 0 staging
  wait_until has_ended "$HOLDER"
  HOLDER=
}

@test "CI: once for each commit" {
  program make <<<$'#!/bin/sh\necho run >>runs'
  local commit
  for commit in 1 1 2; do COMMIT=$commit run -0 sh -c "$(block recipes/ci.md once-per-commit)"; done
  assert count_runs 2
}

@test "CI: services of an environment side by side, the whole of it alone" {
  slow_job make
  start_background api sh -c "$(block recipes/ci.md service)"
  wait_until count_runs 1
  run -0 redlock-cli run -s -k prod -n -- redlock-cli run -k prod:web -n -- true
  run -75 redlock-cli run -s -k prod -n -- redlock-cli run -k prod:api -n -- true
  start_background all sh -c "$(block recipes/ci.md environment)"
  wait_until waits_for prod
  assert count_runs 1
  : >enough
  wait_background api
  wait_background all
  assert_equal "$status" 0
  assert count_runs 2
}

@test "CI: the runner's signal reaches the last line of a step" {
  program make <<<$'#!/bin/sh\n[ "$1" = build ] || { echo run >>runs; exec sleep 300; }'
  block recipes/ci.md exec-last >step
  start_background step bash -e ./step
  wait_until count_runs 1
  kill -TERM "${BACKGROUND_PID[step]}"
  wait_background step
  assert_equal "$status" 143
  wait_for_no_key 0 staging
}

# --- Databases ---

PSQL_PID=
# start_postgresql: a private server on a socket in this directory; psql finds it by the
# environment.
start_postgresql() {
  local bin as=()
  bin=$(find /usr/lib/postgresql -name initdb -printf '%h\n' 2>/dev/null | sort -V | tail -n 1)
  [[ -n $bin ]] || fail "PostgreSQL's server is not installed"
  PGHOST=$(mktemp -d /tmp/rl-pg.XXXXXX) # the path of a socket is short
  chmod 755 "$PGHOST"
  # It does not run as root.
  if ((EUID == 0)); then
    chown 65534:65534 "$PGHOST"
    as=(setpriv --reuid 65534 --regid 65534 --clear-groups)
  fi
  (cd / &&
    "${as[@]}" "$bin/initdb" -D "$PGHOST/data" -A trust -U test --no-sync \
      >"$BATS_TEST_TMPDIR/initdb" 2>&1) || cat "$BATS_TEST_TMPDIR/initdb"
  start_background postgresql "${as[@]}" "$bin/postgres" -D "$PGHOST/data" \
    -k "$PGHOST" -c listen_addresses= -c fsync=off
  PSQL_PID=${BACKGROUND_PID[postgresql]}
  export PGHOST PGUSER=test PGDATABASE=postgres
  wait_until psql -qAtc 'SELECT 1'
}
stop_postgresql() {
  [[ -n $PSQL_PID ]] || return 0
  kill -INT "$PSQL_PID" 2>/dev/null || true
  wait "$PSQL_PID" 2>/dev/null || true
  rm -rf "$PGHOST"
}

@test "databases: a migration runs once for each version" {
  program migrate.sh <<<$'#!/bin/sh\necho run >>runs'
  local command version
  command=$(block recipes/databases.md migrate-once | sed 's|\./migrate|migrate|')
  for version in 1 1 2; do VERSION=$version run -0 sh -c "$command"; done
  assert count_runs 2
}

@test "databases: a stopped migration leaves no statement in the server" {
  start_postgresql
  psql -q -c 'CREATE TABLE journal (entry text)'
  script recipes/databases.md stop-migration.sh stop-migration.sh
  executable migrate.sh <<<$'#!/bin/sh\nexec psql -qc "INSERT INTO journal SELECT 1 FROM pg_sleep(60)"' \
    >/dev/null
  GIT_COMMIT=abc start_background migration sh -c "$(block recipes/databases.md migrate)"
  wait_until migration_works
  run -0 redlock-cli stop schema:orders
  wait_background migration
  assert_equal "$(psql -qAtc "$MIGRATIONS")" 0
}
MIGRATIONS="SELECT count(*) FROM pg_stat_activity
  WHERE application_name = 'migrate-orders' AND query LIKE 'INSERT%'"
migration_works() { [[ $(psql -qAtc "$MIGRATIONS") == 1 ]]; }

@test "databases: a migration of an earlier fence is rolled back" {
  start_postgresql
  psql -q -v ON_ERROR_STOP=1 -c 'CREATE TABLE orders (id bigint)' \
    -f <(block recipes/databases.md guard)
  script recipes/databases.md migrate.sh migrate.sh
  script recipes/databases.md stop-migration.sh stop-migration.sh
  # shellcheck disable=SC2094  # the name of a block, and of a file
  block recipes/databases.md migration.sql >migration.sql
  GIT_COMMIT=abc run -0 sh -c "$(block recipes/databases.md migrate)"
  assert_equal "$(psql -qAtc 'SELECT note FROM orders')" ""
  # An earlier holder that was paused continues.
  sed -i 's/note/late/' migration.sql
  REDLOCK_FENCE=5 run -3 ./migrate.sh
  assert_output --partial "fence 5 is too old"
  run psql -qAtc 'SELECT late FROM orders'
  assert_failure
}

@test "fencing: PostgreSQL refuses a write of an earlier fence" {
  start_postgresql
  psql -q -v ON_ERROR_STOP=1 -f <(block fencing.md postgresql.sql)
  script fencing.md postgresql.sh publish.sh
  run -0 redlock-cli run -k publish -- ./publish.sh "it's new"
  REDLOCK_FENCE=5 run -1 ./publish.sh late
  assert_output "refused: a later run was here"
  assert_equal "$(psql -qAtc 'SELECT config FROM site')" "it's new"
}

@test "fencing: SQLite refuses a write of an earlier fence" {
  sqlite3 site.db <<<"$(block fencing.md sqlite.sql)"
  script fencing.md sqlite.sh publish.sh
  echo new >new.conf
  run -0 sh -c "$(block fencing.md sqlite)"
  echo late >new.conf
  REDLOCK_FENCE=5 run -1 ./publish.sh
  assert_output "refused: a later run was here"
  assert_equal "$(sqlite3 site.db 'SELECT config FROM site')" new
  # The same holder again.
  echo newer >new.conf
  REDLOCK_FENCE=$(sqlite3 site.db 'SELECT fence FROM site') run -0 ./publish.sh
  assert_equal "$(sqlite3 site.db 'SELECT config FROM site')" newer
}

@test "fencing: readers of a directory take the file with the largest fence" {
  script fencing.md directory.sh export.sh
  executable make-prices <<<$'#!/bin/sh\necho "$PRICES"' >/dev/null
  mkdir prices
  PRICES=new redlock-cli run -k prices -- ./export.sh prices
  PRICES=late REDLOCK_FENCE=999 ./export.sh prices
  cd prices
  eval "$(block ../../docs/fencing.md directory-reader 2>/dev/null ||
    block fencing.md directory-reader)"
  assert_equal "$(<"$newest")" new
}

# --- Migration ---

@test "migration: the table has every option of this machine's flock" {
  local option
  for option in $(flock --help | grep -oE '^ +(-[a-zA-Z], |    )--[a-z-]+' |
    grep -oE -- '--[a-z-]+' | grep -vxE -- '--(help|version)'); do
    sed -n '/^## flock/,/^## /p' "$DOCS/migration.md" | grep -qE "^\|.*\`$option\`" ||
      fail "$option"
  done
  # The page explains two options that both programs have.
  : >lock
  flock lock redlock-cli run -k lock -- true
  run -3 flock lock flock -w 0 -E 3 lock true
  redlock-cli acquire -k lock --ttl 1m >/dev/null
  run -3 redlock-cli run -k lock -w 0 -E 3 -- true
}

# client NAME: a client of a daemon. The file `started` exists while the remote command runs, and
# `immortal` makes the client refuse to stop it.
client() {
  program "$1" <<'END_OF_CLIENT'
#!/bin/sh
echo "${0##*/} $*" >>calls
case "$*" in
  run*) echo c1 >"$4" && touch started ;;
  create* | *systemd-run*) touch started ;;
  kill* | delete* | *stop*) [ ! -e immortal ] && rm started ;;
  ps*) [ ! -e started ] || echo c1 ;;
esac || exit 1
case "$*" in
  run* | wait* | *systemd-run*) echo ready && exec sleep 1000 ;;
esac
END_OF_CLIENT
}

# stop_recipe CLIENT BLOCK: runs the block and sends it TERM.
stop_recipe() {
  client "$1"
  start_background "$1" sh -c "exec $2"
  wait_for_stdout "$1" ready
  assert [ -e started ]
  kill -TERM "${BACKGROUND_PID[$1]}"
  wait_background "$1"
}

# The commands that stopped it, and the status.
assert_stopped_by() {
  assert_equal "$(tail -n 1 calls)" "$1"
  assert_equal "$status" 143
  assert [ ! -e started ]
  assert_equal "$(keys_at 0)" ""
}

@test "remote: a command that docker, kubectl or ssh started has ended when the lock is free" {
  stop_recipe docker "$(block recipes/remote.md docker)"
  assert_stopped_by "docker kill c1"
  stop_recipe kubectl "$(block recipes/remote.md kubectl)"
  assert_stopped_by \
    "kubectl delete job import --ignore-not-found --cascade=foreground --timeout=45s"
  stop_recipe ssh "$(block recipes/remote.md ssh)"
  assert_stopped_by \
    "ssh app1 systemctl --user stop import; ! systemctl --user --quiet is-active import"
}

@test "remote: a command that cannot be stopped leaves the lock to expire: 80" {
  touch immortal
  stop_recipe docker "$(block recipes/remote.md docker)"
  assert_equal "$status" 80
  assert_equal "$(redis 0 exists import)" 1
}

@test "migration: a script that locks itself is one lock, whichever link leads to it" {
  { echo '#!/bin/bash'; block migration.md flock-itself
    echo 'echo run >>runs; until [ -e enough ]; do sleep 0.1; done'; } >job
  chmod 755 job
  mkdir links
  ln -s "$PWD/job" links/other-name
  start_background one ./job
  wait_until count_runs 1
  run -75 links/other-name
  run -75 "$PWD//job"
  : >enough
  wait_background one
  assert_equal "$status" 0
  run -0 links/other-name
  assert count_runs 2
}

@test "migration: a block that locks ends its lock" {
  { block migration.md flock-block; echo 'redlock-cli status x --exit-code; echo after'; } >script
  local shell
  for shell in sh bash; do
    run -0 "$shell" script
    assert_line "under the lock"
    assert_line after
    refute_line --regexp '^x: held'
  done
}

@test "migration: a loop waits for a slot before it goes on" {
  mkdir -m 700 locks
  touch 1.raw 2.raw 3.raw
  executable convert <<<$'#!/bin/sh\necho "$1" >>runs; until [ -e "enough.$1" ]; do sleep 0.1; done' >/dev/null
  block migration.md sem | sed "s|local:|local:$PWD/locks|; s|--slots 4|--slots 1|" >loop
  start_background loop sh loop
  wait_until count_runs 1
  # One job works and at most one waits, whichever was first.
  wait_until count_local_waiters
  assert count_runs 1
  : >enough.1.raw
  : >enough.2.raw
  : >enough.3.raw
  wait_background loop
  assert_equal "$status" 0
  assert count_runs 3
}
count_local_waiters() {
  redlock-cli status -S "local:$PWD/locks" name --json | jq -e '.locks[0].waiters.count >= 1'
}

@test "migration: both locks during the change exclude holders of either" {
  mkdir -p "$BATS_TEST_TMPDIR/lock"
  slow_job nightly.sh
  cp "$BIN/nightly.sh" .
  local both
  both=$(block migration.md flock-both | sed "s|/run/lock|$BATS_TEST_TMPDIR/lock|")
  start_background both sh -c "$both"
  wait_until count_runs 1
  run -1 flock -n "$BATS_TEST_TMPDIR/lock/nightly.lock" true
  run -75 sh -c "$(block migration.md flock-after | sed 's/-k/-n -k/')"
  : >enough
  wait_background both
  assert_equal "$status" 0
}

@test "migration: clients of the old or the new servers are excluded while both are taken" {
  start_servers 3
  executable nightly.sh <<<$'#!/bin/sh\necho run >>runs\nuntil [ -e enough ]; do sleep 0.1; done' \
    >/dev/null
  local new=${SERVER_URL[1]},${SERVER_URL[2]},${SERVER_URL[3]}
  start_background both sh -c "$(block migration.md servers-both |
    sed "s|redis://10.0.0.1 |${SERVER_URL[0]} |; s|redis://10.0.0.2,.*0.4|$new|")"
  wait_until test -e runs
  run -75 redlock-cli run -S "${SERVER_URL[0]}" -k nightly -n -- true
  run -75 redlock-cli run -S "$new" -k nightly -n -- true
  : >enough
  wait_background both
  assert_equal "$status" 0
}

@test "migration: in a crontab of several hosts, one does the job while both locks are taken" {
  local host
  slow_job backup
  # Two hosts, each with its own lock files.
  on_host() {
    mkdir -p "$1"
    echo "$(crontab_command flock-cron migration.md | sed "s|/run/lock|$PWD/$1|")"
  }
  start_background one sh -c "$(on_host one)"
  wait_until count_runs 1
  for host in one two; do
    run -0 sh -c "$(on_host "$host")"
    assert_output ""
  done
  : >enough
  wait_background one
  assert_equal "$status" 0
  run -0 sh -c "$(on_host two)"
  assert count_runs 1
}

# bats test_tags=redis
@test "migration: SET NX PX, SETNX and INCR exclude redlock-cli, and are excluded" {
  executable job.sh <<<$'#!/bin/sh\ntrue' >/dev/null
  program redis-cli <<END_OF_CLI
#!/bin/sh
exec $(command -v redis-cli) -s "${SERVER_SOCKET[0]}" "\$@"
END_OF_CLI
  run -75 sh -c "$(block migration.md foreign)"
  assert_output --partial foreign
  redis 0 del job
  redis 0 setnx job 1
  run -75 redlock-cli run -k job -n -- true
  redis 0 del job
  redis 0 incr job
  run -75 redlock-cli run -k job -n -- true
  redis 0 del job
  redis 0 hset job a 1
  run -75 redlock-cli run -k job -n -- true
  redis 0 del job
  redlock-cli acquire -k job --ttl 1m >/dev/null
  assert_equal "$(redis 0 setnx job 1)" 0
  assert_equal "$(redis 0 set job 1 nx px 1000)" ""
  run redis 0 incr job
  assert_output --partial "not an integer"
}
