#!/usr/bin/python3
"""Kills two of the processes of a `run`, one shortly after the other, in each order, and asks the
kernel whether the lock was free while a descendant of the command lived.

usage: pairs.py [--rounds N] [--lanes N] [--only WORD] [--seed N]

The command leaves a child in its own process group and one in a session of its own; both inherit a
shared flock(2) on a witness file. The next `run` with the same key then tries to have that flock
exclusively, without waiting: what still holds it outlived the lock, a violation. Prints a table:
which two, in this order, the gap between them, the rounds, the violations. "held": the first is
killed and held before it can let go of anything, as by a machine without a CPU for it, until the
next run has the lock. A command that is killed while all its guards live has ended by itself; there
--descendants kill says that the rest must end, too. (The witness guards nothing.)

front and holder process, and holder process and shield, which then stands in for the front process,
are both guards at once: outside of the promise, and counted apart.

Needs REDLOCK_CLI: the path of the program. The locks are `local:`, in a directory of their own.
Exit status: 0 when there is no violation within the promise, else 1.
"""
import argparse
import ctypes
import fcntl
import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import threading
import time

from contenders import GUARDS, TREE_WITNESS
from lanes import play_all

GAPS = (0, 0.0001, 0.0003, 0.001)  # seconds
HELD = None
# linux/ptrace.h
PTRACE_CONT, PTRACE_SEIZE, PTRACE_O_TRACEEXIT = 7, 0x4206, 0x40
# When a holder process is killed, the key stays until the lease ends.
TTL = 1.5
LIMIT = 60
READY = b"ready\n"
# $1: the witness. It prints the pids of its children.
COMMAND = """exec 9<"$1"; flock -s 9
setsid sleep 1000 & echo $!; sleep 1000 & echo $!; echo ready; wait"""
# The helper exists before the run.
SHIELDED = ("sh", "-c", 'sleep 1000 </dev/null >/dev/null 2>&1 9<&- & echo $!; exec "$@"', "-")

libc = ctypes.CDLL(None, use_errno=True)

SHAPES = {
    "plain": ("front", "holder", "command"),
    "shielded": ("front", "shield", "holder", "command"),
    "job": ("front", "witness", "holder", "command"),
}
UNGUARDED = {"command", "witness"}
APART = [{"front", "holder"}, {"shield", "holder"}]


class Pair:
    """Two processes to kill, in this order, and the result."""

    def __init__(self, shape, first, second, gap):
        self.shape, self.first, self.second, self.gap = shape, first, second, gap
        self.apart = {first, second} in APART
        self.rounds = self.violations = 0

    def __str__(self):
        gap = "held" if self.gap is HELD else f"{self.gap * 1e6:.0f} µs"
        return f"{self.shape:9} {self.first:8} {self.second:8} {gap:>9}"


def all_pairs():
    """The guards are the same behind a shield; in a job the command is in another group."""
    for shape, processes in SHAPES.items():
        for order in itertools.permutations(processes, 2):
            if shape != "shielded" or "shield" in order:
                can_be_held = order in (("front", "command"), ("shield", "command"))
                gaps = (*GAPS, HELD) if can_be_held else GAPS
                yield from (Pair(shape, *order, gap) for gap in gaps)


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(word) for word in file.read().split()]


def comm(pid):
    with open(f"/proc/{pid}/comm") as file:
        return file.read().strip()


def send(pidfd, number=signal.SIGKILL):
    try:
        signal.pidfd_send_signal(pidfd, number)
    except ProcessLookupError:
        pass


def ptrace(request, pid, data):
    if libc.ptrace(ctypes.c_long(request), pid, None, ctypes.c_void_p(data)) != 0:
        raise OSError(ctypes.get_errno(), "ptrace")


