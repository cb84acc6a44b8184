#!/usr/bin/python3
"""What redlock-cli costs, beside other locks and the supervised floor (floor.c): the least that a
program with the same three processes and obligations can do.

usage: tests/bench/bench.py [--rounds N] [--document] [--only PART] [PROGRAM]
       tests/bench/bench.py --check PROGRAM

  PROGRAM     default build/release/src/redlock-cli
  --rounds N  default 300: each round runs each contestant once, in turn; a ratio is the median of
              the ratios round by round
  --only PART times, counts, memory, hand-over, capacity or status
  --document  puts the tables into docs/performance.md and docs/capacity.md, and draws docs/costs.svg
  --check     counts only, and fails when a count is above its bound: a test of each full run

Prints the tables as Markdown. Times are worth something on an idle machine only. What is measured
is a copy of PROGRAM, stripped, as a package installs it: a file that the linker wrote runs 4 to 8 %
slower for its place in the page cache.
"""
import argparse
import os
import platform
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import chart

HERE = os.path.dirname(os.path.abspath(__file__))
DOCS = os.path.join(HERE, "../../docs")
TIMEOUT = 120  # seconds, for whatever is waited for
WARM_UP = 3  # rounds: files come into memory, scripts to the servers
HOLDERS, WAITERS, WATCHED = 1000, 200, 30  # of capacity; seconds
LOCKS = 20000  # of status
SERVERS = 5
# What `run -- true` may cost at one server, whatever the build: commands of ours, calls of the
# scripts, system calls of its own processes and of the command; how often its two processes may
# wake for each renewal; and with TLS how many more page faults than with --cacert, of which reading
# all of the system's CAs would take 600.
BOUNDS = {
    "commands": 2,
    "calls of scripts": 18,
    "system calls": 400,  # 393 on a quiet machine; a busy one adds two or three
    "wake-ups a renewal": 4,
    "page faults for the system's CAs": 100,
}
RENEWALS = 6  # during which wake-ups are counted

RECIPE = """
read -r token </proc/sys/kernel/random/uuid
[ "$(redis-cli -s "$1" SET bench-recipe "$token" NX PX 30000)" = OK ] || exit 75
true
redis-cli -s "$1" EVAL "if redis.call('get', KEYS[1]) == ARGV[1] then
  return redis.call('del', KEYS[1]) end return 0" 1 bench-recipe "$token" >/dev/null
"""
REDIS_PY = """
import subprocess, sys, redis
with redis.Redis(unix_socket_path=sys.argv[1]).lock("bench-redis-py", timeout=30):
    subprocess.run(["true"], check=True)
"""
# Copies a lock with its owner and its runs.
COPY_LOCK = """
for i = 1, ARGV[1] do
  for _, form in ipairs{"%s", "redlock:owner:{%s}", "redlock:last:{%s}"} do
    local stored = redis.call("DUMP", string.format(form, "listed"))
    redis.call("RESTORE", string.format(form, "listed" .. i), 3600000, stored)
  end
end"""
# With the restart guard none of servers that have just started would have a vote.
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "REDLOCK_RESTART_GUARD": "0"}
OURS = ("local:", "unix socket", "TCP", "TLS", "TLS, --cacert", "five servers")
OURS += ("two of five silent",)
SYSTEM_AUTHORITIES = "/etc/ssl/certs"


