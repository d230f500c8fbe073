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

from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.text import plural, short
from crowdtree.server.store.corrections.common import (
    FoundItem,
    begin,
    check_reason,
    find_items,
    logs_of,
)
from crowdtree.server.store.db import statements as sql
from crowdtree.server.store.db.activity import note
from crowdtree.server.store.db.campaign_row import Campaign, get_campaign
from crowdtree.server.store.db.sql import fetch, run_many
from crowdtree.server.store.db.states import ItemStatus
from crowdtree.server.store.db.tables import audits, corrections, items
from crowdtree.server.store.owner.campaigns import pause_finished
from crowdtree.server.store.serving.item import CORRECTED, OpenItem
from crowdtree.server.store.serving.revise import revise
from crowdtree.server.store.serving.settle import settle
from crowdtree.server.store.serving.unit_of_work import UnitOfWork
from crowdtree.server.store.serving.worker_quality import relearn


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
    for item, label in changes:
        _write(connection, campaign, item, label, computed.get(item.id), at, reason)
        made["undone" if label is None else "corrected"] += 1
    unit = begin(connection, campaign, ids, now)  # now that they are known
    _close_open(unit)
    reopened = _reopen(unit)
    unit.write()
    made["opened"] = unit.opened[number]
    if reopened and campaign.status == "finished":
        text = f"{plural(reopened, 'label')} by hand taken back: resume to ask about the items"
        pause_finished(connection, number, now, text)
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


def _write(
    connection: Connection,
    campaign: Campaign,
    item: FoundItem,
    label: int | None,
    computed: int | None,
    at: float,
    reason: str,
) -> None:
    """Write a label by hand, or that there is none any more, with who and why."""
    mine = items.update().where(items.c.id == item.id)
    connection.execute(mine.values(corrected=label))
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
    entry = note(connection, at, "correct", campaign.id, said)
    row = {"campaign_id": campaign.id, "item_id": item.id, "label": label, "computed": computed}
    connection.execute(corrections.insert().values(**row, reason=reason, at=at, activity_id=entry))


def _close_open(unit: UnitOfWork) -> None:
    """Conclude the items that are known now on the answers so far."""
    for item in unit.items.values():
        if item.corrected is None or item.closed:
            continue
        if item.status == ItemStatus.NEW:
            unit.count(item.campaign.id, ItemStatus.NEW.label, -1)
            unit.count(item.campaign.id, ItemStatus.OPEN.label)
            unit.count_start(item.campaign)
            item.status, item.revision = ItemStatus.OPEN, item.campaign.revision
        item.close(item.campaign.policy.conclude(item.item.state, CORRECTED))
        settle(unit, item)


def _reopen(unit: UnitOfWork) -> int:
    """Ask again about items that were closed only because they were known; counts them."""
    labels = unit.labels_of([item.id for item in unit.items.values() if item.corrected is None])
    found: list[OpenItem] = [
        unit.items[place] for place, label in labels.items() if label.reason == CORRECTED
    ]
    log = logs_of(unit.connection, [item.id for item in found])
    for item in found:
        revise(unit, item, log[item.id], labels[item.id], reopen=True)
    # A label that is gone is no evidence about workers any more.
    people = sorted({line.worker_id for lines in log.values() for line in lines})
    run_many(unit.connection, sql.ADD_JUDGEMENT, (relearn(n)._asdict() for n in people))
    return sum(not item.closed for item in found)
