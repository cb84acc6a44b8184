"""Who is compared: commands that run `true` under a lock. Each peer is one that is installed here,
or is named as missing."""
import os
import shutil
import subprocess
import time

from servers import START_TIMEOUT, free_port

HERE = os.path.dirname(os.path.abspath(__file__))

# What people write, with nothing but redis-cli: a token, a time to live, a release that looks.
RECIPE = """
read -r token </proc/sys/kernel/random/uuid
[ "$(redis-cli -s "$1" SET bench-recipe "$token" NX PX 30000)" = OK ] || exit 75
true
redis-cli -s "$1" EVAL "if redis.call('get', KEYS[1]) == ARGV[1] then
  return redis.call('del', KEYS[1]) end return 0" 1 bench-recipe "$token" >/dev/null
"""

REDIS_PY = """
import subprocess, sys, redis
server = redis.Redis(unix_socket_path=sys.argv[1])
with server.lock("bench-redis-py", timeout=30):
    subprocess.run(["true"], check=True)
"""


def compiled(directory, name):
    """A C program of this directory. -> its path"""
    path = f"{directory}/{name}"
    subprocess.run(["cc", "-O2", "-o", path, f"{HERE}/{name}.c"], check=True)
    return path


def version_of(*command):
    """The last word of the first line with a digit that the command prints."""
    told = subprocess.run(command, capture_output=True, text=True)
    lines = [
        line for line in (told.stdout + told.stderr).splitlines() if any(map(str.isdigit, line))
    ]
    return lines[0].split()[-1].strip("()v") if lines else ""


class Etcd:
    """A private etcd, on free ports of 127.0.0.1."""

    def __init__(self, directory):
        self.url = f"http://127.0.0.1:{free_port()}"
        peers = f"http://127.0.0.1:{free_port()}"
        self.log = open(f"{directory}/etcd.log", "w", encoding="utf-8")
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "etcd", "--data-dir", f"{directory}/etcd"]
            + ["--listen-client-urls", self.url, "--advertise-client-urls", self.url]
            + ["--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers]
            + ["--initial-cluster", f"default={peers}"],
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
        )
        self.environment = {"ETCDCTL_API": "3", "ETCDCTL_ENDPOINTS": self.url}
        health = ["etcdctl", "endpoint", "health"]
        deadline = time.monotonic() + START_TIMEOUT
        while subprocess.run(
            health, env=os.environ | self.environment, capture_output=True
        ).returncode:
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise SystemExit("etcd does not start")
            time.sleep(0.05)

    def end(self):
        self.process.kill()
        self.process.wait()
        self.log.close()


class Consul:
    """A private consul agent in its development mode, on free ports of 127.0.0.1."""

    def __init__(self, directory):
        ports = {name: free_port() for name in ("http", "server", "serf-lan", "serf-wan")}
        self.log = open(f"{directory}/consul.log", "w", encoding="utf-8")
        options = [f"-{name}-port={port}" for name, port in ports.items()]
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "consul", "agent", "-dev", "-bind=127.0.0.1"]
            + [*options, "-dns-port=-1", "-grpc-port=-1"],
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
        )
        self.environment = {"CONSUL_HTTP_ADDR": f"127.0.0.1:{ports['http']}"}
        probe = ["consul", "kv", "put", "bench-probe", "1"]
        deadline = time.monotonic() + START_TIMEOUT
        while subprocess.run(
            probe, env=os.environ | self.environment, capture_output=True
        ).returncode:
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise SystemExit("consul does not start")
            time.sleep(0.05)

    end = Etcd.end


class Peers:
    """commands: {name: words}; versions: {name: text}; missing: [text]; environment: what they
    need."""

    def __init__(self, directory, server):
        self.commands, self.versions, self.missing, self.environment = {}, {}, [], {}
        self.daemons = []
        self.commands["floor"] = [compiled(directory, "floor"), server.path, "bench-floor", "true"]
        if self._here("flock", "flock"):
            self.commands["flock"] = ["flock", f"{directory}/flock", "true"]
            self.versions["flock"] = version_of("flock", "--version")
        if self._here("recipe of redis-cli", "redis-cli"):
            self.commands["recipe of redis-cli"] = ["sh", "-c", RECIPE, "sh", server.path]
            self.versions["recipe of redis-cli"] = version_of("redis-cli", "--version")
        python = ["/usr/bin/python3", "-c"]
        probe = subprocess.run([*python, "import redis"], capture_output=True)
        if probe.returncode:
            self.missing.append("redis-py is not installed")
        else:
            self.commands["redis-py"] = [*python, REDIS_PY, server.path]
            self.versions["redis-py"] = version_of(
                *python, "import redis; print(redis.__version__)"
            )
        if self._here("etcdctl lock", "etcdctl") and self._here("etcdctl lock", "etcd"):
            self._serve(Etcd(directory))
            self.commands["etcdctl lock"] = ["etcdctl", "lock", "bench-etcd", "true"]
            self.versions["etcdctl lock"] = version_of("etcdctl", "version")
        if self._here("consul lock", "consul"):
            self._serve(Consul(directory))
            self.commands["consul lock"] = ["consul", "lock", "bench-consul", "true"]
            self.versions["consul lock"] = version_of("consul", "version")

    def _here(self, name, program):
        if shutil.which(program):
            return True
        self.missing.append(f"{name}: {program} is not installed")
        return False

    def _serve(self, daemon):
        self.daemons.append(daemon)
        self.environment |= daemon.environment

    def end(self):
        for daemon in self.daemons:
            daemon.end()
