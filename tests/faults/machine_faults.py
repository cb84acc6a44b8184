"""Faults of the machine that contenders run on."""
import errno
import fcntl
import os
import subprocess

from deployment import HOSTS, die_with_parent
from fault import Fault, NotInjected


class StepClock(Fault):
    """A step of the wall clock of one host's contenders."""

    kind = "clock-step"

    def choose(self):
        self.host = self.random.randrange(HOSTS)
        return {"hosts": [self.host]}

    def begin(self):
        self.arena.step_clock(self.host, self.random.choice((-3600, -5, -0.5, 0.5, 5, 3600)))

    def end(self):
        self.arena.step_clock(self.host, 0)


class BusyLoops(Fault):
    kind = "busy-loops"
    shortest, longest = 0.3, 1.5

    def choose(self):
        return {"hosts": list(range(HOSTS))}

    def begin(self):
        self.loops = [
            subprocess.Popen(["sh", "-c", "while :; do :; done"], preexec_fn=die_with_parent)
            for _ in range(2 * os.cpu_count())
        ]

    def end(self):
        for loop in self.loops:
            loop.kill()
            loop.wait()


class ControlGroup(Fault):
    """Limits the resources of a run's processes by a control group."""

    controller = None
    waiting = False

    def choose(self):
        runs = [
            run
            for run in self.arena.runs()
            if run.hit is None and not run.ended and run.entered != self.waiting
        ]
        if not runs:
            raise NotInjected("no such process")
        self.run = self.random.choice(runs)
        self.group = self.make_group()
        self.run.hit = self.kind
        return {"ids": [self.run.id]}

    def make_group(self):
        base = f"/sys/fs/cgroup/{self.controller}"
        name = f"{base}/redlock-faults-{os.getpid()}-{self.run.id}"
        try:
            if not os.path.isdir(base):
                raise NotInjected(f"no {self.controller} groups of version 1")
            os.mkdir(name)
        except OSError as problem:
            raise NotInjected(f"cannot make a control group: {problem.strerror}") from None
        return name

    def write(self, file, value):
        with open(f"{self.group}/{file}", "w", encoding="ascii") as opened:
            opened.write(str(value))

    def begin(self):
        """A guard with a real-time priority cannot be moved to a group without real-time budget."""
        moved = 0
        for pid in descendants(self.run.process.pid):
            try:
                self.write("cgroup.procs", pid)
                moved += 1
            except OSError as problem:
                if problem.errno not in (errno.ESRCH, errno.EINVAL):
                    raise NotInjected(f"cannot move a process: {problem.strerror}") from None
        if not moved:
            raise NotInjected("no process can be moved")
        self.limit()

    def end(self):
        """Moves the live processes back to this process's group."""
        try:
            with open(f"{self.group}/cgroup.procs", encoding="ascii") as file:
                pids = file.read().split()
            for pid in pids:
                try:
                    with open(f"{self.ours()}/cgroup.procs", "w", encoding="ascii") as file:
                        file.write(pid)
                except OSError as problem:
                    if problem.errno != errno.ESRCH:
                        raise
            os.rmdir(self.group)
        except OSError:
            # A process has ended or started meanwhile: retry later.
            self.arena.after(0.2, self.end)

    def ours(self):
        with open("/proc/self/cgroup", encoding="ascii") as file:
            for line in file:
                _, controllers, path = line.strip().split(":", 2)
                if self.controller in controllers.split(","):
                    return f"/sys/fs/cgroup/{self.controller}{path}"
        return f"/sys/fs/cgroup/{self.controller}"


class CpuQuota(ControlGroup):
    """A tenth of a CPU for all processes of a run without a real-time priority."""

    kind = "cpu-quota"
    controller = "cpu"

    def limit(self):
        self.write("cpu.cfs_period_us", 50000)
        self.write("cpu.cfs_quota_us", 5000)


class FullProcessTable(ControlGroup):
    """A waiter that cannot fork when its turn comes."""

    kind = "process-table"
    controller = "pids"
    waiting = True

    def limit(self):
        self.write("pids.max", 1)


class FullDisk(Fault):
    """A full disk, only for local: in a file system of its own."""

    kind = "disk-full"

    def choose(self):
        local = self.arena.deployment
        if not local.is_mounted:
            raise NotInjected("no file system of our own")
        self.path = os.path.join(local.place, "fill")
        if os.path.exists(self.path):
            raise NotInjected("it is full")
        return {"hosts": list(range(HOSTS)), "servers": [0]}

    def begin(self):
        with open(self.path, "wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"x" * 4096)
            except OSError as problem:
                if problem.errno != errno.ENOSPC:
                    raise

    def end(self):
        os.unlink(self.path)


class HeldFiles(Fault):
    """Another process holds the locks of the lock files."""

    kind = "file-lock"
    shortest, longest = 0.1, 2

    def choose(self):
        return {"hosts": list(range(HOSTS)), "servers": [0]}

    def begin(self):
        self.fds = []
        for path in self.arena.deployment.files():
            if os.path.isfile(path):
                fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
                self.fds.append(fd)
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    pass

    def end(self):
        for fd in self.fds:
            os.close(fd)


def descendants(pid):
    found = [pid]
    for one in found:
        try:
            with open(f"/proc/{one}/task/{one}/children", encoding="ascii") as file:
                found += map(int, file.read().split())
        except OSError:
            pass
    return found


MACHINE_FAULTS = [StepClock, BusyLoops, CpuQuota, FullProcessTable]
LOCAL_FAULTS = [FullDisk, HeldFiles]
