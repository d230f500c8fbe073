"""Duplicates of campaigns: the same definition and items as a new draft."""

from __future__ import annotations

import json

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.io.items import media_names
from crowdtree.server.store.db.activity import note
from crowdtree.server.store.db.campaign_row import get_campaign
from crowdtree.server.store.db.states import ItemStatus
from crowdtree.server.store.db.tables import items
from crowdtree.server.store.owner.campaigns import MAX_NAME, add_items, create

OF_THE_STUDY = {"money.completion_code": "", "money.return_url": ""}
"""Settings that belong to one study on a platform; whoever knows them could use them again."""
ITEMS_AT_ONCE = 2000


def duplicate(connection: Connection, number: int, name: str, now: float) -> int:
    """Create a draft with the plan, questions and settings of a campaign; returns its number.

    Answers, workers, links, webhooks and the secret of the campaign are not copied.
    """
    found = get_campaign(connection, number)
    settings = found.settings.changed(OF_THE_STUDY)
    words = name.strip() or f"Copy of {found.name}"[:MAX_NAME]
    new = create(connection, words, found.make_policy(), settings, now)
    note(connection, now, "duplicate", new, {"of": number})
    return new


def copy_items(
    connection: Connection, source: int, target: int, after: int
) -> tuple[int, int, set[str]]:
    """Copy the next items after an id, without those that were withdrawn.

    Returns the last id, how many were copied, and the names of the uploaded files that they show.
    """
    rows = connection.execute(
        sa.select(items.c.id, items.c.task, items.c.payload, items.c.gold)
        .where(
            items.c.campaign_id == source,
            items.c.id > after,
            items.c.status != ItemStatus.WITHDRAWN,
        )
        .order_by(items.c.id)
        .limit(ITEMS_AT_ONCE)
    ).all()
    if not rows:
        return after, 0, set()
    add_items(connection, target, [dict(row._mapping) for row in rows])
    files = {name for row in rows for name in media_names(json.loads(row.payload))}
    return rows[-1].id, len(rows), files
