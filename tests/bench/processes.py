"""The processes that are measured, and the machine that they run on."""
import os
import platform
import re
import resource
import subprocess
import time

START_TIMEOUT = 300  # seconds


def environment(**more):
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": "/nonexistent",
        "LC_ALL": "C.UTF-8",
        # The servers have just been started; with the guard none of five would have a vote.
        "REDLOCK_RESTART_GUARD": "0",
        **more,
    }


def wait_until(holds, what):
    deadline = time.monotonic() + START_TIMEOUT
    while not holds():
        if time.monotonic() > deadline:
            raise SystemExit(f"in {START_TIMEOUT} s not: {what}")
        time.sleep(0.002)


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


def memory_available():
    with open("/proc/meminfo", encoding="ascii") as meminfo:
        return int(re.search(r"^MemAvailable:\s+(\d+)", meminfo.read(), re.M)[1])


def cpu_ticks(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def machine(program):
    """-> what this is measured on, in pairs"""
    with open("/proc/cpuinfo", encoding="utf-8") as cpuinfo:
        text = cpuinfo.read()
    model = re.search(r"^model name\s*: (.*)", text, re.M)
    virtual = ", virtual" if re.search(r"^flags.*\bhypervisor\b", text, re.M) else ""
    system = platform.freedesktop_os_release().get("PRETTY_NAME", "")
    told = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
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
    begin, ticks = time.perf_counter(), [cpu_ticks(pid) for pid in everything]
    time.sleep(seconds)
    sent, calls = server.commands()
    ticks = [after - before for before, after in zip(ticks, map(cpu_ticks, everything))]
    watched = time.perf_counter() - begin
    clock = os.sysconf("SC_CLK_TCK")
    return {
        "commands a second": sent / watched,
        "calls of scripts a second": calls / watched,
        "processor of all guards, %": 100 * sum(ticks[:-1]) / clock / watched,
        "processor of the server, %": 100 * ticks[-1] / clock / watched,
    }
