"""Faults of servers, and of the links to them."""
import os

from contenders import TTLS
from deployment import GUARDED, HOSTS, WAIT_LIMIT, Refused, Server
from fault import Fault, NotInjected


def has_guard(arena):
    """Whether --restart-guard has an effect; a cluster is one vote."""
    return arena.votes >= GUARDED


class ServerFault(Fault):
    """A fault of a server that has no other fault now."""

    kind = None
    loses_data = False
    restarts = False
    candidates = None  # servers; none: all

    def choose(self):
        struck = self.arena.struck_servers
        servers = self.candidates or self.arena.deployment.servers
        whole = [server for server in servers if server.number not in struck]
        if not whole:
            raise NotInjected("no server without a fault")
        self.server = self.random.choice(whole)
        struck.add(self.server.number)
        fields = {"servers": [self.server.number]}
        if self.restarts and has_guard(self.arena):
            # In whole seconds, and one more.
            fields["lasting"] = self.arena.guard + 2
        if self.loses_data:
            fields["healing"] = max(TTLS)
        return fields

    def ask(self, *words):
        try:
            return self.server.ask(*words)
        except Refused as problem:
            raise NotInjected(str(problem)) from None

    def end(self):
        self.heal()
        self.arena.struck_servers.discard(self.server.number)

    def heal(self):
        pass


class StopServer(ServerFault):
    kind = "stop-server"

    def begin(self):
        self.server.process.send_signal(19)

    def heal(self):
        self.server.process.send_signal(18)


class KillServer(ServerFault):
    """The server returns with its data."""

    kind = "kill-server"
    restarts = True
    shortest, longest = 0.01, 2

    def begin(self):
        self.server.kill()

    def heal(self):
        self.server.start()


class LosingServer(KillServer):
    """Within the promise a server that loses data stays away for a ttl, if it has no guard."""

    loses_data = True

    def choose(self):
        if any(run.contender.probes for run in self.arena.runs()):
            raise NotInjected("a run holds for longer than it would stay away")
        return super().choose()

    def __init__(self, arena):
        super().__init__(arena)
        if not has_guard(arena):
            self.must_last = True
            self.shortest, self.longest = max(TTLS) + 0.1, max(TTLS) + 0.5


class RestartEmpty(LosingServer):
    kind = "restart-empty"

    def begin(self):
        super().begin()
        self.server.forget()


class RestartAllEmpty(Fault):
    """A quorum of servers with a restart guard loses its data."""

    kind = "restart-all-empty"
    shortest, longest = 0.01, 0.5

    def choose(self):
        struck, servers = self.arena.struck_servers, self.arena.deployment.servers
        whole = [server for server in servers if server.number not in struck]
        quorum = len(servers) // 2 + 1
        if not has_guard(self.arena) or len(whole) < quorum:
            raise NotInjected("no quorum of servers without a fault and with a guard")
        self.servers = self.random.sample(whole, quorum)
        numbers = [server.number for server in self.servers]
        struck.update(numbers)
        return {"servers": numbers, "lasting": self.arena.guard + 2, "healing": max(TTLS)}

    def begin(self):
        for server in self.servers:
            server.kill()
            server.forget()

    def end(self):
        for server in self.servers:
            server.start()
            self.arena.struck_servers.discard(server.number)


class TruncateFile(LosingServer):
    kind = "truncate-aof"

    def begin(self):
        super().begin()
        if self.server.truncate(self.random.choice((1, 50, 1000, 20000))) == 0:
            raise NotInjected("the file is empty")


class FlushScripts(ServerFault):
    kind = "script-flush"
    shortest = longest = 0

    def begin(self):
        self.ask("SCRIPT", "FLUSH")


class PauseClients(ServerFault):
    """The server itself ends the pause; this fault lasts a little longer."""

    kind = "client-pause"
    shortest, longest = 2.2, 2.2

    def begin(self):
        pause = self.random.choice((100, 500, 2000))
        self.ask("CLIENT", "PAUSE", pause, self.random.choice(("ALL", "WRITE")))


class KillClients(ServerFault):
    kind = "client-kill"
    shortest = longest = 0

    def begin(self):
        sort = self.random.choice(("normal", "pubsub"))
        self.ask("CLIENT", "KILL", "TYPE", sort, "SKIPME", "yes")


class BusyServer(ServerFault):
    """A script that does not end."""

    kind = "busy"

    def begin(self):
        self.script = None
        try:
            self.script = self.server.ask("EVAL", "while true do end", 0, wait=False)
        except Refused as problem:
            raise NotInjected(str(problem)) from None

    def heal(self):
        if self.script is None:
            return
        self.script.close()
        try:
            self.server.ask("SCRIPT", "KILL", timeout=WAIT_LIMIT)
        except Refused as problem:
            if not str(problem).startswith("NOTBUSY"):
                raise NotInjected(str(problem)) from None


