#!/usr/bin/env python3
"""Measures redlock-cli against its peers, as ratios within one run (absolute times mean nothing on
a shared machine).

Usage: tests/bench/run.py [PATH/TO/redlock-cli] [ROUNDS]

Every round times each contestant once, in turn, so that a machine that gets slower slows them all;
what counts is the median of the ratios round by round. Prints a table with the budget of each line;
exits 1 when one is over its budget.
"""
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

PROGRAM = sys.argv[1] if len(sys.argv) > 1 else "build/release/src/redlock-cli"
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 150

# The servers have just been started; with the guard none of five would have a vote for a minute.
os.environ["REDLOCK_RESTART_GUARD"] = "0"

RECIPE = """
token=$$-$RANDOM
[ "$(redis-cli -s "$1" SET bench-recipe $token NX PX 30000)" = OK ] || exit 1
true
redis-cli -s "$1" EVAL 'if redis.call("get",KEYS[1]) == ARGV[1] then
  return redis.call("del",KEYS[1])
end' 1 bench-recipe $token >/dev/null
"""


class Server:
    """A private redis-server on a unix socket."""

    def __init__(self, directory, number):
        self.socket = f"{directory}/{number}.sock"
        self.process = subprocess.Popen(
            [
                "redis-server",
                "--port",
                "0",
                "--unixsocket",
                self.socket,
                "--save",
                "",
                "--dir",
                directory,
            ],
            stdout=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 20
        while (
            subprocess.run(["redis-cli", "-s", self.socket, "PING"], capture_output=True).stdout
            != b"PONG\n"
        ):
            if time.monotonic() > deadline:
                raise SystemExit("redis-server did not start")

    @property
    def url(self):
        return f"unix://{self.socket}"


def timed(command):
    begin = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def ratio(contestant, peer):
    """The median, over the rounds, of contestant / peer."""
    timed(contestant), timed(peer)
    return statistics.median(timed(contestant) / timed(peer) for _ in range(ROUNDS))


def held_memory(url):
    """PSS in MiB of front and holder while a command runs."""
    run = subprocess.Popen(
        [PROGRAM, "run", "-S", url, "-k", "bench-memory", "--", "sh", "-c", "echo up; read line"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    run.stdout.readline()
    with open(f"/proc/{run.pid}/task/{run.pid}/children", encoding="ascii") as children:
        guards = [run.pid] + [int(pid) for pid in children.read().split()]
    total = 0
    for pid in guards:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as rollup:
            total += int(re.search(r"^Pss:\s+(\d+)", rollup.read(), re.M).group(1))
    run.communicate(b"\n")
    return total / 1024


def hand_over(server, directory, waiting=50):
    """The median time in ms from the release of a lock to the start of the next one's command, with
    so many in line, who must be served in
    the order in which they came."""
    holder = subprocess.Popen(
        [
            PROGRAM,
            "run",
            "-S",
            server.url,
            "-k",
            "bench-line",
            "--",
            "sh",
            "-c",
            "echo up; read line",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    holder.stdout.readline()

    def queued():
        queue = subprocess.run(
            ["redis-cli", "-s", server.socket, "ZCARD", "redlock:queue:{bench-line}"],
            capture_output=True,
            check=True,
        )
        return int(queue.stdout)

    times, runs = [], []
    for number in range(waiting):
        times.append(f"{directory}/time-{number}")
        with open(times[-1], "wb") as out:
            runs.append(
                subprocess.Popen(
                    [
                        PROGRAM,
                        "run",
                        "-q",
                        "-S",
                        server.url,
                        "-k",
                        "bench-line",
                        "--",
                        "date",
                        "+%s%N",
                    ],
                    stdout=out,
                )
            )
        while queued() <= number:
            time.sleep(0.002)
    holder.communicate(b"\n")
    for run in runs:
        run.wait()
    served = [int(open(name, encoding="ascii").read()) for name in times]
    if served != sorted(served):
        raise SystemExit("not served in the order in which they came")
    # Between two starts lie one command and one hand-over.
    command = statistics.median(timed(["date", "+%s%N"]) for _ in range(ROUNDS)) * 1e3
    return (
        statistics.median(after - before for before, after in zip(served, served[1:])) / 1e6
        - command
    )


def main():
    directory = tempfile.mkdtemp(prefix="rl.")
    servers = []
    try:
        servers = [Server(directory, number) for number in range(5)]
        one, five = servers[0].url, ",".join(server.url for server in servers)

        def run(urls):
            return [PROGRAM, "run", "-S", urls, "-k", "bench", "--", "true"]

        rows = [
            (
                "run -- true / flock f true",
                ratio(run(one), ["flock", f"{directory}/f", "true"]),
                1.5,
            ),
            (
                "run -- true / the redis-cli recipe",
                ratio(run(one), ["bash", "-c", RECIPE, "bash", servers[0].socket]),
                0.25,
            ),
            ("five servers / one server", ratio(run(five), run(one)), 1.3),
        ]
        alone = ",".join(server.url for server in servers[:3])
        alive = statistics.median(timed(run(five)) for _ in range(ROUNDS))
        for server in servers[3:]:
            server.process.send_signal(19)
        silent = statistics.median(timed(run(five)) for _ in range(ROUNDS))
        for server in servers[3:]:
            server.process.send_signal(18)
        rows.append(("two of five silent / all five alive", silent / alive, 1.3))
        rows.append(("hand-over with 50 in line, ms", hand_over(servers[0], directory), 3.0))
        rows.append(("memory of front and holder, MiB", held_memory(alone), 5.0))
    finally:
        for server in servers:
            server.process.send_signal(18)
            server.process.terminate()
            server.process.wait()
        shutil.rmtree(directory)
    over = 0
    for name, value, budget in rows:
        verdict = "ok" if value <= budget else "OVER"
        over += value > budget
        print(f"{name:40} {value:6.2f}   budget {budget:5.2f}   {verdict}")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
