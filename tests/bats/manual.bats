#!/usr/bin/env bats
# Runs the examples of the manual: each literal display that the comment above it names, .\"
# run=NAME.
load helper/common
load helper/documents

setup() {
  MAN=$BATS_TEST_DIRNAME/../../man
  setup_documents
}

# example PAGE NAME: its text, as the page shows it.
example() {
  local text
  text=$(awk -v name=".\\\\\" run=$2" '
    $0 == name { found = 1; next }
    found && /^\.Bd / { inside = 1; next }
    inside && /^\.Ed/ { exit }
    inside' "$MAN/redlock-cli$1" | sed 's/^\\&//')
  [[ -n $text ]] || fail "redlock-cli$1 has no example $2"
  [[ $text != *\\* ]] || fail "an escape that this test does not know: $text"
  echo "$text"
}

# crontab_command PAGE NAME: the command of a line of a crontab.
crontab_command() { example "$1" "$2" | sed -E 's/^[^ ]+( [^ ]+){4} //'; }

@test "each example has a unique name and is run by a test in this file" {
  local page name names=()
  for page in "$MAN"/*.[157]; do
    run -0 awk '/^\.D[1l] / || (/^\.Bd -(literal|unfilled)/ && before !~ /^\.\\" run=/) {
        print FILENAME ":" FNR
      }
      { before = $0 }' "$page"
    assert_equal "$output" ""
    while read -r name; do
      names+=("$name")
      grep -qE "(example|crontab_command) ${page##*/redlock-cli} $name\b|has_fields $name\b" \
        "$BATS_TEST_FILENAME" || fail "$page: $name is run nowhere"
    done < <(sed -n 's/^\.\\" run=//p' "$page")
  done
  assert_in_range "${#names[@]}" 20 100
  assert_equal "$(printf '%s\n' "${names[@]}" | sort | uniq -d)" ""
}

# --- redlock-cli(1) ---

@test "the overview: the quick start" {
  executable deploy.sh <<<$'#!/bin/sh\nredlock-cli status' >/dev/null
  example .1 quick-start | sed "s|redis://10.0.0.1|$REDLOCK_SERVER|" >start
  run bash start
  assert_line --regexp '^deploy +held '
  assert_line --partial "no locks"
  assert_line --partial "can vote"
  # A test server keeps nothing on disk, which is a warning of doctor.
  assert_in_range "$status" 0 1
}

@test "the overview and run: a nightly job is done by one host" {
  slow_job job
  start_background one sh -c "$(crontab_command .1 nightly)"
  wait_until count_runs 1
  run -0 --separate-stderr sh -c "$(crontab_command -run.1 backup)"
  assert_equal "$output$stderr" ""
  : >enough
  wait_background one
  assert_equal "$status" 0
  run -0 sh -c "$(crontab_command .1 nightly)"
  assert count_runs 1
}

@test "the overview and acquire: a script holds the lock until it ends" {
  assert_equal "$(example .1 script)" "$(example -acquire.1 while-pid)"
  { example .1 script; echo 'redlock-cli status deploy --exit-code -q; echo "status $?"'; } >job
  run -0 bash job
  assert_output --partial "status 75"
  wait_for_no_key 0 deploy
}

@test "the overview: each shell loads its completion" {
  example .1 completion >lines
  run -0 bash --norc -c "$(sed -n 1p lines); complete -p redlock-cli"
  assert_output --partial redlock
  run -0 zsh -f -c \
    "autoload -U compinit; compinit -u -D; $(sed -n 2p lines); print \$_comps[redlock-cli]"
  assert_output --partial redlock
  run -0 fish -N -c "$(sed -n 3p lines); complete -c redlock-cli"
  assert_output --partial redlock-cli
}

# --- redlock-cli-run(1) ---

@test "run: a deployment, with its arguments" {
  executable deploy.sh <<<$'#!/bin/sh\necho "deploys $*"; redlock-cli status deploy' >/dev/null
  run -0 sh -c "$(example -run.1 deploy)"
  assert_line "deploys --prod"
  assert_output --partial "release 4.2"
}

@test "run: a job of every minute is not done twice" {
  program tick <<<$'#!/bin/sh\necho run >>runs'
  run -0 sh -c "$(crontab_command -run.1 tick)"
  run -0 sh -c "$(crontab_command -run.1 tick)"
  assert count_runs 1
}

