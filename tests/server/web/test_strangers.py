"""Silent connections, stalled bodies and slow receivers delay nobody else."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests import aside

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

import uvicorn

from crowdtree.server.store import Store
from crowdtree.server.store.owner import tokens
from crowdtree.server.web import connections, create_app, limits, routing
from crowdtree.server.web.worker_process import silent
from tests.serving import Client
from tests.weblab import Lab, until

BODY = "content-type: application/json\r\ncontent-length: 100\r\n\r\n{"


class Real:
    """A server on a real port, in a thread of this process."""

    def __init__(self, store: Store) -> None:
        self.store = store
        app = create_app(store)
        config = uvicorn.Config(
            app, port=0, http=connections.GuardedProtocol, log_level="error", access_log=False
        )
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()
        assert until(lambda: self.server.started)
        self.port = int(self.server.servers[0].sockets[0].getsockname()[1])

    def connect(self, text: str = "") -> socket.socket:
        made = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        made.sendall(text.encode())
        return made

    def said(self, text: str) -> tuple[int, dict[str, Any]]:
        """What the server says to an unfinished request, while the connection stays open."""
        with self.connect(text) as made:
            found = b""
            while b"}" not in found:
                part = made.recv(65536)
                assert part, found
                found += part
        head, _, body = found.partition(b"\r\n\r\n")
        return int(head.split(b" ")[1]), json.loads(body)

    def alive(self) -> bool:
        with contextlib.closing(Client(self.port)) as client:
            return client.get("/healthz") == (200, {"status": "ok"})


@pytest.fixture
def real(monkeypatch: pytest.MonkeyPatch) -> Iterator[Real]:
    monkeypatch.setattr(connections, "SILENT_SECONDS", 0.2)
    monkeypatch.setattr(connections, "SWEEP_SECONDS", 0.05)
    monkeypatch.setattr(connections, "LOG_SECONDS", 0.0)
    monkeypatch.setattr(limits, "BODY_SECONDS", 0.3)
    with Store("sqlite://").opened() as store:
        made = Real(store)
        yield made
        made.server.should_exit = True
        made.thread.join(20)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "GET /healthz HTTP/1.1\r\nhost: x\r\n",
        f"POST /api/campaigns HTTP/1.1\r\nhost: x\r\n{BODY}",
    ],
)
def test_a_connection_without_a_complete_request_is_closed(
    real: Real, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    with real.connect(text) as silent:
        while silent.recv(65536):  # until the server closes it
            pass
    assert until(lambda: "closed 1 connection" in caplog.text)
    assert "from 127.0.0.1" in caplog.text
    assert real.alive()


def test_part_of_a_second_request_is_not_waited_for(real: Real) -> None:
    with real.connect("GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n") as half:
        assert half.recv(12) == b"HTTP/1.1 200"
        with contextlib.suppress(ConnectionError):
            while True:
                half.sendall(b"G" if half.recv(65536) else b"")
                half.settimeout(20)
                if not half.recv(65536):
                    break


def test_of_too_many_silent_connections_the_oldest_are_closed(
    real: Real, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "SILENT_SECONDS", 600.0)
    monkeypatch.setattr(connections, "MOST_PER_ADDRESS", 5)
    with contextlib.ExitStack() as stack:
        silent = [stack.enter_context(real.connect()) for _ in range(12)]
        assert real.alive()  # which is a connection too, and closes one more
        for one in silent[:7]:
            with contextlib.suppress(ConnectionResetError):
                assert one.recv(1) == b""
        request = b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
        silent[-1].sendall(request)
        assert silent[-1].recv(12) == b"HTTP/1.1 200"


def test_bodies_of_strangers_are_not_waited_for(real: Real) -> None:
    token = "authorization: Bearer nobody\r\n"
    for path in ("/api/campaigns", "/api/worker/next", "/api/worker/release", "/api/auditor/next"):
        for credentials in ("", token):
            text = f"POST {path} HTTP/1.1\r\nhost: x\r\n{credentials}{BODY}"
            # small bodies of workers are read before their token is looked up
            late = path == "/api/worker/next" and credentials
            assert real.said(text)[0] == (408 if late else 401), (path, credentials)


def test_a_body_that_stalls_is_refused(real: Real, caplog: pytest.LogCaptureFixture) -> None:
    status, found = real.said(f"POST /api/join HTTP/1.1\r\nhost: x\r\n{BODY}")
    assert (status, found["error"]) == (408, "slow")
    made = real.store.write(lambda c: tokens.issue(c, "owner", time.time(), name="x"))
    head = f"POST /api/tokens HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {made}\r\n"
    assert real.said(head + BODY)[0] == 408
    assert "the body of /api/join came too slowly" in caplog.text


def test_slow_uploads_are_given_time() -> None:
    seen: list[bytes] = []

    async def app(_scope: Any, receive: Any, send: Any) -> None:
        more = True
        while more:
            part = await receive()
            seen.append(part["body"])
            more = part["more_body"]
        await send({"type": "http.response.start", "status": 200, "headers": []})

    parts = [{"body": b"x" * 2**14, "more_body": k < 3} for k in range(4)]

    async def receive() -> Any:
        await asyncio.sleep(0.02)
        return {"type": "http.request", **parts.pop(0)}

    async def send(_message: Any) -> None:
        return

    scope = {"type": "http", "method": "POST", "path": "/api/campaigns/1/items", "headers": []}
    aside.run(limits.BodyLimit(app)(scope, receive, send))
    assert len(b"".join(seen)) == 2**16


# ------------------------------------------------------------------------------ large JSON


def test_large_json_is_parsed_in_the_worker_process(
    app: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = app.client.app.state.crowdtree.plans.process  # type: ignore[attr-defined]
    sent: list[bytes] = []

    async def run(job: Any, body: bytes) -> Any:
        assert job is routing.read_json
        sent.append(body)
        return job(silent, body)

    monkeypatch.setattr(process, "run", run)
    small, large = ({"policy": {"example": "table1"}, "name": "x" * size} for size in (10, 200))
    monkeypatch.setattr(routing, "AT_ONCE", 100)
    for wish in (small, large):
        assert app.post("/api/campaigns", wish).status_code == 201
    assert [json.loads(body) for body in sent] == [large]
    headers = {**app.owner, "content-type": "application/json"}
    for body, words in ((b'{"policy": ' + b" " * 200, "not valid JSON"), (b"[" * 250_000, "lists")):
        found = app.client.post("/api/campaigns", content=body, headers=headers)
        assert found.status_code == 422
        assert words in found.json()["message"]