def pause(seconds):
    """Waits actively, for less time than the kernel can sleep."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


class Round:
    def __init__(self, directory, pair, lane):
        self.pair = pair
        self.key = f"pairs{lane}"
        self.witness = os.path.join(directory, self.key)
        self.environment = dict(
            os.environ,
            REDLOCK_CONFIG="/dev/null",
            REDLOCK_SERVER=f"local:{directory}/locks",
        )
        self.program = os.environ["REDLOCK_CLI"]
        open(self.witness, "a").close()
        self.terminal = os.openpty() if pair.shape == "job" else ()
        self.pidfds = []

    def enter(self):
        """Makes the terminal the controlling one, as for a job of a shell."""
        if self.terminal:
            fcntl.ioctl(self.terminal[1], termios.TIOCSCTTY, 0)

    def start(self):
        words = [self.program, "run", "-q", "-k", self.key, "--ttl", f"{TTL}s"]
        words += ["--grace", "100ms", "--server-timeout", "100ms"]
        if self.pair.first == "command" or {self.pair.first, self.pair.second} == UNGUARDED:
            words += ["--descendants", "kill"]
        words += ["--", "sh", "-c", COMMAND, "-", self.witness]
        if self.pair.shape == "shielded":
            words = [*SHIELDED, *words]
        self.run = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env=self.environment,
            preexec_fn=self.enter,
        )
        said = b""
        while not said.endswith(READY):
            piece = os.read(self.run.stdout.fileno(), 4096)
            if not piece:
                raise RuntimeError(f"{self.pair}: the command was not run")
            said += piece
        self.leave_nothing(int(pid) for pid in said.split()[:-1])
        self.find_processes()

    def leave_nothing(self, pids):
        self.pidfds += [os.pidfd_open(pid) for pid in pids]

    def find_processes(self):
        pids = {"front": self.run.pid}
        for child in children(self.run.pid):
            name = comm(child)
            pids[GUARDS.get(name, name)] = child
        if "shield" in pids:
            (pids["holder"],) = children(pids["shield"])
        below = children(pids["holder"])
        (pids["command"],) = [pid for pid in below if comm(pid) not in (TREE_WITNESS, *GUARDS)]
        if self.pair.shape == "job":
            (pids["witness"],) = set(children(self.run.pid)) - {pids["holder"]}
        self.pids = pids
        self.processes = {name: os.pidfd_open(pid) for name, pid in pids.items()}

    def strike(self):
        first, second = (self.processes[name] for name in (self.pair.first, self.pair.second))
        if self.pair.gap is HELD:
            self.kill_and_hold()
        else:
            send(first)
            pause(self.pair.gap)
        send(second)

    def kill_and_hold(self):
        """Kills the first process, which stops at its exit with all its descriptors open."""
        pid = self.pids[self.pair.first]
        ptrace(PTRACE_SEIZE, pid, PTRACE_O_TRACEEXIT)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)

    def let_go(self):
        if self.pair.gap is HELD:
            ptrace(PTRACE_CONT, self.pids[self.pair.first], 0)

    def is_violated(self):
        """-> whether the next holder finds a process of the previous one"""
        check = ["flock", "-n", "-x", self.witness, "true"]
        words = [self.program, "run", "-q", "-k", self.key, "--wait", f"{LIMIT}s", "--", *check]
        code = subprocess.run(
            words, stdin=subprocess.DEVNULL, env=self.environment, timeout=2 * LIMIT
        ).returncode
        if code not in (0, 1):
            raise RuntimeError(f"{self.pair}: the next run ended with {code}")
        return code == 1

    def end(self):
        self.let_go()
        for pidfd in [*self.processes.values(), *self.pidfds]:
            send(pidfd)
            os.close(pidfd)
        for end in self.terminal:
            os.close(end)
        self.run.stdout.close()
        self.run.wait()


def play(directory, lane, pair, lock):
    round = Round(directory, pair, lane)
    round.start()
    round.strike()
    violated = round.is_violated()
    round.end()
    with lock:
        pair.rounds += 1
        pair.violations += violated


def print_table(pairs):
    print(f"{'':9} {'first':8} {'then':8} {'gap':>9} {'rounds':>7} {'violations':>11}")
    for pair in sorted(pairs, key=lambda pair: pair.apart):
        apart = "  both guards" if pair.apart else ""
        print(f"{pair} {pair.rounds:7} {pair.violations:11}{apart}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=1, help="of each pair, order and gap")
    parser.add_argument("--lanes", type=int, default=4, help="how many at the same time")
    parser.add_argument("--only", default="", help="pairs with this process")
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    pairs = [pair for pair in all_pairs() if options.only in ("", pair.first, pair.second)]
    todo = pairs * options.rounds
    random.Random(options.seed).shuffle(todo)

    directory = tempfile.mkdtemp()
    os.mkdir(f"{directory}/locks", 0o700)
    lock = threading.Lock()
    failures = play_all(
        lambda lane, _, pair: play(directory, lane, pair, lock), todo, options.lanes, options.seed
    )
    shutil.rmtree(directory)
    print_table(pairs)
    for failure in failures:
        print(f"pairs: {failure!r}", file=sys.stderr)
    within = sum(pair.violations for pair in pairs if not pair.apart)
    apart = sum(pair.violations for pair in pairs if pair.apart)
    rounds = sum(pair.rounds for pair in pairs)
    print(f"pairs: {rounds} rounds, {within} violations; both guards at once: {apart}")
    sys.exit(1 if within or failures else 0)


if __name__ == "__main__":
    main()