@test "run: of several pushes, the newest is deployed after the running one" {
  start_background running redlock-cli run -k deploy -- sh -c 'until [ -e enough ]; do sleep 0.1; done'
  wait_for_key 0 deploy
  program make <<<$'#!/bin/sh\necho "$NAME $*" >>made'
  start_background older env NAME=older sh -c "$(example -run.1 newest)"
  wait_for_answer 0 1 zcard 'redlock:queue:{deploy}'
  start_background newer env NAME=newer sh -c "$(example -run.1 newest)"
  wait_background older
  assert_equal "$status" 75
  : >enough
  wait_background newer
  assert_equal "$status" 0
  assert_equal "$(<made)" $'newer \nnewer install'
  wait_background running
}

# --- redlock-cli-acquire(1), redlock-cli-extend(1) ---

@test "acquire: several steps of a script" {
  executable build.sh >/dev/null \
    <<<$'#!/bin/sh\nredlock-cli status deploy --exit-code -q || echo "built under the lock"'
  executable publish.sh <<<$'#!/bin/sh\necho "published with $*"' >/dev/null
  example -acquire.1 steps >script
  run -0 bash script
  assert_line "built under the lock"
  assert_line --regexp '^published with --fence [0-9]+$'
  wait_for_no_key 0 deploy
}

@test "extend: the next step is not done without the lease" {
  assert_equal "$(example -extend.1 extend)" "$(example -acquire.1 steps | sed -n '4,$p')"
  executable build.sh <<<$'#!/bin/sh\nredlock-cli release' >/dev/null
  executable publish.sh <<<$'#!/bin/sh\necho published' >/dev/null
  { example -acquire.1 steps | sed -n 1,2p; example -extend.1 extend; } >script
  run -79 bash script
  refute_line published
}

@test "acquire: separate processes, with a lease that is renewed or not" {
  example -acquire.1 token-file >not
  example -acquire.1 detach >renewed
  local kind holder
  for kind in not renewed; do
    # It renews every three seconds.
    REDLOCK_TTL=9s REDLOCK_SERVER_TIMEOUT=1s run -0 sh -c "$(sed -n 1p "$kind")"
    run -75 redlock-cli status db --exit-code
    holder=$(redlock-cli status db --json | jq .locks[0].holder.pid)
    run -0 sh -c "$(sed -n 2p "$kind")"
    run -0 redlock-cli status db --exit-code
  done
  # It notices at its next renewal that its lease was released.
  wait_until has_ended "$holder"
}

# --- redlock-cli-release(1) ---

# A holder that renews every three seconds.
start_deploy() {
  start_background ours redlock-cli run -k deploy --ttl 9s --server-timeout 1s -- \
    sh -c 'echo entered; exec sleep 1000'
  wait_for_stdout ours entered
}

@test "release: a stuck deployment is stopped" {
  start_deploy
  run -0 sh -e -c "$(example -release.1 stuck)"
  wait_background ours
  assert_equal "$status" 143
  wait_for_no_key 0 deploy
}

@test "release: the holder of a broken lock reports who broke it and why" {
  start_deploy
  run -0 sh -c "$(example -release.1 reason)"
  wait_background ours
  assert_equal "$status" 79
  assert_regex "$stderr" 'broke it .*"web1 does not answer"'
}

@test "release: a lock is broken only if it is still the inspected one" {
  redlock-cli acquire -k deploy --ttl 1m >/dev/null
  example -release.1 break >lines
  run -79 sh -e lines
  assert_output --partial held
  sed -i -E "s/(--if-fence) [0-9]+/\1 $(fence_at 0 deploy)/" lines
  run -0 sh -e lines
  wait_for_no_key 0 deploy
}

@test "release: a key that another program left is shown, and then broken" {
  redis 0 set job crashed-before-expire >/dev/null
  run -0 sh -c "$(example -release.1 foreign)"
  assert_output --partial "job: left alone"
  wait_for_no_key 0 job
}

# --- redlock-cli-hold(1) ---

@test "hold: a freeze is shown, and lifted" {
  run -0 sh -c "$(example -hold.1 freeze)"
  assert_output --regexp 'deploy: on hold until .* by .*: database move'
  assert_output --partial "deploy: lifted"
  wait_for_no_key 0 deploy
}

@test "hold: a deployment passes the freeze" {
  executable deploy.sh <<<$'#!/bin/sh\nredlock-cli status deploy' >/dev/null
  run -0 bash -c "$(example -hold.1 freeze-deploy)"
  assert_output --regexp 'on hold until .*09:00 by .*; used by run pid'
  wait_for_no_key 0 deploy
}

@test "hold: a device is taken out of the pool, and put back" {
  run -0 sh -c "$(example -hold.1 device)"
  assert_output --partial "phones: slot p2 on hold until"
  assert_output --partial "phones: slot p2 lifted"
  wait_for_no_key 0 phones
}

# --- redlock-cli-stop(1) ---

