#!/usr/bin/python3
"""Stops a `run` from another host at random moments of its life, and asks the kernel whether
anything of it lived when its lock went to the next.

usage: stops.py [--replace] [--rounds N] [--lanes N] [--servers N]... [--seed N]

Each round: a run whose command leaves a child that ignores TERM and one in a session of its own;
all inherit a shared flock(2) on a witness file. Another run waits for the same key, and tries to
have that flock exclusively, without waiting: what still holds it outlived the lock, an overlap.
Meanwhile `stop` asks from a third network. Each host and each server has a network of its own, so
this needs root.

Beside overlaps it compares what the three say: `stop` exits with 0, or with 79 where the next run
had the lock by then; a run that it stopped has the result `stopped`, the exit code of its command
and one event `stopping` with why, by whom and the reason, and no other has; and then `stop` says
`stopped` as well.

With --replace the next ones are up to ten runs that come at once, from both hosts, and all have
`--replace`. Each takes the flock exclusively, without waiting. A run that was replaced tells so as
above, with why `replaced`; one that was superseded exits with 75 and ran nothing; and the last one,
by its fence, ends by itself.

Prints a line for each number of servers, with what came of the rounds.

Needs REDLOCK_CLI: the path of the program. Exit status: 0 when nothing was wrong, else 1.
"""
import argparse
import collections
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

from lanes import play_all
from namespaces import NamespaceServers

TTL, TIMEOUT, GRACE = "2s", "200ms", "200ms"
# Servers of a busy machine may be late; a run that therefore loses its lock exits with 79.
STOP_TIMEOUT = "4s"
LOST = 79
LIMIT = 60
REASON = "called off"
# $1: the witness. $2: how long it works.
COMMAND = """exec 9<"$1"; flock -s 9
setsid sleep 1000 & sh -c 'trap "" TERM; sleep 1000' & echo "$REDLOCK_FENCE"; sleep "$2" """
TERM = 128 + 15
BUSY = 75
MOST_COMERS = 10
OVERLAP = 3
REPLACING = f"""exec 9<"$1"; flock -n -x 9 || exit {OVERLAP}
setsid sleep 1000 & sh -c 'trap "" TERM; sleep 1000' & echo "$REDLOCK_FENCE"; sleep "$2" """


class Wrong(Exception):
    """A violation of the promise."""