def wait_until(holds, what):
    deadline = time.monotonic() + TIMEOUT
    while not holds():
        if time.monotonic() > deadline:
            raise SystemExit(f"bench: in {TIMEOUT} s not: {what}")
        time.sleep(0.005)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A redis-server of our own: in memory only, ended with this program."""

    def __init__(self, directory, name, certificates=None):
        self.path, port = f"{directory}/{name}.sock", free_port()
        listen = ["--port", str(port)]
        self.url = f"redis://127.0.0.1:{port}"
        if certificates:
            listen = ["--port", "0", "--tls-port", str(port), "--tls-auth-clients", "no"]
            for option, file in (("cert", "cert"), ("key", "key"), ("ca-cert", "cert")):
                listen += [f"--tls-{option}-file", f"{certificates}/{file}"]
            self.url = f"rediss://127.0.0.1:{port}"
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "redis-server", "--bind", "127.0.0.1", *listen]
            + ["--unixsocket", self.path, "--save", "", "--dir", directory]
            + ["--maxclients", "20000"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        wait_until(lambda: self.cli("PING", check=False) == "PONG", "a redis-server that answers")

    def cli(self, *words, check=True):
        command = ["redis-cli", "-s", self.path, *words]
        told = subprocess.run(command, capture_output=True, text=True, check=check)
        return told.stdout.strip()

    def commands(self):
        """-> (commands of clients, calls of scripts) since CONFIG RESETSTAT"""
        rows = re.findall(r"cmdstat_([\w|]+):calls=(\d+)", self.cli("INFO", "commandstats"))
        calls = {name: int(count) for name, count in rows}
        for asked_by_us in ("config|resetstat", "ping", "command|docs", "exists"):
            calls.pop(asked_by_us, None)
        sent = sum(calls.get(name, 0) for name in ("eval", "evalsha", "subscribe", "info"))
        return sent, sum(calls.values()) - sent

    def queued(self, key):
        return int(self.cli("ZCARD", f"redlock:queue:{{{key}}}"))


def certificates(directory):
    """A CA that signs itself, and is the server."""
    os.mkdir(directory)
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
        + ["-nodes", "-days", "2", "-subj", "/CN=bench", "-addext", "subjectAltName=IP:127.0.0.1"]
        + ["-keyout", f"{directory}/key", "-out", f"{directory}/cert"],
        check=True,
        capture_output=True,
    )
    return directory


def authorities(directory, certificate):
    """A hashed directory with this CA beside those of the system."""
    os.mkdir(directory)
    for name in os.listdir(SYSTEM_AUTHORITIES) if os.path.isdir(SYSTEM_AUTHORITIES) else []:
        os.symlink(f"{SYSTEM_AUTHORITIES}/{name}", f"{directory}/{name}")
    command = ["openssl", "x509", "-noout", "-subject_hash", "-in", certificate]
    name = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    os.symlink(certificate, f"{directory}/{name}.0")
    return directory


def recorded(program, server, directory):
    """The requests of one `run` as it sends them -> the files of its acquire and its release"""
    path, chunks = f"{directory}/record.sock", []
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()

        def relay():
            client, _ = listener.accept()
            behind = socket.socket(socket.AF_UNIX)
            behind.connect(server.path)
            while data := client.recv(1 << 16):
                chunks.append(data)
                behind.sendall(data)
                client.sendall(behind.recv(1 << 16))
            behind.close()
            client.close()

        thread = threading.Thread(target=relay, daemon=True)
        thread.start()
        run([program, "run", "-S", f"unix://{path}", "-k", "floor", "--", "true"])
        thread.join()
    files = []
    for name, data in zip(("acquire", "release"), chunks):
        files.append(f"{directory}/{name}")
        with open(files[-1], "wb") as file:
            file.write(data)
    return files


def run(command, **options):
    """-> resource usage of it and its descendants"""
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL} | options
    process = subprocess.Popen(command, env=ENVIRONMENT, **pipes)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"bench: exit status {process.returncode}: {' '.join(command)}")
    return usage


class Bench:
    def __init__(self, program, directory):
        self.program, self.directory = program, directory
        os.mkdir(f"{directory}/local", 0o700)
        self.servers = [Server(directory, str(number)) for number in range(SERVERS)]
        self.server = self.servers[0]
        self.unix = f"unix://{self.server.path}"
        self.five = ",".join(f"unix://{server.path}" for server in self.servers)
        self.local = f"local:{directory}/local"
        chain = certificates(f"{directory}/certificates")
        ENVIRONMENT["SSL_CERT_DIR"] = authorities(f"{directory}/cas", f"{chain}/cert")
        tls = Server(directory, "tls", chain)
        self.servers.append(tls)
        self.over_tls = {
            "TLS": self.ours(tls.url),
            "TLS, --cacert": self.ours(tls.url, "--cacert", f"{chain}/cert"),
        }

    def end(self):
        for server in self.servers:
            server.process.kill()
            server.process.wait()

    def ours(self, url, *options, key="bench", command=("true",)):
        return [self.program, "run", "-q", "-S", url, "-k", key, *options, "--", *command]

    def start(self, command, **pipes):
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL} | pipes
        return subprocess.Popen(command, env=ENVIRONMENT, **pipes)

    def hold(self, url, key="held", *options):
        """-> a process that has the lock until its stdin ends"""
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        command = ["sh", "-c", "echo up; read line"]
        holder = self.start(self.ours(url, *options, key=key, command=command), **pipes)
        if holder.stdout.readline() != b"up\n":
            raise SystemExit("bench: the holder did not get the lock")
        return holder

    # --- Times ---

    def contestants(self):
        floor = f"{self.directory}/floor"
        subprocess.run(["cc", "-O2", "-o", floor, f"{HERE}/floor.c"], check=True)
        run(self.ours(self.unix))  # the server learns the scripts
        requests = recorded(self.program, self.server, self.directory)
        return {
            "true alone": ["true"],
            "supervised floor": [floor, self.server.path, *requests, "true"],
            "flock": ["flock", f"{self.directory}/flock", "true"],
            "local:": self.ours(self.local),
            "unix socket": self.ours(self.unix),
            "TCP": self.ours(self.server.url),
            **self.over_tls,
            "five servers": self.ours(self.five),
            "redis-cli recipe": ["sh", "-c", RECIPE, "sh", self.server.path],
            "redis-py": ["/usr/bin/python3", "-c", REDIS_PY, self.server.path],
        }

    def times(self, rounds):
        """-> {name: [seconds, one a round]}"""
        contestants = self.contestants()
        taken = {name: [] for name in [*contestants, "two of five silent"]}
        for number in range(rounds + WARM_UP):
            for name in taken:
                silent = self.servers[3:SERVERS] if name == "two of five silent" else []
                for server in silent:
                    server.process.send_signal(signal.SIGSTOP)
                command = contestants["five servers" if silent else name]
                path = shutil.which(command[0], path=ENVIRONMENT["PATH"])
                begin = time.perf_counter()
                pid = os.posix_spawn(path, command, ENVIRONMENT)
                _, status = os.waitpid(pid, 0)
                seconds = time.perf_counter() - begin
                for server in silent:
                    server.process.send_signal(signal.SIGCONT)
                if status:
                    raise SystemExit(f"bench: status {status}: {' '.join(command)}")
                if number >= WARM_UP:
                    taken[name].append(seconds)
        return taken

    def table_of_times(self, taken):
        def ratio(name, other):
            return statistics.median(a / b for a, b in zip(taken[name], taken[other]))

        rows = [["`true` under a lock of", "median ms", "quartiles", "× flock", "× floor"]]
        for name in sorted(taken, key=lambda name: statistics.median(taken[name])):
            low, median, high = (1e3 * v for v in statistics.quantiles(taken[name], n=4))
            against = [f"{ratio(name, other):.2f}" for other in ("flock", "supervised floor")]
            shown = f"**redlock-cli, {name}**" if name in OURS else name
            rows.append([shown, f"{median:.2f}", f"{low:.2f} – {high:.2f}", *against])
        return table(rows)

    # --- Counts ---

    def counts(self):
        """-> {scenario: {what: number}}; none depends on time"""
        found = {}
        commands = {
            "unix socket": self.ours(self.unix),
            "five servers": self.ours(self.five),
            "local:": self.ours(self.local),
            **self.over_tls,
        }
        for name, command in commands.items():
            run(command)
            for server in self.servers:
                server.cli("CONFIG", "RESETSTAT")
            usage = run(command)
            row = {"page faults": usage.ru_minflt + usage.ru_majflt}
            if name != "local:":
                sent, called = map(sum, zip(*(s.commands() for s in self.servers)))
                row |= {"commands": sent, "calls of scripts": called}
            if shutil.which("strace"):
                # A busy machine adds a few: a wait that is interrupted, a reply in two parts.
                row["system calls"] = min(self.system_calls(command) for _ in range(3))
            found[name] = row
        found["unix socket"]["wake-ups a renewal"] = self.wake_ups()
        return found

    def system_calls(self, command):
        trace = f"{self.directory}/trace"
        run(["strace", "-f", "-qq", "-c", "-o", trace, *command])
        with open(trace, encoding="ascii") as file:
            total = file.read().splitlines()[-1]
        return int(total.split()[3])

    def wake_ups(self):
        """-> how often both guards of an idle command wake for each renewal"""
        holder = self.hold(self.unix, "renewed", "--ttl", "3s")
        self.server.cli("CONFIG", "RESETSTAT")

        def after_renewal(number):
            stats = lambda: self.server.cli("INFO", "commandstats")
            renewed = lambda: re.search(r"cmdstat_evalsha:calls=(\d+)", stats())
            wait_until(lambda: (found := renewed()) and int(found[1]) >= number, "a renewal")
            return sum(wakes(pid) for pid in guards_of(holder.pid))

        begin, end = after_renewal(1), after_renewal(1 + RENEWALS)
        holder.communicate(b"\n")
        return (end - begin) / RENEWALS

    # --- Memory ---

    def memory(self):
        """-> {what: PSS of both guards in MiB}, one lock at a time"""
        found = {}
        for name, url in (("unix socket", self.unix), ("local:", self.local)):
            holder = self.hold(url)
            found[f"holding, {name}"] = pss(holder.pid) / 1024
            holder.communicate(b"\n")
        # A foreign client's lock: no other redlock-cli shares memory with the waiter.
        self.server.cli("SET", "held", "foreign", "PX", "600000")
        waiter = self.start(self.ours(self.unix, "--retry-delay", "2s", key="held"))
        wait_until(lambda: self.server.queued("held") == 1, "a waiter in the queue")
        time.sleep(1)  # until it has prepared for all that may come
        found["waiting, unix socket"] = pss(waiter.pid) / 1024
        self.server.cli("DEL", "held")
        waiter.wait()
        return found

    # --- Hand-over ---

    def hand_over(self, waiting):
        """-> {what: number}, of one hand-over with the run of its command, `true`"""
        holder = self.hold(self.unix, "queue")
        waiters = []
        for number in range(waiting):
            waiters.append(self.start(self.ours(self.unix, key="queue")))
            wait_until(lambda: self.server.queued("queue") > number, "a waiter in the queue")
        self.server.cli("CONFIG", "RESETSTAT")
        begin = time.perf_counter()
        holder.communicate(b"\n")
        for waiter in waiters:
            if waiter.wait():
                raise SystemExit("bench: a waiter failed")
        taken = time.perf_counter() - begin
        sent, called = self.server.commands()
        return {
            "ms": 1e3 * taken / waiting,
            "commands": (sent - 1) / waiting,
            "calls of scripts": called / waiting,
        }

    # --- Status ---

    def status(self):
        """-> {format: {what: number}} of many locks, each with the runs that a server keeps"""
        for number in range(20):
            run(self.ours(self.unix, "--note", f"release {number}", key="listed"))
        holder = self.hold(self.unix, key="listed")
        self.server.cli("EVAL", COPY_LOCK, "0", str(LOCKS - 1))
        found = {}
        for name, options in (("rows", []), ("--json", ["--json"]), ("metrics", ["--openmetrics"])):
            # What wait4() says of memory is at least what this program had when it forked.
            told = f"{self.directory}/time"
            run(["time", "-o", told, "-f", "%e %U %S %M", self.program, "status"]
                + ["-S", self.unix, *options])
            with open(told, encoding="ascii") as file:
                real, user, system, memory = map(float, file.read().split())
            found[name] = {"s": real, "s of CPU": user + system, "MiB": memory / 1024}
        holder.communicate(b"\n")
        self.server.cli("FLUSHALL")
        return found

    # --- Capacity ---

    def capacity(self):
        """-> {scenario: {what: number}} of many holders, and of many waiters, at one server"""
        found = {}
        for what, count in (("holders", HOLDERS), ("waiters", WAITERS)):
            holder = self.hold(self.unix, "many") if what == "waiters" else None
            keys = ["many"] * count if holder else [f"many-{number}" for number in range(count)]
            everyone = [
                self.start(self.ours(self.unix, key=key, command=["cat"]), stdin=subprocess.PIPE)
                for key in keys
            ]
            if holder:
                wait_until(lambda: self.server.queued("many") == count, "waiters in the queue")
            else:
                wait_until(lambda: self.server.cli("EXISTS", *keys) == str(count), "holders")
            ran = lambda: sum(cpu(pid) for one in everyone for pid in guards_of(one.pid))
            server, guards = cpu(self.server.process.pid), ran()
            self.server.cli("CONFIG", "RESETSTAT")
            time.sleep(WATCHED)
            sent, called = self.server.commands()
            found[f"{count:,} {what}"] = {
                "commands a second": sent / WATCHED,
                "calls of scripts a second": called / WATCHED,
                "server's CPU, %": 100 * (cpu(self.server.process.pid) - server) / WATCHED,
                "CPU of all guards, %": 100 * (ran() - guards) / WATCHED,
                "PSS of two guards, KiB": sum(pss(one.pid) for one in everyone) / count,
            }
            if holder:
                holder.communicate(b"\n")
            for one in everyone:
                one.stdin.close()
            for one in everyone:
                one.wait()
        return found


def installed(program, directory):
    """-> the path of a stripped copy"""
    copy = f"{directory}/redlock-cli"
    subprocess.run(["install", "-s", program, copy], check=True)
    return copy


def guards_of(front):
    with open(f"/proc/{front}/task/{front}/children", encoding="ascii") as children:
        return [front, *map(int, children.read().split())]


def pss(front):
    """Of both guards, in KiB."""
    total = 0
    for pid in guards_of(front):
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as rollup:
            total += int(re.search(r"^Pss:\s+(\d+)", rollup.read(), re.M)[1])
    return total


def wakes(pid):
    """How often it went to sleep."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", status.read(), re.M)[1])


