"""Items for the owner's pages: by status, their history, labels by hand, divided votes."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypedDict, cast

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.core.errors import CrowdtreeError
from crowdtree.io.items import MEDIA
from crowdtree.server.store.db.campaign_row import get_campaign
from crowdtree.server.store.db.sql import is_sqlite
from crowdtree.server.store.db.tables import (
    activity,
    answers,
    checks,
    item_events,
    items,
    labels,
    workers,
)
from crowdtree.server.store.errors import NotFound
from crowdtree.server.store.types import ITEM_STATUSES, ItemStatus, JsonObject, Votes, counted_votes

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


def count_corrected(connection: Connection, campaign_id: int) -> int:
    """Count the items with a label by hand, without withdrawn ones."""
    mine = (items.c.campaign_id == campaign_id, items.c.corrected.is_not(None))
    query = sa.select(sa.func.count()).where(*mine, items.c.status != ItemStatus.WITHDRAWN)
    return int(connection.execute(query).scalar_one())


def replaced_labels(connection: Connection, campaign_id: int) -> list[Replaced]:
    """Count the labels of the answers that a label by hand takes the place of."""
    mine = (items.c.campaign_id == campaign_id, items.c.corrected.is_not(None))
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


CURRENT_FATE = sa.func.coalesce(answers.c.revised_fate, answers.c.fate).label("fate")
"""What became of an answer, under the policy of the item's revision."""
RECENT_LABELS = 500
MAX_DIVIDED = 6
PAGE = 50
LAST_CHARACTER = "\U0010ffff"
"""The last character there is, so that ``prefix <= x < prefix + LAST_CHARACTER``."""


class ItemListing(TypedDict):
    """An item in a list; `cursor` is the position from which the list continues."""

    id: int
    task: str
    status: str
    gold: int | None
    corrected: int | None
    """Class that the owner gave it by hand."""
    label: int | None
    posterior_error: float | None
    reason: str | None
    answers: int | None
    item: JsonObject
    """Every column of the item file that is not blank."""
    cursor: str | int


def some_items(
    connection: Connection,
    campaign_id: int,
    *,
    status: str = "",
    label: int | None = None,
    find: str = "",
    text: str = "",
    after: str = "",
    most: int = PAGE,
) -> list[ItemListing]:
    """Read a page of items with their labels; the last one's `cursor` leads to the next page.

    Items whose name begins with `find` are ordered by name, those with a label by label, others
    by id, so that an index serves each of these queries. With `text`, only items of which a column
    contains it; upper and lower case are the same.
    """
    wanted: list[ItemListing] = []
    while True:
        rows = _some(connection, campaign_id, status, label, find, text, after, most)
        wanted += [row for row in rows if _contains(row["item"], text)]
        if len(rows) < most or len(wanted) >= most:
            return wanted[:most]
        after = str(rows[-1]["cursor"])


def _contains(columns: Mapping[str, object], text: str) -> bool:
    """Whether a column contains a text; the database may have found it in the name of one."""
    return not text or any(text.casefold() in str(value).casefold() for value in columns.values())


def _may_contain(connection: Connection, text: str) -> sa.ColumnElement[bool]:
    """Select the items of which a column may contain a text.

    Letters of ASCII may be upper or lower case, others are compared as they are written.
    """
    spellings = {text, text.lower(), text.upper(), text.capitalize(), text.title()}
    written = {json.dumps(one, ensure_ascii=False)[1:-1] for one in spellings}
    if text.isascii():
        written = {min(written)}
    column = items.c.payload
    # LIKE of SQLite is what ILIKE is elsewhere; without a locale it takes half the time
    like = column.like if is_sqlite(connection) else column.collate("C").ilike
    escaped = (re.sub("[%_/]", "/\\g<0>", one) for one in sorted(written))
    return sa.or_(*(like(f"%{one}%", escape="/") for one in escaped))


