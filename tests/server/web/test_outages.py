"""A disk or a database that fails is named in a 503, everywhere, and the server recovers."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from sqlalchemy.exc import OperationalError

from crowdtree.server.media import folder
from crowdtree.server.store import Transaction
from crowdtree.server.store.errors import unavailable
from crowdtree.server.store.serving import writer
from crowdtree.server.web import state as readiness
from tests.attack.routes import every_route
from tests.weblab import Lab, lab, until


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not keep the last result of the readiness check."""
    monkeypatch.setattr(readiness, "KEPT_SECONDS", 0.0)


CAUSES = {
    "database or disk is full": "full",
    "attempt to write a readonly database": "read-only",
    "disk I/O error": "disk of the database fails",
    "database is locked": "busy",
    "database disk image is malformed": "damaged",
    "unable to open database file": "cannot be reached",
}


@contextmanager
def failing(app: Lab, error: BaseException, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let every connection fail, those of the writer too."""

    def fail(*_: Any, **__: Any) -> Any:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(app.store.engine, "connect", fail)
        patched.setattr(app.store.writer_of(Transaction), "_connected", fail)
        yield


def wrapped(text: str) -> OperationalError:
    return OperationalError("SELECT 1", {}, sqlite3.OperationalError(text))


@pytest.mark.parametrize("text", CAUSES)
def test_an_outage_says_what_it_is(app: Lab, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    number = app.campaign()
    worker = app.worker(number)
    for error in (wrapped(text), sqlite3.DatabaseError(text), sqlite3.OperationalError(text)):
        if "malformed" not in text and type(error) is sqlite3.DatabaseError:
            continue
        with failing(app, error, monkeypatch):
            for found in (
                app.get(f"/api/campaigns/{number}"),
                app.post(f"/api/campaigns/{number}/pause"),
                worker.call("next"),
                app.client.get("/readyz"),
            ):
                assert found.status_code == 503, found.text
                assert found.json()["error"] == "unavailable"
                assert CAUSES[text] in found.json()["message"]
                assert found.headers["retry-after"] == "1"
            assert app.client.get("/healthz").json() == {"status": "ok"}
        assert until(lambda: app.client.get("/readyz").status_code == 200)
    assert worker.next()["task"] is not None


def test_every_route_reports_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    with lab() as app:
        number = app.campaign()
        routes = [r for r in every_route(app.client.app) if r.role in ("owner", "worker", "door")]
        worker = app.worker(number)
        monkeypatch.setattr(writer, "OUTAGE_SECONDS", 0.0)
        with failing(app, wrapped("database or disk is full"), monkeypatch):
            for route in routes:
                who = worker.headers if route.role == "worker" else app.owner
                for accept in ("application/json", "text/html")[
                    : 2 if route.method == "GET" else 1
                ]:
                    found = app.client.request(
                        route.method,
                        route.at(),
                        json={} if route.method != "GET" else None,
                        headers={**who, "accept": accept},
                        follow_redirects=False,
                    )
                    assert found.status_code != 500, (route, found.text[:300])
                    kind = found.headers.get("content-type", "")
                    assert not kind.startswith("text/plain"), (route, found.text[:300])
                    if found.status_code == 503:  # workers need not know the cause
                        page = kind.startswith("text/html") and route.role != "owner"
                        assert "full" in found.text or (page and "cannot save" in found.text), route
        page = app.client.get(f"/c/{number}", headers={**app.owner, "accept": "text/html"})
        assert page.status_code == 200


def test_ready_means_that_it_can_write(app: Lab) -> None:
    assert app.client.get("/readyz").json() == {"status": "ok"}
    app.store.write(lambda c: c.exec_driver_sql("PRAGMA query_only = ON") and None)
    found = until(lambda: (r := app.client.get("/readyz")).status_code == 503 and r)
    assert "read-only" in found.json()["message"]
    assert app.get("/api/campaigns").status_code == 200  # reading still works
    assert app.client.get("/healthz").status_code == 200


def test_a_full_disk_is_named_for_uploads(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with lab(media=tmp_path) as app:
        number = app.campaign()
        monkeypatch.setattr(folder.os, "replace", full)
        found = app.client.post(
            f"/api/campaigns/{number}/media?name=a.png", content=b"x", headers=app.owner
        )
        assert (found.status_code, found.json()["error"]) == (503, "unavailable")
        assert "the disk of the server is full" in found.json()["message"]
        assert list((tmp_path / str(number)).iterdir()) == []


def test_causes_are_told_apart() -> None:
    for text, words in CAUSES.items():
        assert words in str(unavailable(sqlite3.OperationalError(text)))
