"""Pairs of acquire and release at several servers, for minutes, and what grows there."""
import subprocess
import threading
import time

from processes import DID_NOT_END, TIMEOUT, cpu_seconds, descriptors, environment

WORKERS = 16
TTL = 30  # seconds, redlock-cli's default
# How long connections may take to their end after the last pair.
SETTLE = 10  # seconds
# What acquires and releases by hand leave at a server: fence counters, and tombstones for as long
# as the lease would have lasted.
LEFT_BEHIND = {
    f"redlock:{name}:{{pair-{number}}}"
    for name in ("fence", "released")
    for number in range(WORKERS)
}
# By how much a server's figure may be multiplied.
MEMORY = "memory, KiB"
GROWTH = {MEMORY: 1.05, "descriptors": 1, "keys of no pair": 1}


class Pairs:
    """Acquires and releases by so many workers, each with a lock of its own at all servers."""

    def __init__(self, program, directory, servers, a_minute, minutes):
        self.program, self.directory, self.servers = program, directory, servers
        self.a_minute, self.minutes = a_minute, minutes
        self.due = iter(range(a_minute * minutes))
        self.lock, self.failed, self.done = threading.Lock(), [], 0
        # Samples are taken while no worker has a place. Workers that are never idle would not leave
        # all of them, but for the entrance.
        self.entrance, self.places = threading.Lock(), threading.Semaphore(WORKERS)
        self.samples = []  # for each minute, of each server

    def command(self, number, command, *more):
        """-> its exit status"""
        urls = ",".join(server.unix_url for server in self.servers)
        token = f"{self.directory}/token-{number}"
        place = ["-q", "-S", urls, "-k", f"pair-{number}", "--token-file", token]
        try:
            return subprocess.run(
                [self.program, command, *place, *more],
                env=environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                timeout=TIMEOUT,
            ).returncode
        except subprocess.TimeoutExpired:
            return DID_NOT_END

    def pair(self, number):
        """-> whether all is well"""
        for command, *more in (("acquire", "--ttl", f"{TTL}s"), ("release",)):
            status = self.command(number, command, *more)
            if status:
                self.failed.append((command, status))
                return False
        return True

    def work(self, number):
        while True:
            with self.lock:
                turn = next(self.due, None)
            if turn is None:
                return
            time.sleep(max(0, self.begin + turn * 60 / self.a_minute - time.monotonic()))
            with self.entrance:
                self.places.acquire()
            try:
                if not self.pair(number):
                    return
                with self.lock:
                    self.done += 1
            finally:
                self.places.release()

    def run(self):
        """-> a row for each minute"""
        before = {"pairs": 0, "ran": self.servers_ran()}
        self.begin = before["at"] = time.monotonic()
        # Daemons: what ends this program does not wait for them.
        workers = [
            threading.Thread(target=self.work, args=(number,), daemon=True)
            for number in range(WORKERS)
        ]
        for worker in workers:
            worker.start()
        rows = []
        for minute in range(1, self.minutes + 1):
            time.sleep(max(0, self.begin + 60 * minute - time.monotonic()))
            self.pause()
            after = {"pairs": self.done, "ran": self.servers_ran(), "at": time.monotonic()}
            self.samples.append(self.sample())
            self.places.release(WORKERS)
            share = (after["ran"] - before["ran"]) / (after["at"] - before["at"])
            rows.append(
                {
                    "minute": minute,
                    "pairs": after["pairs"] - before["pairs"],
                    "processor of a server, %": 100 * share / len(self.servers),
                    "keys of all servers": self.sum_of("keys"),
                    "descriptors of all servers": self.sum_of("descriptors"),
                    "memory of all servers, KiB": self.sum_of(MEMORY),
                }
            )
            before = after
        for worker in workers:
            worker.join()
        return rows

    def servers_ran(self):
        return sum(cpu_seconds(server.process.pid) for server in self.servers)

    def sum_of(self, what):
        return sum(figures[what] for figures in self.samples[-1])

    def pause(self):
        """Waits until no pair is under way; none begins."""
        with self.entrance:
            for _ in range(WORKERS):
                self.places.acquire()

    def sample(self):
        """-> of each server what must not grow"""
        deadline = time.monotonic() + SETTLE
        while time.monotonic() < deadline and any(
            int(server.info()["connected_clients"]) > 1 for server in self.servers
        ):
            time.sleep(0.02)
        time.sleep(0.1)  # for the connections of these questions
        found = []
        for server in self.servers:
            open_now = descriptors(server.process.pid)
            keys = server.ask("KEYS", "*")
            found.append(
                {
                    "keys": len(keys),
                    "keys of no pair": len(set(keys) - LEFT_BEHIND),
                    "descriptors": open_now,
                    MEMORY: server.memory(),
                }
            )
        return found

    def growth(self):
        """-> what grew, between the first minute and the last"""
        found = []
        for number, samples in enumerate(zip(*self.samples)):
            first, last = samples[0], samples[-1]
            found += [
                f"server {number}: {what}: {first[what]:.0f} after the first minute,"
                f" {last[what]:.0f} after the last"
                for what, factor in GROWTH.items()
                if last[what] > factor * first[what]
            ]
        return found
