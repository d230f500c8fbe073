"""A revised campaign: every item is the replay of its answers under the policy of its revision."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

import numpy as np
import sqlalchemy as sa

import crowdtree as ct
from crowdtree.campaign.view import carried_skill
from crowdtree.core.errors import CrowdtreeError
from crowdtree.policies import AdaptivePolicy, PlanPolicy
from crowdtree.server.rules import revised_items
from crowdtree.server.rules.runner import Runner
from crowdtree.server.rules.stalled_items import StalledItems
from crowdtree.server.rules.wrong_table import WrongTable
from crowdtree.server.store import ExpireLeases, Next, Refused, Store, Submit, tokens
from crowdtree.server.store.db import statements as sql
from crowdtree.server.store.db.activity import list_activity
from crowdtree.server.store.db.sql import fetch
from crowdtree.server.store.db.tables import (
    answers,
    campaigns,
    items,
    labels,
    leases,
    monitors,
    open_questions,
    revisions,
    webhooks,
    withdrawals,
    workers,
)
from crowdtree.server.store.owner import campaigns as owner
from crowdtree.server.store.owner import people
from crowdtree.server.store.owner.revisions import revise
from crowdtree.server.store.queries.export import label_rows
from crowdtree.server.store.queries.progress import list_revisions
from crowdtree.server.store.reliability import level_of
from crowdtree.server.store.replay.verify import verify
from crowdtree.server.store.serving.campaign import ServingCache
from crowdtree.server.store.serving.item import ServedCampaign
from crowdtree.server.store.serving.unit_of_work import UnitOfWork
from crowdtree.server.store.types import LeaseState
from tests.short import settings_of
from tests.storelab import MAINTENANCE, games
from tests.weblab import ALONE, Clock, delivered

TABLE = ct.example("table1")
WORSE = TABLE.replace(worker_error=2 * TABLE.worker_error)
STRICT = AdaptivePolicy(WORSE, target_error=0.02, max_answers=30, strict=False)
REASON = {"text": "people err more"}


def policies() -> list[Any]:
    """Policies of every sort over the same classes and questions."""
    skewed = TABLE.replace(prior=[0.1, 0.1, 0.2, 0.2, 0.4], dependence=0.2)
    return [
        PlanPolicy(ct.staff(ct.design(TABLE), workers=8), "curtailed"),
        PlanPolicy(ct.staff(ct.design(WORSE), workers=12), "none"),
        PlanPolicy(ct.staff(ct.design(TABLE), workers=4), "margin"),
        AdaptivePolicy(TABLE, target_error=0.2, max_answers=5, strict=False),
        AdaptivePolicy(TABLE, target_error=0.03, max_answers=9, strict=False),
        AdaptivePolicy(WORSE, target_error=0.05, max_answers=12, strict=False),
        AdaptivePolicy(WORSE, target_error=0.1, max_answers=9, width=2, strict=False),
        AdaptivePolicy(skewed, target_error=0.05, max_answers=9, strict=False),
    ]


class Game:
    """A campaign in which anything can happen at any time, revisions included."""

    def __init__(self, url: str, policy: Any, seed: int = 0, n: int = 12, **settings: Any) -> None:
        self.rng = random.Random(seed)
        self.clock = Clock()
        self.store = Store(url, clock=self.clock, rng=seed)
        self.maintenance = Runner(self.store, MAINTENANCE)
        self.watching = Runner(self.store, [WrongTable])
        self.keys = itertools.count()
        made = settings_of(
            **{
                **ALONE,
                "price": 0.01,
                "budget": 100.0,
                "max_skips": 2,
                "automatically": False,
                **settings,
            },
        )
        self.number = self.write(lambda c: owner.create(c, "x", policy, made, self.clock()))
        rows = [
            {"task": f"i{k}", "payload": "{}", "gold": 0 if k < 2 else None} for k in range(n + 2)
        ]
        self.write(lambda c: owner.add_items(c, self.number, rows))
        self.write(lambda c: owner.set_status(c, self.number, "running", self.clock()))
        self.workers = [self.invited(policy) for _ in range(9)]

    def write(self, function: Any) -> Any:
        return self.store.write(function)

    def read(self, statement: Any) -> Any:
        return self.store.read(lambda c: c.execute(statement).all())

    def invited(self, policy: Any) -> str:
        made = (self.number, "", policy, False, self.clock())
        return tokens.hashed(self.write(lambda c: people.invite(c, *made))[1])

    def submit(self, who: str, lease: str, value: int | None) -> None:
        kind: Any = "skip" if value is None else "answer"
        try:
            self.store.ask(Submit(who, lease, kind, value, f"k{next(self.keys)}"))
        except Refused:
            return

    def answer(self, who: str, value: int | None) -> bool:
        task = self.store.ask(Next(who))["task"]
        if task is not None:
            self.submit(who, task["lease"], value)
        return task is not None

    def all_answer(self, value: int) -> int:
        """Let every worker answer a question; count those who got one."""
        return sum(self.answer(who, value) for who in self.workers)

    def revise(self, policy: Any, **options: Any) -> int:
        now = self.clock()
        return int(self.write(lambda c: revise(c, self.number, policy, REASON, now, **options)))

    def round(self) -> bool:
        return self.maintenance.tick()

    def finish_revision(self) -> None:
        while self.round():
            pass

    def differences(self) -> list[str]:
        self.store.write(lambda _: None)  # on SQLite a question is returned before its commit
        found: list[str] = self.store.read(lambda c: verify(c, self.number))["differences"]
        return found

    def step(self) -> str:
        """Let something happen."""
        dice, who = self.rng.random(), self.rng.choice(self.workers)
        self.clock.now += 1
        if dice < 0.68:
            self.answer(who, int(self.rng.random() < 0.6))
            return "answer"
        if dice < 0.72:
            self.answer(who, None)
            return "skip"
        if dice < 0.82:
            task = self.store.ask(Next(who))["task"]
            if task is not None and self.rng.random() < 0.5:
                self.clock.now += 700
                self.store.ask(ExpireLeases())
                self.submit(who, task["lease"], 1)
            return "held"
        if dice < 0.96:
            self.round()
            self.watching.tick()
            return "round"
        self.revise(self.rng.choice(policies()))
        return "revise"

    def behind(self) -> int:
        """Count the items that are not revised yet."""
        current = sa.select(campaigns.c.revision).where(campaigns.c.id == self.number)
        return len(
            self.read(
                sa.select(items.c.id).where(
                    items.c.campaign_id == self.number,
                    items.c.status.in_([1, 2]),
                    items.c.revision < current.scalar_subquery(),
                )
            )
        )


@pytest.fixture
def slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Revise two items per transaction, so that everything happens in between."""
    monkeypatch.setattr(revised_items, "AT_ONCE", 2)


