#!/usr/bin/env bats
# --isolate: the command in a cgroup of its own, or in a pid namespace; otherwise as without.
load helper/common
load helper/supervision

teardown() {
  [[ -z ${PUBLIC-} ]] || rm -rf "$PUBLIC"
  teardown_supervision
  [[ -z ${TEST_CGROUP-} ]] || leave_test_cgroup
}

# --- What this machine can do ---

# The directory of our own cgroup (version 2). The tests do not run under a mount that shows only a
# part of the hierarchy.
our_cgroup() {
  local mount path
  mount=$(awk '$4 == "/" && / - cgroup2 / { print $5; exit }' /proc/self/mountinfo)
  path=$(sed -n 's/^0:://p' /proc/self/cgroup)
  [[ -n $mount && -n $path ]] || return 1
  echo "$mount${path%/}"
}

# Moves this test into a cgroup of its own: other tests may run beside it.
needs_cgroup() {
  local ours
  ours=$(our_cgroup) || skip "no cgroup v2 is mounted"
  mkdir "$ours/isolation-test-$BASHPID" 2>/dev/null ||
    skip "needs root, or a cgroup that is delegated"
  TEST_CGROUP=$ours/isolation-test-$BASHPID
  # That of this very shell.
  if ! { echo "$BASHPID" >"$TEST_CGROUP/cgroup.procs"; } 2>/dev/null; then
    rmdir "$TEST_CGROUP"
    TEST_CGROUP=
    skip "needs a cgroup that is delegated as a whole"
  fi
}

# Whatever the test did, none of our processes may be left in it.
leave_test_cgroup() {
  local cgroup=$TEST_CGROUP left
  TEST_CGROUP=
  left=$(compgen -G "$cgroup/redlock-*") || true
  echo "$BASHPID" >"${cgroup%/*}/cgroup.procs"
  [[ -z $left ]] || find "$cgroup" -mindepth 1 -depth -type d -exec rmdir {} +
  wait_until rmdir "$cgroup"
  [[ -z $left ]] || fail "left behind: $left"
}

needs_pidns() {
  unshare --pid --fork --mount-proc true 2>/dev/null || skip "needs root with CAP_SYS_ADMIN"
}

# The cgroup of the `run` with this front.
cgroup_of_run() { compgen -G "$(our_cgroup)/redlock-$1-*"; }

no_cgroup_left() { ! compgen -G "$(our_cgroup)/redlock-*"; }

# Pids differ within a pid namespace. This sets TREE and COMMAND to the pids outside it.
find_tree() {
  local file pid inside child
  TREE=()
  for file in /proc/[0-9]*; do
    pid=${file#/proc/}
    holds_witness "$pid" || continue
    # A process that has ended meanwhile is not the one.
    inside=$(awk '/^NSpid:/ { print $NF }' "$file/status" 2>/dev/null) || continue
    if grep -qx "$inside" "$BATS_TEST_TMPDIR/pids"; then TREE+=("$pid"); fi
  done
  for child in $(<"/proc/$HOLDER/task/$HOLDER/children"); do
    case $(<"/proc/$child/comm") in
      lock-init) INIT=$child ;;
      lock-holder | 3) ;; # the tree witness
      *) COMMAND=$child ;;
    esac
  done
  printf '%s\n' "${TREE[@]}" >"$BATS_TEST_TMPDIR/pids"
  assert_equal "${#TREE[@]}" 7
}

start_isolated_tree() {
  start_tree "$1" --isolate "$2" "${@:3}"
  [[ $2 != pidns ]] || find_tree
}

