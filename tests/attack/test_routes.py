"""Every route: roles, CSRF, objects of other campaigns, and reads without side effects."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

import sqlalchemy as sa

from crowdtree.server.store import tokens
from crowdtree.server.store.db.campaign_row import get_campaign
from crowdtree.server.store.db.tables import metadata
from crowdtree.server.store.tokens import file_name
from crowdtree.server.web.auth import AUDITOR_COOKIE, OWNER_COOKIE, WORKER_COOKIE, csrf_of
from tests.attack.routes import DOORS, OPEN, SAFE, Route, beginning, every_route
from tests.weblab import Lab, lab

BACKGROUND = ("monitors", "tallies", "waiting", "judgements", "deliveries")
PARTS = {"workers": ("id", "name", "status", "answers"), "webhooks": ("id", "url", "secret")}
FORMS = ("application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain")
"""What another site's form can send without asking."""
NEEDED = {
    Route("PATCH", "/api/campaigns/{campaign_id}/items/{item}"): {"columns": {"text": "changed"}}
}
"""Bodies without which a request is refused before anything is looked up."""
PNG = b"\x89PNG\r\n\x1a\n" + b"\x00" * 32


class Head(NamedTuple):
    """The beginning of an answer that never ends."""

    status_code: int
    text: str


class House:
    """An application with two campaigns that both have everything a route can name."""

    def __init__(self, app: Lab) -> None:
        self.app = app
        self.routes = every_route(app.client.app)
        wish = {"example": "table1", "workers": 0}
        self.one, self.two = app.campaign(**wish), app.campaign(**wish)
        self.things = [self._things(number) for number in (self.one, self.two)]
        self.ann, self.eve = self.things[0]["ann"], self.things[1]["ann"]
        self.auditor = self.things[0]["auditor"]
        self.headers = {
            "owner": app.owner,
            "worker": self.ann.headers,
            "auditor": {"authorization": f"Bearer {self.auditor}"},
        }
        app.client.cookies.clear()

    def _things(self, number: int) -> dict[str, Any]:
        app = self.app
        ann = app.worker(number, "Ann")
        while (counted := app.get(f"/api/campaigns/{number}").json()["items"])["labelled"] < 3:
            assert ann.work("no"), counted
        assert app.post(f"/api/campaigns/{number}/audit", {"bound": 0.2}).status_code == 201
        link = app.post(f"/api/campaigns/{number}/audit/links", {"name": "Max"}).json()
        hook = app.post(f"/api/campaigns/{number}/webhooks", {"url": "https://example.org/"})
        upload = app.client.post(
            f"/api/campaigns/{number}/media?name=a.png", content=PNG, headers=app.owner
        )
        assert upload.status_code < 300, upload.text
        item = app.store.read(
            lambda c: c.execute(
                sa.text("SELECT min(id) FROM items WHERE campaign_id = :n"), {"n": number}
            ).scalar_one()
        )
        return {
            "ann": ann,
            "auditor": link["token"],
            "token_id": link["id"],
            "worker": ann.id,
            "item": item,
            "hook": hook.json()["id"],
            "name": "a.png",
            "campaign_id": number,
        }

    def of(self, *roles: str) -> list[Route]:
        return [route for route in self.routes if route.role in roles]

    def call(self, route: Route, headers: Any = None, **values: Any) -> Any:
        here = {
            k: v for k, v in {**self.things[0], **values}.items() if k not in ("ann", "auditor")
        }
        body = {} if route.method in SAFE else {"json": NEEDED.get(route, {})}
        if route.path.endswith("/events") or route.path.endswith("/live"):
            return Head(*beginning(self.app, route.at(**here), headers or {}))
        return self.app.client.request(
            route.method, route.at(**here), headers=headers or {}, follow_redirects=False, **body
        )

    def rows(self) -> dict[str, list[Any]]:
        """Everything in the database that requests change and background work does not."""
        chosen = {
            table: [column for column in table.c if table.name not in PARTS]
            or [table.c[name] for name in PARTS[table.name]]
            for table in metadata.tables.values()
            if table.name not in BACKGROUND
        }
        self.app.store.write(lambda _: None)  # questions are handed out before they are written
        return {
            table.name: self.app.store.read(
                lambda c, wanted=columns: sorted(map(repr, c.execute(sa.select(*wanted))))
            )
            for table, columns in chosen.items()
        }

    def cookies(self, role: str) -> str:
        """Log in by cookie; the CSRF token."""
        self.app.client.cookies.clear()
        if role == "owner":
            made = self.app.store.write(lambda c: tokens.issue(c, "owner", self.app.clock()))
            self.app.client.cookies.set(OWNER_COOKIE, made)
        else:
            made = self.ann.token if role == "worker" else self.auditor
            cookie = WORKER_COOKIE if role == "worker" else AUDITOR_COOKIE
            self.app.client.cookies.set(cookie, made)
        return csrf_of(made)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    media: Path = tmp_path_factory.mktemp("media")
    with lab(media=media) as app:
        yield House(app)


