#!/usr/bin/env bats
# A dead process that stays a zombie because its debugger does not wait for it counts as dead.
load helper/common
load helper/supervision

# A command whose child, of two threads, is traced by a process that does nothing else.
start_traced() {
  start_under_witness ours -k demo "$@" -- sh -c '
    /usr/bin/python3 -c "
import ctypes, os, sys, threading, time
ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong(-1), 0, 0, 0)  # anyone may trace it
threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
open(sys.argv[1], \"a\").write(f\"{os.getpid()}\n\")
time.sleep(1000)" "$0/pids" &
    until [ -s "$0/pids" ]; do sleep 0.05; done; echo ready; wait' "$BATS_TEST_TMPDIR"
  start_background tracer /usr/bin/python3 -c '
import ctypes, os, sys, time
for thread in os.listdir(f"/proc/{sys.argv[1]}/task"):
    if ctypes.CDLL(None).ptrace(ctypes.c_long(0x4206), int(thread), None, None) != 0:  # SEIZE
        sys.exit("ptrace is refused")
print("traced", flush=True)
time.sleep(1000)' "${TREE[0]}"
  wait_for_stdout tracer traced
}

@test "after --max-hold the lock is free, 124, and the zombie is still there" {
  start_traced --max-hold 12s --grace 300ms
  wait_background ours
  assert_equal "$status" 124
  assert_equal "$(keys_at 0)" ""
  assert is_dead "${TREE[0]}"
  assert [ -e "/proc/${TREE[0]}" ]
  refute_regex "$stderr" "cannot kill"
}

@test "a loss is 79, and no process is called unkillable" {
  start_traced -t 6s --grace 300ms --server-timeout 1s
  redis 0 set demo theirs
  wait_background ours
  assert_equal "$status" 79
  assert is_dead "${TREE[0]}"
}
