"""What a transaction changes: after something happened to an item, outcomes, label, leases and
open questions follow.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlalchemy.engine import Connection

from crowdtree.campaign.events import (
    Answered,
    Concluded,
    Event,
    HeldBack,
    Outcome,
    PolicyChanged,
    Reason,
)
from crowdtree.campaign.fold import NO_CLASS
from crowdtree.campaign.view import ItemView, Status
from crowdtree.learning.trust import speaks_for
from crowdtree.policies import Label
from crowdtree.server.store.db import statements as sql
from crowdtree.server.store.db.sql import fetch_ids
from crowdtree.server.store.serving.campaign import ServedCampaign, ServingCache
from crowdtree.server.store.serving.item import LoadedItem, path_of, written
from crowdtree.server.store.types import ItemStatus


@dataclass
class WorkerDelta:
    """What a transaction adds to a worker's record."""

    answers: int = 0
    accepted: int = 0
    skips: int = 0
    overdue: int = 0
    earned: int = 0
    last_question: int = -1


@dataclass
class Changes:
    """The changes of one transaction."""

    connection: Connection
    cache: ServingCache
    now: float
    answers: list[sql.NewAnswer] = field(default_factory=list)
    labels: list[sql.LabelLine] = field(default_factory=list)
    events: list[sql.NewItemEvent] = field(default_factory=list)
    revised_fates: dict[int, dict[str, object]] = field(default_factory=dict)
    """Outcomes that differ from what workers were told, by line of the log."""
    corrected: list[dict[str, object]] = field(default_factory=list)
    """Labels of which a revision changed the error, the answers or the path."""
    dropped: list[dict[str, object]] = field(default_factory=list)
    """Labels that a revision replaced or withdrew."""
    withdrawals: list[sql.Withdrawal] = field(default_factory=list)
    judgements: list[sql.Judgement] = field(default_factory=list)
    deltas: dict[int, WorkerDelta] = field(default_factory=lambda: defaultdict(WorkerDelta))
    relearned: set[int] = field(default_factory=set)
    """Workers about whom it has to be learned anew from the log."""
    lapses: Counter[int] = field(default_factory=Counter)
    """Leases that workers let expire."""
    tallies: Counter[tuple[int, str]] = field(default_factory=Counter)
    opened: Counter[int] = field(default_factory=Counter)
    """Questions that were opened, by campaign."""
    touched: set[int] = field(default_factory=set)
    """Campaigns whose pages should be refreshed."""

    notes: list[dict[str, object]] = field(default_factory=list)
    """Lines for the activity log."""

    def note(self, campaign: int, action: str, detail: Mapping[str, object]) -> None:
        """Note in the activity log what a worker did."""
        about = {"campaign_id": campaign, "detail": json.dumps(dict(detail))}
        self.notes.append({"at": self.now, "actor": "worker", "action": action, **about})

    def count(self, campaign: int, name: str, by: int = 1) -> None:
        """Add to a tally of a campaign."""
        self.tallies[campaign, name] += by


WAITED_IN_VAIN = 2
"""How many times the answers of its policy an item takes while its label is held back. By then
trusted people outnumber the others, unless some are trusted no longer."""


def record(
    unit: Changes, item: LoadedItem, event: Event, reason: str = "", activity: int = 0
) -> None:
    """Let something happen to an item, and add it to the log."""
    kind, value, why = written(event)
    unit.events.append(
        sql.NewItemEvent(
            campaign_id=item.campaign.id,
            item_id=item.id,
            kind=kind,
            revision=item.view.revision,
            after=item.logged,
            value=value,
            reason=why or reason,
            at=event.at or unit.now,
            activity_id=activity,
        )
    )
    item.extend(event)


def happen(
    unit: Changes, item: LoadedItem, event: Event, reason: str = "", activity: int = 0
) -> None:
    """Let something happen to an item, and bring all that is stored about it in line."""
    before = item.view
    record(unit, item, event, reason, activity)
    item.back_to_new()
    if item.view.label is not before.label:
        if before.status is Status.LABELLED:  # a label that is gone is no evidence about workers
            unit.relearned.update(line.worker_id for line in item.log)
        hold_back(unit, item)
    item.withdraw_leases()
    settle(unit, item, before)


def settle(unit: Changes, item: LoadedItem, before: ItemView) -> None:
    """Bring everything that is stored about an item in line with its view.

    `before` is the view at the time when the rows were last in line with it.
    """
    _write_outcomes(unit, item)
    if item.label is not None or (item.closed and not before.closed):
        _relabel(unit, item)
    unit.opened[item.campaign.id] += item.refresh()
    unit.touched.add(item.campaign.id)


def catch_up(unit: Changes, item: LoadedItem) -> None:
    """Bring an item to the campaign's present revision."""
    before = item.view
    for number in range(before.revision + 1, item.campaign.revision + 1):
        item.extend(PolicyChanged(number))
    if item.view.judged_by == before.judged_by:
        return
    hold_back(unit, item)
    item.withdraw_leases()
    settle(unit, item, before)


def _write_outcomes(unit: Changes, item: LoadedItem) -> None:
    """Write the outcomes that differ from what workers were told."""
    outcomes = item.view.outcomes
    for index, line in enumerate(item.log):
        revised = _revised(line.fate, outcomes[index])
        if revised != line.revised_fate:
            unit.revised_fates[line.id] = {"id": line.id, "revised_fate": revised}
    for index, place in enumerate(item.pending, start=len(item.log)):
        row = unit.answers[place]
        unit.answers[place] = row._replace(revised_fate=_revised(row.fate, outcomes[index]))


