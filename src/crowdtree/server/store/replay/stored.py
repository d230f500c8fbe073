"""Everything that the database holds about the items of a campaign."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from sqlalchemy.engine import Connection

from crowdtree.server.store.db.sql import Query, fetch
from crowdtree.server.store.db.statements import (
    ITEM_EVENTS,
    LOG,
    ItemEventRow,
    ItemRow,
    LabelLine,
    Lease,
    LogLine,
    OpenQuestion,
)
from crowdtree.server.store.db.states import ItemStatus

PAGE = 10_000
AT_ONCE = 500


ITEMS_AFTER = Query(
    ItemRow,
    f"""SELECT {", ".join(ItemRow._fields)} FROM items
    WHERE +campaign_id = :campaign AND id > :after ORDER BY id LIMIT :most""",
)
"""The sign keeps SQLite from sorting all items of the campaign for every page."""
LABELS = Query(
    LabelLine,
    """SELECT campaign_id, item_id, label, posterior_error, reason, answers, path, at FROM labels
    WHERE item_id IN :ids""",
)
QUESTIONS = Query(
    OpenQuestion,
    f"SELECT {', '.join(OpenQuestion._fields)} FROM open_questions WHERE item_id IN :ids",
)
LEASES = Query(
    Lease,
    """SELECT id, nonce, item_id, worker_id, question, state, given_at, expires_at
    FROM leases WHERE item_id IN :ids ORDER BY id""",
)


@dataclass
class StoredItem:
    """What the database holds about one item."""

    id: int
    task: str
    status: ItemStatus
    gold: int | None
    state: str | None
    revision: int
    judged_by: int
    reopened_after: int
    log: list[LogLine]
    events: list[ItemEventRow]
    label: LabelLine | None
    questions: list[OpenQuestion]
    leases: list[Lease]
    truth: int | None
    """True class that a check has found."""
    min_answers: int
    """Answers that it takes before its label."""
    corrected: int | None
    """Class that the owner gave it by hand."""


def item_pages(connection: Connection, number: int) -> Iterator[list[ItemRow]]:
    """Read the rows of the items of a campaign, some thousands at a time."""
    after = 0
    while rows := fetch(connection, ITEMS_AFTER, campaign=number, after=after, most=PAGE):
        yield rows
        after = rows[-1].id


def stored_items(
    connection: Connection, rows: Sequence[ItemRow], truths: Mapping[int, int]
) -> Iterator[StoredItem]:
    """Read everything about some items; `truths` are the true classes that checks have found."""
    for begin in range(0, len(rows), AT_ONCE):
        some = rows[begin : begin + AT_ONCE]
        ids = [row.id for row in some]
        log, questions = _by_item(connection, LOG, ids), _by_item(connection, QUESTIONS, ids)
        events = _by_item(connection, ITEM_EVENTS, ids)
        leases, labels = _by_item(connection, LEASES, ids), _by_item(connection, LABELS, ids)
        for row in some:
            yield StoredItem(
                row.id,
                row.task,
                ItemStatus(row.status),
                row.gold,
                row.state,
                row.revision,
                row.judged_by,
                row.reopened_after,
                log.get(row.id, []),
                events.get(row.id, []),
                next(iter(labels.get(row.id, [])), None),
                questions.get(row.id, []),
                leases.get(row.id, []),
                truths.get(row.id),
                row.min_answers,
                row.corrected,
            )


class _OfItem(Protocol):
    def __init__(self, *columns: object) -> None: ...

    @property
    def item_id(self) -> int: ...


R = TypeVar("R", bound=_OfItem)


def _by_item(connection: Connection, query: Query[R], ids: list[int]) -> dict[int, list[R]]:
    found: dict[int, list[R]] = {}
    for row in fetch(connection, query, ids=ids):
        found.setdefault(row.item_id, []).append(row)
    return found
