"""Servers and hosts in network namespaces of their own, with a cable between each pair: real TCP,
real interfaces. Needs root."""
import os
import subprocess

from deployment import HOSTS, Server, die_with_parent, keys_left, libc, wait_for
from fault import Fault, NotInjected

CLONE_NEWNET = 0x40000000
PORT = 6379


class Namespace:
    """A network namespace, which lives as long as one of our processes in it."""

    def __init__(self):
        self.process = subprocess.Popen(
            ["unshare", "--net", "sleep", "infinity"], preexec_fn=die_with_parent
        )
        self.path = f"/proc/{self.process.pid}/ns/net"
        wait_for("a network namespace", self.is_there)
        self.fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        self.run("ip link set lo up")

    def is_there(self):
        if self.process.poll() is not None:
            raise RuntimeError("no network namespace can be made: it takes root")
        return os.readlink(self.path) != os.readlink("/proc/self/ns/net")

    def enter(self):
        if libc.setns(self.fd, CLONE_NEWNET) != 0:
            raise OSError("setns")

    def run(self, command):
        """-> its stderr if it failed, or nothing"""
        ran = subprocess.run(
            ["nsenter", f"--net={self.path}", *command.split()], stderr=subprocess.PIPE, text=True
        )
        return ran.returncode and (ran.stderr.strip() or f"exit status {ran.returncode}")

    def must(self, command):
        problem = self.run(command)
        if problem:
            raise RuntimeError(f"{command}: {problem}")

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.fd)


class NamespaceServers:
    """A deployment (deployment.py) in network namespaces."""

    proxy = None
    options = ()

    def __init__(self, directory, count):
        self.directory = directory
        self.namespaces, self.servers = [], []
        try:
            self.hosts = [self.add() for _ in range(HOSTS)]
            self.networks = [self.add() for _ in range(count)]
            for host, ours in enumerate(self.hosts):
                for server, theirs in enumerate(self.networks):
                    ours.must(
                        f"ip link add name s{server} type veth"
                        f" peer name h{host} netns {theirs.process.pid}"
                    )
                    for end, name, last in ((ours, f"s{server}", 1), (theirs, f"h{host}", 2)):
                        end.must(f"ip address add 10.{host}.{server}.{last}/24 dev {name}")
                        end.must(f"ip link set {name} up")
            for number, network in enumerate(self.networks):
                options = ["--port", str(PORT), "--bind", "0.0.0.0", "--protected-mode", "no"]
                self.servers.append(Server(number, directory, options, enter=network.enter))
        except BaseException:
            self.close()
            raise

    def add(self):
        self.namespaces.append(Namespace())
        return self.namespaces[-1]

    def enter_host(self, host):
        self.hosts[host].enter()

    def urls(self, host):
        return ",".join(f"redis://10.{host}.{s.number}.2:{PORT}" for s in self.servers)

    def processes(self):
        return [*(s.process for s in self.servers), *(n.process for n in self.namespaces)]

    def leftovers(self):
        return keys_left(self.servers)

    def close(self):
        for server in self.servers:
            server.kill()
        for namespace in self.namespaces:
            namespace.close()


class CableFault(Fault):
    """A fault of the cables between some hosts and some servers. `at_host`, `at_server`: the
    command for each end, with the interface for {}, and the one that undoes it."""

    longest = 4
    at_host = at_server = ()

    def choose(self):
        deployment = self.arena.deployment
        count = len(deployment.servers)
        hosts = self.random.choice((*[[host] for host in range(HOSTS)], list(range(HOSTS))))
        servers = self.random.choice((*[[s] for s in range(count)], list(range(count))))
        self.cables = [(host, server) for host in hosts for server in servers]
        if self.arena.struck_links & set(self.cables):
            raise NotInjected("these cables have a fault")
        self.arena.struck_links.update(self.cables)
        return {"hosts": hosts, "servers": servers}

    def each(self, which):
        deployment = self.arena.deployment
        for host, server in self.cables:
            ends = (
                (self.at_host, deployment.hosts[host], f"s{server}"),
                (self.at_server, deployment.networks[server], f"h{host}"),
            )
            for commands, namespace, interface in ends:
                if commands:
                    problem = namespace.run(commands[which].format(interface))
                    if problem:
                        yield problem

    def begin(self):
        for problem in self.each(0):
            raise NotInjected(problem)

    def end(self):
        # Undo only what was done.
        list(self.each(1))
        self.arena.struck_links.difference_update(self.cables)


def shaped(discipline):
    """A queueing discipline on an interface."""
    return f"tc qdisc add dev {{}} root {discipline}", "tc qdisc delete dev {} root"


# Smaller than any packet.
NOTHING = shaped("tbf rate 8bit burst 10b limit 1b")
DISORDER = shaped("netem delay 60ms 50ms")


def cable(name, at_host=(), at_server=()):
    ends = {"at_host": at_host, "at_server": at_server}
    return type("CableFault", (CableFault,), {"kind": f"cable-{name}", **ends})


CABLE_FAULTS = [
    cable("down", at_host=("ip link set {} down", "ip link set {} up")),
    cable("lose-requests", at_host=NOTHING),
    cable("lose-replies", at_server=NOTHING),
    cable("slow", at_server=shaped("tbf rate 32kbit burst 1600b latency 2s")),
    cable("disorder", at_host=DISORDER, at_server=DISORDER),
]
