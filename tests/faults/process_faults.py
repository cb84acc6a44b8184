"""Faults of redlock-cli's own processes. Never of both guards of a command at once, since that is
outside the promise: a run is struck once."""
import os
import signal

from fault import Fault, NotInjected


class ProcessFault(Fault):
    """Sends `begins`, and in the end `ends`, to a process of a run each."""

    guard = 0  # which: 0 is the front process, 1 the holder process
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
        ]
        if self.several and runs:
            host = self.random.choice(runs).contender.host
            runs = [run for run in runs if run.contender.host == host]
        elif runs:
            runs = [self.random.choice(runs)]
        self.processes = []
        ids = []
        for run in runs:
            guards = run.guards()
            if len(guards) > self.guard:
                self.processes.append(os.pidfd_open(guards[self.guard]))
                run.hit = self.kind
                ids.append(run.id)
        if not ids:
            raise NotInjected("no such process")
        return {"ids": ids}

    def send(self, number):
        for process in self.processes:
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


class KillHolder(ProcessFault):
    kind = "kill-holder"
    guard = 1


class StopFront(ProcessFault):
    kind = "stop-front"
    begins, ends = signal.SIGSTOP, signal.SIGCONT
    shortest, longest = 0.1, 4


class StopHolder(StopFront):
    kind = "stop-holder"
    guard = 1


# Of waiters it is the process with the connection; the other would take it along in good order. A
# waiter may be let in at this moment: then its front process stops its command.


class KillWaiters(ProcessFault):
    kind = "kill-waiters"
    guard = 1
    waiting = several = True


class StopWaiters(StopHolder):
    kind = "stop-waiters"
    waiting = several = True


PROCESS_FAULTS = [KillFront, KillHolder, StopFront, StopHolder, KillWaiters, StopWaiters]
