"""Draws faults, one after the other, from a seed: in storms, with calm between them. In the calm
there is a scene: nothing at all, servers that lose their data one after the other, or a queue of
which one host's waiters stand still."""
from contenders import Single
from fault import NotInjected
from machine_faults import LOCAL_FAULTS, MACHINE_FAULTS
from namespaces import CABLE_FAULTS
from process_faults import PROCESS_FAULTS, StopWaiters
from deployment import GUARDED
from server_faults import LINK_FAULTS, SERVER_FAULTS, RestartEmpty

# Seconds: from one fault to the next, of a storm, and of the calm behind it if that has no scene.
PAUSE = (0.1, 0.7)
STORM = (4, 7)
CALM = (1, 2)
# All that has a bound must happen in it.
LONG_CALM = 12
# From one server that loses its data to the next: what was lost has been given back.
ROLLING_PAUSE = 5
# How long waiters stand still, and how long their scene lasts.
FROZEN = 14
FROZEN_SCENE = 17


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
        self.scenes = [self.breathe, self.freeze, self.roll, self.rest]
        arena.struck_servers = set()
        arena.struck_links = set()

    def note_start(self):
        """Servers with a guard have just started: their votes do not count yet."""
        servers = [server.number for server in self.arena.deployment.servers]
        if len(servers) >= GUARDED:
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
        if not self.arena.is_closing:
            self.arena.after(self.play_scene(), self.start)

    def play_scene(self):
        """-> how long it takes"""
        scene = self.scenes[self.storms % len(self.scenes)]
        return scene()

    def breathe(self):
        return self.random.uniform(*CALM)

    def rest(self):
        return LONG_CALM

    def roll(self):
        """A quorum of servers, one after the other."""
        servers = self.arena.deployment.servers
        if len(servers) < GUARDED:
            return self.breathe()
        times = len(servers) // 2 + 1
        for turn, server in enumerate(self.random.sample(servers, times), 1):
            self.arena.after(turn * ROLLING_PAUSE, lambda s=server: self.restart(s))
        return (times + 1) * ROLLING_PAUSE

    def restart(self, server):
        if not self.arena.is_closing:
            fault = RestartEmpty(self.arena)
            fault.candidates = [server]
            fault.shortest = fault.longest = 0.05
            self.inject(fault)

    def freeze(self):
        """One holds a key of its own; behind it there are waiters of one host, who then stand
        still, and two of another. Nobody comes later."""
        crowd = [
            Single(self.arena, f"q{self.storms}{name}", "q", "exclusive", host)
            for name, host in zip("abcdef", (1, 0, 0, 0, 1, 1))
        ]
        options = {"ttl": 2, "nonblock": False, "wait": 40, "hold": 0.3, "beside": "plain"}
        for place, contender in enumerate(crowd):
            self.arena.contenders.append(contender)
            hold = 3 if place == 0 else 0.3
            self.arena.after(
                0.2 * place,
                lambda contender=contender, hold=hold: contender.start({**options, "hold": hold}),
            )
        self.arena.after(0.2 * len(crowd) + 0.5, lambda: self.freeze_waiters(crowd[1:4]))
        return FROZEN_SCENE

    def freeze_waiters(self, contenders):
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
            # A family first: the many kinds of one are not to crowd out the others.
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


FAMILIES = {
    "servers": [SERVER_FAULTS, LINK_FAULTS, PROCESS_FAULTS, MACHINE_FAULTS],
    "namespaces": [SERVER_FAULTS, CABLE_FAULTS, PROCESS_FAULTS, MACHINE_FAULTS],
    "local": [LOCAL_FAULTS, PROCESS_FAULTS, MACHINE_FAULTS],
}
