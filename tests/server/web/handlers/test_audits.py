"""Audits over HTTP: the owner starts and reads, auditors check."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

import crowdtree as ct
from tests.weblab import Lab, lab


@pytest.fixture
def app() -> Iterator[Lab]:
    with lab() as made:
        yield made


def labelled(app: Lab, **settings: Any) -> int:
    """Make a campaign with twenty labelled items."""
    number = app.campaign(example="table1", workers=0, settings=settings)
    ann = app.worker(number)
    while ann.work("no"):
        pass
    assert app.get(f"/api/campaigns/{number}").json()["items"]["labelled"] == 20
    return number


def auditor(app: Lab, number: int, name: str = "Max") -> dict[str, str]:
    made = app.post(f"/api/campaigns/{number}/audit/links", {"name": name})
    assert made.status_code == 201, made.text
    assert made.json()["link"] == f"/a/{made.json()['token']}"
    return {"authorization": f"Bearer {made.json()['token']}"}


def labels(app: Lab, number: int) -> dict[str, Any]:
    lines = app.get(f"/api/campaigns/{number}/labels?format=jsonl").text.splitlines()
    return {row["task"]: row for row in map(json.loads, lines)}


def check(app: Lab, number: int, who: dict[str, str], most: int = 100) -> int:
    """Find labels right until there is nothing left to check."""
    truth, done = labels(app, number), 0
    while done < most:
        found = app.post("/api/auditor/next", headers=who).json()
        if found["item"] is None:
            break
        sent = {"item": found["number"], "truth": truth[found["item"]["task"]]["label"]}
        assert app.post("/api/auditor/record", sent, headers=who).status_code == 200
        done += 1
    return done


def test_an_audit_from_start_to_certificate(app: Lab) -> None:
    number = labelled(app)
    path = f"/api/campaigns/{number}/audit"
    assert app.get(path).json()["started"] is False
    who = auditor(app, number)
    assert app.post("/api/auditor/next", headers=who).json()["reason"] == "not started"
    for body in ({"bound": 0}, {"bound": 2}, {"confidence": 1}, {"seed": 1}, {"bound": "x"}):
        assert app.post(path, body).status_code == 422, body
    assert app.post(path, {}).status_code == 422  # no bound and no setting
    assert app.get(f"{path}/certificate").status_code == 404
    started = app.post(path, {"bound": 0.3})
    assert started.status_code == 201
    assert started.json()["sentence"].startswith("Asked for at most 30 % wrong labels; nothing")
    assert started.json()["forecast"]["median"] > 0
    first = app.post("/api/auditor/next", headers=who).json()
    done = check(app, number, who)
    found = app.get(path).json()
    assert (found["claims"]["state"], found["people"]) == ("reached", {"Max": done})
    assert found["next"] == "Reached."
    assert "certified at most" in found["sentence"]
    file = app.get(f"{path}/certificate")
    assert "attachment" in file.headers["content-disposition"]
    assert ct.verify_audit(file.content, name="audit.json").standing.checks == done
    shown = app.get(f"/api/campaigns/{number}/items/{first['number']}").json()
    assert (shown["check"]["person"], shown["check"]["truth"]) == ("Max", shown["label"]["label"])
    assert "Checked by Max: it is" in app.get(f"/c/{number}/items/{first['number']}").text
    rows = labels(app, number).values()
    assert sum(row["checked"] for row in rows) == done
    assert {row["truth"] for row in rows if not row["checked"]} == {None}
    csv = app.get(f"/api/campaigns/{number}/labels").text
    assert csv.splitlines()[0].partition(",computed,")[0].endswith("certified")
    assert {row["certified"] for row in rows} == {found["claims"]["upper"]}
    head = app.get(f"/api/campaigns/{number}/labels").headers["x-crowdtree-audit"]
    assert head == found["sentence"]
    assert app.get(f"/api/campaigns/{number}/labels?format=parquet").status_code == 200


def test_links_are_listed_without_secrets_and_revoked(app: Lab) -> None:
    number = labelled(app)
    path = f"/api/campaigns/{number}/audit"
    app.post(path, {"bound": 0.3})
    who = auditor(app, number)
    (link,) = app.get(f"{path}/links").json()
    assert set(link) == {"id", "name", "created_at"}
    assert app.post("/api/auditor/next", headers=who).json()["item"]
    gone = app.client.delete(f"{path}/links/{link['id']}", headers=app.owner)
    assert gone.status_code == 200
    assert app.post("/api/auditor/next", headers=who).status_code == 401
    assert app.get("/api/auditor/me", headers=who).status_code == 401
    again = app.client.delete(f"{path}/links/{link['id']}", headers=app.owner)
    assert again.status_code == 404
    assert app.post(f"{path}/links", {"name": ""}).status_code == 422
    assert app.post(f"{path}/links", {"name": "a\x00"}).status_code == 422
    other = auditor(app, number, "Eve")  # what the first one held is free at once
    assert app.post("/api/auditor/next", headers=other).json()["item"]
    assert app.get(path).json()["claims"]["drawn"] == 1


def test_the_link_opens_the_page_and_leaves_the_address(app: Lab) -> None:
    number = labelled(app)
    app.post(f"/api/campaigns/{number}/audit", {"bound": 0.3})
    token = auditor(app, number)["authorization"].split()[1]
    opened = app.client.get(f"/a/{token}")
    assert str(opened.url).endswith("/check")
    assert token not in opened.text
    assert "checks by Max" in opened.text
    assert "posterior" not in opened.text
    assert app.client.get("/a/forged").status_code == 401


def test_a_campaign_that_must_be_certified_waits_and_says_so(app: Lab) -> None:
    number = labelled(app, max_wrong_labels=0.3)
    path = f"/api/campaigns/{number}"
    app.settle()
    assert app.get(path).json()["status_reason"] == "waiting for checks"
    page = app.get(f"/c/{number}").text
    assert "All items have their label; waiting for checks." in page
    assert f"/c/{number}/audit" in page
    assert check(app, number, auditor(app, number))
    app.settle()
    assert app.get(path).json()["status"] == "finished"
    assert "certified at most" in app.get(f"/c/{number}").text


def test_a_bound_out_of_reach_says_what_to_do(app: Lab) -> None:
    number = labelled(app, max_wrong_labels=0.05, price=1.0, budget=1000.0)
    path = f"/api/campaigns/{number}"
    spent = {"budget": app.get(path).json()["spent"]}
    app.client.patch(f"{path}/settings", json={"money": spent}, headers=app.owner)
    app.settle()
    assert app.get(path).json()["status_reason"] == "waiting for checks"
    who = auditor(app, number)
    for _ in range(2):
        found = app.post("/api/auditor/next", headers=who).json()
        app.post("/api/auditor/record", {"item": found["number"], "truth": None}, headers=who)
    app.settle()
    assert "cannot" in app.get(path).json()["status_reason"]
    assert "Change that setting, or finish now" in app.get(f"/c/{number}").text
    audit = app.get(f"/c/{number}/audit").text
    assert "Nobody could tell" in audit
    assert "every one that a check finds is corrected" in audit
    assert app.post(f"{path}/finish").status_code == 200  # the owner decides
    app.settle()
    assert app.get(path).json()["status"] == "finished"


def test_the_page_starts_an_audit_in_percent(app: Lab) -> None:
    number = labelled(app)
    page = f"/c/{number}/audit"
    assert "Start an audit" in app.get(page).text
    sent = app.client.post(page, data={"bound": "30 %"}, headers=app.owner, follow_redirects=False)
    assert sent.status_code == 303, sent.text
    assert app.get(f"/api{page.replace('/c/', '/campaigns/')}").json()["claims"]["wanted"] == 0.3
    for bad in ("much", "0", "200"):
        sent = app.client.post(page, data={"bound": bad}, headers=app.owner)
        assert sent.status_code == 422, bad
    who = auditor(app, number)
    check(app, number, who, 2)
    text = app.get(page).text
    assert "<svg" in text
    assert "2 checks" in text
    assert "By label" in text