def test_all_routes_are_found_and_have_a_role(house: House) -> None:
    """All routes of the OpenAPI schema are found; listed exceptions exist."""
    schema = house.app.client.app.openapi()["paths"]  # type: ignore[attr-defined]
    known = {(method.upper(), path) for path, methods in schema.items() for method in methods}
    found = set(house.routes)
    assert known <= found
    assert found >= DOORS | OPEN
    assert len(house.of("owner")) > 30
    assert len(house.of("worker")) >= 7
    assert len(house.of("auditor")) == 5


def test_owner_routes_refuse_everybody_else(house: House) -> None:
    app = house.app
    app.client.cookies.clear()
    once = app.store.write(lambda c: tokens.issue(c, "once", app.clock()))
    join = app.post(f"/api/campaigns/{house.one}/join-link").json()["token"]
    before = house.rows()
    for route in house.of("owner"):
        for token in ("", "forged", house.ann.token, house.auditor, once, join, "x" * 5000):
            headers = {"authorization": f"Bearer {token}"} if token else {}
            found = house.call(route, headers)
            assert found.status_code == 401, (route, token, found.text[:200])
        for token in (house.ann.token, house.auditor):  # another session as an owner's
            app.client.cookies.set(OWNER_COOKIE, token)
            assert house.call(route).status_code in (401, 403), route
            app.client.cookies.clear()
    assert house.rows() == before


def test_worker_routes_refuse_everybody_else(house: House) -> None:
    app = house.app
    app.client.cookies.clear()
    owner = app.owner["authorization"].split()[1]
    bodies = {"lease": "1.aa", "key": "k", "answer": "yes"}
    for route in house.of("worker"):
        for token in ("", "forged", owner, house.auditor):
            headers = {"authorization": f"Bearer {token}"} if token else {}
            wanted = {
                "/api/worker/answer": bodies,
                "/api/worker/skip": {k: bodies[k] for k in ("lease", "key")},
                "/api/worker/report": {"lease": "1.aa", "key": "k", "reason": "other"},
                "/api/worker/release": {"leases": ["1.aa"]},
                "/api/worker/consent": {"mark": "x"},
                "/api/worker/training": {"number": 1, "answer": "yes"},
            }
            sent: Any = {} if route.method in SAFE else {"json": wanted.get(route.path, {})}
            found = app.client.request(route.method, route.at(), headers=headers, **sent)
            assert found.status_code == 401, (route, token, found.text[:200])


def test_auditor_routes_refuse_everybody_else(house: House) -> None:
    app = house.app
    app.client.cookies.clear()
    owner = app.owner["authorization"].split()[1]
    join = app.post(f"/api/campaigns/{house.one}/join-link").json()["token"]
    before = house.rows()
    for route in house.of("auditor"):
        sent: Any = {} if route.method in SAFE else {"json": {"item": 1, "truth": None}}
        for token in ("", "forged", owner, house.ann.token, join):
            headers = {"authorization": f"Bearer {token}"} if token else {}
            found = app.client.request(route.method, route.at(), headers=headers, **sent)
            assert found.status_code == 401, (route, token, found.text[:200])
    assert house.rows() == before


