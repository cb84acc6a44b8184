#!/usr/bin/python3
"""Shows that tests/columns.py finds what it is there to find: plants lines in a small tree."""
import os
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import columns
from tree_rules import ROOT, Checks

checks = Checks("columns_test")


def count(verdict, expected, what, output):
    checks.count(verdict != expected and f"{what}: {verdict}, expected {expected}: {output}")


def plant(root, files):
    """Writes these (text or bytes, by path) beside a source that has no fault."""
    for path, content in {"src/main.cpp": "int main() {}\n", **files}.items():
        file = pathlib.Path(root, path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())


def check(places, files, what):
    """What is said of a tree of these files: one line for each of PLACES ("PATH:LINE"), in order,
    and nothing else."""
    with tempfile.TemporaryDirectory() as root:
        plant(root, files)
        found = columns.violations(columns.read_tree(root))
    count([":".join(line.split(":")[:2]) for line in found], places, what, found)


LONGEST, LONGER = "x" * 100, "x" * 101

# Every kind of source, wherever it lies.
SUFFIXES = "bash bats c cmake conf cpp fish h hpp lua pml py sh toml yml zsh".split()
NAMES = "CMakeLists.txt CMakePresets.json Dockerfile .clang-format .clang-tidy".split()
for name in [*(f"a.{suffix}" for suffix in SUFFIXES), *NAMES]:
    for path in [name, f"tests/inner/{name}", f"tests/build/{name}"]:
        check([], {path: f"{LONGEST}\n"}, f"100 columns in {path}")
        check([f"{path}:2"], {path: f"\n{LONGER}\n"}, f"101 columns in {path}")
check(["script:2"], {"script": f"#!/bin/sh\n{LONGER}\n"}, "a script of any name")

# All that are too long; a last line without an end; characters, not bytes; bytes that are no text.
check(["a.py:1", "a.py:3"], {"a.py": f"{LONGER}\n\n{LONGER}\n"}, "two lines")
check(["a.py:1", "b.py:1"], {"b.py": LONGER, "a.py": LONGER}, "two files")
check(["a.py:1"], {"a.py": LONGER}, "a last line")
check([], {"a.py": "ü" * 100}, "100 characters of two bytes")
check(["a.py:1"], {"a.py": "ü" * 101}, "101 characters of two bytes")
check(["a.py:2"], {"a.py": b"\xff\n" + LONGER.encode()}, "bytes")

# What is no source.
for path in ["README.md", "tests/mutants/list", "tests/expected/a.txt", "a.json", "a.svg"]:
    check([], {path: f"{LONGER}\n"}, path)
for path in ["build/dev/a.cpp", ".git/hooks/a.sh"]:
    check([], {path: f"{LONGER}\n"}, path)

# The name of a bats test, and nothing that only looks like one.
NAMED = f'@test "{LONGER}" {{'
check([], {"a.bats": f"{NAMED}\n"}, "the name of a test")
check(["a.bash:1"], {"a.bash": f"{NAMED}\n"}, "the name of a test in a helper")
for line in [f"  {NAMED}", f"{NAMED} true; }}", f"# {NAMED}", f'run echo "{LONGER}" {{']:
    check(["a.bats:1"], {"a.bats": f"{line}\n"}, line)


def check_program(expected, root, words):
    """What the program says of the tree at ROOT; WORDS are in the message of a refusal."""
    ran = subprocess.run(
        [os.path.join(ROOT, "tests/columns.py"), root], capture_output=True, text=True
    )
    verdict = {0: "accepted", 1: "refused" if words in ran.stderr else "misjudged"}.get(
        ran.returncode, "crashed"
    )
    count(verdict, expected, words, ran.stderr)


with tempfile.TemporaryDirectory() as root:
    # An empty tree must not pass for a clean one.
    check_program("refused", root, "nothing was checked")
    plant(root, {})
    check_program("accepted", root, "a tree without a fault")
    plant(root, {"src/a.cpp": LONGER})
    check_program("refused", root, "src/a.cpp:1: 101 columns; 100 are the most")

checks.exit()
