"""Contenders: each runs redlock-cli repeatedly, and records its messages and its end."""
import json
import os
import signal
import socket
import subprocess

from deployment import GUARDED, libc

# Seconds. Small, so that a run has many leases; only redlock-cli itself has a minimum ttl.
TTLS = (1.5, 2, 3)
GRACE = 0.2
# A ttl has room for a third of it, three server timeouts, grace and margin.
SERVER_TIMEOUTS_IN_A_TTL = 8
# The ttl of a contender that tries once and holds briefly: keys left by mistake would stay.
PROBE_TTL = 30
LONG_HOLD = 15
CLONE_NEWUTS = 0x04000000
# How often a front process has a foreign child, and therefore a shield.
SHIELDED = 0.25
# The name of the holder's other child (guard/tree_witness).
TREE_WITNESS = "3"
GUARDS = {"lock-holder": "holder", "lock-awaiter": "holder", "lock-shield": "shield"}
PR_SET_PDEATHSIG = 1
MANY_DESCRIPTORS = 4096
# The variable of a CI agent, which kills all processes that have it at the end of a job.
COOKIE = "RUNNER_TRACKING_ID"
BESIDE = ("plain", "plain", "stubborn", "daemon", "left")


def cookie_of(run_id):
    """Unique even beside another fault run on this machine."""
    return f"{os.getpid()}-{run_id}"


class Stream:
    """The reading end of a pipe."""

    def __init__(self):
        self.fd, self.theirs = os.pipe()
        os.set_blocking(self.fd, False)
        self.text = b""
        self.at_end = False

    def started(self):
        os.close(self.theirs)

    def read(self):
        """Reads the available data. -> whole lines"""
        while not self.at_end:
            try:
                data = os.read(self.fd, 65536)
            except BlockingIOError:
                break
            self.text += data
            self.at_end = not data
        *lines, self.text = self.text.split(b"\n")
        return lines

    def close(self):
        os.close(self.fd)


class Errors(Stream):
    """The stderr of a run, and the filler of its pipe when nothing reads it."""

    FILLER = b"\0"
    KEPT = 4000

    def read(self):
        super().read()
        self.text = self.text.replace(self.FILLER, b"")[-self.KEPT :]

    def fill(self):
        """Fills the pipe completely."""
        pipe = os.open(f"/proc/self/fd/{self.fd}", os.O_WRONLY | os.O_NONBLOCK)
        try:
            for size in (4096, 1):
                try:
                    while True:
                        os.write(pipe, self.FILLER * size)
                except BlockingIOError:
                    pass
        finally:
            os.close(pipe)