def test_an_auditor_sees_neither_labels_nor_other_campaigns(house: House) -> None:
    app, mine = house.app, house.headers["auditor"]
    app.client.cookies.clear()
    found = app.post("/api/auditor/next", headers=mine).json()
    assert set(found) == {"item", "number", "reason", "checked"}
    assert set(found["item"]) == {"task", "text"}
    assert app.post("/check/next", headers=mine).json()["number"] == found["number"]
    theirs = {"authorization": f"Bearer {house.things[1]['auditor']}"}
    sent = {"item": found["number"], "truth": None}
    assert app.post("/api/auditor/record", sent, headers=theirs).status_code == 410
    assert app.post("/api/auditor/record", sent, headers=mine).status_code == 200
    assert app.post("/api/auditor/record", sent, headers=mine).status_code == 200  # again
    classes = [
        entry["name"] for entry in app.get("/api/auditor/me", headers=mine).json()["classes"]
    ]
    again = app.post("/api/auditor/record", {**sent, "truth": classes[0]}, headers=mine)
    assert (again.status_code, again.json()["error"]) == (409, "answered")
    for body in ({"item": 0, "truth": None}, {"item": 1}, {**sent, "x": 1}, {**sent, "truth": "?"}):
        refused = app.post("/api/auditor/record", body, headers=mine)
        assert refused.status_code == 422
        assert "\n" not in refused.json()["message"]


def test_a_cookie_alone_changes_nothing_anywhere(house: House) -> None:
    """Every unsafe route, for both roles: no token, a wrong one, another site."""
    unsafe = [r for r in house.of("owner", "worker", "auditor") if r.method not in SAFE]
    assert len(unsafe) > 20
    for route in unsafe:
        csrf = house.cookies(route.role)
        before = house.rows()
        for headers in (
            {},
            {"x-csrf-token": "0" * 64},
            {"x-csrf-token": csrf_of("another session")},
            {"x-csrf-token": csrf, "origin": "https://evil.example"},
            {"x-csrf-token": csrf, "origin": "null"},
            {"x-csrf-token": csrf, "sec-fetch-site": "cross-site"},
            {"x-csrf-token": csrf, "sec-fetch-site": "same-site"},
        ):
            found = house.call(route, headers)
            assert found.status_code == 403, (route, headers, found.status_code)
        for kind in (
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "text/plain",
        ):
            found = house.app.client.request(
                route.method,
                route.at(
                    **{k: v for k, v in house.things[0].items() if k not in ("ann", "auditor")}
                ),
                content=b"csrf=0",
                headers={"content-type": kind},
            )
            assert found.status_code in (400, 403), (route, kind, found.status_code)
        assert house.rows() == before, route
    house.app.client.cookies.clear()


def test_the_right_csrf_token_is_enough(house: House) -> None:
    """Otherwise the test above would pass for a server that refuses everything."""
    csrf = house.cookies("owner")
    route = Route("POST", "/api/campaigns/{campaign_id}/join-link")
    assert house.call(route, {"x-csrf-token": csrf}).status_code == 201
    csrf = house.cookies("worker")
    route = Route("POST", "/api/worker/next")
    assert house.call(route, {"x-csrf-token": csrf}).status_code == 200
    house.app.client.cookies.clear()


def test_reading_changes_nothing(house: House) -> None:
    """No GET of the owner or of a worker writes, so that a link in a mail is harmless."""
    house.app.client.cookies.clear()
    before = house.rows()
    for route in house.of("owner", "worker", "auditor", "both", "open"):
        if route.method not in SAFE or route.path == "/static":
            continue
        headers = house.headers.get(route.role, house.app.owner)
        found = house.call(route, headers)
        # One names no choice; the other asks Prolific, for which there is no key.
        refused = route.path.endswith(("/plan/tree", "/prolific/submissions"))
        wanted = 422 if refused else 200
        assert found.status_code == wanted, (route, found.status_code, found.text[:200])
    assert house.rows() == before


@pytest.mark.parametrize("mine", ["worker", "item", "hook", "token_id"])
def test_objects_of_one_campaign_are_not_found_in_another(house: House, mine: str) -> None:
    """Every route that names a thing within a campaign."""
    named = [r for r in house.of("owner", "both") if f"{{{mine}}}" in r.path]
    named = [r for r in named if not r.path.startswith("/api/tokens/")]  # of the whole server
    assert named
    for route in named:
        assert "{campaign_id}" in route.path, f"{route}: whose is it?"
        before = house.rows()
        for verb in ("pause", "resume", "block", "link") if "{verb}" in route.path else ("",):
            for thing in (house.things[0][mine], 10**6):
                values = {"campaign_id": house.two, mine: thing, "verb": verb}
                found = house.call(route, house.app.owner, **values)
                form = route.path.startswith("/c/") and route.method == "POST"  # is read first
                expected = (404, 422) if form else (404,)
                assert found.status_code in expected, (route, values, found.text[:200])
        assert house.rows() == before


