"""Relays TCP connections to a Redis server on a port of 127.0.0.1, and changes the time that it
tells.

usage: wrong_clock.py PORT SECONDS   (prints the port that it listens on; for clients that ask one
                                      question at a time)
"""
import re
import socket
import sys
import threading


def serve(client, server, offset):
    asked_time = False
    try:

        def questions():
            nonlocal asked_time
            while data := client.recv(65536):
                asked_time = b"\r\n$4\r\nTIME\r\n" in data
                server.sendall(data)
            server.shutdown(socket.SHUT_WR)

        threading.Thread(target=questions, daemon=True).start()
        while data := server.recv(65536):
            if asked_time:
                data = re.sub(
                    rb"\r\n(\d{10})\r\n",
                    lambda time: b"\r\n%d\r\n" % (int(time[1]) + offset),
                    data,
                    count=1,
                )
            client.sendall(data)
        client.close()
    except OSError:
        pass


def main():
    port, offset = int(sys.argv[1]), int(sys.argv[2])
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    while True:
        client, _ = listener.accept()
        server = socket.create_connection(("127.0.0.1", port))
        threading.Thread(target=serve, args=(client, server, offset), daemon=True).start()


main()
