"""The log: one line per request with its id and the client's address, as text or JSON."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from crowdtree.server.web.processes import JsonLines
from tests.weblab import lab


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Any:
    """What was logged about requests, as parsed JSON."""
    caplog.set_level(logging.INFO, "crowdtree.access")
    return lambda: [
        json.loads(JsonLines().format(record))
        for record in caplog.records
        if record.name == "crowdtree.access"
    ]


def test_a_request_is_logged_with_its_id_and_the_address(lines: Any) -> None:
    with lab() as app:
        sent = app.get("/join/s3cret?token=t0ken", headers={"x-request-id": "proxy-17"})
    assert sent.headers["x-request-id"] == "proxy-17"
    (line,) = [line for line in lines() if line["path"].startswith("/join")]
    del line["time"], line["ms"]
    assert line.pop("message").startswith("GET /join/… 401 ")
    assert line == {
        "level": "info",
        "logger": "crowdtree.access",
        "method": "GET",
        "path": "/join/…",
        "status": 401,
        "client": "testclient",
        "request_id": "proxy-17",
    }
    assert "s3cret" not in str(lines())
    assert "t0ken" not in str(lines())


@pytest.mark.parametrize("given", ["two words", "a" * 65, 'quote"', ""])
def test_an_id_that_does_not_look_like_one_is_replaced(given: str) -> None:
    with lab() as app:
        first, second = (
            app.get("/healthz", headers={"x-request-id": given}).headers["x-request-id"]
            for _ in range(2)
        )
    assert first != second
    assert len(first) == 16


def test_a_fault_is_logged_with_the_id_that_the_client_gets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also what code of a request logs in another thread has its id."""
    logged: list[dict[str, Any]] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            logged.append(json.loads(JsonLines().format(record)))

    log, handler = logging.getLogger("crowdtree.test"), Keep()
    log.addHandler(handler)

    def fail(*_: object) -> str:
        try:
            raise RuntimeError("broken")
        except RuntimeError:
            log.exception("failed")
            raise

    monkeypatch.setattr("crowdtree.server.web.handlers.system.exposition", fail)
    try:
        with lab() as app:
            sent = app.get("/metrics")
    finally:
        log.removeHandler(handler)
    assert sent.status_code == 500
    (line,) = logged
    assert line["request_id"] == sent.headers["x-request-id"]
    assert line["level"] == "error"
    assert "RuntimeError: broken" in line["exception"]
