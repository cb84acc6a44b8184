"""The profiles: which deployment, and what befalls it.

Those within the promise must show no violation. Those outside of it break it on purpose, in the
way that their name says; each must show a violation of exclusion or of the tree's end, and a
fence that would have stopped it.
"""
import collections
import os

from cluster import Cluster
from deployment import Local, Servers
from namespaces import NamespaceServers
from sentinel import Sentinels

# Seconds of the restart guard; more than any ttl.
GUARD = 4

Profile = collections.namedtuple("Profile", "promised servers guard make families breach")


def of_servers(count):
    return lambda directory, seed, history: Servers(directory, count, seed, history)


def of_one_with_a_clock(directory, seed, history):
    return Servers(directory, 1, seed, history, clock=os.environ["CLOCK_STEP"])


PROFILES = {
    "one": Profile(True, 1, GUARD, of_servers(1), "servers", None),
    "three": Profile(True, 3, GUARD, of_servers(3), "servers", None),
    "five": Profile(True, 5, GUARD, of_servers(5), "servers", None),
    "local": Profile(True, 1, GUARD, lambda directory, *_: Local(directory), "local", None),
    "namespaces": Profile(
        True, 3, GUARD, lambda directory, *_: NamespaceServers(directory, 3), "namespaces", None
    ),
    "cluster": Profile(
        True, 1, GUARD, lambda directory, seed, _: Cluster(directory, seed), "cluster", None
    ),
    "sentinel": Profile(
        True, 1, GUARD, lambda directory, seed, _: Sentinels(directory, seed), "sentinel", None
    ),
    "both-guards-stopped": Profile(False, 1, GUARD, of_servers(1), None, "stop_guards"),
    "keys-deleted": Profile(False, 1, GUARD, of_servers(1), None, "delete_keys"),
    "keys-evicted": Profile(False, 1, GUARD, of_servers(1), None, "evict_keys"),
    "data-loss": Profile(False, 3, 0, of_servers(3), None, "lose_data"),
    "server-clock-jumps": Profile(False, 1, GUARD, of_one_with_a_clock, None, "jump_clock"),
}
