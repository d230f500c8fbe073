"""The activity log: what owners and the server did, who it was, and from where."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Literal, NamedTuple, TypedDict, cast

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.store.db.labels import hold_readers
from crowdtree.store.db.tables import activity
from crowdtree.store.types import JsonObject

__all__ = ["EVENTS", "ORIGIN", "ActivityEntry", "Origin", "list_activity", "note"]

EVENTS = {
    "alarm": "table.alarm",
    "suspect": "worker.suspected",
    "revise": "table.revised",
    "exclude": "answers.excluded",
    "include": "answers.included",
    "certified": "certificate.reached",
    "out of reach": "certificate.out_of_reach",
    "skipped away": "campaign.skipped_away",
}
"""Actions that webhooks are told about, and the names of these events."""
MOST_LISTED = 500


class Origin(NamedTuple):
    """Who asks for something, by name, and from which address."""

    person: str = ""
    address: str = ""


NOBODY = Origin()
ORIGIN: ContextVar[Origin] = ContextVar("origin", default=NOBODY)
"""The origin of the request that is being served, also in threads that work for it."""


class ActivityEntry(TypedDict):
    """One action. `person` and `address` are empty where the server acted on its own."""

    id: int
    at: float
    actor: str
    action: str
    campaign_id: int | None
    detail: JsonObject
    person: str
    address: str


def note(
    connection: Connection,
    now: float,
    action: str,
    campaign: int | None,
    detail: Mapping[str, object] | None = None,
    actor: Literal["owner", "server"] = "owner",
) -> None:
    """Append to the activity log."""
    if action in EVENTS:
        hold_readers(connection)
    origin = ORIGIN.get() if actor == "owner" else NOBODY
    values = {"at": now, "actor": actor, "action": action, "campaign_id": campaign}
    values |= {"detail": json.dumps(dict(detail or {})), **origin._asdict()}
    connection.execute(activity.insert().values(**values))


def list_activity(connection: Connection, number: int) -> list[ActivityEntry]:
    """Read the last entries about a campaign, the newest first."""
    rows = connection.execute(
        sa.select(activity)
        .where(activity.c.campaign_id == number)
        .order_by(activity.c.id.desc())
        .limit(MOST_LISTED)
    )
    return [cast(ActivityEntry, {**row._mapping, "detail": json.loads(row.detail)}) for row in rows]
