#!/usr/bin/python3
"""Lets steps work under a lease that its keeper leaves at a random moment, and asks the kernel
whether any of them lived when the lock went to the next.

usage: overlaps.py [--rounds N] [--lanes N] [--store N|local]... [--kind NAME] [--seed N]

Each round has a keeper that hands its lease over, and up to three runs of the same key as steps,
which start and end at random moments. The keeper leaves in one of these ways:

  max-hold   a background holder (--detach) reaches its --max-hold, and asks the steps to stop
  release    `release` by hand while the background holder renews
  by-hand    the same under a lease that no process renews
  while-pid  the script of --while-pid ends, and leaves its steps in the background
  nested     the command of a `run` ends, and leaves nested runs in the background
  network    the same, but each nested run is in a network namespace of its own (only as root)

A step holds a shared flock(2) on a witness file, which its child inherits. Asked to stop, it takes
a while. A step that came too late may get a lease of its own; it tells so by the fence, and takes
the flock exclusively, as does a run that waits for the same key. None waits for the flock: a
conflict is an overlap. The lease of the keeper would last for far longer than a round, so the lock
that the next run gets was released, and did not expire.

Prints a line for each store: overlaps, what came of the steps, and how long after the last of
keeper and steps the next run began.

Needs REDLOCK_CLI: the path of the program. Exit status: 0 when nothing was wrong, else 1.
"""
import argparse
import collections
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from deployment import Server, libc
from lanes import play_all

PR_SET_CHILD_SUBREAPER = 36
LIMIT = 60
# For how many seconds a step works at most; those that are asked to stop learn of it within two.
MAX_WORK = {
    "max-hold": 4,
    "release": 1.5,
    "by-hand": 1.5,
    "while-pid": 1.5,
    "nested": 1.5,
    "network": 1.5,
}
KINDS = tuple(MAX_WORK)
NESTED = ("nested", "network")
OVERLAP, BUSY, TERM = 3, 75, 143

# $1: the fence of the keeper. $2: how long it works. $3: how long it takes to stop.
STEP = f"""exec 9<"$WITNESS"
if [[ $REDLOCK_FENCE == "$1" ]]; then flock -n -s 9; else flock -n -x 9; fi || exit {OVERLAP}
trap 'echo "$EPOCHREALTIME" >>"$OUT.ends"' EXIT
trap 'sleep "$3"; exit {TERM}' TERM
sleep "$2" & wait $!"""
NEXT = f"""exec 9<"$WITNESS"; flock -n -x 9 || exit {OVERLAP}
echo "$EPOCHREALTIME"; sleep 0.02"""
# $1: the kind. $2: after how long the keeper leaves. Then for each step: its delay, and $2 and $3.
KEEPER = """
cli() { "$REDLOCK_CLI" "$@"; }
start_steps() {
  local n=0
  echo "held $EPOCHREALTIME"
  while (($# > 0)); do
    {
      sleep "$1"
      $ENTER "$REDLOCK_CLI" run -q -k "$KEY" -n -t 6s --server-timeout 1s --grace 500ms -- \\
        bash -c "$STEP" step "$REDLOCK_FENCE" "$2" "$3"
      echo $? >"$OUT.code.tmp$n" && mv "$OUT.code.tmp$n" "$OUT.code$n"
    } &
    shift 3
    ((++n))
  done
}
leave_after() { sleep "$1"; echo "$EPOCHREALTIME" >>"$OUT.ends"; }
take() { cli acquire -q -k "$KEY" --token-file "$OUT.lease" "$@" && set -a && . "$OUT.lease"; }
release() { leave_after "$1" && cli release -q --token-file "$OUT.lease"; }
kind=$1 after=$2
shift 2
case $kind in
  max-hold)
    take --detach -t 300s --max-hold "${after}s" && start_steps "$@" && leave_after "$after"
    ;;
  release) take --detach -t 300s --max-hold 300s && start_steps "$@" && release "$after" ;;
  by-hand) take -t 300s && start_steps "$@" && release "$after" ;;
  while-pid)
    lease=$(cli acquire -q -k "$KEY" -t 300s --while-pid $$ --export) && eval "$lease" &&
      start_steps "$@" && leave_after "$after"
    ;;
  nested | network) start_steps "$@" && leave_after "$after" ;;
esac
"""


class Wrong(Exception):
    """A violation of the promise."""


