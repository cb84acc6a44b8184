#!/usr/bin/env bats
# acquire --while-pid: a lease that is renewed for as long as a process lives.
load helper/common
load helper/supervision
load helper/while_pid

# --- While the process lives, and when it ends ---

@test "the lease is renewed while the script lives, and released when it exits; processes that it leaves continue" {
  start_script ours -t 6s --grace 300ms --server-timeout 1s
  local pid
  wait_until expires_after 0 "$(($(expires_at 0) + 6000))"
  touch "$BATS_TEST_TMPDIR/end"
  wait_background ours
  assert_equal "$status $stderr" "23 "
  wait_until is_dead "$HOLDER"
  assert_equal "$(locks_at 0)" ""
  for pid in "${TREE[@]:1}"; do assert is_alive "$pid"; done
}

@test "the holder does not keep the directory of the script" {
  cd "$BATS_TEST_TMPDIR"
  start_script ours -t 60s
  assert_equal "$(readlink "/proc/$HOLDER/cwd")" /
}

@test "a script that is killed with KILL: the lock is released" {
  start_script ours -t 60s
  kill -KILL "$SCRIPT"
  wait_until is_dead "$HOLDER"
  assert_equal "$(locks_at 0)" ""
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
  assert_equal "$(locks_at 0)" ""

  start_background ours \
    bash -c 'redlock-cli acquire -k demo --while-pid $$ && exec /no/such/program'
  wait_background ours
  assert_equal "$status" 127
  assert_regex "$output" '^[0-9a-f]{32}$'
  wait_until no_holders
  assert_equal "$(locks_at 0)" ""
}

@test "a process that ends during the wait: the wait ends, and nothing is left in the queue" {
  hold other
  start_pet
  pet_begins waiter redlock-cli acquire -k demo --while-pid "$PET" --export
  wait_for_queued 1
  touch "$BATS_TEST_TMPDIR/end"
  wait_background pet
  pet_ends waiter
  assert_equal "$status $output" \
    "71 unset REDLOCK_KEY REDLOCK_TOKEN REDLOCK_FENCE REDLOCK_LEASE; (exit 71)"
  assert_regex "$stderr" "process $PET has ended"
  assert_equal "$(redis 0 zcard 'redlock:queue:{demo}')" 0
  release_hold other
  wait_until no_holders
  assert_equal "$(locks_at 0)" ""
}

@test "a holder that is killed during the wait: 71, and no message speaks of a lock that it had" {
  redis 0 set demo x
  start_background waiter redlock-cli acquire -k demo --while-pid $$
  wait_for_stderr waiter "waiting for demo"
  find_holder
  kill -KILL "$HOLDER"
  wait_background waiter
  assert_equal "$status $output" "71 "
  assert_regex "$stderr" \
    "redlock-cli: the holder process ended without a result; the lock, if it was held, expires by itself\$"
}

@test "several locks for one process are all kept, and all released" {
  start_pet
  local key
  for key in demo second third; do
    by_pet redlock-cli acquire -k "$key" -t 60s --while-pid "$PET"
  done
  find_holder 3
  assert_equal "$(redis 0 exists demo second third)" 3
  touch "$BATS_TEST_TMPDIR/end"
  wait_until no_holders
  assert_equal "$(locks_at 0)" ""
}

@test "two servers of three are enough, and all are released" {
  start_servers 2
  export REDLOCK_SERVER=$SERVERS
  pause_server 1
  start_pet
  by_pet redlock-cli acquire -k demo -t 6s --while-pid "$PET"
  find_holder
  resume_server 1
  wait_until expires_after 0 "$(($(expires_at 0) + 3000))"
  touch "$BATS_TEST_TMPDIR/end"
  wait_until is_dead "$HOLDER"
  local i
  for i in 0 1 2; do wait_until is_clean "$i"; done
}

is_clean() { [[ -z $(locks_at "$1") ]]; }

# --- How the lease is passed on ---

@test "the caller's stdout, stderr and inherited descriptors are closed: no reader of them waits" {
  start_pet
  run -0 by_pet \
    bash -c 'token=$(redlock-cli acquire -k demo --while-pid "$0" 9<"$1"); echo "<$token>"' \
    "$PET" "$WITNESS"
  assert_equal "$output" "<$(redis 0 get demo)>"
  find_holder
  # Nor do locks on inherited descriptors keep it from others.
  wait_until lets_go_of_everything
  kill -KILL "$HOLDER"
  redis 0 del demo
  run -0 by_pet bash -c 'redlock-cli acquire -k demo --while-pid "$0" -v 2>&1 | cat' "$PET"
  assert_line "$(redis 0 get demo)"
}

