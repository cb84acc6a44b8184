"""Faults of redlock-cli's own processes. A run is struck only once, because the loss of both guards
of a command is outside the promise."""
import os
import signal
import time

from contenders import COOKIE, cookie_of
from fault import Fault, NotInjected


class ProcessFault(Fault):
    """Sends `begins`, and finally `ends`, to each of the struck processes of a run."""

    struck = ("front",)  # which, in this order; see Run.processes()
    waiting = False
    several = False
    begins, ends = signal.SIGKILL, None
    candidates = None  # runs; none: all
    shortest = longest = 0

    def choose(self):
        runs = [
            run
            for run in (self.candidates or self.arena.runs())
            if run.hit is None and not run.ended and run.entered != self.waiting
            if run.processes().keys() >= set(self.struck)
        ]
        if self.several and runs:
            host = self.random.choice(runs).contender.host
            runs = [run for run in runs if run.contender.host == host]
        elif runs:
            runs = [self.random.choice(runs)]
        self.processes = []
        ids = []
        for run in runs:
            if not self.open_processes(run):
                continue
            run.hit = self.kind
            ids.append(run.id)
        if not ids:
            raise NotInjected("no such process")
        return {"ids": ids}

    def open_processes(self, run):
        """Whether all of them still exist."""
        found = run.processes()
        opened = []
        try:
            for name in self.struck:
                opened.append(os.pidfd_open(found[name]))
        except (KeyError, ProcessLookupError):
            for process in opened:
                os.close(process)
            return False
        self.processes += opened
        return True

    def send(self, number, processes=None):
        for process in processes or self.processes:
            try:
                signal.pidfd_send_signal(process, number)
            except ProcessLookupError:
                pass

    def begin(self):
        self.send(self.begins)

    def end(self):
        if self.ends:
            self.send(self.ends)
        for process in self.processes:
            os.close(process)


class KillFront(ProcessFault):
    kind = "kill-front"


class KillFrontThenCommand(ProcessFault):
    """The command has not ended by itself, although its guard is still exiting."""

    kind = "kill-front-then-command"
    struck = ("front", "command")

    def begin(self):
        gap = self.random.choice((0, 0, 0.0001, 0.0003, 0.001))
        front, command = self.processes
        self.send(signal.SIGKILL, [front])
        end = time.perf_counter() + gap
        while time.perf_counter() < end:  # shorter than the kernel would let us sleep
            pass
        self.send(signal.SIGKILL, [command])


class KillHolder(ProcessFault):
    kind = "kill-holder"
    struck = ("holder",)


class KillByCookie(ProcessFault):
    """A CI agent at the end of a job: one pass over all processes, with KILL for each that has the
    job's variable. The guards hide the variable in order to survive that, and the command's
    descendants do not have it here."""

    kind = "cookie-killer"

    def choose(self):
        struck = super().choose()
        self.cookies = [f"{COOKIE}={cookie_of(name)}".encode() for name in struck["ids"]]
        return struck

    def begin(self):
        for pid in sorted(int(name) for name in os.listdir("/proc") if name.isdigit()):
            try:
                with open(f"/proc/{pid}/environ", "rb") as file:
                    if not set(self.cookies).isdisjoint(file.read().split(b"\0")):
                        os.kill(pid, signal.SIGKILL)
            except OSError:
                pass  # it has ended, or it is not ours


class UnreadStderr(Fault):
    """A run's stderr is no longer read, and its pipe is full. That must not affect any run, so it
    explains no failure."""

    kind = "unread-stderr"
    shortest, longest = 0.5, 5

    def choose(self):
        runs = [run for run in self.arena.runs() if not run.ended and not run.is_unread]
        if not runs:
            raise NotInjected("no such process")
        self.run = self.random.choice(runs)
        return {"ids": [self.run.id]}

    def begin(self):
        self.run.stop_reading_errors()

    def end(self):
        self.run.go_on_reading_errors()


class StopFront(ProcessFault):
    kind = "stop-front"
    begins, ends = signal.SIGSTOP, signal.SIGCONT
    shortest, longest = 0.1, 4


class StopHolder(StopFront):
    kind = "stop-holder"
    struck = ("holder",)


class KillShield(ProcessFault):
    kind = "kill-shield"
    struck = ("shield",)


class StopShield(StopFront):
    kind = "stop-shield"
    struck = ("shield",)


# Of waiters it is the process with the connection; the other would take it along in good order. A
# waiter may be let in at this moment: then its front process stops its command.


class KillWaiters(ProcessFault):
    kind = "kill-waiters"
    struck = ("holder",)
    waiting = several = True


class StopWaiters(StopHolder):
    kind = "stop-waiters"
    waiting = several = True


PROCESS_FAULTS = [
    KillFront,
    KillFrontThenCommand,
    KillHolder,
    StopFront,
    StopHolder,
    KillShield,
    StopShield,
    KillWaiters,
    StopWaiters,
    KillByCookie,
    UnreadStderr,
]
