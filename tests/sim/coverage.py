#!/usr/bin/python3
"""Runs many seeds of the simulation, and prints which outcomes of the scripts' conditions none of
them showed.

usage: tests/sim/coverage.py [--few] PROGRAM CONDITIONS
PROGRAM: redlock_sim or redlock_sim_fast; CONDITIONS: the table that conditions.py wrote
  --few  only a few seeds: an outcome that none of them shows is no failure

An outcome is a condition that is true, or one that is false. Fails when an outcome was never seen
and tests/sim/unseen does not list it, when a listed outcome was seen, and when a seed violates the
promise.
"""
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile

UNSEEN = os.path.join(os.path.dirname(__file__), "unseen")

# (profile, seeds for each process, processes). Outside of the promise a violation is expected.
SEEDS = [
    ("spoilt-keys", 4000, 2),
    ("promise", 10000, 1),
    ("hosts", 10000, 1),
    ("cluster", 4000, 1),
    ("sentinel", 4000, 1),
    ("one-forgets", 2000, 1),
    ("nightly", 150, 1),
    ("fast-clocks", 500, 1),
    ("amnesia", 500, 1),
    ("forward-jumps", 500, 1),
]
FEW_SEEDS = [("promise", 5, 1)]
OUTSIDE = {"fast-clocks", "amnesia", "forward-jumps"}


class BadList(Exception):
    """A malformed list of outcomes. The text says where."""


def read_unseen(text):
    """The outcomes of a list such as tests/sim/unseen, each with its reason. A line is a comment, a
    reason (`why: …`, continued by indented lines), or an outcome that the last reason is for."""
    listed = {}
    why = None
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("why: "):
            why = line[len("why: ") :].strip()
        elif line.startswith(" ") and why:
            why += " " + line.strip()
        elif not why:
            raise BadList(f"line {number}: no reason before it: {line}")
        elif line in listed:
            raise BadList(f"line {number}: listed twice: {line}")
        else:
            listed[line] = why
    return listed


def outcomes_of(condition):
    """The names of its two outcomes: when it is false, and when it is true."""
    if condition["text"].startswith("for "):
        return [f"{condition['name']} - {how}" for how in ("never runs", "runs")]
    return [f"{condition['name']} - {how}" for how in ("false", "true")]


def judge(conditions, seen, listed, is_complete=True):
    """-> a line for each outcome that was not seen, a summary, and a line for each problem. SEEN:
    pairs of a condition's number and 0 or 1. `is_complete`: what was not seen counts as never
    seen."""
    known = {}
    for number, condition in enumerate(conditions):
        for value, outcome in enumerate(outcomes_of(condition)):
            known[outcome] = (number, value)
    problems = [f"listed, but no outcome: {name}" for name in listed if name not in known]
    lines = []
    for outcome, pair in known.items():
        if pair in seen and outcome in listed:
            problems.append(f"listed, but seen: {outcome}")
        if pair not in seen:
            place = conditions[pair[0]]["place"]
            lines.append(f"{place}: {outcome.split(': ', 1)[1]}")
        if pair not in seen and outcome not in listed and is_complete:
            problems.append(f"never seen, and not listed: {outcome}")
    if not seen:
        problems.append("no condition was seen")
    return lines, f"{len(seen)} of {len(known)} outcomes of conditions in the scripts", problems


def run(program, profile, first, last, file):
    """-> the outcomes that these seeds showed; and a text if the program failed or crashed."""
    command = [program, "--profile", profile, "--seeds", f"{first}-{last}", "--coverage", file]
    ran = subprocess.run(
        command + ["--expect-violation"] * (profile in OUTSIDE), stdout=subprocess.PIPE, text=True
    )
    status = f"seeds {first}-{last} of {profile}: exit status {ran.returncode}"
    try:
        with open(file, encoding="utf-8") as outcomes:
            seen = {tuple(map(int, line.split())) for line in outcomes}
    except FileNotFoundError:
        return set(), f"{status}, and no outcomes: {ran.stdout}"
    return seen, ran.returncode and f"{status}: {ran.stdout}"


def run_all(program, seeds):
    """-> the outcomes of all these runs together, and the texts of those that failed."""
    seen = set()
    problems = []
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(
        os.cpu_count()
    ) as pool:
        runs = []
        for profile, number, processes in seeds:
            for first in range(1, number * processes, number):
                file = os.path.join(folder, f"{profile}-{first}")
                runs.append(pool.submit(run, program, profile, first, first + number - 1, file))
        for finished in runs:
            outcomes, problem = finished.result()
            seen |= outcomes
            problems += [problem] if problem else []
    return seen, problems


def main():
    words = sys.argv[1:]
    is_few = words[:1] == ["--few"]
    if len(words) != 2 + is_few:
        sys.exit(__doc__.split("\n\n")[1])
    with open(words[-1], encoding="utf-8") as table:
        conditions = json.load(table)
    with open(UNSEEN, encoding="utf-8") as unseen:
        listed = read_unseen(unseen.read())
    seen, problems = run_all(words[-2], FEW_SEEDS if is_few else SEEDS)
    lines, summary, found = judge(conditions, seen, listed, is_complete=not is_few)
    for line in [] if is_few else lines:
        print(f"never: {line}")
    print(f"{summary} were seen")
    for problem in problems + found:
        print(f"coverage.py: {problem}", file=sys.stderr)
    sys.exit(1 if problems + found else 0)


if __name__ == "__main__":
    try:
        main()
    except BadList as problem:
        sys.exit(f"{UNSEEN}: {problem}")
