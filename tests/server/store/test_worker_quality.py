"""What is learned about workers, and forgotten where evidence no longer holds."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip(
    "sqlalchemy", reason="the server is not installed: pip install crowdtree[serve]"
)


from crowdtree.server.store.db import statements as sql
from crowdtree.server.store.db.sql import run_many
from crowdtree.server.store.db.statements import relearn
from crowdtree.server.store.replay.verify import verify
from tests.storelab import maintain
from tests.weblab import CSV, Lab

GOLD = CSV + "".join(f"g{k},gold,c4\n" for k in range(30))


def gold_worker(app: Lab, **settings: Any) -> tuple[int, Any]:
    number = app.campaign(
        GOLD, example="table1", workers=8, settings={"gold_rate": 1.0, **settings}
    )
    return number, app.worker(number)


def record(app: Lab, number: int, worker: Any) -> Any:
    maintain(app.store)
    rows = app.get(f"/api/campaigns/{number}/workers").json()
    return next(row for row in rows if row["id"] == worker.id)


def test_relearning_keeps_the_evidence_of_labels(app: Lab) -> None:
    items = "task,text,gold\na,one,\ng,gold,c4\n"
    settings = {"gold_rate": 0.0, "show_item_names": True}
    number = app.campaign(items, example="table1", workers=0, settings=settings)
    worker = app.worker(number)
    assert worker.work("yes")["fate"] == "counted"  # labels the item, and teaches
    before = record(app, number, worker)
    assert before["judged"] == 1
    app.post(f"/api/campaigns/{number}/finish")
    other = "task,text,gold\nb,two,\n"
    app.client.post(
        f"/api/campaigns/{number}/items",
        content=other.encode(),
        headers={**app.owner, "content-type": "text/csv"},
    )
    record(app, number, worker)
    app.client.patch(
        f"/api/campaigns/{number}/settings", json={"checks": {"gold_rate": 1.0}}, headers=app.owner
    )
    app.post(f"/api/campaigns/{number}/start")
    assert worker.next()["task"]["item"]["task"] == "g"
    worker.work("no")
    known = record(app, number, worker)
    assert known["skill"] < before["skill"]
    again = [relearn(worker.id)._asdict()]
    app.store.write(lambda c: run_many(c, sql.ADD_JUDGEMENT, again))
    after = record(app, number, worker)
    for name in ("judged", "agreed", "gold_asked", "gold_right"):
        assert after[name] == known[name]
    assert after["skill"] == pytest.approx(known["skill"], abs=1e-12)
    assert app.store.read(lambda c: verify(c, number))["differences"] == []


def test_a_skip_of_gold_does_not_change_the_skill(app: Lab) -> None:
    number, worker = gold_worker(app)
    before = record(app, number, worker)
    worker.call("skip", lease=worker.next()["task"]["lease"], key="s")
    after = record(app, number, worker)
    assert (after["skill"], after["gold_asked"]) == (before["skill"], 0)


def test_nobody_is_paused_before_enough_is_known(app: Lab) -> None:
    number, worker = gold_worker(app, pause_below=0.99, pause_after_checks=3)
    for count in (1, 2, 3):
        worker.work("no")  # wrong each time
        status = "active" if count < 3 else "paused"
        found = record(app, number, worker)
        assert (found["gold_asked"], found["status"]) == (count, status)
