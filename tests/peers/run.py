#!/usr/bin/python3
"""redlock-cli beside the locks of other programs' libraries, on the same keys of real servers:
README.md tells what is tried.

usage: [REDLOCK_CLI=PROGRAM] run.py [--allow-missing] [LIBRARY…]

Without a LIBRARY it tries all. Prints a table. Exits 1 if one shows anything but what is expected,
or cannot be had and --allow-missing is not given.
"""
import argparse
import contextlib
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import redis

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, f"{HERE}/../bench")
import bench

PROGRAM = os.path.abspath(os.environ.get("REDLOCK_CLI", f"{HERE}/../../build/dev/src/redlock-cli"))

# Seconds until something that is waited for is said not to happen: one step, and all of a contest.
LIMIT = 60
CONTEST_LIMIT = 180
# Milliseconds of a peer's lease, and of one that is to be extended.
TTL = 60_000
SHORTENED = 30_000
# Ours where a renewal, or the loss of it, is waited for.
RENEWING = ["-t", "9s"]
# Of each kind in the contest. It goes on until each kind has had so many turns, and the lock has
# gone from one kind to the other so often.
CONTENDERS = 4
TAKEN = 30
CHANGES = 6

BUSY, LOST = 75, 79

# One of ours in the contest, as `count` in the peers; and a turn, as count_once there.
TURNS = """
read command path
trap 'kill $run; wait $run; exit 143' TERM
for ((turns = 0; ; ++turns)); do
  [[ ! -e $path.enough ]] || break
  "$0" "$@" &
  run=$!
  wait $run || exit
done
echo "counted $turns"
"""
TURN = """
set -eC
: >"$0.inside"
number=$(cat "$0")
echo $((number + 1)) >|"$0"
echo ours >>"$0.log"
rm "$0.inside"
"""


# Each library, and on how many servers its locks are tried.
LIBRARIES = {"redis-py": (1,), "redlock": (1, 3), "redis-semaphore": (1, 3)}
# Needs no more than the tests have; the others are npm's.
AT_HAND = "redis-py"


class Failure(Exception):
    pass


def check(holds, what):
    if not holds:
        raise Failure(what)


def wait_until(what, condition, limit=LIMIT):
    end = time.monotonic() + limit
    while not condition():
        check(time.monotonic() < end, f"did not happen: {what}")
        time.sleep(0.02)


