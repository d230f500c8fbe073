"""Joining a campaign by its open link: who is let in, as whom, and who is not."""

from __future__ import annotations

from dataclasses import dataclass, field

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.participants import check_participant, verify_participant
from crowdtree.server.store.db.campaign_row import Campaign
from crowdtree.server.store.db.tables import workers
from crowdtree.server.store.derived import network_mark, signing_key
from crowdtree.server.store.errors import Refused
from crowdtree.server.store.owner import tokens
from crowdtree.server.store.owner.people import add_worker
from crowdtree.server.store.types import AnyPolicy

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


def _known(connection: Connection, number: int, participant: str | None) -> int | None:
    """Find the worker with a participant id; a blocked one is refused."""
    if participant is None:
        return None
    mine = (workers.c.campaign_id == number, workers.c.external_id == participant)
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
    connection: Connection, session: str, number: int, participant: str | None, now: float
) -> bool:
    """Whether a session is already that of this participant, or of anybody where there is no id."""
    found = tokens.find(connection, session, now)
    if found is None or (found.role, found.campaign_id) != ("worker", number):
        return False
    if participant is None:
        return True
    mine = sa.select(workers.c.external_id).where(workers.c.id == found.worker_id)
    return connection.execute(mine).scalar_one_or_none() == participant
