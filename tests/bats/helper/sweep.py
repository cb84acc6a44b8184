"""Sends TERM to the processes of a job one by one, as systemd does with a control group, in every
order, and to its front alone.

usage: sweep.py OWN HEARD ROUNDS FRONT HOLDER COMMAND
Moves itself into the control group OWN first: a manager's ends in /init.scope.
HEARD is the file in which the command writes a line for each signal that it gets. Prints how many
TERM it should hold at the end, and how many sweeps were slower than SWEEP: a signal that reaches
one process so much later than another is not told from a second one, so each of them may have given
one more.
"""
import itertools
import os
import signal
import sys
import time

LIMIT = 20
# Somewhat below the delay after which the holder process passes on what it did not get itself.
SWEEP = 0.008


def wait_for(heard, line, count):
    end = time.monotonic() + LIMIT
    while True:
        with open(heard) as file:
            if file.read().split().count(line) >= count:
                return
        if time.monotonic() > end:
            sys.exit(f"{line} was not heard {count} times")
        time.sleep(0.002)


def main():
    own, heard, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
    front, *others = (int(pid) for pid in sys.argv[4:])
    with open(own + "/cgroup.procs", "w") as file:
        file.write("0")
    sweeps = [*itertools.permutations([front, *others]), (front,)] * rounds
    slow = 0
    # Each signal wakes a guard, which may come before us: as soon as it waits, it is our turn.
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
    except PermissionError:
        pass
    for count, pids in enumerate(sweeps, 1):
        began = time.monotonic()
        for pid in pids:
            os.kill(pid, signal.SIGTERM)
        slow += time.monotonic() - began > SWEEP
        wait_for(heard, "TERM", count)
        # Whatever else is on its way to the command gets there before this.
        os.kill(front, signal.SIGUSR1)
        wait_for(heard, "USR1", count)
    print(len(sweeps), slow)


main()
