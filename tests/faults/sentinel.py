"""A master, its replica and three sentinels, which promote the replica when the master fails. A
vote counts only when the replica has it (--replicas 1). Clients ask a fourth sentinel first, which
watches no master, or one that is dead."""
import os
import random
import subprocess

from cluster import TRIES, free_port, start_server
from deployment import (
    WAIT_LIMIT,
    Refused,
    die_with_parent,
    keys_left,
    wait_for,
)
from fault import Fault, NotInjected

SENTINELS = 3
# The number of the sentinel that knows none of the others.
STALE = SENTINELS
NAME = "main"
# Seconds: what a fail-over may take, and the old master to become a replica that has caught up:
# only then votes count again. The new master may not have got a release: the lock stays for its
# ttl there, at most 30 s.
FAILOVER = 30


class Sentinels:
    """A deployment (deployment.py) with one vote."""

    proxy = None
    options = ("--replicas", "1")

    def __init__(self, directory, seed):
        self.directory = directory
        draw = random.Random(seed)
        self.servers, self.ports = [], []
        self.sentinels, self.sentinel_ports = [], []
        try:
            for number in range(2):
                port, server = start_server(number, directory, draw, options_for)
                self.ports.append(port)
                self.servers.append(server)
            self.servers[1].ask("REPLICAOF", "127.0.0.1", self.ports[0], timeout=WAIT_LIMIT)
            wait_for("the replica", lambda: self.is_linked(1))
            for number in range(SENTINELS + 1):
                self.start_sentinel(number, draw)
            self.dead_port = free_port(draw)
            wait_for("the sentinels", self.know_each_other)
        except BaseException:
            self.close()
            raise

    def is_linked(self, number):
        return "master_link_status:up" in self.servers[number].ask("INFO", "replication")

    def start_sentinel(self, number, draw):
        for _ in range(TRIES):
            port = free_port(draw)
            process = self.launch_sentinel(number, port)
            self.sentinels.append(process)
            self.sentinel_ports.append(port)
            wait_for(f"sentinel {number}", lambda: self.is_up(number) or self.has_ended(number))
            if not self.has_ended(number):
                return
            # Another process took its port.
            self.sentinels.pop()
            self.sentinel_ports.pop()
        raise RuntimeError(f"sentinel {number} ends on every port")

    def is_up(self, number):
        return self.ask_sentinel(number, "PING").strip() == "PONG"

    def has_ended(self, number):
        return self.sentinels[number].poll() is not None

    def sentinel_socket(self, number):
        return os.path.join(self.directory, f"sentinel{number}.sock")

    def launch_sentinel(self, number, port):
        path = os.path.join(self.directory, f"sentinel{number}.conf")
        with open(path, "w", encoding="ascii") as file:
            file.write(
                f"port {port}\nbind 127.0.0.1\ndir {self.directory}\n"
                f"unixsocket {self.sentinel_socket(number)}\n"
            )
            if number < SENTINELS:
                file.write(
                    f"sentinel monitor {NAME} 127.0.0.1 {self.ports[0]} 2\n"
                    f"sentinel down-after-milliseconds {NAME} 800\n"
                    f"sentinel failover-timeout {NAME} 4000\n"
                )
        return subprocess.Popen(
            ["redis-server", path, "--sentinel"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            preexec_fn=die_with_parent,
        )

    def ask_sentinel(self, number, *words):
        """The output of redis-cli; empty before the sentinel listens. Over a socket, because
        another process may have its port."""
        words = ["redis-cli", "-s", self.sentinel_socket(number), *words]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        return subprocess.run(words, **pipes, text=True).stdout

    def know_each_other(self):
        return all(
            self.ask_sentinel(number, "SENTINEL", "CKQUORUM", NAME).startswith(f"OK {SENTINELS} ")
            and "slaves=1" in self.ask_sentinel(number, "INFO", "sentinel")
            for number in range(SENTINELS)
        )

    def master(self):
        """The number of the master if everything is in order: it has its replica."""
        for number, server in enumerate(self.servers):
            told = server.ask("INFO", "replication")
            if "role:master" in told and "connected_slaves:1" in told and "state=online" in told:
                return number
        return None

    def urls(self, _host):
        ports = self.sentinel_ports[STALE:] + self.sentinel_ports[:STALE]
        hosts = ",".join(f"127.0.0.1:{port}" for port in ports)
        return f"sentinel://{hosts}/{NAME}"

    def enter_host(self, host):
        pass

    def processes(self):
        return [*(server.process for server in self.servers), *self.sentinels]

    def leftovers(self):
        return keys_left(self.servers)

    def close(self):
        for sentinel in self.sentinels:
            sentinel.kill()
            sentinel.wait()
        for server in self.servers:
            server.kill()


def options_for(port):
    return ["--port", str(port), "--bind", "127.0.0.1", "--repl-diskless-sync-delay", "0"]


class MasterFault(Fault):
    """The replica becomes the master; one such fault at a time."""

    shortest, longest = 2, 4

    def choose(self):
        if self.arena.struck_servers:
            raise NotInjected("a fail-over is under way")
        try:
            number = self.arena.deployment.master()
        except Refused as problem:
            raise NotInjected(str(problem)) from None
        if number is None:
            raise NotInjected("the last fail-over is not over yet")
        self.server = self.arena.deployment.servers[number]
        self.arena.struck_servers.add(0)
        return {"servers": [0], "lasting": FAILOVER}

    def end(self):
        self.heal()
        self.arena.struck_servers.discard(0)

    def heal(self):
        pass


class KillMaster(MasterFault):
    """The old master returns with its data."""

    kind = "kill-master"

    def begin(self):
        self.server.kill()

    def heal(self):
        self.server.start()


class StopMaster(MasterFault):
    """The old master returns and still considers itself the master."""

    kind = "stop-master"

    def begin(self):
        self.server.process.send_signal(19)

    def heal(self):
        self.server.process.send_signal(18)


class OrderFailover(MasterFault):
    kind = "failover"
    shortest = longest = 0

    def begin(self):
        told = self.arena.deployment.ask_sentinel(0, "SENTINEL", "FAILOVER", NAME)
        if not told.startswith("OK"):
            raise NotInjected(told.strip())


class StaleSentinel(Fault):
    """The sentinel that knows no other names a dead master."""

    kind = "stale-sentinel"
    shortest, longest = 2, 8

    def choose(self):
        if "sentinel" in self.arena.struck_links:
            raise NotInjected("it is stale already")
        self.arena.struck_links.add("sentinel")
        return {"servers": [0]}

    def ask(self, *words):
        return self.arena.deployment.ask_sentinel(STALE, "SENTINEL", *words)

    def begin(self):
        port = str(self.arena.deployment.dead_port)
        told = self.ask("MONITOR", NAME, "127.0.0.1", port, "9")
        if not told.startswith("OK"):
            raise NotInjected(told.strip())

    def end(self):
        self.ask("REMOVE", NAME)
        self.arena.struck_links.discard("sentinel")


STALE_FAULTS = [StaleSentinel]
MASTER_FAULTS = [KillMaster, StopMaster, OrderFailover]
