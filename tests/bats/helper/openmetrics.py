#!/usr/bin/python3
"""Fails unless stdin is OpenMetrics 1.0 text, as far as gauges go: families one after the other,
with their metadata first; UNIT at the end of the name; escaped labels; no sample twice; # EOF."""
import re
import sys

NAME = "[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
SAMPLE = re.compile(rf"({NAME})(?:\{{((?:{LABEL}(?:,{LABEL})*)?)\}})? (-?[0-9]+(?:\.[0-9]+)?)")
METADATA = re.compile(rf"# (TYPE|UNIT|HELP) ({NAME}) (.*)")


def refuse(line, why):
    sys.exit(f"{why}: {line!r}")


text = sys.stdin.buffer.read().decode("utf-8", "strict")
if not text.endswith("\n# EOF\n"):
    refuse(text[-20:], "no EOF at the end")
family, families, metadata, samples = None, set(), set(), set()
for line in text[: -len("# EOF\n")].splitlines():
    if told := METADATA.fullmatch(line):
        kind, name, value = told.groups()
        if name != family:
            if name in families:
                refuse(line, "a family in two parts")
            families.add(name)
            family, metadata = name, set()
        if kind in metadata or "sample" in metadata:
            refuse(line, "metadata twice, or behind a sample")
        metadata.add(kind)
        if kind == "TYPE" and value != "gauge":
            refuse(line, "no gauge")
        if kind == "UNIT" and not name.endswith("_" + value):
            refuse(line, "the name does not end with the unit")
        if kind == "HELP" and re.search(r'\\(?![\\n"])', value):
            refuse(line, "a wrong escape")
    elif sample := SAMPLE.fullmatch(line):
        name, labels, _ = sample.groups()
        if name != family or "TYPE" not in metadata:
            refuse(line, "a sample of another family")
        if (name, labels) in samples:
            refuse(line, "a sample twice")
        samples.add((name, labels))
        metadata.add("sample")
    else:
        refuse(line, "not understood")
