"""Reopen items that were set aside or withdrawn: they are asked about again."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy.engine import Connection

from crowdtree.campaign.events import Reopened
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.text import plural, short
from crowdtree.server.reasons import CampaignReason
from crowdtree.server.store.corrections.common import AT_ONCE, begin, find_items
from crowdtree.server.store.db.activity import note
from crowdtree.server.store.db.campaign_row import get_campaign, touch
from crowdtree.server.store.db.sql import Sql, fetch_ids
from crowdtree.server.store.db.states import ItemStatus
from crowdtree.server.store.owner.campaigns import pause_finished
from crowdtree.server.store.serving.settle import hold_back, record, settle

CLOSED = (ItemStatus.SET_ASIDE, ItemStatus.WITHDRAWN)
SET_ASIDE = Sql(
    f"""SELECT id FROM items WHERE campaign_id = :campaign AND status = {ItemStatus.SET_ASIDE:d}
    ORDER BY id LIMIT :most"""
)


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
    for item in found:
        before = item.view
        record(unit, item, Reopened())
        item.back_to_new()
        hold_back(unit, item)
        item.withdraw_leases()
        settle(unit, item, before)
        unit.opened[number] += item.status == ItemStatus.NEW
    unit.write()
    if any(item.gold is not None for item in found):
        touch(connection, number)
    tasks = [item.task for item in found]
    note(connection, now, "reopen", number, {"items": len(tasks), "tasks": tasks})
    if campaign.status == "finished" and any(not item.closed for item in found):
        count = plural(len(found), "item")
        pause_finished(connection, number, now, CampaignReason.ITEMS_REOPENED, count)
    return len(found)
