"""Questions handed out to many workers in one batch: the same rules as one by one."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

import sqlalchemy as sa

import crowdtree as ct
from crowdtree.policies import AdaptivePolicy, PlanPolicy
from crowdtree.server.store import Next, Store, Submit, Transaction, tokens
from crowdtree.server.store.db import assignment
from crowdtree.server.store.db.tables import answers, budgets, credentials, labels, leases
from crowdtree.server.store.owner import campaigns, people
from crowdtree.server.store.queries.workers import listed_workers
from crowdtree.server.store.replay.verify import verify
from tests.short import settings_of

ITEMS = 12
WORKERS = 9


@pytest.fixture(params=["sqlite", "postgresql"], scope="module")
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path_factory.mktemp('together') / 'store.db'}"
    return request.getfixturevalue("postgres").migrated()


def policy(name: str) -> Any:
    problem = ct.example("table1")
    if name == "adaptive":
        return AdaptivePolicy(problem, target_error=0.05, max_answers=6, strict=False)
    return PlanPolicy(ct.staff(ct.design(problem), workers=8), "curtailed")


def filled(store: Store, made: Any, **settings: Any) -> tuple[int, list[str]]:
    now = store.clock()
    wish = settings_of(**settings)
    number = store.write(lambda c: campaigns.create(c, "x", made, wish, now))
    rows = [{"task": f"i{k}", "payload": "{}", "gold": 0 if k < 2 else None} for k in range(ITEMS)]
    store.write(lambda c: campaigns.add_items(c, number, rows))
    store.write(lambda c: campaigns.set_status(c, number, "running", now))
    dedicated = settings.get("one_question_per_worker", False)
    invited = [
        store.write(lambda c: people.invite(c, number, "", made, dedicated, now))[1]
        for _ in range(WORKERS)
    ]
    return number, [tokens.hashed(token) for token in invited]


def at_once(writer: Any, requests: list[Any]) -> list[Any]:
    """Put requests on a writer while it is held up, so that it serves them in one batch."""
    held, gate, done = threading.Event(), threading.Event(), threading.Semaphore(0)

    def hold(_: Any) -> None:
        held.set()
        gate.wait(30)

    writer.put(Transaction(hold))
    assert held.wait(30)
    for request in requests:
        request.done = done.release
        writer.put(request)
    gate.set()
    for request in requests:
        assert done.acquire(timeout=30)
        assert request.error is None, request.error
    return requests


def play(store: Store, hashes: list[str]) -> Counter[str]:
    """Let all ask at once and answer at once, until nobody gets anything."""
    seen: Counter[str] = Counter()
    for turn in range(300):
        asked = at_once(store.writer_of(Next), [Next(who) for who in hashes])
        seen.update(request.result["reason"] or "task" for request in asked)
        given = [
            Submit(
                r.token_hash, r.result["task"]["lease"], "answer", (turn + n) % 3 % 2, f"k{turn}"
            )
            for n, r in enumerate(asked)
            if r.result["task"] is not None
        ]
        if not given:
            return seen
        at_once(store.writer_of(Submit), given)
    raise AssertionError("it never ended")


CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "plan": ("plan", {}),
    "adaptive": ("adaptive", {"gold_rate": 0.2}),
    "one question an item": ("plan", {"one_question_per_item": True}),
    "budget": ("plan", {"price": 0.01, "budget": 0.3, "gold_rate": 0.2}),
    "one_question_per_worker": ("plan", {"one_question_per_worker": True}),
    "few answers a worker": ("plan", {"max_answers_per_worker": 4}),
}


@pytest.mark.parametrize("case", CASES)
def test_many_at_once_by_the_same_rules(
    url: str, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, settings = CASES[case]
    together: list[int] = []
    hand_out = assignment.hand_out

    def counted(*values: Any) -> Any:
        found = hand_out(*values)
        together.append(len(found))
        return found

    monkeypatch.setattr(assignment, "hand_out", counted)
    with Store(url, rng=1).opened() as store:
        number, hashes = filled(store, policy(name), **settings)
        seen = play(store, hashes)
        report = store.read(lambda c: verify(c, number))
        assert report["agrees"], report["differences"][:3]
        store.read(lambda c: check(c, number, settings))
    assert seen["task"] > ITEMS
    if not url.startswith("sqlite"):  # most were served together, and not one by one
        assert max(together) > 1
        assert sum(together) > seen["task"] / 2


def check(connection: Any, number: int, settings: dict[str, Any]) -> None:
    rows = connection.execute(
        sa.select(leases.c.worker_id, leases.c.item_id, leases.c.question, leases.c.state).where(
            leases.c.campaign_id == number
        )
    ).all()
    assert all(state in (1, 2) for *_, state in rows)  # all answered: nobody got two at once
    if settings.get("one_question_per_item"):
        assert len({row[:2] for row in rows}) == len(rows)
    asked = Counter(row[0] for row in rows)
    if "max_answers_per_worker" in settings:
        assert max(asked.values()) <= settings["max_answers_per_worker"]
    if settings.get("one_question_per_worker"):
        assert all(len({row[2] for row in rows if row[0] == worker}) == 1 for worker in asked)
    mine = answers.c.campaign_id == number
    if "budget" in settings:
        budget = connection.execute(sa.select(budgets).where(budgets.c.campaign_id == number)).one()
        spent = connection.execute(sa.select(sa.func.sum(answers.c.price)).where(mine)).scalar_one()
        assert (budget.spent, budget.reserved) == (spent, 0)
        assert spent == budget.cap  # all of it, and no more
    elif not settings or "gold_rate" in settings:
        count = sa.select(sa.func.count(labels.c.id)).where(labels.c.campaign_id == number)
        assert connection.execute(count).scalar_one() == ITEMS - 2
    fates = connection.execute(sa.select(answers.c.fate).where(mine)).scalars()
    assert set(fates) <= {"counted", "gold"}  # nothing was asked that could not matter


def test_a_tokens_owner_is_cached_but_not_its_validity(url: str) -> None:
    with Store(url).opened() as store:
        number, hashes = filled(store, policy("plan"))
        for _ in range(2):
            assert store.ask(Next(hashes[0]))["task"] is not None
        store.write(
            lambda c: tokens.revoke(c, store.clock(), credentials.c.token_hash == hashes[0])
        )
        with pytest.raises(ValueError, match="not valid"):
            store.ask(Next(hashes[0]))
        worker = store.read(lambda c: listed_workers(c, number, ct.example("table1"), 0))[1]
        assert store.ask(Next(hashes[1]))["task"] is not None
        store.write(
            lambda c: people.set_worker_status(c, number, worker["id"], "paused", store.clock())
        )
        assert store.ask(Next(hashes[1]))["reason"] == "worker paused"