lets_go_of_everything() {
  local fd
  for fd in 0 1 2; do [[ /proc/$HOLDER/fd/$fd -ef /dev/null ]] || return; done
  for fd in "/proc/$HOLDER/fd"/*; do [[ ! $fd -ef $WITNESS ]] || return; done
}

@test "the lease is passed on in every form: token, --export, --token-file, --json" {
  start_pet
  local file=$BATS_TEST_TMPDIR/lease exports
  keep() {
    run -0 --separate-stderr by_pet redlock-cli acquire -k demo -t 60s --while-pid "$PET" "$@"
  }
  # The release by hand ends the holder process, too; here we do not wait for the next renewal.
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

@test "a lease is passed on completely, however long its keys are" {
  local -a keys=()
  local quotes i
  quotes=$(printf "%4000s" "" | tr ' ' "'")
  for i in {1..8}; do keys+=(-k "$quotes$i"); done
  run -0 --separate-stderr bash -c '
    lease=$(redlock-cli acquire "$@" --while-pid $$ --export) || exit
    eval "$lease" && [[ $(redis-cli -s "$0" dbsize) != 0 ]] && redlock-cli release' \
    "${SERVER_SOCKET[0]}" "${keys[@]}"
  assert_equal "$output$stderr" ""
  wait_until no_holders
  for i in {1..8}; do assert_equal "$(redis 0 exists "$quotes$i")" 0; done
}

@test "a lease that cannot be passed to the caller is released: 71" {
  local -a keys=()
  local i
  for i in {1..60}; do keys+=(-k "k$i"); done
  run -71 --separate-stderr \
    bash -c 'ulimit -f 1; redlock-cli acquire "$@" --while-pid $$ --export; exit' - "${keys[@]}"
  assert_output "unset REDLOCK_KEY REDLOCK_TOKEN REDLOCK_FENCE REDLOCK_LEASE; (exit 71)"
  assert_regex "$stderr" "could not be handed over; the lock was released"
  wait_until no_holders
  assert_equal "$(locks_at 0)" ""
}

@test "within a run of another key the holder is not reported as left running" {
  local outer
  start_background outer redlock-cli run -k other -q --status-fd 8 -- bash -c '
    redlock-cli acquire -k demo --while-pid $$ >/dev/null || exit
    echo "$PPID ready"
    until [[ -e $0/end ]]; do sleep 0.1; done' "$BATS_TEST_TMPDIR" 8>"$BATS_TEST_TMPDIR/report"
  wait_for_stdout outer ready
  outer=$(sed 's/ .*//' "$(background_stdout outer)")
  HOLDER=$(holders | grep -vx "$outer")
  # So that it certainly still exists.
  kill -STOP "$HOLDER"
  touch "$BATS_TEST_TMPDIR/end"
  wait_background outer
  assert_equal "$status $stderr" "0 "
  assert_equal "$(jq -c '[.result, .left]' "$BATS_TEST_TMPDIR/report")" '["released",[]]'
  assert is_alive "$HOLDER"
  kill -CONT "$HOLDER"
  wait_until is_dead "$HOLDER"
  assert_equal "$(locks_at 0)" ""
}

@test "within a run of the same key the lease is inherited, and the holder is not reported either" {
  run -0 --separate-stderr redlock-cli run -q -k demo -- sh -c '
    redlock-cli acquire -k demo --while-pid $$ >/dev/null
    redlock-cli status demo --exit-code >/dev/null; echo $?'
  assert_equal "$output$stderr" 75
  wait_until no_holders
  # The run leaves a tombstone if its holder has ended only now.
  wait_for_no_key 0 demo
}

@test "other processes see for which process the lock is kept" {
  start_background pet \
    bash -c 'redlock-cli acquire -k demo --while-pid $$ --note "night shift" && exec sleep 1000'
  wait_for_key 0 demo
  run -0 redlock-cli status -k demo --json
  assert_equal "$(json '[j["locks"][0]["holder"][name] for name in ("pid", "program", "note")]')" \
    "[${BACKGROUND_PID[pet]}, 'bash', 'night shift']"
}

