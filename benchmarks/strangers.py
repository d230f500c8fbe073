"""How long others wait while strangers misbehave: slow receivers, stalled bodies, endless headers.

    python -m benchmarks.strangers --seconds 20
    python -m benchmarks.strangers --again 1                 # strangers who come back at once
    PYTHONPATH=OTHER/src python -m benchmarks.strangers      # the same with another version

Eight webhooks go to receivers that send one byte per second, 40 requests stop in the middle of
their body, 4 send headers without end, and 2,000 connections send nothing; whatever the server
closes is opened again after ten seconds (``--again``). Meanwhile /healthz, a summary that reads the
database and `next` are requested in turn, each on a new connection. Prints one JSON object with
times in ms, first without strangers, then with them.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import multiprocessing
import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import psutil

from crowdtree.client import Client

ITEMS = "".join(f'{{"task": "{k}", "text": "item {k}"}}\n' for k in range(500))
SETTINGS = {"checks": {"pause_suspects": False}}
"""The people of this benchmark answer faster than they could read."""
STALLED = (
    "POST /api/worker/answer HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n"
    "content-type: application/json\r\ncontent-length: 1000\r\n\r\n{{"
)


@contextlib.contextmanager
def serving() -> Iterator[tuple[str, str, int]]:
    """A server in a process of its own; its address, the owner's one-time token, its process."""
    code = "from crowdtree.cli import main; main()"
    command = [sys.executable, "-c", code, "serve", "--json", "--port", "0", "--private-webhooks"]
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        try:
            assert server.stdout is not None
            found = json.loads(server.stdout.readline())
            yield found["url"], found["link"].partition("token=")[2], server.pid
        finally:
            server.terminate()
            try:
                _, said = server.communicate(timeout=20)
            except subprocess.TimeoutExpired:
                server.kill()
                _, said = server.communicate()
            for line in sorted({line[24:] for line in said.splitlines()})[:5]:
                print(line, file=sys.stderr)


HEADERS = b"".join(b"x-%d: y\r\n" % k for k in range(1000))


