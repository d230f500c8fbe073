"""Correct items: label them by hand, withdraw them, reopen them.

An item that is labelled by hand is known: nobody is asked about it any more. If it is open, its
answers are concluded as they are; a label that it has stays. The label of the answers goes on to be
their replay, and workers are judged by it, not by the owner's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypedDict

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.campaign.events import Corrected, Event, Reopened, Withdrawn
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.text import plural, short
from crowdtree.server.reasons import CampaignReason
from crowdtree.server.store.db import statements as sql
from crowdtree.server.store.db.activity import note
from crowdtree.server.store.db.campaign_row import Campaign, get_campaign, touch
from crowdtree.server.store.db.sql import Sql, fetch, fetch_ids
from crowdtree.server.store.db.tables import audits, items
from crowdtree.server.store.owner.campaigns import pause_finished
from crowdtree.server.store.serving.campaign import ServingCache
from crowdtree.server.store.serving.item import LoadedItem
from crowdtree.server.store.serving.unit_of_work import UnitOfWork, change_items
from crowdtree.server.store.types import ItemStatus

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


def find_items(connection: Connection, campaign_id: int, tasks: Sequence[str]) -> list[FoundItem]:
    """Find items by their names; an error names the first that there is not."""
    columns = [items.c[name] for name in FoundItem._fields]
    storable = [task for task in tasks if "\x00" not in task]
    mine = (items.c.campaign_id == campaign_id, items.c.task.in_(storable))
    rows = connection.execute(sa.select(*columns).where(*mine))
    known = {row.task: FoundItem(*row)._replace(status=ItemStatus(row.status)) for row in rows}
    for task in tasks:
        if task not in known:
            raise CrowdtreeError(f"campaign {campaign_id} has no item {short(task)!r}")
    return [known[task] for task in dict.fromkeys(tasks)]


def check_reason(reason: str) -> None:
    """Refuse a reason that is too long."""
    if len(reason) > MAX_REASON or "\x00" in reason:
        raise CrowdtreeError(
            f"reason: expected at most {MAX_REASON} characters without NUL, got {len(reason)}"
        )


class LabelledByHand(TypedDict):
    """How many labels were given by hand, and how many were taken back."""

    campaign: int
    corrected: int
    undone: int
    opened: int
    """Questions that are asked again because labels were taken back."""


def correct(
    connection: Connection,
    campaign_id: int,
    wanted: Mapping[str, str | None],
    now: float,
    reason: str = "",
) -> LabelledByHand:
    """Give items a label by hand, or take it back; labels that they have already change nothing.

    Parameters
    ----------
    wanted
        Class by the name of the item; ``None`` takes the label by hand back.
    """
    campaign = get_campaign(connection, campaign_id, lock=True)
    check_reason(reason)
    changes = check_wanted(connection, campaign, wanted)
    made: LabelledByHand = {"campaign": campaign_id, "corrected": 0, "undone": 0, "opened": 0}
    if not changes:
        return made
    ids = [item.id for item, _ in changes]
    computed = {row.item_id: row.label for row in fetch(connection, sql.LABELS_OF_ITEMS, ids=ids)}
    audited = sa.select(sa.func.max(audits.c.at)).where(audits.c.campaign_id == campaign_id)
    # after the audit that did not know it, whatever the clocks of other processes say
    at = max(now, math.nextafter(connection.execute(audited).scalar_one() or 0.0, math.inf))
    for _, label in changes:
        made["undone" if label is None else "corrected"] += 1
    activities = {
        item.id: _note(connection, campaign, item, label, computed.get(item.id), at, reason)
        for item, label in changes
    }
    labels = {item.id: label for item, label in changes}
    unit = _change(
        connection,
        now,
        ids,
        lambda item: Corrected(labels[item.id], at=at),
        reason=reason,
        activities=activities,
    )
    reopened = sum(item.loaded.view.closed and not item.closed for item in unit.items.values())
    made["opened"] = unit.opened[campaign_id]
    if reopened and campaign.status == "finished":
        count = plural(reopened, "label")
        pause_finished(connection, campaign_id, now, CampaignReason.LABELS_UNDONE, count)
    return made


def check_wanted(
    connection: Connection, campaign: Campaign, wanted: Mapping[str, str | None]
) -> list[tuple[FoundItem, int | None]]:
    """Check labels by hand; returns those that are others than the items have."""
    if campaign.status == "draft":
        raise CrowdtreeError(
            f"campaign {campaign.id} is a draft: start it first, or give classes that are known in "
            "the column gold"
        )
    places = {name: place for place, name in enumerate(campaign.classes)}
    changes = []
    for item in find_items(connection, campaign.id, list(wanted)):
        name, where = wanted[item.task], f"item {short(item.task)!r}"
        if name is not None and name not in places:
            raise CrowdtreeError(
                f"{where}: {short(name)!r} is not a class; expected one of "
                f"{short(', '.join(places), 200)}"
            )
        if item.gold is not None:
            raise CrowdtreeError(f"{where} is a gold item: its class is known and it has no label")
        if item.status == ItemStatus.WITHDRAWN:
            raise CrowdtreeError(f"{where} is withdrawn: reopen it first")
        place = None if name is None else places[name]
        if place != item.corrected:
            changes.append((item, place))
    return changes


def _note(
    connection: Connection,
    campaign: Campaign,
    item: FoundItem,
    label: int | None,
    computed: int | None,
    at: float,
    reason: str,
) -> int:
    """Note a label by hand, or that there is none any more, with who and why."""
    classes = campaign.classes
    name = None if label is None else classes[label]
    done = f"labelled {name} by hand" if name is not None else "label by hand taken back"
    said = {
        "text": f"item {short(item.task)!r}: {done}" + (f": {reason}" if reason else ""),
        "item": item.id,
        "task": item.task,
        "label": name,
        "reason": reason,
    }
    earlier = {"before": item.corrected, "computed": computed}
    said |= {key: classes[place] for key, place in earlier.items() if place is not None}
    return note(connection, at, "correct", campaign.id, said)


def _change(
    connection: Connection,
    now: float,
    ids: Sequence[int],
    event_of: Callable[[LoadedItem], Event | None],
    **why: Any,
) -> UnitOfWork:
    cache = ServingCache(lambda: now, np.random.default_rng(0))
    return change_items(connection, cache, now, ids, event_of, **why)


def withdraw(
    connection: Connection, campaign_id: int, ids: Sequence[int], now: float, reason: str = ""
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
    get_campaign(connection, campaign_id, lock=True)

    def event_of(item: LoadedItem) -> Event | None:
        there = item.campaign.id == campaign_id and item.status != ItemStatus.WITHDRAWN
        return Withdrawn() if there else None

    found = _change(connection, now, sorted(ids)[:AT_ONCE], event_of).happened
    if not found:
        return 0
    if any(item.gold is not None for item in found):
        touch(connection, campaign_id)
    tasks = [item.task for item in found]
    said = {"items": len(tasks), "tasks": tasks, "reason": reason}
    note(connection, now, "withdraw", campaign_id, said)
    return len(found)


CLOSED = (ItemStatus.SET_ASIDE, ItemStatus.WITHDRAWN)
SOME_SET_ASIDE = Sql(
    f"""SELECT id FROM items WHERE campaign_id = :campaign AND status = {ItemStatus.SET_ASIDE:d}
    ORDER BY id LIMIT :most"""
)


def items_of_tasks(connection: Connection, campaign_id: int, tasks: Sequence[str]) -> list[int]:
    """Find items that can be reopened by their names; an error names the first that cannot."""
    found = find_items(connection, campaign_id, tasks)
    for item in found:
        if item.status not in CLOSED:
            raise CrowdtreeError(
                f"item {short(item.task)!r} is {item.status.label}: only items set aside or "
                "withdrawn can be reopened"
            )
    return [item.id for item in found]


def reopen(
    connection: Connection, campaign_id: int, now: float, ids: Sequence[int] | None = None
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
    campaign = get_campaign(connection, campaign_id, lock=True)
    if campaign.status == "finishing":
        raise CrowdtreeError(
            f"campaign {campaign_id} is finishing: reopen items when it is finished"
        )
    if ids is None:
        ids = fetch_ids(connection, SOME_SET_ASIDE, campaign=campaign_id, most=AT_ONCE)
    if not ids:
        return 0

    def event_of(item: LoadedItem) -> Event | None:
        there = item.campaign.id == campaign_id and item.status in CLOSED
        return Reopened() if there else None

    found = _change(connection, now, sorted(ids)[:AT_ONCE], event_of).happened
    if not found:
        return 0
    if any(item.gold is not None for item in found):
        touch(connection, campaign_id)
    tasks = [item.task for item in found]
    note(connection, now, "reopen", campaign_id, {"items": len(tasks), "tasks": tasks})
    if campaign.status == "finished" and any(not item.closed for item in found):
        count = plural(len(found), "item")
        pause_finished(connection, campaign_id, now, CampaignReason.ITEMS_REOPENED, count)
    return len(found)
