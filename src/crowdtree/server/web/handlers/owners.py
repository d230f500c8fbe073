"""Owners with their roles, and the activity log: who did what, when, and from where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal, NamedTuple
from urllib.parse import urlencode

from fastapi import Query, Request
from pydantic import Field
from sqlalchemy.engine import Connection
from starlette.concurrency import iterate_in_threadpool
from starlette.responses import JSONResponse, Response, StreamingResponse

from crowdtree.core.text import iso_time
from crowdtree.io import exports
from crowdtree.server.store import Refused
from crowdtree.server.store.db.activity import (
    MAX_LISTED,
    SERVER,
    ActivityEntry,
    list_activity,
    list_people,
)
from crowdtree.server.store.db.campaign_row import get_campaign, list_campaigns
from crowdtree.server.store.owner import owners
from crowdtree.server.store.queries.export import pieces
from crowdtree.server.store.tokens import OwnerRole
from crowdtree.server.store.types import JsonObject
from crowdtree.server.web.auth import OwnerNeeded
from crowdtree.server.web.routing import Body, Id, Read, Reply, Routes, Transaction, Write
from crowdtree.server.web.state import AppState, state_of

routes = Routes("people")
LINK_SECONDS = 3 * 86_400.0
"""How long a new owner has to open the link."""
OWN = "This is your own role. Ask another admin to change or revoke it."
MEANINGS = {
    "viewer": "sees everything except keys, webhooks and people",
    "editor": "also creates, changes, starts and finishes campaigns",
    "admin": "also manages people, sees addresses, and deletes campaigns and personal data",
}
Before = Annotated[int | None, Query(ge=1, le=2**53)]
Person = Annotated[str, Query(max_length=200)]
Format = Literal["json", "csv"]


class RoleRequest(Body):
    """A role."""

    role: OwnerRole


class NewOwner(RoleRequest):
    """An owner to add."""

    name: Annotated[str, Field(min_length=1, max_length=200)]


# -------------------------------------------------------------------------------- owners


@routes.api("GET /api/people", "admin")
def list_owners(tx: Read) -> Sequence[Reply]:
    """List the owners with their roles; the first is whoever runs the server, without an id."""
    return owners.list_owners(tx.connection, tx.now)


@routes.page("GET /people", "admin", "people.html")
def people(tx: Read) -> Reply:
    """Show the owners, with what changes them."""
    rows = owners.list_owners(tx.connection, tx.now)
    return {"rows": rows, "now": tx.now, "roles": MEANINGS, "base": tx.state.options.url}


@routes.api("POST /api/people", "admin", status_code=201)
def add_person(tx: Write, given: NewOwner) -> JsonObject:
    """Add an owner; the link logs in once, within three days, and is shown only here."""
    person = owners.add(tx.connection, given.name, given.role, tx.now)
    token = owners.make_link(tx.connection, person, tx.now, LINK_SECONDS)
    return {"id": person, "role": given.role, "link": f"/login?token={token}"}


@routes.api("PATCH /api/people/{person}", "admin")
def change_role(tx: Write, person: Id, given: RoleRequest) -> dict[str, str]:
    """Change the role of an owner, from the next request on."""
    _refuse_own(tx, person)
    owners.set_role(tx.connection, person, given.role, tx.now)
    return {"role": given.role}


@routes.api("POST /api/people/{person}/link", "admin")
def make_link(tx: Write, person: Id) -> dict[str, str]:
    """Make a link that logs an owner in, once; unused ones from before stop working."""
    token = owners.make_link(tx.connection, person, tx.now, LINK_SECONDS, replace=True)
    return {"link": f"/login?token={token}"}


@routes.api("DELETE /api/people/{person}", "admin")
def remove_person(tx: Write, person: Id) -> dict[str, int]:
    """Remove an owner; all their tokens, sessions and links end at once."""
    _refuse_own(tx, person)
    return {"revoked": owners.revoke(tx.connection, person, tx.now)}


def _refuse_own(tx: Transaction, person: int) -> None:
    if person == tx.owner.id:
        raise Refused("own", OWN)


# ------------------------------------------------------------------------------ activity


class Entries(NamedTuple):
    """Which entries of the activity log somebody asks for; only admins see addresses."""

    campaign_id: int | None
    person: str
    addresses: bool

    def read(self, connection: Connection, before: int | None = None) -> list[ActivityEntry]:
        """Read the last entries, the newest first."""
        if self.campaign_id is not None:
            get_campaign(connection, self.campaign_id)
        person = self.person.replace("\x00", "")
        rows = list_activity(connection, self.campaign_id, person=person, before=before)
        return rows if self.addresses else [{**row, "address": ""} for row in rows]

    def lines(self, state: AppState) -> Iterator[bytes]:
        """Write the entries as CSV, the newest first, piece by piece."""

        def read(before: int) -> list[JsonObject]:
            rows = state.store.read(lambda c: self.read(c, before or None))
            return [
                {
                    **row,
                    "time": iso_time(row["at"]),
                    "person": _who(row),
                    "campaign": row["campaign_id"],
                }
                for row in rows
            ]

        return exports.csv_lines(pieces(read), exports.COLUMNS["activity"])


@routes.api("GET /api/activity", "admin", response_class=Response)
async def read_activity(
    request: Request,
    owner: OwnerNeeded,
    person: Person = "",
    before: Before = None,
    format: Format = "json",
) -> Response:
    """List what owners and the server did, on the whole server: the last 500, or all as CSV."""
    entries = Entries(None, person, owner.may("admin"))
    return await _entries_response(request, entries, before, format)


@routes.api("GET /api/campaigns/{campaign_id}/activity", "viewer", response_class=Response)
async def read_campaign_activity(
    request: Request,
    campaign_id: Id,
    owner: OwnerNeeded,
    person: Person = "",
    before: Before = None,
    format: Format = "json",
) -> Response:
    """List what owners and the server did in a campaign: the last 500 actions, or all as CSV.

    `person` and `before` (an id) select entries. Only admins get addresses.
    """
    entries = Entries(campaign_id, person, owner.may("admin"))
    return await _entries_response(request, entries, before, format)


async def _entries_response(
    request: Request, entries: Entries, before: int | None, format: Format
) -> Response:
    state = state_of(request)
    rows = await state.store.aread(lambda c: entries.read(c, before))  # refuses first
    if format == "json":
        return JSONResponse(rows)
    name = "activity" if entries.campaign_id is None else f"activity-{entries.campaign_id}"
    head = {"content-disposition": f'attachment; filename="{name}.csv"'}
    lines = iterate_in_threadpool(entries.lines(state))
    return StreamingResponse(lines, media_type="text/csv; charset=utf-8", headers=head)


@routes.page("GET /activity", "admin", "activity.html")
def server_activity(tx: Read, person: Person = "", before: Before = None) -> Reply:
    """Show what happened on the server."""
    names = {row.id: row.name for row in list_campaigns(tx.connection)}
    return {"campaign": None, "names": names, **_activity(tx, None, person, before)}


@routes.page("GET /c/{campaign_id}/activity", "viewer", "activity.html")
def campaign_activity(
    tx: Read, campaign_id: Id, person: Person = "", before: Before = None
) -> Reply:
    """Show what happened in a campaign."""
    campaign = tx.campaign(campaign_id)
    return {"campaign": campaign, "names": {}, **_activity(tx, campaign_id, person, before)}


def _activity(tx: Read, campaign_id: int | None, person: str, before: int | None) -> JsonObject:
    entries = Entries(campaign_id, person, tx.owner.may("admin"))
    rows = entries.read(tx.connection, before)
    known = [*list_people(tx.connection, campaign_id), SERVER]
    older = {"person": person, "before": str(rows[-1]["id"])} if len(rows) == MAX_LISTED else None
    folder = "" if campaign_id is None else f"/campaigns/{campaign_id}"
    return {
        "rows": [{**row, "who": _who(row), "words": _words(row)} for row in rows],
        "people": known if not person or person in known else [*known, person],
        "person": person,
        "older": "" if older is None else urlencode(older),
        "file": f"/api{folder}/activity?" + urlencode({"format": "csv", "person": person}),
    }


def _who(entry: ActivityEntry) -> str:
    """Who acted, as far as is known."""
    return entry["person"] or entry["actor"]


def _words(entry: ActivityEntry) -> str:
    """Write the details of an entry in one line.

    >>> _words({"detail": {"worker": 7, "tasks": ["a", "b"], "reason": ""}})
    'worker 7 · tasks a, b'
    """
    shown = ((name, _value(value)) for name, value in entry["detail"].items())
    return " · ".join(f"{name.replace('_', ' ')} {value}" for name, value in shown if value)


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, dict):
        return ", ".join(f"{name} {_value(each)}".strip() for name, each in value.items())
    return ", ".join(map(_value, value)) if isinstance(value, list) else str(value)
