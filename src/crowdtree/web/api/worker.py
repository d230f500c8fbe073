"""What a worker does: next, answer, skip, undo."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from sqlalchemy.engine import Connection
from starlette.responses import JSONResponse

from crowdtree.store import Next, Submit, Undo
from crowdtree.store.db.campaign_row import Campaign, get_campaign
from crowdtree.store.owner import people, tokens
from crowdtree.store.queries.workers import WorkerFacts, get_worker
from crowdtree.web.auth import WorkerHash
from crowdtree.web.site import Site, site_of

__all__ = ["router"]

router = APIRouter(prefix="/api/worker", tags=["worker"])
Key = Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=r"^[\w.:-]+$")]
Lease = Annotated[str, StringConstraints(min_length=3, max_length=60, pattern=r"^\d+\.[0-9a-f]+$")]
NO_WAIT = ("finished", "done", "all answered", "worker paused", "budget")
AT_THE_END = ("finished", "done", "all answered")


class Asked(BaseModel):
    """A wish for a question."""

    model_config = ConfigDict(extra="forbid")
    holding: Annotated[list[Lease], Field(max_length=100)] = []
    wait: Annotated[float, Field(ge=0, le=25)] = 0.0


class Skipped(BaseModel):
    """A question that the worker cannot tell."""

    model_config = ConfigDict(extra="forbid")
    lease: Lease
    key: Key


class Answered(Skipped):
    """An answer."""

    answer: Literal["yes", "no"]


class Undone(BaseModel):
    """A wish to take the last answer back."""

    model_config = ConfigDict(extra="forbid")
    key: Key


class Held(BaseModel):
    """Questions that a worker holds."""

    model_config = ConfigDict(extra="forbid")
    leases: Annotated[list[Lease], Field(min_length=1, max_length=100)]


class Question(BaseModel):
    """A question as workers see it."""

    name: str
    text: str


class Task(BaseModel):
    """A question about an item, to be answered within some seconds."""

    lease: str
    seconds: float
    item: dict[str, Any]
    question: Question


class Handed(BaseModel):
    """A task, or the reason why there is none; at the end, the thanks."""

    task: Task | None
    reason: str
    end: dict[str, str] | None = None


class Result(BaseModel):
    """What became of an answer."""

    fate: str
    late: bool


class Returned(BaseModel):
    """The question that an undo brings back."""

    undone: bool
    task: Task


# These say what there is and what is wrong; what is right goes a shorter way to the same
# functions (see crowdtree.web.hot).


@router.post("/next", response_model=Handed)
async def next_question(request: Request, asked: Asked, who: WorkerHash) -> JSONResponse:
    """Hand out a question; with `wait`, wait that many seconds for one to open.

    `task` is null when there is none: `reason` says why (wait: others have to answer first;
    finished; done: the worker's number of answers is reached; all answered: the worker has
    answered all they may; paused, budget, worker paused, holding).
    """
    site = site_of(request)
    return JSONResponse(await found_question(site, asked, who, request.is_disconnected))


async def found_question(
    site: Site, asked: Asked, who: str, gone: Callable[[], Awaitable[bool]]
) -> dict[str, Any]:
    """Find a question for a worker, or wait for one; also for the worker's page.

    Who has left meanwhile (`gone`) gets none: it would be out of everybody's reach.
    """
    end = time.monotonic() + asked.wait
    tries = 0
    while True:
        wish = Next(who, tuple(asked.holding))
        found = await site.store.aask(wish)
        left = end - time.monotonic()
        over = left <= 0.01 or site.stopping
        if found["task"] is None:
            site.waiters.pass_on(wish.campaign, tries)
        if found["task"] is not None or found["reason"] in NO_WAIT or over:
            return await _with_end(site, wish.campaign, dict(found))
        tries = await site.waiters.wait(wish.campaign, min(left, site.poll_seconds))
        if await gone():
            site.waiters.pass_on(wish.campaign, tries)
            return dict(found)


async def _with_end(site: Site, campaign: int, found: dict[str, Any]) -> dict[str, Any]:
    """Add the thanks where the worker is at the end."""
    if found["reason"] not in AT_THE_END:
        return found
    row = await site.store.aread(lambda c: get_campaign(c, campaign))
    end = row.settings.model_dump(include={"thanks", "completion_code", "return_url"})
    return {**found, "end": end}


@router.post("/answer", response_model=Result)
async def answer(request: Request, given: Answered, who: WorkerHash) -> JSONResponse:
    """Answer a question. The same key again gets the first result again.

    `fate` is "counted", or why not: "surplus" (the vote was over), "late" (the item has its
    label), "over budget" (it came too late to be paid). `late` says that the lease had expired.
    """
    return JSONResponse(await taken_answer(site_of(request), given, who))


async def taken_answer(site: Site, given: Answered, who: str) -> dict[str, Any]:
    """Take an answer; see :func:`answer`."""
    wish = Submit(who, given.lease, "answer", int(given.answer == "yes"), given.key)
    found = await site.store.aask(wish)
    return dict(found)


@router.post("/skip", response_model=Result)
async def skip(request: Request, given: Skipped, who: WorkerHash) -> JSONResponse:
    """Pass on a question that one cannot tell."""
    return JSONResponse(await taken_skip(site_of(request), given, who))


async def taken_skip(site: Site, given: Skipped, who: str) -> dict[str, Any]:
    """Take a skip; see :func:`skip`."""
    found = await site.store.aask(Submit(who, given.lease, "skip", None, given.key))
    return dict(found)


@router.post("/undo", response_model=Returned)
async def undo(request: Request, given: Undone, who: WorkerHash) -> JSONResponse:
    """Take back the last answer or skip, while nobody has answered after it.

    Returns the question again, with the lease that it had.
    """
    return JSONResponse(await site_of(request).store.aask(Undo(who, given.key)))


@router.post("/release")
async def release(request: Request, given: Held, who: WorkerHash) -> dict[str, int]:
    """Give back questions that will not be answered now, so that others get them at once."""
    site = site_of(request)
    count = await site.store.awrite(lambda c: people.release(c, who, given.leases, site.now))
    return {"released": count}


@router.get("/me")
async def me(request: Request, who: WorkerHash) -> dict[str, Any]:
    """Say what the worker has done and what the campaign asks for."""

    site = site_of(request)

    def look(connection: Connection) -> tuple[Campaign, WorkerFacts]:
        number, worker = tokens.worker_of(connection, who, site.now)
        campaign = get_campaign(connection, number)
        problem = site.policy(campaign).problem
        return campaign, get_worker(connection, number, worker, problem)

    campaign, worker = await site.store.aread(look)
    settings = campaign.settings
    return {
        "campaign": campaign.name,
        "campaign_id": campaign.id,
        "status": campaign.status,
        "worker": {
            "id": worker["id"],
            "name": worker["name"],
            "status": worker["status"],
            "answers": worker["answers"],
            "skips": worker["skips"],
        },
        "instructions": settings.instructions,
        "examples": settings.examples,
        "answers_per_worker": settings.answers_per_worker,
    }