# assert_inherits_as_without MODE: a command inherits the same with and without the mode.
assert_inherits_as_without() {
  local show mode
  show=$(executable show <<'END'
#!/usr/bin/python3
import os, resource, signal, stat, sys
print(sys.argv, os.getcwd(), os.umask(0), os.getgroups(), os.getuid(), os.nice(0),
      resource.getrlimit(resource.RLIMIT_NOFILE))
print(sorted(name for name in os.environ if name.startswith("REDLOCK")),
      os.getpgrp() == os.getpid(), os.getsid(0) == os.getpid())
with open("/proc/self/status") as file:
    print([line.strip() for line in file
           if line.startswith(("SigB", "SigI", "SigP", "Shd", "Cap", "NoNewPrivs"))])
for fd in sorted(map(int, os.listdir("/proc/self/fd"))):
    try:
        info = os.fstat(fd)
    except OSError:
        continue  # of the listing itself
    print(fd, stat.S_IFMT(info.st_mode), info.st_dev, info.st_ino)
print(sys.stdin.read())
END
)
  for mode in none "$1"; do
    env --ignore-signal=USR1,CHLD,PIPE --block-signal=HUP,ALRM \
      redlock-cli run -k demo --isolate "$mode" -- "$show" 'an argument' \
      <<<'the input' 7<"$WITNESS" 9<>"$BATS_TEST_TMPDIR/nine" >"$BATS_TEST_TMPDIR/$mode.shown" 2>&1
  done
  # Those are other files each time.
  sed -i '/^[012] /d' "$BATS_TEST_TMPDIR"/*.shown
  assert_equal "$(<"$BATS_TEST_TMPDIR/$1.shown")" "$(<"$BATS_TEST_TMPDIR/none.shown")"
  grep -q 'the input' "$BATS_TEST_TMPDIR/$1.shown"
  grep -q '^9 ' "$BATS_TEST_TMPDIR/$1.shown"
}

# assert_statuses_as_without MODE: exit codes and signals, as our parent sees them.
assert_statuses_as_without() {
  local code signal got
  for code in 0 1 2 64 71 75 79 80 126 127 128 130 137 143 200 255; do
    got=0
    redlock-cli run -k demo --isolate "$1" -- sh -c "exit $code" || got=$?
    assert_equal "$got" "$code"
  done
  for signal in 1 2 3 6 9 10 11 12 13 14 15 24 25 31 34 64; do
    run /usr/bin/python3 "$BATS_TEST_DIRNAME/helper/ending.py" "$BATS_TEST_TMPDIR/pid" \
      redlock-cli run -k demo --isolate "$1" --status-fd 1 -- \
      env --default-signal=PIPE sh -c "ulimit -c 0; kill -$signal \$\$"
    assert_line "signal $signal"
    assert_line --partial "\"command_signal\":$signal"
  done
  assert_equal "$(keys_at 0)" ""
}

assert_exec_failures_as_without() {
  local broken plain
  broken=$(executable broken <<<'#!/no/such/interpreter')
  plain=$(executable plain <<<'echo "plain $1"; exit 9')
  run -127 --separate-stderr redlock-cli run -k demo --isolate "$1" -- no-such-program
  assert_equal "$output$stderr" "redlock-cli: no-such-program: not found"
  assert_refused 126 "its interpreter is missing" \
    redlock-cli run -k demo --isolate "$1" -- "$broken"
  run redlock-cli run -k demo --isolate "$1" -- "$plain" script
  assert_equal "$status $output" "9 plain script"
  assert_equal "$(keys_at 0)" ""
}

# assert_each_signal_once MODE: those sent to us, then the stop signal.
assert_each_signal_once() {
  local witness signal round
  witness=$(executable signals <<'END'
#!/usr/bin/python3 -u
import signal, sys, time
for name in sys.argv[1:]:
    signal.signal(getattr(signal, "SIG" + name),
                  lambda number, _: print(signal.Signals(number).name[3:]))
print("ready")
while True:
    time.sleep(0.02)
END
)
  start_background ours setsid redlock-cli run -t 10s --grace 4s -k demo --isolate "$1" \
    -- "$witness" HUP INT QUIT TERM USR1 USR2
  wait_for_stdout ours ready
  for round in 1 2 3; do
    for signal in HUP INT QUIT TERM USR1 USR2; do
      kill -s "$signal" "${BACKGROUND_PID[ours]}"
      wait_until heard "$signal" "$round"
    done
  done
  redis 0 del demo
  wait_background ours
  assert_equal "$status" 79
  assert_equal "$(sort <<<"$output" | uniq -c | tr -s ' ' | paste -sd ,)" \
    " 3 HUP, 3 INT, 3 QUIT, 4 TERM, 3 USR1, 3 USR2, 1 ready"
}

heard() { [[ $(grep -cx "$1" "$(background_stdout ours)") == "$2" ]]; }

# --- The option ---

@test "an unknown value of --isolate is refused" {
  assert_refused 64 "--isolate: must be none, cgroup or pidns" \
    redlock-cli run -k demo --isolate jail -- true
  REDLOCK_ISOLATE=jail assert_refused 78 "REDLOCK_ISOLATE: must be none, cgroup or pidns" \
    redlock-cli run -k demo -- true
  run redlock-cli run -k demo --isolate none -- sh -c 'exit 5'
  assert_failure 5
}

# --- Where it cannot be ---

# The program under test where every user may run it, until the end of the test.
publish_program() {
  PUBLIC=$(mktemp -d /tmp/redlock-public.XXXXXX)
  chmod 755 "$PUBLIC"
  install -m 755 "$REDLOCK_CLI" "$PUBLIC/redlock-cli"
}

# As an ordinary user without any rights; for root, behind publish_program.
as_nobody() {
  if ((EUID != 0)); then
    "$@"
    return
  fi
  (cd / && PATH=$PUBLIC:$PATH setpriv --reuid 65534 --regid 65534 --clear-groups \
    env HOME=/nonexistent XDG_CONFIG_HOME=/nonexistent "$@")
}

# assert_cannot_isolate MODE REASON CMD…: run under CMD reports the reason before it waits, and
# sends nothing to a server.
assert_cannot_isolate() {
  local mode=$1 reason=$2
  shift 2
  redis 0 set demo theirs
  assert_refused 71 "$reason" "$@" redlock-cli run -k demo --isolate "$mode" -- true
  assert_regex "$stderr" "^redlock-cli: --isolate $mode: [^;]*; "
  assert_equal "$(redis 0 keys '*') $(scripts_run 0)" "demo 0"
}

@test "pidns without the rights: 71 before the wait, the reason, and no lock" {
  publish_program
  assert_cannot_isolate pidns \
    "cannot make a pid namespace: operation not permitted; run it as root" as_nobody
}

@test "cgroup without the rights: 71 before the wait, the reason, and no lock" {
  local ours
  ours=$(our_cgroup) || skip "no cgroup v2 is mounted"
  ((EUID == 0)) || [[ ! -w $ours ]] || skip "the cgroup is delegated"
  publish_program
  assert_cannot_isolate cgroup \
    "cannot make a cgroup in $ours: permission denied; run it as root" as_nobody
}

@test "a cgroup that may be created but not entered: 71, and it is removed" {
  as_root
  needs_cgroup
  local ours
  ours=$(our_cgroup)
  # An incomplete delegation: the directory, but not its cgroup.procs.
  mkdir "$ours/half"
  chown 65534 "$ours/half"
  local status=0
  publish_program
  (
    echo "$BASHPID" >"$ours/half/cgroup.procs"
    cd /
    setpriv --reuid 65534 --regid 65534 --clear-groups \
      env HOME=/nonexistent XDG_CONFIG_HOME=/nonexistent \
      "$PUBLIC/redlock-cli" run -k demo --isolate cgroup -- true
  ) 2>"$BATS_TEST_TMPDIR/stderr" || status=$?
  assert_equal "$status" 71
  run cat "$BATS_TEST_TMPDIR/stderr"
  assert_output \
    "redlock-cli: --isolate cgroup: cannot put a process into a cgroup in $ours/half: \
permission denied; run it as root, or in a cgroup that is delegated to you \
(systemd: Delegate=yes)"
  assert_equal "$(keys_at 0)" ""
  # With anything in it, it would stay.
  wait_until rmdir "$ours/half"
}

@test "cgroup where no cgroup v2 is mounted: 71 before the wait, the reason, and no lock" {
  needs_pidns # the rights to hide it
  assert_cannot_isolate cgroup "no cgroup v2 is mounted" unshare --mount sh -c '
    awk "/ - cgroup2 / { print \$5 }" /proc/self/mountinfo | xargs -r umount -l
    exec "$@"' -
}

@test "pidns with a controlling terminal: 71 before the wait, the reason, and no lock" {
  needs_pidns
  redis 0 set demo theirs
  run script -qec 'redlock-cli run -k demo --isolate pidns -- true' /dev/null </dev/null
  assert_failure 71
  assert_output --partial "redlock-cli: --isolate pidns: not with a controlling terminal; "
  assert_equal "$(redis 0 keys '*') $(scripts_run 0)" "demo 0"
}

@test "a failed isolation is also reported in JSON" {
  publish_program
  run --separate-stderr as_nobody redlock-cli run -k demo --isolate pidns --json -- true
  assert_failure 71
  assert_regex "$stderr" '"result":"os_error","exit_code":71,"message":"--isolate pidns: '
}

# --- cgroup ---

@test "cgroup: the command is in a cgroup of its own below ours, which is gone afterwards" {
  needs_cgroup
  run redlock-cli run -k demo --isolate cgroup -- sh -c 'cat /proc/self/cgroup; echo "$PPID"'
  assert_success
  local ours
  ours=$(sed -n 's/^0:://p' /proc/self/cgroup)
  assert_line --regexp "^0::${ours%/}/redlock-[0-9]+-[0-9a-f]{8}$"
  assert no_cgroup_left
}

# empty_cgroup NAME: a cgroup beside that of the next command.
empty_cgroup() {
  mkdir "$(our_cgroup)/$1"
  echo "$(our_cgroup)/$1"
}

@test "cgroup: the next run removes the remains of a killed one, and nothing else" {
  needs_cgroup
  local dead left mine foreign claimed used me=$BASHPID
  sh -c 'exit 0' &
  dead=$!
  wait "$dead"
  left=$(empty_cgroup "redlock-$dead-00000001")
  mine=$(empty_cgroup "redlock-$me-00000002")
  foreign=$(empty_cgroup "redlock-notes")
  claimed=$(empty_cgroup "redlock-$dead-00000003")
  used=$(empty_cgroup "redlock-$dead-00000004")
  start_background user sleep 1000
  echo "${BACKGROUND_PID[user]}" >"$used/cgroup.procs"
  exec {claim}<"$claimed"
  flock -s "$claim"
  run -0 redlock-cli run -k demo --isolate cgroup -- sh -c 'ls -d "$0"/redlock-*' "$(our_cgroup)"
  refute_line "$left"
  local kept
  for kept in "$mine" "$foreign" "$claimed" "$used"; do assert_line "$kept"; done
  assert [ "${#lines[@]}" == 5 ]  # and its own
  exec {claim}<&-
  end_background
  wait_until rmdir "$used"
  rmdir "$mine" "$foreign" "$claimed"
}

@test "cgroup: status, inheritance, exec failures and signals are the same as without" {
  needs_cgroup
  assert_statuses_as_without cgroup
  assert_inherits_as_without cgroup
  assert_exec_failures_as_without cgroup
  assert_each_signal_once cgroup
}

@test "cgroup: processes that are frozen, setsid, or ignore TERM die when the lock is lost" {
  needs_cgroup
  start_isolated_tree ours cgroup -t 8s --grace 300ms
  echo 1 >"$(cgroup_of_run "$FRONT")/cgroup.freeze"
  redlock-cli release -k demo --force
  wait_background ours
  assert_equal "$status" 79
  assert_tree_dead
  assert no_cgroup_left
}

# A process in the command's cgroup that does not descend from it, as a service manager can put
# there.
add_stranger() {
  start_background stranger sleep 1000
  STRANGER=${BACKGROUND_PID[stranger]}
  echo "$STRANGER" >"$(cgroup_of_run "$FRONT")/cgroup.procs"
}

@test "cgroup: the holder kills everything in it, descendant or not" {
  needs_cgroup
  start_isolated_tree ours cgroup -t 8s --grace 300ms
  add_stranger
  redlock-cli release -k demo --force
  wait_background ours
  assert_equal "$status" 79
  assert_tree_dead
  assert is_dead "$STRANGER"
  assert no_cgroup_left
}

@test "cgroup: holder killed: front kills everything in it, descendant or not, and removes it" {
  needs_cgroup
  start_isolated_tree ours cgroup -t 60s
  add_stranger
  kill -KILL "$HOLDER"
  wait_background ours
  assert_equal "$status" 71
  assert_tree_dead
  assert is_dead "$STRANGER"
  assert no_cgroup_left
}

@test "cgroup: front killed: the holder kills the tree, releases, and removes it" {
  needs_cgroup
  start_isolated_tree ours cgroup -t 60s
  kill -KILL "$FRONT"
  wait_until no_keys
  assert_tree_dead
  wait_until no_cgroup_left
}

no_keys() { [[ -z $(keys_at 0) ]]; }

@test "cgroup: processes that the command leaves running return to our cgroup" {
  needs_cgroup
  start_isolated_tree ours cgroup -t 60s
  local pid
  for pid in "${TREE[@]}"; do assert grep -q "^0::.*/redlock-$FRONT-" "/proc/$pid/cgroup"; done
  touch "$BATS_TEST_TMPDIR/end"
  wait_background ours
  assert_equal "$status" 23
  assert no_cgroup_left
  # Those in its own group die with it, since one of them is stopped (of SIGHUP, as always); the
  # daemons do not.
  local -i left=0
  for pid in "${TREE[@]:1}"; do
    wait_until is_dead_or_in_our_cgroup "$pid"
    if is_alive "$pid"; then left+=1; fi
  done
  assert [ "$left" -ge 2 ]
}

