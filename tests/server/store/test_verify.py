"""Verify finds every kind of tampering, for every policy, and has no false alarms."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

import sqlalchemy as sa

import crowdtree as ct
from crowdtree.core.calibration import Calibration
from crowdtree.policies import AdaptivePolicy, PlanPolicy
from crowdtree.server.store import ExpireLeases, Next, Store, Submit, tokens
from crowdtree.server.store.db.tables import (
    activity,
    answers,
    budgets,
    items,
    judgements,
    labels,
    leases,
    open_questions,
    tallies,
    workers,
)
from crowdtree.server.store.owner import campaigns, people
from crowdtree.server.store.replay.histories import Page
from crowdtree.server.store.replay.verify import verify
from tests.short import settings_of
from tests.storelab import filled, maintain, work
from tests.weblab import Clock

KINDS = (
    *("curtailed", "calibrated"),
    *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("none", "margin", "adaptive")),
)


def policy(kind: str) -> Any:
    problem = ct.example("table1")
    if kind == "adaptive":
        return AdaptivePolicy(problem, target_error=0.03, max_answers=9, strict=False)
    if kind == "calibrated":
        discount = Calibration(0.9, 0.5)
        return AdaptivePolicy(problem, 0.03, 9, strict=False, calibration=discount)
    if kind == "referring":
        problem = problem.replace(loss={"never": [["c1", "c4"]], "refer": 0.5})
        return AdaptivePolicy(problem, target_loss=0.01, max_answers=3, strict=False)
    return PlanPolicy(ct.staff(ct.design(problem), workers=8), kind)  # type: ignore[arg-type]


def both_ways(connection: Any, number: int, played: Any) -> list[str]:
    """Differences that verify finds; for a plan the same if it replays one item at a time."""
    found = verify(connection, number)
    if isinstance(played, PlanPolicy):
        assert found == verify(connection, number, together=False)
    return found["differences"]


class Played:
    """A campaign in which everything has happened: gold, skips, late and surplus answers."""

    def __init__(self, path: Path, kind: str) -> None:
        self.clock = Clock()
        self.store = Store(f"sqlite:///{path}", clock=self.clock, rng=1)
        self.policy = policy(kind)
        settings = settings_of(gold_rate=0.2, price=0.01, budget=100.0, max_skips=2)
        self.number = self.write(
            lambda c: campaigns.create(c, "x", self.policy, settings, self.clock())
        )
        other = self.write(lambda c: campaigns.create(c, "y", self.policy, settings, self.clock()))
        rows = [{"task": f"i{k}", "payload": "{}", "gold": 3 if k < 4 else None} for k in range(24)]
        for number in (self.number, other):
            self.write(lambda c, n=number: campaigns.add_items(c, n, rows))
            self.write(lambda c, n=number: campaigns.set_status(c, n, "running", self.clock()))
        self.workers = [self.invited(self.number) for _ in range(9)]
        self.invited(self.number)  # number 10, who does nothing
        self.invited(other)  # number 11
        self.keys = itertools.count()
        self.play()

    def write(self, function: Any) -> Any:
        return self.store.write(function)

    def invited(self, number: int) -> str:
        made = self.write(lambda c: people.invite(c, number, "", self.policy, False, self.clock()))
        return tokens.hashed(made[1])

    def submit(self, who: str, lease: str, kind: Any, value: int | None) -> Any:
        return self.store.ask(Submit(who, lease, kind, value, f"k{next(self.keys)}"))

    def play(self) -> None:
        """Answer about half of the items, then stop in the middle of everything."""
        slow = self.store.ask(Next(self.workers[0]))["task"]["lease"]
        self.clock.now += 700
        self.store.ask(ExpireLeases())
        for turn in range(12):
            for place, who in enumerate(self.workers[1:]):
                task = self.store.ask(Next(who))["task"]
                if task is None:
                    continue
                kind = "skip" if (turn + place) % 11 == 0 else "answer"
                value = None if kind == "skip" else int((turn * place) % 3 > 0)
                self.clock.now += 1
                self.submit(who, task["lease"], kind, value)
        self.submit(self.workers[0], slow, "answer", 1)
        for who in self.workers[:4]:
            self.store.ask(Next(who))
        self.clock.now += 700
        self.store.ask(ExpireLeases())
        self.store.ask(Next(self.workers[0]))
        maintain(self.store)

    def differences(self) -> list[str]:
        return self.store.read(lambda c: both_ways(c, self.number, self.policy))

    def one(self, table: Any, *where: Any) -> int:
        """Number of the first row of this campaign that fits."""
        key = next(iter(table.primary_key))
        found = sa.select(key).where(table.c.campaign_id == self.number, *where).order_by(key)
        return int(self.store.read(lambda c: c.execute(found.limit(1)).scalar_one()))

    def tampered(self, statements: list[Any]) -> list[str]:
        """Output of verify after a change of the database, which is reverted afterwards."""
        plain = sa.create_engine(self.store.engine.url)  # does not check references
        with plain.connect() as connection:
            changed = [connection.execute(statement).rowcount for statement in statements]
            assert all(count > 0 for count in changed)
            found = both_ways(connection, self.number, self.policy)
            connection.rollback()
        plain.dispose()
        return found


@pytest.fixture(params=KINDS)
def played(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Played]:
    made = Played(tmp_path / "x.db", request.param)
    with made.store.opened():
        yield made


def copied(game: Played, table: Any, number: int, **changes: Any) -> Any:
    row = game.store.read(
        lambda c: c.execute(sa.select(table).where(table.c.id == number)).one()._mapping
    )
    return table.insert().values(**{**{name: row[name] for name in row if name != "id"}, **changes})


def tamperings(game: Played) -> Iterator[tuple[str, list[Any]]]:
    """Every kind of change that must be detected, one after the other."""
    counted = game.one(answers, answers.c.fate == "counted")
    gold = game.one(answers, answers.c.fate == "gold", answers.c.kind == "answer")
    skipped = game.one(answers, answers.c.fate == "skipped")
    label = game.one(labels)
    done = game.one(leases, leases.c.state == 1)
    live = game.one(leases, leases.c.state == 0)
    on = answers.c.id == counted
    flip = answers.update().values(value=1 - answers.c.value)

    def line(place: int, **values: Any) -> Any:
        return answers.update().where(answers.c.id == place).values(**values)

    for what, place in (("counted", counted), ("gold", gold), ("skip", skipped)):
        yield f"{what} line deleted", [answers.delete().where(answers.c.id == place)]
    yield "answer turned", [flip.where(on)]
    yield "gold answer turned", [flip.where(answers.c.id == gold)]
    yield "question changed", [line(counted, question=answers.c.question + 1)]
    yield "worker changed", [line(counted, worker_id=answers.c.worker_id + 1)]
    yield "item changed", [line(counted, item_id=answers.c.item_id + 1)]
    yield "campaign changed", [line(counted, campaign_id=2)]
    yield "lease changed", [line(counted, lease_id=10_000)]
    yield "fate changed", [line(counted, fate="surplus")]
    yield "fate hidden", [line(counted, fate="over budget")]
    yield "skill changed", [line(counted, skill=1.0)]
    yield "price changed", [line(counted, price=answers.c.price + 1)]
    yield "kind changed", [line(skipped, kind="answer", value=1, fate="surplus")]
    here = labels.c.id == label
    for name, value in (
        ("label", (labels.c.label + 1) % 4),
        ("posterior_error", labels.c.posterior_error * 1.0001),
        ("reason", "finished"),
        ("answers", labels.c.answers + 1),
        ("path", "[]"),
        ("campaign_id", 2),
    ):
        yield f"label's {name} changed", [labels.update().where(here).values({name: value})]
    yield "label deleted", [labels.delete().where(here)]
    new = game.one(items, items.c.status == 0)
    yield "label invented", [copied(game, labels, label, item_id=new)]
    yield (
        "label and status invented",
        [
            copied(game, labels, label, item_id=new, reason="never asked"),
            items.update().where(items.c.id == new).values(status=3),
        ],
    )
    opened = game.one(items, items.c.status == 1)
    yield "open item closed", [items.update().where(items.c.id == opened).values(status=2)]
    yield "item made gold", [items.update().where(items.c.id == opened).values(gold=1)]
    yield "state changed", [items.update().where(items.c.id == opened).values(state='{"node": 9}')]
    yield (
        "open question lost",
        [open_questions.delete().where(open_questions.c.campaign_id == game.number)],
    )
    yield (
        "open question added",
        [
            open_questions.insert().values(
                campaign_id=game.number, item_id=new, question=0, needed=1
            )
        ],
    )
    more = open_questions.update().where(open_questions.c.id == game.one(open_questions))
    yield "quota raised", [more.values(needed=open_questions.c.needed + 1)]
    yield "open question moved", [more.values(campaign_id=2)]
    yield "lease too many", [copied(game, leases, live, worker_id=10, nonce="x", question=4)]
    yield (
        "lease too many on the same question",
        [copied(game, leases, live, worker_id=10, nonce="x")],
    )
    yield "lease orphaned", [leases.update().where(leases.c.id == live).values(item_id=10_000)]
    yield "lease of a stranger", [leases.update().where(leases.c.id == live).values(worker_id=11)]
    yield "lease opened again", [leases.update().where(leases.c.id == done).values(state=0)]
    for name in ("answers", "skips", "overdue", "earned", "gold_right", "judged"):
        change = {name: workers.c[name] + 1}
        yield f"worker's {name}", [workers.update().where(workers.c.id == 3).values(change)]
    for name in ("spent", "labelled", "open", "fate:counted", "asked:0", "taken", "error_nanos"):
        where = (tallies.c.campaign_id == game.number, tallies.c.name == name)
        yield f"tally {name}", [tallies.update().where(*where).values(value=tallies.c.value + 7)]
    if isinstance(game.policy, PlanPolicy):
        for names in (["in:0"], ["out:0"], ["in:1"], ["in:1", "out:1"], ["in:-1", "out:-1"]):
            where = (tallies.c.campaign_id == game.number, tallies.c.name.in_(names))
            change = tallies.update().where(*where).values(value=tallies.c.value + 99)
            yield f"tallies {names}", [change]
    mine = budgets.c.campaign_id == game.number
    yield "budget spent", [budgets.update().where(mine).values(spent=budgets.c.spent - 1)]
    yield "budget reserved", [budgets.update().where(mine).values(reserved=0)]
    yield (
        "judgement on nobody",
        [judgements.insert().values(worker_id=999, question=0, value=1, cls=0)],
    )


def test_verify_finds_every_kind_of_tampering(played: Played) -> None:
    assert played.differences() == []
    found = {what: played.tampered(changes) for what, changes in list(tamperings(played))}
    assert len(found) > 50
    assert [what for what, differences in found.items() if not differences] == []
    assert played.differences() == []


def test_a_finish_must_have_been_requested(tmp_path: Path) -> None:
    game = Played(tmp_path / "x.db", "margin")
    with game.store.opened():
        game.write(lambda c: campaigns.set_status(c, game.number, "finishing", game.clock()))
        maintain(game.store)
        assert game.differences() == []
        reasons = set(
            game.store.read(lambda c: c.execute(sa.select(labels.c.reason)).scalars().all())
        )
        assert {"finished", "never asked"} <= reasons
        found = game.tampered([activity.delete().where(activity.c.action == "finish")])
        assert "finish that is not in the activity log" in found[0]


@pytest.mark.parametrize(
    ("kind", "reason"), [("calibrated", "undecided"), ("referring", "referred")]
)
def test_undecided_items_are_counted(tmp_path: Path, kind: str, reason: str) -> None:
    from crowdtree.server.store.queries.progress import progress

    game = Played(tmp_path / "undecided.db", kind)
    try:
        assert game.differences() == []
        found = game.write(lambda c: progress(c, game.number, game.clock()))
        with game.store.engine.connect() as connection:
            rows = connection.execute(
                sa.select(labels.c.reason).where(labels.c.campaign_id == game.number)
            )
            reasons = [row.reason for row in rows]
        assert found["undecided"] == reasons.count(reason) > 0
    finally:
        game.store.close()


# ------------------------------------------------------------------------------ a finished campaign

TAMPERED = {
    "label": lambda: labels.update().where(labels.c.id == 1).values(label=0),
    "error": lambda: labels.update().where(labels.c.id == 1).values(posterior_error=0.9),
    "reason": lambda: labels.update().where(labels.c.id == 1).values(reason="budget"),
    "no label": lambda: labels.delete().where(labels.c.id == 1),
    "answer lost": lambda: answers.delete().where(answers.c.id == 3),
    "answer turned": lambda: answers.update().where(answers.c.id == 3).values(value=1),
    "fate": lambda: answers.update().where(answers.c.id == 3).values(fate="surplus"),
    "skill": lambda: answers.update().where(answers.c.id == 3).values(skill=2.0),
    "state": lambda: items.update().where(items.c.id == 1).values(state='{"node": 9}'),
    "open": lambda: open_questions.insert().values(campaign_id=1, item_id=1, question=0, needed=1),
}


def test_verify_finds_what_was_tampered_with(tmp_path: Path) -> None:
    with Store(f"sqlite:///{tmp_path / 'x.db'}").opened() as store:
        number, hashes = filled(store, 5)
        work(store, hashes)
        assert store.read(lambda c: verify(c, number))["agrees"]
        for what, change in TAMPERED.items():
            with store.engine.connect() as connection:
                assert connection.execute(change()).rowcount == 1, what
                assert not verify(connection, number)["agrees"], what
                connection.rollback()
        assert store.read(lambda c: verify(c, number))["agrees"]


def test_items_with_the_same_history_are_folded_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store(f"sqlite:///{tmp_path / 'x.db'}").opened() as store:
        number, hashes = filled(store, 25)
        work(store, hashes)
        singly: list[Any] = []
        read = Page.stored
        monkeypatch.setattr(Page, "stored", lambda *given: singly.extend(given[2]) or read(*given))
        told: list[tuple[int, int]] = []
        found = store.read(lambda c: verify(c, number, lambda *done: told.append(done)))
        assert (found["agrees"], found["items"], found["labelled"]) == (True, 25, 25)
        paths = store.read(lambda c: c.execute(sa.select(labels.c.path)).scalars().all())
        assert len(set(paths)) <= len(singly) < 25
        assert told == [(25, 25)]


def test_a_damaged_file_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with Store(f"sqlite:///{path}").opened() as store:
        number, _ = filled(store, 200)
    page = 4096
    content = bytearray(path.read_bytes())
    for place in range(8 * page, len(content), 3 * page):
        content[place : place + 200] = bytes(200)
    path.write_bytes(content)
    engine = sa.create_engine(f"sqlite:///{path}")
    with engine.connect() as connection:
        found = verify(connection, number)
    engine.dispose()
    assert not found["agrees"]
    assert found["differences"][0].startswith("database file: ")
