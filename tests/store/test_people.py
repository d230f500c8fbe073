"""Workers who are paused or blocked."""

from __future__ import annotations

import pytest

pytest.importorskip(
    "sqlalchemy", reason="the server is not installed: pip install crowdtree[serve]"
)


from crowdtree.store import (
    ExpireLeases,
)
from crowdtree.store.replay.verify import verify
from storelab import ONE
from weblab import Lab


def test_paused_and_blocked_workers_get_nothing_and_their_answers_stay(app: Lab) -> None:
    number = app.campaign(ONE, example="table1", workers=8)
    worker = app.worker(number)
    worker.work("no")
    app.post(f"/api/campaigns/{number}/workers/{worker.id}/pause")
    assert worker.next() == {"task": None, "reason": "worker paused", "more": False}
    app.post(f"/api/campaigns/{number}/workers/{worker.id}/resume")
    assert worker.next()["reason"] == "wait"
    app.post(f"/api/campaigns/{number}/workers/{worker.id}/block")
    assert worker.call("next").status_code == 401
    assert len(app.get(f"/api/campaigns/{number}/answers").text.splitlines()) == 2


def test_what_a_blocked_worker_holds_is_free_for_others(app: Lab) -> None:
    number = app.campaign(items=ONE, settings={"price": 0.1, "budget": 0.1})
    bad, good = app.worker(number), app.worker(number)
    assert bad.next()["task"]
    assert good.next()["reason"] == "wait"
    app.post(f"/api/campaigns/{number}/workers/{bad.id}/block")
    app.store.ask(ExpireLeases())
    assert good.next()["task"]
    assert app.store.read(lambda c: verify(c, number))["differences"] == []
