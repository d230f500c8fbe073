"""What a worker does: agree, practise; next, answer, skip, report."""

from __future__ import annotations

from fastapi import APIRouter, Request
from pydantic import BaseModel
from starlette.responses import JSONResponse

from crowdtree.server.store.serving import commands
from crowdtree.server.store.types import JsonObject
from crowdtree.server.web.auth import WorkerHash
from crowdtree.server.web.requests import state_of
from crowdtree.server.web.routing import GuardedRoute, QuickRoute
from crowdtree.server.web.services import assignments
from crowdtree.server.web.services.assignments import (
    Agreed,
    Answered,
    Asked,
    Held,
    Practised,
    Reported,
    Skipped,
)

router = APIRouter(route_class=GuardedRoute, prefix="/api/worker", tags=["worker"])
quick = APIRouter(route_class=QuickRoute, prefix="/api/worker", tags=["worker"])
"""Routes of what workers do all the time."""


class Question(BaseModel):
    """A question as workers see it."""

    name: str
    text: str


class Task(BaseModel):
    """A question about an item, to be answered within some seconds."""

    lease: str
    seconds: float
    item: JsonObject
    question: Question


class Handed(BaseModel):
    """A task, or the reason why there is none; at the end, the closing words."""

    task: Task | None
    reason: str
    more: bool
    end: JsonObject | None = None


class Result(BaseModel):
    """The outcome of an answer."""

    fate: str
    late: bool


@quick.post("/next", response_model=Handed)
async def next_question(request: Request, given: Asked, who: WorkerHash) -> assignments.Found:
    """Hand out a question; with `wait`, wait that many seconds for one to open.

    `task` is null when there is none: `reason` says why (wait: others hold the questions or have
    to answer first; finished; done: the worker's number of answers is reached; all answered: the
    worker has answered all they may; paused, budget, worker paused, holding; consent: agree first,
    with `POST /api/worker/consent`; training: practise first, with `GET` and `POST` of
    `/api/worker/training`).
    `more` is true where there is no work now, so that it makes sense to ask again, and false where
    there is no more, or something to do first.
    """
    state = state_of(request)
    return await assignments.find_question(state, given, who, request.is_disconnected)


@quick.post("/answer", response_model=Result)
async def answer(request: Request, given: Answered, who: WorkerHash) -> commands.Taken:
    """Answer a question. Repeating a key returns the first result.

    `fate` is "counted", or why not: "surplus" (the vote was over), "late" (the item has its
    label), "over budget" (it came too late to be paid). `late` says that the lease had expired.
    """
    return await assignments.submit_answer(state_of(request), given, who)


@quick.post("/skip", response_model=Result)
async def skip(request: Request, given: Skipped, who: WorkerHash) -> commands.Taken:
    """Skip a question that the worker cannot answer."""
    return await assignments.submit_skip(state_of(request), given, who)


@router.post("/report", response_model=Result)
async def report(request: Request, given: Reported, who: WorkerHash) -> JSONResponse:
    """Report that something is wrong with the item, which skips the question.

    The owner sees `reason` (not_shown, unreadable, unsuitable, offensive, other) and `words`.
    """
    return JSONResponse(await assignments.submit_report(state_of(request), given, who))


@router.post("/consent")
async def consent(request: Request, given: Agreed, who: WorkerHash) -> dict[str, bool]:
    """Agree to the text that `GET /api/worker/me` shows as `consent`; `mark` identifies it."""
    await assignments.agree(state_of(request), given, who)
    return {"agreed": True}


@router.get("/training")
async def training(request: Request, who: WorkerHash) -> JsonObject:
    """Show the next training item: `task` is null when the training is over."""
    return dict(await assignments.training_of(state_of(request), who))


@router.post("/training")
async def practise(request: Request, given: Practised, who: WorkerHash) -> JsonObject:
    """Answer a training item by its number, and get the right answer with an explanation.

    It is not counted, not paid, and says nothing about the worker's reliability.
    """
    return dict(await assignments.practise(state_of(request), given, who))


@router.post("/release")
async def release(request: Request, given: Held, who: WorkerHash) -> dict[str, int]:
    """Give back questions that will not be answered now, so that others get them at once."""
    return {"released": await assignments.release(state_of(request), given, who)}


@router.get("/state")
async def state(request: Request, who: WorkerHash) -> JsonObject:
    """Report whether the campaign and the worker are paused, and what the worker has earned."""
    return dict(await assignments.report_state(state_of(request), who))


@router.get("/me")
async def me(request: Request, who: WorkerHash) -> JsonObject:
    """Report what the worker has done and what the campaign asks for."""
    return dict(await assignments.report_worker(state_of(request), who))
