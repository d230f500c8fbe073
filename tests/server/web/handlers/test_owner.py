"""What owners do over the API."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from crowdtree.server.store.replay.verify import verify
from tests.weblab import Lab


def finish(app: Lab, number: int) -> Any:
    app.post(f"/api/campaigns/{number}/finish")
    app.settle()
    found = app.get(f"/api/campaigns/{number}").json()
    assert found["status"] == "finished"
    return found


def test_a_campaign_from_upload_to_labels(app: Lab) -> None:
    number = app.campaign()
    workers = [app.worker(number) for _ in range(5)]
    busy = True
    while busy:
        done = [worker.work() for worker in workers]
        busy = any(done)
    app.settle()
    assert app.get(f"/api/campaigns/{number}").json()["status"] == "finished"
    rows = list(csv.DictReader(io.StringIO(app.get(f"/api/campaigns/{number}/labels").text)))
    assert sorted(row["task"] for row in rows) == sorted(f"i{k}" for k in range(20))
    assert {row["label"] for row in rows} == {"c4"}  # everybody said yes to T1
    assert {row["reason"] for row in rows} == {"leaf"}
    assert json.loads(rows[0]["path"])[0]["question"] == "T1"
    assert app.store.read(lambda c: verify(c, number))["agrees"]


def test_finish_labels_what_is_open_and_sets_the_rest_aside(app: Lab) -> None:
    number = app.campaign()
    app.worker(number).work()
    found = finish(app, number)
    assert (found["items"]["labelled"], found["items"]["set_aside"]) == (1, 19)
    rows = list(csv.DictReader(io.StringIO(app.get(f"/api/campaigns/{number}/labels").text)))
    assert sorted({row["reason"] for row in rows}) == ["finished", "never asked"]
    assert app.store.read(lambda c: verify(c, number))["agrees"]


def test_answers_per_item_count_finished_items_only(app: Lab) -> None:
    number = app.campaign(example="table1", workers=8)
    workers = [app.worker(number) for _ in range(3)]
    for _ in range(8):
        for worker in workers:
            worker.work()
    workers[0].work()  # of an item that is not done
    lines = app.get(f"/api/campaigns/{number}/labels?format=jsonl").text.splitlines()
    taken = [json.loads(line)["answers"] for line in lines]
    found = app.get(f"/api/campaigns/{number}").json()
    assert 0 < len(taken) < 20
    assert found["answers_per_item"] == pytest.approx(sum(taken) / len(taken))
    assert found["answers"]["counted"] > sum(taken)


def test_pause_and_resume(app: Lab) -> None:
    number = app.campaign()
    worker = app.worker(number)
    app.post(f"/api/campaigns/{number}/pause")
    assert worker.next()["reason"] == "paused"
    app.post(f"/api/campaigns/{number}/resume")
    assert worker.next()["task"]


def test_a_running_campaign_is_revised(app: Lab) -> None:
    number = app.campaign(settings={"automatically": False, "price": 0.01})
    workers = [app.worker(number) for _ in range(5)]
    while any([worker.work() for worker in workers]):  # noqa: C419 - everybody works
        pass
    before = app.get(f"/api/campaigns/{number}").json()
    assert (before["items"]["labelled"], before["revision"]) == (20, None)
    path = f"/api/campaigns/{number}"
    policy = app.get(f"{path}/definition").json()["policy"]
    assert app.post(f"{path}/revise", {"policy": policy}).json() == {"revision": 0}
    more = {"policy": {"example": "table1", "workers": 40}, "reason": "to be sure"}
    made = app.post(f"{path}/revise", more)
    assert made.json() == {"revision": 1}
    app.settle()
    assert app.get(path).json()["revision"]["finished_at"]
    found = app.get(path).json()
    assert (found["items"]["open"], found["spent"]) == (20, before["spent"])
    rows = app.get(f"{path}/revisions").json()
    assert [row["number"] for row in rows] == [0, 1]
    assert rows[1]["reason"] == {"text": "to be sure"}
    assert app.get(f"{path}/activity").json()[0]["action"] == "revise"
    assert app.store.read(lambda c: verify(c, number))["agrees"]
    assert app.worker(number).work()["fate"] == "counted"


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ({"example": "animals"}, "expected the 5 of the campaign"),
        ({}, "expected a problem, an example or a plan"),
    ],
)
def test_a_wrong_revision_is_refused_in_one_line(app: Lab, wish: Any, words: str) -> None:
    number = app.campaign()
    found = app.post(f"/api/campaigns/{number}/revise", {"policy": wish})
    assert found.status_code == 422
    assert words in found.text


def test_a_draft_is_not_revised(app: Lab) -> None:
    number = app.campaign(start=False)
    found = app.post(f"/api/campaigns/{number}/revise", {"policy": {"example": "table1"}})
    assert found.status_code == 422
    assert "is draft: only a running or paused one can be revised" in found.text


def test_links_have_a_qr_code_of_their_whole_address(app: Lab, monkeypatch: Any) -> None:
    drawn: list[str] = []
    monkeypatch.setattr(
        "crowdtree.server.web.handlers.workers.qr_svg", lambda link: drawn.append(link) or "<svg/>"
    )
    number = app.campaign()
    path = f"/api/campaigns/{number}"
    made = app.post(f"{path}/join-link").json()
    assert (drawn.pop(), made["qr"]) == (f"http://testserver{made['link']}", "<svg/>")
    seen = {**app.owner, "origin": "https://label.example"}
    made = app.post(f"{path}/workers/invite", {"name": "Ann"}, headers=seen).json()
    assert drawn.pop() == f"https://label.example{made['link']}"
