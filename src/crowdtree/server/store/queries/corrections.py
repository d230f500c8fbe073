"""Labels by hand: the last one of each item, all of an item, and sums over a campaign."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypedDict

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.server.store.db.states import ItemStatus
from crowdtree.server.store.db.tables import activity, corrections, items, labels


class Correction(NamedTuple):
    """A label by hand, or without `label` that the one before was taken back."""

    item_id: int
    label: int | None
    computed: int | None
    """The label that the answers gave at the time."""
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
    own = (corrections.c[name] for name in Correction._fields if name != "by")
    entry = activity.c.id == corrections.c.activity_id
    who = sa.func.coalesce(sa.func.nullif(activity.c.person, ""), activity.c.actor, "").label("by")
    return sa.select(*own, who).join_from(corrections, activity, entry, isouter=True)


def last_corrections(connection: Connection, ids: Sequence[int]) -> dict[int, Correction]:
    """Read the last label by hand of some items, by item."""
    if not ids:
        return {}
    mine = corrections.c.item_id.between(min(ids), max(ids))
    last = sa.select(sa.func.max(corrections.c.id)).where(mine).group_by(corrections.c.item_id)
    rows = connection.execute(_corrections().where(corrections.c.id.in_(last)))
    found = {row.item_id: Correction(*row) for row in rows}
    return {item: found[item] for item in ids if item in found}


def corrections_of(connection: Connection, item: int) -> list[Correction]:
    """Read all labels by hand of an item, in order."""
    mine = _corrections().where(corrections.c.item_id == item).order_by(corrections.c.id)
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
