"""Owners and their roles, and what everybody did."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from sqlalchemy.engine import Connection
from starlette.responses import Response

from crowdtree.server.store.db.activity import MAX_LISTED, SERVER, ActivityEntry, list_people
from crowdtree.server.store.db.campaign_row import Campaign, get_campaign, list_campaigns
from crowdtree.server.store.owner import owners
from crowdtree.server.web.auth import OWNER_ONLY, Owner, OwnerNeeded
from crowdtree.server.web.pages.base import PageRoute, render
from crowdtree.server.web.requests import Number, state_of
from crowdtree.server.web.services import activity

router = APIRouter(route_class=PageRoute, dependencies=OWNER_ONLY)
MEANINGS = {
    "viewer": "sees everything except keys, webhooks and people",
    "editor": "also creates, changes, starts and finishes campaigns",
    "admin": "also manages people, sees addresses, and deletes campaigns and personal data",
}
Before = Annotated[int | None, Query(ge=1, le=2**53)]
Person = Annotated[str, Query(max_length=200)]


@router.get("/people")
async def people(request: Request, owner: OwnerNeeded) -> Response:
    """Show the owners, with what changes them."""
    state = state_of(request)
    rows = await state.store.aread(lambda c: owners.list_owners(c, state.now))
    base = state.options.url
    return render(
        request, "people.html", owner=owner, rows=rows, now=state.now, roles=MEANINGS, base=base
    )


@router.get("/activity")
async def server_activity(
    request: Request, owner: OwnerNeeded, person: Person = "", before: Before = None
) -> Response:
    """Show what happened on the server."""
    return await _activity(request, owner, None, person, before)


@router.get("/c/{number}/activity")
async def campaign_activity(
    request: Request, number: Number, owner: OwnerNeeded, person: Person = "", before: Before = None
) -> Response:
    """Show what happened in a campaign."""
    return await _activity(request, owner, number, person, before)


async def _activity(
    request: Request, owner: Owner, number: int | None, person: str, before: int | None
) -> Response:
    state = state_of(request)
    query = activity.Query(number, person, owner.may("admin"))

    def look(
        connection: Connection,
    ) -> tuple[Campaign | None, list[ActivityEntry], list[str], dict[int, str]]:
        campaign = None if number is None else get_campaign(connection, number)
        names = {row.id: row.name for row in list_campaigns(connection)} if number is None else {}
        known = [*list_people(connection, number), SERVER]
        return campaign, query.read(connection, before), known, names

    campaign, rows, known, names = await state.store.aread(look)
    older = {"person": person, "before": str(rows[-1]["id"])} if len(rows) == MAX_LISTED else None
    return render(
        request,
        "activity.html",
        owner=owner,
        campaign=campaign,
        rows=[{**row, "who": activity.who(row), "words": _words(row)} for row in rows],
        people=known if not person or person in known else [*known, person],
        person=person,
        names=names,
        older="" if older is None else urlencode(older),
        file=f"/api{'' if number is None else f'/campaigns/{number}'}/activity?"
        + urlencode({"format": "csv", "person": person}),
    )


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
