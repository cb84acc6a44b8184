#!/usr/bin/env bats
# The network or the lock itself is lost: the command and all its descendants are dead in time.
load helper/common
load helper/supervision

@test "a stopped server: the tree is dead before the lease could expire, and nothing reappears when it continues" {
  start_tree ours -t 5s --grace 300ms
  stop_servers_for_good 5000 0
  assert_dead_before_expiry
  wait_background ours
  assert_equal "$status" 79
  assert_tree_dead
  run report
  assert_output --partial '"result":"lost","exit_code":79'
  assert_output --partial '"released":false'
  # Our requests are still in its sockets.
  resume_server 0
  run redlock-cli run -w 10s -k demo \
    -- sh -c 'redis-cli -s "$0" get demo | grep -qxF "$REDLOCK_TOKEN"' "$SERVER_SOCKET"
  assert_success
  assert_equal "$(keys_at 0)" ""
}

# note_sockets: keeps in SOCKETS the sockets that the holder has, with those that it had before.
# has_opened N: it has opened so many since they were first noted, whatever it has closed.
note_sockets() {
  SOCKETS=$({
    echo "$SOCKETS"
    readlink "/proc/$HOLDER/fd"/* | grep '^socket:'
  } | sort -u)
}
has_opened() { note_sockets; (($(wc -l <<<"$SOCKETS") >= NOTED + $1)); }
start_counting() { SOCKETS=; note_sockets; NOTED=$(wc -l <<<"$SOCKETS"); }

@test "an outage shorter than the lease is survived silently" {
  start_tree ours -t 12s --grace 200ms --server-timeout 700ms
  watch_lock
  start_counting
  pause_server 0
  # Rounds enough for a line, were there one: each that stays unanswered leaves its connection and
  # opens another.
  wait_until has_opened 2
  resume_server 0
  wait_for_extend 0
  touch "$BATS_TEST_TMPDIR/end"
  wait_background ours
  assert_equal "$status" 23
  assert_equal "$(grep -v "left running" <<<"$stderr")" ""
  wait_background observer
}

@test "a lost outer lock takes the nested run and its command with it" {
  local tree
  tree=$(tree)
  start_under_witness ours -t 10s --grace 300ms -k outer -- \
    redlock-cli run -k demo -t 60s -- "$tree" "$BATS_TEST_TMPDIR/pids" "$BATS_TEST_TMPDIR/end"
  local expires inner inner_holder
  inner=$(pgrep -P "$HOLDER" -x redlock-cli)
  inner_holder=$(holder_of "$inner")
  expires=$(redis 0 <<<$'multi\npexpiretime outer\ndel outer\nexec' | sed -n 4p)
  wait_until is_dead "$FRONT"
  assert_in_range "$(date +%s%3N)" 0 "$expires"
  assert_tree_dead
  assert is_dead "$inner"
  assert is_dead "$inner_holder"
  wait_background ours
  assert_equal "$status" 79
}

@test "while orphans are born and end all the time, none is alive when the lock is free" {
  # The command ends at once. Of what it leaves, one process has so many threads that looking for
  # the children of all takes long. While the holder does so, it ends, and so does the other, which
  # is only then followed by a child of its own: what the holder found is dead, and what lives was
  # not to be found when it looked for its own children.
  start_under_witness ours -t 30s --grace 9s --descendants kill -k demo -- /usr/bin/python3 -uc '
import os, signal, sys, threading, time
directory = sys.argv[1]
signal.signal(signal.SIGTERM, signal.SIG_IGN)
threading.stack_size(65536)
holder = os.getppid()
is_many = os.pipe()

def orphan(work):
    if os.fork():
        os.wait()
        return
    if os.fork() == 0:
        work()
    os._exit(0)

def be_many():
    for _ in range(1000):
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    os.write(is_many[1], b"%d" % os.getpid())
    time.sleep(60)

def files_read():
    with open(f"/proc/{holder}/io") as file:
        return int(file.read().split("syscr:")[1].split()[0])

def wait_until_orphaned():
    while os.getppid() != holder:
        if not os.path.exists(f"/proc/{holder}"):
            os._exit(1)
        time.sleep(0.001)

with open(directory + "/pids", "w") as file:
    print(os.getpid(), file=file)
successor = os.fork()
if successor:
    print("ready")
while not os.path.exists(directory + "/end"):
    time.sleep(0.02)
if successor:
    sys.exit(0)
wait_until_orphaned()
# To observe its progress.
os.sched_setscheduler(holder, os.SCHED_IDLE, os.sched_param(0))
for generation in range(4):
    orphan(be_many)
    many = int(os.read(is_many[0], 100))
    if os.fork():
        os._exit(0)
    wait_until_orphaned()
    # Behind the many in the list of the holder; now the successor.
    if os.fork() == 0:
        wait_until_orphaned()
        continue
    before = files_read()
    orphan(lambda: os._exit(0))
    until = time.monotonic() + 1
    while files_read() < before + 20 and time.monotonic() < until:
        pass
    os.kill(many, signal.SIGKILL)
    os._exit(0)' "$BATS_TEST_TMPDIR"
  watch_lock
  touch "$BATS_TEST_TMPDIR/end"
  assert_dead_before_free
  wait_background ours
  assert_equal "$status" 0
}
