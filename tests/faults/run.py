#!/usr/bin/python3
"""redlock-cli under faults, with real servers and the kernel as witness.

usage: run.py [--seed N] [--seconds N] [--profile NAME,…] [--history FILE] [--servers DIR]

Contenders run redlock-cli again and again (contenders.py) while a nemesis draws faults from the
seed (nemesis.py); what happens is written to a history (history.py), which the checker reads at the
end (checker.py). The seconds are those of all profiles together, without the time that each takes
to come to its end. Needs REDLOCK_CLI, FAULT_WITNESS, CLOCK_STEP and SHIFTED_CLOCK: paths of
the program, of witness.cpp, clock_step.cpp and tools/shifted_clock.cpp as built.

Exit status: 0 when the profiles within the promise showed no violation, and those outside of it one
at least that a fence would have stopped; else 1, and the histories are kept and named.
"""
import argparse
import glob
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
from arena import Arena
from breach import Breach
from contenders import TTLS, usual_contenders
from deployment import HERE, HOSTS, WAIT_LIMIT
from history import History
from nemesis import FAMILIES, Nemesis, note_successes
from profiles import PROFILES

# Seconds in which waiters and holders must end after the last fault. All leases and other
# short-lived keys have expired by then.
DRAIN = 60
EXPIRED = 40


def promise(arena, seconds, families):
    """Storms over contenders, and calm."""
    nemesis = Nemesis(arena, families)
    nemesis.note_start()
    arena.contenders = usual_contenders(arena, HOSTS)
    for contender in arena.contenders:
        contender.start()
    arena.after(1, nemesis.start)
    arena.run_for(seconds)
    arena.is_closing = True
    nemesis.end_all()
    arena.run_until(lambda: not nemesis.under_way, WAIT_LIMIT)
    return nemesis.injected, nemesis.missed


def breach(arena, seconds, how):
    """Repeats the breach, at least once."""
    one = Breach(arena, how)
    end = time.monotonic() + seconds
    while True:
        one.once()
        if time.monotonic() > end:
            return one.injected, {}


def close(arena):
    """Waits until all have ended, and records any keys that are left."""
    arena.is_closing = True
    arena.history.note("quiet")
    in_time = arena.run_until(lambda: not arena.runs() and not arena.stops, DRAIN)
    note_successes(arena)
    for run in arena.runs():
        for pid in run.guards():
            arena.history.note("left", kind="process", name=f"{run.id}: pid {pid}")
    end = time.monotonic() + EXPIRED
    while True:
        left = list(leftovers(arena))
        if not left or time.monotonic() > end:
            break
        arena.run_for(0.2)
    for kind, name in left:
        arena.history.note("left", kind=kind, name=name)
    arena.history.note("end", in_time=in_time)


def leftovers(arena):
    """Reaps the orphans, which this process adopts."""
    ours = {process.pid for process in arena.deployment.processes()}
    for pid in children():
        if pid not in ours:
            try:
                if os.waitpid(pid, os.WNOHANG)[0] == 0:
                    yield "process", f"{pid}: {name_of(pid)}"
            except ChildProcessError:
                pass
    yield from arena.deployment.leftovers()
    for group in control_groups():
        yield "cgroup", group


def control_groups():
    """The control groups that faults have made."""
    return glob.glob(f"/sys/fs/cgroup/*/redlock-faults-{os.getpid()}-*")


def children():
    with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
        return [int(pid) for pid in file.read().split()]