def _some(
    connection: Connection,
    campaign_id: int,
    status: str,
    label: int | None,
    find: str,
    text: str,
    after: str,
    most: int,
) -> list[ItemListing]:
    mine = [items.c.campaign_id == campaign_id]
    if text:
        mine.append(_may_contain(connection, text))
    key: sa.ColumnElement[str] | sa.ColumnElement[int]
    if find:
        key = items.c.task
        where = [key > after if after else key >= find, key < find + LAST_CHARACTER]
    else:
        key = items.c.id if label is None else labels.c.id
        where = [key > (int(after) if after.isdecimal() and len(after) < 16 else 0)]
    if label is not None:
        exported = sa.func.coalesce(items.c.corrected, labels.c.label) == label
        there = items.c.status != ItemStatus.WITHDRAWN
        where += [labels.c.campaign_id == campaign_id, exported, there]
    if not status and (find or label is not None):
        return _page(connection, [*mine, *where], key, label, most)
    # Query per status so that the index is used.
    found: list[ItemListing] = []
    for name in [status] if status else ITEM_STATUSES:
        there = items.c.status == ITEM_STATUSES.index(name)
        found += _page(connection, [*mine, there, *where], key, label, most)
    return sorted(found, key=lambda row: row["cursor"])[:most]


def _page(
    connection: Connection,
    where: Sequence[sa.ColumnElement[bool]],
    key: sa.ColumnElement[str] | sa.ColumnElement[int],
    label: int | None,
    most: int,
) -> list[ItemListing]:
    rows = connection.execute(
        sa.select(
            items.c.id,
            items.c.task,
            items.c.status,
            items.c.gold,
            items.c.corrected,
            labels.c.label,
            labels.c.posterior_error,
            labels.c.reason,
            labels.c.answers,
            items.c.payload,
            key.label("cursor"),
        )
        .join_from(items, labels, labels.c.item_id == items.c.id, isouter=label is None)
        .where(*where)
        .order_by(key)
        .limit(most)
    )
    return [_listing(dict(row._mapping)) for row in rows]


def _listing(found: dict[str, Any]) -> ItemListing:
    columns = json.loads(found.pop("payload"))
    return cast(ItemListing, found | {"status": ItemStatus(found["status"]).label, "item": columns})


class ItemPage(TypedDict):
    """A page of items with the names of their classes, and where the next page begins."""

    items: list[JsonObject]
    next: str | None


def page_of_items(
    connection: Connection,
    campaign_id: int,
    *,
    label: str = "",
    most: int = PAGE,
    **wish: str,
) -> ItemPage:
    """Read a page of :func:`some_items` with classes by name; `label` is a class."""
    classes = get_campaign(connection, campaign_id).classes
    if label and label not in classes:
        known = ", ".join(classes)
        raise CrowdtreeError(f"label: expected a class, got {label[:50]!r}; choose from {known}")
    place = classes.index(label) if label else None
    rows = some_items(connection, campaign_id, label=place, most=most, **wish)
    found: list[JsonObject] = []
    for row in rows:
        given = {"gold": row["gold"], "label": row["label"], "corrected": row["corrected"]}
        named = {name: None if at is None else classes[at] for name, at in given.items()}
        found.append({**row, **named})
    return {"items": found, "next": str(rows[-1]["cursor"]) if len(rows) == most else None}


# ------------------------------------------------------------------------------ one item


class HistoryLine(TypedDict):
    """A line of the log of an item, with the name of the worker."""

    id: int
    question: int
    worker_id: int
    kind: str
    value: int | None
    fate: str
    overdue: int
    skill: float
    at: float
    name: str
    report: str
    """What the worker reported about the item."""


class StoredLabel(TypedDict):
    """The label of an item; `path` is JSON text."""

    id: int
    campaign_id: int
    item_id: int
    label: int | None
    posterior_error: float | None
    reason: str
    answers: int
    path: str
    at: float


class StoredCheck(TypedDict):
    """What an audit found; `truth` is none where the person could not tell."""

    label: int
    truth: int | None
    person: str
    at: float


class ItemTrace(TypedDict):
    """An item with its history, its label and the last check of it."""

    id: int
    task: str
    status: str
    gold: int | None
    payload: JsonObject
    answers: list[HistoryLine]
    label: StoredLabel | None
    check: StoredCheck | None
    corrected: int | None
    corrections: list[JsonObject]
    """Every label by hand, and every time one was taken back, with who, when and why."""


