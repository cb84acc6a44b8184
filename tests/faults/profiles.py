"""The profiles: which deployment, and what befalls it.

Those within the promise must show no violation. Those outside of it break it on purpose, in the
way that their name says; each must show a violation of exclusion, and a fence that would have
stopped it.
"""
import collections

from deployment import Local, Servers

# Seconds of the restart guard; more than any ttl.
GUARD = 4

Profile = collections.namedtuple("Profile", "promised servers guard make breach")


def of_servers(count):
    return lambda directory, seed: Servers(directory, count, seed)


PROFILES = {
    "one": Profile(True, 1, GUARD, of_servers(1), None),
    "three": Profile(True, 3, GUARD, of_servers(3), None),
    "five": Profile(True, 5, GUARD, of_servers(5), None),
    "local": Profile(True, 1, GUARD, lambda directory, seed: Local(directory), None),
    "both-guards-stopped": Profile(False, 1, GUARD, of_servers(1), "stop_guards"),
    "keys-deleted": Profile(False, 1, GUARD, of_servers(1), "delete_keys"),
    "data-loss": Profile(False, 3, 0, of_servers(3), "lose_data"),
}
