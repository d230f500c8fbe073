"""After an item has changed: withdraw and open questions, write its label."""

from __future__ import annotations

import json

from crowdtree.policies import Label
from crowdtree.policies.base import HANDED_OVER
from crowdtree.server.store.db import statements as sql
from crowdtree.server.store.db.states import ItemStatus
from crowdtree.server.store.serving.changes import Changes
from crowdtree.server.store.serving.item import OpenItem, path_of


def settle(unit: Changes, item: OpenItem) -> None:
    """Bring leases and open questions in line with the engine, and write a new label."""
    if item.label is not None:
        _label(unit, item, item.label)
        item.label = None
    unit.opened[item.campaign.id] += item.refresh()
    unit.touched.add(item.campaign.id)


def _label(unit: Changes, item: OpenItem, label: Label) -> None:
    unit.labels.append(new_label(unit, item, label))
    count_label(unit, item, label, item.item.answers)
    if item.status == ItemStatus.SET_ASIDE:
        return
    for event, fate in zip(item.item.events, item.item.fates, strict=True):
        if fate == "counted" and event.value is not None:
            unit.judgements.append(
                sql.Judgement(
                    int(event.worker),
                    event.question,
                    event.value,
                    label.label,
                    label.posterior_error,
                    gold=0,
                )
            )


def new_label(unit: Changes, item: OpenItem, label: Label) -> sql.LabelLine:
    """Make the row of a label."""
    return sql.LabelLine(
        campaign_id=item.campaign.id,
        item_id=item.id,
        label=label.label,
        posterior_error=label.posterior_error,
        reason=label.reason,
        answers=item.item.answers,
        path=json.dumps(path_of(item.campaign.problem.questions, item.item)),
        at=unit.now,
    )


def count_label(unit: Changes, item: OpenItem, label: Label, answers: int, by: int = 1) -> None:
    """Count an item that gets a label, or with `by` -1 loses it again."""
    number = item.campaign.id
    unit.count(number, item.status.label, by)
    unit.count(number, ItemStatus.OPEN.label, -by)
    unit.count(number, "estimated", by)
    unit.count(number, "taken", by * answers)
    nanos = round(label.posterior_error * 1e9)
    unit.count(number, "error_nanos", by * nanos)
    if label.reason in HANDED_OVER:
        unit.count(number, "undecided", by)
    if item.status == ItemStatus.LABELLED:
        unit.count(number, f"label:{label.label}", by)
        unit.count(number, f"label_nanos:{label.label}", by * nanos)
