#!/usr/bin/python3
"""Whether every mutant still applies to the source: its text occurs exactly once in its file. Tries
none of them.

usage: tests/mutants/check.py
"""
import functools
import os
import subprocess
import sys

sys.dont_write_bytecode = True
import mutants

ROOT = os.path.join(os.path.dirname(__file__), "../..")

# Each list and its keys.
LISTS = {
    "tests/mutants/list": ["file", "test"],
    "tests/sim/mutants/list": ["file", "rule"],
    "tests/faults/mutants/list": ["file", "rule", "profile"],
}


@functools.cache
def tracked():
    """What git tracks, and what it would if added: what the mutants are tried on."""
    names = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    ).stdout
    return set(names.decode().split("\0"))


@functools.cache
def text_of(path):
    """A file's text, or None."""
    if path not in tracked() or not os.path.isfile(os.path.join(ROOT, path)):
        return None
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def problem_of(mutant):
    source = text_of(mutant["file"])
    if source is None:
        return f"no file {mutant['file']}"
    _, problem = mutants.place_of(mutant["old"], source)
    return problem and f"{problem} in {mutant['file']}"


def main():
    stale = 0
    for path, keys in LISTS.items():
        try:
            found = mutants.read_list(os.path.join(ROOT, path), keys)
        except mutants.BadList as problem:
            sys.exit(f"mutants: {problem}")
        for name, mutant in found.items():
            problem = problem_of(mutant)
            if problem:
                print(f"{path}: {name}: {problem}", file=sys.stderr)
                stale += 1
        print(f"{path}: {len(found)} mutants")
    if stale:
        sys.exit(f"mutants: {stale} mutants do not apply to the source")


if __name__ == "__main__":
    main()
