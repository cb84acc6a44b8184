"""A name server on 127.0.0.53: every name has the address 127.0.0.1, and no IPv6 address. While the
file HELD exists it answers nothing; what was asked meanwhile is answered when the file is gone.

usage: names.py HELD   (prints a line when it listens)
"""
import os
import socket
import sys
import time


def answer(question):
    end = 12
    while question[end]:
        end += question[end] + 1
    is_v4 = question[end + 1 : end + 3] == b"\0\1"
    head = question[:2] + b"\x81\x80\0\1\0" + (b"\1" if is_v4 else b"\0") + b"\0\0\0\0"
    address = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\x7f\0\0\1" if is_v4 else b""
    return head + question[12 : end + 5] + address


def main():
    held = sys.argv[1]
    names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    names.bind(("127.0.0.53", 53))
    print("listening", flush=True)
    while True:
        question, client = names.recvfrom(512)
        while os.path.exists(held):
            time.sleep(0.05)
        names.sendto(answer(question), client)


main()