def test_a_question_that_is_handed_out_does_not_change_the_other_that_is_open(url: str) -> None:
    """The two that are best together are open; beside the second alone another would be best."""
    policy = AdaptivePolicy(WORSE, target_error=0.1, max_answers=12, width=2, strict=False)
    game = Game(url, policy, n=1, gold_rate=0.0)
    with game.store.opened():
        for who, value in zip(game.workers, (0, 1, 0, 0, 0, 1, 0, 1), strict=False):
            game.answer(who, value)
        assert game.store.ask(Next(game.workers[0]))["task"]["question"]["name"] == "T3"
        assert game.differences() == []
        assert [row.question for row in game.read(sa.select(open_questions))] == [0]
        game.write(lambda c: c.execute(open_questions.update().values(question=4)))
        assert game.differences() == [
            "item 'i2': has {4: 1} open and [2] held, expected {1: 1} open"
        ]


@pytest.mark.usefixtures("slowly")
@games(6)
def test_anything_can_happen_between_revisions(seed: int, url: str) -> None:
    game = Game(url, policies()[seed % len(policies())], seed)
    with game.store.opened():
        happened = []
        for turn in range(160):
            happened.append(game.step())
            if turn % 8 == 0:
                assert game.differences() == [], (turn, happened[-8:])
        assert {"answer", "held", "round", "revise"} <= set(happened)
        assert game.differences() == []
        game.finish_revision()
        assert (game.behind(), game.differences()) == (0, [])
        if seed % 2:  # an owner who finishes in the middle of a revision
            game.revise(policies()[(seed + 1) % len(policies())])
            game.round()
        game.write(lambda c: owner.set_status(c, game.number, "finishing", game.clock()))
        game.round()
        assert game.differences() == []
        game.finish_revision()
        assert game.differences() == []
        assert game.read(sa.select(campaigns.c.status)) == [("finished",)]


