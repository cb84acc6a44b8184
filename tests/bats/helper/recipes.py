"""recipes.py SOCKET RECIPE acquire|release KEY [TOKEN]: the locks of the literature, done as it
tells.

acquire prints the token and exits 0, or exits 1 when another holds the lock; release exits 1 when
the lock is not the token's.
"""

import sys
import time
import uuid

import redis
from redis.exceptions import ResponseError

TTL = 60

COMPARE_AND_DELETE = """
if redis.call("get", KEYS[1]) == ARGV[1] then
    return redis.call("del", KEYS[1])
else
    return 0
end
"""


def release_watched(server, key, token):
    """WATCH, compare, MULTI, DEL, EXEC."""
    with server.pipeline() as pipe:
        pipe.watch(key)
        if pipe.get(key) != token:
            return False
        pipe.multi()
        pipe.delete(key)
        return pipe.execute() == [1]


def release_by_script(server, key, token):
    return server.eval(COMPARE_AND_DELETE, 1, key, token) == 1


def acquire_setnx_expire(server, key, token):
    return server.setnx(key, token) and server.expire(key, TTL)


def acquire_set_nx_ex(server, key, token):
    return server.set(key, token, nx=True, ex=TTL)


def acquire_set_nx_px(server, key, token):
    return server.set(key, token, nx=True, px=TTL * 1000)


def acquire_incr(server, key, _):
    try:
        return server.incr(key) == 1 and server.expire(key, TTL)
    except ResponseError:  # what lies there is no number
        return False


def release_incr(server, key, _):
    return server.delete(key) == 1


def expired(value):
    """Whether a timestamp lies in the past; what is none counts as 0, as in C and PHP."""
    try:
        return int(value or 0) < time.time()
    except ValueError:
        return True


def acquire_getset(server, key, token):
    """SETNX a timestamp; take over one that has passed."""
    return server.setnx(key, token) or (
        expired(server.get(key)) and expired(server.getset(key, token))
    )


RECIPES = {
    "setnx-expire": (acquire_setnx_expire, release_watched),
    "set-nx-ex": (acquire_set_nx_ex, release_watched),
    "set-nx-px": (acquire_set_nx_px, release_by_script),
    "incr": (acquire_incr, release_incr),
    "getset": (acquire_getset, release_watched),
}


def main(socket, recipe, action, key, token=None):
    server = redis.Redis(unix_socket_path=socket, decode_responses=True)
    acquire, release = RECIPES[recipe]
    if action == "release":
        return release(server, key, token)
    token = str(int(time.time()) + TTL) if recipe == "getset" else str(uuid.uuid4())
    if not acquire(server, key, token):
        return False
    print(token)
    return True


sys.exit(0 if main(*sys.argv[1:]) else 1)
