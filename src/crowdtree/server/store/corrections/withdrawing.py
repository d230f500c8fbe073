"""Withdraw items of a campaign: nobody is asked about them any more, and they have no label."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy.engine import Connection

from crowdtree.campaign.events import Withdrawn
from crowdtree.server.store.corrections.common import AT_ONCE, begin, check_reason
from crowdtree.server.store.db import statements as sql
from crowdtree.server.store.db.activity import note
from crowdtree.server.store.db.campaign_row import get_campaign, touch
from crowdtree.server.store.db.sql import run_many
from crowdtree.server.store.db.statements import relearn
from crowdtree.server.store.db.states import ItemStatus
from crowdtree.server.store.serving.settle import record, settle


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
    people: set[int] = set()
    for item in found:
        before = item.view
        if item.status == ItemStatus.LABELLED:
            people |= {line.worker_id for line in item.log}
        record(unit, item, Withdrawn())
        settle(unit, item, before)
    unit.write()
    # Labels that are gone are no evidence about workers any more.
    run_many(connection, sql.ADD_JUDGEMENT, (relearn(n)._asdict() for n in sorted(people)))
    if any(item.gold is not None for item in found):
        touch(connection, number)
    tasks = [item.task for item in found]
    said = {"items": len(tasks), "tasks": tasks, "reason": reason}
    note(connection, now, "withdraw", number, said)
    return len(found)
