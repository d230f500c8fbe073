"""A whole application in memory, for the tests of the API and the attacks."""

from __future__ import annotations

import asyncio
import json
import pickle
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from starlette.testclient import TestClient

from crowdtree.core.errors import CrowdtreeError
from crowdtree.server.rules.runner import Runner
from crowdtree.server.store import Store, tokens
from crowdtree.server.web.app import create_app
from crowdtree.server.web.worker_process import WorkerProcess
from crowdtree.server.webhooks import outbox
from tests.short import nested

CSV = "task,text,gold\n" + "".join(f"i{k},This is item {k}.,\n" for k in range(20))


ALONE = {"people_per_item": 1, "person_dependence": 0.0, "require_trusted_answer": False}
"""Settings under which one person, whom nobody knows, labels items alone."""


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


class Lab:
    """An application with an owner logged in."""

    def __init__(self, store: Store, client: TestClient, clock: Clock) -> None:
        self.store = store
        self.client = client
        self.clock = clock
        self.runner = Runner(store)
        token = store.write(lambda c: tokens.issue(c, "owner", clock(), name="lab"))
        self.owner = {"authorization": f"Bearer {token}"}

    def settle(self) -> None:
        """Let the rules do what is due."""
        self.runner.settle()

    def post(self, path: str, body: Any = None, **options: Any) -> Any:
        options.setdefault("headers", self.owner)
        return self.client.post(path, json={} if body is None else body, **options)

    def get(self, path: str, **options: Any) -> Any:
        options.setdefault("headers", self.owner)
        return self.client.get(path, **options)

    def campaign(self, items: str = CSV, start: bool = True, **wish: Any) -> int:
        """Make a campaign with items, started."""
        settings = nested(ALONE | wish.pop("settings", {}))
        policy = wish or {"example": "table1", "workers": 8}
        made = self.post("/api/campaigns", {"name": "lab", "policy": policy, "settings": settings})
        assert made.status_code == 201, made.text
        number = int(made.json()["id"])
        sent = self.client.post(
            f"/api/campaigns/{number}/items",
            content=items.encode(),
            headers={**self.owner, "content-type": "text/csv"},
        )
        assert sent.status_code == 200, sent.text
        if start:
            assert self.post(f"/api/campaigns/{number}/start").status_code == 200
        return number

    def worker(self, number: int, name: str = "") -> Worker:
        """Invite a worker."""
        found = self.post(f"/api/campaigns/{number}/workers/invite", {"name": name})
        return Worker(self, found.json()["id"], found.json()["token"])


class Worker:
    """A worker with a token."""

    def __init__(self, lab: Lab, number: int, token: str) -> None:
        self.lab = lab
        self.id = number
        self.token = token
        self.headers = {"authorization": f"Bearer {token}"}
        self.count = 0

    def call(self, verb: str, **body: Any) -> Any:
        return self.lab.client.post(f"/api/worker/{verb}", json=body, headers=self.headers)

    def next(self, **body: Any) -> Any:
        return self.call("next", **body).json()

    def answer(self, lease: str, answer: str = "yes", key: str | None = None) -> Any:
        self.count += 1
        return self.call("answer", lease=lease, answer=answer, key=key or f"k{self.count}")

    def work(self, answer: str = "yes") -> Any:
        """Take a question and answer it; ``None`` when there is none."""
        task = self.next()["task"]
        return None if task is None else self.answer(task["lease"], answer).json()


Made = tuple[list[tuple[float, str]], str, bytes | str]
MADE: dict[bytes, Made] = {}
"""Progress and results of jobs, by the job and its values."""


class Planner(WorkerProcess):
    """A worker process without a process, which does each job once for all tests."""

    async def _run(self, job: Any, values: tuple[object, ...], report: Any) -> Any:
        key = pickle.dumps((job, values))
        if key not in MADE:
            MADE[key] = await asyncio.to_thread(_done, job, values)
        steps, kind, found = MADE[key]
        for step in steps if report is not None else ():
            report(*step)
        if kind == "failed":
            raise CrowdtreeError(found)
        return pickle.loads(found)  # type: ignore[arg-type]

    def open(self) -> Any:
        """Start nothing."""


def _done(job: Callable[..., Any], values: tuple[object, ...]) -> Made:
    steps: list[tuple[float, str]] = []
    try:
        return steps, "done", pickle.dumps(job(lambda *step: steps.append(step), *values))
    except CrowdtreeError as error:
        return steps, "failed", str(error)


@contextmanager
def lab(database: str = "sqlite://", process: bool = False, **options: Any) -> Iterator[Lab]:
    """Make an application, use it, close it; with a worker process of its own if asked for."""
    clock = Clock()
    with Store(database, clock=clock, rng=0).opened() as store:
        app = create_app(store, **options)
        if not process:
            app.state.crowdtree.plans.process = Planner()
        with TestClient(app, raise_server_exceptions=False) as client:
            yield Lab(store, client, clock)


def until(found: Any, seconds: float = 20.0) -> Any:
    """Wait for background chores."""
    end = time.monotonic() + seconds
    while not (value := found()) and time.monotonic() < end:
        time.sleep(0.01)
    return value


def hooked(app: Lab, number: int) -> int:
    url = {"url": "http://127.0.0.1:9/x"}
    return int(app.post(f"/api/campaigns/{number}/webhooks", url).json()["id"])


def delivered(store: Store, clock: Clock) -> list[dict[str, Any]]:
    """Let all messages of webhooks arrive that are due; returns their bodies."""
    messages = store.write(lambda c: outbox.claim(c, clock()))
    bodies = []
    while messages:
        message = messages.pop()
        bodies.append(json.loads(message.body))
        following = store.write(lambda c, m=message: outbox.settle(c, m, "", clock()))  # type: ignore[misc]
        messages += [following] if following else []
    return bodies
