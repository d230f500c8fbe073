"""Labels, answers, payments and reports for downloads, read in pieces that fit in memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypedDict, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.server.settings.groups import MICRO
from crowdtree.server.store.db.campaign_row import Campaign
from crowdtree.server.store.db.tables import answers, checks, items, labels, workers
from crowdtree.server.store.queries.items import last_corrections
from crowdtree.server.store.tokens import code_of
from crowdtree.server.store.types import ItemStatus, JsonObject, Votes

PIECE = 5000
M = TypeVar("M", bound=Mapping[str, object])


class LabelRow(TypedDict):
    """The label of an item; an item without one was set aside or withdrawn for a reason."""

    id: int
    task: str
    label: str | None
    """The owner's label where there is one, otherwise that of the answers."""
    status: str
    posterior_error: float | None
    """Chance that the label is wrong; 0 for one by hand, which counts as known."""
    reason: str
    answers: int
    path: list[Votes]
    at: float
    checked: bool
    """Whether an audit has checked the label."""
    truth: str | None
    """The true class that the check found; none where the person could not tell."""
    computed: str | None
    """The label that the answers give."""
    computed_error: float | None
    corrected: bool
    """Whether the owner has labelled the item by hand."""
    corrected_by: str | None
    corrected_at: float | None
    corrected_why: str | None


class ItemRow(TypedDict):
    """An item, with the columns of the item file that are not blank."""

    id: int
    payload: JsonObject


class AnswerRow(TypedDict):
    """A line of the log, in the words of crowd-kit: `label` is 1 (yes), 0 (no) or empty."""

    id: int
    task: str
    question: str
    worker: str
    label: int | None
    kind: str
    fate: str
    late: bool
    at: float
    report: str
    """What the worker reported about the item."""


def label_rows(
    connection: Connection,
    campaign_id: int,
    classes: Sequence[str],
    after: int = 0,
    most: int = PIECE,
) -> list[LabelRow]:
    """Read up to `most` labels after a position (their ``id``), in the order they were made."""
    found = connection.execute(
        sa.select(labels, items.c.task, items.c.status, items.c.corrected)
        .join(items, items.c.id == labels.c.item_id)
        .where(labels.c.campaign_id == campaign_id, labels.c.id > after)
        .order_by(labels.c.id)
        .limit(most)
    ).all()
    checked = _checked(connection, campaign_id, found)
    by_hand = {
        row.item_id: row.corrected
        for row in found
        if row.corrected is not None and row.status != ItemStatus.WITHDRAWN
    }
    given = last_corrections(connection, list(by_hand))
    made: list[LabelRow] = []
    for row in found:
        hand = given.get(row.item_id)
        label = by_hand.get(row.item_id, row.label)
        truth = checked.get(row.item_id)
        made.append(
            {
                "id": row.id,
                "task": row.task,
                "label": None if label is None else classes[label],
                "status": ItemStatus(row.status).label,
                "posterior_error": row.posterior_error if hand is None else 0.0,
                "reason": row.reason,
                "answers": row.answers,
                "path": json.loads(row.path),
                "at": row.at,
                "checked": row.item_id in checked,
                "truth": None if truth is None else classes[truth],
                "computed": None if row.label is None else classes[row.label],
                "computed_error": row.posterior_error,
                "corrected": hand is not None,
                "corrected_by": None if hand is None else hand.by,
                "corrected_at": None if hand is None else hand.at,
                "corrected_why": None if hand is None else hand.reason,
            }
        )
    return made


def label_payloads(connection: Connection, campaign_id: int, after: int = 0) -> list[JsonObject]:
    """Read what the item file said about the items that :func:`label_rows` lists."""
    found = connection.execute(
        sa.select(items.c.payload)
        .join(labels, labels.c.item_id == items.c.id)
        .where(labels.c.campaign_id == campaign_id, labels.c.id > after)
        .order_by(labels.c.id)
        .limit(PIECE)
    )
    return [json.loads(row.payload) for row in found]


def item_rows(connection: Connection, campaign_id: int, after: int = 0) -> list[ItemRow]:
    """Read the next items after an id, with what the item file said about them."""
    found = connection.execute(
        sa.select(items.c.id, items.c.payload)
        .where(items.c.campaign_id == campaign_id, items.c.id > after)
        .order_by(items.c.id)
        .limit(PIECE)
    )
    return [{"id": row.id, "payload": json.loads(row.payload)} for row in found]


