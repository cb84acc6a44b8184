"""`stop` in the middle of a run, and what may come between: its lock is broken or deleted. The lock
is that of one contender (Contender.asked), so that no other run can be in danger."""
import json
import os
import signal
import subprocess

from contenders import enter_host
from deployment import HOSTS, Refused
from fault import Fault, NotInjected

# Seconds: when the lock is broken after `stop` has begun, at most, and how long `stop` waits.
BROKEN_AFTER = 1
WAIT = 6


class Stop:
    """One `stop`, until it has ended and its report is in the history."""

    def __init__(self, arena, contender, host):
        self.arena, self.key = arena, contender.key
        words = [arena.program, "stop", self.key, "-S", arena.urls(host), "--json"]
        words += ["-w", f"{WAIT}s"]
        self.process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env=arena.environment(host),
            preexec_fn=lambda: enter_host(arena, host),
            text=True,
        )
        self.pidfd = os.pidfd_open(self.process.pid)
        arena.stops.append(self)
        arena.watch(self.pidfd, self.take_exit)

    def take_exit(self):
        # Of the processes that live now, none may be of a lease that it calls stopped.
        alive = []
        for run in self.arena.runs():
            run.tree.read()
            if not run.tree.at_end:
                alive.append(run.id)
        text = self.process.communicate()[0]
        said = json.loads(text) if text else {}
        self.arena.history.note(
            "stop",
            key=self.key,
            code=self.process.returncode,
            result=said.get("result"),
            fence=said.get("holder", {}).get("fence"),
            alive=alive,
        )
        self.close()

    def close(self):
        self.arena.forget(self.pidfd)
        os.close(self.pidfd)
        self.arena.stops.remove(self)

    def abandon(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()
        self.close()


class StopRun(Fault):
    """Stops the run of a contender that is there for it, from any host."""

    kind = "stop"
    shortest = longest = 0
    breaks = ()  # how its lock may be broken meanwhile

    def choose(self):
        runs = [run for run in self.arena.runs() if run.contender.asked and run.hit is None]
        runs = [run for run in runs if run.entered and not run.ended]
        if not runs:
            raise NotInjected("no such run")
        self.run = self.random.choice(runs)
        self.run.hit = self.kind
        return {"ids": [self.run.id]}

    def begin(self):
        Stop(self.arena, self.run.contender, self.random.randrange(HOSTS))
        if self.breaks:
            how = self.random.choice(self.breaks)
            self.arena.after(self.random.uniform(0, BROKEN_AFTER), lambda: self.break_by(how))

    def break_by(self, how):
        # The next run of the key has not been hit, and must not be.
        if not self.run.ended:
            getattr(self, how)()

    def force(self):
        """As a user breaks it."""
        host = self.random.randrange(HOSTS)
        key = self.run.contender.key
        words = [self.arena.program, "release", key, "--force", "-S", self.arena.urls(host)]
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=self.arena.environment(host),
            preexec_fn=lambda: enter_host(self.arena, host),
        )
        pidfd = os.pidfd_open(process.pid)

        def reap():
            self.arena.forget(pidfd)
            os.close(pidfd)
            process.wait()

        self.arena.watch(pidfd, reap)

    def delete(self):
        """As a program does that takes the key for its own."""
        self.tell_servers("DEL", self.run.contender.key)

    def wipe(self):
        """As FLUSHALL would. The fence counter and the last runs stay, because fences and periods
        are judged, too."""
        key = self.run.contender.key
        helpers = ("owner", "released", "readers", "shares", "slots", "queue", "waiters")
        self.tell_servers("DEL", key, *(f"redlock:{name}:{{{key}}}" for name in helpers))

    def tell_servers(self, *words):
        for server in self.arena.deployment.servers:
            try:
                server.ask(*words, timeout=0.1)
            except Refused:
                pass  # it has another fault


class StopBroken(StopRun):
    kind = "stop-broken"

    def __init__(self, arena):
        super().__init__(arena)
        self.breaks = ("force", "delete", "wipe") if arena.deployment.servers else ("force",)


STOP_FAULTS = [StopRun, StopBroken]