def cpu(pid):
    """Seconds that it ran, from /proc/PID/schedstat (the kernel's sched-stats.rst)."""
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as schedstat:
        return int(schedstat.read().split()[0]) / 1e9


def table(rows):
    """Of Markdown; the first row is its head, and all columns but the first are numbers."""
    lines = [rows[0], ["---", *["---:"] * (len(rows[0]) - 1)], *rows[1:]]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}".rstrip("0").rstrip(".")


def table_of(rows):
    """rows: {name: {what: number}}"""
    heads = list(dict.fromkeys(what for row in rows.values() for what in row))
    cell = lambda row, what: number(row[what]) if what in row else "–"
    body = [[name, *(cell(row, what) for what in heads)] for name, row in rows.items()]
    return table([["", *heads], *body])


def machine(program, load):
    text_of = lambda *words: subprocess.run(words, capture_output=True, text=True).stdout
    with open("/proc/cpuinfo", encoding="ascii") as cpuinfo:
        model = re.search(r"model name\s*: (.*)", cpuinfo.read())
    version = text_of(program, "--version")
    commit = re.search(r"commit: (\S+)", version)
    rows = [
        ["processor", f"{os.cpu_count()} × {model[1] if model else platform.machine()}"],
        ["kernel", f"Linux {platform.release()}, {' '.join(platform.libc_ver())}"],
        ["redlock-cli", f"{version.split()[1]}, {commit[1] if commit else 'no commit'}"],
        ["redis-server", text_of("redis-server", "--version").split()[2].removeprefix("v=")],
        ["flock", text_of("flock", "--version").split()[-1]],
        ["load average before, after", f"{load:.1f}, {os.getloadavg()[0]:.1f}"],
    ]
    return table([["", ""], *rows]).replace("---:", "---")