@test "the default ttl is that of run, and --ttl overrides it" {
  start_pet
  by_pet redlock-cli acquire -k demo --while-pid "$PET"
  assert_in_range "$(redis 0 pttl demo)" 20000 30000
  by_pet redlock-cli acquire -k other --while-pid "$PET" -t 10m
  assert_in_range "$(redis 0 pttl other)" 500000 600000
}

@test "a lease that does not reach the caller is released, and no process keeps it: 71" {
  start_pet
  local redirection
  for redirection in '>/dev/full' '>/dev/full --export' '>/dev/full --json' '>&-' \
    "--token-file $BATS_TEST_TMPDIR/$(printf '%0250d' 0)"; do
    run -71 by_pet bash -c 'eval "redlock-cli acquire -k demo -t 60s --while-pid $0 $1"' "$PET" \
      "$redirection"
    assert_output --partial "the lock was released"
    assert_equal "$redirection: $(locks_at 0)" "$redirection: "
    wait_until no_holders
  done
  run -71 by_pet \
    bash -c 'redlock-cli acquire -k demo --while-pid "$0" --json --token-file "$1" >/dev/full' \
    "$PET" "$BATS_TEST_TMPDIR/lease"
  assert [ ! -e "$BATS_TEST_TMPDIR/lease" ]
  assert_equal "$(locks_at 0)" ""
  assert_pet_untouched
}

# --- No lease ---

@test "another process holds the lock: 75, nothing is left behind, and with --export eval fails" {
  hold other
  start_pet
  assert_refused 75 "held by" by_pet redlock-cli acquire -k demo --while-pid "$PET" -n
  run -75 --separate-stderr by_pet redlock-cli acquire -k demo --while-pid "$PET" -n --export
  assert_output "unset REDLOCK_KEY REDLOCK_TOKEN REDLOCK_FENCE REDLOCK_LEASE; (exit 75)"
  run -9 --separate-stderr by_pet redlock-cli acquire -k demo --while-pid "$PET" -n -E 9 -q
  assert_equal "$output$stderr" ""
  # Theirs may still be closing their connections.
  wait_until only_holder_is "$(holder_of "${BACKGROUND_PID[other]}")"
  assert_pet_untouched
  release_hold other
  assert_equal "$(locks_at 0)" ""
}

only_holder_is() { [[ $(holders) == "$1" ]]; }

@test "it waits for its turn, and a signal ends the wait" {
  hold other
  start_pet
  local signal
  for signal in INT TERM; do
    pet_begins waiter redlock-cli acquire -k demo --while-pid "$PET" --export
    wait_for_stderr waiter "waiting for"
    kill -s "$signal" "${JOB_PID[waiter]}"
    pet_ends waiter
    assert_equal "$status $output" \
      "$((128 + $(kill -l "$signal"))) unset REDLOCK_KEY REDLOCK_TOKEN REDLOCK_FENCE \
REDLOCK_LEASE; (exit $((128 + $(kill -l "$signal"))))"
  done
  pet_begins waiter redlock-cli acquire -k demo --while-pid "$PET"
  wait_for_stderr waiter "waiting for"
  release_hold other
  pet_ends waiter
  assert_equal "$status $output" "0 $(redis 0 get demo)"
  find_holder
}

@test "killed with KILL while it waits, it leaves no holder that takes the lock later" {
  hold other
  start_pet
  pet_begins waiter redlock-cli acquire -k demo --while-pid "$PET"
  wait_for_stderr waiter "waiting for"
  HOLDER=$(holder_of "${JOB_PID[waiter]}")
  kill -KILL "${JOB_PID[waiter]}"
  wait_until is_dead "$HOLDER"
  release_hold other
  assert_equal "$(locks_at 0)" ""
}

@test "a missing or invalid process is refused, and no lock is acquired" {
  local pid
  assert_refused 64 "there is no such process" \
    redlock-cli acquire -k demo --while-pid "$(</proc/sys/kernel/pid_max)"
  assert_refused 64 "must be at least 1" redlock-cli acquire -k demo --while-pid 0
  for pid in self -1 1.5 "" 99999999999 0x1 "1 2"; do
    assert_refused 64 "while-pid" redlock-cli acquire -k demo --while-pid="$pid"
  done
  run -64 --separate-stderr redlock-cli acquire -k demo --while-pid 0 --export
  assert_output "unset REDLOCK_KEY REDLOCK_TOKEN REDLOCK_FENCE REDLOCK_LEASE; (exit 64)"
  assert_equal "$(redis 0 dbsize)" 0
}

