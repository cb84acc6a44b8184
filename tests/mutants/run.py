#!/usr/bin/python3
"""Breaks the code on purpose, one change at a time, and demands that a test notices.

usage: tests/mutants/run.py [NAME…]     tries all mutants of tests/mutants/list, or those named, in
                                        a copy of the tree; an hour or two for all
       tests/mutants/run.py --check     only whether each still applies to the source
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
LIST = os.path.join(ROOT, "tests/mutants/list")
# At most so many: each is a text that changes of the source have to keep up with.
MAX_MUTANTS = 60
TEST_TIMEOUT = 180  # seconds, for one test; an endless loop is a way to be caught, too
TEST_JOBS = 6 * os.cpu_count()  # most tests wait for something most of the time
BLOCK = re.compile(
    r"^mutant: (\S+)\nfile: (\S+)\ntest: (\S+)\n====\n(.*?)\n----\n(.*?)\n?====$", re.M | re.S
)


def mutants():
    """-> {name: (file, test, old, new)} in the order of the list"""
    with open(LIST, encoding="utf-8") as file:
        text = file.read()
    found = {name: rest for name, *rest in BLOCK.findall(text)}
    if len(found) != len(re.findall(r"^mutant:", text, re.M)):
        sys.exit("mutants: the list has a block that cannot be read, or a name twice")
    if len(found) > MAX_MUTANTS:
        sys.exit(f"mutants: {len(found)} mutants, at most {MAX_MUTANTS}: leave the weakest out")
    return found


def pattern_of(text):
    """The words and signs of the text, with any space between them: a text that was wrapped in
    another way is still found."""
    parts, pattern = re.findall(r"\w+|[^\w\s]", text), ""
    for before, part in zip([""] + parts, parts):
        both_words = re.match(r"\w", before) and re.match(r"\w", part)
        pattern += (r"\s+" if both_words else r"\s*" if before else "") + re.escape(part)
    return pattern


def broken(source, old, new):
    """-> the source with the change, and why there is none"""
    places = [match.span() for match in re.finditer(pattern_of(old), source)]
    if len(places) != 1:
        return None, f"the text occurs {len(places)} times"
    return source[: places[0][0]] + new + source[places[0][1] :], None


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def check(found):
    stale = []
    for name, (path, _, old, new) in found.items():
        path = os.path.join(ROOT, path)
        problem = broken(read(path), old, new)[1] if os.path.isfile(path) else "no such file"
        if problem:
            stale.append(name)
            print(f"{name}: {problem} in {path}")
    print(f"{len(found)} mutants, {len(stale)} do not apply")
    return not stale


class Copy:
    """What git tracks, as it is in the working tree, in a directory of its own, and its build."""

    def __init__(self):
        self.path = tempfile.mkdtemp(prefix="mutants.")
        names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
        for name in filter(None, names.stdout.decode().split("\0")):
            source, target = os.path.join(ROOT, name), os.path.join(self.path, name)
            if os.path.exists(source):
                os.makedirs(os.path.dirname(target), exist_ok=True)
                shutil.copy(source, target)

    def run(self, *command):
        """-> whether it succeeded, and what it printed"""
        told = subprocess.run(
            command, cwd=self.path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        return told.returncode == 0, told.stdout

    def demand(self, *command):
        succeeded, told = self.run(*command)
        if not succeeded:
            sys.exit(f"{told}\nmutants: {command} failed although nothing is broken")
        return told

    def build(self):
        return ["cmake", "--build", "--preset", "dev"]

    def tests(self, regex, *more):
        limits = ["--timeout", str(TEST_TIMEOUT), "--no-tests=error"]
        return ["ctest", "--preset", "dev", "-R", regex, "-j", str(TEST_JOBS), *limits, *more]

    def try_one(self, path, test, old, new):
        """-> what became of a mutant"""
        path = os.path.join(self.path, path)
        whole = read(path)
        text, problem = broken(whole, old, new)
        if problem:
            return f"error: {problem}"
        write(path, text)
        try:
            succeeded, told = self.run(*self.build())
            if not succeeded:
                return f"error: it does not build: {re.search('.*error.*', told)[0]}"
            succeeded, told = self.run(*self.tests(test, "--stop-on-failure"))
            if succeeded:
                return "survived"
            failed = re.search(r"^\s*\d+ - (\S+).* \(", told, re.M)
            return f"caught by {failed[1]}" if failed else "error: ctest failed, but no test did"
        finally:
            write(path, whole)


def main():
    found = mutants()
    if sys.argv[1:] == ["--check"]:
        return check(found)
    names = sys.argv[1:] or list(found)
    for name in names:
        if name not in found:
            sys.exit(f"mutants: no mutant is called {name}")
    copy = Copy()
    try:
        copy.demand("cmake", "--preset", "dev", "-DREDLOCK_WERROR=OFF")
        copy.demand(*copy.build())
        # Green while nothing is broken: else a failure would prove nothing.
        tests = "|".join(sorted({found[name][1] for name in names}))
        copy.demand(*copy.tests(tests, "--output-on-failure"))
        verdicts = {}
        for name in names:
            verdicts[name] = copy.try_one(*found[name])
            print(f"{name:40} {verdicts[name]}", flush=True)
    finally:
        shutil.rmtree(copy.path)
    caught = sum(verdict.startswith("caught") for verdict in verdicts.values())
    print(f"{caught} of {len(verdicts)} mutants caught")
    return caught == len(verdicts)


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
