"""Revising an item: its answers are replayed under the campaign's present policy.

Answers that are excluded in the campaign's present revision are left out of the replay.

An item is revised when it is loaded for writing, so every change to it is made under the present
policy. :class:`~crowdtree.server.rules.revised_items.Revising` loads the others. The log
keeps what workers were told; what became of an answer since is beside it, in ``revised_fate``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from crowdtree.campaign.engine import ItemState, open_questions, replay_item
from crowdtree.policies import Label
from crowdtree.server.store.db import statements as sql
from crowdtree.server.store.db.states import ItemStatus, LeaseState
from crowdtree.server.store.serving.changes import Changes
from crowdtree.server.store.serving.item import (
    CHECKED,
    CONCLUDED,
    CORRECTED,
    FINAL,
    OpenItem,
    ServedCampaign,
    engine_lines,
    event_of,
    fates_to_replay,
    moves_of,
    revised_fate,
)
from crowdtree.server.store.serving.newcomers import ready_label
from crowdtree.server.store.serving.settle import count_label, new_label, settle


def is_behind(item: OpenItem, log: Sequence[sql.LogLine], label: sql.LabelOfItem | None) -> bool:
    """Whether an item of an earlier revision has to be replayed.

    Items set aside and labels that were given from outside stay as they are, unless answers to
    them were excluded or included since. Withdrawn items stay as they are.
    """
    if item.status == ItemStatus.WITHDRAWN:
        return False
    outside = label is not None and label.reason in FINAL
    if item.status == ItemStatus.SET_ASIDE or outside:
        return item.campaign.changed_since(item.revision, log)
    return True


def replayed(
    campaign: ServedCampaign,
    task: str,
    log: Sequence[sql.LogLine],
    reopened_after: int,
    before: sql.LabelOfItem | None = None,
    corrected: bool = False,
) -> ItemState:
    """Replay an item under the policy and the exclusions of a campaign's revision.

    A label `before` that was given from outside is kept where it is the truth; otherwise the
    evidence that is left is concluded for the same reason. So it is where the owner has labelled
    the item by hand (`corrected`): nobody is asked about it any more.
    """
    lines = engine_lines(log)
    events = tuple(event_of(campaign, task, line) for line in lines)
    fates = fates_to_replay(campaign, lines, reopened_after)
    item = ItemState(task, None, None, events, fates)
    item = replay_item(campaign.policy, item, campaign.rules)
    if before is not None and before.reason == CHECKED:
        return replace(item, label=Label(before.label, before.posterior_error, CHECKED))
    reason = CORRECTED if corrected else ""
    if before is not None and before.reason in CONCLUDED:
        reason = before.reason
    if reason and item.label is None:
        return replace(item, label=campaign.policy.conclude(item.state, reason))
    return item


def revise(
    unit: Changes,
    item: OpenItem,
    log: Sequence[sql.LogLine],
    before: sql.LabelOfItem | None,
    reopen: bool = False,
) -> None:
    """Replay an item under the present policy, with its log and the label that it has.

    With `reopen`, the skips so far no longer count, and a label from outside is dropped.
    """
    campaign = item.campaign
    if item.revision == campaign.revision:
        _count_moves(unit, item, -1)
    item.revised_after = log[-1].id if log else 0
    if reopen:
        item.reopened_after = item.revised_after
    kept = None if reopen else before
    corrected = item.corrected is not None
    item.item = replayed(campaign, item.task, log, item.reopened_after, kept, corrected)
    if reopen:
        item.reopened_at = len(item.item.events)
    item.revision, item.changed = campaign.revision, True
    label = ready_label(unit, item, item.item.label)
    _note_fates(unit, item, log)
    _count_moves(unit, item)
    _relabel(unit, item, label, before)
    _withdraw_leases(item)
    settle(unit, item)


def _note_fates(unit: Changes, item: OpenItem, log: Sequence[sql.LogLine]) -> None:
    """Write the fates that differ from what workers were told."""
    for line, fate in zip(engine_lines(log), item.item.fates, strict=True):
        revised = revised_fate(line.fate, fate)
        if revised != line.revised_fate:
            unit.revised_fates.append({"id": line.id, "revised_fate": revised})


def _count_moves(unit: Changes, item: OpenItem, by: int = 1) -> None:
    """Count the way of the item through the tree of the present policy."""
    for name in moves_of(item.campaign, item.item):
        unit.count(item.campaign.id, name, by)


def _relabel(
    unit: Changes, item: OpenItem, after: Label | None, before: sql.LabelOfItem | None
) -> None:
    """Keep, correct, replace, withdraw or give the label."""
    if before is None:
        if after is not None:
            item.close(after)
        return
    old = Label(before.label, before.posterior_error, before.reason)
    count_label(unit, item, old, before.answers, -1)
    if after is not None and (after.label, after.reason) == (old.label, old.reason):
        row = new_label(unit, item, after)
        values = (row.posterior_error, row.answers, row.path)
        if values != (before.posterior_error, before.answers, before.path):
            names = ("posterior_error", "answers", "path")
            unit.corrected.append({"id": before.id, **dict(zip(names, values, strict=True))})
        count_label(unit, item, after, row.answers)
        return
    unit.dropped.append({"id": before.id})
    item.status = ItemStatus.OPEN
    if after is not None:
        item.close(after)  # a new row with a new id, which webhooks are sent
    else:
        gone = sql.Withdrawal(item.campaign.id, item.id, before.id, unit.now)
        unit.withdrawals.append(gone)


def _withdraw_leases(item: OpenItem) -> None:
    """Withdraw the leases of questions that the policy no longer asks, or not as often."""
    campaign = item.campaign
    asked = Counter(open_questions(campaign.policy, item.item, (), rules=campaign.rules))
    for lease in sorted(item.leases.values(), key=lambda lease: lease.id):
        if lease.state == LeaseState.ACTIVE:
            if asked[lease.question]:
                asked[lease.question] -= 1
            else:
                lease.become(LeaseState.WITHDRAWN)
