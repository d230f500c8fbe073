"""What workers reported about items, for the owner."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.server.store.db.states import ItemStatus
from crowdtree.server.store.db.tables import answers, items, workers
from crowdtree.server.store.queries.export import PIECE, worker_name

DONE = (ItemStatus.LABELLED, ItemStatus.WITHDRAWN)
"""Statuses of items about which a report needs no attention."""


class ReportRow(TypedDict):
    """A report: the item, the question that was asked, by whom, why and in which words."""

    id: int
    item_id: int
    worker_id: int
    task: str
    question: str
    worker: str
    reason: str
    words: str
    status: str
    """Status of the item."""
    at: float


def _standing(number: int) -> tuple[sa.ColumnElement[bool], ...]:
    """Reports of a campaign."""
    return answers.c.campaign_id == number, answers.c.report != ""


def report_rows(
    connection: Connection,
    number: int,
    questions: Sequence[str],
    after: int = 0,
    most: int = PIECE,
    newest: bool = False,
    item: int | None = None,
) -> list[ReportRow]:
    """Read reports after an id, or the newest first; of one item or of all."""
    which = [*_standing(number), answers.c.id > after]
    if item is not None:
        which.append(answers.c.item_id == item)
    found = connection.execute(
        sa.select(answers, items.c.task, items.c.status, workers.c.name)
        .join(items, items.c.id == answers.c.item_id)
        .join(workers, workers.c.id == answers.c.worker_id)
        .where(*which)
        .order_by(answers.c.id.desc() if newest else answers.c.id)
        .limit(most)
    )
    return [
        {
            "id": row.id,
            "item_id": row.item_id,
            "worker_id": row.worker_id,
            "task": row.task,
            "question": questions[row.question],
            "worker": worker_name(row.worker_id, row.name),
            "reason": row.report.partition(": ")[0],
            "words": row.report.partition(": ")[2],
            "status": ItemStatus(row.status).label,
            "at": row.at,
        }
        for row in found
    ]


def reported_items(connection: Connection, number: int) -> int:
    """Count reported items that are neither labelled nor withdrawn."""
    found = (
        sa.select(sa.func.count(answers.c.item_id.distinct()))
        .join(items, items.c.id == answers.c.item_id)
        .where(*_standing(number), items.c.status.not_in(DONE))
    )
    return int(connection.execute(found).scalar_one())
