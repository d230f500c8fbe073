"""The worker's page for an owner: what workers see, with nothing recorded."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Request
from sqlalchemy.engine import Connection
from starlette.responses import Response

from crowdtree.store import Refused
from crowdtree.store.db.campaign_row import get_campaign
from crowdtree.store.serving.commands import HandedOut
from crowdtree.store.types import JsonObject
from crowdtree.web.auth import OWNER_ONLY, OwnerNeeded
from crowdtree.web.pages.base import PageRoute
from crowdtree.web.pages.worker import ready, work_page
from crowdtree.web.requests import Number, state_of
from crowdtree.web.services.previews import (
    previewed_question,
    previewed_state,
    previewed_worker,
)

__all__ = ["router"]


async def _there(request: Request, number: Number) -> None:
    """Refuse previews of campaigns that do not exist."""
    await state_of(request).store.aread(lambda c: get_campaign(c, number))


router = APIRouter(
    route_class=PageRoute,
    prefix="/c/{number}/preview",
    dependencies=[*OWNER_ONLY, Depends(_there)],
)


@router.get("")
async def page(request: Request, number: Number, owner: OwnerNeeded) -> Response:
    """Show the worker's page, marked as a preview."""
    campaign = await state_of(request).store.aread(lambda c: get_campaign(c, number))
    me, standing = previewed_worker(campaign), previewed_state()
    where = f"/c/{number}/preview"
    return work_page(request, "preview.html", campaign, me, standing, csrf=owner.csrf, where=where)


@router.post("/work/next")
async def next_question(request: Request, number: Number) -> JsonObject:
    """Show a random question about a random item."""
    state = state_of(request)

    def look(connection: Connection) -> HandedOut:
        campaign = get_campaign(connection, number)
        return previewed_question(connection, campaign, state.policy(campaign))

    return ready(dict(await state.store.aread(look)))


@router.get("/work/training")
async def training() -> JsonObject:
    """Leave the training out, because it goes by what a worker has done."""
    return {"total": 0, "done": 0, "task": None}


@router.get("/api/worker/state")
async def standing() -> JsonObject:
    """Tell the page that the work goes on."""
    return dict(previewed_state())


@router.post("/work/undo")
async def undo() -> None:
    """Refuse: there is no answer to take back."""
    raise Refused("nothing")


@router.post("/api/worker/answer")
@router.post("/api/worker/skip")
@router.post("/api/worker/report")
@router.post("/api/worker/consent")
@router.post("/api/worker/release")
async def forget() -> JsonObject:
    """Take what a worker would send, and forget it."""
    return {"fate": "counted", "late": False}
