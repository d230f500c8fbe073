"""What workers are to be paid for, for downloads."""

from __future__ import annotations

import json
from typing import TypedDict

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.server.settings.money import MICRO
from crowdtree.server.store.db.campaign_row import Campaign
from crowdtree.server.store.db.tables import workers
from crowdtree.server.store.derived import code_of
from crowdtree.server.store.queries.export import PIECE, worker_name


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
