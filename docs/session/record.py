#!/usr/bin/env python3
"""Records a real session in tmux and draws it as an animated SVG.

usage: REDLOCK_CLI=build/release/src/redlock-cli docs/session/record.py >docs/session.svg

Three panes show the terminals of three hosts: one deploys, one waits for its turn, and from the third
the first is stopped. All are on this machine and share a lock directory; unshare(1) gives each a
host name and a user name. Every screen is what tmux shows; nothing is drawn by hand. A viewer
without CSS animation shows the last screen.
"""
import html
import os
import re
import subprocess
import sys
import tempfile
import time

# Narrow enough that the text is more than 9 px high on a phone 360 px wide.
COLUMNS = 58
ROWS = [6, 6, 12]  # of each pane
CELL_WIDTH, CELL_HEIGHT, MARGIN = 8.45, 18, 8
# The frame sets the picture off from a dark page.
BACKGROUND, FOREGROUND, FRAME = "#1d1f21", "#d8dad8", "#5c6370"
COLOURS = ["#282a2e", "#cc6666", "#b5bd68", "#f0c674", "#81a2be", "#b294bb", "#8abeb7", "#c5c8c6"]
HOSTS = ["ann@web1", "ci@runner2", "ops@admin"]  # of each pane
STEP = 0.1  # seconds between two captures of the screen
LAST_SCREEN = 5.0  # seconds


def host_shell(directory, host, startup):
    """The command of a shell that has the user name and the host name."""
    user, name = host.split("@")
    users = os.path.join(directory, f"users-{name}")
    with open(users, "w") as file:
        file.write(f"{user}:x:0:0::{directory}:/bin/bash\n")
    set_names = f"hostname {name}; mount --bind {users} /etc/passwd"
    shell = f"exec bash --noprofile --rcfile {startup}"
    return f"unshare --map-root-user --uts --mount sh -c '{set_names}; {shell}'"


class Terminal:
    """A tmux server of our own with a pane for each host, one below the other."""

    def __init__(self, directory, environment):
        self.environment = environment
        self.socket = os.path.join(directory, "tmux")
        startup = os.path.join(directory, "bashrc")
        with open(startup, "w") as file:
            file.write("PS1='\\[\\e[1;32m\\]\\h$\\[\\e[0m\\] '; HISTFILE=; clear\n")
            file.write(f"cd {directory}\n")
        shells = [host_shell(directory, host, startup) for host in HOSTS]
        size = ["-x", str(COLUMNS), "-y", str(sum(ROWS) + len(ROWS) - 1)]
        self.tmux("new-session", "-d", *size, shells[0])
        self.tmux("set", "-g", "status", "off")
        for number, shell in enumerate(shells[1:], start=1):
            below = sum(ROWS[number:]) + len(ROWS) - 1 - number
            self.tmux("split-window", "-v", "-l", str(below), shell)

    def tmux(self, *words):
        command = ["tmux", "-f", "/dev/null", "-S", self.socket, *words]
        return subprocess.run(
            command, env=self.environment, check=True, capture_output=True, text=True
        ).stdout

    def type(self, pane, text):
        self.tmux("send-keys", "-t", str(pane), "-l", text)
        self.tmux("send-keys", "-t", str(pane), "Enter")

    def pane(self, number):
        return self.tmux("capture-pane", "-e", "-p", "-t", str(number)).split("\n")[:-1]

    def screen(self):
        lines = self.pane(0)
        for number in range(1, len(HOSTS)):
            lines += ["\x1b[2m" + "─" * COLUMNS + "\x1b[0m", *self.pane(number)]
        return lines

    def end(self):
        self.tmux("kill-server")


