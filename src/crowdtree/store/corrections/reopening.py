"""Reopen items that were set aside: they are asked about again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.errors import CrowdtreeError
from crowdtree.store.db import statements as sql
from crowdtree.store.db.activity import note
from crowdtree.store.db.campaign_row import get_campaign
from crowdtree.store.db.sql import Sql, fetch, fetch_ids, run
from crowdtree.store.db.states import ItemStatus
from crowdtree.store.db.tables import items
from crowdtree.store.owner.campaigns import pause_finished
from crowdtree.store.serving.cache import ServingCache
from crowdtree.store.serving.item import NEVER_ASKED, OpenItem
from crowdtree.store.serving.revise import revise
from crowdtree.store.serving.unit_of_work import UnitOfWork
from crowdtree.text import plural, short

__all__ = ["AT_ONCE", "items_of_tasks", "reopen"]

AT_ONCE = 200
"""Items that are reopened per transaction."""
SET_ASIDE = Sql(
    f"""SELECT id FROM items WHERE campaign_id = :campaign AND status = {ItemStatus.SET_ASIDE:d}
    ORDER BY id LIMIT :most"""
)
MAKE_NEW = Sql(f"UPDATE items SET status = {ItemStatus.NEW:d} WHERE id = :id")


def items_of_tasks(connection: Connection, number: int, tasks: Sequence[str]) -> list[int]:
    """Find items that were set aside by their names; an error names the first that was not."""
    mine = (items.c.campaign_id == number, items.c.task.in_(tasks))
    rows = connection.execute(sa.select(items.c.id, items.c.task, items.c.status).where(*mine))
    known = {row.task: row for row in rows}
    for task in tasks:
        found = known.get(task)
        if found is None:
            raise CrowdtreeError(f"campaign {number} has no item {short(task)!r}")
        if found.status != ItemStatus.SET_ASIDE:
            status = ItemStatus(found.status).label
            raise CrowdtreeError(
                f"item {short(task)!r} is {status}: only items set aside can be reopened"
            )
    return [known[task].id for task in dict.fromkeys(tasks)]


def reopen(
    connection: Connection, number: int, now: float, ids: Sequence[int] | None = None
) -> int:
    """Reopen items that were set aside, at most `AT_ONCE`; returns how many.

    Skips so far no longer count, but nobody is asked a question again that they have skipped.
    Items that are not set aside stay as they are, so that the call can be repeated.

    Parameters
    ----------
    connection
        A connection in a transaction.
    number
        The campaign.
    now
        Seconds since 1970.
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
    cache = ServingCache(lambda: now, np.random.default_rng(0))
    unit = UnitOfWork(connection, cache, now)
    # no need to lock its budget
    unit.campaigns[number] = cache.campaign(connection, campaign.state)
    unit.load_items(sorted(ids)[:AT_ONCE])
    found = [
        item
        for item in unit.items.values()
        if item.status == ItemStatus.SET_ASIDE and item.campaign.id == number
    ]
    if not found:
        return 0
    labels = unit.labels_of([item.id for item in found])
    log: dict[int, list[sql.LogLine]] = {item.id: [] for item in found}
    for line in fetch(connection, sql.LOG, ids=list(log)):
        log[line.item_id].append(line)
    for item in found:
        if labels[item.id].reason == NEVER_ASKED:
            _make_new(unit, item, labels[item.id].id)
        else:
            revise(unit, item, log[item.id], labels[item.id], reopen=True)
    unit.write()
    tasks = [item.task for item in found]
    note(connection, now, "reopen", number, {"items": len(tasks), "tasks": tasks[:20]})
    if campaign.status == "finished":
        reason = f"{plural(len(found), 'item')} reopened: resume to ask about them"
        pause_finished(connection, number, now, reason)
    return len(found)


def _make_new(unit: UnitOfWork, item: OpenItem, label: int) -> None:
    """Reopen an item that nobody was ever asked about."""
    number = item.campaign.id
    unit.dropped.append({"id": label})
    unit.withdrawals.append(sql.Withdrawal(number, item.id, label, unit.now))
    unit.count(number, ItemStatus.SET_ASIDE.label, -1)
    unit.count(number, ItemStatus.NEW.label)
    unit.opened[number] += 1
    run(unit.connection, MAKE_NEW, id=item.id)
