"""Items that nobody who is present can answer."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

pytest.importorskip(
    "sqlalchemy", reason="the server is not installed: pip install crowdtree[serve]"
)

import sqlalchemy as sa

import crowdtree as ct
from crowdtree.policies import AdaptivePolicy, PlanPolicy
from crowdtree.server.rules.runner import Runner
from crowdtree.server.rules.stalled_items import AWAY_SECONDS, TOO_FEW_PEOPLE_SECONDS, StalledItems
from crowdtree.server.rules.wrong_table import WrongTable
from crowdtree.server.store import (
    Next,
    Store,
    Submit,
    tokens,
)
from crowdtree.server.store.db.campaign_row import get_campaign
from crowdtree.server.store.db.tables import (
    labels,
    workers,
)
from crowdtree.server.store.owner import campaigns, people
from crowdtree.server.store.queries.progress import progress
from crowdtree.server.store.replay.verify import verify
from tests.short import settings_of
from tests.storelab import maintain
from tests.weblab import ALONE, Clock

PATIENCE = 3600.0


def policy(kind: str) -> Any:
    problem = ct.example("table1")
    if kind == "adaptive":
        return AdaptivePolicy(problem, target_error=0.0, max_answers=30, strict=False)
    return PlanPolicy(ct.staff(ct.design(problem), workers=8), kind)  # type: ignore[arg-type]


class Running:
    """A store with one campaign, a controllable clock, and workers who come and go."""

    def __init__(self, store: Store, clock: Clock, kind: str, n_items: int = 3, **settings: Any):
        self.store, self.clock, self.policy = store, clock, policy(kind)
        made = settings_of(close_stalled_after_seconds=PATIENCE, **ALONE | settings)
        self.number = store.write(lambda c: campaigns.create(c, "x", self.policy, made, clock()))
        rows = [{"task": f"i{k}", "payload": "{}", "gold": None} for k in range(n_items)]
        store.write(lambda c: campaigns.add_items(c, self.number, rows))
        store.write(lambda c: campaigns.set_status(c, self.number, "running", clock()))
        self.dedicated = made.tasks.one_question_per_worker
        self.stalled = Runner(store, [StalledItems])
        self.keys = itertools.count()

    def person(self) -> str:
        made = self.store.write(
            lambda c: people.invite(c, self.number, "", self.policy, self.dedicated, self.clock())
        )
        return tokens.hashed(made[1])

    def work(self, who: str, value: int = 1) -> str:
        """Answer whatever there is; returns why there is nothing more."""
        while True:
            found = self.store.ask(Next(who))
            if found["task"] is None:
                return str(found["reason"])
            lease = found["task"]["lease"]
            self.store.ask(Submit(who, lease, "answer", value, f"k{next(self.keys)}"))
            self.store.writer_of(Next).cache.scanned.clear()  # look again at once

    def look(self) -> int:
        """Run the check once; returns how many items it set aside."""
        self.store.write(lambda _: None)  # on SQLite a question is told before its commit
        before = len(self.labels())
        self.stalled.tick()
        return len(self.labels()) - before

    @property
    def waiting(self) -> int:
        facts = self.store.read(lambda c: progress(c, self.number, self.clock()))
        return int(facts["waiting_for_workers"])

    def verified(self) -> None:
        found = self.store.read(lambda c: verify(c, self.number))
        assert found["differences"] == []

    def labels(self) -> list[Any]:
        rows = sa.select(labels.c.reason, labels.c.label, labels.c.answers).order_by(labels.c.id)
        return list(self.store.read(lambda c: c.execute(rows).all()))


@pytest.mark.parametrize("kind", ["curtailed", "margin", "adaptive"])
def test_an_item_that_nobody_can_answer_waits_is_shown_and_gets_its_best_label(
    url: str, kind: str
) -> None:
    clock = Clock()
    with Store(url, clock=clock, rng=0).opened() as store:
        one = Running(store, clock, kind)
        assert one.look() == 0
        assert one.waiting == 0  # new items wait for nobody: the first to come gets them
        ann = one.person()
        # No is the answer that never leads to a leaf after one question.
        assert one.work(ann, 0) == ("all answered" if kind == "adaptive" else "wait")
        assert one.waiting == 0  # not looked yet
        assert one.look() == 0
        assert one.waiting == 3
        clock.now += PATIENCE - 1
        assert one.look() == 0
        clock.now += 1
        assert one.look() == 3
        assert one.waiting == 0
        found = one.labels()
        assert [row.reason for row in found] == ["everybody answered"] * 3
        assert all(row.label is not None and row.answers > 0 for row in found)
        one.verified()
        Runner(store, [WrongTable]).settle()  # the answers may still contradict the table
        maintain(store)
        assert store.read(lambda c: get_campaign(c, one.number)).status == "finished"


def test_an_item_that_too_few_people_have_seen_waits_for_a_week(url: str) -> None:
    clock = Clock()
    with Store(url, clock=clock, rng=0).opened() as store:
        one = Running(store, clock, "margin", people_per_item=2)
        one.work(one.person(), 0)
        one.look()
        clock.now += TOO_FEW_PEOPLE_SECONDS - 1
        assert one.look() == 0
        clock.now += 1
        assert one.look() == 3
        assert [row.reason for row in one.labels()] == ["no workers"] * 3
        one.verified()


def test_an_item_stops_waiting_when_an_eligible_worker_arrives(url: str) -> None:
    clock = Clock()
    with Store(url, clock=clock, rng=0).opened() as store:
        one = Running(store, clock, "margin")
        one.work(one.person())
        one.look()
        assert one.waiting == 3
        bob = one.person()  # here, and may answer
        one.look()
        assert one.waiting == 0
        clock.now += AWAY_SECONDS + 1  # and gone
        one.look()
        assert one.waiting == 3
        clock.now += PATIENCE - 10
        lease = store.ask(Next(bob))["task"]  # back in time: one is in their hands
        assert lease is not None
        one.look()
        assert one.waiting == 2
        clock.now += 11
        assert one.look() == 2
        assert store.ask(Submit(bob, lease["lease"], "answer", 1, "b"))["fate"] == "counted"
        one.verified()


@pytest.mark.parametrize("how", ["paused", "blocked", "enough"])
def test_people_who_may_not_answer_do_not_count(url: str, how: str) -> None:
    clock = Clock()
    with Store(url, clock=clock, rng=0).opened() as store:
        settings = {"max_answers_per_worker": 3} if how == "enough" else {}
        one = Running(store, clock, "curtailed", **settings)
        ann, bob = one.person(), one.person()
        one.work(ann)
        one.look()
        assert one.waiting == 0
        if how == "enough":
            more = workers.update().where(workers.c.id == 2).values(answers=3)
            store.write(lambda c: c.execute(more))
        else:
            store.write(
                lambda c: people.set_worker_status(c, one.number, 2, how, clock())  # type: ignore[arg-type]
            )
        one.look()
        assert one.waiting == 3
        assert bob


def test_a_question_without_its_dedicated_worker_waits(url: str) -> None:
    clock = Clock()
    with Store(url, clock=clock, rng=0).opened() as store:
        one = Running(store, clock, "none", one_question_per_worker=True)
        for _ in range(3):
            one.work(one.person(), 0)
        one.look()
        assert one.waiting == 3


def test_time_while_paused_or_stopped_does_not_count(url: str) -> None:
    clock = Clock()
    with Store(url, clock=clock, rng=0).opened() as store:
        one = Running(store, clock, "margin")
        one.work(one.person())
        one.look()
        store.write(lambda c: campaigns.set_status(c, one.number, "paused", clock()))
        assert one.waiting == 0
        clock.now += 10 * PATIENCE
        store.write(lambda c: campaigns.set_status(c, one.number, "running", clock()))
        assert one.look() == 0
        assert one.waiting == 3
        clock.now += 10 * PATIENCE
        one.stalled = Runner(store, [StalledItems])  # the server was off: nobody could have come
        assert one.look() == 0
        clock.now += AWAY_SECONDS
        assert one.look() == 3


def test_without_a_limit_items_wait_forever(url: str) -> None:
    clock = Clock()
    with Store(url, clock=clock, rng=0).opened() as store:
        one = Running(store, clock, "margin")
        store.write(
            lambda c: campaigns.change_settings(
                c, one.number, one.policy, {"labels.close_stalled_after_seconds": None}, clock()
            )
        )
        one.work(one.person())
        one.look()
        clock.now += 1e9
        assert one.look() == 0
        assert one.waiting == 3
