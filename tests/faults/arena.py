"""The event loop of a fault run, for contenders, faults and timers."""
import heapq
import os
import random
import selectors
import time

from deployment import HOSTS, libc, write_step

PR_SET_CHILD_SUBREAPER = 36
# Seconds by which the loop may be late without a line in the history: a part of the smallest server
# timeout.
STALL = 0.05
BEAT = 0.05


class Arena:
    """`program`, `witness`, `clock`: paths of redlock-cli, of the witness and of shifted-clock,
    under which contenders run; `votes`: how many; `guard`: --restart-guard, seconds."""

    def __init__(self, directory, history, deployment, seed, votes, guard, paths):
        self.directory = directory
        self.history = history
        self.deployment = deployment
        self.random = random.Random(seed)
        self.votes = votes
        self.guard = guard
        self.program, self.witness, self.clock = paths
        self.is_closing = False
        self.contenders = []
        self.stops = []  # under way
        self.watched = {}
        self.timers = []
        self.timer_count = 0
        self.selector = selectors.DefaultSelector()
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
        for host in range(HOSTS):
            self.step_clock(host, 0)

    # For contenders.

    def urls(self, host):
        return self.deployment.urls(host)

    def environment(self, host):
        return {"PATH": os.environ["PATH"], "HOME": self.directory, "LC_ALL": "C"}

    def clock_file(self, host):
        return os.path.join(self.directory, f"clock{host}")

    def step_clock(self, host, seconds):
        """Shifts the wall clock of the host's contenders by `seconds` from now on."""
        write_step(self.clock_file(host), seconds)

    # The loop.

    def watch(self, fd, handler):
        self.watched[fd] = handler
        self.selector.register(fd, selectors.EVENT_READ, handler)

    def forget(self, fd):
        if self.watched.pop(fd, None):
            self.selector.unregister(fd)

    def after(self, seconds, action):
        self.timer_count += 1
        heapq.heappush(self.timers, (time.monotonic() + seconds, self.timer_count, action))

    def beat(self):
        """Records when this machine did not run this process for a while: others waited, too."""
        due = time.monotonic() + BEAT

        def look():
            late = time.monotonic() - due
            if late > STALL:
                self.history.note("stall", seconds=round(late, 3))
            self.beat()

        self.after(BEAT, look)

    def turn(self):
        """Waits for the next event, and handles all that are due."""
        pause = max(0, self.timers[0][0] - time.monotonic()) if self.timers else 1
        for key, _ in self.selector.select(min(pause, 1)):
            # An earlier event of this batch may have removed it.
            if self.watched.get(key.fd) is key.data:
                key.data()
        while self.timers and self.timers[0][0] <= time.monotonic():
            heapq.heappop(self.timers)[2]()

    def run_until(self, condition, limit):
        """-> whether the condition became true within `limit` seconds"""
        end = time.monotonic() + limit
        while not condition():
            if time.monotonic() > end:
                return False
            self.turn()
        return True

    def run_for(self, seconds):
        self.run_until(lambda: False, seconds)

    def runs(self):
        return [contender.run for contender in self.contenders if contender.run]

    def close(self):
        """Ends the remaining runs, so that none of our descriptors stays open."""
        self.is_closing = True
        for one in [*self.runs(), *self.stops]:
            one.abandon()
        self.selector.close()
