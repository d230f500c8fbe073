"""After an item has changed: withdraw and open questions, write its label, expire its leases."""

from __future__ import annotations

import json

from crowdtree.policy import Label
from crowdtree.store.db import statements as sql
from crowdtree.store.db.sql import fetch_ids
from crowdtree.store.db.states import LIVE_LEASES, ItemStatus, LeaseState
from crowdtree.store.serving.item import OpenItem, path_of
from crowdtree.store.serving.unit_of_work import UnitOfWork

__all__ = ["expire_leases", "settle"]


def settle(unit: UnitOfWork, item: OpenItem) -> None:
    """Bring leases and open questions in line with the engine, and write a new label."""
    if item.label is not None:
        _label(unit, item, item.label)
        item.label = None
    unit.opened[item.campaign.id] += item.refresh()
    unit.touched.add(item.campaign.id)


def _label(unit: UnitOfWork, item: OpenItem, label: Label) -> None:
    number = item.campaign.id
    unit.labels.append(
        sql.LabelLine(
            campaign_id=number,
            item_id=item.id,
            label=label.label,
            posterior_error=label.posterior_error,
            reason=label.reason,
            answers=item.item.answers,
            path=json.dumps(path_of(item.campaign.problem.questions, item.item)),
            at=unit.now,
        )
    )
    unit.count(number, item.status.label)
    unit.count(number, ItemStatus.OPEN.label, -1)
    unit.count(number, "estimated")
    unit.count(number, "taken", item.item.answers)
    unit.count(number, "error_nanos", round(label.posterior_error * 1e9))
    if label.reason == "undecided":
        unit.count(number, "undecided")
    if item.status == ItemStatus.SET_ASIDE:
        return
    unit.count(number, f"label:{label.label}")
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


def expire_leases(unit: UnitOfWork, most: int) -> int:
    """Take back leases that have expired; count them."""
    ahead = unit.now + sql.AHEAD_SECONDS
    found = fetch_ids(unit.connection, sql.OVERDUE_ITEMS, now=unit.now, ahead=ahead, most=most)
    if not found:
        return 0
    unit.load_items(found)
    count = 0
    for number in found:
        item = unit.items[number]
        budget = unit.budgets.get(item.campaign.id)
        for lease in item.leases.values():
            if lease.state in LIVE_LEASES and lease.overdue(unit.now):
                if budget is not None:
                    budget.add(reserved=-item.campaign.settings.price_micros)
                lease.become(LeaseState.EXPIRED)
                unit.count(item.campaign.id, "expired")
                count += 1
        if item.gold is None:
            settle(unit, item)
    return count
