"""What follows from a worker's record, on both databases: skips, leases, accepted answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip(
    "sqlalchemy", reason="the server is not installed: pip install crowdtree[serve]"
)

import sqlalchemy as sa

from crowdtree.server.store import ExpireLeases, Next, Store, Submit
from crowdtree.server.store.db.tables import answers, labels, leases, workers
from crowdtree.server.store.replay.verify import verify
from crowdtree.server.store.serving.answering import FULL_RECORD, skip_weight
from tests.storelab import filled

KNOWN = sa.select(workers.c.id).where(workers.c.answers > 0)


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with Store(url, rng=0).opened() as made:
        yield made


def differences(store: Store, number: int) -> list[str]:
    return store.read(lambda c: verify(c, number))["differences"]


def test_a_skip_weighs_by_the_record() -> None:
    assert skip_weight(0, 0) == skip_weight(0, 100) == 0
    assert skip_weight(FULL_RECORD, 0) == 1
    assert skip_weight(5, 100) < 0.05
    assert skip_weight(1000, 10) == 1  # no more than that, whatever the record


def test_weights_are_in_the_log_and_replayed(store: Store) -> None:
    number, hashes = filled(store, 14, max_skips=2)
    for turn in range(FULL_RECORD + 1):
        for who in hashes[:2]:
            task = store.ask(Next(who))["task"]
            if task is not None:
                store.ask(Submit(who, task["lease"], "answer", 0, f"a{turn}"))
    for turn in range(12):
        for who in hashes:
            task = store.ask(Next(who))["task"]
            if task is not None:
                store.ask(Submit(who, task["lease"], "skip", None, f"s{turn}"))
    skips = sa.select(answers.c.weight, answers.c.worker_id).where(answers.c.kind == "skip")
    found = store.read(lambda c: c.execute(skips).all())
    known = set(store.read(lambda c: c.execute(KNOWN).scalars().all()))
    assert max(row.weight for row in found if row.worker_id in known) == 1.0
    assert {row.weight for row in found if row.worker_id not in known} == {0.0}
    aside = sa.select(sa.func.count()).where(labels.c.reason == "skipped")
    assert store.read(lambda c: c.execute(aside).scalar_one()) > 0
    assert differences(store, number) == []
    # a forged weight changes what was set aside
    store.write(lambda c: c.execute(answers.update().values(weight=1.0)))
    assert differences(store, number)


def test_leases_of_the_idle_are_taken_back_when_somebody_waits(store: Store) -> None:
    number, hashes = filled(store, 50, price=0.1, budget=0.8)
    for who in hashes[:8]:
        assert store.ask(Next(who))["task"]
    aged = leases.update().values(given_at=leases.c.given_at - 61)
    store.write(lambda c: c.execute(aged))
    found = store.ask(Next(hashes[8]))
    assert (found["reason"], found["more"]) == ("wait", True)
    assert store.ask(ExpireLeases()) == 8
    lapses = sa.select(workers.c.lapses).where(workers.c.lapses > 0)
    assert store.read(lambda c: c.execute(lapses).scalars().all()) == [1] * 8
    task = store.ask(Next(hashes[8]))["task"]
    store.ask(Submit(hashes[8], task["lease"], "answer", 1, "k"))
    shorter = store.ask(Next(hashes[0]))["task"]
    assert shorter["seconds"] == 300
    store.ask(Submit(hashes[0], shorter["lease"], "answer", 1, "k"))
    assert store.read(lambda c: c.execute(lapses).scalars().all()) == [1] * 7
    assert differences(store, number) == []


def test_accepted_answers_are_those_that_are_paid(store: Store) -> None:
    number, hashes = filled(store, 3, price=0.1)
    ann, ben = hashes[:2]
    first = store.ask(Next(ann))["task"]["lease"]
    store.ask(Submit(ann, first, "answer", 1, "a"))
    mine = sa.select(workers.c.accepted).order_by(workers.c.id).limit(2)

    def accepted() -> Any:
        return store.read(lambda c: c.execute(mine).scalars().all())

    lease = store.ask(Next(ben))["task"]["lease"]
    store.ask(Submit(ben, lease, "skip", None, "s"))
    assert accepted() == [1, 0]
    assert differences(store, number) == []
    store.write(lambda c: c.execute(workers.update().values(accepted=9)))
    assert any("accepted is 9" in text for text in differences(store, number))
