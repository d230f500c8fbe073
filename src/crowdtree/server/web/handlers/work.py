"""What a worker does: agree, practise; next, answer, skip, report."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Annotated, Any, Literal, NotRequired, get_args

from fastapi import Request
from pydantic import Field, StringConstraints
from sqlalchemy.engine import Connection
from typing_extensions import TypedDict

from crowdtree.server.store import Next, Submit, tokens
from crowdtree.server.store.db.campaign_row import Campaign, get_campaign
from crowdtree.server.store.owner import people
from crowdtree.server.store.owner.people import End, look_at_end, note_end
from crowdtree.server.store.queries.workers import WorkerState, get_worker, worker_state
from crowdtree.server.store.serving import workers
from crowdtree.server.store.serving.commands import HandedOut, Taken
from crowdtree.server.web.auth import WorkerHash
from crowdtree.server.web.routing import Body, Routes, State, WorkerRoute, disconnection
from crowdtree.server.web.state import AppState

routes = Routes("worker", WorkerRoute)
Key = Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=r"^[\w.:-]+$")]
Lease = Annotated[str, StringConstraints(min_length=3, max_length=60, pattern=r"^\d+\.[0-9a-f]+$")]
ReportReason = Literal["not_shown", "unreadable", "unsuitable", "offensive", "other"]
REPORT_REASONS: tuple[ReportReason, ...] = get_args(ReportReason)
"""What can be wrong with an item."""
AT_THE_END = ("finished", "done", "all answered")


class NextRequest(Body):
    """A request for a question."""

    holding: Annotated[tuple[Lease, ...], Field(max_length=100)] = ()
    wait: Annotated[float, Field(ge=0, le=25)] = 0.0


class SkipRequest(Body):
    """A question that the worker cannot answer."""

    lease: Lease
    key: Key


class AnswerRequest(SkipRequest):
    """An answer."""

    answer: Literal["yes", "no"]


class ReportRequest(SkipRequest):
    """A question that is skipped because something is wrong with the item."""

    reason: ReportReason
    words: Annotated[str, StringConstraints(max_length=500, strip_whitespace=True)] = ""

    @property
    def text(self) -> str:
        """What the owner sees."""
        return (f"{self.reason}: {self.words}" if self.words else self.reason).replace("\x00", "")


class ConsentRequest(Body):
    """Agreement to what the owner asks for; `mark` identifies the text that was read."""

    mark: Annotated[str, StringConstraints(min_length=1, max_length=64)]


class PracticeRequest(Body):
    """An answer to a training item."""

    number: Annotated[int, Field(ge=1, le=1000)]
    answer: Literal["yes", "no", "skip"]

    @property
    def outcome(self) -> Literal["yes", "no"] | None:
        """The answer; none where the worker cannot tell."""
        return None if self.answer == "skip" else self.answer


class ReleaseRequest(Body):
    """Questions that a worker holds."""

    leases: Annotated[list[Lease], Field(min_length=1, max_length=100)]


class NextQuestion(HandedOut):
    """A task, or the reason why there is none; at the end, the closing words."""

    end: NotRequired[End]


class WorkerSummary(TypedDict):
    """A worker's own record."""

    id: int
    name: str
    status: str
    answers: int
    skips: int


class WorkerReport(TypedDict):
    """What a worker has done and what the campaign asks for."""

    campaign: str
    campaign_id: int
    status: str
    worker: WorkerSummary
    instructions: str
    examples: dict[str, str]
    answers_per_worker: int | None
    least_answers: int
    """Accepted answers before the worker gets a completion code."""
    code: bool
    """Whether there is a completion code, or a link back."""
    consent: str
    """What the worker has to agree to before the first question."""
    consent_mark: str
    """Identifies the text; empty where the worker has agreed, or need not."""
    accepted: int
    earned: float
    currency: str


# ----------------------------------------------------------------------------- questions


@routes.api("POST /api/worker/next")
async def next_question(
    request: Request, state: State, given: NextRequest, who: WorkerHash
) -> NextQuestion:
    """Hand out a question; with `wait`, wait that many seconds for one to open.

    `task` is null when there is none: `reason` says why (wait: others hold the questions or have
    to answer first; finished; done: the worker's number of answers is reached; all answered: the
    worker has answered all they may; paused, budget, worker paused, holding; consent: agree first,
    with `POST /api/worker/consent`; training: practise first, with `GET` and `POST` of
    `/api/worker/training`).
    `more` is true where there is no work now, so that it makes sense to ask again, and false where
    there is no more, or something to do first.
    """
    end, tries = time.monotonic() + given.wait, 0
    gone: asyncio.Future[None] | None = None
    try:
        while True:
            command = Next(who, given.holding)
            found = await state.store.aask(command)
            left = end - time.monotonic()
            if found["task"] is None:
                state.waiters.pass_on(command.campaign, tries)
            if found["task"] is not None or not found["more"] or left <= 0.01 or state.stopping:
                return await _with_end(state, who, found)
            # A client that disconnects gets no question: nobody else could answer it until its
            # lease expires.
            gone = gone or asyncio.ensure_future(disconnection(request))
            seconds = min(left, state.poll_seconds)
            more_tries = await _wait(state, command.campaign, seconds, gone)
            if more_tries is None:
                return NextQuestion(task=None, reason=found["reason"], more=found["more"])
            tries = more_tries
    finally:
        if gone is not None:
            gone.cancel()


