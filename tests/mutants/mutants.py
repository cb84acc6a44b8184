#!/usr/bin/python3
"""Reads lists of mutants, and makes the change that one is.

usage: mutants.py read LIST KEY…           (the blocks that tests/mutants/list describes in its
                                            head: for each mutant its name, what it says to each
                                            KEY, the old text and the new one, all ended by NUL)
       OLD=… NEW=… mutants.py replace FILE  (in the file; says on stdout why not, if so)
"""
import os
import re
import sys


class BadList(Exception):
    """What is wrong with a list, and where."""


def read_list(path, keys):
    """Its mutants by their names, in order: dictionaries with `keys`, `old` and `new`. Each has all
    keys."""
    mutants = {}
    state = "between"
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()

    def bad(what):
        return BadList(f"{os.path.relpath(path)}:{number}: {what}")

    for number, line in enumerate(lines, 1):
        if state == "between" and line.startswith("mutant: "):
            name = line.removeprefix("mutant: ")
            if name in mutants:
                raise bad(f"a second {name}")
            mutant = mutants[name] = {"old": [], "new": []}
            state = "keys"
        elif state == "between" and (not line or line.startswith("#")):
            pass
        elif state == "keys" and line == "====":
            for key in keys:
                if not mutant.get(key):
                    raise bad(f"{name} needs {key}:")
            state = "old"
        elif state == "keys" and line.partition(": ")[0] in keys:
            key, _, mutant[key] = line.partition(": ")
        elif state == "old" and line == "----":
            state = "new"
        elif state == "new" and line == "====":
            mutant.update(old="\n".join(mutant["old"]), new="\n".join(mutant["new"]))
            if not mutant["old"].strip():
                raise bad(f"{name} replaces nothing")
            if mutant["old"] == mutant["new"]:
                raise bad(f"{name} changes nothing")
            state = "between"
        elif state in ("old", "new"):
            mutant[state].append(line)
        else:
            raise bad(f"not expected here: {line}")
    if state != "between":
        raise BadList(f"{os.path.relpath(path)}: {name} has no end")
    if not mutants:
        raise BadList(f"{os.path.relpath(path)}: no mutants")
    return mutants


def pattern_of(text):
    """The words and signs of the text, with any space between them."""
    parts = re.findall(r"\w+|[^\w\s]", text)
    pattern = ""
    for before, part in zip([""] + parts, parts):
        both_words = re.match(r"\w", before) and re.match(r"\w", part)
        pattern += (r"\s+" if both_words else r"\s*" if before else "") + re.escape(part)
    return pattern


def place_of(old, source):
    """Where the one place that reads as `old` begins and ends, and why there is none. Space between
    words and signs does not count, so that a text that was wrapped in another way is still
    found."""
    places = [match.span() for match in re.finditer(pattern_of(old), source)]
    if len(places) == 1:
        return places[0], ""
    return None, "the text occurs more than once" if places else "the text does not occur"


def replace(path, old, new):
    with open(path, encoding="utf-8") as file:
        source = file.read()
    place, problem = place_of(old, source)
    if problem:
        return problem
    with open(path, "w", encoding="utf-8") as file:
        file.write(source[: place[0]] + new + source[place[1] :])
    return ""


def main():
    if sys.argv[1] == "replace":
        print(replace(sys.argv[2], os.environ["OLD"], os.environ["NEW"]))
        return
    keys = sys.argv[3:]
    try:
        mutants = read_list(sys.argv[2], keys)
    except BadList as problem:
        sys.exit(f"mutants: {problem}")
    for name, mutant in mutants.items():
        print(name, *(mutant[key] for key in [*keys, "old", "new"]), sep="\0", end="\0")


if __name__ == "__main__":
    main()
