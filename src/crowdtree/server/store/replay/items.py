"""What the database holds about an item, and where it differs from the fold of its log."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

from sqlalchemy.engine import Connection

from crowdtree.server.store.db import statements as sql
from crowdtree.server.store.db.sql import Query, fetch
from crowdtree.server.store.types import ItemStatus

PAGE = 10_000
AT_ONCE = 500
ITEMS_AFTER = Query(
    sql.ItemRow,
    f"""SELECT {", ".join(sql.ItemRow._fields)} FROM items
    WHERE +campaign_id = :campaign AND id > :after ORDER BY id LIMIT :most""",
)
"""The sign keeps SQLite from sorting all items of the campaign for every page."""
LEASES = Query(
    sql.Lease,
    """SELECT id, nonce, item_id, worker_id, question, state, given_at, expires_at
    FROM leases WHERE item_id IN :ids ORDER BY id""",
)


class StoredItem(NamedTuple):
    """What the database holds about one item."""

    row: sql.ItemRow
    log: list[sql.LogLine]
    events: list[sql.ItemEventRow]
    label: sql.LabelOfItem | None
    questions: list[sql.OpenQuestion]
    leases: list[sql.Lease]
    truth: int | None
    """True class that a check has found."""

    @property
    def status(self) -> ItemStatus:
        """How far the item is."""
        return ItemStatus(self.row.status)

    @property
    def gold(self) -> int | None:
        """The class of a gold item."""
        return self.row.gold


def item_pages(connection: Connection, campaign_id: int) -> Iterator[list[sql.ItemRow]]:
    """Read the rows of the items of a campaign, some thousands at a time."""
    after = 0
    while rows := fetch(connection, ITEMS_AFTER, campaign=campaign_id, after=after, most=PAGE):
        yield rows
        after = rows[-1].id


def stored_items(
    connection: Connection, rows: Sequence[sql.ItemRow], truths: Mapping[int, int]
) -> Iterator[StoredItem]:
    """Read everything about some items; `truths` are the true classes that checks have found."""
    for begin in range(0, len(rows), AT_ONCE):
        some = rows[begin : begin + AT_ONCE]
        ids = [row.id for row in some]
        log = _by_item(fetch(connection, sql.LOG, ids=ids))
        events = _by_item(fetch(connection, sql.ITEM_EVENTS, ids=ids))
        labels = _by_item(fetch(connection, sql.LABELS_OF_ITEMS, ids=ids))
        questions = _by_item(fetch(connection, sql.QUESTIONS_OF_ITEMS, ids=ids, leases=[]))
        leases = _by_item(fetch(connection, LEASES, ids=ids))
        for row in some:
            yield StoredItem(
                row,
                log.get(row.id, []),
                events.get(row.id, []),
                next(iter(labels.get(row.id, [])), None),
                questions.get(row.id, []),
                leases.get(row.id, []),
                truths.get(row.id),
            )


class _OfItem(Protocol):
    @property
    def item_id(self) -> int: ...


R = TypeVar("R", bound=_OfItem)


def _by_item(rows: Sequence[R]) -> dict[int, list[R]]:
    found: dict[int, list[R]] = {}
    for row in rows:
        found.setdefault(row.item_id, []).append(row)
    return found


RELATIVE, ABSOLUTE = 1e-9, 1e-12
"""Tolerances for floating-point numbers."""


def same(
    stored: object, replayed: object, relative: float = RELATIVE, absolute: float = ABSOLUTE
) -> bool:
    """Whether two JSON values agree, floating-point numbers within the tolerances.

    >>> same({"a": [0.1 + 0.2, 1]}, {"a": [0.3, 1]}), same([1], [2])
    (True, False)
    """
    if isinstance(stored, dict) and isinstance(replayed, dict):
        alike = (same(stored[key], replayed[key], relative, absolute) for key in stored)
        return stored.keys() == replayed.keys() and all(alike)
    if isinstance(stored, list) and isinstance(replayed, list):
        pairs = zip(stored, replayed, strict=False)
        return len(stored) == len(replayed) and all(
            same(one, other, relative, absolute) for one, other in pairs
        )
    if isinstance(stored, float) and isinstance(replayed, float | int):
        return math.isclose(stored, replayed, rel_tol=relative, abs_tol=absolute)
    return stored == replayed
