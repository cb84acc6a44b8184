#!/usr/bin/python3
"""Fails when the scripts, or the C++ that speaks with servers, say again what core/protocol.txt
says: one of its words, times or numbers, or how the keys of the protocol begin.

usage: tests/protocol.py
"""
import pathlib
import re
import sys

SRC = pathlib.Path(__file__).resolve().parent.parent / "src"

# Of the scripts themselves: the states of a lock, and a field of the owner record.
OTHER_MEANINGS = {"free", "held", "shared", "supervised"}

STRING = r'"(?:\\.|[^"\\])*"|\'[^\']*\''
NUMBER = re.compile(r"(?<![\w.*/])(?<![*/] )\d[\d']*(?=(?:ms|s|h)?(?![\w.]))")


def shared_facts():
    """-> {word or digits: its names}"""
    text = (SRC / "core/protocol.txt").read_text(encoding="utf-8")
    facts = {}
    for name, fact in re.findall(r"^(?:word|number|time) (\w+) (\S+)$", text, re.M):
        if len(fact) > 1 and fact not in OTHER_MEANINGS:
            facts[fact] = f"{facts[fact]} or {name}" if fact in facts else name
    return facts


def repeated(path, facts):
    """-> line number and what is said again, for each"""
    is_script = path.suffix == ".lua"
    comment = "--.*" if is_script else "//.*"
    # Smaller numbers mean many things; a thousand, only where waiters are told from one another.
    least = 1000 if is_script or "queue" in path.name else 10_000
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        code = re.sub(f"({STRING})|{comment}", r"\1", line)
        for literal in re.findall(STRING, code):
            if literal[1:-1] in facts or re.search(r"redlock:[\w{]|^.redlock:.$", literal):
                yield number, literal
        for digits in NUMBER.findall(re.sub('"[^"]*"', "", code)):
            value = digits.replace("'", "")
            if value in facts and int(value) >= least:
                yield number, digits


def main():
    facts = shared_facts()
    paths = [path for layer in ["core", "engine", "store"] for path in (SRC / layer).rglob("*.*")]
    paths = [path for path in paths if path.suffix in (".lua", ".cpp", ".hpp")]
    found = [(path, *again) for path in sorted(paths) for again in repeated(path, facts)]
    for path, number, literal in found:
        name = facts.get(literal.strip("\"'").replace("'", ""), "prefix")
        place = f"{path.relative_to(SRC.parent)}:{number}"
        print(f"protocol: {place}: {literal} is {name} of core/protocol.txt")
    print(f"protocol: {len(facts)} facts, {len(paths)} files, {len(found)} said again")
    sys.exit(1 if found or not facts or not paths else 0)


if __name__ == "__main__":
    main()
