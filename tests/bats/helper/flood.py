"""Notifies the waiters of a server again and again, one message after the other.

usage: flood.py SOCKET WORD NUMBER
"""
import socket
import sys


def command(*words):
    parts = [f"${len(word)}\r\n{word}\r\n" for word in words]
    return (f"*{len(words)}\r\n" + "".join(parts)).encode()


def main():
    path, word, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
    server = socket.socket(socket.AF_UNIX)
    server.connect(path)
    server.sendall(command("PUBSUB", "CHANNELS", "redlock:wake:*"))
    channels = [line for line in server.recv(65536).decode().split() if line.startswith("redlock")]
    for _ in range(number):
        for channel in channels:
            server.sendall(command("PUBLISH", channel, word))
            if server.recv(64) != b":1\r\n":
                sys.exit("the waiter does not listen")


main()
