"""A Redis Cluster of three masters that share the slots, which move from one to another."""
import random
import socket

from deployment import WAIT_LIMIT, Ended, Refused, Server, keys_left, wait_for
from fault import Fault, NotInjected

MASTERS = 3
SLOTS = 16384
KEYS = ("x", "rw", "slots", "long", "q", "probe")
TRIES = 50


class Cluster:
    """A deployment (deployment.py) with one vote. Besides the masters there is a node without
    slots, which may leave the cluster, and which clients query first."""

    proxy = None
    options = ()

    def __init__(self, directory, seed):
        draw = random.Random(seed)
        self.servers, self.ports = [], []
        try:
            self.spare = None
            for number in range(MASTERS):
                port, server = start_server(number, directory, draw, options)
                self.ports.append(port)
                self.servers.append(server)
            self.spare_port, self.spare = start_server(MASTERS, directory, draw, options)
            self.names = [
                server.ask("CLUSTER", "MYID", timeout=WAIT_LIMIT) for server in self.servers
            ]
            for number, server in enumerate(self.servers):
                first, last = (SLOTS * n // MASTERS for n in (number, number + 1))
                server.ask("CLUSTER", "ADDSLOTSRANGE", first, last - 1, timeout=WAIT_LIMIT)
                server.ask("CLUSTER", "SET-CONFIG-EPOCH", number + 1, timeout=WAIT_LIMIT)
            for port in (*self.ports[1:], self.spare_port):
                self.servers[0].ask("CLUSTER", "MEET", "127.0.0.1", port, timeout=WAIT_LIMIT)
            wait_for("the cluster", self.is_whole)
        except BaseException:
            self.close()
            raise

    def is_whole(self):
        told = [server.ask("CLUSTER", "INFO") for server in (*self.servers, self.spare)]
        return all("cluster_state:ok" in t and f"known_nodes:{MASTERS + 1}" in t for t in told)

    def owner(self, slot):
        """The number of the master that claims the slot."""
        for number, server in enumerate(self.servers):
            ranges = server.ask("CLUSTER", "SLOTS")
            for first, last, node, *_ in ranges:
                if int(first) <= slot <= int(last) and node[2] == self.names[number]:
                    return number
        raise Refused("no master has the slot")

    def urls(self, _host):
        ports = (self.spare_port, *self.ports)
        return "cluster://" + ",".join(f"127.0.0.1:{port}" for port in ports)

    def enter_host(self, host):
        pass

    def processes(self):
        return [server.process for server in (*self.servers, self.spare)]

    def leftovers(self):
        return keys_left(self.servers)

    def close(self):
        for server in self.servers:
            server.kill()
        if self.spare:
            self.spare.kill()


def free_port(draw):
    """A free port, whose port for the cluster bus is also free, below the kernel's range for
    outgoing connections and below the ports of tests/bats."""
    for _ in range(TRIES):
        port = draw.randrange(12000, 20000)
        try:
            for number in (port, port + 10000):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", number))
            return port
        except OSError:
            continue
    raise RuntimeError("no free port")


def start_server(number, directory, draw, options_for):
    """Starts a server on a free port, and retries if another process takes it. -> port, server"""
    for _ in range(TRIES):
        port = free_port(draw)
        try:
            return port, Server(number, directory, options_for(port))
        except Ended:
            continue
    raise RuntimeError(f"server {number} ends on every port")


def options(port):
    cluster = ["--cluster-enabled", "yes", "--cluster-node-timeout", "1000"]
    return ["--port", str(port), "--bind", "127.0.0.1", *cluster]


class MoveSlot(Fault):
    """The slot of a key that contenders lock moves, which takes a while."""

    kind = "slot-move"
    shortest, longest = 0.05, 1.5

    def choose(self):
        cluster = self.arena.deployment
        try:
            self.slot = int(cluster.servers[0].ask("CLUSTER", "KEYSLOT", self.random.choice(KEYS)))
            if self.slot in self.arena.struck_links:
                raise NotInjected("it is on its way already")
            self.source = cluster.owner(self.slot)
        except Refused as problem:
            raise NotInjected(str(problem)) from None
        others = [number for number in range(MASTERS) if number != self.source]
        self.target = self.random.choice(others)
        self.arena.struck_links.add(self.slot)
        return {"servers": [0]}

    def ask(self, number, *words):
        return self.arena.deployment.servers[number].ask(*words, timeout=WAIT_LIMIT)

    def begin(self):
        names = self.arena.deployment.names
        try:
            self.ask(self.target, "CLUSTER", "SETSLOT", self.slot, "IMPORTING", names[self.source])
            self.ask(self.source, "CLUSTER", "SETSLOT", self.slot, "MIGRATING", names[self.target])
        except Refused as problem:
            raise NotInjected(str(problem)) from None

    def end(self):
        cluster = self.arena.deployment
        port = cluster.ports[self.target]
        while keys := self.ask(self.source, "CLUSTER", "GETKEYSINSLOT", self.slot, 100):
            where = ("MIGRATE", "127.0.0.1", port, "", 0, 5000, "AUTH2", "admin", "any", "KEYS")
            self.ask(self.source, *where, *keys)
        name = cluster.names[self.target]
        for number in (self.target, self.source, 3 - self.target - self.source):
            self.ask(number, "CLUSTER", "SETSLOT", self.slot, "NODE", name)
        self.arena.struck_links.discard(self.slot)


class HaltSlot(MoveSlot):
    """An interrupted rebalance: the slot is migrating for longer than any lease, but no key moves.
    Then the migration is cancelled."""

    kind = "slot-halt"
    shortest, longest = 4, 8

    def end(self):
        for number in (self.target, self.source):
            self.ask(number, "CLUSTER", "SETSLOT", self.slot, "STABLE")
        self.arena.struck_links.discard(self.slot)


class RemoveNode(Fault):
    """The node without slots leaves the cluster as with `redis-cli --cluster del-node`, while
    clients still query it first. Later it joins again."""

    kind = "remove-node"
    shortest, longest = 2, 6

    def choose(self):
        cluster = self.arena.deployment
        if "spare" in self.arena.struck_links:
            raise NotInjected("it has left already")
        try:
            if not cluster.is_whole():
                raise NotInjected("it is not back yet")
            self.name = cluster.spare.ask("CLUSTER", "MYID")
        except Refused as problem:
            raise NotInjected(str(problem)) from None
        self.arena.struck_links.add("spare")
        return {"servers": [0]}

    def begin(self):
        cluster = self.arena.deployment
        try:
            for server in cluster.servers:
                server.ask("CLUSTER", "FORGET", self.name, timeout=WAIT_LIMIT)
            # With a new name, because the others ban the old one for a while.
            cluster.spare.ask("CLUSTER", "RESET", "HARD", timeout=WAIT_LIMIT)
        except Refused as problem:
            raise NotInjected(str(problem)) from None

    def end(self):
        cluster = self.arena.deployment
        for server in cluster.servers:
            server.ask("CLUSTER", "MEET", "127.0.0.1", cluster.spare_port, timeout=WAIT_LIMIT)
        self.arena.struck_links.discard("spare")


CLUSTER_FAULTS = [MoveSlot, HaltSlot, RemoveNode]
