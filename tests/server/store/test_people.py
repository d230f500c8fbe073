"""Workers who are paused or blocked."""

from __future__ import annotations

import pytest

pytest.importorskip(
    "sqlalchemy", reason="the server is not installed: pip install crowdtree[serve]"
)


from crowdtree.server.store import ExpireLeases
from crowdtree.server.store.replay.verify import verify
from tests.storelab import ONE, maintain
from tests.weblab import Lab


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


@pytest.mark.parametrize("how", ["pause", "block"])
def test_what_a_paused_or_blocked_worker_holds_is_free_for_others(app: Lab, how: str) -> None:
    number = app.campaign(items=ONE, settings={"price": 0.1, "budget": 0.1})
    bad, good = app.worker(number), app.worker(number)
    assert bad.next()["task"]
    assert good.next()["reason"] == "wait"
    app.post(f"/api/campaigns/{number}/workers/{bad.id}/{how}")
    app.store.ask(ExpireLeases())
    assert good.next()["task"]
    assert app.store.read(lambda c: verify(c, number))["differences"] == []


def test_an_answer_that_was_on_its_way_when_its_worker_was_paused_counts(app: Lab) -> None:
    number = app.campaign(items=ONE, settings={"price": 0.1, "budget": 1.0})
    worker = app.worker(number)
    lease = worker.next()["task"]["lease"]
    app.post(f"/api/campaigns/{number}/workers/{worker.id}/pause")
    app.store.ask(ExpireLeases())
    assert worker.answer(lease, "no").json() == {"fate": "counted", "late": True}
    assert app.store.read(lambda c: verify(c, number))["differences"] == []


def test_what_an_unreliable_worker_holds_is_free_for_others(app: Lab) -> None:
    items = "task,text,gold\na,one,\ng,gold,c4\n"
    settings = {"gold_first": 1, "pause_below": 0.94, "pause_after_checks": 1}
    number = app.campaign(items, example="table1", workers=8, settings=settings)
    bad, good = app.worker(number), app.worker(number)
    bad.work("no")
    assert bad.next()["task"]
    maintain(app.store)
    assert app.store.ask(ExpireLeases()) == 1
    good.work("yes")
    assert good.next()["task"]
