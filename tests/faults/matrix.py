#!/usr/bin/python3
"""Strikes a `run` in each phase of its life with each event, and checks what came of it.

usage: matrix.py [--cells N] [--lanes N] [--seed N] [--phase NAME] [--event NAME] [--store NAME]

A cell is a phase (connecting … releasing), an event (a signal to one of the processes, a walk
through the tree, something that happens to the server, …), a store (one server, local:) and with or
without a controlling terminal. Each cell is drawn from the seed, as are its details. The command is
witness.cpp, which the kernel vouches for: a second run waits for the same key, and its own witness
finds the first one's flock if anything of that lives. Checked in each cell:

  overlap   the second command ran while a process of the first lived
  status    the exit status is one that the event can cause, says no success of a command that did
            not end well, and is the one that --status-fd tells
  left      a process, a zombie or the lock is still there a while after the end
  hang      the run, or the one that waits for it, has not ended in time

What breaks the lock under the run (a lost key, release --force) is outside of the promise: the
second run then begins when the first has ended. Prints a table of the exit statuses for each phase
and event, and each violation with what repeats its cell.

Needs REDLOCK_CLI and FAULT_WITNESS: paths of the program and of witness.cpp as built. Cells in which
a fork fails need root, and are left out without. Exit status: 0 when nothing was wrong, else 1.
"""
import argparse
import collections
import contextlib
import fcntl
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import threading
import time

sys.dont_write_bytecode = True
from contenders import GUARDS, bear_child, children, command_name
from deployment import Refused, Server, libc
from lanes import play_all

PR_SET_CHILD_SUBREAPER = 36
# Long enough that a busy machine loses no lease, as an exit status of 79 would be a violation.
TTL, GRACE, TIMEOUT = 3, 0.2, "300ms"
# How long a run may take to end after an event that lasts no longer than the ttl; and how long what
# it leaves behind for a silent server may stay.
END_LIMIT = 40
NEXT_LIMIT = 60
LEFT_LIMIT = 20
PHASE_LIMIT = 30
NOBODY = 65534
COOKIE = "REDLOCK_MATRIX_CELL"
MAX_HOLD, HOOK_SECONDS = "150ms", 0.3
# The ttl and the grace of a run with a hook, which must not be killed on a busy machine.
HOOK_TIMES = 9, 3

STORES = ("server", "local")
# The event of --events-fd that tells of the phase, or None: see Cell.reach().
PHASES = {
    "connecting": None,
    "waiting": "waiting",
    "acquiring": "waiting",
    "starting": "acquired",
    "running": None,
    "stopping": "stopping",
    "hook": None,
    "releasing": "ended",
}
ENDING = {"TERM": signal.SIGTERM, "INT": signal.SIGINT, "HUP": signal.SIGHUP}
SIGNALS = [*ENDING, "KILL", "STOP+CONT"]
TARGETS = ("front", "holder", "command", "group")
SERVER_EVENTS = ("silent", "gone", "restarted", "lost key")
EVENTS = [
    *(f"{name} {target}" for target in TARGETS for name in SIGNALS),
    *(f"{name} tree" for name in ENDING),
    *SERVER_EVENTS,
    "broken lock",
    "fork fails",
    "hang-up",
]
BREAKS_LOCK = ("lost key", "broken lock")
# Of the witness, which forks as well.
WITNESS_FAILED = 9
LOST, NO_PROCESS, UNAVAILABLE, UNCONFIRMED, HELD_LONG = 79, 71, 69, 80, 124


class Wrong(Exception):
    """A violation, with its kind."""


def possible(phase, event, store, terminal):
    if event == "hang-up" and not terminal:
        return False
    if event in SERVER_EVENTS and store == "local":
        return False
    if event == "fork fails" and os.geteuid() != 0:
        return False
    if phase == "connecting" and (store == "local" or event in SERVER_EVENTS):
        return False
    # No waiter is notified of that; it finds it by a poll, which takes a while.
    if phase == "waiting" and event == "lost key":
        return False
    has_command = phase not in ("connecting", "waiting", "acquiring")
    return has_command or not event.endswith(" command")


ALL = [
    cell
    for cell in itertools.product(PHASES, EVENTS, STORES, (False, True))
    if possible(*cell)
]