def item_trace(connection: Connection, campaign_id: int, item: int) -> ItemTrace:
    """Read an item with every answer to it and its label."""
    row = connection.execute(
        sa.select(items).where(items.c.id == item, items.c.campaign_id == campaign_id)
    ).one_or_none()
    if row is None:
        raise NotFound(f"item {item} is not in campaign {campaign_id}")
    kept = [
        CURRENT_FATE if name == "fate" else answers.c[name]
        for name in HistoryLine.__annotations__
        if name != "name"
    ]
    log = connection.execute(
        sa.select(*kept, workers.c.name)
        .join(workers, workers.c.id == answers.c.worker_id)
        .where(answers.c.item_id == item)
        .order_by(answers.c.id)
    )
    label = connection.execute(sa.select(labels).where(labels.c.item_id == item)).one_or_none()
    check = connection.execute(
        sa.select(*(checks.c[name] for name in StoredCheck.__annotations__))
        .where(checks.c.item_id == item, checks.c.correct.is_not(None))
        .order_by(checks.c.id.desc())
        .limit(1)
    ).one_or_none()
    return {
        "id": row.id,
        "task": row.task,
        "status": ItemStatus(row.status).label,
        "gold": row.gold,
        "payload": json.loads(row.payload),
        "answers": [cast(HistoryLine, dict(line._mapping)) for line in log],
        "label": None if label is None else cast(StoredLabel, dict(label._mapping)),
        "check": None if check is None else cast(StoredCheck, dict(check._mapping)),
        "corrected": row.corrected,
        "corrections": [made._asdict() for made in corrections_of(connection, item)],
    }


def votes_so_far(trace: ItemTrace, questions: Sequence[str]) -> list[Votes]:
    """Votes by question, in order: from the label, or counted while the item is open."""
    if trace["label"] is not None:
        found: list[Votes] = json.loads(trace["label"]["path"])
        return found
    return counted_votes(
        questions, [(line["question"], line["value"], line["fate"]) for line in trace["answers"]]
    )


def items_with_media(connection: Connection, campaign_id: int, most: int) -> list[str]:
    """Read the columns, as JSON, of items that show a file, without those withdrawn."""
    shows = sa.or_(*(items.c.payload.contains(f'"{name}": "') for name in MEDIA))
    mine = (items.c.campaign_id == campaign_id, items.c.status != ItemStatus.WITHDRAWN)
    query = sa.select(items.c.payload).where(*mine, shows).order_by(items.c.id).limit(most)
    return list(connection.execute(query).scalars())


# ------------------------------------------------------------------------------ disagreement


class DividedVote(TypedDict):
    """A vote on one question of an item in which workers disagreed."""

    id: int
    task: str
    label: int | None
    question: str
    yes: int
    no: int


class Divided(NamedTuple):
    """Items and questions on which workers disagreed, among the last labels."""

    labels: int
    items: list[DividedVote]
    questions: dict[str, tuple[int, int]]
    """Votes against the majority, and all votes, by question."""


def divided(connection: Connection, campaign_id: int) -> Divided:
    """Find where workers disagreed most, among the last few hundred labels."""
    rows = connection.execute(
        sa.select(labels.c.item_id, items.c.task, labels.c.path, labels.c.label)
        .join(items, items.c.id == labels.c.item_id)
        .where(labels.c.campaign_id == campaign_id, items.c.status != ItemStatus.WITHDRAWN)
        .order_by(labels.c.id.desc())
        .limit(RECENT_LABELS)
    ).all()
    found: list[tuple[float, int, DividedVote]] = []
    votes: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for row in rows:
        steps: list[Votes] = json.loads(row.path)
        for step in steps:
            against, total = min(step["yes"], step["no"]), step["yes"] + step["no"]
            before = votes[step["question"]]
            votes[step["question"]] = (before[0] + against, before[1] + total)
            if against:
                vote: DividedVote = {
                    "id": row.item_id,
                    "task": row.task,
                    "label": row.label,
                    **step,
                }
                found.append((-against / total, -total, vote))
    found.sort(key=lambda entry: entry[:2])
    return Divided(len(rows), [vote for _, _, vote in found[:MAX_DIVIDED]], dict(votes))


def last_answer_at(connection: Connection, campaign_id: int) -> float | None:
    """When the last answer came."""
    found = connection.execute(
        sa.select(answers.c.at)
        .where(answers.c.campaign_id == campaign_id)
        .order_by(answers.c.id.desc())
        .limit(1)
    ).scalar_one_or_none()
    return None if found is None else float(found)