@test "a process that may not be signalled is refused, and no lock is acquired" {
  as_root
  local ordinary=(setpriv --reuid 65534 --regid 65534 --clear-groups)
  "${ordinary[@]}" test -r "/proc/$$/stat" || skip "/proc hides processes of other users (hidepid)"
  assert_refused 64 "you may not signal it" env -u HOME -u XDG_CONFIG_HOME \
    "${ordinary[@]}" redlock-cli acquire -k demo --while-pid "$$"
  assert_equal "$(redis 0 dbsize)" 0
}

@test "a process that did not start the command is refused, be it unrelated, a sibling or a child" {
  start_background stranger sleep 1000
  assert_refused 64 "is not an ancestor of this command; use that of the script, \$\$" \
    redlock-cli acquire -k demo --while-pid "${BACKGROUND_PID[stranger]}"
  assert_refused 64 "is not an ancestor" \
    bash -c 'sleep 1000 & redlock-cli acquire -k demo --while-pid $!; code=$?; kill $!; exit $code'
  assert_equal "$(redis 0 dbsize)" 0
}

@test "any ancestor will do: a subshell, a function and another program below the script" {
  start_background ours bash -c '
    take() { (sh -c "redlock-cli acquire -k demo --while-pid $$; :" | cat); }
    take; echo ready; sleep 1000'
  wait_for_stdout ours ready
  find_holder
  kill -KILL "${BACKGROUND_PID[ours]}"
  wait_until is_dead "$HOLDER"
  assert_equal "$(locks_at 0)" ""
}

@test "the init of the machine is refused, that of a container is not" {
  if [[ $(readlink /proc/self/ns/pid) == 'pid:[4026531836]' ]]; then
    assert_refused 64 "1 is the init of this machine" redlock-cli acquire -k demo --while-pid 1
    assert_equal "$(redis 0 dbsize)" 0
  fi
  as_root
  start_background container unshare --pid --fork --kill-child --mount-proc bash -c '
    redlock-cli acquire -k demo --while-pid $$ && echo "ready as $$"
    until [[ -e $0 ]]; do sleep 0.1; done' "$BATS_TEST_TMPDIR/end"
  wait_for_stdout container ready
  assert_equal "$(tail -n 1 "$(background_stdout container)")" "ready as 1"
  assert_equal "$(redis 0 exists demo)" 1
  redis 0 pexpire demo 1
  touch "$BATS_TEST_TMPDIR/end"
  wait_background container
}

@test "the init of a container gets the signal at a loss if it handles it" {
  as_root
  start_background container unshare --pid --fork --kill-child --mount-proc bash -c '
    trap "echo told; exit 7" TERM
    redlock-cli acquire -k demo --while-pid $$ && echo ready
    while :; do sleep 0.1; done'
  wait_for_stdout container ready
  redis 0 del demo
  wait_background container
  assert_equal "$status" 7
  assert_line told
}

@test "the init of a container that does not handle it is reported as unsafe, once, and left alone" {
  as_root
  start_background container unshare --pid --fork --kill-child --mount-proc bash -c '
    redlock-cli acquire -k demo --while-pid $$ -t 6s --grace 1s && echo ready
    while :; do sleep 0.1; done'
  wait_for_stdout container ready
  redis 0 del demo
  wait_for_stderr container "UNSAFE: processes could not be killed and still run, "
  wait_until no_holders
}

# bats test_tags=unsanitized
@test "without a /proc that shows our processes it is refused, and no lock is acquired; a lease without a process needs none" {
  as_root
  run -71 --separate-stderr unshare --mount \
    bash -c 'mount -t tmpfs none /proc; redlock-cli acquire -k demo --while-pid $$'
  assert_equal "$output" ""
  assert_regex "$stderr" "--while-pid needs a /proc"
  run -71 --separate-stderr unshare --pid --fork \
    bash -c 'redlock-cli acquire -k demo --while-pid $$; exit'
  assert_regex "$stderr" "--while-pid needs a /proc"
  run -71 unshare --pid --fork bash -c 'redlock-cli acquire -k demo --while-pid $$ --export; exit'
  assert_line "unset REDLOCK_KEY REDLOCK_TOKEN REDLOCK_FENCE REDLOCK_LEASE; (exit 71)"
  assert_equal "$(redis 0 dbsize)" 0
  run -0 unshare --mount bash -c 'mount -t tmpfs none /proc; redlock-cli acquire -k demo -t 10s'
  assert_equal "$(redis 0 exists demo)" 1
}

