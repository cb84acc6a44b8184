"""A cluster of one server that has all slots, and answers every script with the same error.

usage: scripted_cluster.py SLOTS ERROR   (prints the port that it listens on)
SLOTS: what CLUSTER SLOTS answers, as a format string with {port}, or `all`. ERROR: an error reply's
text, with {port}.
"""
import socket
import sys
import threading

ALL = "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:{port}\r\n"


def commands(stream):
    """Each command's words, as a client sends them."""
    while line := stream.readline():
        words = []
        for _ in range(int(line[1:])):
            length = int(stream.readline()[1:])
            words.append(stream.read(length + 2)[:-2])
        yield words


def serve(connection, slots, error):
    try:
        for words in commands(connection.makefile("rb")):
            if words[0] == b"CLUSTER":
                connection.sendall(slots)
            elif words[0].startswith(b"EVAL"):
                connection.sendall(error)
            else:
                connection.sendall(b"+OK\r\n")
    except OSError:
        pass
    finally:
        connection.close()


def main():
    slots, error = sys.argv[1:]
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    slots_bytes = (
        (ALL if slots == "all" else slots.encode().decode("unicode_escape"))
        .format(port=port)
        .encode()
    )
    error_bytes = f"-{error.format(port=port)}\r\n".encode()
    print(port, flush=True)
    while True:
        connection, _ = listener.accept()
        threading.Thread(
            target=serve, args=(connection, slots_bytes, error_bytes), daemon=True
        ).start()


main()
