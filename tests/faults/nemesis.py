"""Draws faults, one after the other, from a seed: in storms, with calm between them."""
from fault import NotInjected
from machine_faults import LOCAL_FAULTS, MACHINE_FAULTS
from process_faults import PROCESS_FAULTS
from server_faults import GUARDED, LINK_FAULTS, SERVER_FAULTS

# Seconds: from one fault to the next, of a storm, of the calm behind it, and of each third calm,
# in which all that has a bound must happen.
PAUSE = (0.1, 0.7)
STORM = (4, 7)
CALM = (1, 2)
LONG_CALM = 12


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
            calm = LONG_CALM if self.storms % 3 == 0 else self.random.uniform(*CALM)
            self.arena.after(calm, self.start)

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
    "local": [LOCAL_FAULTS, PROCESS_FAULTS, MACHINE_FAULTS],
}
