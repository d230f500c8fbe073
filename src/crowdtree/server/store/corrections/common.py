"""What the corrections of items share: finding items by name, and a transaction about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.text import short
from crowdtree.server.store.db.campaign_row import Campaign
from crowdtree.server.store.db.sql import Sql
from crowdtree.server.store.db.states import ItemStatus
from crowdtree.server.store.db.tables import items
from crowdtree.server.store.serving.cache import ServingCache
from crowdtree.server.store.serving.unit_of_work import UnitOfWork

AT_ONCE = 200
"""Items that are changed per transaction."""
MAX_REASON = 2000
EVER_ASKED = Sql("SELECT 1 FROM leases WHERE item_id = :item LIMIT 1")


class FoundItem(NamedTuple):
    """An item that was found by its name."""

    id: int
    task: str
    status: ItemStatus
    gold: int | None
    corrected: int | None


def find_items(connection: Connection, number: int, tasks: Sequence[str]) -> list[FoundItem]:
    """Find items by their names; an error names the first that there is not."""
    columns = [items.c[name] for name in FoundItem._fields]
    storable = [task for task in tasks if "\x00" not in task]
    mine = (items.c.campaign_id == number, items.c.task.in_(storable))
    rows = connection.execute(sa.select(*columns).where(*mine))
    known = {row.task: FoundItem(*row)._replace(status=ItemStatus(row.status)) for row in rows}
    for task in tasks:
        if task not in known:
            raise CrowdtreeError(f"campaign {number} has no item {short(task)!r}")
    return [known[task] for task in dict.fromkeys(tasks)]


def check_reason(reason: str) -> None:
    """Refuse a reason that is too long."""
    if len(reason) > MAX_REASON or "\x00" in reason:
        raise CrowdtreeError(
            f"reason: expected at most {MAX_REASON} characters without NUL, got {len(reason)}"
        )


def begin(connection: Connection, campaign: Campaign, ids: Sequence[int], now: float) -> UnitOfWork:
    """Lock and load items of a campaign whose row is locked, under its present policy."""
    cache = ServingCache(lambda: now, np.random.default_rng(0))
    while True:
        unit = UnitOfWork(connection, cache, now)
        # no need to lock its budget
        unit.campaigns[campaign.id] = cache.campaign(connection, campaign.state)
        unit.load_items(sorted(ids), labels=True)
        if not any(item.changed for item in unit.items.values()):
            return unit
        unit.write()  # items that were behind are revised: their labels are others now
