"""Withdraw items of a campaign: nobody is asked about them any more, and they have no label."""

from __future__ import annotations

import json
from collections.abc import Sequence

from sqlalchemy.engine import Connection

from crowdtree.policies import Label
from crowdtree.server.store.corrections.common import AT_ONCE, SET_STATUS, begin, check_reason
from crowdtree.server.store.db import statements as sql
from crowdtree.server.store.db.activity import note
from crowdtree.server.store.db.campaign_row import get_campaign, touch
from crowdtree.server.store.db.sql import run_many
from crowdtree.server.store.db.states import ItemStatus
from crowdtree.server.store.serving.item import UNLABELLED, WITHDRAWN, OpenItem, path_of
from crowdtree.server.store.serving.settle import count_label, settle
from crowdtree.server.store.serving.unit_of_work import UnitOfWork
from crowdtree.server.store.serving.worker_quality import relearn


def withdraw(
    connection: Connection, number: int, ids: Sequence[int], now: float, reason: str = ""
) -> int:
    """Withdraw items, at most `AT_ONCE`; returns how many.

    Nothing more is handed out about them. A question that a worker holds at that moment may still
    be answered and is paid, as for any item that is closed meanwhile, but does not count. What was
    paid stays paid. Items that are withdrawn stay so, so that the call can be repeated.

    Parameters
    ----------
    ids
        The items; gold items as well.
    """
    check_reason(reason)
    campaign = get_campaign(connection, number, lock=True)
    unit = begin(connection, campaign, sorted(ids)[:AT_ONCE], now)
    found = [
        item
        for item in unit.items.values()
        if item.status != ItemStatus.WITHDRAWN and item.campaign.id == number
    ]
    if not found:
        return 0
    labels = unit.labels_of([item.id for item in found])
    people = {
        int(event.worker)
        for item in found
        if item.status == ItemStatus.LABELLED
        for event in item.item.events
    }
    for item in found:
        _withdraw(unit, item, labels.get(item.id))
    unit.write()
    status = int(ItemStatus.WITHDRAWN)
    run_many(connection, SET_STATUS, ({"id": item.id, "status": status} for item in found))
    # Labels that are gone are no evidence about workers any more.
    run_many(connection, sql.ADD_JUDGEMENT, (relearn(n)._asdict() for n in sorted(people)))
    if any(item.gold is not None for item in found):
        touch(connection, number)
    tasks = [item.task for item in found]
    said = {"items": len(tasks), "tasks": tasks, "reason": reason}
    note(connection, now, "withdraw", number, said)
    return len(found)


def _withdraw(unit: UnitOfWork, item: OpenItem, before: sql.LabelOfItem | None) -> None:
    """Close an item; an entry without a label takes the place of its label."""
    number, answers = item.campaign.id, item.item.answers
    path = json.dumps(path_of(item.campaign.problem.questions, item.item))
    if before is not None:
        unit.dropped.append({"id": before.id})
        answers, path = before.answers, before.path
    if before is not None and before.reason not in UNLABELLED:
        label = Label(before.label, before.posterior_error, before.reason)
        count_label(unit, item, label, before.answers, -1)
        item.status = ItemStatus.OPEN
    unit.count(number, item.status.label, -1)
    item.status = ItemStatus.WITHDRAWN
    unit.count(number, item.status.label)
    unit.labels.append(
        sql.LabelLine(number, item.id, None, None, WITHDRAWN, answers, path, unit.now)
    )
    settle(unit, item)
