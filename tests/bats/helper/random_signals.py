"""random_signals.py RUNS WITNESS SOCKET REDLOCK_CLI [SEED]: sends signals to `redlock-cli run` at
random moments, and looks on.

The command holds a shared flock(2) on the file WITNESS. Prints the seed, then every run that went
wrong, then how the runs ended.
Status 1 when one went wrong.
"""

import collections
import fcntl
import os
import random
import signal
import subprocess
import sys
import threading
import time

import redis

SIGNALS = [
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGUSR1,
    signal.SIGUSR2,
]
LATEST = 0.06
KEY = "demo"
HANGS = 30

runs, witness, socket, program = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
seed = int(sys.argv[5]) if len(sys.argv) > 5 else random.SystemRandom().getrandbits(32)
print("seed", seed)
rng = random.Random(seed)


# Of the two threads that ask for the witness only one at a time has it, or each would take the
# other for the command.
asking = threading.Lock()


def is_dead():
    """Whether no process holds the witness."""
    with asking, open(witness) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            return False


class Watch(threading.Thread):
    """Looks, as often as it can, whether the key goes while the command lives."""

    def __init__(self):
        super().__init__(daemon=True)
        self.server = redis.Redis(unix_socket_path=socket)
        self.broken = 0
        self.over = False

    def look(self):
        """Whether the key is there, and the fence, which grows with every lock."""
        return (
            self.server.pipeline(transaction=True)
            .exists(KEY)
            .get(f"redlock:fence:{{{KEY}}}")
            .execute()
        )

    def run(self):
        had = False
        while not self.over:
            has, fence = self.look()
            # Alive, and no other lock has been taken meanwhile: so it lived without one.
            if had and not has and not is_dead() and self.look() == [False, fence]:
                self.broken += 1
            had = has


def one_run(server):
    """What went wrong, and how it ended."""
    # Some end by themselves about when the signal comes. flock: it is the command itself that holds
    # the witness, not its guards.
    length = rng.choice(["1000", "1000", "0.01", "0.03"])
    command = ["flock", "-s", "-F", witness, "sleep", length]
    taken = rng.random() < 0.15
    if taken:
        server.set(KEY, "another", px=20)
    delay = rng.uniform(0, LATEST)
    number = rng.choice(SIGNALS)
    process = subprocess.Popen(
        [program, "run", "-q", "-S", f"unix://{socket}", "--server-timeout", "4s", "-k", KEY, "--"]
        + command,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=lambda: [signal.signal(each, signal.SIG_DFL) for each in SIGNALS],
    )
    time.sleep(delay)
    process.send_signal(number)
    try:
        status = process.wait(HANGS)
    except subprocess.TimeoutExpired:
        process.kill()
        return f"hangs after {number.name}", "hangs"
    wrong = []
    if status not in (-number, 0) or (status == 0 and length == "1000"):
        wrong.append(f"status {status}")
    if not is_dead():
        wrong.append("the command is alive")
    if server.get(KEY) not in (None, b"another"):
        wrong.append("the lock is left")
    ended = "by the signal" if status < 0 else "by itself"
    return (
        f"{number.name} after {delay * 1000:.1f} ms, sleep {length}: " + ", ".join(wrong)
    ) if wrong else None, ended


def main():
    server = redis.Redis(unix_socket_path=socket)
    watch = Watch()
    watch.start()
    wrongs, ends = [], collections.Counter()
    for _ in range(runs):
        wrong, ended = one_run(server)
        ends[ended] += 1
        if wrong:
            wrongs.append(wrong)
    watch.over = True
    watch.join()
    if watch.broken:
        wrongs.append(f"the lock was free while the command lived: {watch.broken} times")
    print(*wrongs, sep="\n")
    print(dict(ends), f"{server.info('commandstats').get('cmdstat_set', {}).get('calls', 0)} locks")
    return not wrongs


sys.exit(0 if main() else 1)
