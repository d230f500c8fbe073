"""Owners with their roles, what they did, and what admins delete."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy.engine import Connection
from starlette.concurrency import iterate_in_threadpool
from starlette.responses import JSONResponse, Response, StreamingResponse

from crowdtree.server.store import Refused
from crowdtree.server.store.owner import owners
from crowdtree.server.store.tokens import OwnerRole
from crowdtree.server.store.types import JsonObject
from crowdtree.server.web.auth import OWNER_ONLY, OwnerNeeded
from crowdtree.server.web.requests import Number, Reply, State, state_of
from crowdtree.server.web.routing import GuardedRoute
from crowdtree.server.web.services import activity, deleting

router = APIRouter(route_class=GuardedRoute, prefix="/api", tags=["people"])
LINK_SECONDS = 3 * 86_400.0
"""How long a new owner has to open the link."""
OWN = "This is your own role. Ask another admin to change or revoke it."
Before = Annotated[int | None, Query(ge=1, le=2**53)]
Person = Annotated[str, Query(max_length=200)]
Format = Literal["json", "csv"]


class RoleRequest(BaseModel):
    """A role."""

    model_config = ConfigDict(extra="forbid")
    role: OwnerRole


class NewOwner(RoleRequest):
    """An owner to add."""

    name: Annotated[str, Field(min_length=1, max_length=200)]


class DeleteRequest(BaseModel):
    """The name of a campaign that is to be deleted."""

    model_config = ConfigDict(extra="forbid")
    name: Annotated[str, Field(max_length=200)]


@router.get("/people", dependencies=OWNER_ONLY)
async def list_people(state: State) -> Sequence[Reply]:
    """List the owners with their roles; the first is whoever runs the server, without an id."""
    return await state.store.aread(lambda c: owners.list_owners(c, state.now))


@router.post("/people", status_code=201, dependencies=OWNER_ONLY)
async def add_person(state: State, given: NewOwner) -> JsonObject:
    """Add an owner; the link logs in once, within three days, and is shown only here."""

    def add(connection: Connection) -> tuple[int, str]:
        made = owners.add(connection, given.name, given.role, state.now)
        return made, owners.make_link(connection, made, state.now, LINK_SECONDS)

    person, token = await state.store.awrite(add)
    return {"id": person, "role": given.role, "link": f"/login?token={token}"}


@router.patch("/people/{person}")
async def change_role(
    state: State, person: Number, given: RoleRequest, owner: OwnerNeeded
) -> dict[str, str]:
    """Change the role of an owner, from the next request on."""
    if person == owner.id:
        raise Refused("own", OWN)
    await state.store.awrite(lambda c: owners.set_role(c, person, given.role, state.now))
    return {"role": given.role}


@router.post("/people/{person}/link", dependencies=OWNER_ONLY)
async def make_link(state: State, person: Number) -> dict[str, str]:
    """Make a link that logs an owner in, once; unused ones from before stop working."""
    token = await state.store.awrite(
        lambda c: owners.make_link(c, person, state.now, LINK_SECONDS, replace=True)
    )
    return {"link": f"/login?token={token}"}


@router.delete("/people/{person}")
async def remove_person(state: State, person: Number, owner: OwnerNeeded) -> dict[str, int]:
    """Remove an owner; all their tokens, sessions and links end at once."""
    if person == owner.id:
        raise Refused("own", OWN)
    return {"revoked": await state.store.awrite(lambda c: owners.revoke(c, person, state.now))}


@router.get("/activity", response_class=Response)
async def read_activity(
    request: Request,
    owner: OwnerNeeded,
    person: Person = "",
    before: Before = None,
    format: Format = "json",
) -> Response:
    """List what owners and the server did, on the whole server: the last 500, or all as CSV."""
    return await _activity(request, owner, None, person, before, format)


@router.get("/campaigns/{number}/activity", response_class=Response)
async def read_campaign_activity(
    request: Request,
    number: Number,
    owner: OwnerNeeded,
    person: Person = "",
    before: Before = None,
    format: Format = "json",
) -> Response:
    """List what owners and the server did in a campaign: the last 500 actions, or all as CSV.

    `person` and `before` (an id) select entries. Only admins get addresses.
    """
    return await _activity(request, owner, number, person, before, format)


async def _activity(
    request: Request,
    owner: OwnerNeeded,
    number: int | None,
    person: str,
    before: int | None,
    format: Format,
) -> Response:
    state = state_of(request)
    query = activity.Query(number, person, owner.may("admin"))
    rows = await activity.entries(state, query, before)  # a campaign that is missing is reported
    if format == "json":
        return JSONResponse(rows)
    name = "activity" if number is None else f"activity-{number}"
    head = {"content-disposition": f'attachment; filename="{name}.csv"'}
    lines = iterate_in_threadpool(activity.file_of(state, query))
    return StreamingResponse(lines, media_type="text/csv; charset=utf-8", headers=head)


@router.post("/campaigns/{number}/delete", dependencies=OWNER_ONLY)
async def delete_campaign(state: State, number: Number, given: DeleteRequest) -> Reply:
    """Delete a campaign with its items, answers, workers, links, webhooks and media, for good.

    `name` must be its name. A campaign that is running has to be paused first.
    """
    call = (state.store, state.media, number, given.name)
    return await asyncio.to_thread(deleting.delete_campaign, *call)


@router.post("/campaigns/{number}/workers/{worker}/erase", dependencies=OWNER_ONLY)
async def erase(state: State, number: Number, worker: Number) -> dict[str, bool]:
    """Delete the personal data of a worker, who is blocked; the answers stay under a number."""
    await asyncio.to_thread(deleting.erase_worker, state.store, number, worker)
    return {"done": True}
