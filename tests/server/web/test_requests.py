"""The server notices clients that disconnect, and nothing goes on for them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

import crowdtree as ct
from crowdtree.policies import PlanPolicy
from crowdtree.server.settings.model import Settings
from crowdtree.server.store import ExpireLeases, Store, tokens
from crowdtree.server.store.owner import campaigns, people
from tests.live_server import LiveServer, live_server
from tests.serving import Client
from tests.weblab import until


@pytest.fixture
def live() -> Iterator[LiveServer]:
    with Store("sqlite://").opened() as store, live_server(store) as server:
        yield server


def campaign_of_one_question(store: Store) -> list[str]:
    """Start a campaign whose only item takes one answer; the tokens of three workers."""
    problem = ct.Problem(["a", "b"], None, ["q"], [[0, 1]], 0.2)
    policy = PlanPolicy(ct.staff(ct.design(problem), workers=0))

    def create(connection: Any) -> list[str]:
        now = store.clock()
        number = campaigns.create(connection, "w", policy, Settings(), now)
        campaigns.add_items(connection, number, [{"task": "1", "payload": "{}", "gold": None}])
        campaigns.set_status(connection, number, "running", now)
        return [people.invite(connection, number, "", policy, False, now)[1] for _ in range(3)]

    return store.write(create)


def head(method: str, path: str, token: str, body: str = "") -> str:
    return (
        f"{method} {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n{body}"
    )


def test_a_worker_who_disconnects_gets_no_question(live: LiveServer) -> None:
    tokens_of_workers = campaign_of_one_question(live.store)
    waiters = live.app.state.crowdtree.waiters
    with contextlib.ExitStack() as stack:
        holder, other = (
            stack.enter_context(contextlib.closing(Client(live.port, token)))
            for token in tokens_of_workers[:2]
        )
        lease = holder.post("/api/worker/next")[1]["task"]["lease"]
        wait = head("POST", "/api/worker/next", tokens_of_workers[2], json.dumps({"wait": 25}))
        with live.connect(wait):
            assert until(lambda: waiters.waiting() == 1)
        assert until(lambda: waiters.waiting() == 0)
        assert holder.post("/api/worker/release", {"leases": [lease]}) == (200, {"released": 1})
        live.store.ask(ExpireLeases())
        assert other.post("/api/worker/next")[1]["task"] is not None


def test_a_stream_ends_when_its_reader_disconnects(live: LiveServer) -> None:
    campaign_of_one_question(live.store)
    owner = live.store.write(lambda c: tokens.issue(c, "owner", live.store.clock(), name="x"))
    watchers = live.app.state.crowdtree.waiters.changes[1]
    with live.connect(head("GET", "/api/campaigns/1/events", owner)) as stream:
        assert stream.recv(12) == b"HTTP/1.1 200"
        assert until(lambda: len(watchers) == 1)
    assert until(lambda: not watchers)
