"""The policies of a campaign that was revised while it ran."""

from __future__ import annotations

import json
from typing import TypedDict

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.campaign.reasons import Cause
from crowdtree.server.store.db.campaign_row import get_campaign
from crowdtree.server.store.db.tables import revisions
from crowdtree.server.store.types import JsonObject


class Revision(TypedDict):
    """A policy of a campaign; number 0 is the one it started with.

    `finished_at` is empty while items are being replayed under it.
    """

    number: int
    at: float
    actor: str
    cause: Cause
    reason: JsonObject
    after_answer_id: int
    finished_at: float | None


def list_revisions(connection: Connection, number: int) -> list[Revision]:
    """List the policies of a campaign, the first one first; none if it was never revised."""
    get_campaign(connection, number)
    mine = _SELECTED.where(revisions.c.campaign_id == number)
    return [_read(row) for row in connection.execute(mine.order_by(revisions.c.number))]


def last_revision(connection: Connection, number: int) -> Revision | None:
    """Read the last revision of a campaign, or ``None``."""
    mine = _SELECTED.where(revisions.c.campaign_id == number)
    row = connection.execute(mine.order_by(revisions.c.number.desc()).limit(1)).one_or_none()
    return None if row is None else _read(row)


_SELECTED = sa.select(*(revisions.c[name] for name in Revision.__annotations__))


def _read(row: sa.Row[tuple[object, ...]]) -> Revision:
    reason = json.loads(row.reason)
    del reason["level"]  # what skills are relative to is the server's business
    return Revision(
        number=row.number,
        at=row.at,
        actor=row.actor,
        cause=Cause(row.cause),
        reason=reason,
        after_answer_id=row.after_answer_id,
        finished_at=row.finished_at,
    )
