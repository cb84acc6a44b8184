#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2154  # the scripts' own shells expand; each test is a subshell; bats and helpers set variables
# acquire --while-pid: a lease that is renewed for as long as a process lives, and what becomes of that process when the lease is lost.
load helper/common
load helper/redis
load helper/locks
load helper/checks
load helper/supervision

setup() { setup_supervision; }

teardown() {
  local pid
  for pid in $(holders); do kill -KILL "$pid" || true; done
  touch "$BATS_TEST_TMPDIR/end"
  teardown_supervision
}

# The pids of all holders of this test that live: it has a HOME of its own.
holders() {
  local file process
  for file in $(grep -slx lock-holder /proc/[0-9]*/comm || true); do
    process=${file%/comm}
    if grep -qszxF "HOME=$HOME" "$process/environ" && is_alive "${process#/proc/}"; then echo "${process#/proc/}"; fi
  done
}

# HOLDER is the only one; or, with another number, there are so many.
find_holder() {
  HOLDER=$(holders)
  assert_equal "$(wc -w <<<"$HOLDER")" "${1-1}"
}

no_holders() { [[ -z $(holders) ]]; }

# A script that takes the lock demo for itself, and has a child, one in a session of its own, one that ignores TERM and one that is stopped.
# Each writes its pid to $1; all are up when it says `ready`. It ends with 23 when the file $2 appears. $3… are for acquire.
script() {
  executable script <<'EOF'
#!/bin/bash
pids=$1 end=$2
shift 2
lease=$(redlock-cli acquire -k demo --while-pid $$ --export "$@") || exit
eval "$lease"
note='echo "$BASHPID" >>"$0"; exec sleep 1000'
echo "$$" >"$pids"
bash -c "$note" "$pids" &
setsid bash -c "$note" "$pids" &
bash -c "trap '' TERM; $note" "$pids" &
bash -c "$note" "$pids" &
stopped=$!
until [[ $(wc -l <"$pids") == 5 ]]; do sleep 0.02; done
kill -STOP "$stopped"
echo ready
until [[ -e $end ]]; do sleep 0.02; done
exit 23
EOF
}

# start_script NAME OPTION…: runs it; SCRIPT is its pid, TREE are all pids, HOLDER keeps the lock.
start_script() {
  local name=$1
  shift
  start_watched "$name" "$(script)" "$BATS_TEST_TMPDIR/pids" "$BATS_TEST_TMPDIR/end" "$@"
  mapfile -t TREE <"$BATS_TEST_TMPDIR/pids"
}

# start_watched NAME CMD…: runs a script that takes the lock itself, until it says `ready`. It and what descends from it hold the witness.
start_watched() {
  local name=$1
  shift
  start_background "$name" sh -c 'flock -s 9; exec "$@"' - "$@" 9<"$WITNESS"
  wait_until grep -q ready "$(background_stdout "$name")"
  SCRIPT=${BACKGROUND_PID[$name]}
  find_holder
}

# A process that a lock can be kept for; PET is its pid.
start_pet() {
  start_background pet bash -c 'trap "echo told" TERM; echo ready; until [[ -e $0 ]]; do sleep 0.02; done; exit 5' "$BATS_TEST_TMPDIR/end"
  wait_until grep -q ready "$(background_stdout pet)"
  PET=${BACKGROUND_PID[pet]}
}

# It has noticed nothing, and runs.
assert_pet_untouched() {
  assert is_alive "$PET"
  touch "$BATS_TEST_TMPDIR/end"
  wait_background pet
  assert_equal "$status $output" "5 ready"
}

# --- While the process lives, and when it ends ---

@test "the lease is renewed while the script lives, and released when it exits; what it leaves behind runs on" {
  start_script ours -t 2s
  local pid
  wait_until expires_after 0 "$(($(expires_at 0) + 5000))"
  touch "$BATS_TEST_TMPDIR/end"
  wait_background ours
  assert_equal "$status $stderr" "23 "
  wait_until is_dead "$HOLDER"
  assert_equal "$(keys_at 0)" ""
  for pid in "${TREE[@]:1}"; do assert is_alive "$pid"; done
}

