#!/usr/bin/python3
"""Draws a history (history.py) as SVG: who waited and who was in, what was at fault, and what was
violated, over time.

usage: draw.py HISTORY >FILE
"""
import json
import sys
from html import escape

sys.dont_write_bytecode = True
from checker import Checker
from history import read_history

ROW = 16
LEFT = 150
WIDTH = 1400
TOP = 40
WAITS, IS_IN, ENDS, FAULT, LASTS, VIOLATED = (
    "#c9d7ea",
    "#2b5fa4",
    "#8aa9cf",
    "#d97b29",
    "#f3d7bd",
    "#c00000",
)


class Picture:
    def __init__(self, checker):
        self.checker = checker
        self.begin = checker.first["t"]
        self.scale = (WIDTH - LEFT - 20) / max(1, checker.last - self.begin)
        self.parts = []
        self.rows = 0

    def x(self, t):
        return LEFT + (t - self.begin) * self.scale

    def row(self, name):
        y = TOP + self.rows * ROW
        self.rows += 1
        self.text(LEFT - 6, y + 11, name, "end")
        self.parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - 20}" y1="{y + ROW}" y2="{y + ROW}" stroke="#eeeeee"/>'
        )
        return y

    def text(self, x, y, text, anchor="start"):
        self.parts.append(f'<text x="{x:.1f}" y="{y}" text-anchor="{anchor}">{escape(text)}</text>')

    def bar(self, y, since, until, colour, title):
        x = self.x(since)
        width = max(1.5, self.x(until) - x)
        self.parts.append(
            f'<rect x="{x:.1f}" y="{y + 2}" width="{width:.1f}" height="{ROW - 4}" fill="{colour}">'
            f"<title>{escape(title)}</title></rect>"
        )

    def contenders(self):
        """A row each; of one key together."""
        by_name = {}
        for run in self.checker.runs.values():
            by_name.setdefault((run.key, run.id.split(".")[0]), []).append(run)
        for (_, name), runs in sorted(by_name.items()):
            y = self.row(f"{name} {runs[0].mode}")
            for run in runs:
                self.run(y, run)

    def run(self, y, run):
        last = self.checker.last
        end = run.exit["t"] if run.exit else last
        told = json.dumps({k: v for k, v in (run.exit or {}).items() if k in ("code", "signal")})
        title = f"{run.id} host {run.start['host']} {told}"
        entered = run.enter["t"] if run.enter else end
        self.bar(y, run.begin, max(entered, run.begin), WAITS, f"{title}: waits")
        if run.enter:
            left = run.leave["t"] if run.leave else run.end(last)
            self.bar(y, entered, left, IS_IN, f"{title}: in, fence {run.enter['fence']}")
            if run.end(last) > left:
                self.bar(y, left, run.end(last), ENDS, f"{title}: its processes end")

    def faults(self):
        kinds = {}
        for fault in self.checker.faults:
            kinds.setdefault(fault["kind"], []).append(fault)
        for kind, faults in sorted(kinds.items()):
            y = self.row(kind)
            for fault in faults:
                where = {
                    k: fault[k] for k in ("ids", "hosts", "servers") if fault.get(k) is not None
                }
                title = f"{kind} {json.dumps(where)}"
                healed = fault["end"] - fault.get("lasting", 0)
                self.bar(y, healed, fault["end"], LASTS, f"{title}: lasts")
                self.bar(y, fault["t"], healed, FAULT, title)

    def violations(self, found):
        bottom = TOP + self.rows * ROW
        for violation in found:
            x = self.x(violation.t)
            self.parts.append(
                f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{bottom}" stroke="{VIOLATED}">'
                f"<title>{escape(str(violation))}</title></line>"
            )

    def times(self):
        bottom = TOP + self.rows * ROW
        seconds = self.checker.last - self.begin
        step = next(s for s in (1, 5, 10, 60, 300, 1800) if seconds / s <= 30 or s == 1800)
        for second in range(0, int(seconds) + 1, step):
            self.text(self.x(self.begin + second), bottom + 14, f"{second} s", "middle")

    def draw(self):
        found = self.checker.check()
        first = self.checker.first
        head = f"{first['profile']}, seed {first['seed']}: {len(found)} violations"
        self.text(LEFT, 16, head)
        x = LEFT
        for colour, text in ((WAITS, "waits"), (IS_IN, "in"), (ENDS, "ends"), (FAULT, "fault")):
            self.parts.append(f'<rect x="{x}" y="22" width="10" height="10" fill="{colour}"/>')
            self.text(x + 14, 31, text)
            x += 70
        self.contenders()
        self.faults()
        self.violations(found)
        self.times()
        height = TOP + self.rows * ROW + 24
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
            'font-family="sans-serif" font-size="11">\n'
            f'<rect width="{WIDTH}" height="{height}" fill="white"/>\n'
            + "\n".join(self.parts)
            + "\n</svg>\n"
        )


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__.strip())
    sys.stdout.write(Picture(Checker(read_history(sys.argv[1]))).draw())


if __name__ == "__main__":
    main()
