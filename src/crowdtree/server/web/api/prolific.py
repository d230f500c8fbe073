"""The study of a campaign on Prolific: create and move it, review submissions, pay bonuses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from crowdtree.server.prolific import bonuses, people, studies
from crowdtree.server.prolific.client import Client
from crowdtree.server.prolific.study import StudyRequest
from crowdtree.server.store.types import JsonObject
from crowdtree.server.web.auth import OWNER_ONLY
from crowdtree.server.web.requests import Number, state_of
from crowdtree.server.web.routing import GuardedRoute

router = APIRouter(
    route_class=GuardedRoute,
    prefix="/api/campaigns/{number}/prolific",
    tags=["owner"],
    dependencies=OWNER_ONLY,
)
Names = Annotated[
    list[Annotated[str, Field(max_length=64)]],
    Field(max_length=10_000),
    BeforeValidator(lambda value: [value] if isinstance(value, str) else value),  # from a form
]


class CallRequest(BaseModel):
    """A call; with `dry_run`, only what would be sent is reported."""

    model_config = ConfigDict(extra="forbid")
    dry_run: bool = False


class NewStudy(CallRequest):
    """A study: participants, seconds per answer, and texts for participants."""

    places: Annotated[int, Field(ge=1, le=1_000_000)]
    seconds: Annotated[float, Field(gt=0, le=3600)] = 20.0
    title: Annotated[str, Field(max_length=200)] = ""
    description: Annotated[str, Field(max_length=50_000)] = ""
    url: Annotated[str, Field(max_length=1000)] = ""
    """Public address of the server; the one that it was started with by default."""


class ApproveRequest(CallRequest):
    """Submissions to approve; without any, those that await review with enough answers."""

    submissions: Names | None = None


class RejectRequest(CallRequest):
    """Submissions to reject, with a category of Prolific and a message to the participants."""

    submissions: Annotated[Names, Field(min_length=1)]
    category: Annotated[str, Field(max_length=64)]
    message: Annotated[str, Field(max_length=10_000)]


class BonusRequest(CallRequest):
    """Submissions whose bonuses to pay, or the outcome of a payment whose reply was lost."""

    submissions: Names | None = None
    outcome: bonuses.Outcome | None = None


@router.post("/create")
async def create(request: Request, number: Number, given: NewStudy) -> JsonObject:
    """Create a draft study, once per campaign; a repetition returns the same study."""
    url = given.url or state_of(request).options.url
    made = StudyRequest(given.places, url, given.seconds, given.title, given.description)
    return await _call(request, studies.create_study, number, made, given.dry_run)


@router.get("/submissions")
async def submissions(request: Request, number: Number) -> JsonObject:
    """List the submissions with their workers, and participants whom Prolific does not list."""
    return await _call(request, people.list_submissions, number)


@router.post("/approve")
async def approve(request: Request, number: Number, given: ApproveRequest) -> JsonObject:
    """Approve submissions: Prolific pays the reward, which cannot be taken back."""
    return await _call(request, people.approve, number, given.submissions, given.dry_run)


@router.post("/reject")
async def reject(request: Request, number: Number, given: RejectRequest) -> JsonObject:
    """Reject submissions: the participants are not paid, and read the message."""
    why = (given.category, given.message)
    return await _call(request, people.reject, number, given.submissions, *why, given.dry_run)


@router.post("/bonus")
async def bonus(request: Request, number: Number, given: BonusRequest) -> JsonObject:
    """Pay what participants have earned beyond the reward, once."""
    details = (given.submissions, given.outcome, given.dry_run)
    return await _call(request, bonuses.pay_bonuses, number, *details)


@router.post("/{move}")
async def move(
    request: Request, number: Number, move: studies.Move, given: CallRequest | None = None
) -> JsonObject:
    """Publish, pause, resume or stop the study; nothing happens if it is there already."""
    return await _call(
        request, studies.move_study, number, move, given is not None and given.dry_run
    )


async def _call(
    request: Request, action: Callable[..., JsonObject], number: int, *details: Any
) -> JsonObject:
    """Call Prolific about a campaign, in a thread."""
    store = state_of(request).store
    return await asyncio.to_thread(
        lambda: action(store, Client.from_environment(), number, *details)
    )
