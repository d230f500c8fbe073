"""The end of a worker's work: who gets the completion code, and what the owner sees of it."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from typing_extensions import TypedDict

from crowdtree.server.store.db.campaign_row import get_campaign
from crowdtree.server.store.db.tables import workers
from crowdtree.server.store.derived import code_of
from crowdtree.server.store.owner import tokens


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
