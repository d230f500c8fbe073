"""Duplicates of campaigns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from crowdtree.server.store.db.campaign_row import get_campaign
from crowdtree.server.store.owner import campaigns
from tests.weblab import Lab, lab

ITEMS = "task,text,image,gold,place\na,one,a.png,,Rome\nb,two,missing.png,,\ng,three,,c4,\n"
SETTINGS = {"price": 0.05, "currency": "EUR", "instructions": "Look", "completion_code": "C0DE"}


def definition(app: Lab, number: int) -> Any:
    return app.get(f"/api/campaigns/{number}/definition").json()


@pytest.fixture
def app(tmp_path: Path, url: str) -> Any:
    with lab(url, media=tmp_path / "media") as made:
        yield made


def test_a_duplicate_is_a_draft_with_the_same_definition(app: Lab, monkeypatch: Any) -> None:
    monkeypatch.setattr(campaigns, "ITEMS_AT_ONCE", 2)
    number = app.campaign(ITEMS, settings=SETTINGS)
    app.worker(number).work()
    app.post(f"/api/campaigns/{number}/join-link")
    made = app.post(f"/api/campaigns/{number}/duplicate", {"items": True})
    assert made.status_code == 201
    new = made.json()["id"]
    assert made.json() == {"id": new, "name": "Copy of lab", "items": 3}
    before, after = definition(app, number), definition(app, new)
    assert after["policy"] == before["policy"]
    before["settings"]["money"]["completion_code"] = ""
    assert after["settings"] == before["settings"]
    facts = app.get(f"/api/campaigns/{new}").json()
    assert (facts["status"], facts["items"]["new"], facts["items"]["gold"]) == ("draft", 2, 1)
    assert (facts["workers"]["active"], facts["answers"]["counted"], facts["spent"]) == (0, 0, 0)
    secrets = [app.store.read(lambda c, n=n: get_campaign(c, n)).secret for n in (number, new)]
    assert secrets[0] != secrets[1]
    assert app.post(f"/api/campaigns/{new}/start").status_code == 200
    assert app.worker(new).work()["fate"] == "counted"


def test_items_are_optional_and_names_are_checked(app: Lab) -> None:
    number = app.campaign(ITEMS)
    made = app.post(f"/api/campaigns/{number}/duplicate", {"name": "Second"}).json()
    assert (made["name"], made["items"]) == ("Second", 0)
    path = f"/api/campaigns/{number}/duplicate"
    assert app.post(path, {"name": "a\x00b"}).status_code == 422
    assert app.post("/api/campaigns/99/duplicate").status_code == 404
    assert len(app.get("/api/campaigns").json()) == 2


def test_uploaded_files_are_copied_and_deleted_apart(app: Lab, tmp_path: Path) -> None:
    number = app.campaign(ITEMS, start=False)
    name = f"/api/campaigns/{number}/media?name=a.png"
    app.client.post(name, content=b"picture", headers=app.owner)
    found = app.client.post(
        f"/c/{number}/duplicate", data={"items": "on"}, headers=app.owner, follow_redirects=False
    )
    new = int(found.headers["location"].split("/")[2])
    assert app.get(f"/media/{new}/a.png").content == b"picture"
    app.client.post(f"/c/{number}/discard", headers=app.owner)
    assert [path.name for path in (tmp_path / "media").iterdir()] == [str(new)]
    assert app.get(f"/media/{new}/a.png").content == b"picture"


def test_a_failure_leaves_no_draft(app: Lab, monkeypatch: Any) -> None:
    number = app.campaign(ITEMS)
    media = app.client.app.state.crowdtree.media

    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(media, "copy", fail)
    made = app.post(f"/api/campaigns/{number}/duplicate", {"items": True})
    assert made.status_code == 503
    assert [row["id"] for row in app.get("/api/campaigns").json()] == [number]
