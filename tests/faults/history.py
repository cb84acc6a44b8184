"""The history of a run: a file with a line of JSON for each thing that happened, in order.

Several processes append to it, each line in one write(2). Every line has `t`, CLOCK_MONOTONIC in
seconds, and `what`:


run           the first line: `profile`, `seed`, `promised`, `servers` (how many), `longest_ttl`,
              `guard`
start         a contender starts: `id`, `host`, `key`, `mode`, `slots`, `nonblock`, `ttl`, `left`
              (its descendants are for redlock-cli to end)
event         what --events-fd said: `id`, `event` (its object)
enter         the witness is in: `id`, `fence`, `slot`, `pid`, `free` (no other was in)
leave         it has written, and ends: `id`, `read`, `again`
dead          no process has the witness's descriptors any more: `id`
exit          of redlock-cli: `id`, `code`, `signal`, `status` (what --status-fd said), `alive`
              (processes of the command were), `stderr`
stop          a `stop` ended: `key`, `code`, `result`, `fence` (of the lease that it asked about),
              `alive` (contenders whose commands had living processes then)
success       the last success that the servers show for a key: `key`, `fence`
fault         `number`, `kind`, `ids` (contenders), `hosts` (none: all), `servers` (numbers),
              `lasting` (seconds after its end in which the servers may refuse), `healing`
              (seconds that holders may take to give the servers back what they lost)
healed        its end: `number`, `kind`
not-injected  `kind`, `why`
stall         this machine did not run us for so many `seconds`
quiet         no more faults, no more contenders
left          what was there at the end and should not have been: `kind`, `name`
end           the run came to its end: `in_time`
"""
import json
import os
import time


class History:
    def __init__(self, path):
        self.path = path
        self.fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)

    def note(self, what, **fields):
        line = json.dumps({"t": round(time.monotonic(), 6), "what": what, **fields})
        os.write(self.fd, line.encode() + b"\n")

    def close(self):
        os.close(self.fd)


def read_history(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]
