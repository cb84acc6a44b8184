"""What every fault is: it chooses what it strikes, begins, and ends after a while."""


class NotInjected(Exception):
    """Why there is no such fault now."""


class Fault:
    """`choose` says what will be struck, as the history has it, or raises NotInjected; `begin` and
    `end` may raise it, too. `shortest` and `longest`: seconds; 0 for what has no duration. One that
    `must_last` is not ended earlier when a storm ends."""

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