@pytest.fixture
def labelled(tmp_path: Any) -> Iterator[Game]:
    """A campaign whose items were labelled on few answers."""
    hasty = AdaptivePolicy(TABLE, target_error=0.3, max_answers=5, strict=False)
    game = Game(f"sqlite:///{tmp_path / 'x.db'}", hasty, n=6)
    with game.store.opened():
        while game.all_answer(1):
            pass
        game.finish_revision()
        yield game


def test_labels_are_withdrawn_and_items_are_asked_again(labelled: Game) -> None:
    spent = labelled.read(sa.select(sa.func.sum(answers.c.price)))
    before = labelled.read(sa.select(labels.c.id, labels.c.item_id))
    assert len(before) == 6
    assert labelled.revise(STRICT) == 1
    assert labelled.differences() == []
    labelled.finish_revision()
    assert (labelled.behind(), labelled.differences()) == (0, [])
    assert labelled.read(sa.select(labels.c.id)) == []
    gone = labelled.read(sa.select(withdrawals.c.label_id, withdrawals.c.item_id))
    assert sorted(gone) == sorted(before)
    assert labelled.read(sa.select(sa.func.sum(answers.c.price))) == spent
    assert labelled.read(sa.select(open_questions.c.id))
    assert labelled.all_answer(1)
    assert labelled.differences() == []


def test_a_late_answer_counts_after_the_revision(tmp_path: Any) -> None:
    """The log keeps what the worker was told."""
    hasty = AdaptivePolicy(TABLE, target_error=0.3, max_answers=5, strict=False)
    game = Game(f"sqlite:///{tmp_path / 'x.db'}", hasty, n=1)
    with game.store.opened():
        slow = game.store.ask(Next(game.workers[0]))["task"]["lease"]
        game.clock.now += 700
        game.store.ask(ExpireLeases())
        while sum(game.answer(who, 1) for who in game.workers[1:]):
            pass
        game.submit(game.workers[0], slow, 1)
        last = sa.select(answers.c.fate, answers.c.revised_fate).order_by(answers.c.id.desc())
        assert game.read(last.limit(1)) == [("late", None)]
        game.revise(STRICT)
        game.finish_revision()
        assert game.read(last.limit(1)) == [("late", "counted")]
        assert game.differences() == []


def test_a_late_answer_may_follow_a_late_skip(tmp_path: Any) -> None:
    hasty = AdaptivePolicy(TABLE, target_error=0.3, max_answers=5, strict=False)
    game = Game(f"sqlite:///{tmp_path / 'x.db'}", hasty, n=1)
    with game.store.opened():
        slow = []
        for who in game.workers[:2]:
            slow.append(game.store.ask(Next(who))["task"]["lease"])
            game.clock.now += 700
            game.store.ask(ExpireLeases())
        while sum(game.answer(who, 1) for who in game.workers[2:]):
            pass
        game.submit(game.workers[0], slow[0], None)
        game.submit(game.workers[1], slow[1], 1)
        last = sa.select(answers.c.kind, answers.c.fate).order_by(answers.c.id.desc()).limit(2)
        assert game.read(last) == [("answer", "late"), ("skip", "late")]
        assert game.differences() == []
        game.revise(STRICT)
        game.finish_revision()
        assert game.differences() == []


