"""The processes that are measured, and the machine that they run on."""
import glob
import os
import platform
import re
import resource
import subprocess
import time

TIMEOUT = 300  # seconds, for all that is waited for
# In place of an exit status.
DID_NOT_END = "did not end"


def environment(**more):
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": "/nonexistent",
        "LC_ALL": "C.UTF-8",
        # The servers have just been started; with the guard none of five would have a vote.
        "REDLOCK_RESTART_GUARD": "0",
        **more,
    }


def comes_true(holds):
    """-> whether it does in time"""
    deadline = time.monotonic() + TIMEOUT
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.002)
    return True


def wait_until(holds, what):
    if not comes_true(holds):
        raise SystemExit(f"in {TIMEOUT} s not: {what}")


def end_of(process, deadline):
    """-> its exit status; what runs on is killed"""
    try:
        return process.wait(max(0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return DID_NOT_END


def guards(fronts):
    """-> the front processes, and the holder process of each"""
    found = []
    for pid in fronts:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as children:
            found += [pid, *map(int, children.read().split())]
    return found


def guards_memory(fronts):
    """-> the PSS of both guards of each, in KiB"""
    total = 0
    for pid in guards(fronts):
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as rollup:
            total += int(re.search(r"^Pss:\s+(\d+)", rollup.read(), re.M)[1])
    return total


def descriptors(pid):
    """-> how many it has open"""
    return len(os.listdir(f"/proc/{pid}/fd"))


def memory_available():
    with open("/proc/meminfo", encoding="ascii") as meminfo:
        return int(re.search(r"^MemAvailable:\s+(\d+)", meminfo.read(), re.M)[1])


def cpu_seconds(pid):
    """-> what all its threads ran. In nanoseconds: clock ticks are longer than a guard runs in half
    a minute. Source: the kernel's sched-stats.rst, /proc/PID/schedstat."""
    total = 0
    for path in glob.glob(f"/proc/{pid}/task/*/schedstat"):
        with open(path, encoding="ascii") as schedstat:
            total += int(schedstat.read().split()[0])
    return total / 1e9


def version_text(program):
    return subprocess.run([program, "--version"], capture_output=True, text=True).stdout


def refuse_changes(program):
    """What is published comes from a commit, which others can build."""
    if "+changes" in version_text(program):
        raise SystemExit(f"--document: {program} has changes that are not committed")


def machine(program):
    """-> what this is measured on, in pairs"""
    with open("/proc/cpuinfo", encoding="utf-8") as cpuinfo:
        text = cpuinfo.read()
    model = re.search(r"^model name\s*: (.*)", text, re.M)
    virtual = ", virtual" if re.search(r"^flags.*\bhypervisor\b", text, re.M) else ""
    system = platform.freedesktop_os_release().get("PRETTY_NAME", "")
    told = version_text(program)
    commit = re.search(r"^commit: (\S+)", told, re.M)
    redis = re.search(r"v=(\S+)", subprocess.getoutput("redis-server --version"))
    gibibytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return {
        "processor": f"{os.cpu_count()} × {model[1] if model else platform.machine()}{virtual}",
        "memory": f"{gibibytes:.0f} GiB",
        "system": f"{system}, Linux {platform.release()}, {' '.join(platform.libc_ver())}",
        "redlock-cli": f"{told.split()[1]}, commit {commit[1] if commit else 'unknown'}",
        "redis-server": redis[1] if redis else "",
    }


def raise_descriptor_limit():
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 1 << 16), most))


def watch(server, pids, seconds):
    """-> what the server is asked and what time they all take: rates over so many seconds"""
    everything = [*pids, server.process.pid]
    server.forget_commands()
    begin, before = time.perf_counter(), [cpu_seconds(pid) for pid in everything]
    time.sleep(seconds)
    sent, calls = server.commands()
    ran = [cpu_seconds(pid) - earlier for pid, earlier in zip(everything, before)]
    watched = time.perf_counter() - begin
    return {
        "commands a second": sent / watched,
        "calls of scripts a second": calls / watched,
        "processor of all guards, %": 100 * sum(ran[:-1]) / watched,
        "processor of the server, %": 100 * ran[-1] / watched,
    }


class Holders:
    """Each has a lock of its own at one server, and `cat` as its command, until `let_go`."""

    def __init__(self, server, start):
        """start(key, command, stdin) -> a process that holds the lock while the command runs"""
        self.server, self.start, self.processes = server, start, []
        self.read_end, self.write_end = os.pipe()

    def grow(self, number):
        """Waits until so many hold."""
        while len(self.processes) < number:
            key = f"many-{len(self.processes)}"
            self.processes.append(self.start(key, ["cat"], self.read_end))
        held = ("EVAL", "return #redis.call('KEYS', 'many-*')", "0")
        wait_until(lambda: self.server.ask(*held) == number, f"{number} hold a lock")

    def watch(self, seconds):
        """-> what they cost"""
        fronts = [process.pid for process in self.processes]
        wait_until(lambda: len(guards(fronts)) == 2 * len(fronts), "all have two guards")
        time.sleep(1)  # so that none is still about to watch over its command
        all_guards = guards(fronts)
        return {
            **watch(self.server, all_guards, seconds),
            "PSS of both guards, KiB": guards_memory(fronts) / len(fronts),
            "descriptors of both guards": sum(map(descriptors, all_guards)) / len(fronts),
        }

    def let_go(self):
        os.close(self.read_end)
        os.close(self.write_end)