@test "a script that is killed with KILL: the lock is released" {
  start_script ours -t 60s
  kill -KILL "$SCRIPT"
  wait_until is_dead "$HOLDER"
  assert_equal "$(keys_at 0)" ""
  assert is_alive "${TREE[1]}"
}

@test "exec keeps the lock, and an exec that fails ends the script and releases it" {
  start_background ours bash -c 'redlock-cli acquire -k demo --while-pid $$ && exec sleep 1000'
  wait_for_key 0 demo
  wait_until grep -qx sleep "/proc/${BACKGROUND_PID[ours]}/comm"
  find_holder
  assert_equal "$(redis 0 exists demo)" 1
  kill "${BACKGROUND_PID[ours]}"
  wait_background ours
  wait_until is_dead "$HOLDER"
  assert_equal "$(keys_at 0)" ""

  start_background ours bash -c 'redlock-cli acquire -k demo --while-pid $$ && exec /no/such/program'
  wait_background ours
  assert_equal "$status" 127
  assert_regex "$output" '^[0-9a-f]{32}$'
  wait_until no_holders
  assert_equal "$(keys_at 0)" ""
}

@test "a process that ends while the lock is still waited for never has it for longer than a moment" {
  hold other
  start_pet
  start_background waiter redlock-cli acquire -k demo --while-pid "$PET"
  wait_until grep -q "waiting for" "$(background_stderr waiter)"
  touch "$BATS_TEST_TMPDIR/end"
  wait_background pet
  release_hold other
  wait_background waiter
  wait_until no_holders
  assert_equal "$(keys_at 0)" ""
}

@test "several locks for one process are all kept, and all released" {
  start_pet
  local key
  for key in demo second third; do redlock-cli acquire -k "$key" -t 60s --while-pid "$PET"; done
  find_holder 3
  assert_equal "$(redis 0 exists demo second third)" 3
  touch "$BATS_TEST_TMPDIR/end"
  wait_until no_holders
  assert_equal "$(keys_at 0)" ""
}

@test "two servers of three are enough, and all are released" {
  start_servers 2
  export REDLOCK_SERVER=$SERVERS
  pause_server 1
  start_pet
  redlock-cli acquire -k demo -t 6s --while-pid "$PET"
  find_holder
  resume_server 1
  wait_until expires_after 0 "$(($(expires_at 0) + 3000))"
  touch "$BATS_TEST_TMPDIR/end"
  wait_until is_dead "$HOLDER"
  local i
  for i in 0 1 2; do wait_until is_clean "$i"; done
}

is_clean() { [[ -z $(keys_at "$1") ]]; }

# --- How the lease is handed over ---

@test "the caller's stdout, stderr and inherited descriptors are let go of: nobody who reads them waits" {
  start_pet
  run -0 bash -c 'token=$(redlock-cli acquire -k demo --while-pid "$0" 9<"$1"); echo "<$token>"' "$PET" "$WITNESS"
  assert_equal "$output" "<$(redis 0 get demo)>"
  find_holder
  # Neither is it kept from others by a lock on what was inherited.
  wait_until lets_go_of_everything
  kill -KILL "$HOLDER"
  redis 0 del demo
  run -0 bash -c 'redlock-cli acquire -k demo --while-pid "$0" -v 2>&1 | cat' "$PET"
  assert_line "$(redis 0 get demo)"
}