class Round:
    def __init__(self, store, directory, number, lane, kind, chance):
        self.kind, self.chance = kind, chance
        self.out = os.path.join(directory, f"round{number}")
        self.environment = dict(
            os.environ,
            REDLOCK_CONFIG="/dev/null",
            REDLOCK_SERVER=store,
            REDLOCK_SERVER_TIMEOUT="4s",
            REDLOCK_RESTART_GUARD="0",
            KEY=f"overlaps{lane}",
            WITNESS=f"{self.out}.witness",
            OUT=self.out,
            ENTER="unshare --net" if kind == "network" else "",
            STEP=STEP,
            KEEPER=KEEPER,
        )
        open(f"{self.out}.witness", "w").close()

    def start(self, *words):
        return subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=self.environment,
            text=True,
        )

    def run(self, *words):
        program = self.environment["REDLOCK_CLI"]
        return (program, "run", "-q", "-k", self.environment["KEY"], *words)

    def play(self):
        """-> the exit codes of the steps, and after how long the next run began"""
        within = lambda least, most: f"{self.chance.uniform(least, most):.3f}"
        steps = self.chance.randint(1, 3)
        moments = [within(0.1, 1.2)]
        for _ in range(steps):
            moments += [within(0, 0.6), within(0.1, MAX_WORK[self.kind]), within(0, 0.3)]
        keeper = ["bash", "-c", KEEPER, "keeper", self.kind, *moments]
        if self.kind in NESTED:
            keeper = self.run("-t", "300s", "--", *keeper)
        keeper = self.start(*keeper)
        held = keeper.stdout.readline().split()
        if held[:1] != ["held"]:
            raise Wrong(f"{self.kind}: the keeper says {held}, and exits with {keeper.wait(LIMIT)}")
        time.sleep(self.chance.uniform(0, 0.5))
        following = self.start(*self.run("-t", "60s", "-w", f"{LIMIT}s", "--", "bash", "-c", NEXT))
        began = following.communicate(timeout=2 * LIMIT)[0].strip()
        codes = [self.code_of(number) for number in range(steps)]
        keeper.wait(LIMIT)
        keeper.stdout.close()
        told = f"{self.kind}: steps exit with {codes}, the next run with {following.returncode}"
        if OVERLAP in (*codes, following.returncode):
            raise Wrong(f"OVERLAP: {told}; {moments}")
        if following.returncode != 0 or not set(codes) <= {0, BUSY, TERM}:
            raise Wrong(f"{told}; {moments}")
        status = (self.environment["REDLOCK_CLI"], "status", self.environment["KEY"], "--exit-code")
        if self.start(*status).wait(LIMIT) != 0:
            raise Wrong(f"{told}; the lock is not free at the end")
        with open(f"{self.out}.ends") as file:
            ends = [float(line) for line in file]
        # Steps that found the lock held may have got it after the next run.
        before = [end for end in ends if end <= float(began)]
        return codes, float(began) - max(before, default=float(began))

    def code_of(self, step):
        end = time.monotonic() + LIMIT
        path = f"{self.out}.code{step}"
        while not os.path.exists(path):
            if time.monotonic() > end:
                raise Wrong(f"{self.kind}: step {step} does not end")
            time.sleep(0.02)
        with open(path) as file:
            return int(file.read())


class Results:
    def __init__(self):
        self.codes, self.kinds = collections.Counter(), collections.Counter()
        self.delays, self.failures = [], []


def play_rounds(name, options):
    directory = tempfile.mkdtemp(prefix="rl-overlaps.")
    servers = []
    results = Results()
    kinds = [options.kind] if options.kind else KINDS
    if os.geteuid() != 0:
        kinds = [kind for kind in kinds if kind != "network"]
    todo = [(number, kinds[number % len(kinds)]) for number in range(options.rounds)]
    try:
        if name == "local":
            os.mkdir(f"{directory}/locks", 0o700)
            store = f"local:{directory}/locks"
        else:
            servers = [Server(number, directory) for number in range(int(name))]
            store = ",".join(f"unix://{server.socket}" for server in servers)

        def play(lane, chance, item):
            number, kind = item
            codes, delay = Round(store, directory, number, lane, kind, chance).play()
            results.codes.update(codes)
            results.kinds[kind] += 1
            results.delays.append((delay, kind))

        results.failures = play_all(play, todo, options.lanes, options.seed)
    finally:
        for server in servers:
            server.kill()
        kill_orphans()
        shutil.rmtree(directory)
    tell(name, results)
    return not results.failures


def tell(name, results):
    overlaps = sum("OVERLAP" in str(failure) for failure in results.failures)
    ends = {0: "done", BUSY: "came too late", TERM: "stopped"}
    told = ", ".join(f"{ends[code]} {count}" for code, count in sorted(results.codes.items()))
    rounds = ", ".join(f"{kind} {count}" for kind, count in sorted(results.kinds.items()))
    delays = results.delays or [(0, "none")]
    slowest, kind = max(delays)
    usual = statistics.median(delay for delay, _ in delays)
    print(
        f"overlaps: {name}: {sum(results.kinds.values())} rounds ({rounds}), {overlaps} overlaps;"
        f" steps: {told}; next run after {usual * 1000:.0f} ms (median),"
        f" {slowest * 1000:.0f} ms (most, {kind})",
        flush=True,
    )
    for failure in results.failures:
        print(f"overlaps: {failure!r}", file=sys.stderr)


def kill_orphans():
    """Background holders, which this process adopts, learn of a release with their next renewal."""
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        for pid in map(int, file.read().split()):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=200, help="with each store")
    parser.add_argument("--lanes", type=int, default=4, help="how many at the same time")
    parser.add_argument("--store", action="append", help="how many servers, or local (1, 3, 5, local)")
    parser.add_argument("--kind", choices=KINDS, help="only this one")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = parser.parse_args()
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    print(f"overlaps: seed {options.seed}", flush=True)
    all_well = [play_rounds(name, options) for name in options.store or ("1", "3", "5", "local")]
    sys.exit(0 if all(all_well) else 1)


if __name__ == "__main__":
    main()
