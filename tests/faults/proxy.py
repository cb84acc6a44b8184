#!/usr/bin/python3
"""Relays connections to servers on unix sockets, and loses, delays and cuts what it is told to.

usage: proxy.py SEED HISTORY   (stdin and stdout: one JSON array a line, and `ok` when it is done)

    ["listen", LINK, PATH, TARGET]    a link: what connects to PATH is relayed to TARGET
    ["lead", LINK, TARGET]            new connections go there, and all others are closed
    ["fault", LINK, KIND]             from now on; a connection keeps what was done to it
    ["heal", LINK]                    connections that lost something are closed now

    down           nothing passes, neither end is told
    refuse         connections are closed at once
    lose-requests, lose-replies
                   one direction is lost
    delay          each packet takes 5 to 400 ms, whatever others take: packets of different
                   connections overtake each other
    late           replies take 200 to 300 ms
    lag            replies take 300 ms
    far            each packet takes 150 ms: a round trip takes 300 ms
    slow           replies come a few bytes at a time
    cut            connections end in the middle of the next reply
"""
import asyncio
import json
import os
import random
import sys
import time

# Seconds: as arena.py has them.
BEAT = 0.05


# Seconds.
LAG = 0.3


class Link:
    def __init__(self, seed, target):
        self.random = random.Random(seed)
        self.target = target
        self.kind = None
        self.connections = set()

    def heal(self):
        self.kind = None
        for connection in list(self.connections):
            if connection.spoilt:
                connection.close()


class Connection:
    def __init__(self, link, writers):
        self.link = link
        self.writers = writers
        self.spoilt = False  # bytes are missing: nothing may follow them

    def close(self):
        self.link.connections.discard(self)
        for writer in self.writers:
            writer.close()

    async def relay(self, reader, writer, replies):
        """One direction, until either end is closed."""
        try:
            while data := await reader.read(65536):
                await self.pass_on(data, writer, replies)
        except OSError:
            pass
        self.close()

    async def pass_on(self, data, writer, replies):
        kind, draw = self.link.kind, self.link.random
        if kind == "delay":
            await asyncio.sleep(draw.uniform(0.005, 0.4))
            kind = self.link.kind
        if kind == "late" and replies:
            await asyncio.sleep(draw.uniform(0.2, 0.3))
            kind = self.link.kind
        if kind == "far" or (kind == "lag" and replies):
            await asyncio.sleep(LAG if replies and kind == "lag" else LAG / 2)
            kind = self.link.kind
        lost = {"down", "lose-replies" if replies else "lose-requests"}
        if kind in lost or self.spoilt:
            self.spoilt = True
        elif writer.is_closing():
            pass
        elif kind == "refuse":
            self.close()
        elif kind == "cut" and replies:
            writer.write(data[: draw.randrange(len(data))])
            self.close()
        elif kind == "slow" and replies:
            while data and not writer.is_closing():
                size = draw.randrange(1, 9)
                writer.write(data[:size])
                data = data[size:]
                await asyncio.sleep(0.003)
        else:
            writer.write(data)
            await writer.drain()


async def serve(link, reader, writer):
    if link.kind == "refuse":
        writer.close()
        return
    try:
        server_reader, server_writer = await asyncio.open_unix_connection(link.target)
    except OSError:
        writer.close()
        return
    connection = Connection(link, [writer, server_writer])
    link.connections.add(connection)
    await asyncio.gather(
        connection.relay(reader, server_writer, False),
        connection.relay(server_reader, writer, True),
    )


async def tell_stalls(history):
    """Appends when this machine did not run us: the delay was not ours to make."""
    while True:
        due = time.monotonic() + BEAT
        await asyncio.sleep(BEAT)
        now = time.monotonic()
        if now - due > BEAT:
            entry = {"t": now, "what": "stall", "seconds": round(now - due, 3)}
            os.write(history, json.dumps(entry).encode() + b"\n")


async def obey(seed, history):
    links = {}
    # A task lives as long as it is referenced.
    stalls = asyncio.create_task(tell_stalls(os.open(history, os.O_WRONLY | os.O_APPEND)))
    commands = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    while line := await commands.readline():
        verb, name, *rest = json.loads(line)
        if verb == "listen":
            path, target = rest
            link = links[name] = Link(f"{seed} {name}", target)
            await asyncio.start_unix_server(lambda r, w, link=link: serve(link, r, w), path)
        elif verb == "lead":
            links[name].target = rest[0]
            for connection in list(links[name].connections):
                connection.close()
        elif verb == "fault":
            links[name].kind = rest[0]
            if rest[0] == "refuse":
                for connection in list(links[name].connections):
                    connection.close()
        else:
            links[name].heal()
        print("ok", flush=True)
    stalls.cancel()


asyncio.run(obey(*sys.argv[1:]))