def test_missing_campaigns_are_not_found(house: House) -> None:
    before = house.rows()
    for route in house.of("owner", "both"):
        if "{campaign_id}" not in route.path:
            continue
        for number in (10**6, 2**53):
            found = house.call(route, house.app.owner, campaign_id=number)
            assert found.status_code in (404, 415, 422), (route, number, found.text[:200])
        for number in (0, -1, 2**63, "x", "1e3", "٣"):
            found = house.call(route, house.app.owner, campaign_id=number)
            assert found.status_code in (404, 405, 422), (route, number, found.text[:200])
    assert house.rows() == before


def test_other_parameters_are_checked_everywhere(house: House) -> None:
    for route in house.routes:
        for name in ("worker", "item", "hook"):
            if f"{{{name}}}" in route.path:
                for value in (0, -1, 2**63, "x", "%2e%2e", "1%00"):
                    found = house.call(route, house.app.owner, **{name: value})
                    assert found.status_code in (404, 405, 422), (route, value)


def test_numbers_in_queries_are_bounded(house: House) -> None:
    """Every number that a query of the API may carry: too large, below zero, none at all."""
    schema = house.app.client.app.openapi()["paths"]  # type: ignore[attr-defined]
    tried = 0
    for path, methods in schema.items():
        for method, operation in methods.items():
            for field in operation.get("parameters", ()):
                if field["in"] != "query" or field["schema"].get("type") != "integer":
                    continue
                tried += 1
                for value in (10**30, -1, "x", ""):
                    at = Route(method.upper(), path).at(campaign_id=house.one)
                    found = house.app.client.request(
                        method, at, params={field["name"]: value}, headers=house.app.owner
                    )
                    assert found.status_code == 422, (path, field["name"], value)
    assert tried >= 1


def test_a_lease_belongs_to_one_worker(house: House) -> None:
    """Every route of workers that names a lease, with somebody else's, and with a made-up one."""
    app = house.app
    app.client.cookies.clear()
    lease = house.ann.next()["task"]["lease"]
    number, nonce = lease.split(".")
    before = house.rows()["answers"]
    forged = [lease, f"{number}.{'0' * len(nonce)}", f"{int(number) + 1}.{nonce}", f"0{number}.00"]
    for route in house.of("worker"):
        for token in forged:
            body = {"lease": token, "key": "stolen", "answer": "yes"}
            if route.path.endswith("skip"):
                del body["answer"]
            if not route.path.endswith(("answer", "skip")):
                continue
            found = app.client.post(route.path, json=body, headers=house.eve.headers)
            assert found.status_code == 410, (route, token, found.text)
    stolen = app.client.post(
        "/api/worker/next", json={"holding": forged}, headers=house.eve.headers
    )
    assert stolen.status_code in (200, 422)
    assert lease not in stolen.text
    assert house.rows()["answers"] == before
    assert house.ann.answer(lease, key="mine").json()["fate"] == "counted"


def test_media_are_restricted_to_the_campaign(house: House) -> None:
    app = house.app
    app.client.cookies.clear()
    assert app.client.get(f"/media/{house.one}/a.png", headers=app.owner).status_code == 200
    secret = app.store.read(lambda c: get_campaign(c, house.one)).secret
    path = f"/media/{house.one}/{file_name(secret, 'a.png')}"
    assert app.client.get(path, headers=house.ann.headers).status_code == 200
    assert app.client.get(path, headers=app.owner).status_code == 200
    join = app.post(f"/api/campaigns/{house.one}/join-link").json()["token"]
    assert app.client.get(path, headers=house.headers["auditor"]).status_code == 200
    for headers in (
        {},
        {"authorization": "Bearer forged"},
        {"authorization": f"Bearer {house.things[1]['auditor']}"},
        house.eve.headers,
        {"authorization": f"Bearer {join}"},
    ):
        found = app.client.get(path, headers=headers)
        assert found.status_code in (401, 403, 404)
        assert "image" not in found.headers["content-type"]
