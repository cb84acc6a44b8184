#!/usr/bin/python3
"""The Lock of redis-py; README.md tells what a peer is asked, and what it answers.

usage: peer.py NAME TTL-MS SOCKET
"""

import importlib.metadata
import os
import sys

import redis

# The retry delay, in seconds.
RETRY = 0.03


class RedisPy:
    """The Lock of redis-py."""

    version = f"python3-redis {importlib.metadata.version('redis')}"

    def __init__(self, name, ttl, socket):
        self.key = name
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


def main(name, ttl, socket):
    lock = RedisPy(name, int(ttl), socket)
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
