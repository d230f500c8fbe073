"""Which question a worker gets, and why there is none."""

from __future__ import annotations

import pytest

pytest.importorskip(
    "sqlalchemy", reason="the server is not installed: pip install crowdtree[serve]"
)

import sqlalchemy as sa

import crowdtree as ct
from crowdtree.policies import PlanPolicy
from crowdtree.server.store import (
    ExpireLeases,
)
from crowdtree.server.store.db.tables import (
    workers,
)
from tests.storelab import ONE
from tests.weblab import Lab


def test_a_worker_gets_the_reason_for_no_question(app: Lab) -> None:
    number = app.campaign(ONE, example="table1", workers=8)
    ann, bob = app.worker(number), app.worker(number)
    ann.work("no")
    assert ann.next()["reason"] == "wait"  # others answer first, then comes the next question
    settings = {"one_question_per_item": True, "completion_code": "C0DE"}
    number = app.campaign(ONE, example="table1", workers=8, settings=settings)
    ann, bob = app.worker(number), app.worker(number)
    ann.work("no")
    found = ann.next()
    assert found["reason"] == "all answered"
    assert found["end"]["completion_code"] == "C0DE"
    assert bob.next()["task"]
    app.post(f"/api/campaigns/{number}/finish")
    assert ann.next()["reason"] == "finished"


def test_a_skipped_question_is_not_offered_again(app: Lab) -> None:
    number = app.campaign(ONE, settings={"one_question_per_item": True})
    worker = app.worker(number)
    worker.call("skip", lease=worker.next()["task"]["lease"], key="s")
    assert worker.next()["reason"] == "all answered"


def test_leased_questions_count_against_the_budget(app: Lab) -> None:
    number = app.campaign(settings={"price": 0.1, "budget": 0.25})
    workers = [app.worker(number) for _ in range(3)]
    assert [worker.next()["task"] is not None for worker in workers] == [True, True, False]
    found = workers[2].next()
    assert (found["reason"], found["more"]) == ("wait", True)
    app.clock.now += 601
    app.store.ask(ExpireLeases())  # nobody answered: their price is free again
    for _ in range(2):
        workers[2].work()
    assert workers[2].next()["reason"] == "budget"  # all of it is spent


def gold_share(app: Lab, rate: float, turns: int = 100) -> int:
    items = "task,text,gold\n" + "".join(f"i{k},x,\n" for k in range(turns))
    items += "".join(f"g{k},x,c4\n" for k in range(turns))
    settings = {"gold_rate": rate, "show_item_names": True}
    number = app.campaign(items, example="table1", workers=8, settings=settings)
    worker = app.worker(number)
    asked = []
    for _ in range(turns):
        task = worker.next()["task"]
        asked.append(task["item"]["task"])
        worker.answer(task["lease"])
    return sum(name.startswith("g") for name in asked)


def test_gold_comes_at_its_rate(app: Lab) -> None:
    """Four standard deviations around the chosen share; with a seed, so it is always the same."""
    assert gold_share(app, 0.0) == 0
    found = gold_share(app, 0.3)
    assert abs(found - 30) < 4 * (100 * 0.3 * 0.7) ** 0.5
    assert gold_share(app, 1.0) > 80  # not all: few are left that this worker has not seen


def test_gold_is_not_given_where_there_is_nothing_else(app: Lab) -> None:
    items = "task,text,gold\na,x,\n" + "".join(f"g{k},x,c4\n" for k in range(50))
    number = app.campaign(items, settings={"gold_rate": 0.5, "one_question_per_item": True})
    worker = app.worker(number)
    while (found := worker.next())["task"]:
        worker.answer(found["task"]["lease"])
    assert found["reason"] == "all answered"
    assert all(worker.next()["task"] is None for _ in range(20))


def test_the_previous_question_is_preferred_to_an_older_one(app: Lab) -> None:
    number = app.campaign("task\na\nb\n", example="table1", workers=8)
    policy = PlanPolicy(ct.staff(ct.design(ct.example("table1")), workers=8))
    bob, eve, dan = (app.worker(number) for _ in range(3))
    for _ in range(int(policy.plan.votes[0]) // 2):
        app.worker(number).work("no")
    lease = bob.next()["task"]["lease"]
    other = eve.next()["task"]  # opens b: its first question waits, and is the older row
    assert other["item"]["task"] == "b"
    bob.answer(lease, "no")  # a goes on to another question
    root = other["question"]["name"]
    mine = sa.select(workers.c.last_question).where(workers.c.id == dan.id)
    before = app.store.read(lambda c: c.execute(mine).scalar_one())
    assert ct.example("table1").questions[before] == root  # who is new begins where all begin
    assert dan.next()["task"]["question"]["name"] == root
    zoe = app.worker(number)
    second = int(policy.plan.tree.question[policy.plan.tree.children[0, 0]])
    change_last = workers.update().where(workers.c.id == zoe.id).values(last_question=second)
    app.store.write(lambda c: c.execute(change_last))
    task = zoe.next()["task"]
    assert (task["item"]["task"], task["question"]["name"]) == (
        "a",
        ct.example("table1").questions[second],
    )