def test_a_changed_label_gets_a_new_row_and_a_kept_one_is_corrected(labelled: Game) -> None:
    before = dict(labelled.read(sa.select(labels.c.item_id, labels.c.id)))
    errors = dict(labelled.read(sa.select(labels.c.item_id, labels.c.posterior_error)))
    softer = AdaptivePolicy(
        TABLE.replace(worker_error=0.9 * TABLE.worker_error), 0.3, 5, strict=False
    )
    labelled.revise(softer)
    labelled.finish_revision()
    kept = dict(labelled.read(sa.select(labels.c.item_id, labels.c.id)))
    assert kept == before
    corrected = dict(labelled.read(sa.select(labels.c.item_id, labels.c.posterior_error)))
    assert all(corrected[item] < errors[item] for item in errors)
    other = AdaptivePolicy(
        TABLE.replace(prior=[0.96, 0.01, 0.01, 0.01, 0.01]), 0.35, 5, strict=False
    )
    with pytest.raises(CrowdtreeError, match="without asking anybody"):
        labelled.revise(other)
    tree = PlanPolicy(ct.design(TABLE, "fm"), "none")  # labels have another reason
    labelled.revise(tree)
    labelled.finish_revision()
    assert labelled.differences() == []
    now = dict(labelled.read(sa.select(labels.c.item_id, labels.c.id)))
    assert all(now[item] > max(before.values()) for item in now)


def test_webhooks_follow_labels_that_change(labelled: Game) -> None:
    def sent() -> list[Any]:
        return delivered(labelled.store, labelled.clock)

    hook = {"campaign_id": labelled.number, "url": "https://example.org", "secret": "s"}
    labelled.write(lambda c: c.execute(webhooks.insert().values(**hook)).rowcount)
    known = {row["task"]: row["id"] for body in sent() for row in body["data"]["labels"]}
    assert len(known) == 6
    labelled.revise(STRICT)
    labelled.finish_revision()
    gone, revised = sent()
    assert gone["type"] == "labels.withdrawn"
    assert revised["type"] == "table.revised"
    assert (revised["data"]["revision"], revised["data"]["actor"]) == (1, "owner")
    assert {row["task"]: row["label_id"] for row in gone["data"]["withdrawn"]} == known
    labelled.revise(AdaptivePolicy(TABLE, target_error=0.3, max_answers=5, strict=False))
    labelled.finish_revision()
    again, _ = sent()
    assert again["type"] == "items.labelled"
    assert all(row["id"] > known[row["task"]] for row in again["data"]["labels"])
    assert again["data"]["labels"] == labelled.store.read(
        lambda c: label_rows(c, labelled.number, TABLE.classes)
    )


@pytest.mark.parametrize("skill", [0.5, -0.5])
def test_a_skill_is_carried_over_to_the_table_of_a_revision(skill: float, tmp_path: Any) -> None:
    """Where the table has moved towards a person, as much less of the skill is their own."""
    hasty = AdaptivePolicy(TABLE, target_error=0.3, max_answers=5, strict=False)
    game = Game(f"sqlite:///{tmp_path / 'x.db'}", hasty, n=6)
    game.write(lambda c: c.execute(workers.update().values(used_skill=skill)).rowcount)
    with game.store.opened():
        game.all_answer(1)
        game.revise(STRICT)
        line = game.read(
            sa.select(answers.c.id, answers.c.skill).where(answers.c.fate == "counted")
        )[0]
        assert line.skill == skill
        change = level_of(WORSE) - level_of(TABLE)
        assert -1 < change < -0.5
        expected = 0.0 if skill < 0 else skill  # the person was not worse than everybody else
        assert carried_skill(line.skill, line.id, served(game).present.levels) == expected
        last = game.read(sa.select(sa.func.max(answers.c.id)))[0][0]
        assert carried_skill(skill, last + 1, served(game).present.levels) == skill
        assert game.differences() == []