class Round:
    def __init__(self, deployment, directory, lane, chance):
        self.deployment, self.random = deployment, chance
        self.key = f"stops{lane}"
        self.directory = directory
        self.lock = ("-k", self.key, "--ttl", TTL, "--grace", GRACE)
        self.witness = self.file("witness")
        open(self.witness, "a").close()

    def file(self, name):
        return os.path.join(self.directory, f"{self.key}.{name}")

    def words(self, host, *words):
        network = self.deployment.hosts[host]
        return ["nsenter", f"--net={network.path}", os.environ["REDLOCK_CLI"], *words]

    def environment(self, host):
        return dict(
            os.environ,
            REDLOCK_CONFIG="/dev/null",
            REDLOCK_SERVER=self.deployment.urls(host),
            REDLOCK_SERVER_TIMEOUT=TIMEOUT,
            REDLOCK_RESTART_GUARD="0",
        )

    def start(self, host, *words, **options):
        return subprocess.Popen(
            self.words(host, *words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=self.environment(host),
            text=True,
            **options,
        )

    def start_run(self, name, host, text, work, *options):
        with open(self.file(f"report{name}"), "w") as report:
            with open(self.file(f"events{name}"), "w") as events:
                tell = ("--status-fd", str(report.fileno()), "--events-fd", str(events.fileno()))
                command = ("sh", "-c", text, "-", self.witness, str(work))
                words = ("run", *self.lock, *tell, "--descendants", "kill", *options, "--", *command)
                return self.start(host, *words, pass_fds=(report.fileno(), events.fileno()))

    def told(self, name):
        """-> the run's report, and its events `stopping`"""
        with open(self.file(f"report{name}")) as file:
            report = json.load(file)
        with open(self.file(f"events{name}")) as file:
            events = [json.loads(line) for line in file]
        return report, [event for event in events if event["event"] == "stopping"]

    def play(self):
        work = self.random.uniform(0.1, 3)
        run = self.start_run("", 0, COMMAND, work)
        fence = run.stdout.readline().strip()
        check = ("flock", "-n", "-x", self.witness, "true")
        following = self.start(1, "run", *self.lock, "--wait", f"{LIMIT}s", "--", *check)
        time.sleep(self.random.uniform(0, work * 1.1))
        words = ("stop", self.key, "--json", "--if-fence", fence, "--reason", REASON, "-w", "20s")
        stop = self.start(1, *words, "--server-timeout", STOP_TIMEOUT)
        said = json.loads(stop.communicate(timeout=LIMIT)[0])
        run.communicate(timeout=LIMIT)
        following.communicate(timeout=LIMIT)
        if following.returncode != 0:
            raise Wrong(f"OVERLAP: the next run exits with {following.returncode}")
        return self.judge(run.returncode, stop.returncode, said)

    def judge(self, run_code, stop_code, said):
        """-> the result"""
        report, stopping = self.told("")
        result = said["result"]
        if (result, stop_code) not in (("stopped", 0), ("free", 0), ("lost", 79)):
            raise Wrong(f"stop ends with {stop_code}: {said}")
        if said["exit_code"] != stop_code:
            raise Wrong(f"stop exits with {stop_code}, and says {said}")
        was_stopped = report["result"] == "stopped"
        if was_stopped:
            told = [(event["why"], event["reason"]) for event in stopping]
            if told != [("request", REASON)] or report["stop_request"]["reason"] != REASON:
                raise Wrong(f"the run tells {stopping} and {report}")
            if run_code not in (TERM, -15) or report["exit_code"] != TERM:
                raise Wrong(f"the run exits with {run_code} and says {report}")
            if result != "stopped":
                raise Wrong(f"the run was stopped, and stop says {said}")
        elif report["result"] == "lost" and run_code == LOST:
            pass
        elif report["result"] != "released" or run_code != 0 or stopping:
            raise Wrong(f"the run exits with {run_code}, tells {stopping}, and says {report}")
        return f"{result}, run {report['result']}"


class Replacement(Round):
    def play(self):
        work = self.random.uniform(0.1, 3)
        runs = [self.start_run(0, 0, REPLACING, work, "--replace")]
        runs[0].stdout.readline()
        time.sleep(self.random.uniform(0, work * 1.1))
        comers = self.random.choice((1, 2, MOST_COMERS))
        for number in range(1, comers + 1):
            words = ("--replace", "--note", str(number), "--wait", f"{LIMIT}s")
            work = self.random.uniform(0.1, 1)
            runs.append(self.start_run(number, number % 2, REPLACING, work, *words))
        results = collections.Counter()
        last = (0, None)
        for number, run in enumerate(runs):
            run.communicate(timeout=LIMIT)
            result, fence = self.judge_run(number, run.returncode)
            results[result] += 1
            last = max(last, (fence, result))
        if last[1] == "stopped":
            raise Wrong(f"the last run was replaced: {results}")
        told = ", ".join(result for result in sorted(results))
        return f"{comers} at once: {told}"

    def judge_run(self, number, code):
        """-> its result and its fence (0: it did not run)"""
        report, stopping = self.told(number)
        result = report["result"]
        if code == OVERLAP:
            raise Wrong(f"OVERLAP: run {number} finds the witness held")
        tells = f"run {number} exits with {code}, tells {stopping}, and says {report}"
        if result == "stopped":
            request = report["stop_request"]
            told = [(event["why"], event["reason"]) for event in stopping]
            if not request["replaces"] or told not in ([], [("replaced", request["reason"])]):
                raise Wrong(tells)
            # Without a `stopping` event it was stopped before its command had started.
            if code not in (TERM, -15) or report["exit_code"] != TERM:
                raise Wrong(tells)
        elif result == "superseded":
            if code != BUSY or stopping or "superseded_by" not in report:
                raise Wrong(tells)
        elif result == "lost":
            if code != LOST:
                raise Wrong(tells)
        elif result not in ("released", "unreleased") or code != 0 or stopping:
            raise Wrong(tells)
        return result, report.get("fence", 0)


def play_rounds(servers, options):
    directory = tempfile.mkdtemp()
    deployment = NamespaceServers(directory, servers)
    counts = collections.Counter()

    def play(lane, chance, _):
        counts[options.kind(deployment, directory, lane, chance).play()] += 1

    try:
        failures = play_all(play, [None] * options.rounds, options.lanes, options.seed)
    finally:
        deployment.close()
        shutil.rmtree(directory)
    told = "; ".join(f"{what}: {count}" for what, count in sorted(counts.items()))
    print(f"stops: {servers} servers, {sum(counts.values())} rounds; {told}", flush=True)
    for failure in failures:
        print(f"stops: {failure!r}", file=sys.stderr)
    return not failures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--replace",
        dest="kind",
        action="store_const",
        const=Replacement,
        default=Round,
        help="runs that replace each other",
    )
    parser.add_argument("--rounds", type=int, default=200, help="with each number of servers")
    parser.add_argument("--lanes", type=int, default=4, help="how many at the same time")
    parser.add_argument("--servers", type=int, action="append", help="how many (1, 3 and 5)")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = parser.parse_args()
    print(f"stops: seed {options.seed}", flush=True)
    all_well = [play_rounds(servers, options) for servers in options.servers or (1, 3, 5)]
    sys.exit(0 if all(all_well) else 1)


if __name__ == "__main__":
    main()