def _revised(told: str, outcome: Outcome) -> str | None:
    return None if outcome == told else str(outcome)


# ------------------------------------------------------------------------------ labels


def label_row(unit: Changes, item: LoadedItem) -> sql.LabelLine | None:
    """Row of the label that an item has, or of why it has none; nothing while it is open."""
    view, number = item.view, item.campaign.id
    if not item.closed:
        return None
    label = view.label
    if view.withdrawn or label is None:
        label = Label(NO_CLASS, 1.0, Reason.WITHDRAWN)
    known = Reason(label.reason).has_label
    before = item.label
    if view.withdrawn and before is not None:
        answers, path = before.answers, before.path
    else:
        answers = view.answers
        path = json.dumps(path_of(item.campaign.problem.questions, view))
    return sql.LabelLine(
        campaign_id=number,
        item_id=item.id,
        label=label.label if known else None,
        posterior_error=label.posterior_error if known else None,
        reason=str(label.reason),
        answers=answers,
        path=path,
        at=unit.now,
    )


def _relabel(unit: Changes, item: LoadedItem) -> None:
    """Keep, correct, replace, withdraw or give the label."""
    before, after = item.label, label_row(unit, item)
    if before is not None:
        count_label(unit, item.campaign.id, before, -1)
    if after is not None:
        count_label(unit, item.campaign.id, after)
    if before is not None and after is not None and before.same_as(after):
        item.label = before._replace(
            posterior_error=after.posterior_error, answers=after.answers, path=after.path
        )
        if item.label != before:
            unit.corrected.append(item.label._asdict())
        return
    if before is not None:
        unit.dropped.append({"id": before.id})
    if after is not None:  # a new row with a new id, which webhooks are sent
        unit.labels.append(after)
        _judge(unit, item, after)
    elif before is not None:
        gone = sql.Withdrawal(item.campaign.id, item.id, before.id, unit.now)
        unit.withdrawals.append(gone)
    item.label = None


def _judge(unit: Changes, item: LoadedItem, label: sql.LabelLine) -> None:
    """Compare the answers that counted with the label, as evidence about workers."""
    if item.status != ItemStatus.LABELLED or label.label is None:
        return
    error = label.posterior_error or 0.0
    for given, outcome in item.view.with_outcomes():
        if outcome is Outcome.COUNTED and isinstance(given, Answered):
            worker = given.worker
            assert isinstance(worker, int)
            judged = (worker, given.question, given.value, label.label, error)
            unit.judgements.append(sql.Judgement(*judged, gold=0))


def count_label(
    unit: Changes, campaign_id: int, label: sql.LabelLine | sql.LabelOfItem, by: int = 1
) -> None:
    """Count a label that an item gets, or with `by` -1 loses again."""
    if label.label is None or label.posterior_error is None:
        return
    reason = Reason(label.reason)
    nanos = round(label.posterior_error * 1e9)
    unit.count(campaign_id, "estimated", by)
    unit.count(campaign_id, "taken", by * label.answers)
    unit.count(campaign_id, "error_nanos", by * nanos)
    if reason.is_handed_over:
        unit.count(campaign_id, "undecided", by)
    if not reason.sets_aside:
        unit.count(campaign_id, f"label:{label.label}", by)
        unit.count(campaign_id, f"label_nanos:{label.label}", by * nanos)


# ------------------------------------------------------------------------------ held back


def hold_back(unit: Changes, item: LoadedItem) -> None:
    """Hold the label back until a trusted worker's answers support it.

    The item then takes one more answer than it has, or is set aside if it has waited in vain. Where
    nothing is left to ask, the label is given.
    """
    while is_held_back(unit, item.campaign, item.view):
        before = item.view.answers
        record(unit, item, HeldBack(before + 1))
        if item.view.answers == before:
            if item.view.label is None and waited_in_vain(item.campaign, item.view):
                record(unit, item, Concluded(Reason.UNCONFIRMED))
            break


def waited_in_vain(campaign: ServedCampaign, view: ItemView) -> bool:
    """Whether an item has far more answers than its policy takes, since it was last reopened."""
    own = max(campaign.policy.most_answers, campaign.rules.people)
    counted = view.outcomes[view.reopened_after :].count(Outcome.COUNTED)
    return counted > WAITED_IN_VAIN * own


def is_held_back(unit: Changes, campaign: ServedCampaign, view: ItemView) -> bool:
    """Whether a label has to wait: neither a trusted majority nor trusted answers support it.

    They may be many and speak against it: at the leaf to which a vote of strangers has led, more
    answers to the last question change nothing. Items that are set aside, or labelled because the
    owner said so, do not wait.
    """
    reason = view.reason
    if reason is None or view.label is None or not campaign.settings.labels.require_trusted_answer:
        return False
    if reason.sets_aside or reason.is_final or view.corrected is not None:
        return False
    counted = [
        given
        for given, outcome in view.with_outcomes()
        if outcome is Outcome.COUNTED and isinstance(given, Answered)
    ]
    people = {given.worker for given in counted if isinstance(given.worker, int)}
    known = _known(unit, people)
    if 2 * len(known) > len(people):
        return False
    theirs = [(given.question, given.value) for given in counted if given.worker in known]
    return not speaks_for(campaign.problem, theirs, view.label.label)


def _known(unit: Changes, workers: set[int]) -> set[int]:
    """Those of some workers who are known."""
    cached = unit.cache.known
    strangers = sorted(workers - cached)
    if strangers:
        cached.update(fetch_ids(unit.connection, sql.KNOWN, ids=strangers))
    return workers & cached