# A dying process remains in the removed cgroup until it is dead.
is_dead_or_in_our_cgroup() {
  is_dead "$1" || [[ $(grep ^0:: "/proc/$1/cgroup") == "$(grep ^0:: /proc/self/cgroup)" ]]
}

@test "cgroup: a run in a run has a cgroup in a cgroup, and the outer one takes the inner with it" {
  needs_cgroup
  # The inner one has a descriptor 8 of its own.
  start_under_witness ours -t 8s --grace 300ms -k outer --isolate cgroup -- \
    redlock-cli run -k inner --isolate cgroup \
    -- "$(tree)" "$BATS_TEST_TMPDIR/pids" "$BATS_TEST_TMPDIR/end"
  assert grep -qE "^0::.*/redlock-$FRONT-[0-9a-f]+/redlock-[0-9]+-[0-9a-f]+$" \
    "/proc/$COMMAND/cgroup"
  # The inner guards have no time to clean up.
  echo 1 >"$(cgroup_of_run "$FRONT")/cgroup.freeze"
  redlock-cli release -k outer --force
  wait_background ours
  assert_equal "$status" 79
  assert_tree_dead
  assert no_cgroup_left
}

@test "cgroup: it is removed when the command cannot be executed, and is empty during the wait" {
  needs_cgroup
  run -127 redlock-cli run -k demo --isolate cgroup -- no-such-program
  redis 0 set demo theirs
  start_background ours redlock-cli run -k demo --isolate cgroup -- true
  wait_for_stderr ours "waiting for demo"
  assert grep -q 'populated 0' "$(cgroup_of_run "${BACKGROUND_PID[ours]}")/cgroup.events"
  kill -TERM "${BACKGROUND_PID[ours]}"
  wait_background ours
  assert_equal "$status" 143
  assert no_cgroup_left
}

