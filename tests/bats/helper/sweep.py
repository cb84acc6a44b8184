"""Sends TERM to the processes of a job one by one, as systemd does with a control group, in every
order, and to its front alone.

usage: sweep.py HEARD ROUNDS FRONT HOLDER COMMAND
HEARD is the file in which the command writes a line for each signal that it gets. Prints how many
TERM it should hold at the end.
"""
import itertools
import os
import signal
import sys
import time

LIMIT = 20


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
    heard, rounds = sys.argv[1], int(sys.argv[2])
    front, *others = (int(pid) for pid in sys.argv[3:])
    sweeps = [*itertools.permutations([front, *others]), (front,)] * rounds
    for count, pids in enumerate(sweeps, 1):
        for pid in pids:
            os.kill(pid, signal.SIGTERM)
        wait_for(heard, "TERM", count)
        # Whatever else is on its way to the command gets there before this.
        os.kill(front, signal.SIGUSR1)
        wait_for(heard, "USR1", count)
    print(len(sweeps))


main()
