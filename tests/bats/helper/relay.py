"""Relays TCP connections to a port of 127.0.0.1, a few bytes at a time, both ways, and passes on each side's end.

usage: relay.py PORT BYTES   (prints the port that it listens on)
"""
import socket
import sys
import threading


def pass_on(source, sink, size):
    try:
        while data := source.recv(size):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def main():
    port, size = int(sys.argv[1]), int(sys.argv[2])
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    while True:
        client, _ = listener.accept()
        server = socket.create_connection(("127.0.0.1", port))
        for side in (client, server):
            side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for source, sink in ((client, server), (server, client)):
            threading.Thread(target=pass_on, args=(source, sink, size), daemon=True).start()


main()