class Store:
    """Where a lane's runs lock."""

    def __init__(self, directory):
        self.server = Server(0, directory)
        os.chmod(self.server.socket, 0o777)
        self.directory = directory

    def url(self, name, user):
        if name == "server":
            return f"unix://{self.server.socket}"
        place = os.path.join(self.directory, f"locks-{user}")
        if not os.path.exists(place):
            os.mkdir(place, 0o700)
            os.chown(place, user, -1)
        return f"local:{place}"

    def pause(self):
        self.server.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.server.process.send_signal(signal.SIGCONT)

    def restart(self):
        self.server.start()
        os.chmod(self.server.socket, 0o777)

    def close(self):
        self.go_on()
        self.server.kill()


class Cell:
    def __init__(self, store, directory, number, seed, shape):
        self.phase, self.event, self.store_name, self.terminal = shape
        self.number, self.seed, self.store = number, seed, store
        self.chance = random.Random(f"{seed} {number}")
        self.id = f"{os.getpid()}.{number}"
        self.directory = os.path.join(directory, f"cell{number}")
        os.mkdir(self.directory)
        os.chmod(self.directory, 0o777)
        self.user = NOBODY if self.event == "fork fails" else os.geteuid()
        self.key = f"matrix{number}"
        self.history, self.events = self.file("history"), self.file("events")
        self.report, self.errors = self.file("report"), self.file("errors")
        for path in (self.history, self.events, self.report, self.errors):
            open(path, "w").close()
            os.chmod(path, 0o666)
        self.ends = os.openpty() if self.terminal else ()
        self.processes = []
        self.run = self.release = None

    def __str__(self):
        terminal = "terminal" if self.terminal else "no terminal"
        return f"cell {self.number} of seed {self.seed}: {self.event} while {self.phase}, {self.store_name}, {terminal}"

    def file(self, name):
        return os.path.join(self.directory, name)

    # --- Processes ---

    def environment(self):
        return dict(
            os.environ,
            REDLOCK_CONFIG="/dev/null",
            REDLOCK_SERVER=self.store.url(self.store_name, self.user),
            REDLOCK_SERVER_TIMEOUT=TIMEOUT,
            REDLOCK_RESTART_GUARD="0",
            HOME=self.directory,
            **{COOKIE: self.id},
        )

    def start(self, words, **options):
        process = subprocess.Popen(
            [os.environ["REDLOCK_CLI"], *words],
            stdin=subprocess.DEVNULL,
            env=self.environment(),
            user=self.user if self.user != os.geteuid() else None,
            **options,
        )
        self.processes.append(process)
        return process

    def witness(self, name, hold, beside):
        words = [os.environ["FAULT_WITNESS"], self.directory, self.history, name, "key"]
        return [*words, "exclusive", str(round(hold * 1000)), beside]

    def enter(self):
        # nohup, or a shell's `&`, may have ignored them for this process.
        for number in ENDING.values():
            signal.signal(number, signal.SIG_DFL)
        if self.terminal:
            fcntl.ioctl(self.ends[1], termios.TIOCSCTTY, 0)
        if self.shielded:
            bear_child()

    def start_run(self):
        self.shielded = self.chance.random() < 0.2
        beside = self.chance.choice(("plain", "plain", "stubborn", "daemon"))
        hold, options = self.chance.uniform(0.2, 0.8), []
        if self.phase in ("stopping", "hook"):
            options += ["--max-hold", MAX_HOLD]
            hold = 4
            if self.phase == "stopping":
                beside = "stubborn"
        if self.phase == "hook":
            hook = f"echo hook >>'{self.events}'; sleep {HOOK_SECONDS}"
            options += ["--on-stop", hook]
        if self.phase == "releasing":
            hold = 0.02
        ttl, grace = HOOK_TIMES if self.phase == "hook" else (TTL, GRACE)
        words = ["run", "-k", self.key, "--ttl", f"{ttl}s", "--grace", f"{grace}s"]
        words += ["--unavailable-wait", "3s", "--wait", f"{PHASE_LIMIT}s", "--descendants", "kill"]
        with open(self.events, "a") as events, open(self.report, "a") as report:
            with open(self.errors, "a") as errors:
                words += ["--events-fd", str(events.fileno()), "--status-fd", str(report.fileno())]
                self.run = self.start(
                    [*words, *options, "--", *self.witness("first", hold, beside)],
                    stdout=errors,
                    stderr=errors,
                    pass_fds=(events.fileno(), report.fileno()),
                    start_new_session=True,
                    preexec_fn=self.enter,
                )

    def start_next(self):
        """It runs as soon as the lock is free."""
        words = ["run", "-q", "-k", self.key, "--ttl", "5s", "--wait", f"{NEXT_LIMIT}s"]
        words += ["--unavailable-wait", f"{NEXT_LIMIT}s", "--"]
        with open(self.file("next"), "w") as errors:
            return self.start(
                [*words, *self.witness("next", 0.01, "plain")],
                stdout=errors,
                stderr=errors,
                start_new_session=True,
            )

    def targets(self):
        """The pids by name."""
        found = {"front": self.run.pid}
        below = children(self.run.pid)
        for child in below:
            if GUARDS.get(command_name(child)):
                found[GUARDS[command_name(child)]] = child
        for child in children(found.get("shield", 0)):
            found["holder"] = child
        for child in children(found.get("holder", 0)):
            if command_name(child) == os.path.basename(os.environ["FAULT_WITNESS"])[:15]:
                found["command"] = child
        return found

    # --- The phase ---

    def told(self):
        """The names of the events so far; `hook` when that runs."""
        with open(self.events) as file:
            lines = file.read().split("\n")[:-1]
        return ["hook" if line == "hook" else json.loads(line)["event"] for line in lines]

    def entries(self, what, name):
        with open(self.history) as file:
            lines = [json.loads(line) for line in file if line.endswith("\n")]
        return [line for line in lines if line["what"] == what and line["id"] == name]

    def until(self, what, condition):
        end = time.monotonic() + PHASE_LIMIT
        while not condition():
            if self.run.poll() is not None or time.monotonic() > end:
                with open(self.errors) as errors:
                    raise RuntimeError(f"{what} is not reached: {errors.read()}")
            time.sleep(0.001)

    def reach(self):
        """Starts the run, and returns in the phase."""
        held = self.phase in ("waiting", "acquiring")
        if held:
            lease = ("acquire", "-q", "-k", self.key, "--ttl", "60s", "--token-file")
            taken = self.start([*lease, self.file("lease")])
            if taken.wait(PHASE_LIMIT) != 0:
                raise RuntimeError("the lock cannot be taken first")
        if self.phase == "connecting":
            self.store.pause()
        self.start_run()
        if self.phase == "connecting":
            time.sleep(self.chance.uniform(0, 0.3))
        elif self.phase == "running":
            self.until("running", lambda: self.entries("enter", "first"))
        else:
            wanted = PHASES[self.phase] or self.phase
            self.until(self.phase, lambda: wanted in self.told())
        if self.phase == "acquiring":
            self.free()
        time.sleep(self.chance.choice((0, 0, 0.001, 0.003, 0.03)))

    def free(self):
        """Begins to end the lease that the run waits for."""
        words = ["release", "-q", "--token-file", self.file("lease")]
        self.release = self.start(words, stderr=subprocess.DEVNULL)

    def leave_phase(self):
        if self.phase == "connecting" and self.event != "silent":
            self.store.go_on()
        if self.phase == "waiting":
            self.free()
        # What strikes the server may have struck the release.
        while self.release and self.release.wait(PHASE_LIMIT) == UNAVAILABLE:
            self.free()

    # --- The event ---

    def strike(self):
        name, _, target = self.event.partition(" ")
        if target == "tree":
            for pid in self.tree():
                self.send(pid, ENDING[name])
        elif target in TARGETS:
            self.send_to(target, name)
        elif self.event in ("silent", "gone", "restarted"):
            self.strike_server()
        elif self.event == "lost key":
            self.store.server.ask("DEL", self.key)
        elif self.event == "broken lock":
            words = ["release", "-q", "--force", "-k", self.key]
            self.start(words, stderr=subprocess.DEVNULL).wait(PHASE_LIMIT)
        elif self.event == "hang-up":
            os.close(self.ends[0])
            self.ends = self.ends[1:]
        else:
            for pid in self.tree():  # some may have ended
                words = ["prlimit", "--nproc=0:0", "--pid", str(pid)]
                subprocess.run(words, user=NOBODY, stderr=subprocess.DEVNULL)

    def tree(self):
        tree = [self.run.pid]
        for pid in tree:
            tree += children(pid)
        return tree if self.chance.random() < 0.5 else tree[::-1]

    def send(self, pid, number):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass

    def send_to(self, target, name):
        found = self.targets()
        # It may have no holder or command any more, or not yet.
        pid = found.get("front" if target == "group" else target)
        if pid is None:
            return
        pid = -pid if target == "group" else pid
        if name != "STOP+CONT":
            self.send(pid, ENDING.get(name, signal.SIGKILL))
            return
        self.send(pid, signal.SIGSTOP)
        time.sleep(self.chance.choice((0.01, 0.3, 0.7, 1.2 * TTL)))
        self.send(pid, signal.SIGCONT)

    def strike_server(self):
        span = self.chance.choice((0.05, 0.3, 0.8, 1.2 * TTL))
        if self.event == "silent":
            self.store.pause()
            time.sleep(span)
            self.store.go_on()
            return
        self.store.server.kill()
        if self.event == "gone":
            time.sleep(span)
        self.store.restart()

    # --- What came of it ---

    def play(self):
        """-> the exit status"""
        self.reach()
        following = None if self.event in BREAKS_LOCK else self.start_next()
        self.strike()
        self.leave_phase()
        code = self.end_of(self.run, "the run", END_LIMIT)
        following = following or self.start_next()
        next_code = self.end_of(following, "the next run", NEXT_LIMIT)
        self.judge_overlap(next_code)
        self.judge_status(code)
        self.judge_left()
        return code

    def end_of(self, process, what, limit):
        try:
            return process.wait(limit)
        except subprocess.TimeoutExpired:
            tree = subprocess.run(
                ["ps", "-eo", "pid,ppid,stat,wchan:20,args", "--forest"],
                capture_output=True,
                text=True,
            ).stdout
            ours = [line for line in tree.split("\n") if self.key in line or self.directory in line]
            raise Wrong("hang: " + what + "\n" + "\n".join(ours)) from None

    def judge_overlap(self, next_code):
        entered = self.entries("enter", "next")
        if next_code != 0 or not entered:
            with open(self.file("next")) as errors:
                raise Wrong(f"hang: the next run exits with {next_code}: {errors.read()}")
        if not entered[0]["free"]:
            raise Wrong("overlap: the next command ran while a process of the first lived")

    def judge_status(self, code):
        entered, left = (bool(self.entries(what, "first")) for what in ("enter", "leave"))
        with open(self.report) as file:
            lines = file.read().split("\n")[:-1]
        report = json.loads(lines[-1]) if lines else None
        exit_code = code if code >= 0 else 128 - code
        told = f"exit {code}, entered {entered}, left {left}, report {report}"
        # A front process may be killed once it has written the report.
        if report and code != -signal.SIGKILL and report["exit_code"] != exit_code:
            raise Wrong(f"status: the report has another: {told}")
        if code == 0 and not (entered and left):
            raise Wrong(f"status: success, though the command did not end: {told}")
        if code not in self.possible_codes():
            raise Wrong(f"status: not one of {sorted(self.possible_codes())}: {told}")

    def possible_codes(self):
        """What the run may exit with: as if nothing had happened, or by the event."""
        name, _, target = self.event.partition(" ")
        codes = {0, HELD_LONG} if self.phase in ("stopping", "hook") else {0}
        if self.phase == "connecting":
            codes |= {UNAVAILABLE}  # the server is silent for as long as the event takes
        if name in ENDING and target != "holder":
            codes |= {-ENDING[name]}
        if name in ENDING and target == "tree" and self.phase == "hook":
            codes |= {UNCONFIRMED}  # the hook dies of it
        if name == "KILL":
            codes |= {NO_PROCESS} if target == "holder" else {-signal.SIGKILL}
            if self.phase == "hook":
                codes |= {UNCONFIRMED}
        if name == "STOP+CONT" and target in ("front", "holder", "group"):
            codes |= {LOST}
            # The front process leads the session here: when the last process of the group with a
            # parent outside of it ends, the kernel hangs up what is stopped.
            codes |= {-signal.SIGHUP} if self.terminal else set()
        if self.event in SERVER_EVENTS or self.event == "broken lock":
            codes |= {LOST}
        if self.event in ("silent", "gone", "restarted"):
            codes |= {UNAVAILABLE}
        if self.event == "fork fails":
            codes |= {NO_PROCESS, UNCONFIRMED, WITNESS_FAILED}
        if self.event == "hang-up":
            codes |= {-signal.SIGHUP}
        return codes

    def judge_left(self):
        end = time.monotonic() + LEFT_LIMIT
        while left := self.left():
            if time.monotonic() > end:
                raise Wrong(f"left: {left}")
            time.sleep(0.05)
        status = self.start(["status", self.key, "--exit-code"], stdout=subprocess.DEVNULL)
        if status.wait(PHASE_LIMIT) != 0:
            raise Wrong("left: the lock is not free")

    def left(self):
        """The processes of this cell: zombies, which have no environment, by their session. Reaps
        those that have ended and that this process has adopted."""
        found = []
        for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
            try:
                with open(f"/proc/{pid}/stat") as file:
                    state, parent, _, session = file.read().rpartition(")")[2].split()[:4]
                with open(f"/proc/{pid}/environ", "rb") as file:
                    has_cookie = f"{COOKIE}={self.id}".encode() in file.read().split(b"\0")
            except OSError:
                continue
            if not has_cookie and int(session) != self.run.pid or pid == os.getpid():
                continue
            if state == "Z" and int(parent) == os.getpid():
                os.waitpid(pid, os.WNOHANG)
            else:
                found.append(f"{command_name(pid)} ({state}) {pid}")
        return found

    def close(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.wait()
        for end in self.ends:
            os.close(end)
        # Those that are left of a violation.
        for one in self.left():
            self.send(int(one.split()[-1]), signal.SIGKILL)
        shutil.rmtree(self.directory)


class Results:
    def __init__(self):
        self.lock = threading.Lock()
        self.codes = collections.defaultdict(collections.Counter)
        self.wrong = []

    def add(self, cell, code):
        with self.lock:
            self.codes[cell.event, cell.phase][code] += 1

    def cells(self):
        return sum(sum(codes.values()) for codes in self.codes.values()) + len(self.wrong)


def play(store, directory, number, seed, shape, results):
    cell = Cell(store, directory, number, seed, shape)
    try:
        results.add(cell, cell.play())
    except Wrong as wrong:
        with open(cell.errors) as errors:
            results.wrong.append(f"{cell}: {wrong}\n{errors.read()}")
        print(f"matrix: {results.wrong[-1]}", file=sys.stderr, flush=True)
    except Exception as failure:
        raise RuntimeError(f"{cell}: {failure!r}") from failure
    finally:
        store.go_on()
        cell.close()


def print_table(results):
    print(f"{'event':18} " + " ".join(f"{phase:>14}" for phase in PHASES))
    for event in EVENTS:
        if not any(results.codes[event, phase] for phase in PHASES):
            continue
        row = []
        for phase in PHASES:
            codes = results.codes[event, phase]
            told = ",".join(f"{code}:{count}" for code, count in sorted(codes.items()))
            row.append(f"{told or '-':>14}")
        print(f"{event:18} " + " ".join(row))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cells", type=int, default=2000)
    parser.add_argument("--lanes", type=int, default=4, help="how many at the same time")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--phase", choices=PHASES, help="only this one")
    parser.add_argument("--event", choices=EVENTS, help="only this one")
    parser.add_argument("--store", choices=STORES, help="only this one")
    options = parser.parse_args()
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    print(f"matrix: seed {options.seed}", flush=True)
    chance = random.Random(options.seed)
    shapes = [
        shape
        for shape in ALL
        if options.phase in (None, shape[0])
        and options.event in (None, shape[1])
        and options.store in (None, shape[2])
    ]
    drawn = []
    while len(drawn) < options.cells:
        drawn += chance.sample(shapes, len(shapes))
    todo = list(enumerate(drawn[: options.cells]))[::-1]
    directory = tempfile.mkdtemp(prefix="rl-matrix.")
    os.chmod(directory, 0o755)
    results = Results()
    places = [os.path.join(directory, str(lane)) for lane in range(options.lanes)]
    for place in places:
        os.mkdir(place)
        os.chmod(place, 0o755)
    with contextlib.ExitStack() as stores:
        store_of = [stores.enter_context(contextlib.closing(Store(place))) for place in places]
        failures = play_all(
            lambda lane, _, item: play(
                store_of[lane], places[lane], item[0], options.seed, item[1], results
            ),
            todo,
            options.lanes,
            options.seed,
        )
    shutil.rmtree(directory)
    print_table(results)
    for failure in failures:
        print(f"matrix: {failure}", file=sys.stderr)
    print(f"matrix: {results.cells()} cells, {len(results.wrong)} wrong")
    is_complete = results.cells() == options.cells
    sys.exit(0 if is_complete and not results.wrong and not failures else 1)


if __name__ == "__main__":
    main()
