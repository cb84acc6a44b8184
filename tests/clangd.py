#!/usr/bin/python3
"""Fails when clangd, as an editor starts it, sees an error in a source that preset dev compiles. The
last line says how many it reads without: `N passed, N failed`.

usage: tests/clangd.py [--sample | FILE…]    by default all sources, which takes minutes; a sample is
                                             one of each folder, the next one tomorrow, and what
                                             the newest commits changed

Needs `cmake --preset dev && cmake --build --preset dev --target redlock-protocol redlock-build`.
"""
import itertools
import json
import os
import subprocess
import sys
import time

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), ".."))
BUILD = os.path.join(ROOT, "build", "dev")
ERROR = 1  # of the severities of the protocol
RECENT_COMMITS = 20
MAX_RECENT = 30  # a sample must not take long


class Clangd:
    """One clangd, to which we are the editor."""

    def __init__(self):
        self.process = subprocess.Popen(
            # Without what it would do beside showing errors.
            ["clangd", "--background-index=false", "--clang-tidy=false", f"-j={os.cpu_count()}"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.send("initialize", id=0, params={"capabilities": {}, "rootUri": f"file://{ROOT}"})
        while self.receive().get("id") != 0:
            pass

    def send(self, method, **more):
        body = json.dumps({"jsonrpc": "2.0", "method": method, **more}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.process.stdin.flush()

    def receive(self):
        length = 0
        while line := self.process.stdout.readline().strip():
            name, _, value = line.partition(b":")
            if name == b"Content-Length":
                length = int(value)
        if not length:
            sys.exit("clangd: it ended")
        return json.loads(self.process.stdout.read(length))

    def open(self, file):
        with open(file, encoding="utf-8") as opened:
            text = opened.read()
        document = {"uri": f"file://{file}", "languageId": "cpp", "version": 1, "text": text}
        self.send("textDocument/didOpen", params={"textDocument": document})

    def close(self, file):
        self.send("textDocument/didClose", params={"textDocument": {"uri": f"file://{file}"}})


def errors(files):
    """-> for each file, the errors that clangd shows in it, a line each"""
    clangd = Clangd()
    waiting, opened, found = list(reversed(files)), set(), {}
    while waiting or opened:
        while waiting and len(opened) < os.cpu_count():
            opened.add(waiting[-1])
            clangd.open(waiting.pop())
        message = clangd.receive()
        if message.get("method") != "textDocument/publishDiagnostics":
            continue
        file = message["params"]["uri"].removeprefix("file://")
        if file not in opened:
            continue
        found[file] = [
            f"{os.path.relpath(file, ROOT)}:{one['range']['start']['line'] + 1}: {one['message']}"
            for one in message["params"]["diagnostics"]
            if one["severity"] == ERROR
        ]
        opened.remove(file)
        clangd.close(file)
    clangd.process.kill()
    clangd.process.wait()
    return found


def sources():
    with open(os.path.join(BUILD, "compile_commands.json"), encoding="utf-8") as file:
        names = {os.path.realpath(entry["file"]) for entry in json.load(file)}
    return sorted(name for name in names if not name.startswith(f"{BUILD}/"))


def changed_of_late(files):
    """What the newest commits changed, the newest first; nothing outside of a repository."""
    told = subprocess.run(
        ["git", "log", f"--max-count={RECENT_COMMITS}", "--name-only", "--format="],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    names = dict.fromkeys(os.path.join(ROOT, name) for name in told.stdout.split("\n"))
    return [name for name in names if name in files]


def sample(files):
    """Of each folder the file of today, and what changed of late: preset ci compiles sources in
    batches, where one sees what another includes."""
    folders = [list(group) for _, group in itertools.groupby(files, os.path.dirname)]
    chosen = {folder[int(time.time()) // 86400 % len(folder)] for folder in folders}
    return sorted(chosen.union(changed_of_late(files)[:MAX_RECENT]))


def main():
    words = sys.argv[1:]
    if words == ["--sample"]:
        files = sample(sources())
    else:
        files = [os.path.realpath(file) for file in words] or sources()
    found = errors(files)
    for line in itertools.chain(*found.values()):
        print(f"clangd: {line}")
    failed = sum(map(bool, found.values()))
    print(f"{len(files) - failed} passed, {failed} failed")
    sys.exit(1 if failed or not files else 0)


if __name__ == "__main__":
    main()
