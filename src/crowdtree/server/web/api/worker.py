"""What a worker does: agree, practise; next, answer, skip, report."""

from __future__ import annotations

from functools import partial
from typing import Literal

from fastapi import APIRouter, Request
from sqlalchemy.engine import Connection

from crowdtree.server.store import Submit, tokens
from crowdtree.server.store.owner import people
from crowdtree.server.store.queries.workers import WorkerState
from crowdtree.server.store.serving import workers
from crowdtree.server.store.serving.commands import Taken
from crowdtree.server.web.auth import WorkerHash
from crowdtree.server.web.requests import disconnection, state_of
from crowdtree.server.web.routing import WorkerRoute
from crowdtree.server.web.services import assignments
from crowdtree.server.web.services.assignments import (
    AnswerRequest,
    ConsentRequest,
    NextRequest,
    PracticeRequest,
    ReleaseRequest,
    ReportRequest,
    SkipRequest,
    WorkerReport,
)

router = APIRouter(route_class=WorkerRoute, prefix="/api/worker", tags=["worker"])


@router.post("/next")
async def next_question(
    request: Request, given: NextRequest, who: WorkerHash
) -> assignments.NextQuestion:
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
    return await assignments.find_question(state, given, who, partial(disconnection, request))


@router.post("/answer")
async def answer(request: Request, given: AnswerRequest, who: WorkerHash) -> Taken:
    """Answer a question. Repeating a key returns the first result.

    `fate` is "counted", or why not: "surplus" (the vote was over), "late" (the item has its
    label), "over budget" (it came too late to be paid). `late` says that the lease had expired.
    """
    return await _submit(request, given, who, "answer", int(given.answer == "yes"))


@router.post("/skip")
async def skip(request: Request, given: SkipRequest, who: WorkerHash) -> Taken:
    """Skip a question that the worker cannot answer."""
    return await _submit(request, given, who, "skip")


@router.post("/report")
async def report(request: Request, given: ReportRequest, who: WorkerHash) -> Taken:
    """Report that something is wrong with the item, which skips the question.

    The owner sees `reason` (not_shown, unreadable, unsuitable, offensive, other) and `words`.
    """
    return await _submit(request, given, who, "skip", report=given.text)


async def _submit(
    request: Request,
    given: SkipRequest,
    who: str,
    kind: Literal["answer", "skip"],
    value: int | None = None,
    report: str = "",
) -> Taken:
    submit = Submit(who, given.lease, kind, value, given.key, report)
    return await state_of(request).store.aask(submit)


@router.post("/consent")
async def consent(request: Request, given: ConsentRequest, who: WorkerHash) -> dict[str, bool]:
    """Agree to the text that `GET /api/worker/me` shows as `consent`; `mark` identifies it."""
    state = state_of(request)
    await state.store.awrite(lambda c: workers.agree(c, who, given.mark, state.now))
    return {"agreed": True}


@router.get("/training")
async def training(request: Request, who: WorkerHash) -> workers.Training:
    """Show the next training item: `task` is null when the training is over."""
    state = state_of(request)
    return await state.store.aread(lambda c: workers.training_of(c, who, state.now))


@router.post("/training")
async def practise(request: Request, given: PracticeRequest, who: WorkerHash) -> workers.Feedback:
    """Answer a training item by its number, and get the right answer with an explanation.

    It is not counted, not paid, and says nothing about the worker's reliability.
    """
    state, number, answer = state_of(request), given.number, given.outcome
    return await state.store.awrite(lambda c: workers.practise(c, who, number, answer, state.now))


@router.post("/release")
async def release(request: Request, given: ReleaseRequest, who: WorkerHash) -> dict[str, int]:
    """Give back questions that will not be answered now, so that others get them at once.

    Somebody who takes and gives back all questions again and again would see which of them come
    by chance, the gold items: beyond a limit the worker keeps them.
    """
    state = state_of(request)

    def give_back(connection: Connection) -> int:
        _, worker = tokens.worker_of(connection, who, state.now)
        if not state.release_limit.allows(f"worker {worker}"):
            return 0
        return people.release(connection, worker, given.leases)

    return {"released": await state.store.awrite(give_back)}


@router.get("/state")
async def state(request: Request, who: WorkerHash) -> WorkerState:
    """Report whether the campaign and the worker are paused, and what the worker has earned."""
    return await assignments.report_state(state_of(request), who)


@router.get("/me")
async def me(request: Request, who: WorkerHash) -> WorkerReport:
    """Report what the worker has done and what the campaign asks for."""
    return await assignments.report_worker(state_of(request), who)
