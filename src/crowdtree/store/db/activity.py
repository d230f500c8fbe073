"""The activity log: what the owner and the server did."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Literal, TypedDict, cast

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.store.db.labels import hold_readers
from crowdtree.store.db.tables import activity
from crowdtree.store.types import JsonObject

__all__ = ["EVENTS", "ActivityEntry", "list_activity", "note"]

EVENTS = {
    "alarm": "table.alarm",
    "suspect": "worker.suspected",
    "revise": "table.revised",
    "exclude": "answers.excluded",
    "include": "answers.included",
    "correct": "label.corrected",
    "certified": "certificate.reached",
    "out of reach": "certificate.out_of_reach",
    "skipped away": "campaign.skipped_away",
}
"""Actions that webhooks are told about, and the names of these events."""
MOST_LISTED = 500


class ActivityEntry(TypedDict):
    """One action."""

    id: int
    at: float
    actor: str
    action: str
    campaign_id: int | None
    detail: JsonObject


def note(
    connection: Connection,
    now: float,
    action: str,
    campaign: int | None,
    detail: Mapping[str, object] | None = None,
    actor: Literal["owner", "server"] = "owner",
) -> int:
    """Append to the activity log; returns the number of the entry."""
    if action in EVENTS:
        hold_readers(connection)
    values = {"at": now, "actor": actor, "action": action, "campaign_id": campaign}
    made = activity.insert().values(**values, detail=json.dumps(dict(detail or {})))
    return int(connection.execute(made.returning(activity.c.id)).scalar_one())


def list_activity(connection: Connection, number: int) -> list[ActivityEntry]:
    """Read the last entries about a campaign, the newest first."""
    rows = connection.execute(
        sa.select(activity)
        .where(activity.c.campaign_id == number)
        .order_by(activity.c.id.desc())
        .limit(MOST_LISTED)
    )
    return [cast(ActivityEntry, {**row._mapping, "detail": json.loads(row.detail)}) for row in rows]
