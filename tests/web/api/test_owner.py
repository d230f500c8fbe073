"""What owners do over the API."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from crowdtree.store.replay.verify import verify
from weblab import Lab, until


def finish(app: Lab, number: int) -> Any:
    app.post(f"/api/campaigns/{number}/finish")
    assert until(lambda: app.get(f"/api/campaigns/{number}").json()["status"] == "finished")
    return app.get(f"/api/campaigns/{number}").json()


def test_a_campaign_from_upload_to_labels(app: Lab) -> None:
    number = app.campaign()
    workers = [app.worker(number) for _ in range(5)]
    busy = True
    while busy:
        done = [worker.work() for worker in workers]
        busy = any(done)
    found = until(lambda: app.get(f"/api/campaigns/{number}").json()["status"] == "finished")
    assert found
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
