"""Workers of a campaign: invite, join, pause, block, look."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.errors import CrowdtreeError
from crowdtree.policy import Policy
from crowdtree.problem import Problem
from crowdtree.store import tokens
from crowdtree.store.campaigns import MOST_NAME, NotFound, note, storable
from crowdtree.store.reliability import expected_right
from crowdtree.store.requests import Refused
from crowdtree.store.settings import MICRO
from crowdtree.store.tables import LEASE, credentials, leases, workers

__all__ = [
    "get_worker",
    "invite",
    "join",
    "join_link",
    "listed_workers",
    "new_link",
    "release",
    "set_worker_status",
    "worker_of",
]

MOST_DIGITS = 18
"""Of a lease's number: more would not be a number of the database."""

WorkerStatus = Literal["active", "paused", "blocked"]


def invite(
    connection: Connection, number: int, name: str, policy: Policy[Any], dedicated: bool, now: float
) -> tuple[int, str]:
    """Make a worker and a personal token; the token is shown this once."""
    worker = _add(connection, number, name, None, policy, dedicated, now, {})
    token = tokens.issue(connection, "worker", now, campaign_id=number, worker_id=worker, name=name)
    note(connection, now, "owner", "invite", number, {"worker": worker})
    return worker, token


def join_link(connection: Connection, number: int, now: float) -> str:
    """Make the open join token of a campaign; the one before stops working."""
    where = (credentials.c.role == "join", credentials.c.campaign_id == number)
    tokens.revoke(connection, now, *where)
    note(connection, now, "owner", "join link", number)
    return tokens.issue(connection, "join", now, campaign_id=number)


def join(
    connection: Connection,
    number: int,
    external_id: str | None,
    policy: Policy[Any],
    dedicated: bool,
    now: float,
    details: dict[str, str],
    seconds: float,
) -> str:
    """Become a worker, or the same one again where the platform sends the same id."""
    if external_id is not None and (not external_id or not storable(external_id)):
        raise CrowdtreeError(f"participant: an id of 1 to {MOST_NAME} characters is needed")
    worker = None if external_id is None else _by_external(connection, number, external_id)
    if worker is None:
        name = external_id or ""
        worker = _add(connection, number, name, external_id, policy, dedicated, now, details)
    return tokens.issue(
        connection, "worker", now, campaign_id=number, worker_id=worker, seconds=seconds
    )


def _by_external(connection: Connection, number: int, external_id: str) -> int | None:
    found = connection.execute(
        sa.select(workers.c.id).where(
            workers.c.campaign_id == number, workers.c.external_id == external_id
        )
    ).scalar_one_or_none()
    return None if found is None else int(found)


def _add(
    connection: Connection,
    number: int,
    name: str,
    external_id: str | None,
    policy: Policy[Any],
    dedicated: bool,
    now: float,
    details: dict[str, str],
) -> int:
    if not storable(name):
        raise CrowdtreeError(f"worker: a name of at most {MOST_NAME} characters is needed")
    question = _needed_question(connection, number, policy) if dedicated else None
    root = int(policy.ask(policy.start()).questions[0])  # type: ignore[union-attr]
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
            details=json.dumps(details),
        )
        .returning(workers.c.id)
    )
    return int(made.scalar_one())


def _needed_question(connection: Connection, number: int, policy: Any) -> int:
    """Question with the most planned answers for each worker that it would then have."""
    plan = policy.plan
    load: dict[int, float] = {}
    for question, share, votes in zip(plan.tree.question, plan.tree.share, plan.votes, strict=True):
        load[int(question)] = load.get(int(question), 0.0) + float(share) * float(votes)
    rows = connection.execute(
        sa.select(workers.c.question, sa.func.count())
        .where(workers.c.campaign_id == number, workers.c.status == "active")
        .group_by(workers.c.question)
    )
    team: dict[int | None, int] = {row[0]: row[1] for row in rows}
    return max(load, key=lambda q: (load[q] / (team.get(q, 0) + 1), -q))


