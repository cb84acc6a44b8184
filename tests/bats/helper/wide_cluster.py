"""A cluster with many masters, each at an address of its own of 127/8, which has one lock each: it
shows as free. Counts the connections that are open at the same time.

usage: wide_cluster.py MASTERS CLOSED SILENT   (prints the port of all of them)

CLOSED of the masters do not listen, and SILENT others never answer. To `MOST` a server answers with
the largest number of connections, to `SCANS` with that of lists that a master was asked for, and to
`ASKED` with the number of masters that were asked for one.
"""
import binascii
import collections
import selectors
import socket
import sys

SLOTS = 16384
# What a script says of a lock with neither holder nor waiters.
FREE = b"*2\r\n$4\r\nfree\r\n"
FREE += b"*8\r\n:0\r\n*0\r\n:0\r\n*0\r\n$0\r\n\r\n$2\r\n17\r\n$0\r\n\r\n*0\r\n"


def bulk(text):
    return f"${len(text)}\r\n{text}\r\n"


def key_in(first, last):
    """A key whose slot is in this range."""
    number = 0
    while not first <= binascii.crc_hqx(f"lock{number}".encode(), 0) % SLOTS <= last:
        number += 1
    return f"lock{number}"


class Cluster:
    def __init__(self, masters, closed, silent):
        self.listener = socket.create_server(("", 0), backlog=1024)
        self.port = self.listener.getsockname()[1]
        self.keys = {}
        self.silent = set()
        ranges = []
        for number in range(masters):
            host = f"127.1.{number // 250}.{number % 250 + 1}"
            first, last = (n * SLOTS // masters for n in (number, number + 1))
            self.keys[host] = key_in(first, last - 1)
            is_closed = 0 < number <= closed
            if closed < number <= closed + silent:
                self.silent.add(host)
            port = 1 if is_closed else self.port
            ranges.append(f"*3\r\n:{first}\r\n:{last - 1}\r\n*2\r\n{bulk(host)}:{port}\r\n")
        self.slots = f"*{masters}\r\n{''.join(ranges)}".encode()
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.listener, selectors.EVENT_READ)
        self.unread = {}
        self.most = 0
        self.scans = collections.Counter()

    def serve(self):
        while True:
            self.read_all(None)

    def read_all(self, timeout):
        """Whoever has closed a connection before opening another has only one."""
        for ready, _ in self.selector.select(timeout):
            if ready.fileobj is self.listener:
                client, _ = self.listener.accept()
                client.setblocking(False)
                self.selector.register(client, selectors.EVENT_READ)
                self.unread[client] = b""
                self.read_all(0)
                self.most = max(self.most, len(self.unread))
            elif ready.fileobj in self.unread:
                self.read(ready.fileobj)

    def read(self, client):
        try:
            data = client.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.selector.unregister(client)
            del self.unread[client]
            client.close()
            return
        self.unread[client] += data
        host = client.getsockname()[0]
        while words := self.next_command(client):
            self.scans[host] += words[0] == b"SCAN"
            if host not in self.silent:
                client.sendall(self.answer(host, words))

    def next_command(self, client):
        parts = self.unread[client].split(b"\r\n")
        if not parts[0]:
            return None
        end = 1 + 2 * int(parts[0][1:])
        if len(parts) <= end:
            return None
        self.unread[client] = b"\r\n".join(parts[end:])
        return parts[2:end:2]

    def answer(self, host, words):
        if words == [b"CLUSTER", b"SLOTS"]:
            return self.slots
        if words == [b"CLUSTER", b"INFO"]:
            return bulk("cluster_current_epoch:1\r\n").encode()
        if words[0] == b"SCAN":
            owner = bulk("redlock:owner:{" + self.keys[host] + "}")
            return f"*2\r\n$1\r\n0\r\n*1\r\n{owner}".encode()
        if words[0].startswith(b"EVAL"):
            return FREE
        if words[0].upper() == b"MOST":
            return f":{self.most}\r\n".encode()
        if words[0].upper() == b"SCANS":
            return f":{max(self.scans.values())}\r\n".encode()
        if words[0].upper() == b"ASKED":
            return f":{sum(count > 0 for count in self.scans.values())}\r\n".encode()
        return b"-ERR unknown command\r\n"


def main():
    cluster = Cluster(*map(int, sys.argv[1:]))
    print(cluster.port, flush=True)
    cluster.serve()


main()
