"""Labels by hand: the last one of each item, all of an item, and sums over a campaign."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypedDict

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.server.store.db.states import ItemStatus
from crowdtree.server.store.db.tables import activity, item_events, items, labels

BY_HAND = item_events.c.kind == "corrected"
"""Events by which the owner labelled an item, or took that label back."""


class Correction(NamedTuple):
    """A label by hand, or without `label` that the one before was taken back."""

    item_id: int
    label: int | None
    reason: str
    at: float
    by: str


class Replaced(TypedDict):
    """Items with one label of the answers and one by hand."""

    computed: int
    by_hand: int
    items: int
    error: float
    """Sum of the stated errors of the labels of the answers."""


def _corrections() -> sa.Select[Any]:
    own = item_events.c
    entry = activity.c.id == own.activity_id
    who = sa.func.coalesce(sa.func.nullif(activity.c.person, ""), activity.c.actor, "").label("by")
    columns = (own.item_id, own.value.label("label"), own.reason, own.at, who)
    return sa.select(*columns).join_from(item_events, activity, entry, isouter=True)


def last_corrections(connection: Connection, ids: Sequence[int]) -> dict[int, Correction]:
    """Read the last label by hand of some items, by item."""
    if not ids:
        return {}
    mine = item_events.c.item_id.between(min(ids), max(ids))
    last = sa.select(sa.func.max(item_events.c.id)).where(mine, BY_HAND)
    last = last.group_by(item_events.c.item_id)
    rows = connection.execute(_corrections().where(item_events.c.id.in_(last)))
    found = {row.item_id: Correction(*row) for row in rows}
    return {item: found[item] for item in ids if item in found}


def corrections_of(connection: Connection, item: int) -> list[Correction]:
    """Read all labels by hand of an item, in order."""
    mine = _corrections().where(item_events.c.item_id == item, BY_HAND).order_by(item_events.c.id)
    return [Correction(*row) for row in connection.execute(mine)]


def count_corrected(connection: Connection, number: int) -> int:
    """Count the items with a label by hand, without withdrawn ones."""
    mine = (items.c.campaign_id == number, items.c.corrected.is_not(None))
    query = sa.select(sa.func.count()).where(*mine, items.c.status != ItemStatus.WITHDRAWN)
    return int(connection.execute(query).scalar_one())


def replaced_labels(connection: Connection, number: int) -> list[Replaced]:
    """Count the labels of the answers that a label by hand takes the place of."""
    mine = (items.c.campaign_id == number, items.c.corrected.is_not(None))
    rows = connection.execute(
        sa.select(
            labels.c.label,
            items.c.corrected,
            sa.func.count().label("items"),
            sa.func.sum(labels.c.posterior_error).label("error"),
        )
        .join_from(items, labels, labels.c.item_id == items.c.id)
        .where(*mine, items.c.status == ItemStatus.LABELLED)
        .group_by(labels.c.label, items.c.corrected)
    )
    return [
        {"computed": row.label, "by_hand": row.corrected, "items": row.items, "error": row.error}
        for row in rows
    ]