class Process:
    """What it writes is taken line by line. It ends with us."""

    def __init__(self, arguments, environment):
        self.name = os.path.basename(arguments[0])
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "TERM", *arguments],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines = {"stdout": queue.Queue(), "stderr": queue.Queue()}
        self.said = []
        self.readers = [
            threading.Thread(target=self.read, args=(stream,), daemon=True) for stream in self.lines
        ]
        for reader in self.readers:
            reader.start()

    def read(self, stream):
        for line in getattr(self.process, stream):
            self.said.append(line)
            self.lines[stream].put(line.rstrip("\n"))
        self.lines[stream].put(None)

    def line(self, stream="stdout"):
        try:
            line = self.lines[stream].get(timeout=LIMIT)
        except queue.Empty:
            raise Failure(f"{self.name}: nothing on {stream} for {LIMIT} s") from None
        if line is None:
            self.finish()
            raise Failure(f"{self.name}: ended: {self.words()}")
        return line

    def words(self):
        """All that it has said so far."""
        return "".join(self.said).strip()

    def is_silent(self):
        return self.lines["stdout"].empty() and self.process.poll() is None

    def tell(self, text):
        try:
            self.process.stdin.write(text + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # reading says so

    def finish(self):
        """Ends its input and waits for its end. -> exit status"""
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        return self.wait()

    def wait(self):
        """-> exit status"""
        try:
            status = self.process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            raise Failure(f"{self.name}: does not end") from None
        for reader in self.readers:
            reader.join(LIMIT)
        return status

    def end(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(LIMIT)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class Peer(Process):
    def __init__(self, program, sockets, environment):
        super().__init__([*program, "peers", str(TTL), *sockets], environment)
        word, self.key, self.version = self.line().split(" ", 2)
        check(word == "ready", f"{self.name}: said {word}")

    def ask(self, command):
        self.tell(command)
        return self.line()

    def demand(self, command, *answers):
        answer = self.ask(command)
        check(answer in answers, f"{command}: the peer is told '{answer}', not '{answers[0]}'")


class Server(bench.Server):
    def __init__(self, directory, number):
        super().__init__(directory, str(number))
        self.client = redis.Redis(unix_socket_path=self.path)

    def end(self):
        self.process.kill()
        self.process.wait()


class Arena:
    """A library, and redlock-cli, on some servers."""

    def __init__(self, program, servers, directory):
        self.program, self.servers, self.directory = program, servers, directory
        self.sockets = [server.path for server in servers]
        self.environment = {
            name: value for name, value in os.environ.items() if not name.startswith("REDLOCK_")
        }
        self.environment.update(
            HOME=directory,
            LC_ALL="C.UTF-8",
            REDLOCK_SERVER=",".join(f"unix://{socket}" for socket in self.sockets),
            # They have just been started.
            REDLOCK_RESTART_GUARD="0",
        )
        self.processes = []
        self.key = self.version = None

    def peer(self):
        peer = Peer(self.program, self.sockets, self.environment)
        self.processes.append(peer)
        self.key, self.version = peer.key, peer.version
        return peer

    def arguments(self, command, *options):
        return [PROGRAM, command, "-k", self.key, *options]

    def ours(self, command, *options):
        process = Process(self.arguments(command, *options), self.environment)
        self.processes.append(process)
        return process

    def status_of(self, command, *options):
        try:
            return subprocess.run(
                self.arguments(command, *options),
                env=self.environment,
                capture_output=True,
                text=True,
                timeout=LIMIT,
            )
        except subprocess.TimeoutExpired:
            raise Failure(f"{command}: does not end") from None

    def hold(self, *options):
        """`run` that holds the lock until its stdin ends."""
        holder = self.ours("run", "-n", *options, "--", "sh", "-c", "echo in && exec cat")
        check(holder.line() == "in", "run did not get the lock")
        return holder

    def lease(self, ttl):
        """-> the token file of a lease by `acquire`"""
        path = f"{self.directory}/lease"
        status = self.status_of("acquire", "-n", "-t", ttl, "--token-file", path).returncode
        check(status == 0, f"acquire exits with {status}")
        return path

    def finish(self, run):
        """Ends its input; it is to succeed."""
        status = run.finish()
        check(status == 0, f"run ended with {status}: {run.words()}")

    def values(self):
        """What lies at the key, on each server."""
        return [server.client.dump(self.key) for server in self.servers]

    def settled(self):
        """… as soon as all of them have it: a quorum is enough to go on."""
        wait_until("every server has the key", lambda: all(self.values()))
        return self.values()

    def lives(self):
        return [server.client.pttl(self.key) for server in self.servers]

    def lose(self):
        """The lease, whosever it is, ends as by its ttl."""
        for server in self.servers:
            server.client.delete(self.key)

    def is_free(self):
        return not any(self.values())

    def demand_refused(self):
        refused = self.status_of("run", "-n", "--", "true")
        check(refused.returncode == BUSY, f"run -n exits with {refused.returncode}")
        check("held by a foreign client" in refused.stderr, f"run -n says {refused.stderr}")

    def tidy(self):
        for process in self.processes:
            process.end()
        self.processes.clear()
        for server in self.servers:
            server.client.flushall()


# --- What is tried ---


def it_holds(arena):
    """It holds: we are refused and see the holder; we wait, and get the lock when it has left."""
    peer = arena.peer()
    peer.demand("try", "held")
    values = arena.settled()
    arena.demand_refused()
    acquire = arena.status_of("acquire", "-n", "-t", "1m").returncode
    check(acquire == BUSY, f"acquire -n exits with {acquire}")

    text = arena.status_of("status")
    expected = f"{arena.key}: held by a foreign client, expires in "
    check(text.stdout.startswith(expected), f"status says {text.stdout}")
    code = arena.status_of("status", "--exit-code").returncode
    check(code == BUSY, f"status --exit-code exits with {code}")
    (lock,) = json.loads(arena.status_of("status", "--json").stdout)["locks"]
    seen = lock["state"], lock["holder"]["foreign"], lock["holder"]["type"]
    check(seen == ("held", True, "string"), f"status --json says {lock}")
    check(arena.values() == values, "looking at its lock has changed it")

    waiter = arena.ours("run", "--", "sh", "-c", "echo in")
    waiting = waiter.line("stderr")
    check(f"waiting for {arena.key}: held by a foreign client" in waiting, f"run says {waiting}")
    check(waiter.is_silent(), "run does not wait")
    check(arena.values() == values, "waiting for its lock has changed it")
    peer.demand("release", "released")
    check(waiter.line() == "in", "run did not get in")
    arena.finish(waiter)
    check(arena.is_free(), "the key is still there")


def we_hold(arena):
    """We hold: it is refused, waits, and gets in when we have left. By run, shared, by acquire."""
    peer = arena.peer()
    for options in [[], ["--shared"]]:
        holder = arena.hold(*options)
        values = arena.settled()
        peer.demand("try", "busy")
        peer.demand("wait", "waiting")
        check(arena.values() == values, "its attempts have changed our lock")
        check(peer.is_silent(), "it does not wait")
        arena.finish(holder)
        check(peer.line() == "held", "it did not get in")
        arena.demand_refused()
        peer.demand("release", "released")

    lease = arena.lease("1m")
    values = arena.settled()
    peer.demand("try", "busy")
    peer.demand("wait", "waiting")
    check(arena.values() == values, "its attempts have changed our lock")
    released = arena.status_of("release", "--token-file", lease)
    check(released.returncode == 0, f"release exits with {released.returncode}")
    check(peer.line() == "held", "it did not get in")
    arena.demand_refused()
    peer.demand("release", "released")


def extending(arena):
    """Each extends its lease while the other waits for it."""
    peer = arena.peer()
    peer.demand("try", "held")
    arena.settled()
    waiter = arena.ours("run", "--", "sh", "-c", "echo in")
    waiter.line("stderr")
    for server in arena.servers:
        server.client.pexpire(arena.key, SHORTENED)
    peer.demand("extend", "extended")
    longer = sum(life > SHORTENED for life in arena.lives())
    check(longer > len(arena.servers) / 2, "its lease is no longer than before")
    arena.demand_refused()
    check(waiter.is_silent(), "run does not wait")
    peer.demand("release", "released")
    check(waiter.line() == "in", "run did not get in")
    arena.finish(waiter)

    holder = arena.hold(*RENEWING)
    values = arena.settled()
    peer.demand("wait", "waiting")
    for _ in range(2):
        seen = [arena.servers[0].client.pttl(arena.key)]

        def is_renewed():
            seen.append(arena.servers[0].client.pttl(arena.key))
            return seen[-1] > seen[-2]

        wait_until("run renews its lease", is_renewed)
    check(arena.values() == values, "it has changed our lock")
    check(peer.is_silent(), "it does not wait")
    arena.finish(holder)
    check(peer.line() == "held", "it did not get in")
    peer.demand("release", "released")

    lease = arena.lease(f"{SHORTENED // 1000}s")
    arena.settled()
    peer.demand("wait", "waiting")
    extended = arena.status_of("extend", "-t", "1m", "--token-file", lease)
    check(extended.returncode == 0, f"extend exits with {extended.returncode}")
    longer = sum(life > SHORTENED for life in arena.lives())
    check(longer > len(arena.servers) / 2, "our lease is no longer than before")
    check(peer.is_silent(), "it does not wait")
    released = arena.status_of("release", "--token-file", lease)
    check(released.returncode == 0, f"release exits with {released.returncode}")
    check(peer.line() == "held", "it did not get in")
    peer.demand("release", "released")
    check(arena.is_free(), "the key is still there")


def releasing(arena):
    """A client that lost its lease takes nothing from the current holder."""
    # Its lease is over, and we hold.
    for command in ["extend", "release"]:
        peer = arena.peer()
        peer.demand("try", "held")
        arena.settled()
        arena.lose()
        holder = arena.hold("-t", f"{SHORTENED // 1000}s")
        values = arena.settled()
        answer = peer.ask(command)
        # Some release without telling whether there was anything to release.
        check(answer == "lost" or answer == "released", f"{command}: the peer is told '{answer}'")
        check(arena.values() == values, f"{command}: it has changed our lock")
        check(max(arena.lives()) <= SHORTENED, f"{command}: it has extended our lease")
        arena.peer().demand("try", "busy")
        arena.finish(holder)

    # Our lease is over, and it holds.
    lease = arena.lease("1m")
    arena.settled()
    arena.lose()
    peer = arena.peer()
    peer.demand("try", "held")
    values = arena.settled()
    for command in ["extend", "release"]:
        ttl = ["-t", "1m"] if command == "extend" else []
        status = arena.status_of(command, *ttl, "--token-file", lease).returncode
        check(status == LOST, f"{command} exits with {status}")
        check(arena.values() == values, f"{command} has changed its lock")
    peer.demand("release", "released")
    check(arena.is_free(), "the key is still there")

    # The same during a run, which is stopped.
    holder = arena.hold(*RENEWING)
    arena.settled()
    peer.demand("wait", "waiting")
    arena.lose()
    check(peer.line() == "held", "it did not get in")
    status = holder.wait()
    check(status == LOST, f"run ended with {status}")
    check(arena.status_of("status", "--exit-code").returncode == BUSY, "run has taken its lock")
    peer.demand("release", "released")
    check(arena.is_free(), "the key is still there")


def counting(arena):
    """Several of each kind read a number and write one more: none is lost, none meets another."""
    count = f"{tempfile.mkdtemp(dir=arena.directory)}/count"
    for path, text in [(count, "0"), (f"{count}.log", "")]:
        with open(path, "w") as file:
            file.write(text)
    peers = [arena.peer() for _ in range(CONTENDERS)]
    ours = [
        Process(
            ["bash", "-c", TURNS, *arena.arguments("run", "--", "sh", "-c", TURN, count)],
            arena.environment,
        )
        for _ in range(CONTENDERS)
    ]
    arena.processes.extend(ours)
    for process in ours + peers:
        process.tell(f"count {count}")

    def is_enough():
        for process in ours + peers:
            if process.process.poll() is not None:
                process.wait()
                raise Failure(f"{process.name}: ended: {process.words()}")
            check(process.is_silent(), f"{process.name}: {process.words()}")
        with open(f"{count}.log") as file:
            log = file.read().split()
        changes = sum(one != other for one, other in zip(log, log[1:]))
        return changes >= CHANGES and all(log.count(kind) >= TAKEN for kind in ("peer", "ours"))

    wait_until("each kind takes its turns among the other's", is_enough, CONTEST_LIMIT)
    with open(f"{count}.enough", "w"):
        pass
    taken = 0
    for process in ours + peers:
        word, turns = process.line().split()
        taken += int(turns)
        check(word == "counted" and process.finish() == 0, f"{process.name}: {process.words()}")
    with open(count) as file:
        counted = int(file.read())
    check(counted == taken, f"{counted} of {taken} turns were counted")
    check(arena.is_free(), "the key is still there")


POINTS = {
    "it holds": it_holds,
    "we hold": we_hold,
    "extending": extending,
    "releasing": releasing,
    "counting": counting,
}


def try_one(arena, point):
    """-> why it failed, or None"""
    try:
        try:
            POINTS[point](arena)
        finally:
            arena.tidy()
        return None
    except Failure as failure:
        return str(failure)
    except Exception as error:  # whatever goes wrong here is one point of one library
        return f"{type(error).__name__}: {error}"


@contextlib.contextmanager
def servers_in(directory):
    servers = []
    try:
        for number in range(3):
            servers.append(Server(directory, number))
        yield servers
    finally:
        for server in servers:
            server.end()


# --- The table ---


def prepare(directory, names):
    """-> programs by library; those of npm are missing where its registry cannot be reached"""
    programs = {AT_HAND: ["/usr/bin/python3", f"{HERE}/peer.py"]}
    fetched = [name for name in names if name != AT_HAND]
    if not fetched or not shutil.which("npm"):
        return programs
    modules = f"{directory}/npm"
    os.mkdir(modules)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(f"{HERE}/{name}", modules)
    install = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    if subprocess.run(install, cwd=modules, stdout=sys.stderr).returncode == 0:
        node = ["env", f"NODE_PATH={modules}/node_modules", "node", f"{HERE}/peer.js"]
        programs |= {name: [*node, name] for name in fetched}
    return programs


def table(names, may_be_missing):
    """-> whether all is as expected"""
    with tempfile.TemporaryDirectory(prefix="redlock-peers.") as directory:
        programs = prepare(directory, names)
        rows, good = [], True
        with servers_in(directory) as servers:
            for name in names:
                if name not in programs:
                    print(f"ok {name} # skip {name}: npm or its registry cannot be reached")
                    good = good and may_be_missing
                    continue
                for count in LIBRARIES[name]:
                    print(f"{name}, {count}:", file=sys.stderr)
                    arena = Arena(programs[name], servers[:count], directory)
                    failed = {}
                    for point in POINTS:
                        why = try_one(arena, point)
                        if why is not None:
                            failed[point] = why
                            print(f"  {point}: {why}", file=sys.stderr)
                    good = good and not failed
                    marks = ["**no**" if point in failed else "yes" for point in POINTS]
                    rows.append([name, arena.version or "?", str(count), *marks])
        titles = ["library", "version", "servers", *POINTS]
        for row in [titles, ["---"] * len(titles), *rows]:
            print(f"| {' | '.join(row)} |")
    return good


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--allow-missing", action="store_true")
    parser.add_argument("library", nargs="*")
    options = parser.parse_args()
    for name in options.library:
        if name not in LIBRARIES:
            parser.error(f"no library {name}: {', '.join(LIBRARIES)}")
    # So that what was started is ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    return table(options.library or LIBRARIES, options.allow_missing)


sys.exit(0 if main() else 1)