class Run:
    """One redlock-cli, from its start until its command's last process is dead."""

    def __init__(self, arena, contender, options):
        self.id = f"{contender.name}.{contender.count}"
        self.contender = contender
        self.arena = arena
        self.entered = False
        self.ended = False  # it has been waited for
        self.is_unread = False
        # The fault that affects it now or has ended it, or the scene for which it is spared.
        self.hit = "probe" if contender.probes else None
        self.events, self.status, self.tree = Stream(), Stream(), Stream()
        self.errors = Errors()
        witness = [arena.witness, arena.directory, arena.history.path, self.id, contender.key]
        ttl = options.pop("ttl")
        words = [arena.clock, arena.clock_file(contender.host), arena.program, "run", "-k", contender.key, "-S", arena.urls(contender.host)]
        words += ["--ttl", f"{ttl}s", "--grace", f"{GRACE}s"]
        words += arena.deployment.options
        timeout = min(ttl, max(TTLS)) / SERVER_TIMEOUTS_IN_A_TTL
        words += ["--server-timeout", f"{timeout}s", "--restart-guard", f"{arena.guard}s"]
        words += ["--events-fd", str(self.events.theirs), "--status-fd", str(self.status.theirs)]
        words += ["--unavailable-wait", f"{options.get('unavailable_wait', 3)}s"] + {
            "exclusive": [],
            "shared": ["--shared"],
            "slots": ["--slots", str(contender.slots)],
        }[contender.mode]
        words += ["-vv"] if options.get("talks") else []
        words += ["--descendants", "kill"] if options["beside"] == "left" else []
        # It must not skip a run, and closes a period all the same.
        words += ["--once-per", "1ms"] if contender.has_period else []
        words += ["-n"] if options["nonblock"] else ["--wait", f"{options['wait']}s"]
        hold = str(round(options["hold"] * 1000))
        words += ["--", *witness, contender.mode, hold, options["beside"]]
        theirs = [stream.theirs for stream in (self.events, self.status, self.tree)]
        # Before the start, because its witness may be faster than this process.
        arena.history.note(
            "start",
            id=self.id,
            host=contender.host,
            key=contender.key,
            mode=contender.mode,
            slots=contender.slots,
            nonblock=options["nonblock"],
            ttl=ttl,
            left=options["beside"] == "left",
        )
        self.process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self.errors.theirs,
            pass_fds=theirs,
            start_new_session=True,
            env={**arena.environment(contender.host), COOKIE: cookie_of(self.id)},
            preexec_fn=lambda: self.enter(options.get("shielded")),
        )
        for stream in (self.events, self.status, self.tree, self.errors):
            stream.started()
        self.pidfd = os.pidfd_open(self.process.pid)
        arena.watch(self.pidfd, self.take_exit)
        arena.watch(self.events.fd, self.take_events)
        arena.watch(self.tree.fd, self.take_tree)
        arena.watch(self.errors.fd, self.take_errors)

    def enter(self, shielded):
        enter_host(self.arena, self.contender.host)
        if shielded:
            bear_child()

    def processes(self):
        """The pids of front, shield, holder and command, by name, if they exist."""
        found = {"front": self.process.pid}
        for child in children(self.process.pid):
            name = GUARDS.get(command_name(child))
            if name:
                found[name] = child
        if "shield" in found:
            found.update(("holder", child) for child in children(found["shield"]))
        if "holder" in found:
            found.update(
                ("command", child)
                for child in children(found["holder"])
                if command_name(child) not in (TREE_WITNESS, *GUARDS)
            )
        return found

    def guards(self):
        """The pids of front and holder process, or only the former."""
        found = self.processes()
        return [found[name] for name in ("front", "holder") if name in found]

    def take_events(self):
        for line in self.events.read():
            event = json.loads(line)
            self.entered = self.entered or event["event"] == "acquired"
            self.arena.history.note("event", id=self.id, event=event)
        if self.events.at_end:
            self.arena.forget(self.events.fd)

    def take_errors(self):
        self.errors.read()
        if self.errors.at_end:
            self.arena.forget(self.errors.fd)

    def stop_reading_errors(self):
        self.is_unread = True
        self.arena.forget(self.errors.fd)
        self.errors.fill()

    def go_on_reading_errors(self):
        self.is_unread = False
        if self.contender.run is self and not self.errors.at_end:
            self.arena.watch(self.errors.fd, self.take_errors)

    def take_tree(self):
        self.tree.read()
        if self.tree.at_end:
            self.arena.forget(self.tree.fd)
            self.arena.history.note("dead", id=self.id)
            self.finish()

    def take_exit(self):
        """Handles the death of the front process. First checks the kernel's witness."""
        self.arena.forget(self.pidfd)
        self.tree.read()
        alive = not self.tree.at_end
        code = self.process.wait()
        self.take_events()
        reports = self.status.read()
        self.errors.read()
        said = self.errors.text.decode(errors="replace")[-2000:]
        self.arena.history.note(
            "exit",
            id=self.id,
            code=code if code >= 0 else None,
            signal=-code if code < 0 else None,
            status=json.loads(reports[0]) if reports else None,
            alive=alive,
            stderr=said,
        )
        self.ended = True
        self.finish()

    def finish(self):
        if not (self.ended and self.tree.at_end):
            return
        self.close()
        self.contender.run = None
        self.contender.finished(self)

    def abandon(self):
        """Kills its remaining processes."""
        for pid in self.guards():
            if not self.ended:
                os.kill(pid, signal.SIGKILL)
        self.close()

    def close(self):
        for fd in (self.events.fd, self.tree.fd, self.errors.fd, self.pidfd):
            self.arena.forget(fd)
        for stream in (self.events, self.status, self.tree, self.errors):
            stream.close()
        os.close(self.pidfd)


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return [*map(int, file.read().split())]
    except OSError:
        return []


