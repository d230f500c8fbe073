"""Logging in, joining, tokens."""

from __future__ import annotations

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from crowdtree.server.store import tokens
from tests.weblab import Lab


def test_join_by_platform_id_is_the_same_worker_again(app: Lab) -> None:
    number = app.campaign()
    link = app.post(f"/api/campaigns/{number}/join-link").json()["link"]
    for _ in range(2):
        app.client.cookies.clear()
        found = app.client.get(
            link + "?PROLIFIC_PID=p1&STUDY_ID=s&SESSION_ID=x", follow_redirects=False
        )
        assert (found.status_code, found.headers["location"]) == (303, "/work")
        assert "httponly" in found.headers["set-cookie"].lower()
    people = app.get(f"/api/campaigns/{number}/workers").json()
    assert [row["external_id"] for row in people] == ["p1"]
    again = app.post(f"/api/campaigns/{number}/join-link").json()["token"]
    assert app.post("/api/join", {"token": link.split("/")[-1]}).status_code == 401
    assert app.post("/api/join", {"token": again}).status_code == 200


def test_the_owner_link_works_once(app: Lab) -> None:
    token = app.store.write(lambda c: tokens.issue(c, "once", app.clock()))
    first = app.client.get(f"/login?token={token}", follow_redirects=False)
    assert (first.status_code, first.headers["location"]) == (303, "/")
    assert "samesite=lax" in first.headers["set-cookie"].lower()
    assert app.client.get(f"/login?token={token}", follow_redirects=False).status_code == 401


def test_tokens_are_listed_without_their_secrets_and_end_by_their_id(app: Lab) -> None:
    made = app.post("/api/tokens", {"name": "export"}).json()
    rows = app.get("/api/tokens").json()
    assert {row["name"]: (row["kind"], row["this"]) for row in rows} == {
        "export": ("token", False),
        "lab": ("token", True),
    }
    assert made["token"] not in str(rows)
    page = app.get("/access").text
    assert "export" in page
    assert made["token"] not in page
    app.client.delete(f"/api/tokens/{made['id']}", headers=app.owner)
    assert [row["name"] for row in app.get("/api/tokens").json()] == ["lab"]


def test_a_login_link_works_once_and_not_for_long(app: Lab) -> None:
    link = app.post("/api/login-link").json()["link"]
    app.client.cookies.clear()
    first = app.client.get(link, follow_redirects=False)
    assert first.status_code == 303
    app.client.cookies.clear()
    assert app.client.get(link, follow_redirects=False).status_code == 401
    late = app.post("/api/login-link").json()["link"]
    app.clock.now += 1000
    assert app.client.get(late, follow_redirects=False).status_code == 401
    kinds = [row["kind"] for row in app.get("/api/tokens").json()]
    assert sorted(kinds) == ["session", "token"]
