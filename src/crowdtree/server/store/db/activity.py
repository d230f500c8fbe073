"""The activity log: what owners and the server did, and which of it webhooks report.

PostgreSQL assigns a row's id before its transaction commits: with several server processes, a
reader can see id 8 before id 7 is committed and would then skip 7. So writers of labels and of what
webhooks report hold a shared lock until the commit, and a reader that continues from an id waits
for that lock once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, NamedTuple, TypedDict, cast

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.server.store.db.sql import hold_readers
from crowdtree.server.store.db.tables import activity
from crowdtree.server.store.types import JsonObject


class Event(NamedTuple):
    """A kind of message: its name for programs, and for people."""

    name: str
    words: str


LABELLED = Event("items.labelled", "labels")
WITHDRAWN = Event("labels.withdrawn", "labels withdrawn")
NOTED = {
    "alarm": Event("table.alarm", "the answers contradict the table"),
    "revise": Event("table.revised", "table revised"),
    "suspect": Event("worker.suspected", "worker suspected and paused"),
    "exclude": Event("answers.excluded", "answers excluded"),
    "include": Event("answers.included", "answers included again"),
    "correct": Event("label.corrected", "label corrected by hand"),
    "certified": Event("certificate.reached", "bound certified"),
    "out of reach": Event("certificate.out_of_reach", "bound out of reach"),
    "skipped away": Event("campaign.skipped_away", "most items set aside, paused"),
    "left to owner": Event("campaign.left_to_owner", "all labelled, waiting for you to finish"),
    "finished": Event("campaign.finished", "the end"),
}
"""Events by the action of the activity log that they report, with its details."""
EVENTS = {event.name: event for event in (LABELLED, WITHDRAWN, *NOTED.values())}
"""All events by their names."""


MAX_LISTED = 500
SERVER = "server"
"""The name of the server among people."""


class Origin(NamedTuple):
    """Who asks for something, by name, and from which address."""

    person: str = ""
    address: str = ""


NOBODY = Origin()
COMMAND_LINE = Origin(address="command line")
ORIGIN: ContextVar[Origin] = ContextVar("origin", default=NOBODY)
"""The origin of the request that is being served, also in threads that work for it."""
Actor = Literal["owner", "server"]


@contextmanager
def acting(origin: Origin) -> Iterator[None]:
    """Record what happens as done by somebody."""
    before = ORIGIN.set(origin)
    try:
        yield
    finally:
        ORIGIN.reset(before)


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
    actor: Actor = "owner",
) -> int:
    """Append to the activity log; returns the number of the entry."""
    if action in NOTED:
        hold_readers(connection)
    origin = ORIGIN.get() if actor == "owner" else NOBODY
    values = {"at": now, "actor": actor, "action": action, "campaign_id": campaign}
    values |= {"detail": json.dumps(dict(detail or {})), **origin._asdict()}
    made = activity.insert().values(**values).returning(activity.c.id)
    return int(connection.execute(made).scalar_one())


def list_activity(
    connection: Connection,
    campaign_id: int | None = None,
    *,
    person: str = "",
    before: int | None = None,
    most: int = MAX_LISTED,
) -> list[ActivityEntry]:
    """Read the last entries, the newest first.

    Parameters
    ----------
    campaign_id
        A campaign; without it, of all campaigns and of the server.
    person
        Only what this person did; ``"server"`` for what the server did on its own.
    before
        Only entries before this id.
    """
    query = sa.select(activity).order_by(activity.c.id.desc()).limit(most)
    if campaign_id is not None:
        query = query.where(activity.c.campaign_id == campaign_id)
    if person:
        own = activity.c.actor == person if person == SERVER else activity.c.person == person
        query = query.where(own)
    if before is not None:
        query = query.where(activity.c.id < before)
    return [
        cast(ActivityEntry, {**row._mapping, "detail": json.loads(row.detail)})
        for row in connection.execute(query)
    ]


def list_people(connection: Connection, campaign_id: int | None = None) -> list[str]:
    """List the people in the log of a campaign, or of the whole server."""
    query = sa.select(activity.c.person).where(activity.c.person != "").distinct()
    if campaign_id is not None:
        query = query.where(activity.c.campaign_id == campaign_id)
    return sorted(connection.execute(query).scalars(), key=str.casefold)
