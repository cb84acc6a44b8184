"""Looks on from outside: is anything of a command alive when its lock may be another's?

Every process of the command holds a shared flock(2) on the file WITNESS. A process that can take
it exclusively knows that all are dead.

observer.py gone WITNESS KEY SOCKET...
    Prints `looking` when the servers answer, and `watching` when a quorum of them has KEY with one
    and the same token. Looks whenever a server tells of a change of KEY, and when it may expire. At
    the very moment when that is over: `dead LEFT`, or `ALIVE LEFT` and status 1. LEFT is what the
    lease had left then, in ms.

observer.py stop WITNESS KEY TTL SOCKET=PID...
    Stops the servers, each just after it extended KEY, and well before the next extension is due
    (TTL in ms); prints `stopped EXPIRES`, the first instant (ms since 1970) at which none of them
    has KEY any more. Then: `dead` or `ALIVE`, as seen at that instant.
"""

import fcntl
import os
import select
import signal
import sys
import time

import redis


def take(witness):
    """Whether the witness can be had exclusively: at once, or not."""
    descriptor = os.open(witness, os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)


def say(*words):
    print(*words, flush=True)


class Servers:
    """Servers that tell of each change of a key."""

    def __init__(self, key, sockets):
        self.key = key
        self.servers = [redis.Redis(unix_socket_path=socket) for socket in sockets]
        self.changes = []
        for server in self.servers:
            server.config_set("notify-keyspace-events", "KA")
            changes = server.pubsub()
            changes.subscribe(f"__keyspace@0__:{key}")
            self.changes.append(changes)

    def look(self):
        """The tokens, and when the first of them expires (seconds of time.monotonic)."""
        begin = time.monotonic()
        answers = [
            server.pipeline(transaction=True).get(self.key).pttl(self.key).execute()
            for server in self.servers
        ]
        left = min((left for token, left in answers if token is not None), default=0)
        return [token for token, _ in answers], begin + left / 1000

    def wait(self, until=None):
        """Until a server tells of a change, or until the time has come."""
        poll = select.poll()
        for changes in self.changes:
            poll.register(changes.connection._sock, select.POLLIN)
        poll.poll(None if until is None else max(0, (until - time.monotonic()) * 1000))
        for changes in self.changes:
            while changes.get_message(timeout=0):
                pass


def has_quorum(tokens, token):
    return token is not None and tokens.count(token) > len(tokens) // 2


def gone(witness, key, *sockets):
    servers = Servers(key, sockets)
    say("looking")
    while True:
        tokens, end = servers.look()
        token = next((found for found in tokens if has_quorum(tokens, found)), None)
        if token is not None:
            break
        servers.wait()
    say("watching")
    while True:
        servers.wait(until=end)
        tokens, next_end = servers.look()
        if not has_quorum(tokens, token):
            dead = take(witness)
            say("dead" if dead else "ALIVE", round((end - time.monotonic()) * 1000))
            return dead
        end = next_end


def is_stopped(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rsplit(")", 1)[1].split()[0] == "T"


def stop_after_extension(key, ttl, socket, pid):
    """Stops the server at an instant at which no extension is under way; when KEY expires there."""
    servers = Servers(key, [socket])
    server = servers.servers[0]
    while True:
        before = expires = server.pexpiretime(key)
        while expires == before:
            servers.wait()
            expires = server.pexpiretime(key)
        os.kill(pid, signal.SIGSTOP)
        while not is_stopped(pid):
            pass
        # An extension is due a third of the ttl after the last one was sent.
        if expires > 0 and time.time() * 1000 < expires - ttl + ttl / 6:
            return expires
        os.kill(pid, signal.SIGCONT)


def stop(witness, key, ttl, *servers):
    pairs = [server.rsplit("=", 1) for server in servers]
    expires = max(stop_after_extension(key, int(ttl), socket, int(pid)) for socket, pid in pairs)
    say("stopped", expires)
    while (now := time.time() * 1000) < expires:
        time.sleep((expires - now) / 1000)
    dead = take(witness)
    say("dead" if dead else "ALIVE")
    return dead


sys.exit(0 if {"gone": gone, "stop": stop}[sys.argv[1]](*sys.argv[2:]) else 1)