@test "stop: the running command is stopped, and no other slot" {
  start_deploy
  run -0 sh -c "$(example -stop.1 stop)"
  wait_background ours
  assert_equal "$status" 143
  assert_regex "$stderr" '"wrong branch"'
  start_deploy
  run -0 sh -c "$(example -stop.1 stop-all)"
  assert_output --partial "no waiters"
  wait_background ours
  assert_regex "$stderr" '"bad commit"'
  run -0 sh -c "$(example -stop.1 stop-slot)"
  assert_output --partial "nothing to stop"
}

# --- redlock-cli-status(1), redlock-cli-doctor(1) ---

@test "status: the holder, and whether the lock is free" {
  run -0 sh -c "$(example -status.1 status)"
  assert_line free
  redlock-cli acquire -k deploy --ttl 1m >/dev/null
  run -75 sh -c "$(example -status.1 status)"
  assert_output --partial held
  refute_line free
}

# shape: standard input without names, numbers and widths.
shape() { sed -E 's/[^ ]+@[^ ]+/WHO/g; s/[0-9.]+m?s\b/T/g; s/[0-9]+/N/g; s/ +/ /g'; }

# The locks of the samples: kept, on hold, and held with a waiter.
start_sample_locks() {
  redlock-cli run -k backup --min-hold 1h -- true
  redlock-cli hold db --for 10h --note move
  program make <<<$'#!/bin/sh\nexec sleep 1000'
  start_background holder redlock-cli run -k deploy --note 4.2 -- make
  wait_for_key 0 deploy
  start_background waiter redlock-cli run -k deploy -- make
  wait_for_answer 0 1 zcard 'redlock:queue:{deploy}'
}

@test "status: the list is as the page shows it" {
  start_sample_locks
  run -0 redlock-cli status
  assert_equal "$(shape <<<"$output")" "$(example -status.1 list | shape)"
}

