"""Taking back leases that have expired."""

from __future__ import annotations

from crowdtree.server.store.db import statements as sql
from crowdtree.server.store.db.sql import fetch_ids
from crowdtree.server.store.db.states import GIVEN_BACK, LIVE_LEASES, LeaseState
from crowdtree.server.store.serving.settle import settle
from crowdtree.server.store.serving.unit_of_work import UnitOfWork


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
                    budget.add(reserved=-item.campaign.settings.money.price_micros)
                lease.become(LeaseState.EXPIRED)
                if lease.expires_at > GIVEN_BACK:
                    unit.lapses[lease.worker_id] += 1
                unit.count(item.campaign.id, "expired")
                count += 1
        if item.gold is None:
            settle(unit, item, item.view)
    return count
