"""Stalled bodies delay nobody, and slow uploads are given time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests import aside

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from crowdtree.server.store import Store, tokens
from crowdtree.server.web import middleware as limits
from tests.live_server import LiveServer, live_server

BODY = "content-type: application/json\r\ncontent-length: 100\r\n\r\n{"


@pytest.fixture
def live(monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveServer]:
    monkeypatch.setattr(limits, "BODY_SECONDS", 0.3)
    with Store("sqlite://").opened() as store, live_server(store) as server:
        yield server


def test_bodies_of_strangers_are_not_waited_for(live: LiveServer) -> None:
    token = "authorization: Bearer nobody\r\n"
    for path in ("/api/campaigns", "/api/worker/next", "/api/worker/release", "/api/auditor/next"):
        for credentials in ("", token):
            text = f"POST {path} HTTP/1.1\r\nhost: x\r\n{credentials}{BODY}"
            # small bodies of workers are read before their token is looked up
            late = path.startswith("/api/worker/") and credentials
            assert live.respond(text)[0] == (408 if late else 401), (path, credentials)


def test_a_body_that_stalls_is_refused(live: LiveServer, caplog: pytest.LogCaptureFixture) -> None:
    status, found = live.respond(f"POST /api/join HTTP/1.1\r\nhost: x\r\n{BODY}")
    assert (status, found["error"]) == (408, "slow")
    made = live.store.write(lambda c: tokens.issue(c, "owner", time.time(), name="x"))
    head = f"POST /api/tokens HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {made}\r\n"
    assert live.respond(head + BODY)[0] == 408
    assert "the body of /api/join came too slowly" in caplog.text


def test_slow_uploads_are_given_time() -> None:
    seen: list[bytes] = []

    async def read(body: limits.Body) -> None:
        more = True
        while more:
            part = await body.receive()
            seen.append(part["body"])
            more = part["more_body"]

    parts = [{"body": b"x" * 2**14, "more_body": k < 3} for k in range(4)]

    async def receive() -> Any:
        await asyncio.sleep(0.02)
        return {"type": "http.request", **parts.pop(0)}

    scope = {"type": "http", "method": "POST", "path": "/api/campaigns/1/items", "headers": []}
    aside.run(read(limits.Body(scope, receive)))
    assert len(b"".join(seen)) == 2**16
