"""Workers of a campaign: invite, pause, block, release their leases."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.core.errors import CrowdtreeError
from crowdtree.policies import Ask
from crowdtree.server.reasons import WorkerReason
from crowdtree.server.store.db.activity import note
from crowdtree.server.store.db.states import GIVEN_BACK, LeaseState, split_lease
from crowdtree.server.store.db.tables import credentials, leases, workers
from crowdtree.server.store.db.worker_status import WorkerStatus, change_status
from crowdtree.server.store.errors import NotFound
from crowdtree.server.store.owner import tokens
from crowdtree.server.store.owner.campaigns import MAX_NAME, storable
from crowdtree.server.store.types import AnyPolicy


def invite(
    connection: Connection, number: int, name: str, policy: AnyPolicy, dedicated: bool, now: float
) -> tuple[int, str]:
    """Add a worker; returns the id and a personal token, which is shown only here."""
    worker = add_worker(connection, number, name, policy, dedicated, now, known="invited")
    token = tokens.issue(connection, "worker", now, campaign_id=number, worker_id=worker, name=name)
    note(connection, now, "invite", number, {"worker": worker})
    return worker, token


def join_link(connection: Connection, number: int, now: float, keep: bool = False) -> str:
    """Make an open join token of a campaign; earlier ones stop working unless they are kept."""
    if not keep:
        tokens.revoke(connection, now, _joins(number))
    note(connection, now, "join link", number, {"kept": keep})
    return tokens.issue(connection, "join", now, campaign_id=number)


def join_links(connection: Connection, number: int, now: float) -> int:
    """Count the open join links of a campaign that work."""
    return tokens.count(connection, now, _joins(number))


def _joins(number: int) -> sa.ColumnElement[bool]:
    return sa.and_(credentials.c.role == "join", credentials.c.campaign_id == number)


def add_worker(
    connection: Connection,
    number: int,
    name: str,
    policy: AnyPolicy,
    dedicated: bool,
    now: float,
    *,
    external_id: str | None = None,
    network: str = "",
    details: Mapping[str, str] | None = None,
    known: str = "",
) -> int:
    """Add a worker; returns the id."""
    if not storable(name):
        raise CrowdtreeError(
            f"worker: expected a name of at most {MAX_NAME} characters without NUL"
        )
    question = _needed_question(connection, number, policy) if dedicated else None
    first = policy.ask(policy.start())
    root = first.questions[0] if isinstance(first, Ask) else 0
    made = connection.execute(
        workers.insert()
        .values(
            campaign_id=number,
            name=name,
            external_id=external_id,
            question=question,
            last_question=root if question is None else question,
            joined_at=now,
            seen_at=now,
            network=network,
            details=json.dumps(dict(details or {})),
            known=known,
        )
        .returning(workers.c.id)
    )
    return int(made.scalar_one())


def _needed_question(connection: Connection, number: int, policy: AnyPolicy) -> int:
    """Question with the most planned answers per worker, with the new worker counted."""
    plan = policy.plan
    if plan is None:
        raise CrowdtreeError(
            "settings: tasks.one_question_per_worker: requires a plan; adaptive questions vary by "
            "item"
        )
    load: dict[int, float] = {}
    for question, share, votes in zip(plan.tree.question, plan.tree.share, plan.votes, strict=True):
        load[int(question)] = load.get(int(question), 0.0) + float(share) * float(votes)
    rows = connection.execute(
        sa.select(workers.c.question, sa.func.count().label("workers"))
        .where(workers.c.campaign_id == number, workers.c.status == "active")
        .group_by(workers.c.question)
    )
    team: dict[int | None, int] = {row.question: row.workers for row in rows}
    return max(load, key=lambda q: (load[q] / (team.get(q, 0) + 1), -q))


def check_worker(connection: Connection, number: int, worker: int) -> None:
    """Raise unless a worker is in a campaign."""
    where = (workers.c.id == worker, workers.c.campaign_id == number)
    if connection.execute(sa.select(workers.c.id).where(*where)).one_or_none() is None:
        raise NotFound(f"worker {worker} is not in campaign {number}")


def set_worker_status(
    connection: Connection, number: int, worker: int, status: WorkerStatus, now: float
) -> None:
    """Pause, block or reactivate a worker.

    What a paused or blocked worker holds is released, and the links of a blocked one stop working.
    """
    check_worker(connection, number, worker)
    if status == "active":  # the owner vouches for somebody whom the server suspected
        suspicions = (WorkerReason.SUSPECTED, WorkerReason.HURRIED)
        suspected = (workers.c.id == worker, workers.c.reason.in_(suspicions))
        connection.execute(workers.update().where(*suspected).values(known="owner"))
    reason = WorkerReason.NONE if status == "active" else WorkerReason.OWNER
    change_status(connection, [worker], status, reason)
    if status == "blocked":
        tokens.revoke(connection, now, credentials.c.worker_id == worker)
    note(connection, now, f"worker {status}", number, {"worker": worker})


def release(connection: Connection, worker: int, held: Sequence[str]) -> int:
    """Give back questions that a worker will not answer now; count them.

    ExpireLeases takes them back, with the money that is reserved for them. An answer that still
    arrives counts if the engine can use it.
    """
    count = 0
    for lease in held:
        number, nonce = split_lease(lease)
        found = connection.execute(
            leases.update()
            .where(
                leases.c.id == number,
                leases.c.nonce == nonce,
                leases.c.worker_id == worker,
                leases.c.state == LeaseState.ACTIVE,
            )
            .values(expires_at=GIVEN_BACK)
        )
        count += found.rowcount
    return count


def new_link(connection: Connection, number: int, worker: int, now: float) -> str:
    """Make a new personal token for a worker; the previous ones stop working."""
    check_worker(connection, number, worker)
    tokens.revoke(connection, now, credentials.c.worker_id == worker)
    note(connection, now, "new link", number, {"worker": worker})
    return tokens.issue(connection, "worker", now, campaign_id=number, worker_id=worker)
