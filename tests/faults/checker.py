#!/usr/bin/python3
"""Says whether a history (history.py) keeps what redlock-cli promises.

usage: checker.py [--json] HISTORY    (a line for each violation, and one with numbers; exit status
                                       1 when there is a violation)

It knows nothing of redlock-cli but its documentation, and nothing of the harness but the history.

exclusion  a command that enters finds no process of another command inside; no other process
           writes between its read and its write
tree       no process of a command is alive when redlock-cli has ended (80, and a front process
           that was killed, excepted), or when another enters
fence      the later a command enters, the larger its fence
order      a waiter that was queued before another started enters first, where nothing disturbed the
           servers or the two
liveness   the lock is never free for longer than a bound while a healthy waiter with a quorum is
           queued; everything ends
truth      exit status, report and events say what the witness saw, and each failure has a fault as
           its cause; nothing of a command lives when `stop` exits with 0; no run that ended with 79
           closes a period
left       nothing is left behind
"""
import argparse
import bisect
import collections
import json
import sys

sys.dont_write_bytecode = True
from history import read_history

# Seconds that the lock may be free with a healthy waiter: until the lease of a dead holder expires
# (the longest ttl is added), waiters of one stopped host are passed over, and a slow machine gets
# to it.
PASSED_OVER = 3
SLOW_MACHINE = 4
# Seconds after a fault's end in which its effects may still be seen: connections, polls, retries.
ECHO = 1.5
# A pause of this machine of at least this many seconds delays more than a single answer.
LONG_STALL = 0.25
# Seconds for which simultaneous attempts that split the votes are repeated (R8).
SPLIT = 1
# What a run says when a quorum granted the lock, and only the restart guard prevents the grant (R7).
BY_GUARD = "no quorum without recently restarted servers (--restart-guard)"

# The exit status of a witness that cannot do its work, as without room in the process table.
WITNESS_FAILED, PIDS = 9, "process-table"

# The kinds of faults that explain these failures, besides those of the run's own processes.
RESULT_CODES = {
    "released": 0,
    "unreleased": 0,
    "lost": 79,
    "unconfirmed": 80,
    "busy": 75,
    "unavailable": 69,
    "denied": 77,
    "os_error": 71,
    "not_started": 71,
}
NEVER_ENTERED = (69, 75, 77, 78)
WALL_CLOCK = "clock-step"
LAST_WRITES_LOST = "truncate-aof"
STOPS = {"stop", "stop-broken"}
LOST = 79
FRONT_KILLED = {"kill-front", "kill-front-then-command", "cookie-killer"}
# It must not affect any run, so it explains nothing.
UNNOTICED = "unread-stderr"


class Run:
    def __init__(self, start):
        self.start = start
        self.id = start["id"]
        self.key = start["key"]
        self.mode = start["mode"]
        self.begin = start["t"]
        self.queued = None  # when it was seen to stand in the queue
        self.outages = []  # spans, from what it told while it waited
        self.enter = self.leave = self.dead = self.exit = None
        self.events = []
        self.times = {}  # when each kind of event was first seen
        self.faults = []

    def end(self, last):
        """The time when the last process of its command was dead."""
        return self.dead["t"] if self.dead else last

    def event(self, name):
        return next((e for e in self.events if e["event"] == name), None)

    def is_changing_hands(self, begin, end):
        """Whether its lease was being granted, or released, at some time in between."""
        never = float("inf")
        acquired, ended, released = (
            self.times.get(name, never) for name in ("acquired", "ended", "released")
        )
        if self.exit and (self.exit["status"] or {}).get("result") == "not_started":
            acquired = self.times.get("not_acquired", never)  # granted, and undone by then
        is_granted = self.begin <= end and begin <= acquired <= end + SPLIT
        is_released = ended <= end and begin <= released < never
        return is_granted or is_released

    def conflicts_with(self, other):
        if self.mode == other.mode == "shared":
            return False
        if self.mode == other.mode == "slots":
            return self.enter["slot"] == other.enter["slot"]
        return True


class Violation(collections.namedtuple("Violation", "rule t ids text causes fence")):
    """`causes`: kinds of the faults that may have led to it; `fence`: what stopped the write if
    the protected resource checked fences, or None."""

    def __str__(self):
        causes = f" (after {', '.join(self.causes)})" if self.causes else ""
        return f"{self.rule}: {self.text}{causes}"


