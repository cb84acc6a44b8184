#!/usr/bin/python3
"""The Lock of redis-py, and peers that are wrong on purpose; README.md tells what a peer is asked, and what it answers.

usage: peer.py LIBRARY NAME TTL-MS SOCKET…
"""

import importlib.metadata
import os
import sys
import time
import uuid

import redis

# The retry delay, in seconds.
RETRY = 0.03


def version():
    return f"python3-redis {importlib.metadata.version('redis')}"


class RedisPy:
    """The Lock of redis-py."""

    def __init__(self, name, ttl, sockets):
        (socket,) = sockets
        self.key, self.version = name, version()
        self.lock = redis.Redis(unix_socket_path=socket).lock(name, timeout=ttl / 1000, sleep=RETRY)

    def acquire(self, blocking):
        return self.lock.acquire(blocking=blocking)

    def extend(self):
        try:
            return self.lock.reacquire()
        except redis.exceptions.LockError:
            return False

    def release(self):
        try:
            self.lock.release()
            return True
        except redis.exceptions.LockError:
            return False


class Plain:
    """SET NX PX by hand, compare and delete, compare and expire: for the mutants below."""

    def __init__(self, name, ttl, sockets):
        (socket,) = sockets
        self.key, self.version, self.ttl = name, version(), ttl
        self.server = redis.Redis(unix_socket_path=socket)

    def set(self):
        self.token = str(uuid.uuid4())
        return self.server.set(self.key, self.token, nx=True, px=self.ttl)

    def acquire(self, blocking):
        while not self.set():
            if not blocking:
                return False
            time.sleep(RETRY)
        return True

    def if_ours(self, call):
        script = f"if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end return {call}"
        return self.server.eval(script, 1, self.key, self.token, self.ttl)

    def extend(self):
        return self.if_ours("redis.call('pexpire', KEYS[1], ARGV[2])")

    def release(self):
        return self.if_ours("redis.call('del', KEYS[1])")


class TakesAll(Plain):
    """A mutant: it takes what others hold."""

    def set(self):
        return self.server.set(self.key, str(uuid.uuid4()), px=self.ttl)


class ExtendsNothing(Plain):
    def extend(self):
        return True


class ExtendsAll(Plain):
    """What it extends need not be its own."""

    def extend(self):
        return not self.server.pexpire(self.key, self.ttl)


class ReleasesAll(Plain):
    """What it releases need not be its own."""

    def release(self):
        return self.server.delete(self.key)


LIBRARIES = {
    "redis-py": RedisPy,
    "takes-all": TakesAll,
    "extends-nothing": ExtendsNothing,
    "extends-all": ExtendsAll,
    "releases-all": ReleasesAll,
}


def count_once(path):
    """Reads a number and writes one more; fails if another process is at it."""
    os.close(os.open(f"{path}.inside", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    with open(path) as file:
        number = int(file.read())
    with open(path, "w") as file:
        file.write(str(number + 1))
    with open(f"{path}.log", "a") as file:
        file.write("peer\n")
    os.unlink(f"{path}.inside")


def answer(line):
    print(line, flush=True)


def main(library, name, ttl, *sockets):
    lock = LIBRARIES[library](name, int(ttl), sockets)
    answer(f"ready {lock.key} {lock.version}")
    for line in sys.stdin:
        match line.split():
            case ["try"]:
                answer("held" if lock.acquire(False) else "busy")
            case ["wait"]:
                if not lock.acquire(False):
                    answer("waiting")
                    lock.acquire(True)
                answer("held")
            case ["extend"]:
                answer("extended" if lock.extend() else "lost")
            case ["release"]:
                answer("released" if lock.release() else "lost")
            case ["count", path]:
                turns = 0
                while not os.path.exists(f"{path}.enough"):
                    lock.acquire(True)
                    count_once(path)
                    lock.release()
                    turns += 1
                answer(f"counted {turns}")


main(*sys.argv[1:])