class Recording:
    def __init__(self, terminal):
        self.terminal = terminal
        self.frames = []  # (seconds since the start, lines)
        self.start = time.monotonic()

    def look(self):
        screen = self.terminal.screen()
        if not self.frames or screen != self.frames[-1][1]:
            now = time.monotonic() - self.start if self.frames else 0.0
            self.frames.append((now, screen))
        return "\n".join(screen)

    def until(self, pattern, limit=30):
        """Records until the screen, without its colours, shows the pattern."""
        end = time.monotonic() + limit
        while not re.search(pattern, re.sub(r"\x1b\[[0-9;]*m", "", self.look())):
            if time.monotonic() > end:
                sys.exit(
                    f"record.py: the screen never showed {pattern!r}:\n"
                    + "\n".join(self.frames[-1][1])
                )
            time.sleep(STEP)

    def rest(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.look()
            time.sleep(STEP)


def spans(line):
    """The parts of a line between changes of colour: (text, class names)."""
    bold = dim = False
    colour = None
    column = 0
    for text, codes in re.findall(r"([^\x1b]+)|\x1b\[([0-9;]*)m", line):
        if text:
            names = [f"c{colour}"] if colour is not None else []
            yield column, text, " ".join(names + ["b"] * bold + ["d"] * dim)
            column += len(text)
            continue
        for code in (int(code or 0) for code in codes.split(";")):
            if code == 0:
                bold, dim, colour = False, False, None
            elif code == 1:
                bold = True
            elif code == 2:
                dim = True
            elif code == 22:
                bold = dim = False
            elif 30 <= code <= 37:
                colour = code - 30
            elif code == 39:
                colour = None


def drawn(lines):
    for row, line in enumerate(lines):
        y = MARGIN + (row + 0.75) * CELL_HEIGHT
        for column, text, names in spans(line):
            if text.strip():
                attribute = f' class="{names}"' if names else ""
                x = MARGIN + column * CELL_WIDTH
                length = len(text) * CELL_WIDTH
                yield (
                    f'<text x="{x:.1f}" y="{y:.1f}" textLength="{length:.1f}"{attribute}>'
                    f"{html.escape(text)}</text>"
                )


def svg(frames, whole):
    width = round(COLUMNS * CELL_WIDTH + 2 * MARGIN)
    height = (sum(ROWS) + len(ROWS) - 1) * CELL_HEIGHT + 2 * MARGIN
    last = len(frames) - 1
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}">',
        "<title>A deploy waits for another, which is stopped from a third host</title>",
        "<style>",
        f"text{{font:14px ui-monospace,Menlo,Consolas,monospace;fill:{FOREGROUND};white-space:pre}}"
        ".b{font-weight:bold}.d{opacity:.7}",
    ]
    out += [f".c{number}{{fill:{colour}}}" for number, colour in enumerate(COLOURS)]
    for number, (start, _) in enumerate(frames):
        end = frames[number + 1][0] if number < last else whole
        shown, hidden = (f"{100 * moment / whole:.2f}%" for moment in (start, end))
        out.append(
            f"@keyframes f{number}{{0%{{visibility:hidden}}{shown}{{visibility:visible}}"
            + (f"{hidden},100%{{visibility:hidden}}}}" if number < last else "}")
            + f"#f{number}{{animation:f{number} {whole:.1f}s step-end infinite}}"
        )
    out += [
        "@media (prefers-reduced-motion:reduce){g{animation:none!important}}",
        "</style>",
        f'<rect x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="6" '
        f'fill="{BACKGROUND}" stroke="{FRAME}"/>',
    ]
    for number, (_, lines) in enumerate(frames):
        # A viewer without animation shows the last screen alone.
        visibility = "" if number == last else ' visibility="hidden"'
        out += [f'<g id="f{number}"{visibility} xml:space="preserve">', *drawn(lines), "</g>"]
    return "\n".join(out + ["</svg>"])


def main():
    cli = os.path.realpath(
        os.environ.get("REDLOCK_CLI") or sys.exit("record.py: REDLOCK_CLI: the program to show")
    )
    with tempfile.TemporaryDirectory() as directory:
        locks = os.path.join(directory, "locks")
        os.mkdir(locks, 0o700)
        script = os.path.join(directory, "deploy.sh")
        with open(script, "w") as file:
            file.write(
                '#!/bin/sh\nfor step in build upload switch; do echo "$step"; sleep 5; done\n'
            )
        os.chmod(script, 0o755)
        environment = {
            "PATH": os.path.dirname(cli) + ":" + os.environ["PATH"],
            "HOME": directory,
            "TERM": "tmux-256color",
            "LANG": "C.UTF-8",
            "REDLOCK_SERVER": "local:" + locks,
            "SHELL": "/bin/bash",
            "REDLOCK_TTL": "6s",  # the holder reads a stop request within two seconds
        }
        terminal = Terminal(directory, environment)
        try:
            recording = Recording(terminal)
            recording.until(r"(?s)^web1\$.*\nrunner2\$.*\nadmin\$")
            recording.frames.clear()
            recording.start = time.monotonic()
            recording.rest(0.8)
            terminal.type(0, "redlock-cli run -k deploy --note 4.2 ./deploy.sh")
            recording.until("(?m)^build$")
            terminal.type(1, "redlock-cli run -k deploy ./deploy.sh")
            recording.until("waiting")
            recording.rest(1.5)
            terminal.type(2, "redlock-cli status deploy")
            recording.until(r"(?m)^ +waiting: ")
            recording.rest(2)
            terminal.type(2, "redlock-cli stop deploy --reason 'wrong branch'")
            recording.until(r"released after")
            recording.until(r"(?ms)─$.*^build$")
            recording.rest(1)
            whole = recording.frames[-1][0] + LAST_SCREEN
            print(svg(recording.frames, whole))
        finally:
            terminal.end()


main()