def test_set_aside_and_finished_items_stay(tmp_path: Any) -> None:
    game = Game(f"sqlite:///{tmp_path / 'x.db'}", policies()[0], n=6)
    with game.store.opened():
        for _ in range(3):
            game.answer(game.workers[0], 1)
        slow = game.store.ask(Next(game.workers[1]))["task"]["lease"]
        game.write(lambda c: owner.set_status(c, game.number, "finishing", game.clock()))
        game.finish_revision()
        rows = [{"task": "more", "payload": "{}", "gold": None}]
        game.write(lambda c: owner.add_items(c, game.number, rows))
        game.write(lambda c: owner.set_status(c, game.number, "running", game.clock()))
        before = game.read(sa.select(labels))
        game.revise(STRICT)
        game.finish_revision()
        game.submit(game.workers[1], slow, 1)  # which loads the item
        assert game.read(sa.select(labels)) == before
        assert game.differences() == []
        assert game.read(sa.select(revisions.c.finished_at).where(revisions.c.number == 1))[0][0]


def test_leases_that_matter_no_longer_are_withdrawn(tmp_path: Any) -> None:
    many = PlanPolicy(ct.staff(ct.design(TABLE), workers=12), "none")
    game = Game(f"sqlite:///{tmp_path / 'x.db'}", many, n=1)
    with game.store.opened():
        held = [game.store.ask(Next(who))["task"] for who in game.workers]
        states = sa.select(leases.c.state).order_by(leases.c.id)
        assert len(game.read(states)) == sum(task is not None for task in held) > 2
        game.revise(PlanPolicy(ct.design(TABLE), "none"))
        game.finish_revision()
        active, *others = (row.state for row in game.read(states))
        assert (active, set(others)) == (LeaseState.ACTIVE, {LeaseState.WITHDRAWN})
        assert game.differences() == []


@pytest.mark.usefixtures("slowly")
def test_a_campaign_does_not_finish_while_it_is_revised(labelled: Game) -> None:
    """A revision may take labels back, so workers wait and the campaign goes on."""
    settings = {"finish.automatically": True}
    labelled.write(
        lambda c: owner.change_settings(c, labelled.number, STRICT, settings, labelled.clock())
    )
    labelled.revise(STRICT)
    assert labelled.store.ask(Next(labelled.workers[0]))["reason"] == "wait"
    labelled.round()
    status = sa.select(campaigns.c.status)
    assert labelled.read(status) == [("running",)]
    labelled.finish_revision()
    assert labelled.read(status) == [("running",)]


def test_a_stalled_item_is_not_given_up_when_it_was_just_revised(labelled: Game) -> None:
    labelled.revise(STRICT)
    labelled.finish_revision()
    stalled = Runner(labelled.store, [StalledItems])
    labelled.revise(policies()[5])
    stalled.tick()
    assert labelled.differences() == []


def test_a_revision_is_recorded_and_repeating_it_changes_nothing(labelled: Game) -> None:
    assert labelled.revise(STRICT, actor="server") == 1
    assert labelled.revise(STRICT) == 1
    rows = labelled.store.read(lambda c: list_revisions(c, labelled.number))
    assert [(row["number"], row["actor"]) for row in rows] == [(0, "owner"), (1, "server")]
    assert rows[1]["reason"] == REASON
    assert rows[1]["finished_at"] is None
    last = labelled.read(sa.select(sa.func.max(answers.c.id)))[0][0]
    assert rows[1]["after_answer_id"] == last
    entry = labelled.store.read(lambda c: list_activity(c, labelled.number))[0]
    assert (entry["action"], entry["actor"]) == ("revise", "server")
    assert entry["detail"] == {"revision": 1, **REASON}


