#!/usr/bin/python3
"""Fails when a line of a source has more than 100 columns, that is characters, not bytes.

A source is a file with one of the names in SOURCE, or that begins as a script. So documents are
none, nor what tests expect, nor the lists of mutants, which quote lines as they are. A line that
names a bats test may be longer: it cannot be folded.

usage: tests/columns.py [ROOT]   (ROOT: the repository, or a copy of it)
"""
import os
import re
import sys

sys.dont_write_bytecode = True
import tree_rules

COLUMNS = 100

SOURCE = re.compile(
    r"\.(bash|bats|c|cmake|conf|cpp|fish|h|hpp|lua|pml|py|sh|toml|yml|zsh)$"
    r"|^(CMakeLists\.txt|CMakePresets\.json|Dockerfile|\.clang-(format|tidy))$"
)
BATS_TEST = re.compile(r'@test ".*" \{$')

# Folders at the root that are not the repository's.
FOREIGN = [".git", "build"]


def is_source(path):
    if SOURCE.search(os.path.basename(path)):
        return True
    with open(path, "rb") as opened:
        return opened.read(2) == b"#!"


def read_tree(root):
    """The text of each source by its path from the root."""
    files = {}
    for path, folders, names in os.walk(root):
        if os.path.samefile(path, root):
            folders[:] = [folder for folder in folders if folder not in FOREIGN]
        for name in names:
            file = os.path.join(path, name)
            if os.path.isfile(file) and is_source(file):
                with open(file, encoding="utf-8", errors="replace", newline="\n") as opened:
                    files[os.path.relpath(file, root)] = opened.read()
    return files


def violations(files):
    """A line for each that is too long."""
    if not files:
        return ["no sources: nothing was checked"]
    return [
        f"{file}:{number}: {len(line)} columns; {COLUMNS} are the most"
        for file in sorted(files)
        for number, line in enumerate(files[file].split("\n"), 1)
        if len(line) > COLUMNS and not (file.endswith(".bats") and BATS_TEST.match(line))
    ]


def main():
    files = read_tree(tree_rules.root_argument())
    number = sum(text.count("\n") for text in files.values())
    tree_rules.exit_with(
        "columns",
        violations(files),
        "lines too long",
        f"{len(files)} sources, {number} lines, none with more than {COLUMNS} columns",
    )


if __name__ == "__main__":
    main()