def fill(name, texts):
    """Puts each text where the document has a place for it: <!-- measured: its name -->."""
    path = f"{DOCS}/{name}"
    with open(path, encoding="utf-8") as file:
        document = file.read()
    for place, text in texts.items():
        begin, end = f"<!-- measured: {place} -->", "<!-- end -->"
        before, mark, rest = document.partition(begin)
        if mark:
            document = f"{before}{begin}\n\n{text}\n\n{end}{rest.partition(end)[2]}"
    with open(path, "w", encoding="utf-8") as file:
        file.write(document)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n\n")[0])
    parser.add_argument("program", nargs="?", default="build/release/src/redlock-cli")
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--only")
    parser.add_argument("--document", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    only = "counts" if options.check else options.only
    wanted = lambda part: only in (None, part)
    with tempfile.TemporaryDirectory(prefix="rl.") as directory:
        program = installed(options.program, directory)
        bench = Bench(program, directory)
        texts, problems = {}, []
        try:
            if wanted("times"):
                texts["times"] = bench.table_of_times(bench.times(options.rounds))
            if wanted("counts"):
                counted = bench.counts()
                texts["counts"] = table_of(counted)
                system, own = (counted[name]["page faults"] for name in bench.over_tls)
                more = {"page faults for the system's CAs": system - own}
                bounded = counted["unix socket"] | more
                problems = [what for what, bound in BOUNDS.items() if bounded.get(what, 0) > bound]
            if wanted("memory"):
                texts["memory"] = table_of({k: {"MiB": v} for k, v in bench.memory().items()})
            if wanted("hand-over"):
                rows = {f"{n} waiting": bench.hand_over(n) for n in (2, 50, 200)}
                texts["hand-over"] = table_of(rows)
            if wanted("capacity"):
                texts["capacity"] = table_of(bench.capacity())
            if wanted("status"):
                texts["status"] = table_of(bench.status())
        finally:
            bench.end()
        texts["machine"] = machine(program, load)
    for name, text in texts.items():
        print(f"{name}\n\n{text}\n")
    if options.document:
        fill("performance.md", texts)
        chart.draw()
        fill("capacity.md", texts)
    for what in problems:
        print(f"above the bound of {BOUNDS[what]}: {what}")
    return 1 if problems and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
