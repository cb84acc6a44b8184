#!/usr/bin/python3
"""Prints the lines and branches of src that no run of a coverage build reached, a file at a time,
with totals.

usage: tests/coverage/report.py [--simulation] BUILD
BUILD: a directory built and run by tests/coverage.sh
  --simulation  the sources alone that the simulation runs, with numbers for each

Without it, fails when a file has more unreached lines than tests/coverage/unreached knows. Branches
are those of conditions: what the compiler adds for exceptions and in coroutines is left out.
"""
import collections
import json
import os
import re
import subprocess
import sys

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
SOURCES = os.path.join(ROOT, "src", "")
KNOWN = os.path.join(os.path.dirname(__file__), "unreached")

# What the simulation runs. The rest is replaced by its virtual world, or has no place in it.
SIMULATED = re.compile(
    r"src/(core/.*|engine/.*|store/[^/]*|store/redis/("
    r"cluster|command|connection|connector|error_reply|links|login|redis_server|reply_reader|"
    r"script_commands|sentinel|server_info|subscription|topology)\.[ch]pp)$"
)


class Source:
    """What is known of a file: how often each line ran, and each branch of a line."""

    def __init__(self):
        self.lines = collections.Counter()
        self.branches = {}

    def add(self, line):
        number = line["line_number"]
        self.lines[number] += line["count"]
        counts = [branch["count"] for branch in line["branches"] if not branch["throw"]]
        # The same line of a header or a template is compiled several times.
        before = self.branches.get(number, [])
        longest = max(len(counts), len(before))
        padded = [found + [0] * (longest - len(found)) for found in (before, counts)]
        self.branches[number] = [sum(pair) for pair in zip(*padded)]

    def unreached_lines(self):
        return sorted(number for number, count in self.lines.items() if count == 0)

    def unreached_branches(self, text):
        """The lines that were reached, but not in all ways, with how many are left."""
        return {
            number: counts.count(0)
            for number, counts in sorted(self.branches.items())
            if self.lines[number] and 0 in counts and is_condition(text[number - 1])
        }


def is_condition(line):
    return not re.search(r"\bco_(await|return|yield)\b", line) and bool(
        re.search(r"\b(if|while|for|switch|case)\b|&&|\|\||\?", line)
    )


def read(build):
    """The sources below src/ by their path, as gcov finds them."""
    sources = collections.defaultdict(Source)
    data = []
    for path, _, names in os.walk(build):
        data += [os.path.join(path, name) for name in names if name.endswith(".gcda")]
    if not data:
        sys.exit(f"report.py: {build} holds no counters; nothing ran there")
    command = ["gcov", "--json-format", "--stdout", "--branch-probabilities"]
    reports = subprocess.run(
        command + sorted(data), stdout=subprocess.PIPE, check=True, cwd=build
    ).stdout
    for report in reports.splitlines():
        for file in json.loads(report)["files"]:
            name = os.path.realpath(os.path.join(build, file["file"]))
            if name.startswith(SOURCES):
                for line in file["lines"]:
                    sources[os.path.relpath(name, ROOT)].add(line)
    return sources


def ranges(numbers):
    """[1, 2, 3, 7] as `1-3 7`."""
    found = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return " ".join(str(a) if a == b else f"{a}-{b}" for a, b in found)


def known_lines():
    """How many unreached lines of each file are known."""
    with open(KNOWN, encoding="utf-8") as known:
        rows = [line.split() for line in known if line.strip() and not line.startswith("#")]
    return {name: int(count) for count, name in rows}


class Totals:
    """How many lines and branches there are, and how many of them were reached. The branches of a
    line that never ran count as unreached, though only the line is listed."""

    def __init__(self):
        self.lines = self.reached_lines = self.branches = self.reached_branches = 0

    def add(self, source, text):
        self.lines += len(source.lines)
        self.reached_lines += len(source.lines) - len(source.unreached_lines())
        for number, counts in source.branches.items():
            if is_condition(text[number - 1]):
                self.branches += len(counts)
                self.reached_branches += len(counts) - counts.count(0)

    def rows(self):
        for what, reached, number in [
            ("lines", self.reached_lines, self.lines),
            ("branches", self.reached_branches, self.branches),
        ]:
            share = 100 * reached / number if number else 100
            yield f"{what}: {reached} of {number}, {share:.1f} %"


def print_source(name, source, text, with_numbers):
    missed = source.unreached_lines()
    missed_branches = source.unreached_branches(text)
    if with_numbers:
        totals = Totals()
        totals.add(source, text)
        print(f"{name}: {'; '.join(totals.rows())}")
    elif missed or missed_branches:
        print(name)
    if missed:
        print(f"  lines: {ranges(missed)}")
    if missed_branches:
        print(f"  branches: {ranges(missed_branches)}")


def main():
    of_simulation = sys.argv[1] == "--simulation"
    sources = read(os.path.realpath(sys.argv[-1]))
    if of_simulation:
        sources = {name: source for name, source in sources.items() if SIMULATED.match(name)}
    known = {} if of_simulation else known_lines()
    totals = Totals()
    new = []
    for name in sorted(sources):
        source = sources[name]
        with open(os.path.join(ROOT, name), encoding="utf-8") as opened:
            text = opened.read().split("\n")
        totals.add(source, text)
        print_source(name, source, text, with_numbers=of_simulation)
        missed = len(source.unreached_lines())
        if not of_simulation and missed > known.get(name, 0):
            new.append(f"{name}: {missed} lines unreached, {known.get(name, 0)} known")
    print("\n".join([*totals.rows(), *new]))
    return 1 if new else 0


if __name__ == "__main__":
    sys.exit(main())
