#!/usr/bin/python3
"""The checker rejects each kind of bad history, by the rule that it breaks, and accepts good ones.

A test makes a good history, and breaks one thing in it.
"""
import json
import sys
import unittest

sys.dont_write_bytecode = True
from checker import Checker


class Scene:
    """Builds a history; `at` is the time of the next entry, and each takes 10 ms."""

    def __init__(self, servers=1, **fields):
        self.entries = []
        self.at = 100.0
        self.counter = 0
        first = {"profile": "test", "seed": 1, "promised": True, "servers": servers}
        self.note("run", **{**first, "longest_ttl": 3, "guard": 4, **fields})

    def note(self, what, **fields):
        self.entries.append({"t": self.at, "what": what, **fields})
        self.at += 0.01

    def start(self, name, mode="exclusive", host=0, nonblock=False, ttl=3):
        slots = 2 if mode == "slots" else None
        common = {"host": host, "key": "x", "mode": mode, "slots": slots}
        self.note("start", id=name, **common, nonblock=nonblock, ttl=ttl, left=False)

    def event(self, name, event, **fields):
        self.note("event", id=name, event={"event": event, "at": "-", **fields})

    def queue(self, name):
        self.event(name, "waiting", position=1, waited_ms=1, message="held")

    def enter(self, name, fence, slot=None, free=True):
        self.event(name, "acquired", fence=fence, waited_ms=1, votes=1, servers=1)
        self.note("enter", id=name, fence=fence, slot=slot, pid=2, free=free)

    def leave(self, name):
        self.note("leave", id=name, read=self.counter, again=self.counter)
        self.counter += 1

    def die(self, name):
        self.note("dead", id=name)

    def exit(self, name, code=0, result="released", alive=False, signal=None):
        status = None if code is None else {"result": result, "exit_code": code}
        common = {"code": code, "signal": signal, "alive": alive, "stderr": ""}
        self.note("exit", id=name, status=status, **common)

    def finish(self, name):
        self.leave(name)
        self.event(name, "ended", command_exit=0, held_ms=1, left=[])
        self.die(name)
        self.event(name, "released", confirmed=True, held_ms=1)
        self.exit(name)

    def fault(self, number, kind, healed=True, **fields):
        self.note("fault", number=number, kind=kind, **fields)
        if healed:
            self.note("healed", number=number, kind=kind)

    def check(self, in_time=True):
        self.note("quiet")
        self.note("end", in_time=in_time)
        # In the form that is read from a file.
        return Checker(json.loads(json.dumps(self.entries))).check()


def one_after_the_other(**fields):
    """a runs, b waits for it and runs, c gives up."""
    scene = Scene(**fields)
    scene.start("a")
    scene.enter("a", 10)
    scene.start("b")
    scene.queue("b")
    scene.start("c")
    scene.exit("c", 75, "busy")
    scene.die("c")
    scene.finish("a")
    scene.enter("b", 11)
    scene.finish("b")
    return scene