async def _wait(
    state: AppState, campaign_id: int, seconds: float, gone: asyncio.Future[None]
) -> int | None:
    """Wait for a question to open; how many may try it next, or none for a client that is gone."""
    opened = asyncio.create_task(state.waiters.wait(campaign_id, seconds))
    try:
        either: set[asyncio.Future[Any]] = {opened, gone}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not gone.done():
            return opened.result()
        if opened.done():
            state.waiters.pass_on(campaign_id, opened.result())
        return None
    finally:
        opened.cancel()


async def _with_end(state: AppState, who: str, found: HandedOut) -> NextQuestion:
    """Add the closing words for a worker who has finished, and note who gets the code."""
    if found["reason"] not in AT_THE_END:
        return NextQuestion(task=found["task"], reason=found["reason"], more=found["more"])
    end, new = await state.store.aread(lambda c: look_at_end(c, who, state.now))
    if new:
        await state.store.awrite(lambda c: note_end(c, who, state.now))
    return {**found, "end": end}


@routes.api("POST /api/worker/answer")
async def answer(state: State, given: AnswerRequest, who: WorkerHash) -> Taken:
    """Answer a question. Repeating a key returns the first result.

    `fate` is "counted", or why not: "surplus" (the vote was over), "late" (the item has its
    label), "over budget" (it came too late to be paid). `late` says that the lease had expired.
    """
    value = int(given.answer == "yes")
    command = Submit(who, given.lease, "answer", value, given.key)
    return await state.store.aask(command)


@routes.api("POST /api/worker/skip")
async def skip(state: State, given: SkipRequest, who: WorkerHash) -> Taken:
    """Skip a question that the worker cannot answer."""
    command = Submit(who, given.lease, "skip", None, given.key)
    return await state.store.aask(command)


@routes.api("POST /api/worker/report")
async def report(state: State, given: ReportRequest, who: WorkerHash) -> Taken:
    """Report that something is wrong with the item, which skips the question.

    The owner sees `reason` (not_shown, unreadable, unsuitable, offensive, other) and `words`.
    """
    command = Submit(who, given.lease, "skip", None, given.key, given.text)
    return await state.store.aask(command)


@routes.api("POST /api/worker/release")
async def release(state: State, given: ReleaseRequest, who: WorkerHash) -> dict[str, int]:
    """Give back questions that will not be answered now, so that others get them at once.

    Somebody who takes and gives back all questions again and again would see which of them come
    by chance, the gold items: beyond a limit the worker keeps them.
    """

    def give_back(connection: Connection) -> int:
        _, worker = tokens.worker_of(connection, who, state.now)
        if not state.release_limit.allows(f"worker {worker}"):
            return 0
        return people.release(connection, worker, given.leases)

    return {"released": await state.store.awrite(give_back)}


# --------------------------------------------------------------------- before the first one


@routes.api("POST /api/worker/consent")
async def consent(state: State, given: ConsentRequest, who: WorkerHash) -> dict[str, bool]:
    """Agree to the text that `GET /api/worker/me` shows as `consent`; `mark` identifies it."""
    await state.store.awrite(lambda c: workers.agree(c, who, given.mark, state.now))
    return {"agreed": True}


@routes.api("GET /api/worker/training")
async def training(state: State, who: WorkerHash) -> workers.Training:
    """Show the next training item: `task` is null when the training is over."""
    return await state.store.aread(lambda c: workers.training_of(c, who, state.now))


@routes.api("POST /api/worker/training")
async def practise(state: State, given: PracticeRequest, who: WorkerHash) -> workers.Feedback:
    """Answer a training item by its number, and get the right answer with an explanation.

    It is not counted, not paid, and says nothing about the worker's reliability.
    """
    item, outcome = given.number, given.outcome
    return await state.store.awrite(lambda c: workers.practise(c, who, item, outcome, state.now))


# ---------------------------------------------------------------------------- the worker


@routes.api("GET /api/worker/state")
async def standing(state: State, who: WorkerHash) -> WorkerState:
    """Report whether the campaign and the worker are paused, and what the worker has earned."""
    return await state.store.aread(lambda c: standing_of(c, who, state))


@routes.api("GET /api/worker/me")
async def me(state: State, who: WorkerHash) -> WorkerReport:
    """Report what the worker has done and what the campaign asks for."""
    return await state.store.aread(lambda c: report_of(*worker_of(c, who, state)))


def standing_of(connection: Connection, who: str, state: AppState) -> WorkerState:
    """How a worker and the campaign stand now."""
    _, worker = tokens.worker_of(connection, who, state.now)
    return worker_state(connection, worker)


def worker_of(
    connection: Connection, who: str, state: AppState
) -> tuple[Campaign, Mapping[str, Any]]:
    """The campaign of a worker, and what is known of the worker."""
    campaign_id, worker = tokens.worker_of(connection, who, state.now)
    campaign = get_campaign(connection, campaign_id)
    problem = state.policy(campaign).problem
    return campaign, get_worker(connection, campaign_id, worker, problem)


def report_of(campaign: Campaign, worker: Mapping[str, Any]) -> WorkerReport:
    """Report about a worker of whom these facts are known."""
    tasks, money = campaign.settings.tasks, campaign.settings.money
    agreed = worker["consent"] == tasks.consent_mark
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
        "instructions": tasks.instructions,
        "examples": tasks.examples,
        "answers_per_worker": tasks.max_answers_per_worker,
        "least_answers": money.min_answers_for_code,
        "code": bool(money.personal_codes or money.completion_code or money.return_url),
        "consent": tasks.consent,
        "consent_mark": "" if agreed else tasks.consent_mark,
        "accepted": worker["accepted"],
        "earned": worker["earned"],
        "currency": money.currency,
    }
