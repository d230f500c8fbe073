"""People with roles, their activity, and deletion, through the API and the pages."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from starlette.testclient import TestClient

from crowdtree.server.store.replay.verify import verify
from crowdtree.server.web.auth import OWNER_COOKIE, csrf_of
from tests.weblab import CSV, Lab, lab

WISH = {"name": "Birds", "policy": {"example": "table1", "workers": 0}}


class Person:
    """An owner in a browser of their own, at an address of their own."""

    def __init__(self, app: Lab, link: str, address: str) -> None:
        self.client = TestClient(app.client.app, client=(address, 1))
        first = self.client.get(link, follow_redirects=False)
        assert first.status_code == 303, first.text
        self.head = {"x-csrf-token": csrf_of(self.client.cookies[OWNER_COOKIE])}

    def get(self, path: str, **options: Any) -> Any:
        return self.client.get(path, **options)

    def send(self, path: str, body: Any = None, method: str = "POST", **options: Any) -> Any:
        head = {**self.head, **options.pop("headers", {})}
        if not options:
            options = {"json": {} if body is None else body}
        return self.client.request(method, path, headers=head, **options)


def added(app: Lab, name: str, role: str, address: str) -> Person:
    made = app.post("/api/people", {"name": name, "role": role})
    assert made.status_code == 201, made.text
    return Person(app, made.json()["link"], address)


def test_a_campaign_administered_by_three_people_with_three_roles(tmp_path: Path) -> None:
    with lab(media=tmp_path) as app:
        ada = added(app, "Ada", "admin", "192.0.2.1")
        app.client.cookies.clear()
        # The admin adds two others, who log in by their links.
        links = {
            name: ada.send("/api/people", {"name": name, "role": role}).json()["link"]
            for name, role in (("Ed", "editor"), ("Vic", "viewer"))
        }
        ed, vic = Person(app, links["Ed"], "192.0.2.2"), Person(app, links["Vic"], "192.0.2.3")
        # The editor creates and starts a campaign; the viewer cannot.
        assert vic.send("/api/campaigns", WISH).status_code == 403
        number = ed.send("/api/campaigns", WISH).json()["id"]
        base, page = f"/api/campaigns/{number}", f"/c/{number}"
        csv_head = {"content-type": "text/csv"}
        assert vic.send(f"{base}/items", content=CSV, headers=csv_head).status_code == 403
        assert ed.send(f"{base}/items", content=CSV, headers=csv_head).status_code == 200
        assert ed.send(f"{base}/media?name=a.png", content=b"x").status_code == 201
        assert vic.send(f"{base}/start").status_code == 403
        assert ed.send(f"{base}/start").status_code == 200
        # Somebody works; all three watch.
        ann = app.worker(number, "Ann Worker")
        while ann.work("no"):
            pass
        for person in (ada, ed, vic):
            for path in (page, f"{page}/items", f"{page}/workers", f"{page}/activity", "/"):
                assert person.get(path).status_code == 200, path
            assert person.get(f"{base}/labels").status_code == 200
        assert [p.get(f"{page}/webhooks").status_code for p in (ada, ed, vic)] == [200, 200, 403]
        assert [p.get("/people").status_code for p in (ada, ed, vic)] == [200, 403, 403]
        assert "192.0.2.2" in ada.get(f"{page}/activity").text
        assert "192.0.2.2" not in vic.get(f"{page}/activity").text
        # Only the admin deletes personal data, and the campaign.
        erase = f"{base}/workers/{ann.id}/erase"
        assert [p.send(erase).status_code for p in (vic, ed, ada)] == [403, 403, 200]
        assert "Ann Worker" not in ada.get(f"{page}/workers").text
        assert app.store.read(lambda c: verify(c, number))["differences"] == []
        assert ed.send(f"{base}/pause").status_code == 200
        gone = {"name": "Birds"}
        assert [p.send(f"{base}/delete", gone).status_code for p in (vic, ed)] == [403, 403]
        wrong = ada.send(f"{base}/delete", {"name": "Fish"})
        assert (wrong.status_code, wrong.json()["error"]) == (422, "input")
        assert ada.send(f"{base}/delete", gone).status_code == 200
        assert ed.get(page).status_code == 404
        assert list(tmp_path.iterdir()) == []
        # The log has it all, by person and with addresses.
        log = ada.get("/api/activity?person=Ed").json()
        assert {row["address"] for row in log} == {"192.0.2.2"}
        assert {"login", "create", "start", "pause"} <= {row["action"] for row in log}
        (last, *_) = ada.get("/api/activity?person=Ada").json()
        assert (last["action"], last["detail"]["name"]) == ("delete campaign", "Birds")
        # Roles change at once; a person who is removed is logged out at once.
        people = {row["name"]: row["id"] for row in ada.get("/api/people").json()}
        ada.send(f"/api/people/{people['Ed']}", {"role": "viewer"}, "PATCH")
        assert ed.send("/api/campaigns", WISH).status_code == 403
        ada.send(f"/api/people/{people['Vic']}", method="DELETE")
        assert vic.get("/").status_code == 401


def test_nobody_changes_their_own_role(app: Lab) -> None:
    ada = added(app, "Ada", "admin", "192.0.2.1")
    mine = next(row["id"] for row in ada.get("/api/people").json() if row["name"] == "Ada")
    for method, body in (("PATCH", {"role": "viewer"}), ("DELETE", {})):
        found = ada.send(f"/api/people/{mine}", body, method)
        assert (found.status_code, found.json()["error"]) == (409, "own")
    page = ada.get("/people").text
    assert "whoever runs the server" in page
    assert f"/api/people/{mine}" not in page


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"name": "", "role": "admin"}, "name"),
        ({"name": "Ann"}, "role"),
        ({"name": "Ann", "role": "king"}, "role"),
        ({"name": "owner", "role": "viewer"}, "taken"),
        ({"name": "ADA", "role": "viewer"}, "already somebody called 'Ada'"),
        ({"name": "a\x00b", "role": "viewer"}, "printable"),
    ],
)
def test_mistakes_in_people_are_refused_in_one_line(app: Lab, body: Any, said: str) -> None:
    app.post("/api/people", {"name": "Ada", "role": "viewer"})
    found = app.post("/api/people", body)
    assert found.status_code == 422
    assert said in found.json()["message"]
    assert "\n" not in found.json()["message"]
    assert len(app.get("/api/people").json()) == 2


def test_a_new_link_replaces_unused_ones_and_works_once(app: Lab) -> None:
    made = app.post("/api/people", {"name": "Ed", "role": "editor"}).json()
    link = app.post(f"/api/people/{made['id']}/link").json()["link"]
    app.client.cookies.clear()
    assert app.client.get(made["link"], follow_redirects=False).status_code == 401
    Person(app, link, "192.0.2.9")
    assert app.client.get(link, follow_redirects=False).status_code == 401


def test_owners_see_and_end_only_their_own_tokens(app: Lab) -> None:
    ed, vic = added(app, "Ed", "editor", "1.1.1.1"), added(app, "Vic", "viewer", "2.2.2.2")
    app.client.cookies.clear()
    made = ed.send("/api/tokens", {"name": "export", "read_only": True}).json()
    assert [row["name"] for row in vic.get("/api/tokens").json()] == ["session"]
    assert vic.send(f"/api/tokens/{made['id']}", method="DELETE").status_code == 404
    script = {"authorization": f"Bearer {made['token']}"}
    assert app.get("/api/campaigns", headers=script).status_code == 200
    assert app.post("/api/campaigns", WISH, headers=script).status_code == 403
    assert "read-only" in ed.get("/access").text
    assert ed.send(f"/api/tokens/{made['id']}", method="DELETE").status_code == 200
    assert app.get("/api/campaigns", headers=script).status_code == 401


def test_activity_is_filtered_paged_and_exported(app: Lab) -> None:
    number = app.campaign()
    ed = added(app, "=Ed", "editor", "192.0.2.2")
    ed.send(f"/api/campaigns/{number}/pause")
    base = f"/api/campaigns/{number}/activity"
    rows = app.get(base).json()
    assert [row["person"] for row in rows][:2] == ["=Ed", "owner"]
    assert app.get(f"{base}?before={rows[0]['id']}").json() == rows[1:]
    assert [row["action"] for row in app.get(f"{base}?person==Ed").json()] == ["pause"]
    assert app.get(f"{base}?person=server").json() == []
    file = app.get(f"{base}?format=csv&person==Ed")
    assert file.headers["content-disposition"] == f'attachment; filename="activity-{number}.csv"'
    (line,) = csv.DictReader(io.StringIO(file.text))
    assert line == {
        "time": "1970-01-12T13:46:40.000Z",
        "person": "'=Ed",  # no formula
        "action": "pause",
        "campaign": str(number),
        "detail": "{}",
        "address": "192.0.2.2",
    }
    hidden = ed.get(f"{base}?format=csv").text
    assert "192.0.2.2" not in hidden
    everything = list(csv.DictReader(io.StringIO(app.get("/api/activity?format=csv").text)))
    assert len(everything) == len(app.get("/api/activity").json()) > len(rows)
    page = app.get("/activity?person==Ed").text
    assert "pause" in page
    assert "testclient" not in page
    assert app.get("/api/campaigns/99/activity?format=csv").status_code == 404


def test_logins_are_recorded_with_who_and_from_where(app: Lab) -> None:
    added(app, "Ed", "editor", "192.0.2.2")
    (first, *_) = app.get("/api/activity").json()
    assert (first["action"], first["person"], first["address"]) == ("login", "Ed", "192.0.2.2")
