"""Draws faults from a seed, one after the other: in storms, with calm between them. In the calm
there is a scene: a holder that is struck while others wait for it, servers that lose their data one
after the other, a queue in which one host's waiters are paused, or none."""
import json
import subprocess

from cluster import CLUSTER_FAULTS
from contenders import TTLS, Single, enter_host
from fault import NotInjected
from machine_faults import LOCAL_FAULTS, MACHINE_FAULTS
from namespaces import CABLE_FAULTS
from process_faults import (
    PROCESS_FAULTS,
    KillFront,
    KillFrontThenCommand,
    KillHolder,
    KillShield,
    StopHolder,
    StopWaiters,
)
from sentinel import MASTER_FAULTS, STALE_FAULTS
from server_faults import LINK_FAULTS, SERVER_FAULTS, FadingLink, RestartEmpty, has_guard
from stop_faults import STOP_FAULTS

# Seconds: between two faults, and of a storm.
PAUSE = (0.1, 0.7)
STORM = (3, 6)
# How long the struck holder would hold, when and for how long it is struck, and the length of that
# scene.
STRUCK_HOLD = 12
STRUCK_AFTER = 1
STRUCK_FOR = 7
STRUCK_SCENE = 10
# Everything that has a time limit must happen within it.
LONG_CALM = 12
# Between two servers that lose their data: the lease has been restored meanwhile.
ROLLING_PAUSE = 5
# How long waiters are paused, and how long their scene lasts: without a notification a waiter that
# far back polls once in 15 s.
FROZEN = 17
FROZEN_SCENE = 20