@test "status: a lock is shown as the page explains it" {
  start_sample_locks
  run -0 redlock-cli status deploy
  local shown line lines
  shown=$(shape <<<"$output")
  mapfile -t lines < <(awk '/^\.S/ { inside = /One lock/ } inside && sub(/^\.It Li /, "")' \
    "$MAN/redlock-cli-status.1" | sed 's/\\(dq/"/g' | grep -v redis:// | shape)
  assert_equal "${#lines[@]}" 4
  for line in "${lines[@]}"; do
    [[ $shown == *"$line"* ]] || fail "not shown: $line"
  done
}

@test "status: whether the job succeeded recently" {
  run -1 sh -c "$(example -status.1 max-age)"
  redlock-cli run -k nightly -- true
  run -0 sh -c "$(example -status.1 max-age)"
}

@test "status: past runs, and whether the job hangs" {
  redlock-cli run -k nightly --note why -- true
  run -0 sh -c "$(example -status.1 history)"
  assert_line --partial '"why"'
  assert_line "nightly: free"
}

has_shown() { grep -q "$1" "$(background_stdout watch)"; }

@test "status: the held locks, repeatedly" {
  redlock-cli acquire -k job:1 --ttl 1m >/dev/null
  redlock-cli acquire -k other --ttl 1m >/dev/null
  start_background watch sh -c "exec $(example -status.1 watch)"
  wait_until has_shown job:1
  redlock-cli acquire -k job:2 --ttl 1m >/dev/null
  wait_until has_shown job:2
  has_shown other && fail "another lock is shown"
  end_background watch
}

@test "doctor: the whole report, and the origin of settings" {
  example -doctor.1 doctor >lines
  REDLOCK_SERVER_TIMEOUT=20s run bash lines
  assert_output --partial "can vote"
  assert_output --partial "server = $REDLOCK_SERVER"
  assert_equal "$status" 0
}

# bats test_tags=redis
@test "doctor and redlock-cli-servers(7): as a user with the documented rights" {
  start_servers 2
  local nr
  echo PASSWORD >locker.password
  chmod 600 locker.password
  for nr in 0 1 2; do
    # shellcheck disable=SC2046  # a word each
    assert_equal "$(redis "$nr" $(example -servers.7 acl))" OK
    redis "$nr" acl setuser locker +info '+config|get' >/dev/null
    # shellcheck disable=SC2046
    assert_equal "$(redis "$nr" $(example -servers.7 monitor))" OK
  done
  REDLOCK_SERVER=$SERVERS REDLOCK_SERVER_TIMEOUT=20s \
    run sh -c "$(example -doctor.1 doctor-user)"
  assert_in_range "$status" 0 1
  assert_output --partial "3 of 3"
}

# bats test_tags=redis
@test "redlock-cli-servers(7): a server with the configuration of the page is fit" {
  example -servers.7 redis-conf >lines
  assert_equal "$(wc -l <lines)" 6
  sed "s|^bind .*|port 0|" lines >redis.conf
  start_background server redis-server redis.conf --unixsocket "$PWD/fit.sock"
  wait_until test -S fit.sock
  REDISCLI_AUTH=LONG-RANDOM-PASSWORD REDLOCK_SERVER_TIMEOUT=20s \
    run -0 redlock-cli doctor demo -S "unix://$PWD/fit.sock"
}

@test "redlock-cli-servers(7): the environment names a hosted server, with its login" {
  example -servers.7 hosted >lines
  unset REDLOCK_SERVER
  run -0 bash -c '. ./lines; redlock-cli doctor --settings'
  assert_output --partial redis.example.net:6380
  refute_output --partial PASSWORD
}

# --- redlock-cli-output(5) ---

@test "output: did the command fail, or the lock?" {
  executable job <<<$'#!/bin/sh\nexit 7' >/dev/null
  run -0 sh -c "$(example -output.5 result)"
  assert_output "the command exited with 7"
  redlock-cli acquire -k job --ttl 1m >/dev/null
  run -0 sh -c "$(example -output.5 result | sed 's/-k job/-n -k job/')"
  assert_line "the lock: busy"
}

# object NAME: the page's object, in which `...` stands for what is left out.
object() { example -output.5 "$1" | tr -d '\n' | sed 's/{\.\.\.}/{}/g; s/, *\.\.\.\]/]/g'; }

# has_fields NAME OBJECT [FILTER]: both have the same fields.
has_fields() {
  local filter="${3:-.} | keys"
  assert_equal "$(object "$1" | jq -c "$filter")" "$(jq -c "$filter" <<<"$2")"
}

# bats test_tags=redis
@test "output: the objects have the fields that the program writes" {
  executable job <<<$'#!/bin/sh\nexit 7' >/dev/null
  local result
  run -7 redlock-cli run -k job --status-fd 3 --events-fd 4 -- ./job 3>result 4>events
  has_fields object-run "$(<result)"
  has_fields object-events "$(<events)"
  has_fields object-past-run "$(redlock-cli status job --runs --json | jq .locks[0].runs[0])"
  start_deploy
  result=$(redlock-cli run -k deploy -n --json -- true 2>&1) || true
  has_fields object-busy "$result"
  has_fields object-holder "$(jq .holder <<<"$result")"
  result=$(redlock-cli acquire -k db --ttl 5m --json --token-file db.lease)
  has_fields object-acquire "$result"
  has_fields object-extend "$(redlock-cli extend --ttl 5m --token-file db.lease --json)"
  has_fields object-release "$(redlock-cli release --token-file db.lease --json)"
  start_background again redlock-cli run -k job -- sleep 1000
  wait_for_key 0 job
  result=$(redlock-cli status job --json)
  has_fields object-status "$result"
  has_fields object-status "$result" '.locks[0]'
  has_fields object-status "$result" '.locks[0].servers[0]'
  result=$(REDLOCK_SERVER_TIMEOUT=20s redlock-cli doctor --json) || true
  has_fields object-doctor "$result"
  has_fields object-doctor "$result" '.servers[0]'
  has_fields object-doctor "$result" '.servers[0].findings[0]'
}

@test "output: the holder of each lock" {
  redlock-cli acquire -k deploy --ttl 1m >/dev/null
  redis 0 set job theirs >/dev/null
  run -0 sh -c "$(example -output.5 holders)"
  assert_output "deploy $(uname -n)"
}

@test "output: the events are appended" {
  executable job <<<$'#!/bin/sh\ntrue' >/dev/null
  run -0 sh -c "$(example -output.5 events)"
  run -0 sh -c "$(example -output.5 events)"
  assert_equal "$(grep -c '"event":"released"' job.events)" 2
}

# --- The rest ---

@test "fencing: a write of an earlier fence changes nothing" {
  example .7 update >update.sql
  sqlite3 site.db \
    "CREATE TABLE site (config TEXT, fence INTEGER); INSERT INTO site VALUES ('first', 0)"
  local fence
  for fence in 7 5; do
    sqlite3 site.db ".parameter set :new 'of-$fence'" ".parameter set :fence $fence" \
      "$(<update.sql)"
  done
  assert_equal "$(sqlite3 site.db 'SELECT config FROM site')" of-7
}

@test "redlock-cli.toml(5): the file is valid, and sets what it appears to set" {
  example .toml.5 file >system.toml
  run -0 env -u REDLOCK_SERVER redlock-cli doctor --settings --config system.toml
  assert_line --partial "server = redis://10.0.0.1"
  assert_line --partial "ttl = 20s"
  assert_line --partial "user = locker"
}
