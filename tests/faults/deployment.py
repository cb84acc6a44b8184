"""Servers of a run, and the links between the contenders' hosts and them.

A deployment has `servers` (empty for local:), `urls(host)` (what contenders of that host are
given with -S), `options` (other ones), `enter_host(host)` (what they call before they start),
`proxy` (if it has one), `processes()`, `leftovers()` and `close()`. Everything lies in a directory
of the run's own; servers listen on unix sockets there, and die with this process.
"""
import ctypes
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
HOSTS = 2
# The number of servers from which on --restart-guard has an effect.
GUARDED = 3
PR_SET_PDEATHSIG = 1
WAIT_LIMIT = 30

libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent():
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def wait_for(what, condition):
    """Repeats the query if a server does not answer at once."""

    def is_so():
        try:
            return condition()
        except Refused:
            return False

    end = time.monotonic() + WAIT_LIMIT
    while not is_so():
        if time.monotonic() > end:
            raise RuntimeError(f"not within {WAIT_LIMIT} s: {what}")
        time.sleep(0.01)


def write_step(path, seconds):
    """Shifts the wall clock of the processes that read this file through clock_step.cpp."""
    with open(path, "r+b" if os.path.exists(path) else "wb") as file:
        file.write(struct.pack("=q", round(seconds * 1e9)))


class Refused(Exception):
    """The server refused a command, or did not answer in time."""


class Ended(RuntimeError):
    """The server exited instead of answering."""


