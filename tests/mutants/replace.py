"""Replaces, in FILE, the one place that reads as the variable OLD does by the variable NEW. Space between words
and signs does not count, so that a text that was wrapped in another way is still found.

usage: OLD=TEXT NEW=TEXT replace.py FILE     (says on stdout why not, if so)
"""
import os
import re
import sys


def pattern_of(text):
    """The words and signs of the text, with any space between them."""
    parts = re.findall(r"\w+|[^\w\s]", text)
    pattern = ""
    for before, part in zip([""] + parts, parts):
        both_words = re.match(r"\w", before) and re.match(r"\w", part)
        pattern += (r"\s+" if both_words else r"\s*" if before else "") + re.escape(part)
    return pattern


def main():
    path = sys.argv[1]
    with open(path) as file:
        source = file.read()
    places = [match.span() for match in re.finditer(pattern_of(os.environ["OLD"]), source)]
    if len(places) != 1:
        print("the text does not occur" if not places else "the text occurs more than once")
        return
    start, end = places[0]
    with open(path, "w") as file:
        file.write(source[:start] + os.environ["NEW"] + source[end:])


main()
