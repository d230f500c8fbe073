"""Label items by hand: the owner's label is kept beside the one that the answers give.

An item that is labelled by hand is known: nobody is asked about it any more. If it is open, its
answers are concluded as they are; a label that it has stays. The label of the answers goes on to be
their replay, and workers are judged by it, not by the owner's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypedDict

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.campaign.events import Corrected
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.text import plural, short
from crowdtree.server.reasons import CampaignReason
from crowdtree.server.store.corrections.common import (
    FoundItem,
    begin,
    check_reason,
    find_items,
)
from crowdtree.server.store.db import statements as sql
from crowdtree.server.store.db.activity import note
from crowdtree.server.store.db.campaign_row import Campaign, get_campaign
from crowdtree.server.store.db.sql import fetch, run_many
from crowdtree.server.store.db.statements import relearn
from crowdtree.server.store.db.states import ItemStatus
from crowdtree.server.store.db.tables import audits
from crowdtree.server.store.owner.campaigns import pause_finished
from crowdtree.server.store.serving.settle import record, settle
from crowdtree.server.store.serving.unit_of_work import UnitOfWork


class LabelledByHand(TypedDict):
    """How many labels were given by hand, and how many were taken back."""

    campaign: int
    corrected: int
    undone: int
    opened: int
    """Questions that are asked again because labels were taken back."""


def correct(
    connection: Connection,
    number: int,
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
    campaign = get_campaign(connection, number, lock=True)
    check_reason(reason)
    changes = check_wanted(connection, campaign, wanted)
    made: LabelledByHand = {"campaign": number, "corrected": 0, "undone": 0, "opened": 0}
    if not changes:
        return made
    ids = [item.id for item, _ in changes]
    computed = {row.item_id: row.label for row in fetch(connection, sql.LABELS_OF_ITEMS, ids=ids)}
    audited = sa.select(sa.func.max(audits.c.at)).where(audits.c.campaign_id == number)
    # after the audit that did not know it, whatever the clocks of other processes say
    at = max(now, math.nextafter(connection.execute(audited).scalar_one() or 0.0, math.inf))
    for _, label in changes:
        made["undone" if label is None else "corrected"] += 1
    unit = begin(connection, campaign, ids, now)
    activities = {
        item.id: _note(connection, campaign, item, label, computed.get(item.id), at, reason)
        for item, label in changes
    }
    reopened = _apply(unit, {item.id: label for item, label in changes}, activities, at, reason)
    unit.write()
    made["opened"] = unit.opened[number]
    if reopened and campaign.status == "finished":
        count = plural(reopened, "label")
        pause_finished(connection, number, now, CampaignReason.LABELS_UNDONE, count)
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


def _apply(
    unit: UnitOfWork,
    wanted: Mapping[int, int | None],
    activities: Mapping[int, int],
    at: float,
    reason: str,
) -> int:
    """Give the labels and take them back; counts the items that are open again."""
    opened, people = 0, set[int]()
    for place, label in wanted.items():
        item = unit.items[place]
        before = item.view
        record(unit, item, Corrected(label, at=at), reason, activities[place])
        if before.closed and not item.view.closed:
            opened += 1
            people |= {line.worker_id for line in item.log}
        item.withdraw_leases()
        settle(unit, item, before)
    # A label that is gone is no evidence about workers any more.
    rows = (relearn(worker)._asdict() for worker in sorted(people))
    run_many(unit.connection, sql.ADD_JUDGEMENT, rows)
    return opened