def command_name(pid):
    try:
        with open(f"/proc/{pid}/comm") as file:
            return file.read().strip()
    except OSError:
        return None


def bear_child():
    """Gives the process a child that does not belong to redlock-cli, and ends with the process."""
    parent = os.getpid()
    if os.fork() == 0:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(0)
        os.closerange(0, MANY_DESCRIPTORS)
        os.execvp("sleep", ["sleep", "infinity"])


class Contender:
    """A contender for a key, in one mode, on one host."""

    def __init__(
        self,
        arena,
        name,
        key,
        mode,
        host,
        slots=None,
        probes=False,
        hold=None,
        has_period=False,
        asked=False,
    ):
        self.arena = arena
        self.name = name
        self.key = key
        self.mode = mode
        self.host = host
        self.slots = slots
        self.probes = probes
        self.hold = hold
        self.has_period = has_period
        self.asked = asked  # its runs may be stopped, and their locks be broken
        self.count = 0
        self.run = None

    def start(self, options=None):
        self.count += 1
        self.run = Run(self.arena, self, options or self.draw())
        return self.run

    def draw(self):
        draw = self.arena.random
        if self.probes:
            common = {"ttl": PROBE_TTL, "nonblock": True, "wait": 0}
            return {**common, "hold": 0.02, "beside": "plain"}
        return {
            "ttl": draw.choice(TTLS),
            "nonblock": draw.random() < 0.15,
            "wait": draw.choice((1, 8, 20)),
            "hold": self.hold
            or draw.choice((0.02, 0.1, 0.3, 0.8, 4 if self.mode == "exclusive" else 2)),
            "beside": draw.choice(BESIDE),
            "shielded": draw.random() < SHIELDED,
            "talks": draw.random() < 0.3,
        }

    def finished(self, _run):
        if not self.arena.is_closing:
            self.arena.after(self.arena.random.uniform(0.01, 0.6), self.start_again)

    def start_again(self):
        if not self.arena.is_closing and self.run is None:
            self.start()


class Single(Contender):
    """A contender that runs once."""

    def finished(self, run):
        self.arena.contenders.remove(self)


def enter_host(arena, number):
    """Moves the process to a host of that name, if it is root."""
    arena.deployment.enter_host(number)
    if os.geteuid() == 0 and libc.unshare(CLONE_NEWUTS) == 0:
        socket.sethostname(f"host{number}")


def usual_contenders(arena, hosts):
    """Exclusive contenders, readers and writers, slots, long holders: each kind has its own key."""
    many = [("x", "exclusive", None)] * 4
    many += [("rw", "shared", None)] * 2 + [("rw", "exclusive", None)]
    many += [("slots", "slots", 2)] * 3
    contenders = [
        Contender(arena, f"{key}{number}", key, mode, number % hosts, slots)
        for number, (key, mode, slots) in enumerate(many)
    ]
    contenders.append(Contender(arena, "long", "long", "exclusive", 0, hold=LONG_HOLD))
    contenders += [
        Contender(arena, f"daily{host}", "daily", "exclusive", host, has_period=True)
        for host in range(hosts)
    ]
    # Each alone at its key.
    contenders += [
        Contender(arena, key, key, "exclusive", host, has_period=True, asked=True, hold=3)
        for host, key in enumerate(f"asked{number}" for number in range(hosts))
    ]
    # Its ttl would be above the guard of the others.
    if arena.votes < GUARDED:
        contenders.append(Contender(arena, "probe", "probe", "exclusive", 1, probes=True))
        # It finds keys that the other leaves; both leave the key free most of the time.
        contenders.append(Contender(arena, "finder", "probe", "exclusive", 0, hold=0.02))
    return contenders
