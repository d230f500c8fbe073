"""Reopen items that were set aside or withdrawn: they are asked about again."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy.engine import Connection

from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.text import plural, short
from crowdtree.server.store.corrections.common import (
    AT_ONCE,
    SET_STATUS,
    begin,
    find_items,
    logs_of,
)
from crowdtree.server.store.db import statements as sql
from crowdtree.server.store.db.activity import note
from crowdtree.server.store.db.campaign_row import get_campaign, touch
from crowdtree.server.store.db.sql import Sql, exists, fetch_ids, run_many
from crowdtree.server.store.db.states import ItemStatus
from crowdtree.server.store.owner.campaigns import pause_finished
from crowdtree.server.store.serving.item import UNLABELLED, OpenItem
from crowdtree.server.store.serving.revise import revise
from crowdtree.server.store.serving.unit_of_work import UnitOfWork

CLOSED = (ItemStatus.SET_ASIDE, ItemStatus.WITHDRAWN)
SET_ASIDE = Sql(
    f"""SELECT id FROM items WHERE campaign_id = :campaign AND status = {ItemStatus.SET_ASIDE:d}
    ORDER BY id LIMIT :most"""
)
STARTED = Sql(
    """SELECT 1 FROM items WHERE id = :item AND (state IS NOT NULL
    OR EXISTS (SELECT 1 FROM leases WHERE leases.item_id = items.id))"""
)
"""Whether an item was asked about, or was open without that: its label by hand was taken back."""


def items_of_tasks(connection: Connection, number: int, tasks: Sequence[str]) -> list[int]:
    """Find items that can be reopened by their names; an error names the first that cannot."""
    found = find_items(connection, number, tasks)
    for item in found:
        if item.status not in CLOSED:
            raise CrowdtreeError(
                f"item {short(item.task)!r} is {item.status.label}: only items set aside or "
                "withdrawn can be reopened"
            )
    return [item.id for item in found]


def reopen(
    connection: Connection, number: int, now: float, ids: Sequence[int] | None = None
) -> int:
    """Reopen items that were set aside or withdrawn, at most `AT_ONCE`; returns how many.

    Skips so far no longer count, but nobody is asked a question again that they have skipped.
    Answers count: an item whose answers give a label has it back. Other items stay as they are, so
    that the call can be repeated.

    Parameters
    ----------
    ids
        The items; by default all that are set aside.
    """
    campaign = get_campaign(connection, number, lock=True)
    if campaign.status == "finishing":
        raise CrowdtreeError(f"campaign {number} is finishing: reopen items when it is finished")
    if ids is None:
        ids = fetch_ids(connection, SET_ASIDE, campaign=number, most=AT_ONCE)
    if not ids:
        return 0
    unit = begin(connection, campaign, sorted(ids)[:AT_ONCE], now)
    found = [
        item for item in unit.items.values() if item.status in CLOSED and item.campaign.id == number
    ]
    if not found:
        return 0
    labels, log = unit.labels_of([item.id for item in found]), logs_of(connection, [*unit.items])
    restored: list[OpenItem] = []
    for item in found:
        if labels[item.id].reason not in UNLABELLED:
            revise(unit, item, log[item.id], labels[item.id], reopen=True)
        elif _restore(unit, item, labels[item.id].id, log[item.id]):
            restored.append(item)
    unit.write()
    run_many(connection, SET_STATUS, ({"id": x.id, "status": int(x.status)} for x in restored))
    if any(item.gold is not None for item in restored):
        touch(connection, number)
    tasks = [item.task for item in found]
    note(connection, now, "reopen", number, {"items": len(tasks), "tasks": tasks})
    if campaign.status == "finished" and any(not item.closed for item in found):
        reason = f"{plural(len(found), 'item')} reopened: resume to ask about them"
        pause_finished(connection, number, now, reason)
    return len(found)


def _restore(unit: UnitOfWork, item: OpenItem, label: int, log: Sequence[sql.LogLine]) -> bool:
    """Reopen an item without a label, which nobody was asked about or which was withdrawn.

    One that was started is replayed: its state may be that of an earlier policy. Returns whether
    only the status has to be written.
    """
    number = item.campaign.id
    unit.dropped.append({"id": label})
    unit.withdrawals.append(sql.Withdrawal(number, item.id, label, unit.now))
    unit.count(number, item.status.label, -1)
    started = exists(unit.connection, STARTED, item=item.id)
    if item.gold is not None or not (started or item.corrected is not None):
        item.status = ItemStatus.NEW if item.gold is None else ItemStatus.GOLD
        unit.count(number, item.status.label)
        unit.opened[number] += item.gold is None
        return True
    if not started and item.revision == item.campaign.revision:
        unit.count_start(item.campaign)  # which revising it replaces
    item.status = ItemStatus.OPEN
    unit.count(number, item.status.label)
    revise(unit, item, log, None, reopen=True)
    return False
