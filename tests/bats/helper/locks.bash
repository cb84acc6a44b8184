# shellcheck shell=bash
# Helpers for tests of held locks.

# Starts one server and names it in REDLOCK_SERVER: a setup() for files that need no more. With
# BATS_STORE=local in the environment this host takes its place; a test of Redis itself has the tag
# redis and is then left out (tests/CMakeLists.txt).
setup_one_server() {
  common_setup
  if [[ ${BATS_STORE-} == local ]]; then start_local_store; else start_servers 1; fi
  export REDLOCK_SERVER=$SERVERS
}

# From now on servers may answer late, so that a single attempt also succeeds on a busy machine, and
# a released lock is free when the program ends. The default ttl has room for that; a shorter one
# needs its own --server-timeout.
allow_late_answers() { export REDLOCK_SERVER_TIMEOUT=4s; }

# hold NAME [OPTION…]: `run` holds the key demo in the background, until release_hold NAME; its pid
# is BACKGROUND_PID[NAME].
hold() {
  local name=$1
  shift
  start_background "$name" redlock-cli run -k demo "$@" -- \
    sh -c 'echo entered; until [ -e "$0" ]; do sleep 0.2; done' "$BATS_TEST_TMPDIR/$name.end"
  wait_for_stdout "$name" entered
}

# Lets its command end, and sets $status, $output and $stderr to those of `run`.
release_hold() {
  touch "$BATS_TEST_TMPDIR/$1.end"
  wait_background "$1"
}

# find_promptly: "${PROMPTLY[@]}" starts a waiter whose turn matters with a high priority, if this
# user may do that: on a busy machine it would be skipped, because it must react within a second of
# its notification.
PROMPTLY=()
find_promptly() {
  PROMPTLY=(chrt --rr 1)
  "${PROMPTLY[@]}" true 2>/dev/null || PROMPTLY=()
}

# waits NAME [OPTION…]: NAME waits in the background for the key demo, with its name as the note, and
# records in the file ran that it got the lock.
waits() {
  start_waiter "$@"
  wait_until note_waits "$1"
}
start_waiter() {
  local name=$1
  shift
  start_background "$name" "${PROMPTLY[@]}" redlock-cli run -k demo --note "$name" "$@" \
    -- sh -c 'echo "$0" >>"$1"' "$name" "$BATS_TEST_TMPDIR/ran"
}
note_waits() {
  redlock-cli status demo --json |
    jq -es --arg note "$1" 'any(.[].locks[0].waiters.first[]?; .note == $note)' >/dev/null
}

# Who had the lock, in order.
ran() { paste -sd ' ' "$BATS_TEST_TMPDIR/ran"; }

# Acquires the key demo by hand on every server for five minutes, into the environment. A server
# that answers much later than the quorum is healed by an extension.
acquire_at_all() {
  eval "$(redlock-cli acquire -k demo -t 5m --export)"
  wait_until held_at_all
}
held_at_all() {
  local i
  for i in "${!SERVER_PID[@]}"; do
    has_key "$i" demo || { redlock-cli extend -t 5m && has_key "$i" demo; } || return
  done
}

# assert_one_ran BEGAN STATUS…: of the simultaneous single attempts from BEGAN on ($EPOCHREALTIME)
# exactly one ran; ONE_RAN counts how often. Split votes are retried for up to a second; after that
# all may have failed.
ONE_RAN=0
assert_one_ran() {
  local took=$((${EPOCHREALTIME/[.,]/} - ${1/[.,]/})) statuses
  shift
  statuses=$(printf '%s\n' "$@" | sort -n | paste -sd ' ')
  if [[ $statuses == "75 75 75" ]] && ((took >= 1000000)); then return; fi
  assert_equal "$statuses" "0 75 75"
  ONE_RAN=$((ONE_RAN + 1))
}

# The path of a program that runs its arguments when every server has granted the key demo. A
# command starts with a quorum, and a server that has not granted before its end keeps nothing.
granted_by_all() {
  executable granted_by_all <<END
#!/bin/sh
for socket in ${SERVER_SOCKET[*]}; do
  until [ "\$(redis-cli -s "\$socket" exists demo)" = 1 ]; do sleep 0.1; done
done
exec "\$@"
END
}

# Opens a pipe that no process reads at the descriptor given.
open_broken_pipe() {
  local pipe reader
  pipe=$(mktemp -u "$BATS_TEST_TMPDIR/pipe.XXXXXX")
  mkfifo "$pipe"
  exec {reader}<>"$pipe"
  eval "exec $1>\"\$pipe\""
  exec {reader}<&-
}

# All keys on server I except the fence counters and the last runs, which outlive their locks by
# design; sorted, in one line.
keys_at() {
  local found key kept=()
  mapfile -t found < <(redis "$1" keys '*' | sort)
  for key in "${found[@]}"; do
    [[ $key == redlock:@(fence|last):* ]] || kept+=("$key")
  done
  echo "${kept[*]}"
}

# locks_at I: the same without tombstones, which a lease leaves that other processes may have used.
locks_at() {
  local key kept=()
  for key in $(keys_at "$1"); do
    [[ $key == redlock:released:* ]] || kept+=("$key")
  done
  echo "${kept[*]}"
}

# The number of scripts that server I has run: every attempt runs at least one.
scripts_run() {
  redis "$1" info commandstats |
    awk -F '[=,]' '/^cmdstat_eval/ { calls += $2 } END { print calls + 0 }'
}

has_run_scripts() { (($(scripts_run "$1") >= $2)); }

# wait_for_queued N [I]: waits until N waiters for the key demo are queued on server I (default: the
# first).
wait_for_queued() { wait_for_answer "${2:-0}" "$1" zcard 'redlock:queue:{demo}'; }

# When the key demo on server I expires; whether that is after a time.
expires_at() { redis "$1" pexpiretime demo; }
expires_after() { (($(expires_at "$1") > $2)); }

# wait_for_extend I: waits until the key demo on server I expires later.
wait_for_extend() { wait_until expires_after "$1" "$(expires_at "$1")"; }

# force_reconnect I: cuts the connections to server I, and waits until the key demo is extended over
# a new one.
force_reconnect() {
  local before
  before=$(expires_at "$1")
  redis "$1" client kill type normal skipme yes
  wait_until expires_after "$1" "$before"
}
