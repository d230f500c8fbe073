"""Answers and skips: leases, keys and money."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest.importorskip(
    "sqlalchemy", reason="the server is not installed: pip install crowdtree[serve]"
)

import sqlalchemy as sa

from crowdtree.server.store import ExpireLeases, Next, Refused, Store, Submit
from crowdtree.server.store.db.campaign_row import add_to_tallies, flows, tally
from crowdtree.server.store.db.tables import (
    answers,
    workers,
)
from crowdtree.server.store.replay.verify import verify
from tests.storelab import ONE, Small, filled, spent
from tests.weblab import Lab


def test_a_lost_lease_is_gone_and_not_somebody_elses(url: str) -> None:
    with Store(url).opened() as store:
        _, hashes = filled(store)
        lease = store.ask(Next(hashes[0]))["task"]["lease"]
        number = lease.partition(".")[0]
        for forged in (f"{number}.0000", f"{number}.", "999.abc", lease + "0"):
            with pytest.raises(Refused, match="not open"):
                store.ask(Submit(hashes[0], forged, "answer", 1, "k"))
        with pytest.raises(Refused, match="not open"):
            store.ask(Submit(hashes[1], lease, "answer", 1, "k"))
        assert store.ask(Submit(hashes[0], lease, "answer", 1, "k"))["fate"] == "counted"


def test_a_question_is_answered_once(url: str) -> None:
    """The same key gets the first result; another is refused."""
    with Store(url).opened() as store:
        number, hashes = filled(store)
        who = hashes[0]
        lease = store.ask(Next(who))["task"]["lease"]
        for value in (1, 0):
            assert store.ask(Submit(who, lease, "answer", value, "k"))["fate"] == "counted"
        for kind, value in (("answer", 0), ("skip", None)):
            with pytest.raises(Refused, match="answered already"):
                store.ask(Submit(who, lease, kind, value, "other"))  # type: ignore[arg-type]
        assert store.read(lambda c: c.execute(sa.select(answers.c.value)).scalars().all()) == [1]
        assert store.read(lambda c: verify(c, number))["differences"] == []


def test_an_overdue_answer_that_cannot_be_paid_is_kept_unpaid(app: Lab) -> None:
    number = app.campaign(settings={"price": 0.1, "budget": 0.1})
    slow, fast = app.worker(number), app.worker(number)
    lease = slow.next()["task"]["lease"]
    app.clock.now += 601
    app.store.ask(ExpireLeases())
    assert fast.work()["fate"] == "counted"
    assert slow.answer(lease).json()["fate"] == "over budget"
    assert spent(app, number) == 0.1
    assert app.store.read(lambda c: verify(c, number))["differences"] == []


def test_moves_in_the_tree_are_counted(small: Callable[..., Small]) -> None:
    lab = small(rows=1)
    lab.start()
    lab.answer(lab.worker(), 0)
    counts = lab.store.read(lambda c: tally(c, lab.number))
    assert flows(counts, 0) == {"0": {"in": 1, "out": 1}, "1": {"in": 1, "out": 0}}
    assert lab.store.read(lambda c: verify(c, lab.number))["differences"] == []
    more = dict.fromkeys(["in:0", "out:0", "in:1", "out:1"], 1)
    lab.store.write(lambda c: add_to_tallies(c, lab.number, more))
    found = lab.store.read(lambda c: verify(c, lab.number))["differences"]
    assert len(found) == 2


def test_skips_cost_nothing(app: Lab) -> None:
    number = app.campaign(settings={"price": 0.1, "budget": 1.0})
    worker = app.worker(number)
    worker.call("skip", lease=worker.next()["task"]["lease"], key="s")
    assert spent(app, number) == 0
    worker.work()
    assert spent(app, number) == 0.1
    assert app.store.read(lambda c: verify(c, number))["differences"] == []


def test_a_late_answer_is_paid_only_in_time(app: Lab) -> None:
    """Surplus and late answers are paid if their lease had not expired."""
    number = app.campaign(ONE, example="table1", workers=0, settings={"price": 0.1})
    quick, slow = app.worker(number), app.worker(number)
    lease = slow.next()["task"]["lease"]
    app.clock.now += 601
    app.store.ask(ExpireLeases())
    assert quick.work("yes")["fate"] == "counted"
    assert slow.answer(lease).json() == {"fate": "late", "late": True}
    assert spent(app, number) == 0.1
    assert app.store.read(lambda c: verify(c, number))["differences"] == []


def test_a_workers_skill_affects_the_label(app: Lab) -> None:
    """The skill at the time is stored with the answer and moves the stated error."""
    errors = []
    for skill in (-1.0, 0.0, 2.0):
        number = app.campaign(ONE, example="table1", workers=0)
        worker = app.worker(number)
        known = workers.update().where(workers.c.id == worker.id).values(used_skill=skill)
        app.store.write(lambda c, s=known: c.execute(s))
        worker.work("yes")
        row = app.get(f"/api/campaigns/{number}/labels?format=jsonl").json()
        errors.append(row["posterior_error"])
        assert app.store.read(lambda c, n=number: verify(c, n))["differences"] == []
    assert errors == sorted(errors, reverse=True)
    assert errors[0] > 1.5 * errors[1] > 3 * errors[2]


def test_a_leased_answer_is_paid_even_if_another_worker_was_faster(app: Lab) -> None:
    number = app.campaign(ONE, example="table1", workers=0, settings={"price": 0.1, "budget": 1.0})
    slow, other = app.worker(number), app.worker(number)
    lease = slow.next()["task"]["lease"]
    app.clock.now += 601
    app.store.ask(ExpireLeases())
    again = other.next()["task"]["lease"]
    assert slow.answer(lease, "no").json() == {"fate": "counted", "late": True}
    assert spent(app, number) == pytest.approx(0.1)
    assert app.store.read(lambda c: verify(c, number))["differences"] == []
    assert other.next()["task"]["lease"] != again  # nobody needs that one any more
    assert other.answer(again, "no").json() == {"fate": "surplus", "late": False}
    assert spent(app, number) == pytest.approx(0.2)
    assert app.store.read(lambda c: verify(c, number))["differences"] == []


def test_leased_questions_count_when_an_answer_arrives(app: Lab) -> None:
    """An answer opens no question beyond those that are out and may decide the vote."""
    number = app.campaign(ONE, example="table1", workers=8)
    out = []
    while task := (worker := app.worker(number)).next()["task"]:
        out.append((worker, task["lease"]))
    assert len(out) > 1
    worker, lease = out.pop()
    assert worker.answer(lease, "no").json()["fate"] == "counted"
    assert app.worker(number).next()["reason"] == "wait"
    assert app.store.read(lambda c: verify(c, number))["differences"] == []
