"""Thousands of histories of items in memory: what the server would store is the fold of the log.

The rules of the serving path run as they do in the server, but what they write goes to lists. After
each change a process may die, which loses what it had not written.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
import pytest

pytest.importorskip(
    "sqlalchemy", reason="the server is not installed: pip install crowdtree[serve]"
)

import crowdtree as ct
from crowdtree.campaign import events as ev
from crowdtree.campaign.events import Outcome, Reason
from crowdtree.policies import AdaptivePolicy, PlanPolicy
from crowdtree.server.reasons import CampaignReason
from crowdtree.server.settings.model import Settings
from crowdtree.server.store.db import statements as sql
from crowdtree.server.store.db.campaign_row import Campaign
from crowdtree.server.store.replay.items import StoredItem
from crowdtree.server.store.replay.verify import Folded
from crowdtree.server.store.serving.answering import follow
from crowdtree.server.store.serving.campaign import (
    Revisions,
    ServedCampaign,
    ServingCache,
    questions_of,
)
from crowdtree.server.store.serving.item import LoadedItem, load_view
from crowdtree.server.store.serving.settle import Changes, catch_up, record, settle
from crowdtree.server.store.types import ItemStatus, LeaseState

TABLE = ct.example("table1")
POLICIES: dict[str, list[Any]] = {
    "plan": [
        PlanPolicy(ct.staff(ct.design(TABLE), workers=8), "curtailed"),
        PlanPolicy(ct.staff(ct.design(TABLE), workers=14)),
    ],
    "adaptive": [
        AdaptivePolicy(TABLE, target_error=0.05, max_answers=9, strict=False),
        AdaptivePolicy(TABLE, target_error=0.02, max_answers=12, strict=False),
    ],
}
PEOPLE = range(1, 9)
HISTORIES = 50


@dataclass
class Database:
    """What is stored about one item, as the tables hold it."""

    row: sql.ItemRow
    log: list[sql.LogLine] = field(default_factory=list)
    events: list[sql.ItemEventRow] = field(default_factory=list)
    label: sql.LabelOfItem | None = None
    leases: dict[int, sql.Lease] = field(default_factory=dict)
    questions: dict[int, sql.OpenQuestion] = field(default_factory=dict)

    def commit(self, unit: Changes, item: LoadedItem) -> None:
        """Write what a transaction has changed."""
        for new in unit.answers:
            values = {name: getattr(new, name, None) for name in sql.LogLine._fields}
            self.log.append(sql.LogLine(**{**values, "id": len(self.log) + 1}))
        for line, fate in unit.revised_fates.items():
            revised = cast(Any, fate["revised_fate"])
            self.log[line - 1] = self.log[line - 1]._replace(revised_fate=revised)
        for event in unit.events:
            values = {name: getattr(event, name, None) for name in sql.ItemEventRow._fields}
            self.events.append(sql.ItemEventRow(**{**values, "id": len(self.events) + 1}))
        self.label = None if unit.dropped else self.label
        for changed in unit.corrected:
            self.label = sql.LabelOfItem(**cast(Any, changed))
        for given in unit.labels:
            values = {name: getattr(given, name, None) for name in sql.LabelOfItem._fields}
            self.label = sql.LabelOfItem(**{**values, "id": 1})
        row = item.row()
        row["state"] = row["state"] or self.row.state
        self.row = self.row._replace(**cast(Any, row))
        self.leases = {lease.id: replace(lease, changed=False) for lease in item.leases.values()}
        for question, there, needed in item.question_changes():
            self.questions.pop(question, None) if there is not None else None
            if needed:
                made = sql.OpenQuestion(question + 1, 1, question, needed, int(item.held))
                self.questions[question] = made


class Server:
    """One campaign with one item; every call is a transaction of its own."""

    def __init__(self, policies: list[Any]) -> None:
        self.policies, self.now = policies, 0.0
        self.database = Database(sql.ItemRow(1, 1, "x", 0, None, None, 0, 0, 0, 0, None))
        self.cache = ServingCache(lambda: self.now, np.random.default_rng(0))
        self.campaign = self.revision(0)
        self.told: list[str] = []
        """What workers were told, by line of the log."""

    def revision(self, number: int) -> ServedCampaign:
        """The campaign at a revision, as a process reads it that has just started."""
        settings = Settings.model_validate({"labels": {"require_trusted_answer": False}})
        policy = self.policies[number].at_least(settings.rules.people)
        times = {"created_at": 0.0, "started_at": 0.0, "finished_at": None}
        made = {"problem": {}, "policy": {}, "settings": settings, "secret": "", **times}
        why = {"reason": CampaignReason.NONE, "reason_detail": ""}
        row = Campaign(1, "x", "running", version=number + 1, revision=number, **made, **why)  # type: ignore[arg-type]
        return ServedCampaign(row, policy, "running")

    def loaded(self, unit: Changes) -> LoadedItem:
        """Load the item as a transaction does, which brings it to the present revision."""
        row, log, label = self.database.row, list(self.database.log), self.database.label
        item = LoadedItem(
            row.id,
            row.task,
            ItemStatus(row.status),
            None,
            self.campaign,
            Revisions(self.campaign, self.policies.__getitem__),
            load_view(self.campaign, row, log, label),
            log,
            len(log),
            label,
            started=row.status == ItemStatus.OPEN or row.state is not None,
            leases={key: replace(lease) for key, lease in self.database.leases.items()},
            questions=dict(self.database.questions),
        )
        if row.is_behind(self.campaign.revision):
            catch_up(unit, item)
        return item

    def begin(self) -> tuple[Changes, LoadedItem]:
        """Begin a transaction."""
        unit = Changes(cast(Any, None), self.cache, self.now)
        item = self.loaded(unit)
        if item.changed:
            self.database.commit(unit, item)
            return self.begin()
        return unit, item

    def hand_out(self, worker: int) -> sql.Lease | None:
        """Give a worker a question."""
        unit, item = self.begin()
        if item.status == ItemStatus.NEW:
            item.view = replace(self.campaign.blank)
            item.status, item.started = ItemStatus.OPEN, True
            item.refresh()
        had = {lease.question for lease in item.leases.values() if lease.worker_id == worker}
        asked = questions_of(self.campaign.present, item.view, item.outstanding, worker)
        mine = [q for q in asked if q not in had] if item.status == ItemStatus.OPEN else []
        if not mine:
            return None
        number = len(item.leases) + 1
        lease = sql.Lease(number, "", 1, worker, mine[0], LeaseState.ACTIVE, self.now, self.now + 9)
        item.leases[number] = lease
        settle(unit, item, item.view)
        self.database.commit(unit, item)
        return lease

    def answer(self, lease: sql.Lease, value: int | None, dies: bool) -> None:
        """Take an answer or a skip; nothing of it is there if the process dies before it writes."""
        unit, item = self.begin()
        mine, before = item.leases[lease.id], item.view
        if mine.state in (LeaseState.ANSWERED, LeaseState.SKIPPED):
            return  # sent again
        counted_on, kind = mine.state == LeaseState.ACTIVE, "skip" if value is None else "answer"
        skill = 0.25 * (mine.worker_id % 3)
        response: ev.Response = ev.Skipped(mine.worker_id, mine.question)
        if value is not None:
            response = ev.Answered(mine.worker_id, mine.question, value, skill=skill)
        outcome = item.take(response)
        unit.answers.append(
            sql.NewAnswer(
                campaign_id=1,
                item_id=1,
                lease_id=mine.id,
                worker_id=mine.worker_id,
                question=mine.question,
                kind=cast(Any, kind),
                value=value,
                key="k",
                skill=skill,
                weight=1.0,
                fate=str(outcome),
                overdue=0,
                price=0,
                at=self.now,
                revision=before.revision,
            )
        )
        item.logged += 1
        mine.become(LeaseState.SKIPPED if value is None else LeaseState.ANSWERED)
        item.pending.append(0)
        follow(unit, item, before, counted_on)
        if not dies:
            self.database.commit(unit, item)
            self.told.append(str(outcome))

    def happen(self, event: ev.Event) -> None:
        """Let the owner or a rule do something to the item."""
        unit, item = self.begin()
        item.label = self.database.label
        before = item.view
        record(unit, item, event)
        item.withdraw_leases()
        settle(unit, item, before)
        self.database.commit(unit, item)

    def expire(self) -> None:
        """Let all leases expire."""
        unit, item = self.begin()
        for lease in item.leases.values():
            if lease.state in (LeaseState.ACTIVE, LeaseState.WITHDRAWN):
                lease.become(LeaseState.EXPIRED)
        settle(unit, item, item.view)
        self.database.commit(unit, item)

    def check(self) -> None:
        """All that is stored follows from the log, in which every acknowledged answer is once."""
        self.begin()
        found = self.database
        leases, questions = list(found.leases.values()), list(found.questions.values())
        stored = StoredItem(
            found.row, found.log, found.events, found.label, questions, leases, None
        )
        past = Revisions(self.campaign, self.policies.__getitem__)
        assert list(Folded(self.campaign, past, stored).differences(True)) == []
        assert [line.fate for line in found.log] == self.told
        assert len({line.lease_id for line in found.log}) == len(found.log)


def play(server: Server, rng: np.random.Generator) -> None:
    """Let people, the owner and crashes come in any order."""
    held: list[sql.Lease] = []
    for _ in range(int(rng.integers(5, 40))):
        dice, server.now = rng.random(), server.now + 1
        if dice < 0.45:
            lease = server.hand_out(int(rng.choice(PEOPLE)))
            held += [] if lease is None else [lease]
        elif dice < 0.85 and held:
            lease = held[int(rng.integers(len(held)))]
            value = None if rng.random() < 0.1 else int(rng.integers(2))
            server.answer(lease, value, dies=bool(rng.random() < 0.1))
        elif dice < 0.9:
            server.expire()
        elif dice < 0.93 and server.campaign.revision + 1 < len(server.policies):
            server.campaign = server.revision(server.campaign.revision + 1)
        else:
            owner(server, rng)
        if rng.random() < 0.2:  # a process that has just started knows only what is stored
            server.campaign = server.revision(server.campaign.revision)


def owner(server: Server, rng: np.random.Generator) -> None:
    """Let the owner do something that can be done to the item as it is."""
    status = server.begin()[1].status
    choices: list[ev.Event] = []
    if status in (ItemStatus.OPEN, ItemStatus.LABELLED):
        choices = [ev.Corrected(int(rng.integers(4))), ev.Withdrawn()]
        choices += [ev.Corrected(None)] if server.database.row.corrected is not None else []
        choices += [ev.Concluded(Reason.FINISHED)] if status == ItemStatus.OPEN else []
    elif status in (ItemStatus.SET_ASIDE, ItemStatus.WITHDRAWN):
        choices = [ev.Reopened()]
    if choices:
        server.happen(choices[int(rng.integers(len(choices)))])


@pytest.mark.parametrize(
    "seed", [0, 12, 13, *(pytest.param(k, marks=pytest.mark.slow) for k in range(20, 80))]
)
@pytest.mark.parametrize("kind", POLICIES)
def test_what_is_stored_is_the_fold_of_the_log(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    closed = 0
    for _ in range(HISTORIES):
        server = Server(POLICIES[kind])
        play(server, rng)
        server.check()
        closed += server.begin()[1].closed
        assert Outcome.GOLD not in server.told
    assert 0 < closed < HISTORIES