def test_only_the_same_classes_questions_and_right_answers_can_be_revised(labelled: Game) -> None:
    def other(**changes: Any) -> Any:
        return AdaptivePolicy(TABLE.replace(**changes), 0.1, 9, strict=False)

    names = list(TABLE.questions)
    flipped = TABLE.outcome.copy()
    flipped[0, :2] = 1 - flipped[0, :2]
    for policy, words in (
        (other(classes=["x", *TABLE.classes[1:]]), "classes: .* number 1 is 'c1' there"),
        (other(questions=[names[1], names[0], *names[2:]]), "questions: .* same order"),
        (AdaptivePolicy(ct.example("animals"), 0.1, 9, strict=False), "classes: expected the 5"),
        (other(outcome=flipped), "outcome: the right answer to"),
    ):
        with pytest.raises(CrowdtreeError, match=words):
            labelled.revise(policy)
    with pytest.raises(CrowdtreeError, match="reason: expected at most"):
        labelled.write(lambda c: revise(c, 1, STRICT, {"text": "x" * 30_000}, 0.0))
    labelled.write(lambda c: owner.set_status(c, labelled.number, "finishing", 0.0))
    with pytest.raises(CrowdtreeError, match="is finishing: only a running or paused one"):
        labelled.revise(STRICT)


def test_dedicated_workers_keep_their_questions(tmp_path: Any) -> None:
    small = PlanPolicy(ct.design(TABLE), "none")
    used = set(small.plan.tree.question.tolist())
    game = Game(f"sqlite:///{tmp_path / 'x.db'}", small, n=3, one_question_per_worker=True)
    with game.store.opened():
        with pytest.raises(CrowdtreeError, match="one_question_per_worker: requires a plan"):
            game.revise(STRICT)
        more = PlanPolicy(ct.staff(small.plan.tree, workers=8), "none")
        assert game.revise(more) == 1
        for method in ("gain", "random", "fc"):
            tree = ct.design(TABLE, method, allow_groups=True)
            new = set(tree.question.tolist()) - used
            if new:
                with pytest.raises(CrowdtreeError, match="each worker answers one question"):
                    game.revise(PlanPolicy(tree, "none"))


# ------------------------------------------------------------------------------ several processes


def served(game: Game) -> ServedCampaign:
    """Read the campaign as a process does."""

    def read(connection: Any) -> ServedCampaign:
        (state,) = fetch(connection, sql.CAMPAIGNS, ids=[game.number])
        return ServingCache(game.clock, np.random.default_rng(0)).campaign(connection, state)

    return game.store.read(read)


def test_a_transaction_that_began_before_the_revision_reads_the_policy_again(
    labelled: Game,
) -> None:
    before = served(labelled)
    labelled.revise(STRICT)
    labelled.finish_revision()
    one = labelled.read(sa.select(items.c.id).where(items.c.revision == 1).limit(1))[0].id

    def load(connection: Any) -> Any:
        cache = ServingCache(labelled.clock, np.random.default_rng(0))
        unit = UnitOfWork(connection, cache, labelled.clock())
        unit.campaigns[labelled.number] = before
        unit.load_items([one])
        return unit.items[one]

    found = labelled.write(load)
    assert (found.view.revision, found.campaign.revision, found.changed) == (1, 1, False)
    assert found.campaign.policy.to_dict() == STRICT.to_dict()


