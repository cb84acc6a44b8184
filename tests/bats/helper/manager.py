"""Signals every process of a control group one by one, as systemd does when it stops a unit.

usage: manager.py OWN SIGNAL PID…
Moves itself into the control group OWN first, where it has a name: a manager's ends in /init.scope.
Prints `slow` when a process got the signal so much later than another that it cannot be told from a
second one, else `swift`; then it lives on, as a manager does.
"""

import os
import signal
import sys
import time

# Somewhat below the delay after which the holder process passes on what it did not get itself.
SWEEP = 0.008


def main():
    own, name, *pids = sys.argv[1:]
    number = getattr(signal, "SIG" + name)
    with open(own + "/cgroup.procs", "w") as file:
        file.write("0")
    # Each signal wakes a guard, which may come before us: as soon as it waits, it is our turn.
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
    except PermissionError:
        pass
    began = time.monotonic()
    for pid in pids:
        os.kill(int(pid), number)
    print("slow" if time.monotonic() - began > SWEEP else "swift", flush=True)
    signal.pause()


main()