@test "options are read before anything is locked: a ttl too short for the grace is 64" {
  start_pet
  assert_refused 64 "ttl" by_pet redlock-cli acquire -k demo -t 1s --grace 5s --while-pid "$PET"
  assert_refused 64 "unknown signal" by_pet \
    redlock-cli acquire -k demo --stop-signal NONE --while-pid "$PET"
  assert_refused 64 "on-lost" by_pet redlock-cli acquire -k demo --on-lost never --while-pid "$PET"
  assert_equal "$(redis 0 dbsize)" 0
}

@test "a grace for which the default ttl is too short is 64" {
  start_pet
  assert_refused 64 "the default --ttl of 30s is too short" by_pet \
    redlock-cli acquire -k demo --grace 25s --while-pid "$PET"
  assert_equal "$(redis 0 dbsize)" 0
}

@test "a lease that is granted while the caller's job is stopped is kept until the caller has it" {
  hold other
  start_pet
  pet_begins waiter redlock-cli acquire -k demo -t 6s --grace 300ms --server-timeout 1s \
    --while-pid "$PET"
  wait_for_stderr waiter "waiting for"
  kill -STOP "${JOB_PID[waiter]}"
  release_hold other
  wait_for_key 0 demo
  local token
  token=$(redis 0 get demo)
  # Extended beyond the original grant.
  wait_until expires_after 0 "$(($(expires_at 0) + 6000))"
  kill -CONT "${JOB_PID[waiter]}"
  pet_ends waiter
  assert_equal "$status $output" "0 $token"
  assert_equal "$(redis 0 get demo)" "$token"
  assert_pet_untouched
}

@test "a process that ends before its lease was passed on: the lock is released" {
  hold other
  start_pet
  pet_begins waiter redlock-cli acquire -k demo --while-pid "$PET"
  wait_for_stderr waiter "waiting for"
  kill -STOP "${JOB_PID[waiter]}"
  release_hold other
  wait_for_key 0 demo
  assert_pet_untouched
  wait_for_no_key 0 demo
  kill -CONT "${JOB_PID[waiter]}"
  pet_ends waiter
}

# --- By hand ---

@test "extend and release by hand work; the holder then ends, and the process is not touched" {
  start_pet
  local exports next
  exports=$(by_pet redlock-cli acquire -k demo --while-pid "$PET" -t 6s --export)
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
  # The next holder does not matter here.
  next=$(redlock-cli acquire -k demo --ttl 60s)
  wait_until is_dead "$HOLDER"
  assert_equal "$(redis 0 get demo)" "$next"
  assert_pet_untouched
}

@test "a script releases its lock, continues, and acquires it again" {
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

# --- The holder itself ---

@test "the holder has neither our name nor our arguments, and ignores the signals that end processes" {
  start_pet
  by_pet redlock-cli acquire -k demo --while-pid "$PET" -t 60s
  find_holder
  assert_equal "$(ps -o comm= -p "$HOLDER")" lock-holder
  refute grep -qaE 'redlock|demo' "/proc/$HOLDER/cmdline"
  local signal
  for signal in HUP INT QUIT TERM USR1 USR2 PIPE ALRM TSTP TTIN TTOU; do
    kill -s "$signal" "$HOLDER"
  done
  # A holder that acts on signals has done so when it releases.
  touch "$BATS_TEST_TMPDIR/end"
  wait_until is_dead "$HOLDER"
  assert_equal "$(locks_at 0)" ""
}

@test "a holder that is killed: the lock expires by itself, and the process is not touched" {
  start_pet
  by_pet redlock-cli acquire -k demo --while-pid "$PET" -t 3s
  find_holder
  kill -KILL "$HOLDER"
  wait_for_no_key 0 demo
  assert_pet_untouched
}

@test "a holder that hung for longer than the lease stops the script as soon as it continues" {
  start_script ours -t 6s --grace 300ms --server-timeout 1s
  kill -STOP "$HOLDER"
  wait_for_no_key 0 demo
  kill -CONT "$HOLDER"
  wait_until is_dead "$HOLDER"
  assert_tree_dead
  assert_equal "$(locks_at 0)" ""
}
