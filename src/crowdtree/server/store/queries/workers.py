"""Workers for the owner: their record, reliability, last answers and exclusions."""

from __future__ import annotations

from typing import cast

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from typing_extensions import TypedDict

from crowdtree.core.problem import Problem
from crowdtree.server.reasons import WorkerReason
from crowdtree.server.settings.groups import MICRO
from crowdtree.server.store.db.campaign_row import get_campaign
from crowdtree.server.store.db.tables import answers, campaigns, exclusions, items, labels, workers
from crowdtree.server.store.errors import NotFound
from crowdtree.server.store.reliability import expected_right


class ExclusionRow(TypedDict):
    """Answers of a worker that are or were excluded; `lifted_at` is empty while they are.

    Lines of the log from `first_answer_id` to `last_answer_id`; `since` is the time that was asked
    for, if any.
    """

    id: int
    worker_id: int
    first_answer_id: int
    last_answer_id: int
    since: float | None
    at: float
    actor: str
    reason: str
    revision: int
    lifted_at: float | None
    lifted_revision: int | None


def list_exclusions(
    connection: Connection, campaign_id: int, worker: int | None = None
) -> list[ExclusionRow]:
    """List the exclusions of a campaign or of one of its workers, the first one first."""
    get_campaign(connection, campaign_id)
    columns = (exclusions.c[name] for name in ExclusionRow.__annotations__)
    query = (
        sa.select(*columns).where(exclusions.c.campaign_id == campaign_id).order_by(exclusions.c.id)
    )
    if worker is not None:
        query = query.where(exclusions.c.worker_id == worker)
    return [cast(ExclusionRow, dict(row._mapping)) for row in connection.execute(query)]


WORKERS_PAGE = 100
MAX_LISTED = 1000
LAST_ANSWERS = 200
WORKER_ORDERS: dict[str, sa.ColumnElement[object]] = {
    "answers": workers.c.answers.desc(),
    "reliability": workers.c.skill,  # reliability increases with skill
    "seen": workers.c.seen_at.desc(),
    "name": sa.func.lower(workers.c.name),
}


class WorkerFacts(TypedDict):
    """What an owner sees of a worker."""

    id: int
    name: str
    external_id: str | None
    status: str
    reason: WorkerReason
    status_reason: str
    """The reason, in words."""
    known: str
    """Why the worker is known (``invited``, ``owner``, ``gold``, ``agreement`` or ``majority``);
    empty for a newcomer."""
    question: int | None
    answers: int
    accepted: int
    skips: int
    overdue: int
    completed_at: float | None
    joined_at: float
    seen_at: float
    gold_right: int
    gold_asked: int
    agreed: int
    judged: int
    reliability: float
    skill: float
    earned: float
    consent: str
    """Mark of the text that the worker has agreed to."""
    consented_at: float | None
    trained: int
    excluded: bool
    """Whether answers of this worker are excluded."""


EXCLUDED = (
    sa.exists()
    .where(exclusions.c.worker_id == workers.c.id, exclusions.c.lifted_revision.is_(None))
    .label("excluded")
)


def _facts(row: sa.Row[tuple[object, ...]], problem: Problem) -> WorkerFacts:
    found = {name: row._mapping[name] for name in WorkerFacts.__annotations__ if name in workers.c}
    found |= {"earned": row.earned / MICRO, "excluded": bool(row.excluded)}
    reason = WorkerReason(row.reason)
    found |= {"reason": reason, "status_reason": reason.text(row.reason_detail)}
    return cast(WorkerFacts, found | {"reliability": expected_right(problem, row.skill)})


def get_worker(
    connection: Connection, campaign_id: int, worker: int, problem: Problem
) -> WorkerFacts:
    """Read a worker of a campaign."""
    row = connection.execute(
        sa.select(workers, EXCLUDED).where(
            workers.c.id == worker, workers.c.campaign_id == campaign_id
        )
    ).one_or_none()
    if row is None:
        raise NotFound(f"worker {worker} is not in campaign {campaign_id}")
    return _facts(row, problem)