class Checker:
    def __init__(self, entries):
        self.entries = entries
        self.first = entries[0]
        self.last = entries[-1]["t"]
        self.runs = {}
        self.faults = []
        self.stalls = []
        self.long_stalls = []
        self.left = []
        self.stops = []
        self.successes = []
        self.in_time = None
        self.found = []
        self.read()

    def read(self):
        healed = {e["number"]: e["t"] for e in self.entries if e["what"] == "healed"}
        for index, e in enumerate(self.entries):
            e["index"] = index
            what = e["what"]
            if what == "start":
                self.runs[e["id"]] = Run(e)
            elif what in ("enter", "leave", "dead", "exit"):
                setattr(self.runs[e["id"]], what, e)
            elif what == "event":
                run, event = self.runs[e["id"]], e["event"]
                run.events.append(event)
                run.times.setdefault(event["event"], e["t"])
                if event["event"] == "waiting" and "position" in event and run.queued is None:
                    run.queued = e["t"]
                if self.tells_of_outage(event):
                    run.outages.append((e["t"] - ECHO, e["t"] + ECHO))
            elif what == "fault":
                e["healed"] = healed.get(e["number"], self.last)
                e["end"] = e["healed"] + e.get("lasting", 0)
                self.faults.append(e)
                for name in () if e["kind"] == UNNOTICED else e.get("ids", ()):
                    self.runs[name].faults.append(e)
            elif what == "stall":
                span = e["t"] - e["seconds"], e["t"]
                self.stalls.append(span)
                if e["seconds"] >= LONG_STALL:
                    self.long_stalls.append(span)
            elif what == "left":
                self.left.append(e)
            elif what == "stop":
                self.stops.append(e)
            elif what == "success":
                self.successes.append(e)
            elif what == "end":
                self.in_time = e["in_time"]

    def tells_of_outage(self, event):
        """A waiter had no answers of a quorum: a fault, or one of the servers was not run for a
        while."""
        failed = {fault["server"] for fault in event.get("faults", ())}
        servers = self.first["servers"]
        return event["event"] == "waiting" and servers - len(failed) < servers // 2 + 1

    def violate(self, rule, t, runs, text, fence=None):
        begin = t - 2 * self.first["longest_ttl"]
        causes = [f["kind"] for f in self.faults if f["t"] <= t and f["end"] >= begin]
        ids = [run.id for run in runs]
        self.found.append(Violation(rule, t, ids, text, sorted(set(causes)), fence))

    # The rules.

    def check(self):
        self.check_exclusion()
        self.check_updates()
        self.check_fences()
        self.check_order()
        self.check_liveness()
        for run in self.runs.values():
            self.check_tree(run)
            self.check_truth(run)
        self.check_stops()
        self.check_periods()
        for e in self.left:
            self.violate("left", e["t"], [], f"{e['kind']} left behind: {e['name']}")
        if not self.entered():
            self.violate("liveness", self.last, [], "no command ever entered")
        if self.in_time is not True:
            self.violate("liveness", self.last, [], "the run did not come to its end in time")
        self.found.sort(key=lambda violation: violation.t)
        return self.found

    def entered(self):
        """In order of entry: that of the file, since the witness writes under its lock."""
        runs = [run for run in self.runs.values() if run.enter]
        return sorted(runs, key=lambda run: run.enter["index"])

    def check_exclusion(self):
        for run in self.entered():
            if run.enter["free"]:
                continue
            others = [
                other
                for other in self.entered()
                if other is not run
                and other.key == run.key
                and other.enter["index"] < run.enter["index"]
                and (not other.dead or other.dead["index"] > run.enter["index"])
                and run.conflicts_with(other)
            ]
            if not others:
                self.violate(
                    "exclusion", run.enter["t"], [run], f"{run.id} entered beside no known run"
                )
            for other in others:
                gone = other.exit and other.exit["index"] < run.enter["index"]
                earlier, later = other.enter["fence"], run.enter["fence"]
                self.violate(
                    "tree" if gone else "exclusion",
                    run.enter["t"],
                    [other, run],
                    f"{run.id} (fence {later}) entered while processes of {other.id} "
                    f"(fence {earlier}) were alive" + (", which had ended" if gone else ""),
                    later if later > earlier else None,
                )

    def check_updates(self):
        last = {}
        for e in self.entries:
            if e["what"] != "leave" or self.runs[e["id"]].mode != "exclusive":
                continue
            run = self.runs[e["id"]]
            if e["again"] != e["read"] or e["read"] < last.get(run.key, 0):
                others = [o for o in self.entered() if o.key == run.key and o is not run]
                others = [
                    o for o in others if o.enter["t"] < e["t"] and o.end(self.last) > run.enter["t"]
                ]
                fences = [o.enter["fence"] for o in others if o.enter["fence"] > run.enter["fence"]]
                text = f"{run.id} read {e['read']}, and {e['again']} before it wrote"
                fence = max(fences, default=None)
                self.violate("exclusion", e["t"], [run, *others], text, fence)
            last[run.key] = e["read"] + 1

    def check_fences(self):
        exclusive, shared = {}, {}
        for run in self.entered():
            fence, key = run.enter["fence"], run.key
            highest = exclusive.get(key, 0)
            if run.mode == "exclusive":
                highest = max(highest, shared.get(key, 0))
            if fence is None or fence <= highest:
                text = f"{run.id} entered with fence {fence}, after {highest}"
                self.violate("fence", run.enter["t"], [run], text)
                continue
            of_mode = exclusive if run.mode == "exclusive" else shared
            of_mode[key] = max(of_mode.get(key, 0), fence)

    def check_order(self):
        """Checks the order of exclusive waiters only, because readers enter together."""
        disturbances = [(f["t"], f["end"] + ECHO) for f in self.faults if not is_of_runs(f)]
        disturbances += [(begin - ECHO, end + ECHO) for begin, end in self.long_stalls]
        disturbances = Spans(disturbances)
        by_key = collections.defaultdict(list)
        for run in self.entered():
            if run.mode == "exclusive" and not run.faults:
                by_key[run.key].append(run)
        for runs in by_key.values():
            for place, run in enumerate(runs):
                for before in runs[:place]:
                    overtaken = run.queued is not None and run.queued < before.begin
                    if not overtaken or disturbances.meet(run.queued, before.enter["t"]):
                        continue
                    # A waiter without an answer twice leaves the queue for a while.
                    if not Spans(run.outages).meet(run.queued, before.enter["t"]):
                        text = f"{before.id} started when {run.id} stood in the queue"
                        text += ", and entered first"
                        self.violate("order", before.enter["t"], [run, before], text)

    def check_liveness(self):
        for run, begin, end in self.longest_gaps():
            bound = self.bound()
            if end - begin > bound:
                text = f"no command entered for {end - begin:.1f} s while {run.id} waited"
                text += f"; the bound is {bound:g} s"
                self.violate("liveness", end, [run], text)

    def bound(self):
        return self.first["longest_ttl"] + PASSED_OVER + SLOW_MACHINE

    def longest_gaps(self):
        """For each healthy waiter the longest time in which the lock was free and a quorum was
        within its reach."""
        unclean = {}
        for run in self.runs.values():
            if run.queued is None or any(is_lasting(fault) for fault in run.faults):
                continue
            host = run.start["host"]
            if host not in unclean:
                unclean[host] = self.without_quorum(host) + self.long_stalls
            end = min(
                (e["t"] for e in (run.enter, run.exit) if e),
                default=self.last,
            )
            busy = self.times_without_room(run.key, run.start["slots"] or 1)
            busy += self.times_with_a_revived_lock(run.key)
            begin, longest = run.queued, (run.queued, run.queued)
            for since, until in merged([*busy, *unclean[host], (end, end)]):
                if begin < since and since - begin > longest[1] - longest[0]:
                    longest = (begin, min(since, end))
                begin = max(begin, until)
                if begin >= end:
                    break
            yield run, *longest

    def times_without_room(self, key, room):
        changes = []
        for run in self.entered():
            if run.key == key:
                changes += [(run.enter["t"], 1), (run.end(self.last), -1)]
        inside, since, spans = 0, 0, []
        for t, change in sorted(changes):
            if inside < room <= inside + change:
                since = t
            elif inside >= room > inside + change:
                spans.append((since, t))
            inside += change
        return spans

    def times_with_a_revived_lock(self, key):
        """The times when a released lock may reappear: a server has lost its last writes."""
        return [
            (fault["t"], run.exit["t"] + run.start["ttl"])
            for fault in self.faults
            if fault["kind"] == LAST_WRITES_LOST
            for run in self.entered()
            if run.key == key and run.exit
            if run.enter["t"] <= fault["t"] < run.exit["t"] + run.start["ttl"]
        ]

    def without_quorum(self, host, end_of=lambda fault: fault["end"]):
        """The times when contenders on this host could not rely on a quorum. A fault has no effect
        after `end_of` it."""
        changes = []
        servers = self.first["servers"]
        for fault in self.faults:
            hosts = fault.get("hosts")
            if is_of_runs(fault) or (hosts is not None and host not in hosts):
                continue
            for server in fault.get("servers", range(servers)):
                changes += [(fault["t"], server, 1), (end_of(fault), server, -1)]
        struck, since, spans = collections.Counter(), None, []
        for t, server, change in sorted(changes):
            struck[server] += change
            whole = servers - sum(count > 0 for count in struck.values())
            if whole < servers // 2 + 1 and since is None:
                since = t
            elif whole >= servers // 2 + 1 and since is not None:
                spans.append((since, t))
                since = None
        return spans if since is None else [*spans, (since, self.last)]

    def check_tree(self, run):
        end = run.exit
        if end and end["alive"] and run.enter and end["code"] != 80 and end["signal"] != 9:
            text = f"{run.id} ended with {end['code']}, and processes of its command were alive"
            self.violate("tree", end["t"], [run], text)

    def check_truth(self, run):
        end = run.exit
        if not end:
            return
        status, code = end["status"], end["code"]
        kinds = {fault["kind"] for fault in run.faults}

        def untrue(text):
            self.violate("truth", end["t"], [run], f"{run.id} {text}")

        if status and status["result"] == "stopped":
            # It exits as its command did, which may have been killed.
            if kinds.isdisjoint(STOPS):
                untrue("was stopped, and was not asked to")
            return
        if end["signal"] is not None:
            if end["signal"] != 9 or kinds.isdisjoint(FRONT_KILLED):
                untrue(f"died of signal {end['signal']}, which was not sent")
            return
        if status is None:
            untrue(f"ended with {code} and reported nothing")
            return
        if code == WITNESS_FAILED and status.get("command_exit") == code and PIDS in kinds:
            return  # the witness could not fork; its exit status is passed on
        if status["exit_code"] != code or RESULT_CODES.get(status["result"]) != code:
            untrue(f"ended with {code} and reported {status['result']}, {status['exit_code']}")
        if code == 0 and not (run.enter and run.leave):
            untrue("ended with 0, and its command did not run to its end")
        if code == 0 and run.event("lost"):
            untrue("ended with 0 after the lease was lost")
        if code == 0 and run.leave and self.was_long_overtaken(run):
            untrue("ended with 0, long after another had entered")
        if code in NEVER_ENTERED and (run.enter or run.event("acquired")):
            untrue(f"ended with {code}, and had the lock")
        acquired = run.event("acquired")
        if run.enter and not acquired:
            untrue("told of no grant, and its command ran")
        if run.enter and acquired and acquired["fence"] != run.enter["fence"]:
            untrue(f"told of fence {acquired['fence']}, its command got {run.enter['fence']}")
        ended = run.event("ended")
        # The other way round, it was killed behind its last line.
        if ended and ended.get("command_exit") == 0 and not run.leave:
            untrue("told that its command ended with 0, and the witness did not")
        if run.leave and code == 0 and not run.event("released"):
            untrue("ended with 0, and told of no release")
        self.check_cause(run, code, untrue)

    def run_of(self, key, fence):
        """The exclusive run with this fence."""
        runs = [run for run in self.entered() if run.key == key and run.mode == "exclusive"]
        return next((run for run in runs if run.enter["fence"] == fence), None)

    def check_stops(self):
        for stop in self.stops:
            run = self.run_of(stop["key"], stop["fence"])
            if stop["code"] == 0 and run and run.id in stop["alive"]:
                text = f"stop ended with 0 ({stop['result']}), and processes of {run.id} were alive"
                self.violate("truth", stop["t"], [run], text)

    def check_periods(self):
        for success in self.successes:
            run = self.run_of(success["key"], success["fence"])
            if run and run.exit and run.exit["code"] == LOST:
                text = f"{run.id} ended with {LOST}, and closed the period of {run.key}"
                self.violate("truth", success["t"], [run], text)

    def was_long_overtaken(self, run):
        """Another run entered while this one ran on for longer than its lease."""
        return any(
            other.key == run.key
            and not other.enter["free"]
            and run.enter["t"] < other.enter["t"] < run.leave["t"] - run.start["ttl"]
            and run.conflicts_with(other)
            for other in self.entered()
        )

    def check_cause(self, run, code, untrue):
        """Checks that each failure has an explanation."""
        begin, end = run.begin - ECHO, run.exit["t"]
        if code == 75:
            if not any(
                other is not run
                and other.key == run.key
                and other.begin < end
                and (not other.exit or other.exit["t"] + self.first["longest_ttl"] + ECHO > begin)
                for other in self.runs.values()
            ):
                untrue("ended with 75, and no other run wanted the lock")
        elif code == 71 and not run.faults:
            if not any(f["kind"] == "disk-full" and meets(f, begin, end) for f in self.faults):
                untrue("ended with 71 without a fault of its own")
        elif code in (69, 77, 79, 80) and not run.faults:
            # Votes to extend count as soon as the server is back and has the key again.
            end_of = end_for_extending if code in (79, 80) else end_for_acquiring
            spans = self.without_quorum(run.start["host"], end_of)
            spans += [(since - ECHO, until + ECHO) for since, until in self.stalls]
            explained = any(since <= end and until >= begin for since, until in spans)
            if not explained and not (code == 69 and self.is_kept_out_by_guard(run)):
                untrue(f"ended with {code} without a fault of a quorum")

    def is_kept_out_by_guard(self, run):
        """Whether R7 alone explains a 69: a run with -n does not wait for the guard of a single
        server, although that server's vote is needed only because another run's lease is just being
        granted, or released, at others."""
        begin, end = run.begin, run.exit["t"]
        return (
            run.start["nonblock"]
            and run.exit["status"].get("message", "").startswith(BY_GUARD)
            and any(
                "lasting" in fault and "servers" in fault and fault["t"] <= end <= fault["end"]
                for fault in self.faults
            )
            and any(
                other.key == run.key and other.is_changing_hands(begin, end)
                for other in self.runs.values()
                if other is not run and not run.mode == other.mode == "shared"
            )
        )

    def numbers(self):
        """Statistics of the history."""
        codes = collections.Counter(
            f"signal {run.exit['signal']}" if run.exit["signal"] else run.exit["code"]
            for run in self.runs.values()
            if run.exit
        )
        gaps = [end - begin for _, begin, end in self.longest_gaps()]
        return {
            "runs": len(self.runs),
            "entered": len(self.entered()),
            "waited": sum(run.queued is not None for run in self.runs.values()),
            "codes": {str(code): codes[code] for code in sorted(codes, key=str)},
            "faults": len(self.faults),
            "longest_gap": round(max(gaps, default=0), 2),
            "bound": self.bound(),
            "stalls": len(self.stalls),
        }


