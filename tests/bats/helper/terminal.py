"""terminal.py ASK ANSWER CMD...: a user at a terminal, for tests.

Runs CMD as the leader of a session of its own on a pseudo-terminal, and does what the fifo ASK
says. A request ends with a NUL, its answer with a newline: `ok ...` or `no ...`.

  press TEXT       types it, control characters included
  see REGEX        waits until the screen shows it, behind what was seen last
  shown REGEX      answers `yes` when it was on the screen at any time, else `never`
  resize ROWS COLS
  foreground       the process group that has the terminal
  close            takes the terminal away
  left             the pids of everything that CMD started, directly or not, and that still lives

At TERM it shows on stderr what was on the screen, takes the terminal away, and kills everything
that is left, each by its pid.
"""

import ctypes
import fcntl
import os
import pty
import re
import resource
import select
import signal
import struct
import sys
import termios
import time

PATIENCE = 20
PR_SET_CHILD_SUBREAPER = 36


def parents():
    """Of all living processes."""
    found = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                state, parent = file.read().rpartition(b")")[2].split()[:2]
        except OSError:
            continue
        if state not in (b"Z", b"X"):
            found[int(name)] = int(parent)
    return found


def descendants():
    """Orphans come to us, so whatever was started below us is found. A stopped parent keeps its
    children."""
    by_pid = parents()
    known, grown = {os.getpid()}, True
    while grown:
        more = {pid for pid, parent in by_pid.items() if parent in known} - known
        known |= more
        grown = bool(more)
    return sorted(known - {os.getpid()})


def reap():
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def set_size(fd, rows, columns):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


class Terminal:
    def __init__(self, command):
        self.screen, self.seen = b"", 0
        child, self.master = pty.fork()
        if child == 0:
            self.become(command)

    @staticmethod
    def become(command):
        for ignored_by_python in signal.SIGPIPE, signal.SIGXFSZ:
            signal.signal(ignored_by_python, signal.SIG_DFL)
        set_size(0, 24, 500)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.environ.update(TERM="dumb", INPUTRC="/dev/null", HISTFILE="", PS1="[$?]> ", PS2="")
        os.execvp(command[0], command)

    def resize(self, rows, columns):
        set_size(self.master, int(rows), int(columns))

    def read(self):
        try:
            got = os.read(self.master, 65536)
        except OSError:  # no process has it open any more
            got = b""
        self.screen += got
        if not got:
            self.close()

    def close(self):
        if self.master is not None:
            os.close(self.master)
        self.master = None

    def find(self, pattern):
        match = re.compile(pattern.encode(), re.MULTILINE).search(self.screen, self.seen)
        if match:
            self.seen = match.end()
        return match


class Driver:
    def __init__(self, ask, answer, command):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self.ask, self.answer = os.open(ask, os.O_RDWR | os.O_CLOEXEC), os.open(
            answer, os.O_RDWR | os.O_CLOEXEC
        )
        self.requests = b""
        self.terminal = Terminal(command)

    def listen(self):
        while True:
            self.pump(None)
            while b"\0" in self.requests:
                request, _, self.requests = self.requests.partition(b"\0")
                good, text = self.obey(*request.decode().split(" ", 1))
                os.write(self.answer, b"%s %s\n" % (b"ok" if good else b"no", text))

    def pump(self, timeout):
        """Waits for the screen to change, or for requests."""
        terminal = self.terminal
        ready, _, _ = select.select(
            [self.ask] + ([terminal.master] if terminal.master is not None else []), [], [], timeout
        )
        if self.ask in ready:
            self.requests += os.read(self.ask, 65536)
        if terminal.master in ready:
            terminal.read()

    def obey(self, verb, text=""):
        terminal = self.terminal
        if verb == "press":
            os.write(terminal.master, text.encode())
        elif verb == "see":
            return self.see(text)
        elif verb == "shown":
            return True, b"yes" if re.search(text.encode(), terminal.screen) else b"never"
        elif verb == "resize":
            terminal.resize(*text.split())
        elif verb == "foreground":
            return True, b"%d" % os.tcgetpgrp(terminal.master)
        elif verb == "close":
            terminal.close()
        elif verb == "left":
            reap()
            return True, " ".join(map(str, descendants())).encode()
        else:
            return False, b"what?"
        return True, b""

    def see(self, pattern):
        end = time.monotonic() + PATIENCE
        while not (match := self.terminal.find(pattern)):
            if time.monotonic() > end:
                return False, repr(self.terminal.screen[self.terminal.seen :]).encode()
            self.pump(0.2)
        return True, repr(match.group()).encode()

    def end(self, *_):
        sys.stderr.write(repr(self.terminal.screen) + "\n")
        self.terminal.close()
        while left := descendants():
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            reap()
            time.sleep(0.01)
        os._exit(0)


driver = Driver(sys.argv[1], sys.argv[2], sys.argv[3:])
signal.signal(signal.SIGTERM, driver.end)
driver.listen()
