"""The routes and the page of the study."""

from __future__ import annotations

from typing import Any

import pytest

from tests.server.prolific.conftest import PAID, participant


def test_the_page_follows_the_study(app: Any, stub: Any) -> None:
    number = app.campaign(settings=PAID)
    base = f"/api/campaigns/{number}/prolific"

    def page() -> str:
        found = app.get(f"/c/{number}/prolific")
        assert found.status_code == 200
        return str(found.text)

    def post(verb: str, body: Any = None) -> Any:
        found = app.post(f"{base}/{verb}", body)
        assert found.status_code == 200, found.text
        return found.json()

    assert "Create the study" in page()
    wish = {"places": "10", "seconds": "20"}  # as a form sends them
    assert "10 participants" in post("create", wish | {"dry_run": True})["text"]
    assert post("create", wish)["study"] == "study1"
    assert "Publish the study" in page()
    assert "0.20 GBP each" in post("publish", {"dry_run": True})["text"]
    assert post("publish")["status"] == "ACTIVE"
    assert "Pause the study" in page()
    participant(app, stub, "p<b>1", 6)
    participant(app, stub, "p2", 1)
    shown = page()
    assert "p&lt;b&gt;1" in shown
    assert "Approve complete ones" in shown
    assert len(app.get(f"{base}/submissions").json()["submissions"]) == 2
    assert post("approve", {"dry_run": True})["due"] == ["sub1"]
    assert post("approve")["approved"] == ["sub1"]
    wrong = {"submissions": "sub2", "category": "NO_DATA", "message": "short"}
    refused = app.post(f"{base}/reject", wrong)
    assert refused.status_code == 422
    assert "at least 100 characters" in refused.json()["message"]
    assert post("reject", wrong | {"message": "x" * 100})["rejected"] == ["sub2"]
    stub.losing = "/pay/$"
    assert app.post(f"{base}/bonus", {}).status_code == 422
    assert "A payment without a reply" in page()
    post("bonus", {"outcome": "paid"})
    assert "A payment without a reply" not in page()
    assert post("bonus")["bonuses"] == {}
    assert stub.posts("/pay/") == 1
    assert post("pause")["status"] == "PAUSED"


def test_without_a_token_the_page_says_so(
    app: Any, stub: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = app.campaign(settings=PAID)
    monkeypatch.delenv("CROWDTREE_PROLIFIC_TOKEN")
    assert (
        "set the environment variable CROWDTREE_PROLIFIC_TOKEN"
        in app.get(f"/c/{number}/prolific").text
    )
    refused = app.post(f"/api/campaigns/{number}/prolific/create", {"places": 5})
    assert refused.status_code == 422
    assert stub.calls == []


def test_strangers_are_refused(app: Any, stub: Any) -> None:
    number = app.campaign(settings=PAID)
    for verb in ("create", "publish", "approve", "reject", "bonus"):
        where = f"/api/campaigns/{number}/prolific/{verb}"
        assert app.client.post(where, json={}).status_code == 401
    assert app.client.get(f"/c/{number}/prolific").status_code == 401
    assert stub.calls == []