def get_worker(connection: Connection, number: int, worker: int) -> dict[str, Any]:
    """Read a worker of a campaign."""
    row = connection.execute(
        sa.select(workers).where(workers.c.id == worker, workers.c.campaign_id == number)
    ).one_or_none()
    if row is None:
        raise NotFound(f"worker {worker} is not in campaign {number}")
    return dict(row._mapping)


def set_worker_status(
    connection: Connection, number: int, worker: int, status: WorkerStatus, now: float
) -> None:
    """Pause, block or let a worker go on.

    A blocked one's links stop working, and the questions that they hold are free for others.
    """
    get_worker(connection, number, worker)
    connection.execute(
        workers.update()
        .where(workers.c.id == worker)
        .values(status=status, status_reason="" if status == "active" else "by the owner")
    )
    if status == "blocked":
        tokens.revoke(connection, now, credentials.c.worker_id == worker)
        held = (leases.c.worker_id == worker, leases.c.state == LEASE.active)
        # The next sweep takes them back, with the money that was set aside for them.
        connection.execute(leases.update().where(*held).values(expires_at=now - 1.0))
    note(connection, now, "owner", f"worker {status}", number, {"worker": worker})


def worker_of(connection: Connection, token_hash: str, now: float) -> tuple[int, int]:
    """Find the campaign and the worker behind a token that is still good."""
    found = connection.execute(
        sa.select(credentials.c.campaign_id, credentials.c.worker_id).where(
            credentials.c.token_hash == token_hash,
            credentials.c.role == "worker",
            credentials.c.revoked_at.is_(None),
            sa.or_(credentials.c.expires_at.is_(None), credentials.c.expires_at > now),
        )
    ).one_or_none()
    if found is None:
        raise Refused("unknown", "This link is not valid any more. Ask for a new one.")
    return int(found.campaign_id), int(found.worker_id)


def release(connection: Connection, token_hash: str, held: Sequence[str], now: float) -> int:
    """Give back questions that a worker will not answer now; count them.

    The next sweep takes them back, with the money that was set aside for them. An answer that
    comes all the same counts where it is still wanted.
    """
    _, worker = worker_of(connection, token_hash, now)
    count = 0
    for lease in held:
        number, _, nonce = lease.partition(".")
        if len(number) > MOST_DIGITS:
            continue
        found = connection.execute(
            leases.update()
            .where(
                leases.c.id == int(number),
                leases.c.nonce == nonce,
                leases.c.worker_id == worker,
                leases.c.state == LEASE.active,
            )
            .values(expires_at=now - 1.0)
        )
        count += found.rowcount
    return count


def new_link(connection: Connection, number: int, worker: int, now: float) -> str:
    """Make a new personal token for a worker; those before stop working."""
    get_worker(connection, number, worker)
    tokens.revoke(connection, now, credentials.c.worker_id == worker)
    note(connection, now, "owner", "new link", number, {"worker": worker})
    return tokens.issue(connection, "worker", now, campaign_id=number, worker_id=worker)


def listed_workers(
    connection: Connection, number: int, problem: Problem, after: int = 0, most: int = 1000
) -> list[dict[str, Any]]:
    """List workers with their record and estimated reliability."""
    rows = connection.execute(
        sa.select(workers)
        .where(workers.c.campaign_id == number, workers.c.id > after)
        .order_by(workers.c.id)
        .limit(most)
    )
    return [worker_facts(dict(row._mapping), problem) for row in rows]


def worker_facts(row: dict[str, Any], problem: Problem) -> dict[str, Any]:
    """Say what an owner sees of a worker."""
    kept = ("id", "name", "external_id", "status", "status_reason", "question", "answers", "skips")
    facts = {name: row[name] for name in (*kept, "overdue", "joined_at", "seen_at")}
    facts |= {name: row[name] for name in ("gold_right", "gold_asked", "agreed", "judged")}
    return {
        **facts,
        "reliability": expected_right(problem, row["skill"]),
        "skill": row["skill"],
        "earned": row["earned"] / MICRO,
    }
