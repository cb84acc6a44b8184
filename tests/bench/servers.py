"""Private servers for the measurements: empty, in memory only, ended with the program that started
them, and what stands between them and a client to count what goes by."""
import os
import selectors
import socket
import subprocess
import threading
import time

# How long a server may take to start, on a machine that has much else to do.
START_TIMEOUT = 60  # seconds


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A redis-server on a unix socket and a port of 127.0.0.1, with TLS there if `tls` names a
    directory that make_certificates has been called for."""

    def __init__(self, directory, name, tls=None):
        self.path = f"{directory}/{name}.sock"
        self.tls = tls
        self.asked = 0
        for _ in range(20):  # another program may take the port in between
            self.port = free_port()
            if self._start(directory):
                return
        raise SystemExit(f"redis-server does not start: {self._last_words()}")

    def _start(self, directory):
        listen = ["--port", str(self.port)]
        if self.tls:
            listen = ["--port", "0", "--tls-port", str(self.port), "--tls-auth-clients", "no"]
            for option in ("cert", "key", "ca-cert"):
                listen += [f"--tls-{option}-file", f"{self.tls}/{option}"]
        self.log = open(f"{self.path}.log", "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "redis-server", "--bind", "127.0.0.1", *listen]
            + ["--unixsocket", self.path, "--save", "", "--dir", directory]
            + ["--maxclients", "20000", "--tcp-backlog", "4096"],
            stdin=subprocess.DEVNULL,
            stdout=self.log,
        )
        deadline = time.monotonic() + START_TIMEOUT
        while self.process.poll() is None and time.monotonic() < deadline:
            try:
                return self.ask("ECHO", "up") == "up"
            except OSError:
                time.sleep(0.01)
        self.process.kill()
        self.process.wait()
        return False

    def _last_words(self):
        self.log.seek(0)
        return self.log.read().strip().rpartition("\n")[2]

    @property
    def unix_url(self):
        return f"unix://{self.path}"

    def url(self, port=None):
        return f"redis{'s' if self.tls else ''}://127.0.0.1:{port or self.port}"

    def ask(self, *words):
        """The reply to one command: a string, a number, None or a list of these. Raises OSError
        where the server cannot be reached."""
        self.asked += 1
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(self.path)
            text = "".join(f"${len(word.encode())}\r\n{word}\r\n" for word in words)
            connection.sendall(f"*{len(words)}\r\n{text}".encode())
            with connection.makefile("rb") as replies:
                return read_reply(replies)

    def info(self):
        """-> {name: text} of INFO"""
        return dict(line.split(":", 1) for line in self.ask("INFO").split() if ":" in line)

    def memory(self):
        """-> what it uses, in KiB"""
        return int(self.info()["used_memory"]) / 1024

    def commands(self):
        """-> (commands of clients, calls of their scripts) since forget_commands, but for `ask`"""
        asked = self.asked
        stats = self.ask("INFO", "commandstats")
        rows = [line.removeprefix("cmdstat_").partition(":") for line in stats.split("\r\n")[1:-1]]
        calls = {name: int(rest.split(",")[0].removeprefix("calls=")) for name, _, rest in rows}
        calls.pop("config|resetstat", None)
        sent = sum(count for name, count in calls.items() if name in CLIENTS_SEND)
        return sent, sum(calls.values()) - sent - asked

    def forget_commands(self):
        self.ask("CONFIG", "RESETSTAT")
        self.asked = 0

    def signal(self, number):
        self.process.send_signal(number)

    def end(self):
        self.process.kill()
        self.process.wait()
        self.log.close()


# What redlock-cli itself sends. All else is called by scripts, or asked by us.
CLIENTS_SEND = {"eval", "evalsha", "info", "subscribe"}


def read_reply(stream):
    kind, rest = (line := stream.readline()[:-2].decode())[:1], line[1:]
    if not kind:
        raise ConnectionError("the server closed the connection")
    if kind == "-":
        raise SystemExit(f"redis-server: {rest}")
    if kind == ":":
        return int(rest)
    if kind == "*":
        return [read_reply(stream) for _ in range(int(rest))]
    if kind == "$":
        return stream.read(int(rest) + 2)[:-2].decode() if rest != "-1" else None
    return rest


def receive(connection):
    """What has come; nothing when the other end is gone."""
    try:
        return connection.recv(1 << 16)
    except ConnectionError:
        return b""


def make_certificates(directory):
    """A CA and a certificate for 127.0.0.1, as `Server` wants them."""
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30"]
    for command in (
        ["req", "-x509", *key, "-subj", "/CN=ca", "-keyout", "ca-key", "-out", "ca-cert"],
        ["req", *key[:-2], "-subj", "/CN=bench", "-addext", "subjectAltName=IP:127.0.0.1"]
        + ["-keyout", "key", "-out", "csr"],
        ["x509", "-req", "-in", "csr", "-CA", "ca-cert", "-CAkey", "ca-key", "-CAcreateserial"]
        + ["-copy_extensions", "copy", "-days", "30", "-out", "cert"],
    ):
        subprocess.run(["openssl", *command], cwd=directory, check=True, capture_output=True)


class Relay:
    """Stands in front of a server and counts, for each connection, round trips and bytes: `counts`
    has rows of [round trips, bytes to the server, bytes to the client], in the order of connecting.

    An answer is passed on a moment late. So a client that sends two things without waiting in
    between has sent both before it gets an answer to the first, however busy this machine is, and
    what it then sends is one round trip later.
    """

    DELAY = 0.02  # seconds

    def __init__(self, server, path=None):
        self.server = server
        self.listener = socket.socket(socket.AF_UNIX if path else socket.AF_INET)
        self.listener.bind(path or ("127.0.0.1", 0))
        self.listener.listen()
        self.url = f"unix://{path}" if path else server.url(self.listener.getsockname()[1])
        self.counts = []
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.listener, selectors.EVENT_READ, self._accept)
        self.late = []  # (when, client, data, count, …) of answers that are yet to be passed on
        self.open = 0
        threading.Thread(target=self._serve, daemon=True).start()

    def _accept(self):
        client, _ = self.listener.accept()
        behind = socket.socket(socket.AF_INET if self.server.tls else socket.AF_UNIX)
        if self.server.tls:
            behind.connect(("127.0.0.1", self.server.port))
        else:
            behind.connect(self.server.path)
        count, answered = [0, 0, 0], [True]
        self.counts.append(count)
        self.open += 1

        def there():
            data = receive(client)
            if not data:
                self.selector.unregister(client)
                behind.shutdown(socket.SHUT_WR)
                return
            count[0] += answered[0]
            count[1] += len(data)
            answered[0] = False
            behind.sendall(data)

        def back():
            data = receive(behind)
            count[2] += len(data)
            if not data:
                self.selector.unregister(behind)
            self.late.append((time.monotonic() + self.DELAY, client, behind, data, answered))

        self.selector.register(client, selectors.EVENT_READ, there)
        self.selector.register(behind, selectors.EVENT_READ, back)

    def _serve(self):
        while True:
            wait = max(0, self.late[0][0] - time.monotonic()) if self.late else None
            for key, _ in self.selector.select(wait):
                key.data()
            while self.late and self.late[0][0] <= time.monotonic():
                self._pass_on(*self.late.pop(0)[1:])

    def _pass_on(self, client, behind, data, answered):
        answered[0] = True
        if not data:  # the server closes behind the client only
            client.close()
            behind.close()
            self.open -= 1
            return
        try:
            client.sendall(data)
        except OSError:
            pass  # a client that waits for no more answers

    def take(self):
        """What was counted since the last call, once all connections are closed."""
        deadline = time.monotonic() + START_TIMEOUT
        while self.open:
            if time.monotonic() > deadline:
                raise SystemExit("a connection stays open")
            time.sleep(0.005)
        counts, self.counts = self.counts, []
        return counts
