#!/usr/bin/env python3
"""Strikes a lease whose command loads the machine, and says who was dead when.

The command, a tests/tools/load_tree, runs under `redlock-cli run` on a Redis of its own. Its
processes inherit a flock(2) on a witness file, and this program, at a real-time priority where it
may, notes when the last of them is dead. When all are up and the lease has just been renewed, the
servers become unreachable for the holder process. "struck" is false when the command ended, or its
lease was lost, before that: then nothing was cut off, and the rest is about the lease as it ended
by itself. One line of JSON says what it saw:

    {"struck": true, "in_time": true, "late_ms": 0, "status": 79, "stderr": "...", "ttl": "5s", ...}

Exit status: 0 when the exit status of `run` told the truth (79 only in time, else 80 and UNSAFE),
else 1.
"""
import argparse
import fcntl
import json
import os
import pty
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

WAIT_LIMIT = 40


def redis_call(connection, *words):
    request = b"*%d\r\n" % len(words) + b"".join(
        b"$%d\r\n%s\r\n" % (len(w), w) for w in (str(x).encode() for x in words)
    )
    connection.sendall(request)
    reply = b""
    while not reply.endswith(b"\r\n"):
        reply += connection.recv(4096)
    return reply.strip()


def wait_for(what, condition, limit=WAIT_LIMIT):
    end = time.monotonic() + limit
    while not condition():
        if time.monotonic() > end:
            raise SystemExit(f"strike: not within {limit} s: {what}")
        time.sleep(0.005)


class Server:
    def __init__(self, directory):
        self.path = os.path.join(directory, "redis.sock")
        self.process = subprocess.Popen(
            [
                "redis-server",
                "--port",
                "0",
                "--unixsocket",
                self.path,
                "--unixsocketperm",
                "777",
                "--save",
                "",
                "--dir",
                directory,
            ],
            stdout=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
        )
        wait_for("the server's socket", lambda: os.path.exists(self.path))
        self.connection = socket.socket(socket.AF_UNIX)
        wait_for("the server", lambda: self.connection.connect_ex(self.path) == 0)

    def expiry(self):
        """When the key expires, in seconds of the wall clock; negative when it is not there."""
        return int(redis_call(self.connection, "PEXPIRETIME", "demo")[1:]) / 1000

    def cut_off(self):
        os.rename(self.path, self.path + ".away")
        redis_call(self.connection, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        redis_call(self.connection, "CLIENT", "KILL", "TYPE", "pubsub")

    def end(self):
        self.process.kill()
        self.process.wait()


def real_time():
    try:
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(50))
        return True
    except PermissionError:
        return False


def throttle(quota):
    """Makes a cgroup with so much of a CPU; the function that puts the calling process into it, and
    the directories to remove."""
    for base, limit in (("/sys/fs/cgroup/cpu", "v1"), ("/sys/fs/cgroup", "v2")):
        directory = os.path.join(base, f"redlock-strike-{os.getpid()}")
        if limit == "v2" and not os.path.exists(os.path.join(base, "cgroup.controllers")):
            continue
        try:
            os.mkdir(directory)
            if limit == "v1":
                with open(os.path.join(directory, "cpu.cfs_quota_us"), "w") as file:
                    file.write(str(int(quota * 100000)) if quota else "-1")
            else:
                with open(os.path.join(directory, "cpu.max"), "w") as file:
                    file.write(f"{int(quota * 100000)} 100000" if quota else "max 100000")
        except OSError:
            shutil.rmtree(directory, ignore_errors=True)
            continue

        def enter():
            with open(os.path.join(directory, "cgroup.procs"), "w") as file:
                file.write("0")

        return enter, directory
    raise SystemExit("strike: no cgroup with a quota can be made here")


def states(program):
    """How many processes of this program are in which state, and what the front process had of the
    CPU so far, in ticks."""
    count = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline") as words:
                line = words.read()
            with open(f"/proc/{pid}/stat") as stat:
                fields = stat.read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if line.startswith(os.path.dirname(program)):
            name = (
                fields[0]
                if line.startswith(program)
                else f"guard {pid} {fields[0]} {fields[11]}+{fields[12]}"
            )
            count[name] = count.get(name, 0) + 1
    return count


