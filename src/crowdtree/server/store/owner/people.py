"""Workers of a campaign: invite, let in by the open link, pause, block, pay off at the end."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from typing_extensions import TypedDict

from crowdtree.core.errors import CrowdtreeError
from crowdtree.participants import check_participant, verify_participant
from crowdtree.policies import Ask
from crowdtree.server.reasons import WorkerReason
from crowdtree.server.store import tokens
from crowdtree.server.store.db.activity import note
from crowdtree.server.store.db.campaign_row import Campaign, get_campaign
from crowdtree.server.store.db.sql import run
from crowdtree.server.store.db.statements import RELEASE_LEASES, split_lease
from crowdtree.server.store.db.tables import credentials, leases, workers
from crowdtree.server.store.errors import NotFound, Refused
from crowdtree.server.store.owner.campaigns import MAX_NAME, storable
from crowdtree.server.store.tokens import code_of, network_mark, signing_key
from crowdtree.server.store.types import GIVEN_BACK, AnyPolicy, LeaseState

WorkerStatus = Literal["active", "paused", "blocked"]


def change_status(
    connection: Connection,
    ids: Collection[int],
    status: WorkerStatus,
    reason: WorkerReason = WorkerReason.NONE,
    detail: str = "",
) -> None:
    """Change the status of workers; what they hold is released unless they are active."""
    change = workers.update().where(workers.c.id.in_(ids))
    connection.execute(change.values(status=status, reason=reason, reason_detail=detail))
    if status != "active":
        run(connection, RELEASE_LEASES, workers=list(ids))


def invite(
    connection: Connection,
    campaign_id: int,
    name: str,
    policy: AnyPolicy,
    dedicated: bool,
    now: float,
) -> tuple[int, str]:
    """Add a worker; returns the id and a personal token, which is shown only here."""
    worker = add_worker(connection, campaign_id, name, policy, dedicated, now, known="invited")
    token = tokens.issue(
        connection, "worker", now, campaign_id=campaign_id, worker_id=worker, name=name
    )
    note(connection, now, "invite", campaign_id, {"worker": worker})
    return worker, token


def join_link(connection: Connection, campaign_id: int, now: float, keep: bool = False) -> str:
    """Make an open join token of a campaign; earlier ones stop working unless they are kept."""
    if not keep:
        tokens.revoke(connection, now, _joins(campaign_id))
    note(connection, now, "join link", campaign_id, {"kept": keep})
    return tokens.issue(connection, "join", now, campaign_id=campaign_id)


def join_links(connection: Connection, campaign_id: int, now: float) -> int:
    """Count the open join links of a campaign that work."""
    return tokens.count(connection, now, _joins(campaign_id))


def _joins(number: int) -> sa.ColumnElement[bool]:
    return sa.and_(credentials.c.role == "join", credentials.c.campaign_id == number)


def add_worker(
    connection: Connection,
    campaign_id: int,
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
    question = _needed_question(connection, campaign_id, policy) if dedicated else None
    first = policy.ask(policy.start())
    root = first.questions[0] if isinstance(first, Ask) else 0
    made = connection.execute(
        workers.insert()
        .values(
            campaign_id=campaign_id,
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


def _needed_question(connection: Connection, campaign_id: int, policy: AnyPolicy) -> int:
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
        .where(workers.c.campaign_id == campaign_id, workers.c.status == "active")
        .group_by(workers.c.question)
    )
    team: dict[int | None, int] = {row.question: row.workers for row in rows}
    return max(load, key=lambda q: (load[q] / (team.get(q, 0) + 1), -q))


def check_worker(connection: Connection, campaign_id: int, worker: int) -> None:
    """Raise unless a worker is in a campaign."""
    where = (workers.c.id == worker, workers.c.campaign_id == campaign_id)
    if connection.execute(sa.select(workers.c.id).where(*where)).one_or_none() is None:
        raise NotFound(f"worker {worker} is not in campaign {campaign_id}")


def set_worker_status(
    connection: Connection, campaign_id: int, worker: int, status: WorkerStatus, now: float
) -> None:
    """Pause, block or reactivate a worker.

    What a paused or blocked worker holds is released, and the links of a blocked one stop working.
    """
    check_worker(connection, campaign_id, worker)
    if status == "active":  # the owner vouches for somebody whom the server suspected
        suspicions = (WorkerReason.SUSPECTED, WorkerReason.HURRIED)
        suspected = (workers.c.id == worker, workers.c.reason.in_(suspicions))
        connection.execute(workers.update().where(*suspected).values(known="owner"))
    reason = WorkerReason.NONE if status == "active" else WorkerReason.OWNER
    change_status(connection, [worker], status, reason)
    if status == "blocked":
        tokens.revoke(connection, now, credentials.c.worker_id == worker)
    note(connection, now, f"worker {status}", campaign_id, {"worker": worker})


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


def new_link(connection: Connection, campaign_id: int, worker: int, now: float) -> str:
    """Make a new personal token for a worker; the previous ones stop working."""
    check_worker(connection, campaign_id, worker)
    tokens.revoke(connection, now, credentials.c.worker_id == worker)
    note(connection, now, "new link", campaign_id, {"worker": worker})
    return tokens.issue(connection, "worker", now, campaign_id=campaign_id, worker_id=worker)


HOUR = 3600.0
PLACEHOLDER = "{{"
"""Begins the id in a link that no platform has filled in, such as ``{{%PROLIFIC_PID%}}``."""


@dataclass(frozen=True)
class Visitor:
    """Somebody who opened the join link, and what the link and the connection say about them."""

    participant: str | None = None
    expires: str = ""
    nonce: str = ""
    signature: str = ""
    network: str = ""
    details: dict[str, str] = field(default_factory=dict)


def join(
    connection: Connection,
    campaign: Campaign,
    policy: AnyPolicy,
    visitor: Visitor,
    now: float,
    seconds: float,
) -> str:
    """Add a worker, or find the one with the same participant id; returns a session token.

    The campaign must be locked, so that two people who join at once do not exceed a limit.
    """
    _check_id(connection, campaign, visitor, now)
    worker = _known(connection, campaign.id, visitor.participant)
    if worker is None:
        mark = network_mark(campaign.secret, visitor.network)
        _check_limits(connection, campaign, mark, now)
        worker = add_worker(
            connection,
            campaign.id,
            visitor.participant or "",
            policy,
            campaign.settings.tasks.one_question_per_worker,
            now,
            external_id=visitor.participant,
            network=mark,
            details=visitor.details,
        )
    return tokens.issue(
        connection, "worker", now, campaign_id=campaign.id, worker_id=worker, seconds=seconds
    )


def _check_id(connection: Connection, campaign: Campaign, visitor: Visitor, now: float) -> None:
    """Refuse a participant id that is missing, malformed or not signed as it must be."""
    people, given = campaign.settings.people, visitor.participant
    if given is None:
        if people.may_join != "any":
            raise Refused("participant.missing")
        return
    check_participant(given)
    if given.startswith(PLACEHOLDER):
        raise Refused("participant.missing")
    if people.may_join != "signed" and not visitor.signature:
        return
    numbers = range(people.signing_key, people.oldest_signing_key - 1, -1)
    keys = (signing_key(campaign.secret, number) for number in numbers)
    proof = (visitor.expires, visitor.nonce, visitor.signature)
    if not any(verify_participant(key, given, *proof, now) for key in keys):
        raise Refused("participant.unsigned")
    if visitor.nonce and not tokens.use_once(connection, visitor.signature, campaign.id, now):
        raise Refused("participant.used")


def _known(connection: Connection, campaign_id: int, participant: str | None) -> int | None:
    """Find the worker with a participant id; a blocked one is refused."""
    if participant is None:
        return None
    mine = (workers.c.campaign_id == campaign_id, workers.c.external_id == participant)
    row = connection.execute(sa.select(workers.c.id, workers.c.status).where(*mine)).one_or_none()
    if row is not None and row.status == "blocked":
        raise Refused("blocked")
    return None if row is None else int(row.id)


def _check_limits(connection: Connection, campaign: Campaign, mark: str, now: float) -> None:
    """Refuse a new worker where the campaign is over or has enough people."""
    over = campaign.status in ("finishing", "finished")
    if over or campaign.reason.ends_joining:
        raise Refused("over")
    people = campaign.settings.people
    by_link = workers.c.network != ""
    limits = {
        "full": (people.max_workers, workers.c.status != "blocked"),
        "full.network": (people.max_workers_per_address, by_link & (workers.c.network == mark)),
        "slow.joined": (people.max_joins_per_hour, by_link & (workers.c.joined_at > now - HOUR)),
    }
    for reason, (most, which) in limits.items():
        counted = sa.select(sa.func.count()).where(workers.c.campaign_id == campaign.id, which)
        if connection.execute(counted.select_from(workers)).scalar_one() >= most:
            raise Refused(reason)


def is_participant(
    connection: Connection, session: str, campaign_id: int, participant: str | None, now: float
) -> bool:
    """Whether a session is already that of this participant, or of anybody where there is no id."""
    found = tokens.find(connection, session, now)
    if found is None or (found.role, found.campaign_id) != ("worker", campaign_id):
        return False
    if participant is None:
        return True
    mine = sa.select(workers.c.external_id).where(workers.c.id == found.worker_id)
    return connection.execute(mine).scalar_one_or_none() == participant


class End(TypedDict):
    """What a worker is told at the end; without enough accepted answers no code and no link."""

    thanks: str
    completion_code: str
    return_url: str
    accepted: int
    least_answers: int
    complete: bool


def look_at_end(connection: Connection, token_hash: str, now: float) -> tuple[End, bool]:
    """Read what a worker is told at the end, and whether that is still to be noted."""
    number, worker = tokens.worker_of(connection, token_hash, now)
    campaign = get_campaign(connection, number)
    settings = campaign.settings
    columns = (workers.c.accepted, workers.c.completed_at)
    row = connection.execute(sa.select(*columns).where(workers.c.id == worker)).one()
    complete = row.accepted >= settings.money.min_answers_for_code
    end: End = {
        "thanks": settings.tasks.thanks,
        "completion_code": code_of(settings, campaign.secret, worker) if complete else "",
        "return_url": settings.money.return_url if complete else "",
        "accepted": row.accepted,
        "least_answers": settings.money.min_answers_for_code,
        "complete": complete,
    }
    return end, complete and row.completed_at is None


def note_end(connection: Connection, token_hash: str, now: float) -> None:
    """Note that a worker was shown the end, with the code where there is one."""
    _, worker = tokens.worker_of(connection, token_hash, now)
    mine = (workers.c.id == worker, workers.c.completed_at.is_(None))
    connection.execute(workers.update().where(*mine).values(completed_at=now))