class Nemesis:
    def __init__(self, arena, families):
        self.arena = arena
        self.random = arena.random
        self.families = families
        self.number = 0
        self.under_way = {}
        self.injected = {}  # kind: how often
        self.missed = {}  # kind: how often, and why last
        self.storms = 0
        # One after each storm, starting with the second of these.
        self.scenes = [self.rest, self.strike_holder, self.freeze, self.strike_holder]
        if has_guard(arena):
            self.scenes.insert(1, self.roll)
        arena.struck_servers = set()
        arena.struck_links = set()

    def note_start(self):
        """Records that servers with a guard have just started: their votes do not count yet."""
        servers = [server.number for server in self.arena.deployment.servers]
        if has_guard(self.arena):
            lasting = self.arena.guard + 2
            self.arena.history.note(
                "fault", number=0, kind="first-start", servers=servers, lasting=lasting
            )
            self.arena.history.note("healed", number=0, kind="first-start")

    def start(self):
        self.storms += 1
        self.is_raging = True
        self.strike()
        self.arena.after(self.random.uniform(*STORM), self.calm_down)

    def calm_down(self):
        self.end_all()
        note_successes(self.arena)
        if not self.arena.is_closing:
            self.arena.after(self.play_scene(), self.start)

    def play_scene(self):
        """-> how long it takes"""
        scene = self.scenes[self.storms % len(self.scenes)]
        return scene()

    def rest(self):
        return LONG_CALM

    def roll(self):
        """A quorum of servers loses its data, one after the other, during one lease."""
        servers = self.arena.deployment.servers
        times = len(servers) // 2 + 1
        hold = (times + 1) * ROLLING_PAUSE - 1
        options = {"ttl": max(TTLS), "nonblock": False, "wait": 40, "hold": hold, "beside": "plain"}
        self.enter_scene("a", 0, options, 0)
        for turn, server in enumerate(self.random.sample(servers, times), 1):
            self.arena.after(turn * ROLLING_PAUSE, lambda s=server: self.restart(s))
        return (times + 1) * ROLLING_PAUSE

    def restart(self, server):
        if not self.arena.is_closing:
            fault = RestartEmpty(self.arena)
            fault.candidates = [server]
            fault.shortest = fault.longest = 0.05
            self.inject(fault)

    def strike_holder(self):
        """A long holder whose command has left daemons is struck; others wait on another host."""
        options = {
            "nonblock": False,
            "wait": 40,
            "beside": self.random.choice(("daemon", "stubborn")),
            "shielded": True,
        }
        strikes = [StopHolder, KillFront, KillFrontThenCommand, KillHolder, KillShield]
        if self.arena.deployment.proxy:
            strikes += [FadingLink] * 2
        fault = self.random.choice(strikes)(self.arena)
        holder = self.enter_scene("a", 0, {**options, "ttl": max(TTLS), "hold": STRUCK_HOLD}, 0)
        for place, name in enumerate("bc", 1):
            self.enter_scene(name, 1, {**options, "ttl": max(TTLS), "hold": 0.3}, 0.2 * place)

        def strike():
            if self.arena.is_closing or not holder.run:
                return
            fault.shortest = fault.longest = STRUCK_FOR if fault.longest else 0
            fault.host, fault.candidates = 0, [holder.run]
            self.inject(fault)

        self.arena.after(STRUCK_AFTER, strike)
        return STRUCK_SCENE

    def enter_scene(self, name, host, options, after):
        """A contender that runs once, for the scenes' own key."""
        contender = Single(self.arena, f"q{self.storms}{name}", "q", "exclusive", host)
        self.arena.contenders.append(contender)
        self.arena.after(after, lambda: self.arena.is_closing or contender.start(options))
        return contender

    def freeze(self):
        """A holder of the scenes' own key, then waiters of one host, which are paused, and two of
        another. No others follow."""
        options = {"ttl": 2, "nonblock": False, "wait": 40, "beside": "plain"}
        crowd = [
            self.enter_scene(name, host, {**options, "hold": 0.3 if place else 3}, 0.2 * place)
            for place, (name, host) in enumerate(zip("abcdefgh", (1, 0, 0, 0, 0, 0, 1, 1)))
        ]
        self.arena.after(0.2 * len(crowd) + 0.5, lambda: self.freeze_waiters(crowd[1:6]))
        return FROZEN_SCENE

    def freeze_waiters(self, contenders):
        if self.arena.is_closing:
            return
        fault = StopWaiters(self.arena)
        fault.shortest = fault.longest = FROZEN
        fault.candidates = [contender.run for contender in contenders if contender.run]
        self.inject(fault)

    def end_all(self):
        self.is_raging = False
        for number, fault in list(self.under_way.items()):
            if not fault.must_last:
                self.end(number)

    def strike(self):
        if self.is_raging and not self.arena.is_closing:
            # Draw a family first, so that one with many kinds does not crowd out the others.
            self.inject(self.random.choice(self.random.choice(self.families))(self.arena))
            self.arena.after(self.random.uniform(*PAUSE), self.strike)

    def inject(self, fault):
        try:
            struck = fault.choose()
        except NotInjected as why:
            self.miss(fault, why)
            return None
        self.number += 1
        number = self.number
        self.arena.history.note("fault", number=number, kind=fault.kind, **struck)
        self.under_way[number] = fault
        try:
            fault.begin()
        except NotInjected as why:
            self.miss(fault, why)
            self.end(number)
            return None
        self.injected[fault.kind] = self.injected.get(fault.kind, 0) + 1
        if fault.longest == 0:
            self.end(number)
        else:
            seconds = self.random.uniform(fault.shortest, fault.longest)
            self.arena.after(seconds, lambda: self.end(number))
        return number

    def miss(self, fault, why):
        count, _ = self.missed.get(fault.kind, (0, ""))
        self.missed[fault.kind] = (count + 1, str(why))
        self.arena.history.note("not-injected", kind=fault.kind, why=str(why))

    def end(self, number):
        fault = self.under_way.pop(number, None)
        if not fault:
            return
        try:
            fault.end()
        except NotInjected as why:
            self.miss(fault, why)
        self.arena.history.note("healed", number=number, kind=fault.kind)


def note_successes(arena):
    """Records which run closed the period of each key with --once-per, if a quorum answers."""
    keys = {contender.key for contender in arena.contenders if contender.has_period}
    for key in sorted(keys):
        words = [arena.program, "status", key, "--json", "-S", arena.urls(0)]
        words += ["--server-timeout", "300ms"]
        ran = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=arena.environment(0),
            preexec_fn=lambda: enter_host(arena, 0),
        )
        for lock in json.loads(ran.stdout or "{}").get("locks", ()):
            if "last_success" in lock:
                arena.history.note("success", key=key, fence=lock["last_success"]["fence"])


FAMILIES = {
    "servers": [SERVER_FAULTS, LINK_FAULTS, PROCESS_FAULTS, STOP_FAULTS, MACHINE_FAULTS],
    "namespaces": [SERVER_FAULTS, CABLE_FAULTS, PROCESS_FAULTS, STOP_FAULTS, MACHINE_FAULTS],
    "cluster": [CLUSTER_FAULTS, PROCESS_FAULTS, STOP_FAULTS, MACHINE_FAULTS],
    "sentinel": [MASTER_FAULTS, STALE_FAULTS, PROCESS_FAULTS, STOP_FAULTS, MACHINE_FAULTS],
    "local": [LOCAL_FAULTS, PROCESS_FAULTS, STOP_FAULTS, MACHINE_FAULTS],
}
