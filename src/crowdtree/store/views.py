"""What the owner's pages look up: items by status, divided votes, a worker's answers."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.problem import Problem
from crowdtree.store.campaigns import get
from crowdtree.store.people import worker_facts
from crowdtree.store.tables import ITEM, answers, items, labels, workers

__all__ = [
    "WORKER_ORDERS",
    "Divided",
    "divided",
    "last_answer_at",
    "paused_workers",
    "some_items",
    "some_workers",
    "worker_log",
]

RECENT_LABELS = 500
PAGE = 50
WORKERS_PAGE = 100
WORKER_ORDERS: dict[str, Any] = {
    "answers": workers.c.answers.desc(),
    "reliability": workers.c.skill,  # the more skill, the more reliable
    "seen": workers.c.seen_at.desc(),
    "name": sa.func.lower(workers.c.name),
}
LAST = "\U0010ffff"
"""The last character there is: what begins with some letters stands before them and this."""


class Divided(NamedTuple):
    """Items and questions on which people disagreed, among the last labels."""

    labels: int
    items: list[dict[str, Any]]
    questions: dict[str, tuple[int, int]]
    """Votes against the majority of their vote, and all votes, by question."""


def some_items(
    connection: Connection,
    number: int,
    *,
    status: str = "",
    label: int | None = None,
    find: str = "",
    after: str = "",
    most: int = PAGE,
) -> list[dict[str, Any]]:
    """Read a page of items with their labels; `cursor` of the last one leads to the next page.

    Those whose name begins with `find` come in the order of their names, those with a label in the
    order of their labels, others as they were added: so that an index leads there, however many
    there are.
    """
    if find:
        key: Any = items.c.task
        where = [key > after if after else key >= find, key < find + LAST]
    else:
        key = items.c.id if label is None else labels.c.id
        where = [key > (int(after) if after.isdecimal() and len(after) < 16 else 0)]
    if label is not None:
        where += [labels.c.campaign_id == number, labels.c.label == label]
    wanted = [status] if status else list(ITEM.names)
    if not status and (find or label is not None):
        return _page(connection, [items.c.campaign_id == number, *where], key, label, most)
    # one status after the other: that is how the index goes
    found: list[dict[str, Any]] = []
    for name in wanted:
        mine = [items.c.campaign_id == number, items.c.status == ITEM.names.index(name)]
        found += _page(connection, [*mine, *where], key, label, most)
    return sorted(found, key=lambda row: row["cursor"])[:most]


def _page(
    connection: Connection, where: list[Any], key: Any, label: int | None, most: int
) -> list[dict[str, Any]]:
    rows = connection.execute(
        sa.select(
            items.c.id,
            items.c.task,
            items.c.status,
            items.c.gold,
            labels.c.label,
            labels.c.posterior_error,
            labels.c.reason,
            labels.c.answers,
            key.label("cursor"),
        )
        .join_from(items, labels, labels.c.item_id == items.c.id, isouter=label is None)
        .where(*where)
        .order_by(key)
        .limit(most)
    )
    return [{**row._mapping, "status": ITEM.names[row.status]} for row in rows]


def divided(connection: Connection, number: int, most: int = 6) -> Divided:
    """Find where people disagreed most, among the last few hundred labels."""
    rows = connection.execute(
        sa.select(labels.c.item_id, items.c.task, labels.c.path, labels.c.label)
        .join(items, items.c.id == labels.c.item_id)
        .where(labels.c.campaign_id == number)
        .order_by(labels.c.id.desc())
        .limit(RECENT_LABELS)
    ).all()
    found: list[tuple[float, int, dict[str, Any]]] = []
    votes: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for item_id, task, path, label in rows:
        for step in json.loads(path):
            against, total = min(step["yes"], step["no"]), step["yes"] + step["no"]
            votes[step["question"]][0] += against
            votes[step["question"]][1] += total
            if against:
                facts = {"id": item_id, "task": task, "label": label, **step}
                found.append((-against / total, -total, facts))
    found.sort(key=lambda entry: entry[:2])
    questions = {name: (against, total) for name, (against, total) in votes.items()}
    return Divided(len(rows), [facts for _, _, facts in found[:most]], questions)


def last_answer_at(connection: Connection, number: int) -> float | None:
    """Say when the last answer came."""
    found = connection.execute(
        sa.select(answers.c.at)
        .where(answers.c.campaign_id == number)
        .order_by(answers.c.id.desc())
        .limit(1)
    ).scalar_one_or_none()
    return None if found is None else float(found)


def paused_workers(connection: Connection, number: int) -> int:
    """Count workers whom the server paused by itself."""
    return int(
        connection.execute(
            sa.select(sa.func.count()).where(
                workers.c.campaign_id == number,
                workers.c.status == "paused",
                workers.c.status_reason != "by the owner",
            )
        ).scalar_one()
    )


def some_workers(
    connection: Connection,
    number: int,
    problem: Problem,
    *,
    sort: str = "answers",
    skip: int = 0,
    most: int = WORKERS_PAGE,
) -> list[dict[str, Any]]:
    """Read a page of workers with their record and reliability, in an order of `WORKER_ORDERS`."""
    rows = connection.execute(
        sa.select(workers)
        .where(workers.c.campaign_id == number)
        .order_by(WORKER_ORDERS[sort], workers.c.id)
        .offset(skip)
        .limit(most)
    )
    return [worker_facts(dict(row._mapping), problem) for row in rows]


def worker_log(
    connection: Connection, number: int, worker: int, most: int = 200
) -> list[dict[str, Any]]:
    """Read a worker's last answers, the newest first."""
    get(connection, number)
    rows = connection.execute(
        sa.select(
            answers.c.id,
            answers.c.item_id,
            items.c.task,
            answers.c.question,
            answers.c.kind,
            answers.c.value,
            answers.c.fate,
            answers.c.at,
            items.c.gold,
            labels.c.label,
        )
        .join(items, items.c.id == answers.c.item_id)
        .outerjoin(labels, labels.c.item_id == answers.c.item_id)
        .where(answers.c.worker_id == worker, answers.c.campaign_id == number)
        .order_by(answers.c.id.desc())
        .limit(most)
    )
    return [dict(row._mapping) for row in rows]