def name_of(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return "?"


def kill_leftovers():
    """Kills all remaining processes of a run; this process adopts the children of killed ones."""
    while pids := children():
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        for pid in pids:
            os.waitpid(pid, 0)


def run_profile(name, seed, seconds, path):
    """-> the injected faults, and those that were not"""
    profile = PROFILES[name]
    history = History(path)
    history.note(
        "run",
        profile=name,
        seed=seed,
        promised=profile.promised,
        servers=profile.servers,
        longest_ttl=max(TTLS),
        guard=profile.guard,
    )
    fds = len(os.listdir("/proc/self/fd"))
    directory = tempfile.mkdtemp(prefix="rl-faults.", dir=base_directory())
    try:
        told = run_in(directory, profile, history, f"{seed} {name}", seconds)
    finally:
        kill_leftovers()
        shutil.rmtree(directory)
        for group in control_groups():
            os.rmdir(group)
    now = len(os.listdir("/proc/self/fd"))
    if now != fds:
        history.note("left", kind="descriptors", name=f"{now - fds} of the harness's own")
    history.close()
    return told


def run_in(directory, profile, history, seed, seconds):
    paths = [os.environ["REDLOCK_CLI"], os.environ["FAULT_WITNESS"], os.environ["SHIFTED_CLOCK"]]
    deployment = profile.make(directory, seed, history.path)
    arena = Arena(directory, history, deployment, seed, profile.servers, profile.guard, paths)
    try:
        arena.beat()
        if profile.promised:
            told = promise(arena, seconds, FAMILIES[profile.families])
        else:
            told = breach(arena, seconds, profile.breach)
        close(arena)
    finally:
        arena.close()
        deployment.close()
    return told


def base_directory():
    """A directory in memory if possible, because servers write each change through."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def check(path):
    """Runs the checker, which is a separate program, and returns its verdict."""
    ran = subprocess.run(
        [sys.executable, os.path.join(HERE, "checker.py"), "--json", path],
        stdout=subprocess.PIPE,
        text=True,
    )
    if not ran.stdout:
        raise SystemExit("faults: the checker failed")
    return json.loads(ran.stdout)


def judge(profile, verdict):
    """-> whether the verdict is as expected, and a line for each violation, unexpected ones
    first"""
    expected, others = [], []
    for violation in verdict["violations"]:
        causes = ", ".join(violation["causes"]) or "no fault"
        line = f"{violation['rule']}: {violation['text']}; after {causes}"
        if violation["fence"] is not None:
            line += f"; fence {violation['fence']} stops the earlier one's write"
        stopped = violation["rule"] in ("exclusion", "tree") and violation["fence"] is not None
        (expected if stopped and not profile.promised else others).append(line)
    if not profile.promised and not expected:
        others.append("no violation: the harness is blind, or this is within the promise")
    return not others, others + expected


def tell(name, profile, seconds, told, verdict, good, lines):
    injected, missed = told
    numbers = verdict["numbers"]
    print(f"{name}: {'as it should be' if good else 'NOT AS IT SHOULD BE'}")
    print(
        f"  {seconds:.0f} s, {numbers['runs']} runs, {numbers['entered']} entered,"
        f" {numbers['waited']} waited, lock free beside a waiter for {numbers['longest_gap']} s"
        f" at most (bound {numbers['bound']:g} s), {numbers['stalls']} stalls of this machine"
    )
    print("  exit:", ", ".join(f"{code} x{count}" for code, count in numbers["codes"].items()))
    print("  faults:", ", ".join(f"{kind} x{injected[kind]}" for kind in sorted(injected)))
    for kind, (count, why) in sorted(missed.items()):
        print(f"  not injected: {kind} x{count} ({why})")
    for line in lines:
        print(f"  {line}")
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description="redlock-cli under faults.")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9))
    parser.add_argument("--seconds", type=float, default=90)
    parser.add_argument("--profile", help="one or more, with commas; else all that can be had")
    parser.add_argument("--history", help="kept there; of several profiles NAME.FILE")
    parser.add_argument("--servers", help="directory of the redis-server and redis-cli to run with")
    options = parser.parse_args()
    if options.servers:
        if not os.access(os.path.join(options.servers, "redis-server"), os.X_OK):
            raise SystemExit(f"faults: no redis-server in {options.servers}")
        os.environ["PATH"] = os.path.abspath(options.servers) + ":" + os.environ["PATH"]
    # However this process ends, none of its children stays.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    names = options.profile.split(",") if options.profile else list(PROFILES)
    unknown = [name for name in names if name not in PROFILES]
    if unknown:
        raise SystemExit(f"faults: no profile {unknown[0]}: {', '.join(PROFILES)}")
    if not options.profile and os.geteuid() != 0:
        names.remove("namespaces")
        print("faults: left out: namespaces, which takes root")
    print(f"faults: seed {options.seed}, {options.seconds:g} s, {','.join(names)}", flush=True)
    bad = {}  # name: its violations, told once more at the end, which a summary shows
    for name in names:
        begin = time.monotonic()
        path, kept = history_path(name, names, options.history)
        told = run_profile(name, options.seed, options.seconds / len(names), path)
        verdict = check(path)
        good, lines = judge(PROFILES[name], verdict)
        tell(name, PROFILES[name], time.monotonic() - begin, told, verdict, good, lines)
        if good and not kept:
            os.unlink(path)
        elif not good:
            bad[name] = [*lines[:5], f"history: {path}"]
    for name, lines in bad.items():
        print(f"{name}:", *lines, sep="\n  ")
    print(f"faults: {len(names) - len(bad)} of {len(names)} profiles as they should be")
    sys.exit(1 if bad else 0)


def history_path(name, names, wanted):
    """-> the path, and whether it is always kept"""
    if not wanted:
        fd, path = tempfile.mkstemp(prefix=f"rl-faults-{name}.", suffix=".jsonl")
        os.close(fd)
        return path, False
    folder, file = os.path.split(wanted)
    return os.path.join(folder, f"{name}.{file}" if len(names) > 1 else file), True


if __name__ == "__main__":
    main()