class CheckerTest(unittest.TestCase):
    def assert_good(self, scene):
        self.assertEqual([str(violation) for violation in scene.check()], [])

    def assert_found(self, scene, rule, text="", **arguments):
        found = scene.check(**arguments)
        self.assertTrue(
            any(v.rule == rule and text in v.text for v in found), [str(v) for v in found]
        )
        return found

    def change(self, scene, what, name, **fields):
        entry = next(e for e in scene.entries if e["what"] == what and e.get("id") == name)
        entry.update(fields)
        return entry

    def drop(self, scene, what, name, event=None):
        scene.entries = [
            e
            for e in scene.entries
            if not (
                e["what"] == what
                and e.get("id") == name
                and (event is None or e["event"]["event"] == event)
            )
        ]

    # Good ones.

    def test_one_after_the_other(self):
        self.assert_good(one_after_the_other())

    # Exclusion.

    def test_two_at_the_same_time(self):
        scene = Scene()
        scene.start("a")
        scene.start("b")
        scene.enter("a", 10)
        scene.fault(1, "flushall", servers=[0])
        scene.enter("b", 11, free=False)
        scene.finish("b")
        scene.finish("a")
        found = self.assert_found(scene, "exclusion", "b (fence 11) entered while processes of a")
        self.assertEqual((found[0].fence, found[0].causes), (11, ["flushall"]))

    def test_a_write_between_a_read_and_its_write(self):
        scene = one_after_the_other()
        self.change(scene, "leave", "a", again=5)
        self.assert_found(scene, "exclusion", "a read 0, and 5 before it wrote")

    # The tree.

    def test_a_process_that_outlives_its_run(self):
        scene = one_after_the_other()
        self.change(scene, "exit", "a", alive=True)
        self.assert_found(scene, "tree", "a ended with 0")

    def test_a_process_that_is_alive_when_another_enters(self):
        scene = one_after_the_other()
        self.change(scene, "enter", "b", free=False)
        dead = self.change(scene, "dead", "a")
        scene.entries.remove(dead)
        scene.entries.append({**dead, "t": scene.at})
        self.assert_found(scene, "tree", "which had ended")

    # Fences.

    def test_a_fence_that_goes_back(self):
        scene = one_after_the_other()
        for e in scene.entries:
            if e.get("id") == "b" and e["what"] == "enter":
                e["fence"] = 9
            elif e.get("id") == "b" and e["what"] == "event" and "fence" in e["event"]:
                e["event"]["fence"] = 9
        self.assert_found(scene, "fence", "b entered with fence 9, after 10")

    def test_a_reader_below_a_writer(self):
        scene = Scene()
        scene.start("a")
        scene.enter("a", 10)
        scene.finish("a")
        scene.start("b", "shared")
        scene.enter("b", 10)
        scene.finish("b")
        self.assert_found(scene, "fence", "b entered with fence 10, after 10")

    # The queue.

    def overtaken(self, scene=None, **fields):
        if scene is None:
            scene = Scene(**fields)
            scene.start("b")
        scene.start("a")
        scene.enter("a", 10)
        scene.queue("b")
        scene.start("c")
        scene.queue("c")
        return scene

    def test_one_that_came_later_and_entered_first(self):
        scene = self.overtaken()
        self.finish_overtaken(scene)
        self.assert_found(scene, "order", "c started when b stood in the queue")

    def test_overtaking_after_no_answer_of_a_few_of_another_or_long_ago(self):
        for servers, failed, name, since in (
            (1, 0, "b", 0),
            (3, 1, "b", 0),
            (1, 1, "d", 0),
            (1, 1, "b", 5),
        ):
            scene = Scene(servers=servers)
            scene.start("d")
            scene.start("b")
            self.tell_of_faults(scene, name, failed)
            scene.at += since
            self.overtaken(scene)
            self.finish_overtaken(scene)
            scene.enter("d", 13)
            scene.finish("d")
            self.assert_found(scene, "order", "c started when b stood in the queue")

    def tell_of_faults(self, scene, name, count):
        faults = [{"server": f"s{n}", "fault": "no answer"} for n in range(count)]
        scene.event(name, "waiting", waited_ms=1, message="no quorum", faults=faults)

    def finish_overtaken(self, scene):
        scene.finish("a")
        for fence, name in ((11, "c"), (12, "b")):
            scene.enter(name, fence)
            scene.finish(name)

    def test_overtaking_beside_a_fault_of_another(self):
        for fault in ({"kind": "clock-step", "hosts": [0]}, {"kind": "kill-front", "ids": ["c"]}):
            scene = self.overtaken()
            scene.start("d")
            scene.queue("d")
            scene.fault(1, **fault)
            scene.finish("a")
            for fence, name in ((11, "d"), (12, "b"), (13, "c")):
                scene.enter(name, fence)
                scene.finish(name)
            self.assert_found(scene, "order", "d started when b stood in the queue")

    # Liveness.

    def waiting_for(self, seconds, **fields):
        scene = Scene(**fields)
        scene.start("a")
        scene.enter("a", 10)
        scene.start("b")
        scene.queue("b")
        scene.finish("a")
        scene.at += seconds
        return scene

    def finish_b(self, scene):
        scene.enter("b", 11)
        scene.finish("b")
        return scene

    def test_a_free_lock_beside_a_waiter(self):
        self.assert_good(self.finish_b(self.waiting_for(9)))
        scene = self.finish_b(self.waiting_for(11))
        self.assert_found(scene, "liveness", "no command entered for 11.")

    def test_a_waiter_that_never_ends(self):
        self.assert_found(self.waiting_for(11), "liveness", "in time", in_time=False)

    def test_a_fault_of_a_minority_or_of_another_host_does_not(self):
        for fault in ({"servers": [0]}, {"servers": [0, 1], "hosts": [1]}):
            scene = self.waiting_for(1, servers=3)
            scene.fault(1, "link-down", healed=False, **fault)
            scene.at += 11
            self.assert_found(self.finish_b(scene), "liveness")

    def test_a_released_lock_that_is_back(self):
        """The lock lives for its ttl, and excuses nothing for longer."""
        for ttl, is_good in ((30, True), (3, False)):
            scene = Scene()
            scene.start("a", ttl=ttl)
            scene.enter("a", 10)
            scene.finish("a")
            scene.fault(1, "truncate-aof", servers=[0])
            scene.start("b")
            scene.queue("b")
            scene.at += 20
            self.finish_b(scene)
            if is_good:
                self.assert_good(scene)
            else:
                self.assert_found(scene, "liveness", "while b waited")

    def test_a_free_slot_beside_a_waiter(self):
        scene = Scene()
        scene.start("a", "slots")
        scene.enter("a", 10, slot=0)
        scene.start("b", "slots")
        scene.queue("b")
        scene.at += 11
        scene.enter("b", 11, slot=1)
        scene.finish("a")
        scene.finish("b")
        self.assert_found(scene, "liveness", "while b waited")

    def test_a_run_in_which_none_entered(self):
        self.assert_found(Scene(), "liveness", "no command ever entered")

    # The truth.

    def test_success_without_the_command_having_run(self):
        scene = one_after_the_other()
        self.drop(scene, "leave", "b")
        self.assert_found(scene, "truth", "b ended with 0, and its command did not run to its end")
        self.assert_found(scene, "truth", "b told that its command ended with 0")

    def test_success_after_a_loss(self):
        scene = Scene()
        scene.start("a")
        scene.enter("a", 10)
        scene.event("a", "lost", reason="broken")
        scene.finish("a")
        self.assert_found(scene, "truth", "ended with 0 after the lease was lost")

    def test_success_long_after_another_had_entered(self):
        for later, rules in (
            (1, ["exclusion", "exclusion"]),
            (4, ["exclusion", "exclusion", "truth"]),
        ):
            scene = Scene()
            scene.start("a")
            scene.start("b")
            scene.enter("a", 10)
            scene.enter("b", 11, free=False)
            scene.finish("b")
            scene.at += later
            scene.leave("a")
            scene.entries[-1]["read"] = 0
            scene.die("a")
            scene.event("a", "released", confirmed=True, held_ms=1)
            scene.exit("a")
            self.assertEqual(sorted(v.rule for v in scene.check()), rules)

    def test_a_report_that_is_not_the_exit_status(self):
        for changes in ({"code": 79}, {"status": {"result": "lost", "exit_code": 0}}):
            scene = one_after_the_other()
            self.change(scene, "exit", "b", **changes)
            self.assert_found(scene, "truth", "and reported")

    def test_a_witness_that_could_not_fork(self):
        for kind, is_good in (("process-table", True), ("busy-loops", False)):
            scene = one_after_the_other()
            scene.entries.insert(
                len(scene.entries) - 2,
                {"t": scene.at, "what": "fault", "number": 1, "kind": kind, "ids": ["b"]},
            )
            status = {"result": "released", "exit_code": 9, "command_exit": 9}
            self.change(scene, "exit", "b", code=9, status=status)
            if is_good:
                self.assert_good(scene)
            else:
                self.assert_found(scene, "truth", "b ended with 9")

    def test_busy_without_another(self):
        scene = Scene()
        scene.start("a", nonblock=True)
        scene.exit("a", 75, "busy")
        self.assert_found(scene, "truth", "no other run wanted the lock")

    def test_failures_without_a_fault(self):
        for code, result in ((69, "unavailable"), (71, "os_error"), (77, "denied"), (79, "lost")):
            scene = Scene()
            # None of these explains it.
            scene.fault(1, "clock-step", hosts=[0])
            scene.start("b")
            scene.fault(2, "kill-holder", ids=["b"])
            scene.start("a")
            scene.exit("a", code, result)
            self.assert_found(scene, "truth", f"a ended with {code} without")

    def kept_out_by_guard(self, mine=(), since=0, changes="released", key="x", message=None):
        """c ends with 69 because of the guard of one of five servers, and b's lease is released,
        or granted, at the same time."""
        scene = Scene(servers=5)
        scene.fault(1, "restart-empty", servers=[2], lasting=6, healing=3)
        scene.at += since
        scene.start("b", "slots")
        scene.entries[-1]["key"] = key
        if changes != "acquired":
            scene.enter("b", 10, slot=0)
            scene.leave("b")
        if changes == "released":
            scene.event("b", "ended", command_exit=0, held_ms=1, left=[])
        scene.start("c", **{"mode": "slots", "nonblock": True, **dict(mine)})
        if changes == "released":
            scene.event("b", "released", confirmed=True, held_ms=1)
        scene.exit("c", 69, "unavailable")
        guard = "no quorum without recently restarted servers (--restart-guard): a started 3s ago"
        scene.entries[-1]["status"]["message"] = message or guard
        if changes == "acquired":
            scene.enter("b", 10, slot=0)
            scene.leave("b")
        if changes != "released":
            scene.event("b", "ended", command_exit=0, held_ms=1, left=[])
            scene.at += 5
            scene.event("b", "released", confirmed=True, held_ms=1)
        scene.die("b")
        scene.exit("b")
        return scene

    def kept_out_by_guard_while_another_cannot_start(self, result):
        """The same, but b got the lease and could not fork, or did not get it."""
        scene = Scene(servers=5)
        scene.fault(1, "restart-empty", servers=[2], lasting=6, healing=3)
        scene.start("b")
        scene.fault(2, "process-table", ids=["b"])
        scene.start("c", mode="shared", nonblock=True)
        scene.event("b", "not_acquired", result=result, waited_ms=1)
        scene.exit("c", 69, "unavailable")
        scene.entries[-1]["status"]["message"] = (
            "no quorum without recently restarted servers (--restart-guard): a started 3s ago"
        )
        scene.exit("b", 71, result)
        scene.start("d")
        scene.enter("d", 10)
        scene.finish("d")
        return scene

    def test_a_guard_that_alone_keeps_a_run_out_while_a_lease_changes_hands(self):
        self.assert_good(self.kept_out_by_guard())
        self.assert_good(self.kept_out_by_guard(changes="acquired"))
        self.assert_good(self.kept_out_by_guard_while_another_cannot_start("not_started"))
        for scene in (
            self.kept_out_by_guard_while_another_cannot_start("busy"),
            self.kept_out_by_guard(changes="nothing"),
            self.kept_out_by_guard(mine={"nonblock": False}),
            self.kept_out_by_guard(since=7),
            self.kept_out_by_guard(key="y"),
            self.kept_out_by_guard(message="no quorum: 3 of 5 servers must answer"),
        ):
            self.assert_found(scene, "truth", "c ended with 69 without")

    def test_a_machine_that_stands_still_explains_a_failure_and_no_gap(self):
        scene = one_after_the_other()
        scene.note("stall", seconds=0.06)
        scene.start("d")
        scene.exit("d", 69, "unavailable")
        self.assert_good(scene)
        scene = self.waiting_for(6)
        scene.note("stall", seconds=0.06)
        scene.at += 6
        self.assert_found(self.finish_b(scene), "liveness")

    def lose_one_after_the_other(self, pause):
        """The lease is lost although there was time to restore it on each server."""
        scene = Scene(servers=3)
        scene.start("a")
        scene.enter("a", 10)
        for server in range(2):
            scene.fault(server, "restart-empty", servers=[server], lasting=6, healing=3)
            scene.at += pause
        scene.event("a", "lost", reason="deleted")
        scene.die("a")
        scene.exit("a", 79, "lost")
        return scene

    def test_a_loss_with_a_quorum_standing(self):
        self.assert_good(self.lose_one_after_the_other(1))
        scene = self.lose_one_after_the_other(5)
        self.assert_found(scene, "truth", "a ended with 79 without a fault of a quorum")

    def test_a_stderr_that_is_not_read_explains_nothing(self):
        for kind, found in (("stop-holder", None), ("unread-stderr", "a ended with 79")):
            scene = Scene()
            scene.start("a")
            scene.enter("a", 10)
            scene.fault(1, kind, ids=["a"])
            scene.event("a", "lost", reason="no answer")
            scene.die("a")
            scene.exit("a", 79, "lost")
            self.assert_found(scene, "truth", found) if found else self.assert_good(scene)

    def test_a_signal_that_was_not_sent(self):
        for signal in (9, 11):
            scene = one_after_the_other()
            self.change(scene, "exit", "b", code=None, signal=signal, status=None)
            self.assert_found(scene, "truth", f"b died of signal {signal}")

    def test_events_that_are_missing_or_wrong(self):
        for event, text in (("acquired", "no grant"), ("released", "no release")):
            scene = one_after_the_other()
            self.drop(scene, "event", "b", event)
            self.assert_found(scene, "truth", text)
        scene = one_after_the_other()
        for e in scene.entries:
            if e["what"] == "event" and e["event"]["event"] == "acquired":
                e["event"]["fence"] += 100
        self.assert_found(scene, "truth", "told of fence 110, its command got 10")

    # What is left.

    def test_a_stop_that_succeeds_beside_living_processes(self):
        for code, alive, found in ((0, ["b"], True), (0, ["a"], False), (80, ["b"], False)):
            scene = one_after_the_other()
            fields = {"code": code, "result": "stopped", "fence": 11, "alive": alive}
            scene.note("stop", key="x", **fields)
            if found:
                self.assert_found(scene, "truth", "stop ended with 0 (stopped), and processes of b")
            else:
                self.assertEqual(scene.check(), [])

    def test_a_run_that_was_stopped_unasked(self):
        scene = one_after_the_other()
        self.change(scene, "exit", "b", code=137, status={"result": "stopped", "exit_code": 137})
        self.assert_found(scene, "truth", "b was stopped, and was not asked to")
        scene.fault(1, "stop", ids=["b"])
        self.assertEqual(scene.check(), [])

    def test_a_period_that_a_lost_run_closed(self):
        scene = one_after_the_other()
        scene.fault(1, "stop-broken", ids=["b"])
        scene.note("success", key="x", fence=11)
        self.change(scene, "exit", "b", code=79, status={"result": "lost", "exit_code": 79})
        self.assert_found(scene, "truth", "b ended with 79, and closed the period of x")

    def test_something_left(self):
        scene = one_after_the_other()
        scene.note("left", kind="key", name="x")
        self.assert_found(scene, "left", "key left behind: x")


if __name__ == "__main__":
    unittest.main()
