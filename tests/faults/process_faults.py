"""Faults of redlock-cli's own processes. Never of both guards of a command at once, since that is
outside the promise: a run is struck once."""
import os
import signal
import time

from fault import Fault, NotInjected


class ProcessFault(Fault):
    """Sends `begins`, and in the end `ends`, to a process of a run each."""

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
        """Whether they are still there, all of them."""
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
    """The command has not ended by itself, though its guard is still on its way out."""

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
]