# --- pidns ---

# Who is in this pid namespace, as we see it.
in_namespace() { find /proc -maxdepth 3 -path '/proc/[0-9]*/ns/pid' -lname "$1" 2>/dev/null; }
namespace_is_gone() { [[ -z $(in_namespace "$1") ]]; }

@test "pidns: the command sees only itself and its init, and the machine's /proc stays unchanged" {
  needs_pidns
  local before
  before=$(</proc/self/mountinfo)
  run redlock-cli run -k demo --isolate pidns \
    -- sh -c 'cat /proc/1/comm; echo "$$"; readlink /proc/self; echo /proc/[0-9]*'
  assert_success
  # The number of readlink is as good as any.
  assert_output --regexp $'^lock-init\n2\n[0-9]+\n/proc/1 /proc/2$'
  assert_equal "$(</proc/self/mountinfo)" "$before"
}

@test "pidns: setsid becomes the job, as without" {
  needs_pidns
  run -3 redlock-cli run -k demo --isolate pidns -- setsid sh -c 'exit 3'
}

@test "pidns: status, inheritance, exec failures and signals are the same as without" {
  needs_pidns
  assert_statuses_as_without pidns
  assert_inherits_as_without pidns
  assert_exec_failures_as_without pidns
  assert_each_signal_once pidns
}