def listed_workers(
    connection: Connection, campaign_id: int, problem: Problem, after: int = 0
) -> list[WorkerFacts]:
    """List workers by id, up to `MAX_LISTED` after an id."""
    rows = connection.execute(
        sa.select(workers, EXCLUDED)
        .where(workers.c.campaign_id == campaign_id, workers.c.id > after)
        .order_by(workers.c.id)
        .limit(MAX_LISTED)
    )
    return [_facts(row, problem) for row in rows]


def some_workers(
    connection: Connection,
    campaign_id: int,
    problem: Problem,
    *,
    sort: str = "answers",
    skip: int = 0,
    most: int = WORKERS_PAGE,
) -> list[WorkerFacts]:
    """Read a page of workers, in one of `WORKER_ORDERS`."""
    rows = connection.execute(
        sa.select(workers, EXCLUDED)
        .where(workers.c.campaign_id == campaign_id)
        .order_by(WORKER_ORDERS[sort], workers.c.id)
        .offset(skip)
        .limit(most)
    )
    return [_facts(row, problem) for row in rows]


def paused_workers(connection: Connection, campaign_id: int) -> int:
    """Count workers whom the server paused."""
    return int(
        connection.execute(
            sa.select(sa.func.count()).where(
                workers.c.campaign_id == campaign_id,
                workers.c.status == "paused",
                workers.c.reason.in_([reason for reason in WorkerReason if reason.by_server]),
            )
        ).scalar_one()
    )


def any_trusted(connection: Connection, campaign_id: int) -> bool:
    """Whether the owner has invited somebody by a personal link, or vouched for somebody."""
    mine = (workers.c.campaign_id == campaign_id, workers.c.status != "blocked")
    trusted = sa.exists().where(*mine, workers.c.known.in_(("invited", "owner")))
    return bool(connection.execute(sa.select(trusted)).scalar_one())


class WorkerState(TypedDict):
    """How a worker stands, for the worker."""

    campaign: str
    """Status of the campaign."""
    worker: str
    """Status of the worker."""
    answers: int
    skips: int
    accepted: int
    earned: float


def worker_state(connection: Connection, worker: int) -> WorkerState:
    """Read how a worker and the campaign stand."""
    names = ("answers", "skips", "accepted", "earned")
    row = connection.execute(
        sa.select(
            campaigns.c.status.label("campaign"),
            workers.c.status.label("worker"),
            *(workers.c[name] for name in names),
        )
        .join(campaigns, campaigns.c.id == workers.c.campaign_id)
        .where(workers.c.id == worker)
    ).one()
    return cast(WorkerState, {**row._mapping, "earned": row.earned / MICRO})


class WorkerAnswer(TypedDict):
    """An answer of a worker, with what is known or was decided about the item."""

    id: int
    item_id: int
    task: str
    question: int
    kind: str
    value: int | None
    fate: str
    at: float
    gold: int | None
    label: int | None


def worker_log(connection: Connection, campaign_id: int, worker: int) -> list[WorkerAnswer]:
    """Read a worker's last answers, the newest first."""
    get_campaign(connection, campaign_id)
    rows = connection.execute(
        sa.select(
            answers.c.id,
            answers.c.item_id,
            items.c.task,
            answers.c.question,
            answers.c.kind,
            answers.c.value,
            sa.func.coalesce(answers.c.revised_fate, answers.c.fate).label("fate"),
            answers.c.at,
            items.c.gold,
            labels.c.label,
        )
        .join(items, items.c.id == answers.c.item_id)
        .outerjoin(labels, labels.c.item_id == answers.c.item_id)
        .where(answers.c.worker_id == worker, answers.c.campaign_id == campaign_id)
        .order_by(answers.c.id.desc())
        .limit(LAST_ANSWERS)
    )
    return [cast(WorkerAnswer, dict(row._mapping)) for row in rows]