class Changed(ServerFault):
    """A change that one command makes and another undoes."""

    def begin(self):
        self.ask(*self.random.choice(self.changes))

    def heal(self):
        self.server.ask(*self.back, timeout=WAIT_LIMIT)


class OutOfMemory(Changed):
    kind = "oom"
    changes = [("CONFIG", "SET", "maxmemory", 1)]
    back = ("CONFIG", "SET", "maxmemory", 0)


class ReadOnly(Changed):
    """A replica of no master."""

    kind = "readonly"
    changes = [("REPLICAOF", "127.0.0.1", 1)]
    back = ("REPLICAOF", "NO", "ONE")


class ChangeRights(Changed):
    kind = "acl"
    changes = [
        ("ACL", "SETUSER", "default", "-eval", "-evalsha"),
        ("ACL", "SETUSER", "default", "-@pubsub"),
        ("ACL", "SETUSER", "default", "-@write"),
        ("ACL", "SETUSER", "default", "off"),
    ]
    back = ("ACL", "SETUSER", "default", "reset", "on", "nopass", "~*", "&*", "+@all")


class LinkFault(Fault):
    """A fault of one link, of all links of a host, or of all links to a server."""

    host = None  # all of that host's links
    longest = 4

    def choose(self):
        count = len(self.arena.deployment.servers)
        if self.host is None:
            hosts = self.random.choice((*[[host] for host in range(HOSTS)], list(range(HOSTS))))
            servers = self.random.choice((*[[s] for s in range(count)], list(range(count))))
        else:
            hosts, servers = [self.host], list(range(count))
        self.links = [f"{h}-{s}" for h in hosts for s in servers]
        if self.arena.struck_links & set(self.links):
            raise NotInjected("these links have a fault")
        self.arena.struck_links.update(self.links)
        return {"hosts": hosts, "servers": servers}

    def begin(self):
        for link in self.links:
            self.arena.deployment.proxy.tell("fault", link, self.kind[5:])

    def end(self):
        for link in self.links:
            self.arena.deployment.proxy.tell("heal", link)
        self.arena.struck_links.difference_update(self.links)


class FadingLink(LinkFault):
    """Replies are delayed, and then nothing passes."""

    kind = "link-late"
    shortest, longest = 5, 6
    late = 2.5

    def begin(self):
        super().begin()
        self.is_over = False
        self.arena.after(self.late, self.cut)

    def cut(self):
        if not self.is_over:
            for link in self.links:
                self.arena.deployment.proxy.tell("fault", link, "down")

    def end(self):
        self.is_over = True
        super().end()


class OldAddress(ServerFault):
    """After a fail-over, the old address of a server leads a host to a replica, which has the data
    of then, or none yet. The server itself works on, and other hosts find it."""

    kind = "old-address"
    shortest, longest = 1, 4

    def choose(self):
        fields = super().choose()
        self.host = self.random.randrange(HOSTS)
        self.link = f"{self.host}-{self.server.number}"
        if self.link in self.arena.struck_links:
            self.arena.struck_servers.discard(self.server.number)
            raise NotInjected("this link has a fault")
        self.arena.struck_links.add(self.link)
        return {**fields, "hosts": [self.host]}

    def begin(self):
        directory = os.path.join(self.arena.directory, f"replica{self.server.number}")
        os.makedirs(directory, exist_ok=True)
        if self.random.random() < 0.5:
            self.server.copy_to(directory)
        options = ("--replicaof", "127.0.0.1", "1", "--appendfsync", "no")
        self.replica = Server(self.server.number, directory, options)
        self.arena.deployment.proxy.tell("lead", self.link, self.replica.socket)

    def heal(self):
        self.arena.deployment.proxy.tell("lead", self.link, self.server.socket)
        self.replica.kill()
        self.replica.forget()
        self.arena.struck_links.discard(self.link)


SERVER_FAULTS = [
    *(
        StopServer,
        KillServer,
        RestartEmpty,
        RestartAllEmpty,
        TruncateFile,
        FlushScripts,
        PauseClients,
    ),
    *(KillClients, BusyServer, OutOfMemory, ReadOnly, ChangeRights),
]
LINK_FAULTS = [
    type("LinkFault", (LinkFault,), {"kind": f"link-{name}"})
    for name in "down refuse lose-requests lose-replies delay slow cut lag far".split()
] + [FadingLink, OldAddress]
