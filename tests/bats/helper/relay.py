"""Relays TCP connections to a port of 127.0.0.1, a few bytes at a time, both ways, and passes on
each side's end.

usage: relay.py PORT,… BYTES [WORD]   (prints the port that it listens on, and WORD whenever it
                                       passes on an answer with it)
Of several ports each connection gets the next one in turn, as from a load balancer.
"""
import itertools
import socket
import sys
import threading


def pass_on(source, sink, size, word):
    try:
        while data := source.recv(size):
            sink.sendall(data)
            if word and word.encode() in data:
                print(word, flush=True)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def main():
    ports, size = itertools.cycle(sys.argv[1].split(",")), int(sys.argv[2])
    word = sys.argv[3] if len(sys.argv) > 3 else None
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    while True:
        client, _ = listener.accept()
        server = socket.create_connection(("127.0.0.1", int(next(ports))))
        for side in (client, server):
            side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for way in ((client, server, size, None), (server, client, size, word)):
            threading.Thread(target=pass_on, args=way, daemon=True).start()


main()