def _checked(
    connection: Connection, campaign_id: int, rows: Sequence[sa.Row[Any]]
) -> dict[int, int | None]:
    """What audits found about some items; where nobody could tell, if the label is the same."""
    label = {row.item_id: row.label for row in rows}
    if not label:
        return {}
    found = connection.execute(
        sa.select(checks.c.item_id, checks.c.label, checks.c.truth)
        .where(
            checks.c.campaign_id == campaign_id,
            checks.c.item_id.between(min(label), max(label)),
            checks.c.correct.is_not(None),
        )
        .order_by(checks.c.id)
    )
    return {
        item: truth
        for item, old, truth in found
        if item in label and (truth is not None or label[item] == old)
    }


def answer_rows(
    connection: Connection,
    campaign_id: int,
    questions: Sequence[str],
    after: int = 0,
    standing: bool = False,
) -> list[AnswerRow]:
    """Read the next lines of the log after a position, in order.

    With `standing`, only answers, without those that were excluded.
    """
    kept: list[sa.ColumnElement[bool]] = []
    if standing:
        excluded = sa.func.coalesce(answers.c.revised_fate, "") == "excluded"
        kept = [answers.c.kind == "answer", ~excluded]
    found = connection.execute(
        sa.select(answers, items.c.task, workers.c.name)
        .join(items, items.c.id == answers.c.item_id)
        .join(workers, workers.c.id == answers.c.worker_id)
        .where(answers.c.campaign_id == campaign_id, answers.c.id > after, *kept)
        .order_by(answers.c.id)
        .limit(PIECE)
    )
    return [
        {
            "id": row.id,
            "task": row.task,
            "question": questions[row.question],
            "worker": worker_name(row.worker_id, row.name),
            "label": row.value,
            "kind": row.kind,
            "fate": row.revised_fate or row.fate,
            "late": bool(row.overdue),
            "at": row.at,
            "report": row.report,
        }
        for row in found
    ]


def worker_name(number: int, name: str) -> str:
    """Make a unique name of a worker.

    >>> worker_name(7, ""), worker_name(7, "Ann")
    ('w7', 'w7 Ann')
    """
    return f"w{number} {name}".strip()


def pieces(read: Callable[[int], list[M]]) -> Iterator[list[M]]:
    """Call ``read(after)`` with the last ``id`` so far until it returns nothing."""
    after = 0
    while rows := read(after):
        yield rows
        after = int(str(rows[-1]["id"]))


class PaymentRow(TypedDict):
    """A worker, with what was accepted and earned, and the code if the worker has seen it."""

    id: int
    worker: str
    participant: str | None
    status: str
    answers: int
    accepted: int
    skips: int
    earned: float
    complete: bool
    """Whether the worker came to the end with enough accepted answers."""
    code: str
    joined_at: float
    seen_at: float
    consented_at: float | None
    """When the worker agreed to the consent text that applies, if there is one."""
    micros: int
    """What was earned, in millionths."""
    submission: str
    """The id of the submission on the platform, which Prolific calls a session."""


def payment_rows(connection: Connection, campaign: Campaign, after: int = 0) -> list[PaymentRow]:
    """Read the next workers after an id."""
    settings = campaign.settings
    found = connection.execute(
        sa.select(workers)
        .where(workers.c.campaign_id == campaign.id, workers.c.id > after)
        .order_by(workers.c.id)
        .limit(PIECE)
    )
    return [
        {
            "id": row.id,
            "worker": worker_name(row.id, row.name),
            "participant": row.external_id,
            "status": row.status,
            "answers": row.answers,
            "accepted": row.accepted,
            "skips": row.skips,
            "earned": row.earned / MICRO,
            "complete": row.completed_at is not None,
            "code": "" if row.completed_at is None else code_of(settings, campaign.secret, row.id),
            "joined_at": row.joined_at,
            "seen_at": row.seen_at,
            "consented_at": row.consented_at
            if row.consent == settings.tasks.consent_mark
            else None,
            "micros": row.earned,
            "submission": json.loads(row.details).get("session", ""),
        }
        for row in found
    ]


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
    campaign_id: int,
    questions: Sequence[str],
    after: int = 0,
    most: int = PIECE,
    newest: bool = False,
    item: int | None = None,
) -> list[ReportRow]:
    """Read reports after an id, or the newest first; of one item or of all."""
    which = [*_standing(campaign_id), answers.c.id > after]
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


def reported_items(connection: Connection, campaign_id: int) -> int:
    """Count reported items that are neither labelled nor withdrawn."""
    found = (
        sa.select(sa.func.count(answers.c.item_id.distinct()))
        .join(items, items.c.id == answers.c.item_id)
        .where(*_standing(campaign_id), items.c.status.not_in(DONE))
    )
    return int(connection.execute(found).scalar_one())
