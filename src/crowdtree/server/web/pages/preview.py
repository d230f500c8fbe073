"""The worker's page for an owner: what workers see, with nothing recorded."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Request
from sqlalchemy.engine import Connection
from starlette.responses import Response

from crowdtree.server.store.db.campaign_row import get_campaign
from crowdtree.server.store.serving.commands import HandedOut
from crowdtree.server.store.serving.workers import Learner, feedback, learner, next_lesson
from crowdtree.server.store.types import JsonObject
from crowdtree.server.web.auth import OWNER_ONLY, OwnerNeeded
from crowdtree.server.web.pages.base import PageRoute
from crowdtree.server.web.pages.worker import ready, work_page
from crowdtree.server.web.requests import Number, state_of
from crowdtree.server.web.services.assignments import PracticeRequest
from crowdtree.server.web.services.previews import (
    previewed_question,
    previewed_state,
    previewed_worker,
)

TRAINED = "crowdtree_practised"
"""Cookie with the number of training items that the preview has shown, as nothing is stored."""


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
    made = work_page(request, "preview.html", campaign, me, standing, csrf=owner.csrf, where=where)
    made.delete_cookie(TRAINED, path=where)
    return made


@router.post("/work/next")
async def next_question(request: Request, number: Number) -> JsonObject:
    """Show a random question about a random item, after the training."""
    state = state_of(request)

    def look(connection: Connection) -> HandedOut:
        campaign = get_campaign(connection, number)
        me = _learner(request, connection, number)
        if me.trained < len(me.lessons):
            return {"task": None, "reason": "training", "more": False}
        return previewed_question(connection, campaign, state.policy(campaign))

    return ready(dict(await state.store.aread(look)))


@router.get("/work/training")
async def training(request: Request, number: Number) -> JsonObject:
    """Show the next training item."""
    store = state_of(request).store
    found = await store.aread(lambda c: next_lesson(c, _learner(request, c, number)))
    return ready(dict(found))


@router.post("/api/worker/training")
async def practise(
    request: Request, response: Response, number: Number, given: PracticeRequest
) -> JsonObject:
    """Show the right answer to a training item."""
    store = state_of(request).store
    me = await store.aread(lambda c: _learner(request, c, number))
    found = await store.aread(lambda c: feedback(c, me, given.number, given.outcome))
    done = str(max(me.trained, given.number))
    path = f"/c/{number}/preview"
    secure = state_of(request).options.secure_cookies
    response.set_cookie(TRAINED, done, path=path, samesite="lax", secure=secure, httponly=True)
    return dict(found)


def _learner(request: Request, connection: Connection, number: int) -> Learner:
    """The owner as somebody who has practised as often as the preview has shown."""
    said = request.cookies.get(TRAINED, "")
    trained = int(said) if said.isdecimal() and len(said) < 4 else 0
    return learner(connection, get_campaign(connection, number), trained)


@router.get("/api/worker/state")
async def standing() -> JsonObject:
    """Tell the page that the work goes on."""
    return dict(previewed_state())


@router.post("/api/worker/answer")
@router.post("/api/worker/skip")
@router.post("/api/worker/report")
@router.post("/api/worker/consent")
@router.post("/api/worker/release")
async def forget() -> JsonObject:
    """Take what a worker would send, and forget it."""
    return {"fate": "counted", "late": False}
