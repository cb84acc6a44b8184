#!/usr/bin/python3
"""Draws the times of docs/performance.md as docs/costs.svg.

usage: tests/bench/chart.py

bench.py --document does that, too; tests/docs.py checks that it was done.
"""
import html
import math
import os
import re

DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs")
ROW, TOP, LEFT, WIDTH, RIGHT = 24, 40, 204, 520, 60
BACKGROUND, FRAME, OURS, OTHERS = "#1d1f21", "#5c6370", "#b5bd68", "#81a2be"


def times(document):
    """(name, milliseconds, whether it is ours) of each row of the table."""
    part = document.partition("<!-- measured: times -->")[2].partition("<!-- end -->")[0]
    for mark, name, median in re.findall(r"^\| (\*\*)?([^|]*?)(?:\*\*)? \| ([0-9.]+) \|", part, re.M):
        yield name, float(median), bool(mark)


def drawn(document):
    rows = list(times(document))
    # From half a millisecond to the longest: no bar hides the others.
    least = 0.5
    scale = (WIDTH - LEFT - RIGHT) / math.log(max(median for _, median, _ in rows) / least)
    height = TOP + ROW * len(rows) + 10
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}">',
        "<title>Milliseconds of `true` under a lock; logarithmic</title>",
        "<style>text{font:13px system-ui,sans-serif;fill:#d8dad8}.dim{fill:#9da5a9}</style>",
        f'<rect x=".5" y=".5" width="{WIDTH - 1}" height="{height - 1}" rx="6" '
        f'fill="{BACKGROUND}" stroke="{FRAME}"/>',
        '<text x="12" y="25" class="dim">ms for `true` under a lock of (logarithmic)</text>',
    ]
    for number, (name, median, ours) in enumerate(rows):
        y = TOP + ROW * number
        length = scale * math.log(median / least)
        out += [
            f'<text x="{LEFT - 8}" y="{y + 14}" text-anchor="end">{html.escape(name)}</text>',
            f'<rect x="{LEFT}" y="{y}" width="{length:.0f}" height="18" '
            f'fill="{OURS if ours else OTHERS}"/>',
            f'<text x="{LEFT + length + 6:.0f}" y="{y + 14}">{median:g}</text>',
        ]
    return "\n".join(out + ["</svg>"]) + "\n"


def draw():
    with open(f"{DOCS}/performance.md", encoding="utf-8") as file:
        picture = drawn(file.read())
    with open(f"{DOCS}/costs.svg", "w", encoding="utf-8") as file:
        file.write(picture)


if __name__ == "__main__":
    draw()
