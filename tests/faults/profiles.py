"""The profiles: which deployment, and what befalls it.

Those within the promise must show no violation. Those outside of it break it on purpose, in the
way that their name says; each must show a violation of exclusion, and a fence that would have
stopped it.
"""
import collections

from cluster import Cluster
from deployment import Local, Servers
from namespaces import NamespaceServers
from sentinel import Sentinels

# Seconds of the restart guard; more than any ttl.
GUARD = 4

Profile = collections.namedtuple("Profile", "promised servers guard make families breach")


def of_servers(count):
    return lambda directory, seed: Servers(directory, count, seed)


def in_namespaces(directory, _seed):
    return NamespaceServers(directory, 3)


PROFILES = {
    "one": Profile(True, 1, GUARD, of_servers(1), "servers", None),
    "three": Profile(True, 3, GUARD, of_servers(3), "servers", None),
    "five": Profile(True, 5, GUARD, of_servers(5), "servers", None),
    "local": Profile(True, 1, GUARD, lambda directory, seed: Local(directory), "local", None),
    "namespaces": Profile(True, 3, GUARD, in_namespaces, "namespaces", None),
    "cluster": Profile(True, 1, GUARD, Cluster, "cluster", None),
    "sentinel": Profile(True, 1, GUARD, Sentinels, "sentinel", None),
    "both-guards-stopped": Profile(False, 1, GUARD, of_servers(1), None, "stop_guards"),
    "keys-deleted": Profile(False, 1, GUARD, of_servers(1), None, "delete_keys"),
    "data-loss": Profile(False, 3, 0, of_servers(3), None, "lose_data"),
}
