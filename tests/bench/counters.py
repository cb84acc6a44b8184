"""Counts what a program does: system calls, page faults, instructions. None of these depends on
how long anything takes; what does, is kept apart (see Strace)."""
import ctypes
import glob
import os
import re
import shutil
import subprocess

UNFINISHED = re.compile(r"(.*) <unfinished \.\.\.>$")
RESUMED = re.compile(r"<\.\.\. \w+ resumed>(.*)")
NAME = re.compile(r"\w+")
FOUND_NOTHING = re.compile(r"= (-1 (EAGAIN|EINTR)|\? ERESTART)")
# How often a process waits depends on how much has come in the meantime; so does all that goes with
# waiting.
WAITING = {"poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait", "epoll_pwait2"}
WAITING |= {"restart_syscall", "timerfd_settime"}


class Started:
    """A process, and what it and its children used once it has ended."""

    def __init__(self, command, environment, **pipes):
        self.command = command
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL} | pipes
        self.process = subprocess.Popen(command, env=environment, **pipes)

    def end(self):
        """Waits for it. Fails unless it exits with 0. -> resource usage"""
        _, status, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        if self.process.returncode:
            raise SystemExit(f"exit status {self.process.returncode}: {' '.join(self.command)}")
        return usage


class Plain:
    """Counts nothing."""

    def __init__(self, directory, environment):
        self.directory = directory
        self.environment = environment
        self.started = []

    def start(self, *command):
        process = Started([*self.prefix(), *command], self.environment)
        self.started.append(process)
        return process

    def prefix(self):
        return []

    def file(self):
        """For what the next process is counted in."""
        return f"{self.directory}/count-{len(self.started)}"

    def files(self):
        return sorted(glob.glob(f"{self.directory}/count-*"))

    @staticmethod
    def missing():
        """Why this cannot count here; None if it can."""

    def take(self):
        """-> what was counted, by its name"""
        return {}


class Faults(Plain):
    """Page faults. How many there are in the files of a program depends on how large the pieces are
    in which the system keeps them in memory; of files in /dev/shm each page is one. So the program
    and its libraries are copied there: `copy_program`."""

    def __init__(self, directory, environment, program, copies):
        super().__init__(directory, dict(environment, LD_LIBRARY_PATH=copies))
        self.program = program
        self.copy = f"{copies}/{os.path.basename(program)}"
        self.faults = 0

    @staticmethod
    def missing():
        try:
            flags = os.statvfs("/dev/shm").f_flag
        except OSError:
            return "there is no /dev/shm"
        return "/dev/shm does not execute programs" if flags & os.ST_NOEXEC else None

    @staticmethod
    def copy_program(program, directory):
        libraries = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
        for path in [program, *re.findall(r"=> (/\S+)", libraries)]:
            shutil.copy(path, directory)

    def start(self, *command):
        process = super().start(*(self.copy if word == self.program else word for word in command))
        wait = process.end

        def end():
            usage = wait()
            self.faults += usage.ru_minflt + usage.ru_majflt

        process.end = end
        return process

    def take(self):
        return {"faults": self.faults}


class Strace(Plain):
    """System calls of the program's own processes, each counted once, under one of three names:

    loader   until the program's own code runs
    waits    that wait, or find nothing there to be read, and what comes with these; their number
             depends on chance
    calls    all others

    What another program does that is executed in such a process does not count.
    """

    @staticmethod
    def missing():
        if not shutil.which("strace"):
            return "strace is not installed"
        probe = subprocess.run(["strace", "-f", "-o", "/dev/null", "true"], capture_output=True)
        return "strace cannot run here" if probe.returncode else None

    def prefix(self):
        return ["strace", "-f", "-qq", "-e", "signal=none", "-s", "64", "-o", self.file()]

    def take(self):
        counts = {"calls": 0, "loader": 0, "waits": 0}
        for name in self.files():
            with open(name, encoding="utf-8", errors="replace") as trace:
                count_calls(trace, counts)
        return counts


def count_calls(trace, counts):
    unfinished, process, cache, ours = {}, {}, {}, set()
    first = None
    for line in trace:
        pid, _, call = line.rstrip("\n").partition(" ")
        call = call.strip()
        if call.startswith("+++"):
            continue
        if begun := UNFINISHED.match(call):
            unfinished[pid] = begun[1]
            continue
        if resumed := RESUMED.match(call):
            call = unfinished.pop(pid, "") + resumed[1]
        name = NAME.match(call)[0]
        succeeded = "= -1 " not in call
        if name == "execve" and succeeded:
            # The first one is the program; a later one is another.
            process[pid] = "loader" if first is None else "other"
            first = first or pid
        state = process.get(pid, "own")
        if state == "loader":
            counts["loader"] += 1
            # The loader is done when it forgets its list of libraries.
            if "/etc/ld.so.cache" in call and succeeded:
                cache[pid] = call.rpartition(" ")[2]
            elif name == "mmap" and pid in cache and f", {cache[pid]}, 0)" in call:
                cache[pid] = call.rpartition(" ")[2]
            elif name == "munmap" and f"({cache.get(pid)}," in call:
                process[pid] = "own"
        elif state == "own":
            waits = name in WAITING or FOUND_NOTHING.search(call) or "EPOLL_CTL_MOD" in call
            counts["waits" if waits else "calls"] += 1
    if "loader" in process.values():
        raise SystemExit("strace does not show where the loader ends")


class Perf(Plain):
    """Instructions in user mode of all processes, the command's too."""

    @staticmethod
    def missing():
        if not shutil.which("perf"):
            return "perf is not installed"
        probe = ["perf", "stat", "-x,", "-e", "instructions:u", "true"]
        told = subprocess.run(probe, capture_output=True, text=True)
        if re.match(r"\d+,", told.stderr.strip()):
            return None
        return "perf has no counter of instructions here"

    def prefix(self):
        return ["perf", "stat", "-x,", "-e", "instructions:u", "-o", self.file(), "--"]

    def take(self):
        total = 0
        for name in self.files():
            with open(name, encoding="utf-8") as told:
                total += int(re.search(r"^(\d+),", told.read(), re.M)[1])
        return {"instructions": total}


class Callgrind(Plain):
    """The same, by simulation: slow, and it shows no instructions of the kernel either."""

    @staticmethod
    def missing():
        return None if shutil.which("valgrind") else "valgrind is not installed"

    def prefix(self):
        # A process that is forked goes on with the count of its parent; so that is written down,
        # and begins anew, before each fork.
        return ["valgrind", "--quiet", "--tool=callgrind", "--trace-children=yes"] + [
            "--dump-before=fork",
            f"--callgrind-out-file={self.file()}.%p",
        ]

    def take(self):
        total = 0
        for name in self.files():
            with open(name, encoding="utf-8") as told:
                total += max(map(int, re.findall(r"^(?:totals|summary): (\d+)", told.read(), re.M)))
        return {"callgrind": total}


def take_host_name():
    """Gives this program and what it starts a host name of their own, where that is allowed."""
    libc = ctypes.CDLL(None)
    name = b"bench-host"
    if libc.unshare(0x04000000) == 0:  # CLONE_NEWUTS
        libc.sethostname(name, len(name))