class Server:
    """A redis-server that keeps its data in a file. Contenders use the user `default`; the user
    `admin` may always do everything."""

    def __init__(self, number, directory, options=(), enter=None, environment=None):
        self.number = number
        self.directory = os.path.join(directory, f"data{number}")
        self.socket = os.path.join(directory, f"{number}.sock")
        self.options = list(options)
        self.enter = enter  # a namespace
        self.environment = environment  # None: ours
        self.process = None
        os.makedirs(self.directory, exist_ok=True)
        self.start()

    def start(self):
        if os.path.exists(self.socket):
            os.unlink(self.socket)
        with open(os.path.join(self.directory, "log"), "ab") as log:
            self.process = subprocess.Popen(
                [
                    *("redis-server", "--port", "0", "--unixsocket", self.socket),
                    *("--unixsocketperm", "700", "--save", "", "--dir", self.directory),
                    *("--appendonly", "yes", "--appendfsync", "always"),
                    *("--user", *"admin on nopass ~* &* +@all".split(), "--lua-time-limit", "50"),
                    *self.options,
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=self.before,
                env=self.environment,
            )
        wait_for(f"server {self.number}", self.answers)

    def before(self):
        die_with_parent()
        if self.enter:
            self.enter()

    def answers(self):
        if self.process.poll() is not None:
            raise Ended(f"server {self.number} ended with {self.process.returncode}")
        try:
            return self.ask("PING") == "PONG"
        except Refused:
            return False

    def kill(self):
        self.process.kill()
        self.process.wait()

    def forget(self):
        """Removes the data of a stopped server."""
        shutil.rmtree(os.path.join(self.directory, "appendonlydir"), ignore_errors=True)

    def copy_to(self, directory):
        """Gives another server, which has not started there yet, the data as it is now."""
        theirs = os.path.join(directory, os.path.basename(self.directory), "appendonlydir")
        shutil.copytree(os.path.join(self.directory, "appendonlydir"), theirs)

    def truncate(self, size):
        """Cuts bytes off the end of the file of a stopped server. -> how many"""
        folder = os.path.join(self.directory, "appendonlydir")
        files = [os.path.join(folder, name) for name in os.listdir(folder) if "incr" in name]
        path = max(files, key=os.path.getmtime)
        before = os.path.getsize(path)
        os.truncate(path, max(0, before - size))
        return min(before, size)

    def ask(self, *words, timeout=0.5, wait=True):
        """The answer of the command, as text, or a list of such. wait=False: does not wait for
        it, and returns the connection, which the caller closes."""
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(timeout)
        try:
            connection.connect(self.socket)
            send(connection, "AUTH", "admin", "any")
            send(connection, *words)
            if not wait:
                return connection
            stream = connection.makefile("rb")
            read_reply(stream)
            answer = read_reply(stream)
            connection.close()
            return answer
        except OSError as problem:
            connection.close()
            raise Refused(f"server {self.number}: {problem}") from None


def send(connection, *words):
    data = b"*%d\r\n" % len(words)
    for word in words:
        word = str(word).encode()
        data += b"$%d\r\n%s\r\n" % (len(word), word)
    connection.sendall(data)


def read_reply(stream):
    line = stream.readline()
    if not line:
        raise OSError("connection closed")
    kind, text = line[:1], line[1:-2].decode()
    if kind == b"-":
        raise Refused(text)
    if kind == b"$":
        return None if int(text) < 0 else stream.read(int(text) + 2)[:-2].decode(errors="replace")
    if kind == b"*":
        return [read_reply(stream) for _ in range(int(text))]
    return text


class Proxy:
    def __init__(self, seed, history):
        self.process = subprocess.Popen(
            [sys.executable, "-S", os.path.join(HERE, "proxy.py"), seed, history],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=die_with_parent,
        )

    def tell(self, *words):
        """Returns when the server has ended."""
        self.process.stdin.write(json.dumps(words) + "\n")
        self.process.stdin.flush()
        if self.process.stdout.readline() != "ok\n":
            raise RuntimeError("the proxy has ended")

    def close(self):
        self.process.kill()
        self.process.communicate()


class Servers:
    """Independent servers, each behind one link per host. `clock`: the library that steps their
    wall clocks."""

    options = ()

    def __init__(self, directory, count, seed, history, clock=None):
        self.servers = []
        self.proxy = None
        self.directory = directory
        environment = None
        if clock:
            self.step_clock(0)
            files = {"LD_PRELOAD": clock, "CLOCK_STEP_FILE": self.clock_file()}
            environment = {**os.environ, **files}
        try:
            for number in range(count):
                self.servers.append(Server(number, directory, environment=environment))
            self.proxy = Proxy(seed, history)
            for host in range(HOSTS):
                for server in self.servers:
                    path = self.link_path(host, server.number)
                    self.proxy.tell("listen", f"{host}-{server.number}", path, server.socket)
        except BaseException:
            self.close()
            raise

    def clock_file(self):
        return os.path.join(self.directory, "servers-clock")

    def step_clock(self, seconds):
        write_step(self.clock_file(), seconds)

    def enter_host(self, host):
        pass

    def processes(self):
        return [self.proxy.process, *(server.process for server in self.servers)]

    def link_path(self, host, number):
        return os.path.join(self.directory, f"h{host}s{number}")

    def urls(self, host):
        return ",".join(f"unix://{self.link_path(host, s.number)}" for s in self.servers)

    def leftovers(self):
        return keys_left(self.servers)

    def close(self):
        if self.proxy:
            self.proxy.close()
        for server in self.servers:
            server.kill()


def keys_left(servers):
    """The keys that should not exist when no client has used the lock for a while."""
    for server in servers:
        for key in server.ask("KEYS", "*", timeout=WAIT_LIMIT):
            # Tombstones outlive a lease for a while.
            expires = key.startswith("redlock:released:") and int(server.ask("PTTL", key)) > 0
            if not expires and not key.startswith(("redlock:fence:", "redlock:last:")):
                yield "key", f"server {server.number}: {key}"


class Local:
    """This host, in a private file system if it can be mounted: a full disk then affects nothing
    else."""

    servers = ()
    proxy = None
    options = ()

    def __init__(self, directory):
        self.place = os.path.join(directory, "local")
        os.mkdir(self.place, 0o700)
        self.is_mounted = (
            os.geteuid() == 0
            and subprocess.run(
                ["mount", "-t", "tmpfs", "-o", "size=256k,mode=700", "tmpfs", self.place],
                stderr=subprocess.DEVNULL,
            ).returncode
            == 0
        )

    def urls(self, _host):
        return f"local:{self.place}"

    def enter_host(self, host):
        pass

    def processes(self):
        return []

    def files(self):
        return [os.path.join(self.place, name) for name in sorted(os.listdir(self.place))]

    def leftovers(self):
        """A FIFO belongs to a live waiter; other lock operations remove that of a killed one."""
        before = self.files()
        subprocess.run(
            [os.environ["REDLOCK_CLI"], "run", "-S", self.urls(0), "-k", "one more", "--", "true"],
            check=True,
        )
        for path in set(self.files()).difference(before):
            os.unlink(path)  # the next one is to make one more
        for path in self.files():
            if not os.path.isfile(path):
                yield "file", os.path.basename(path)

    def close(self):
        if self.is_mounted:
            subprocess.run(["umount", "--lazy", self.place], check=True)