class Strangers:
    """Receivers that drip, bodies that stall and connections that idle, in one process."""

    def __init__(self, counts: Any, again: float) -> None:
        self.counts, self.again = counts, again
        """How often the server closed a connection, and how often it reached a receiver; seconds
        until a connection is opened again."""

    async def drip(self, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.counts[1] += 1
        with contextlib.suppress(OSError):
            for byte in b"HTTP/1.1 200 OK\r\n" + b"x" * 3600:
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(1)
        writer.close()

    async def hold(self, port: int, text: bytes) -> None:
        """Keep a connection open that says this and nothing more."""
        while True:
            with contextlib.suppress(OSError):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(text)
                while await reader.read(65536):
                    pass
                self.counts[0] += 1
                writer.close()
            await asyncio.sleep(self.again)

    async def flood(self, port: int) -> None:
        """Send headers without end."""
        while True:
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(b"GET /healthz HTTP/1.1\r\nhost: x\r\n")
                while True:
                    writer.write(HEADERS)
                    await writer.drain()
            self.counts[0] += 1
            await asyncio.sleep(self.again)

    async def begin(self, port: int, texts: list[bytes], endless: int, pipe: Any) -> None:
        receiver = await asyncio.start_server(self.drip, "127.0.0.1", 0)
        pipe.send(receiver.sockets[0].getsockname()[1])
        while not pipe.poll():
            await asyncio.sleep(0.1)
        held = [asyncio.ensure_future(self.flood(port)) for _ in range(endless)]
        for place, text in enumerate(texts):
            held.append(asyncio.ensure_future(self.hold(port, text)))
            if place % 100 == 99:
                await asyncio.sleep(0.05)
        await asyncio.gather(*held)


def misbehave(
    port: int, texts: list[bytes], endless: int, pipe: Any, counts: Any, again: float
) -> None:
    allow_files()
    os.nice(10)  # strangers have machines of their own
    asyncio.run(Strangers(counts, again).begin(port, texts, endless, pipe))


def allow_files() -> None:
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def measured(client: Client, worker: Client, number: int, seconds: float) -> dict[str, Any]:
    """Request things in turn, on new connections; times in ms."""
    asked = {
        "healthz": lambda: client.get("/healthz"),
        "summary": lambda: client.get(f"/api/campaigns/{number}"),
        "next": lambda: worker.post("/api/worker/next", {}),
    }
    times: dict[str, list[float]] = {name: [] for name in asked}
    failed = 0
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for name, ask in asked.items():
            begin = time.perf_counter()
            try:
                ask()
            except OSError:
                failed += 1
            times[name].append(1e3 * (time.perf_counter() - begin))
            client.close()
            worker.close()
            time.sleep(0.01)
    return {
        "failed": failed,
        **{name: {"n": len(found), **spread(found)} for name, found in times.items()},
    }


def spread(times: list[float]) -> dict[str, float]:
    times = sorted(times)
    places = {"p50": 0.5, "p99": 0.99, "worst": 1.0}
    return {name: round(times[int(p * (len(times) - 1))], 1) for name, p in places.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--receivers", type=int, default=8)
    parser.add_argument("--bodies", type=int, default=40)
    parser.add_argument("--endless", type=int, default=4, help="requests with endless headers")
    parser.add_argument("--idle", type=int, default=2000)
    parser.add_argument("--again", type=float, default=10.0, help="seconds until they come back")
    options = parser.parse_args()
    with serving() as (url, token, process):
        owner = Client(url)
        owner.log_in(token)
        policy = {"example": "table1", "workers": 0}
        made = {"name": "x", "policy": policy, "settings": SETTINGS}
        number = owner.post("/api/campaigns", made)["id"]
        rows = [json.loads(line) for line in ITEMS.splitlines()]
        owner.post_lines(f"/api/campaigns/{number}/items", rows)
        owner.post(f"/api/campaigns/{number}/start")
        people = [
            owner.post(f"/api/campaigns/{number}/workers/invite", {})["token"] for _ in range(2)
        ]
        invited, worker = people[0], Client(url, people[0])
        found: dict[str, Any] = {"without": measured(owner, worker, number, options.seconds / 4)}
        texts = [b""] * options.idle
        texts += [
            STALLED.format(token=invited if k % 2 else "nobody").encode()
            for k in range(options.bodies)
        ]
        counts = multiprocessing.Array("i", 2)
        mine, theirs = multiprocessing.Pipe()
        where = (int(url.rpartition(":")[2]), texts, options.endless, theirs, counts, options.again)
        strangers = multiprocessing.Process(target=misbehave, args=where, daemon=True)
        strangers.start()
        port = mine.recv()
        for k in range(options.receivers):
            hook = {"url": f"http://127.0.0.1:{port}/{k}"}
            owner.post(f"/api/campaigns/{number}/webhooks", hook)
        for key in range(20):  # labels, of which the receivers are told
            for person in map(Client, (url, url), people):
                task = person.post("/api/worker/next", {})["task"]
                body = {"lease": task["lease"], "answer": "yes", "key": f"k{key}"}
                person.post("/api/worker/answer", body)
                person.close()
        mine.send("begin")
        time.sleep(3)
        found["with"] = measured(owner, worker, number, options.seconds)
        family = [psutil.Process(process), *psutil.Process(process).children(recursive=True)]
        found["open_files"] = sum(each.num_fds() for each in family)
        found["memory_mib"] = round(sum(each.memory_info().rss for each in family) / 2**20)
        found["closed_by_the_server"], found["receivers_reached"] = counts[:]
        strangers.kill()
    found["load_average"] = round(os.getloadavg()[0], 1)
    print(json.dumps(found))


if __name__ == "__main__":
    socket.setdefaulttimeout(30)
    main()
