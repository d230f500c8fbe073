"""What all pages share."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from crowdtree.server.web.handlers import all_routes
from tests.weblab import Lab

EVIL = '"><img src=x onerror=alert(1)>'


def test_names_with_markup_are_harmless_on_every_page(app: Lab) -> None:
    number = app.campaign(f"task,text\n'{EVIL[2:]},x\n", settings={"instructions": EVIL})
    app.client.post(f"/c/{number}/share", data={"name": EVIL}, headers=app.owner)
    app.worker(number, EVIL).work()
    app.post("/api/tokens", {"name": EVIL})
    hook = {"url": "http://127.0.0.1:9/<img>"}
    app.post(f"/api/campaigns/{number}/webhooks", hook)
    names = ("", "/items", "/workers", "/questions", "/plan", "/share", "/webhooks")
    for path in ("/", "/access", *(f"/c/{number}{name}" for name in names)):
        page = app.get(path)
        assert page.status_code == 200, path
        assert "<img" not in page.text, path


def test_a_failure_shows_a_page_without_a_traceback(app: Lab, monkeypatch, caplog) -> None:
    def broken(*_):
        raise RuntimeError("secret detail")

    app.campaign()
    monkeypatch.setattr("crowdtree.server.web.handlers.campaigns.progress", broken)
    page = app.get("/")
    assert page.status_code == 500
    assert "Something went wrong on the server" in page.text
    assert "secret detail" not in page.text
    assert "secret detail" in caplog.text


DOORS = {"/login", "/w/{token}", "/a/{token}", "/join/{token}", "/tokens.css"}


WORK = {"/work", "/work/next", "/work/training"}


def test_every_page_is_closed_to_strangers_and_to_workers(app: Lab) -> None:
    number = app.campaign()
    worker = app.worker(number)
    pages = [
        (method, route.path)
        for route in all_routes()
        if route.is_page and route.path not in DOORS | WORK
        for method in route.methods
    ]
    assert len(pages) > 20
    for method, path in pages:
        where = re.sub(r"\{\w+\}", "1", path)
        for headers in ({}, worker.headers):
            found = app.client.request(method, where, headers=headers)
            assert found.status_code == 401, (method, where, found.text[:200])
    for path in WORK - {"/work", "/work/training"}:
        assert app.client.post(path, json={}).status_code == 401
    assert app.client.get("/work/training").status_code == 401
