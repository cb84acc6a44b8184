"""Breaks the promise on purpose: a holder, an event outside the promise, then a second holder."""
import contextlib
import os
import signal

from contenders import Contender

TTL = 1.5
WAIT_LIMIT = 20
# Seconds by which the server's clock jumps, which ends all leases.
JUMP = 10


class Breach:
    def __init__(self, arena, how):
        self.arena = arena
        self.how = getattr(self, how)
        self.holder = Contender(arena, "holder", "x", "exclusive", 0)
        self.other = Contender(arena, "other", "x", "exclusive", 1)
        arena.contenders += [self.holder, self.other]
        for contender in arena.contenders:
            contender.finished = lambda run: None
        self.number = 0
        self.injected = {}

    def once(self):
        """One breach, from the start of the holder to the end of both."""
        options = {"ttl": TTL, "nonblock": False, "wait": 20, "hold": 4 * TTL, "beside": "daemon"}
        # A breach needs a holder, however long a busy machine takes to make one.
        options["unavailable_wait"] = WAIT_LIMIT
        run = self.holder.start(dict(options))
        self.arena.run_until(lambda: run.entered or run.ended, WAIT_LIMIT)
        # Its witness has started once it has reported its counter.
        self.arena.run_until(lambda: self.has_entered(run) or run.ended, WAIT_LIMIT)
        self.number += 1
        kind, undo = self.how(run)
        self.injected[kind] = self.injected.get(kind, 0) + 1
        options["hold"] = 0.3
        other = self.other.start(dict(options))
        self.arena.run_until(lambda: other.ended, WAIT_LIMIT)
        undo()
        self.arena.history.note("healed", number=self.number, kind=kind)
        self.arena.run_until(lambda: not self.arena.runs(), WAIT_LIMIT)

    def has_entered(self, run):
        with open(self.arena.history.path, encoding="utf-8") as file:
            return any('"enter"' in line and f'"{run.id}"' in line for line in file)

    def note(self, kind, **fields):
        self.arena.history.note("fault", number=self.number, kind=kind, **fields)
        return kind

    def stop_guards(self, run):
        kind = self.note("both-guards-stopped", ids=[run.id])
        guards = [os.pidfd_open(pid) for pid in run.guards()]
        for guard in guards:
            signal.pidfd_send_signal(guard, signal.SIGSTOP)

        def undo():
            for guard in guards:
                # The front process, awake again, may have killed the other already.
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(guard, signal.SIGCONT)
                os.close(guard)

        return kind, undo

    def delete_keys(self, run):
        server = self.arena.deployment.servers[0]
        words = self.arena.random.choice((("FLUSHALL",), ("DEL", run.contender.key)))
        kind = self.note(words[0].lower(), servers=[0])
        server.ask(*words, timeout=WAIT_LIMIT)
        return kind, lambda: None

    def evict_keys(self, run):
        """The server runs out of memory, and may evict any key."""
        server = self.arena.deployment.servers[0]
        kind = self.note("eviction", servers=[0])

        def ask(*words):
            return server.ask(*words, timeout=WAIT_LIMIT)

        ask("CONFIG", "SET", "maxmemory-policy", "allkeys-random")
        ask("CONFIG", "SET", "maxmemory", 1)
        self.arena.run_until(lambda: ask("EXISTS", run.contender.key) == "0", WAIT_LIMIT)
        ask("CONFIG", "SET", "maxmemory", 0)
        return kind, lambda: None

    def jump_clock(self, _run):
        kind = self.note("server-clock-step", servers=[0])
        self.arena.deployment.step_clock(self.number * JUMP)
        return kind, lambda: None

    def lose_data(self, _run):
        """Two of three servers restart empty, without a restart guard."""
        lost = self.arena.random.sample(self.arena.deployment.servers, 2)
        kind = self.note("restart-empty", servers=[server.number for server in lost])
        for server in lost:
            server.kill()
            server.forget()
        for server in lost:
            server.start()
        return kind, lambda: None
