"""What the tests of the tree itself share: which tree they read, and how they say what they
found."""
import os
import sys

# The repository that this file lies in.
ROOT = os.path.join(os.path.dirname(__file__), "..")


def root_argument():
    """The tree that a rule is for: the only argument, or this repository."""
    return sys.argv[1] if len(sys.argv) > 1 else ROOT


def exit_with(name, found, what, summary):
    """Prints what a rule found, a line each, and fails if there is anything; else prints the
    summary. `what`: several of them."""
    for line in found:
        print(f"{name}: {line}", file=sys.stderr)
    if found:
        sys.exit(f"{name}: {len(found)} {what}")
    print(f"{name}: {summary}")


class Checks:
    """Counts the checks of a test of a rule. One that makes none has failed."""

    def __init__(self, name):
        self.name = name
        self.made = 0
        self.failures = 0

    def count(self, problem=None):
        """One more; `problem`: why it failed."""
        self.made += 1
        if problem:
            self.failures += 1
            print(f"{self.name}: {problem}", file=sys.stderr)

    def exit(self):
        print(f"{self.name}: {self.made} checks, {self.failures} failures")
        sys.exit(self.failures > 0 or self.made == 0)