def test_an_item_that_a_process_opens_under_the_old_policy_is_revised_by_its_first_answer(
    tmp_path: Any,
) -> None:
    game = Game(f"sqlite:///{tmp_path / 'x.db'}", policies()[0], n=2)
    with game.store.opened():
        before = served(game)
        game.revise(STRICT)
        game.finish_revision()
        cache = game.store.writer_of(Next).cache
        cache.campaigns[game.number] = replace(
            before, row=replace(before.row, version=served(game).version)
        )
        lease = game.store.ask(Next(game.workers[0]))["task"]["lease"]
        cache.campaigns.clear()
        opened = sa.select(items.c.revision).where(items.c.status == 1)
        assert game.differences() == []
        assert game.read(opened) == [(0,)]
        game.submit(game.workers[0], lease, 1)
        assert game.differences() == []
        assert game.read(opened) == [(1,)]


# ------------------------------------------------------------------------------ alarms


@pytest.mark.parametrize("seed", [0, pytest.param(4, marks=pytest.mark.slow)])
def test_alarms_and_revisions_follow_from_the_log_whatever_happens(
    seed: int, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that reads the log anew finds what was found, owners' revisions included."""
    calls, made = itertools.count(), Game.revise
    monkeypatch.setattr(
        Game, "revise", lambda game, policy: made(game, policy) if next(calls) == 1 else 0
    )
    game = Game(f"sqlite:///{tmp_path / 'x.db'}", policies()[seed], seed, n=90, revise=True)
    with game.store.opened():
        for _ in range(600):
            game.step()
        again = Runner(game.store, [WrongTable])
        forgotten = monitors.update().values(state="", last_answer_id=0)
        for process in (game.watching, again):
            if process is again:
                game.store.write(lambda c: c.execute(forgotten))
            process.settle()
        rules: Any = [*game.watching.rules, *again.rules]
        one, two = (rule.watched[game.number] for rule in rules)
        assert one.tested.revision > 0
        assert (one.position, one.tested) == (two.position, two.tested)
        assert one.monitor.to_dict() | {"revisions": 0} == two.monitor.to_dict() | {"revisions": 0}
        assert [r.after for r in one.monitor.revisions] == [r.after for r in two.monitor.revisions]
        servers = sa.select(revisions.c.number).where(revisions.c.actor == "server")
        assert game.read(servers)
        assert game.differences() == []


# ------------------------------------------------------------------------------ tampering


def test_verify_finds_what_was_tampered_with_after_a_revision(labelled: Game) -> None:
    labelled.revise(policies()[3])
    labelled.finish_revision()
    for who in labelled.workers:
        labelled.answer(who, 0)
    assert labelled.differences() == []
    line = labelled.read(
        sa.select(answers.c.id)
        .join(items, items.c.id == answers.c.item_id)
        .where(items.c.revision == 1, answers.c.revision == 0)
    )[0][0]
    one = sa.select(items.c.id).where(items.c.revision == 1).limit(1).scalar_subquery()
    on, here = answers.c.id == line, items.c.id == one
    tamperings = {
        "revised fate": answers.update().where(on).values(revised_fate="surplus"),
        "answer turned": answers.update().where(on).values(value=1 - answers.c.value),
        "fate": answers.update().where(on).values(fate="surplus"),
        "revision of an item": items.update().where(here).values(revision=0),
        "unknown revision": items.update().where(here).values(revision=7),
        "revision that judged": items.update().where(here).values(judged_by=0),
        "policy of the campaign": campaigns.update().values(
            policy=sa.select(revisions.c.policy).where(revisions.c.number == 0).scalar_subquery()
        ),
        "policy of the revision": revisions.update()
        .where(revisions.c.number == 1)
        .values(policy=revisions.c.policy + " "),
        "number of revisions": campaigns.update().values(revision=2),
        "revision lost": revisions.delete().where(revisions.c.number == 0),
    }
    plain = sa.create_engine(labelled.store.engine.url)
    for what, statement in tamperings.items():
        with plain.connect() as connection:
            assert connection.execute(statement).rowcount, what
            found = verify(connection, labelled.number)["differences"]
            connection.rollback()
        assert bool(found) != (what == "policy of the revision"), (what, found)
    plain.dispose()
    assert labelled.differences() == []
