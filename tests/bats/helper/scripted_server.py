"""Answers the first words of each connection with the same bytes, whatever they are.

usage: scripted_server.py HOW FILE   (prints the port that it listens on)
FILE holds the bytes. HOW: stay (and say no more), close (behind them), drip (a byte at a time,
slowly), flood (again and again).
"""
import socket
import sys
import threading
import time

# Slower than any server timeout of the tests lets a whole answer through.
DRIP = 0.05


def serve(connection, how, answer):
    try:
        connection.recv(65536)
        if how == "drip":
            for byte in answer:
                connection.sendall(bytes([byte]))
                time.sleep(DRIP)
        elif how == "flood":
            while True:
                connection.sendall(answer)
        else:
            connection.sendall(answer)
        while how != "close" and connection.recv(65536):
            pass
    except OSError:
        pass
    finally:
        connection.close()


def main():
    how, file = sys.argv[1:]
    with open(file, "rb") as bytes_of_it:
        answer = bytes_of_it.read()
    if how == "flood":
        answer *= 1000  # now: large ones take a while
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=serve, args=(connection, how, answer), daemon=True).start()


main()
