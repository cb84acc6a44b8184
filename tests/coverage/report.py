#!/usr/bin/python3
"""Prints the lines and branches of src that no run of a coverage build reached, a file at a time,
with totals; and compares the lines with those that tests/coverage/unreached knows.

usage: tests/coverage/report.py BUILD   (BUILD: a directory built and run by tests/coverage.sh)

Fails when a file has more unreached lines than are known. Branches are those of conditions: what
the compiler adds for exceptions and in coroutines is left out.
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


def main():
    sources = read(os.path.realpath(sys.argv[1]))
    known = known_lines()
    lines = reached_lines = branches = reached_branches = 0
    new = []
    for name in sorted(sources):
        source = sources[name]
        with open(os.path.join(ROOT, name), encoding="utf-8") as opened:
            text = opened.read().split("\n")
        missed = source.unreached_lines()
        missed_branches = source.unreached_branches(text)
        in_file = sum(
            len(counts)
            for number, counts in source.branches.items()
            if is_condition(text[number - 1])
        )
        lines += len(source.lines)
        reached_lines += len(source.lines) - len(missed)
        branches += in_file
        reached_branches += in_file - sum(missed_branches.values())
        if missed or missed_branches:
            print(name)
        if missed:
            print(f"  lines: {ranges(missed)}")
        if missed_branches:
            print(f"  branches: {ranges(missed_branches)}")
        if len(missed) > known.get(name, 0):
            new.append(f"{name}: {len(missed)} lines unreached, {known.get(name, 0)} known")
    print(f"lines: {reached_lines} of {lines}, {100 * reached_lines / lines:.1f} %")
    print(f"branches: {reached_branches} of {branches}, {100 * reached_branches / branches:.1f} %")
    for line in new:
        print(line)
    return 1 if new else 0


if __name__ == "__main__":
    sys.exit(main())
