"""Wires two network namespaces together, by packets of at most 1500 bytes each of which takes its
time. It tells of each connection how many round trips it took and how many bytes went each way,
whatever the load of this machine: what waited for what is seen from the order of the packets.

A round trip is an answer that the client waited for. How TCP cuts a long text, and when it waits
for an acknowledgement in the midst of it, is its own affair: this is counted apart.

usage: wire.py MILLISECONDS   how long a packet takes; needs root

The servers are to run in the one namespace, on 127.0.0.1; in the other that address leads to them,
over the wire. The first line that it prints names both, as files for nsenter --net: the servers',
and the clients'. Then there is a line for each connection that a client has ended:

    PORT ROUND-TRIPS ROUND-TRIPS-AND-WAITS BYTES-TO-THE-SERVER BYTES-TO-THE-CLIENT

PORT is the server's. The handshake of TCP is not among the round trips. ROUND-TRIPS-AND-WAITS has
also those of bytes that waited for nothing but an acknowledgement.
"""
import ctypes
import fcntl
import heapq
import os
import select
import struct
import subprocess
import sys
import time

CLONE_NEWNET = 0x40000000
TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
MTU = 1500
TCP = 6
FIN, SYN, RST = 0x01, 0x02, 0x04
CLIENT, SERVER = 0, 1
ADDRESSES = {CLIENT: "10.0.0.2/24", SERVER: "10.0.0.1/24"}


def enter_new_namespace():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) != 0:
        sys.exit(f"wire.py: no network namespace: {os.strerror(ctypes.get_errno())}")
    return os.open("/proc/self/ns/net", os.O_RDONLY)


def open_tunnel(address):
    """A device in this namespace; what is sent there can be read here."""
    tunnel = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tunnel, TUNSETIFF, struct.pack("16sH22x", b"wire", IFF_TUN | IFF_NO_PI))
    # No packet is lost. So none is to be sent twice, however late this program is: that would slow
    # the sender down.
    patient = "rto_min 30s"
    for command in (
        f"addr add {address} dev wire",
        f"link set wire mtu {MTU} up",
        f"route replace 10.0.0.0/24 dev wire {patient}",
        *([f"route add 127.0.0.1 dev wire {patient}"] if address == ADDRESSES[CLIENT] else []),
    ):
        subprocess.run(["ip", *command.split()], check=True)
    for name, value in (
        ("tcp_early_retrans", 0),
        # 127.0.0.1 may come and go over it.
        ("conf/all/route_localnet", 1),
        ("conf/wire/route_localnet", 1),
        ("conf/all/rp_filter", 0),
        ("conf/wire/rp_filter", 0),
    ):
        with open(f"/proc/sys/net/ipv4/{name}", "w", encoding="ascii") as setting:
            setting.write(str(value))
    return tunnel


class Steps:
    """Each packet is one step later than the latest that its sender had got when it was sent. So an
    answer is one step later than its question."""

    def __init__(self):
        self.seen = {CLIENT: -1, SERVER: -1}  # the latest step that has arrived there
        self.last = 1  # the step of the last bytes from the server; its SYN was step 1

    def round_trips(self):
        return (self.last - 1) // 2


class Connection:
    def __init__(self):
        self.answers = Steps()  # of packets that carry bytes
        self.packets = Steps()  # of all: what waited for an acknowledgement is later by that, too
        self.begin = {}  # the number of each side's first byte
        self.bytes = {CLIENT: 0, SERVER: 0}  # that each side sent
        self.told = False

    def send(self, side, flags, number, length):
        """-> what the other side is to know when the packet arrives"""
        is_new = False
        if flags & SYN:
            self.begin[side] = (number + 1) % 2**32
        elif side in self.begin and length:
            end = (number + length - self.begin[side]) % 2**32
            is_new = end > self.bytes[side]  # else it was sent before
            self.bytes[side] = max(self.bytes[side], end)
        carried = []
        for steps in (self.answers, self.packets):
            step = steps.seen[side] + 1
            if is_new and side == SERVER:
                steps.last = max(steps.last, step)
            if length or flags & SYN or steps is self.packets:
                carried.append((steps, step))
        return carried

    @staticmethod
    def arrive(side, carried):
        for steps, step in carried:
            steps.seen[side] = max(steps.seen[side], step)

    def report(self, port):
        trips = (self.answers.round_trips(), self.packets.round_trips())
        print(port, *trips, self.bytes[CLIENT], self.bytes[SERVER], flush=True)
        self.told = True


class Wire:
    def __init__(self, tunnels, delay):
        self.tunnels = tunnels
        self.delay = delay
        self.under_way = []  # (when it arrives, number, packet, the other side, connection, carried)
        self.sent = 0
        self.connections = {}

    def take(self, side):
        """A packet that this side sends."""
        packet = os.read(self.tunnels[side], 65536)
        if packet[0] >> 4 != 4 or packet[9] != TCP:
            return
        header = (packet[0] & 0x0F) * 4
        source, sink, number = struct.unpack_from("!HHI", packet, header)
        flags = packet[header + 13]
        length = struct.unpack_from("!H", packet, 2)[0] - header - (packet[header + 12] >> 4) * 4
        ports = (source, sink) if side == CLIENT else (sink, source)
        if side == CLIENT and flags & SYN:
            self.connections.setdefault(ports, Connection())
        connection = self.connections.get(ports)
        if connection is None:
            return
        carried = connection.send(side, flags, number, length)
        if side == CLIENT and flags & (FIN | RST) and not connection.told:
            connection.report(ports[1])
        self.sent += 1
        arrival = (time.monotonic() + self.delay, self.sent, packet, 1 - side, connection, carried)
        heapq.heappush(self.under_way, arrival)

    def deliver(self):
        while self.under_way and self.under_way[0][0] <= time.monotonic():
            _, _, packet, side, connection, carried = heapq.heappop(self.under_way)
            connection.arrive(side, carried)
            os.write(self.tunnels[side], packet)

    def run(self):
        while True:
            rest = self.under_way and max(0, self.under_way[0][0] - time.monotonic())
            ready, _, _ = select.select(
                self.tunnels.values(), [], [], rest if self.under_way else None
            )
            for side, tunnel in self.tunnels.items():
                if tunnel in ready:
                    self.take(side)
            self.deliver()


def main():
    delay = int(sys.argv[1]) / 1000
    servers = enter_new_namespace()
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    tunnels = {SERVER: open_tunnel(ADDRESSES[SERVER])}
    clients = enter_new_namespace()
    tunnels[CLIENT] = open_tunnel(ADDRESSES[CLIENT])
    print(*(f"/proc/{os.getpid()}/fd/{namespace}" for namespace in (servers, clients)), flush=True)
    Wire(tunnels, delay).run()


main()
