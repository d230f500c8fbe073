"""Labels, answers and the trace of an item, read in pieces so that a million rows fit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.store.campaigns import NotFound
from crowdtree.store.tables import ITEM, answers, items, labels, workers

__all__ = ["answer_rows", "item_trace", "label_rows", "worker_name"]

PIECE = 5000


def label_rows(
    connection: Connection, number: int, classes: list[str], after: int = 0, most: int = PIECE
) -> list[dict[str, Any]]:
    """Read up to `most` labels after a position (their ``id``), in the order they were made."""
    found = connection.execute(
        sa.select(
            labels.c.id,
            items.c.task,
            labels.c.label,
            items.c.status,
            labels.c.posterior_error,
            labels.c.reason,
            labels.c.answers,
            labels.c.path,
            labels.c.at,
        )
        .join(items, items.c.id == labels.c.item_id)
        .where(labels.c.campaign_id == number, labels.c.id > after)
        .order_by(labels.c.id)
        .limit(most)
    )
    return [
        {
            "id": row.id,
            "task": row.task,
            "label": None if row.label is None else classes[row.label],
            "status": ITEM.names[row.status],
            "posterior_error": row.posterior_error,
            "reason": row.reason,
            "answers": row.answers,
            "path": json.loads(row.path),
            "at": row.at,
        }
        for row in found
    ]


def answer_rows(
    connection: Connection,
    number: int,
    questions: list[str],
    after: int = 0,
    most: int = PIECE,
    standing: bool = False,
) -> list[dict[str, Any]]:
    """Read up to `most` lines of the log after a position, in order.

    `task`, `worker` and `label` are what crowd-kit reads; `label` is 1 (yes), 0 (no), or empty
    for a skip or an undo. With `standing`, only answers, without those that were taken back.
    """
    kept = []
    if standing:
        later = answers.alias("later")
        undone = sa.exists().where(
            later.c.lease_id == answers.c.lease_id,
            later.c.kind == "undo",
            later.c.id > answers.c.id,
        )
        kept = [answers.c.kind == "answer", ~undone]
    found = connection.execute(
        sa.select(
            answers.c.id,
            items.c.task,
            answers.c.question,
            answers.c.worker_id,
            workers.c.name,
            answers.c.value,
            answers.c.kind,
            answers.c.fate,
            answers.c.overdue,
            answers.c.at,
        )
        .join(items, items.c.id == answers.c.item_id)
        .join(workers, workers.c.id == answers.c.worker_id)
        .where(answers.c.campaign_id == number, answers.c.id > after, *kept)
        .order_by(answers.c.id)
        .limit(most)
    )
    return [
        {
            "id": row.id,
            "task": row.task,
            "question": questions[row.question],
            "worker": worker_name(row.worker_id, row.name),
            "label": row.value,
            "kind": row.kind,
            "fate": row.fate,
            "late": bool(row.overdue),
            "at": row.at,
        }
        for row in found
    ]


def worker_name(number: int, name: str) -> str:
    """Name a worker so that no two are the same.

    >>> worker_name(7, ""), worker_name(7, "Ann")
    ('w7', 'w7 Ann')
    """
    return f"w{number} {name}".strip()


def item_trace(connection: Connection, number: int, item: int) -> dict[str, Any]:
    """Read an item with every answer to it and its label."""
    row = connection.execute(
        sa.select(items).where(items.c.id == item, items.c.campaign_id == number)
    ).one_or_none()
    if row is None:
        raise NotFound(f"item {item} is not in campaign {number}")
    log = connection.execute(
        sa.select(answers, workers.c.name)
        .join(workers, workers.c.id == answers.c.worker_id)
        .where(answers.c.item_id == item)
        .order_by(answers.c.id)
    )
    label = connection.execute(sa.select(labels).where(labels.c.item_id == item)).one_or_none()
    kept = (
        "id",
        "question",
        "worker_id",
        "kind",
        "value",
        "fate",
        "overdue",
        "skill",
        "at",
        "name",
    )
    return {
        "id": row.id,
        "task": row.task,
        "status": ITEM.names[row.status],
        "gold": row.gold,
        "payload": json.loads(row.payload),
        "answers": [{name: line._mapping[name] for name in kept} for line in log],
        "label": None if label is None else dict(label._mapping),
    }


def pieces(read: Any) -> Iterator[list[dict[str, Any]]]:
    """Call ``read(after)`` until it finds nothing more."""
    after = 0
    while True:
        rows = read(after)
        if not rows:
            return
        yield rows
        after = rows[-1]["id"]