@test "pidns: the command mounts for the whole machine, as without" {
  needs_pidns
  # In a mount namespace of this test's own, shared between its processes.
  local place=$BATS_TEST_TMPDIR/place
  mkdir "$place"
  run unshare --mount --propagation shared sh -c '
    redlock-cli run -k demo --isolate pidns -- mount -t tmpfs none "$1" &&
      mountpoint "$1" && readlink /proc/self >/dev/null' - "$place"
  assert_success
}

@test "pidns: orphans are reaped" {
  needs_pidns
  run redlock-cli run -k demo --isolate pidns -- sh -c '
    for i in 1 2 3 4 5; do (true &) ; done
    # 20 s at most, as wait_until
    for try in $(seq 400); do
      cat /proc/[0-9]*/stat | grep -c " Z " | grep -qx 0 && exit 6
      sleep 0.05
    done'
  assert_failure 6
}

@test "pidns: both guards killed at the same instant: nothing is left" {
  needs_pidns
  start_isolated_tree ours pidns -t 60s
  local namespace
  namespace=$(readlink "/proc/$COMMAND/ns/pid")
  assert [ "$namespace" != "$(readlink /proc/self/ns/pid)" ]
  # Stopped first, so that neither can react.
  kill -STOP "$FRONT" "$HOLDER" "$INIT"
  kill -KILL "$FRONT" "$HOLDER"
  wait_until namespace_is_gone "$namespace"
  # A process that ends leaves its namespace a moment before it is dead.
  wait_until is_tree_dead
  assert_tree_dead
  wait_background ours
  assert_equal "$status" 137
}

