"""Routes of corrections: exclude, include, reopen."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from tests.weblab import Lab


def settled(lab: Lab, number: int) -> Any:
    """Let the items be replayed; returns the progress."""
    lab.settle()
    return lab.get(f"/api/campaigns/{number}").json()


@pytest.fixture
def spoiled(app: Lab) -> Any:
    """A campaign that three people have labelled; the answers of the first are all no."""
    rows = "task,text\n" + "".join(f"i{k},x\n" for k in range(6))
    number = app.campaign(items=rows, settings={"pause_suspects": False})
    people = [app.worker(number, name) for name in ("ann", "bob", "eve")]
    for _ in range(12):
        for who in people:
            who.work("no" if who is people[0] else "yes")
    return app, number, people


def test_an_exclusion_is_previewed_made_and_undone(spoiled: Any) -> None:
    app, number, people = spoiled
    base, body = f"/api/campaigns/{number}", {"workers": [people[0].id]}
    before = app.get(f"{base}/labels?format=jsonl").text
    seen = app.post(f"{base}/exclude", {**body, "dry_run": True}).json()
    assert seen["answers"] > 0
    assert seen["complete"]
    assert "would no longer count" in seen["text"]
    assert app.get(f"{base}/labels?format=jsonl").text == before
    assert app.get(f"{base}/exclusions").json() == []
    made = app.post(f"{base}/exclude", {**body, "reason": "spam", "block": True}).json()
    assert made == {"campaign": number, "revision": 1, "workers": [people[0].id], "changed": True}
    found = settled(app, number)
    assert found["excluded_workers"] == 1
    assert found["workers"]["blocked"] == 1
    log = app.get(f"{base}/answers?format=jsonl&log=true").text
    assert log.count('"excluded"') == seen["answers"]
    assert app.get(f"{base}/answers?format=jsonl").text.count('"w1 ann"') == 0
    row = app.get(f"{base}/exclusions").json()[0]
    assert (row["worker_id"], row["reason"], row["lifted_at"]) == (people[0].id, "spam", None)
    workers = app.get(f"{base}/workers").json()
    assert [one["excluded"] for one in workers] == [True, False, False]
    again = app.post(f"{base}/include", {**body, "dry_run": True}).json()
    assert again["answers"] == seen["answers"]
    assert "would count again" in again["text"]
    assert app.post(f"{base}/include", body).json()["revision"] == 2
    assert settled(app, number)["excluded_workers"] == 0
    now = app.get(f"{base}/activity").json()
    assert {"exclude", "include", "worker blocked"} <= {entry["action"] for entry in now}


def test_a_preview_says_what_happens(spoiled: Any) -> None:
    app, number, people = spoiled
    base, body = f"/api/campaigns/{number}", {"workers": [who.id for who in people]}
    total = settled(app, number)["items"]["labelled"]
    seen = app.post(f"{base}/exclude", {**body, "dry_run": True}).json()
    assert (seen["labels"], seen["withdrawn"]) == (total, total)
    app.post(f"{base}/exclude", body)
    assert settled(app, number)["items"]["labelled"] == 0


def test_times_are_read_with_and_without_a_zone(spoiled: Any) -> None:
    app, number, people = spoiled
    where = f"/api/campaigns/{number}/exclude"
    for since in ("2100-01-01T00:00", "2100-01-01T00:00+02:00", 4102444800):
        found = app.post(where, {"workers": [people[0].id], "since": since, "dry_run": True})
        assert (found.status_code, "no answers since then" in found.text) == (422, True)
    early = app.post(where, {"workers": [people[0].id], "since": "1970-01-01", "dry_run": True})
    assert early.json()["answers"] > 0


MISTAKES = [
    ("exclude", {"workers": []}),
    ("exclude", {"workers": [0]}),
    ("exclude", {"workers": [10**30]}),
    ("exclude", {"workers": [1], "since": "yesterday"}),
    ("exclude", {"workers": [1], "since": 1e300}),
    ("include", {"workers": [1], "since": 0}),
    ("include", {"workers": [1]}),
    ("reopen", {}),
    ("reopen", {"tasks": ["i1"], "all": True}),
    ("reopen", {"tasks": ["i1"]}),
    ("reopen", {"tasks": ["nowhere"]}),
]


def test_mistakes_are_refused(spoiled: Any) -> None:
    app, number, _ = spoiled
    for verb, body in MISTAKES:
        found = app.post(f"/api/campaigns/{number}/{verb}", body)
        assert found.status_code == 422, (verb, body, found.text)


def test_unknown_workers_and_drafts_are_refused(app: Lab) -> None:
    number = app.campaign(start=False)
    who = app.worker(number)
    found = app.post(f"/api/campaigns/{number}/exclude", {"workers": [who.id]})
    assert "is draft: expected a running, paused or finished one" in found.text
    app.post(f"/api/campaigns/{number}/start")
    assert app.post(f"/api/campaigns/{number}/exclude", {"workers": [99]}).status_code == 404


@pytest.mark.usefixtures("full_skips")
def test_items_set_aside_are_reopened(app: Lab) -> None:
    text = "task,text\na,x\nb,y\nc,z\n"
    number = app.campaign(items=text, settings={"max_skips": 1, "automatically": False})
    base, who = f"/api/campaigns/{number}", app.worker(number)
    while (task := who.next()["task"]) is not None:
        who.call("skip", lease=task["lease"], key=task["lease"])
    assert app.get(base).json()["items"]["set_aside"] == 3
    again = app.client.post(
        f"{base}/items", content=text, headers={**app.owner, "content-type": "text/csv"}
    )
    assert (again.json()["added"], again.json()["set_aside"]) == (0, 3)
    assert (again.json()["conflicts"], again.json()["warnings"]) == ([], [])
    page = app.get(f"/c/{number}/items?status=set+aside&added=0&same=3&aside=3").text
    assert "3 items of your file had been set aside" in page
    assert "Reopen all 3" in page
    found = app.post(f"{base}/reopen", {"tasks": ["a"]}).json()
    assert (found["reopened"], found["status"]) == (1, "running")
    form = app.client.post(
        f"/c/{number}/reopen", data={"task": ["b"]}, headers=app.owner, follow_redirects=False
    )
    assert form.headers["location"] == f"/c/{number}/items?reopened=1"
    assert app.post(f"{base}/reopen", {"all": True}).json()["reopened"] == 1
    assert app.get(base).json()["items"]["set_aside"] == 0
    assert app.worker(number).next()["task"] is not None


def test_pages_show_exclusions(spoiled: Any) -> None:
    app, number, people = spoiled
    who = people[0].id
    assert "Exclude all answers of ann?" in app.get(f"/c/{number}/workers").text
    app.post(f"/api/campaigns/{number}/exclude", {"workers": [who], "reason": "spam"})
    settled(app, number)
    assert "answers excluded" in app.get(f"/c/{number}/workers").text
    page = app.get(f"/c/{number}/workers/{who}").text
    assert "by the owner: spam" in page
    assert "Include the answers of ann again?" in page
    assert "Answers of 1 worker are excluded." in app.get(f"/c/{number}").text