class Spans:
    """Intervals, as pairs of times; queried often."""

    def __init__(self, spans):
        self.spans = list(merged(spans))
        self.ends = [end for _, end in self.spans]

    def meet(self, begin, end):
        place = bisect.bisect_left(self.ends, begin)
        return place < len(self.spans) and self.spans[place][0] <= end


def merged(spans):
    """The same intervals in order, merged where they touch."""
    since = until = None
    for begin, end in sorted(spans):
        if since is None:
            since, until = begin, end
        elif begin <= until:
            until = max(until, end)
        else:
            yield since, until
            since, until = begin, end
    if since is not None:
        yield since, until


def is_of_runs(fault):
    """Whether the fault concerns only some contenders' processes, or a wall clock, so that no other
    contender may be affected."""
    return "ids" in fault or fault["kind"] == WALL_CLOCK


def is_lasting(fault):
    return "ids" in fault


def end_for_acquiring(fault):
    return fault["end"] + ECHO


def end_for_extending(fault):
    return fault["healed"] + fault.get("healing", 0) + ECHO


def meets(fault, begin, end):
    return fault["t"] <= end and fault["end"] + ECHO >= begin


def main():
    parser = argparse.ArgumentParser(description="Checks a history.")
    parser.add_argument("history")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    checker = Checker(read_history(options.history))
    found = checker.check()
    if options.json:
        violations = [violation._asdict() for violation in found]
        print(json.dumps({"violations": violations, "numbers": checker.numbers()}))
    else:
        for violation in found:
            print(violation)
        print(json.dumps(checker.numbers()))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
