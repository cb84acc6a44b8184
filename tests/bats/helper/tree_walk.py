"""Signals a process tree one by one, as node's tree-kill, pm2 and nodemon do.

usage: tree_walk.py SIGNAL ORDER PID
Reads with ps who is whose parent, from PID downwards; then sends SIGNAL to each. ORDER: `children`
or `parents`, which come first; or `top`, for PID and its children alone.
"""
import os
import signal
import subprocess
import sys


def main():
    number, order, top = getattr(signal, "SIG" + sys.argv[1]), sys.argv[2], int(sys.argv[3])
    listed = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid="], check=True, capture_output=True, text=True
    ).stdout
    children = {}
    for pid, parent in (map(int, line.split()) for line in listed.splitlines()):
        children.setdefault(parent, []).append(pid)
    tree = [top]
    for pid in tree:
        if order != "top" or pid == top:
            tree += children.get(pid, [])
    if order == "children":
        tree.reverse()
    for pid in tree:
        os.kill(pid, number)


main()
