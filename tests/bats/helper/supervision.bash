# shellcheck shell=bash
# A command with descendants of every kind, and checks of how they end.
#
# All of them hold a shared lock on the file $WITNESS through a descriptor that they inherit. A
# process that gets it exclusively thereby proves that they are dead, and helper/observer.py tries
# that at the decisive moment. The guards have closed it when start_tree returns.

# The pids of the command and of all its descendants, once start_tree has returned.
COMMAND=
TREE=()
# The guards.
FRONT=
HOLDER=

setup() { setup_supervision; }
teardown() { teardown_supervision; }

setup_supervision() {
  setup_one_server
  WITNESS=$BATS_TEST_TMPDIR/witness
  touch "$WITNESS"
}

# Processes that a failed test may have left alive, or that some tests leave on purpose.
teardown_supervision() {
  end_tree
  common_teardown
}

# Only processes that certainly belong to this test: a pid may have been reused by now.
end_tree() {
  local pid
  local -a pids=()
  [[ ! -e $BATS_TEST_TMPDIR/pids ]] || mapfile -t pids <"$BATS_TEST_TMPDIR/pids"
  for pid in "${pids[@]}"; do
    if holds_witness "$pid"; then kill -KILL "$pid"; fi
  done
}

holds_witness() { [[ -e /proc/$1/fd/9 && /proc/$1/fd/9 -ef $WITNESS ]]; }

# The command: a shell with a child, a daemon in a session of its own, a double-forked one, one that
# ignores TERM, one that is stopped, and one so large that it takes long to die. Each writes its pid
# to $1; all are up when it says `ready`. It ends with 23 when the file $2 appears.
tree() {
  executable tree <<'EOF'
#!/bin/bash
pids=$1 end=$2
note='echo "$BASHPID" >>"$0"; exec sleep 1000'
echo "$$" >"$pids"
bash -c "$note" "$pids" &
setsid bash -c "$note" "$pids" &
(setsid bash -c "$note" "$pids" &)
bash -c "trap '' TERM; $note" "$pids" &
bash -c "$note" "$pids" &
stopped=$!
/usr/bin/python3 -c 'import sys, os, time
large = b"x" * (64 << 20)
open(sys.argv[1], "a").write(f"{os.getpid()}\n")
time.sleep(1000)' "$pids" &
until [[ $(wc -l <"$pids") == 7 ]]; do sleep 0.1; done
kill -STOP "$stopped"
echo ready
until [[ -e $end ]]; do sleep 0.2; done
exit 23
EOF
}

# start_tree NAME OPTION…: runs it under the lock demo.
start_tree() {
  start_under_witness "$1" -k demo --status-fd 8 "${@:2}" \
    -- "$(tree)" "$BATS_TEST_TMPDIR/pids" "$BATS_TEST_TMPDIR/end"
}

# start_under_witness NAME WORD…: `redlock-cli run WORD…` with a command that prints `ready` when
# all its pids are in the file pids.
start_under_witness() {
  local name=$1
  shift
  start_background "$name" sh -c 'flock -s 9; exec redlock-cli run "$@"' - \
    "$@" 8>"$BATS_TEST_TMPDIR/report" 9<"$WITNESS"
  wait_for_stdout "$name" ready
  mapfile -t TREE <"$BATS_TEST_TMPDIR/pids"
  COMMAND=${TREE[0]}
  FRONT=${BACKGROUND_PID[$name]}
  HOLDER=$(holder_of "$FRONT")
  wait_until guards_hold_nothing
}

guards_hold_nothing() { ! holds_witness "$FRONT" && ! holds_witness "$HOLDER"; }

# The holder process of the `run` with this pid; it is below a shield if that process has other
# children.
holder_of() {
  local child
  for child in $(<"/proc/$1/task/$1/children"); do
    case $(<"/proc/$child/comm") in
      lock-holder) echo "$child" ;;
      lock-shield) holder_of "$child" ;;
    esac
  done
}

report() { cat "$BATS_TEST_TMPDIR/report"; }

# reported EXPRESSION: the value for the line of --status-fd.
reported() {
  output=$(report)
  json "$1"
}

# Whether the process exists and is not a zombie.
is_alive() {
  local stat=
  { read -rd '' stat <"/proc/$1/stat"; } 2>/dev/null || true
  stat=${stat##*) }
  [[ ${stat:0:1} == [^ZX] ]]
}
is_stopped() { [[ $(<"/proc/$1/stat") == *') T '* ]]; }
is_dead() { ! is_alive "$1"; }

is_tree_dead() {
  local pid
  for pid in "${TREE[@]}"; do is_dead "$pid" || return 1; done
}

# All of them, and any processes that they have started.
assert_tree_dead() {
  local pid
  assert [ "${#TREE[@]}" -gt 0 ]
  for pid in "${TREE[@]}"; do
    if is_alive "$pid"; then fail "$pid is alive: $(tr '\0' ' ' <"/proc/$pid/cmdline")"; fi
  done
  flock -xn "$WITNESS" true || fail "a process of the tree is alive"
}

# --- The observer ---

observe() {
  start_background observer /usr/bin/python3 "$BATS_TEST_DIRNAME/helper/observer.py" "$@"
}

# watch_lock [I…]: observes the given servers (default: the only one) from now on; they must have
# the lock.
watch_lock() {
  await_lock "$@"
  wait_for_stdout observer watching
}

# await_lock [I…]: the same from the moment when they have the lock, for a lock that may be too
# short for a busy machine to observe.
await_lock() {
  local i
  local -a sockets=()
  (($#)) || set -- 0
  for i; do sockets+=("${SERVER_SOCKET[i]}"); done
  observe gone "$WITNESS" demo "${sockets[@]}"
  wait_for_stdout observer looking
}

# assert_dead_before_free: all were dead at the moment when the lock became free. Sets LEFT to the
# remaining time of the lease then, in ms.
assert_dead_before_free() {
  wait_background observer
  assert_equal "$status ${lines[*]% *} $stderr" "0 looking watching dead "
  LEFT=${lines[-1]#* }
}

# stop_servers_for_good TTL I…: stops the servers, as if the network were gone, for a ttl in ms, and
# observes like watch_lock.
stop_servers_for_good() {
  local ttl=$1 i
  local -a servers=()
  shift
  for i; do servers+=("${SERVER_SOCKET[i]}=${SERVER_PID[i]}"); done
  observe stop "$WITNESS" demo "$ttl" "${servers[@]}"
  wait_for_stdout observer stopped
}

# assert_dead_before_expiry: all were dead when the stopped servers could have granted the lock to
# another holder.
assert_dead_before_expiry() {
  wait_background observer
  assert_equal "$status ${lines[1]} $stderr" "0 dead "
}

# expires_within I MILLISECONDS
expires_within() {
  local left
  left=$(redis "$1" pttl demo)
  ((left > 0 && left < $2))
}

as_root() { ((EUID == 0)) || skip "needs root"; }