@test "pidns: holder killed: front sees all of it dead, and exits with 71" {
  needs_pidns
  start_isolated_tree ours pidns -t 60s
  watch_lock
  kill -KILL "$HOLDER"
  wait_background ours
  assert_equal "$status" 71
  assert_tree_dead
  assert is_dead "$INIT"
  redis 0 del demo
  assert_dead_before_free
}

@test "pidns: holder stopped: the tree is dead before the lease can end" {
  needs_pidns
  # Init is dead only when all in it are dead and reaped: on a loaded machine that takes a little
  # longer than without.
  start_isolated_tree ours pidns -t 5s --grace 300ms
  watch_lock
  kill -STOP "$HOLDER"
  assert_dead_before_free
  wait_background ours
  assert_equal "$status" 79
  assert_tree_dead
}

@test "pidns: front killed: the tree is dead before the lock is released, which happens at once" {
  needs_pidns
  start_isolated_tree ours pidns -t 60s
  watch_lock
  kill -KILL "$FRONT"
  assert_dead_before_free
  assert [ "$LEFT" -gt 10000 ]
  assert_tree_dead
  wait_until is_dead "$INIT"
}

@test "pidns: lock lost: the tree is dead, and its init" {
  needs_pidns
  start_isolated_tree ours pidns -t 8s --grace 300ms
  redlock-cli release -k demo --force
  wait_background ours
  assert_equal "$status" 79
  assert_tree_dead
  assert is_dead "$INIT"
}

@test "pidns: an orphan that ends on TERM ends the wait for it" {
  needs_pidns
  start_background ours redlock-cli run -t 200s --grace 100s --max-hold 6s -k demo \
    --isolate pidns -- sh -c '
    (trap "sleep 0.3; echo ended; exit" TERM; echo ready; while :; do sleep 0.1; done) &
    exec sleep 1000'
  # Less than the grace.
  wait_background ours
  assert_equal "$status ${lines[*]}" "124 ready ended"
}

@test "pidns: only KILL ends the init, and with it the command" {
  needs_pidns
  start_isolated_tree ours pidns -t 60s
  local signal
  for signal in HUP INT QUIT TERM USR1 USR2 PIPE ALRM CHLD SEGV ABRT; do
    kill -s "$signal" "$INIT"
  done
  assert is_alive "$COMMAND"
  assert is_alive "$INIT"
  kill -KILL "$INIT"
  wait_background ours
  assert_equal "$status" 137
  assert_tree_dead
  assert_equal "$(keys_at 0)" ""
}

@test "pidns: processes that the command leaves are killed when it ends, and one line says so" {
  needs_pidns
  start_isolated_tree ours pidns -t 60s
  touch "$BATS_TEST_TMPDIR/end"
  wait_background ours
  assert_equal "$status" 23
  assert_regex "$stderr" \
    "^redlock-cli: demo: processes that the command left running, killed with its pid namespace: \
sleep [0-9]+(, sleep [0-9]+)* and [0-9]+ more$"
  assert_tree_dead
  run report
  assert_output --partial '"left":[]'
  assert_equal "$(keys_at 0)" ""
}

@test "pidns: --descendants wait waits for the processes that it leaves" {
  needs_pidns
  run redlock-cli run -k demo --isolate pidns --descendants wait -- sh -c '
    (setsid sh -c "sleep 0.5; redis-cli -s \"\$0\" exists demo" "$0" &) ; exit 4' "$SERVER_SOCKET"
  assert_failure 4
  assert_output 1
}

@test "pidns: a pipe from the command ends when it ends, and its init keeps none open" {
  needs_pidns
  start_isolated_tree ours pidns -t 60s
  run find "/proc/$INIT/fd" -type l
  assert_output "/proc/$INIT/fd/0"
  assert_regex "$(readlink "/proc/$INIT/fd/0")" '^socket:'
}