lets_go_of_everything() {
  local fd
  for fd in 0 1 2; do [[ /proc/$HOLDER/fd/$fd -ef /dev/null ]] || return; done
  for fd in "/proc/$HOLDER/fd"/*; do [[ ! $fd -ef $WITNESS ]] || return; done
}

@test "the lease is handed out as it always is: token, --export, --token-file, --json" {
  start_pet
  local file=$BATS_TEST_TMPDIR/lease exports
  keep() { run -0 --separate-stderr redlock-cli acquire -k demo -t 60s --while-pid "$PET" "$@"; }
  # Released by hand, it takes the holder along; here nobody waits for the next renewal.
  end() {
    find_holder
    kill -KILL "$HOLDER"
    wait_until is_dead "$HOLDER"
  }

  keep
  assert_equal "$output|$stderr" "$(redis 0 get demo)|"
  end
  redlock-cli release -k demo --force

  keep --export
  exports=$output
  run -0 bash -c 'eval "$0" && echo "$REDLOCK_KEY $REDLOCK_TOKEN" && redlock-cli release' "$exports"
  assert_regex "$output" '^demo [0-9a-f]{32}$'
  end

  keep --token-file "$file"
  assert_equal "$output|$stderr" "|"
  assert_equal "$(stat -c %a "$file")" 600
  run -0 redlock-cli release --token-file "$file"
  end

  keep --json
  assert_equal "$(json '(j["command"], j["result"], j["exit_code"], j["token"], j["ttl_ms"])')" \
    "('acquire', 'acquired', 0, '$(redis 0 get demo)', 60000)"
  end
  assert_pet_untouched
}

@test "others see for whom the lock is kept" {
  start_background pet bash -c 'exec -a pet sleep 1000'
  wait_until grep -qx sleep "/proc/${BACKGROUND_PID[pet]}/comm"
  redlock-cli acquire -k demo --while-pid "${BACKGROUND_PID[pet]}" --note "night shift"
  run -0 redlock-cli status -k demo --json
  assert_equal "$(json '[j["locks"][0]["holder"][name] for name in ("pid", "program", "note")]')" \
    "[${BACKGROUND_PID[pet]}, 'sleep', 'night shift']"
}

@test "the default ttl is that of run, and --ttl is another" {
  start_pet
  redlock-cli acquire -k demo --while-pid "$PET"
  assert_in_range "$(redis 0 pttl demo)" 20000 30000
  redlock-cli acquire -k other --while-pid "$PET" -t 10m
  assert_in_range "$(redis 0 pttl other)" 500000 600000
}

@test "a lease that does not reach the caller is released, and nobody keeps it: 71" {
  start_pet
  local redirection
  for redirection in '>/dev/full' '>/dev/full --export' '>/dev/full --json' '>&-' '--token-file /no/such/place/lease'; do
    run -71 bash -c 'eval "redlock-cli acquire -k demo -t 60s --while-pid $0 $1"' "$PET" "$redirection"
    assert_output --partial "the lock was released again"
    assert_equal "$redirection: $(keys_at 0)" "$redirection: "
    wait_until no_holders
  done
  run -71 bash -c 'redlock-cli acquire -k demo --while-pid "$0" --json --token-file "$1" >/dev/full' "$PET" "$BATS_TEST_TMPDIR/lease"
  assert [ ! -e "$BATS_TEST_TMPDIR/lease" ]
  assert_equal "$(keys_at 0)" ""
  assert_pet_untouched
}

# --- No lease ---

@test "another holds the lock: 75, nothing is left behind, and with --export eval fails" {
  hold other
  start_pet
  assert_refused 75 "held by" redlock-cli acquire -k demo --while-pid "$PET" -n
  run -75 --separate-stderr redlock-cli acquire -k demo --while-pid "$PET" -n --export
  assert_output "unset REDLOCK_KEY REDLOCK_TOKEN REDLOCK_FENCE REDLOCK_LEASE; (exit 75)"
  run -9 --separate-stderr redlock-cli acquire -k demo --while-pid "$PET" -n -E 9 -q
  assert_equal "$output$stderr" ""
  assert_equal "$(holders)" "$(holder_of "${BACKGROUND_PID[other]}")"
  assert_pet_untouched
  release_hold other
  assert_equal "$(keys_at 0)" ""
}

@test "it waits for its turn, and a signal ends the wait" {
  hold other
  start_pet
  local signal
  for signal in INT TERM; do
    start_background waiter redlock-cli acquire -k demo --while-pid "$PET" --export
    wait_until grep -q "waiting for" "$(background_stderr waiter)"
    kill -s "$signal" "${BACKGROUND_PID[waiter]}"
    wait_background waiter
    assert_equal "$status $output" "$((128 + $(kill -l "$signal"))) unset REDLOCK_KEY REDLOCK_TOKEN REDLOCK_FENCE REDLOCK_LEASE; (exit $((128 + $(kill -l "$signal"))))"
  done
  start_background waiter redlock-cli acquire -k demo --while-pid "$PET"
  wait_until grep -q "waiting for" "$(background_stderr waiter)"
  release_hold other
  wait_background waiter
  assert_equal "$status $output" "0 $(redis 0 get demo)"
  find_holder
}

@test "killed with KILL while it waits, it leaves no holder that takes the lock later" {
  hold other
  start_pet
  start_background waiter redlock-cli acquire -k demo --while-pid "$PET"
  wait_until grep -q "waiting for" "$(background_stderr waiter)"
  HOLDER=$(holder_of "${BACKGROUND_PID[waiter]}")
  kill -KILL "${BACKGROUND_PID[waiter]}"
  wait_until is_dead "$HOLDER"
  release_hold other
  assert_equal "$(keys_at 0)" ""
}

@test "a process that is not there, or is no process, is refused, and no lock taken" {
  local pid
  assert_refused 64 "there is no such process" redlock-cli acquire -k demo --while-pid "$(</proc/sys/kernel/pid_max)"
  assert_refused 64 "0 is no process" redlock-cli acquire -k demo --while-pid 0
  for pid in self -1 1.5 "" 99999999999 0x1 "1 2"; do
    assert_refused 64 "while-pid" redlock-cli acquire -k demo --while-pid="$pid"
  done
  run -64 --separate-stderr redlock-cli acquire -k demo --while-pid 0 --export
  assert_output "unset REDLOCK_KEY REDLOCK_TOKEN REDLOCK_FENCE REDLOCK_LEASE; (exit 64)"
  assert_equal "$(redis 0 dbsize)" 0
}

@test "a process that may not be signalled is refused, and no lock taken" {
  local pid=1
  local -a powerless=()
  if ((EUID == 0)); then
    start_background other setpriv --reuid 65534 --regid 65534 --clear-groups sleep 1000
    pid=${BACKGROUND_PID[other]}
    wait_until grep -q "^Uid:.65534" "/proc/$pid/status"
    powerless=(setpriv --bounding-set=-kill)
  elif kill -0 1 2>/dev/null; then
    skip "there is no process of another user"
  fi
  assert_refused 64 "you may not signal it" "${powerless[@]}" redlock-cli acquire -k demo --while-pid "$pid"
  assert_equal "$(redis 0 dbsize)" 0
}

@test "options are read before anything is locked: a ttl too short for the grace is 64" {
  start_pet
  assert_refused 64 "ttl" redlock-cli acquire -k demo -t 1s --grace 5s --while-pid "$PET"
  assert_refused 64 "no signal" redlock-cli acquire -k demo --stop-signal NONE --while-pid "$PET"
  assert_refused 64 "on-lost" redlock-cli acquire -k demo --on-lost never --while-pid "$PET"
  assert_equal "$(redis 0 dbsize)" 0
}

@test "a grace for which the default ttl is too short is 64" {
  start_pet
  assert_refused 64 "the default --ttl of 30s is too short" redlock-cli acquire -k demo --grace 25s --while-pid "$PET"
  assert_equal "$(redis 0 dbsize)" 0
}

@test "a lease that is granted while the caller's job is stopped is kept until the caller has it" {
  hold other
  start_pet
  start_background waiter redlock-cli acquire -k demo -t 2s --while-pid "$PET"
  wait_until grep -q "waiting for" "$(background_stderr waiter)"
  kill -STOP "${BACKGROUND_PID[waiter]}"
  release_hold other
  wait_until eval '[[ $(redis 0 exists demo) == 1 ]]'
  local token
  token=$(redis 0 get demo)
  # Extended beyond what the grant gave.
  wait_until expires_after 0 "$(($(expires_at 0) + 2000))"
  kill -CONT "${BACKGROUND_PID[waiter]}"
  wait_background waiter
  assert_equal "$status $output" "0 $token"
  assert_equal "$(redis 0 get demo)" "$token"
  assert_pet_untouched
}

@test "a process that ends before its lease was handed over: the lock is released" {
  hold other
  start_pet
  start_background waiter redlock-cli acquire -k demo --while-pid "$PET"
  wait_until grep -q "waiting for" "$(background_stderr waiter)"
  kill -STOP "${BACKGROUND_PID[waiter]}"
  release_hold other
  wait_until eval '[[ $(redis 0 exists demo) == 1 ]]'
  assert_pet_untouched
  wait_until eval '[[ $(redis 0 exists demo) == 0 ]]'
  kill -CONT "${BACKGROUND_PID[waiter]}"
  wait_background waiter
}

# --- By hand ---

@test "extend and release by hand work; the holder then goes away by itself, and the process is not touched" {
  start_pet
  local exports next
  exports=$(redlock-cli acquire -k demo --while-pid "$PET" -t 6s --export)
  eval "$exports"
  find_holder
  redlock-cli extend --ttl 10m
  assert_in_range "$(redis 0 pttl demo)" 500000 600000
  # The next renewals do not shorten it.
  redis 0 set timer x px 2500
  wait_for_no_key 0 timer
  assert_in_range "$(redis 0 pttl demo)" 500000 600000
  redlock-cli release
  assert_equal "$(redis 0 exists demo)" 0
  # Whoever is in next is none of our business.
  next=$(redlock-cli acquire -k demo --ttl 60s)
  wait_until is_dead "$HOLDER"
  assert_equal "$(redis 0 get demo)" "$next"
  assert_pet_untouched
}

@test "a script releases its lock, goes on, and takes it again" {
  start_background ours bash -c '
    for turn in 1 2 3; do
      lease=$(redlock-cli acquire -k demo -n --while-pid $$ --export) || exit
      eval "$lease"
      redlock-cli release || exit
    done
    echo ended'
  wait_background ours
  assert_equal "$status $output$stderr" "0 ended"
  wait_until no_holders
  assert_equal "$(redis 0 exists demo)" 0
}

# --- The lease is lost ---

@test "a key that is deleted: the script and all that descends from it is dead, and nothing lies under the key" {
  start_script ours -t 4s --grace 300ms
  redis 0 del demo
  wait_until is_dead "$HOLDER"
  assert_tree_dead
  wait_background ours
  assert_equal "$status" 143
  assert_equal "$(redis 0 exists demo)" 0
}

@test "a key that is overwritten: the same, and the other's lock stays as it is" {
  start_script ours -t 4s --grace 300ms
  redis 0 set demo theirs
  wait_until is_dead "$HOLDER"
  assert_tree_dead
  assert_equal "$(redis 0 get demo) $(redis 0 pttl demo)" "theirs -1"
}

@test "a lock that is broken by release --force: the same" {
  start_script ours -t 4s --grace 300ms
  redlock-cli release -k demo --force
  wait_until is_dead "$HOLDER"
  assert_tree_dead
  # What is left says who did it, until the lease would have ended.
  assert_unlocked demo 0
}

@test "a server that is stopped: the script and all that descends from it is dead before the key could expire" {
  start_script ours -t 3s --grace 300ms
  stop_servers_for_good 3000 0
  assert_dead_before_expiry
  assert_tree_dead
  wait_until is_dead "$HOLDER"
  resume_server 0
  run -0 redlock-cli run -w 10s -k demo -- true
  assert_equal "$(keys_at 0)" ""
}

@test "a script that ignores TERM, or is stopped, is dead before the lock is free" {
  local manner
  for manner in 'trap "" TERM; echo ready; while :; do sleep 0.02; done' 'echo ready; kill -STOP $$; echo went on; sleep 1000'; do
    start_watched ours bash -c 'redlock-cli acquire -k demo --while-pid $$ -t 4s --grace 300ms --token-file "$0/lease"; '"$manner" "$BATS_TEST_TMPDIR"
    redis 0 pexpire demo 1
    wait_until is_dead "$HOLDER"
    flock -xn "$WITNESS" true
    wait_background ours
    assert_equal "$output" ready
    assert_in_range "$status" 137 143
  done
}

@test "a script that forks all the time loses none of them" {
  start_watched ours /usr/bin/python3 -c '
import os, signal, subprocess, sys, time
subprocess.run(["redlock-cli", "acquire", "-k", "demo", "--while-pid", str(os.getpid()), "-t", "6s", "--grace", "300ms",
                "--token-file", sys.argv[1]], check=True, close_fds=False)
print("ready", flush=True)
while not os.path.exists(sys.argv[2]):
    time.sleep(0.001)
# Each stays until it is killed; TERM does not do it.
for forks in range(3000):
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            signal.pause()
    time.sleep(0.001)
time.sleep(1000)' "$BATS_TEST_TMPDIR/lease" "$BATS_TEST_TMPDIR/go"
  # Lost by the next renewal, two seconds after the last, while it forks.
  redis 0 del demo
  touch "$BATS_TEST_TMPDIR/go"
  wait_until is_dead "$HOLDER"
  flock -xn "$WITNESS" true
  wait_background ours
  assert_equal "$status" 143
}

@test "what descends from the script has its grace, though the script itself ends at once" {
  start_watched ours bash -c '
    redlock-cli acquire -k demo --while-pid $$ -t 12s --grace 3s --token-file "$0/lease"
    bash -c "trap \"sleep 0.5; touch \$0/cleaned; exit\" TERM; echo ready; while :; do sleep 0.02; done" "$0"
    exit 3' "$BATS_TEST_TMPDIR"
  redis 0 del demo
  wait_until is_dead "$SCRIPT"
  wait_until is_dead "$HOLDER"
  flock -xn "$WITNESS" true
  assert [ -e "$BATS_TEST_TMPDIR/cleaned" ]
}

@test "--stop-signal is what the script is told with" {
  start_watched ours bash -c '
    redlock-cli acquire -k demo --while-pid $$ -t 6s --grace 1s --stop-signal USR1 --token-file "$0/lease"
    trap "echo USR1; exit 7" USR1; trap "echo TERM" TERM; echo ready; while :; do sleep 0.02; done' "$BATS_TEST_TMPDIR"
  redis 0 del demo
  wait_background ours
  assert_equal "$status ${lines[*]}" "7 ready USR1"
  wait_until is_dead "$HOLDER"
}

@test "--on-lost term: the script and its descendants are told, and may end in their own time" {
  start_watched ours bash -c '
    redlock-cli acquire -k demo --while-pid $$ -t 2s --grace 100ms --on-lost term --token-file "$0/lease"
    bash -c "trap \"echo child\" TERM; echo up; until [[ -e \$0/end ]]; do sleep 0.02; done" "$0" &
    trap "echo told" TERM; echo ready; until [[ -e $0/end ]]; do sleep 0.02; done; exit 5' "$BATS_TEST_TMPDIR"
  wait_until grep -q up "$(background_stdout ours)"
  redis 0 del demo
  wait_until is_dead "$HOLDER"
  wait_until grep -q told "$(background_stdout ours)"
  wait_until grep -q child "$(background_stdout ours)"
  redis 0 set timer x px 2500
  wait_for_no_key 0 timer
  assert is_alive "$SCRIPT"
  touch "$BATS_TEST_TMPDIR/end"
  wait_background ours
  assert_equal "$status" 5
}

@test "--on-lost warn: nobody is told, and the holder goes" {
  start_pet
  redlock-cli acquire -k demo --while-pid "$PET" -t 2s --on-lost warn
  find_holder
  redis 0 set demo theirs
  wait_until is_dead "$HOLDER"
  assert_equal "$(redis 0 get demo)" theirs
  assert_pet_untouched
}

# --- The holder itself ---

@test "the holder bears neither our name nor our arguments, and ignores what ends others" {
  start_pet
  redlock-cli acquire -k demo --while-pid "$PET" -t 60s
  find_holder
  assert_equal "$(ps -o comm= -p "$HOLDER")" lock-holder
  refute grep -qaE 'redlock|demo' "/proc/$HOLDER/cmdline"
  local signal
  for signal in HUP INT QUIT TERM USR1 USR2 PIPE ALRM TSTP TTIN TTOU; do kill -s "$signal" "$HOLDER"; done
  # Whoever acts on signals has done so when it releases.
  touch "$BATS_TEST_TMPDIR/end"
  wait_until is_dead "$HOLDER"
  assert_equal "$(keys_at 0)" ""
}

@test "a holder that is killed: the lock expires by itself, and the process is not touched" {
  start_pet
  redlock-cli acquire -k demo --while-pid "$PET" -t 1s
  find_holder
  kill -KILL "$HOLDER"
  wait_for_no_key 0 demo
  assert_pet_untouched
}

@test "a holder that hung for longer than the lease stops the script as soon as it goes on" {
  start_script ours -t 2s --grace 100ms
  kill -STOP "$HOLDER"
  wait_for_no_key 0 demo
  kill -CONT "$HOLDER"
  wait_until is_dead "$HOLDER"
  assert_tree_dead
  assert_equal "$(keys_at 0)" ""
}