def main():
    # Else the server, the directory and the cgroup would stay when a test's time is up.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("strike: ended by SIGTERM"))
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--program", default=os.environ.get("REDLOCK_CLI", "redlock-cli"))
    parser.add_argument("--tree", default=os.environ.get("LOAD_TREE", "load-tree"))
    parser.add_argument("--ttl", default="5s")
    parser.add_argument(
        "--option", action="append", default=[], help="a word for `run`, as often as needed"
    )
    parser.add_argument("--terminal", action="store_true", help="at a terminal, in the foreground")
    parser.add_argument("--user", type=int, help="run as this uid")
    parser.add_argument(
        "--quota",
        type=float,
        help="in a cgroup with so much of a CPU; 0: with the controller, without a quota",
    )
    parser.add_argument(
        "--settle",
        type=float,
        default=0,
        help="seconds between the tree's word that it is up and the strike",
    )
    parser.add_argument("load", nargs=argparse.REMAINDER, help="what load-tree is told")
    options = parser.parse_args()

    directory = tempfile.mkdtemp(prefix="redlock-strike-")
    os.chmod(directory, 0o755)
    program = shutil.copy(options.program, os.path.join(directory, "redlock-cli"))
    tree = shutil.copy(options.tree, os.path.join(directory, "load-tree"))
    real_time()
    server = Server(directory)
    witness = os.path.join(directory, "witness")
    held = os.open(witness, os.O_RDWR | os.O_CREAT, 0o666)
    os.set_inheritable(held, True)
    fcntl.flock(held, fcntl.LOCK_SH)
    errors_path = os.path.join(directory, "stderr")
    words_path = os.path.join(directory, "stdout")
    errors = os.open(errors_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    enter, cgroup = throttle(options.quota) if options.quota is not None else (None, None)

    # The command itself writes to a file, also at a terminal: the terminal is for job control.
    inner = [
        program,
        "run",
        "-S",
        "unix://" + server.path,
        "-k",
        "demo",
        "-t",
        options.ttl,
        *options.option,
        "--",
        "sh",
        "-c",
        'exec "$@" >"$0"',
        words_path,
        tree,
        *options.load,
    ]

    def begin():
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if enter:
            enter()
        os.dup2(errors, 2)
        os.close(server.connection.fileno())
        if options.user is not None:
            os.setgroups([])
            os.setgid(options.user)
            os.setuid(options.user)
        environment = {
            name: value for name, value in os.environ.items() if name != "XDG_CONFIG_HOME"
        }
        os.execvpe(inner[0], inner, dict(environment, HOME="/nonexistent"))

    open(words_path, "w").close()
    os.chmod(words_path, 0o666)
    if options.terminal:
        pid, terminal = pty.fork()
        if pid == 0:
            begin()

        def drain():
            try:
                while os.read(terminal, 4096):
                    pass
            except OSError:
                pass

        threading.Thread(target=drain, daemon=True).start()
    else:
        pid = os.fork()
        if pid == 0:
            os.setsid()
            begin()
    os.close(held)

    dead_at = None

    def watch():
        """Being late can only make the verdict worse."""
        nonlocal dead_at
        real_time()
        fcntl.flock(os.open(witness, os.O_RDWR), fcntl.LOCK_EX)
        dead_at = time.time()

    threading.Thread(target=watch, daemon=True).start()
    survivors = {}
    try:
        expiry = 0

        # The clock is read before the server is asked: a stall between the two must not make a
        # lease that was renewed meanwhile look lost.
        def is_over():
            nonlocal expiry
            now = time.time()
            expiry = max(expiry, server.expiry())
            return 0 < expiry <= now

        def has_ended():
            return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

        up_since = None

        def is_settled():
            nonlocal up_since
            if up_since is None and "ready" in open(words_path).read():
                up_since = time.monotonic()
            return up_since is not None and time.monotonic() >= up_since + options.settle

        wait_for(
            "the tree is up and settled",
            lambda: is_over() or has_ended() or is_settled(),
            WAIT_LIMIT + options.settle,
        )
        # A lease that is about to be lost is not renewed any more.
        known = expiry
        wait_for("a renewal", lambda: is_over() or has_ended() or expiry > known)
        struck = not is_over() and not has_ended()
        if struck:
            server.cut_off()
            expiry = max(expiry, server.expiry())
        elif not expiry:
            status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            raise SystemExit(
                f"strike: ended with {status}, and no lease was seen: {open(errors_path).read()}"
            )
        while not dead_at and time.time() < expiry:
            time.sleep(0.005)
        if not dead_at:
            survivors = states(tree)
            wait_for("the tree is dead", lambda: dead_at)
        in_time = dead_at <= expiry
        late = max(0, dead_at - expiry) * 1000
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        stderr = open(errors_path).read()
    finally:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        server.end()
        if cgroup:
            wait_for(
                "the cgroup is empty",
                lambda: not open(os.path.join(cgroup, "cgroup.procs")).read().strip(),
                20,
            )
            os.rmdir(cgroup)
        shutil.rmtree(directory)
    # 80 is true as well when it was seen dead too late: the deadline is earlier than the expiry,
    # and a guard may have to wait for a CPU to see it. A caller that wants 79 has to ask for it.
    truthful = status in ((79, 80) if in_time else (80,)) and ("UNSAFE" in stderr) == (status == 80)
    print(
        json.dumps(
            {
                "struck": struck,
                "in_time": in_time,
                "late_ms": round(late, 1),
                "survivors": survivors,
                "status": status,
                "truthful": truthful,
                "load": options.load,
                "ttl": options.ttl,
                "terminal": options.terminal,
                "user": options.user,
                "quota": options.quota,
                "stderr": stderr,
            }
        )
    )
    sys.exit(0 if truthful else 1)


if __name__ == "__main__":
    main()
