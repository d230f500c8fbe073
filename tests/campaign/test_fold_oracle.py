"""The fold gives what the rows of the store gave: labels, errors, what counted, what is asked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import crowdtree as ct
from crowdtree.campaign import events as ev
from crowdtree.campaign.engine import Event, Rules, open_questions, start_item
from crowdtree.campaign.fold import begin, extend, fold
from crowdtree.campaign.questions import open_questions as open_of_view
from crowdtree.campaign.reasons import Reason
from crowdtree.campaign.view import Exclusion, ItemRules, ItemView, Revision
from crowdtree.core.fixed_plan import Plan
from crowdtree.policies import AdaptivePolicy, BatchPolicy, Label, PlanPolicy
from crowdtree.server.store.db import statements as sql
from crowdtree.server.store.db.states import ItemStatus
from crowdtree.server.store.serving.item import (
    CORRECTED,
    SET_ASIDE,
    OpenItem,
    ServedCampaign,
    engine_lines,
)
from crowdtree.server.store.serving.revise import is_behind, replayed
from crowdtree.server.store.settings import Settings

PROBLEM = ct.Problem(
    list("abcd"),
    [0.4, 0.3, 0.2, 0.1],
    ["q", "r", "s"],
    [[0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0]],
    [0.1, 0.2, 0.3],
)
TREE = ct.design(PROBLEM)
POLICIES = [
    PlanPolicy(Plan(TREE, np.full(TREE.n_nodes, 3)), "curtailed"),
    AdaptivePolicy(PROBLEM, 0.05, 12),
    AdaptivePolicy(PROBLEM, 0.2, 6, repeats=2),
    PlanPolicy(Plan(TREE, np.full(TREE.n_nodes, 1))),
    BatchPolicy(PROBLEM, 2),
]
WORKERS = range(1, 7)


class Stored:
    """An item as the store keeps it: a row, its lines of the log, and a label."""

    def __init__(self, policy: Any, rules: Rules) -> None:
        self.rules = rules
        self.campaign = ServedCampaign(
            1, 1, 0, policy.at_least(rules.people), Settings(), rules, gold=[]
        )
        self.log: list[sql.LogLine] = []
        blank = start_item(self.campaign.policy, "x")
        self.item = OpenItem(1, "x", ItemStatus.OPEN, None, self.campaign, blank, 0, 0, 0)
        self.label: sql.LabelOfItem | None = None

    def give(self, seq: int, worker: int, question: int, value: int | None, more: float) -> None:
        kind = "skip" if value is None else "answer"
        skill, weight = (0.0, more) if value is None else (more, 1.0)
        event = Event("x", question, str(worker), value, kind, f"{seq}:k", skill, weight)
        if self.item.closed:
            fate, item = "late", self.item.item
            self.item.item = replace(
                item, events=(*item.events, event), fates=(*item.fates, "late")
            )
        else:
            fate = self.item.take(event)
        row = (seq, 1, question, worker, value, kind, "k", seq, skill, weight, fate, 0, 0, None)
        self.log.append(sql.LogLine(*row))
        if not self.item.closed and self.item.item.label is not None:
            self.close(self.item.item.label)

    def close(self, label: Label) -> None:
        self.item.close(label)
        count = self.item.item.answers
        self.label = sql.LabelOfItem(
            1, 1, label.label, label.posterior_error, label.reason, count, ""
        )

    def open(self) -> None:
        self.item.status, self.label = ItemStatus.OPEN, None

    def revise(self, policy: Any, exclusions: list[sql.Exclusion]) -> None:
        self.campaign = replace(
            self.campaign,
            revision=self.campaign.revision + 1,
            policy=policy.at_least(self.rules.people),
            exclusions=exclusions,
        )
        self.item.campaign = self.campaign
        if is_behind(self.item, self.log, self.label):
            self.replay(self.label)

    def replay(self, kept: sql.LabelOfItem | None) -> None:
        item = self.item
        item.revised_after = self.log[-1].id if self.log else 0
        corrected = item.corrected is not None
        item.item = replayed(self.campaign, "x", self.log, item.reopened_after, kept, corrected)
        item.revision = self.campaign.revision
        label = item.item.label
        self.open()
        if label is not None:
            self.close(label)

    def hold(self, least: int) -> None:
        self.open()
        label = self.item.require(least)
        if label is not None:
            self.close(label)

    def reopen(self) -> None:
        self.item.reopened_after = self.log[-1].id if self.log else 0
        self.replay(None)

    def conclude(self, reason: str) -> None:
        self.close(self.campaign.policy.conclude(self.item.item.state, reason))

    def correct(self, label: int | None) -> None:
        self.item.corrected = label
        if label is not None and not self.item.closed:
            self.conclude(CORRECTED)
        elif label is None and self.label is not None and self.label.reason == CORRECTED:
            self.reopen()

    def withdraw(self) -> None:
        self.item.status, self.label = ItemStatus.WITHDRAWN, None


def play(seed: int) -> None:
    """Play a random history to both, and compare after each step."""
    rng = np.random.default_rng(seed)
    rules = ItemRules(int(rng.integers(1, 4)), int(rng.integers(1, 4)), float(rng.choice([0, 0.3])))
    policy = POLICIES[rng.integers(len(POLICIES))]
    stored = Stored(policy, Rules(rules.max_skips, False, rules.people, rules.person_dependence))
    revisions = [Revision(policy, rules)]
    exclusions: list[sql.Exclusion] = []
    view, log, seq, given = begin(revisions[0]), [], 0, set()

    def add(event: ev.Event) -> None:
        nonlocal view
        log.append(event)
        view = extend(revisions, view, event)

    def revise(policy: Any) -> None:
        now = len(revisions)
        present = [e for e in exclusions if e.holds(now)]
        found = [Exclusion(e.worker_id, e.first_answer_id, e.last_answer_id) for e in present]
        revisions.append(Revision(policy, rules, found))
        stored.revise(policy, list(exclusions))
        add(ev.PolicyChanged(now, seq=seq))

    for _ in range(int(rng.integers(5, 60))):
        seq += 1
        dice = rng.random()
        worker, question = int(rng.choice(WORKERS)), int(rng.integers(3))
        if dice < 0.75:
            asked = open_of_view(revisions[view.judged_by], view)
            if asked and rng.random() < 0.8:
                question = int(rng.choice(asked))
            if (worker, question) in given:
                continue
            given.add((worker, question))
            if rng.random() < 0.2:
                weight = float(rng.choice([0.0, 0.5, 1.0]))
                stored.give(seq, worker, question, None, weight)
                add(ev.Skipped(worker, question, weight=weight, seq=seq))
            else:
                value, skill = int(rng.integers(2)), float(rng.choice([0.0, 0.7, -0.4]))
                stored.give(seq, worker, question, value, skill)
                add(ev.Answered(worker, question, value, skill=skill, seq=seq))
        elif dice < 0.80:
            revise(POLICIES[rng.integers(len(POLICIES))])
        elif dice < 0.84:
            held = [e for e in exclusions if e.lifted_revision is None]
            if any(e.worker_id == worker for e in held):
                exclusions[:] = [
                    e._replace(lifted_revision=len(revisions))
                    if e.worker_id == worker and e.lifted_revision is None
                    else e
                    for e in exclusions
                ]
            else:
                exclusions.append(sql.Exclusion(worker, 0, seq, len(revisions), None))
            revise(revisions[-1].policy)
        elif dice < 0.88 and view.label is not None and not view.reason.is_final:
            if view.reason in SET_ASIDE or view.corrected is not None:
                continue
            if view.judged_by == view.revision:
                least = view.answers + 1
                stored.hold(least)
                add(ev.HeldBack(least, seq=seq))
        elif dice < 0.90 and view.held_back:
            stored.hold(view.answers)
            add(ev.Released(seq=seq))
        elif dice < 0.92 and not view.closed:
            reason = [Reason.FINISHED, Reason.NO_WORKERS, Reason.UNCONFIRMED][rng.integers(3)]
            stored.conclude(str(reason))
            add(ev.Concluded(reason, seq=seq))
        elif dice < 0.94 and view.label is not None and not view.reason.sets_aside:
            truth = int(rng.integers(4))
            stored.close(Label(truth, 0.0, "checked"))
            add(ev.Checked(truth, seq=seq))
        elif dice < 0.96 and not view.withdrawn:
            label = None if view.corrected is not None and rng.random() < 0.7 else question
            stored.correct(label)
            add(ev.Corrected(label, seq=seq))
        elif dice < 0.98 and not view.withdrawn:
            stored.withdraw()
            add(ev.Withdrawn(seq=seq))
        elif view.withdrawn or (view.reason is not None and view.reason.sets_aside):
            stored.reopen()
            add(ev.Reopened(seq=seq))
        compare(stored, revisions, view, log[-1:])
    assert_same(view, fold(revisions, log), revisions)


def compare(stored: Stored, revisions: list[Revision], view: ItemView, last: object) -> None:
    status = {
        ItemStatus.OPEN: "open",
        ItemStatus.LABELLED: "labelled",
        ItemStatus.SET_ASIDE: "set aside",
        ItemStatus.WITHDRAWN: "withdrawn",
    }[stored.item.status]
    assert view.status.value == status, last
    if stored.label is not None:
        row, label = stored.label, view.label
        assert label is not None
        assert (row.label, row.posterior_error, row.reason) == tuple(label), last
    if stored.item.status == ItemStatus.OPEN:
        policy = revisions[view.judged_by].policy
        item = stored.item.item
        assert policy.dump(view.state) == policy.dump(item.state), last
        lines = engine_lines(stored.log)
        counted = [line.id for line, f in zip(lines, item.fates, strict=True) if f == "counted"]
        assert [r.seq for r, o in view.with_outcomes() if o == "counted"] == counted, last
        for worker in (None, *WORKERS):
            name = None if worker is None else str(worker)
            rules = stored.rules
            asked = open_questions(stored.campaign.policy, item, (), name, rules)
            assert open_of_view(revisions[view.judged_by], view, (), worker) == asked, last


def assert_same(one: ItemView, other: ItemView, revisions: list[Revision]) -> None:
    policy = revisions[one.judged_by].policy
    assert policy.dump(one.state) == policy.dump(other.state)
    for name in ("label", "outcomes", "judged_by", "min_answers", "withdrawn", "corrected"):
        assert getattr(one, name) == getattr(other, name)


@pytest.mark.parametrize("first", range(0, 3000, 100))
def test_random_histories_have_the_labels_of_the_store(first: int) -> None:
    for seed in range(first, first + 100):
        play(seed)
