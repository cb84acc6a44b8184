"""The base of all faults: a fault chooses its targets, begins, and ends after a while."""


class NotInjected(Exception):
    """The reason why this fault is impossible now."""


class Fault:
    """`choose` returns the targets for the history, or raises NotInjected; `begin` and `end` may
    raise it, too. `shortest` and `longest` are seconds; 0 for a fault without duration. A fault
    with `must_last` is not ended early when a storm ends."""

    shortest, longest = 0.2, 3
    must_last = False

    def __init__(self, arena):
        self.arena = arena
        self.random = arena.random

    def choose(self):
        return {}

    def begin(self):
        raise NotImplementedError

    def end(self):
        pass
