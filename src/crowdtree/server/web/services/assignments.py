"""Questions out to workers, answers in."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, Literal, NotRequired, get_args

from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from sqlalchemy.engine import Connection
from typing_extensions import TypedDict

from crowdtree.server.store import Next, tokens
from crowdtree.server.store.db.campaign_row import Campaign, get_campaign
from crowdtree.server.store.owner.people import End, look_at_end, note_end
from crowdtree.server.store.queries.workers import (
    WorkerFacts,
    WorkerState,
    get_worker,
    worker_state,
)
from crowdtree.server.store.serving import commands
from crowdtree.server.web.state import AppState

Key = Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=r"^[\w.:-]+$")]
Lease = Annotated[str, StringConstraints(min_length=3, max_length=60, pattern=r"^\d+\.[0-9a-f]+$")]
Reason = Literal["not_shown", "unreadable", "unsuitable", "offensive", "other"]
REASONS: tuple[Reason, ...] = get_args(Reason)
"""What can be wrong with an item."""
AT_THE_END = ("finished", "done", "all answered")


class NextRequest(BaseModel):
    """A request for a question."""

    model_config = ConfigDict(extra="forbid")
    holding: Annotated[tuple[Lease, ...], Field(max_length=100)] = ()
    wait: Annotated[float, Field(ge=0, le=25)] = 0.0


class SkipRequest(BaseModel):
    """A question that the worker cannot answer."""

    model_config = ConfigDict(extra="forbid")
    lease: Lease
    key: Key


class AnswerRequest(SkipRequest):
    """An answer."""

    answer: Literal["yes", "no"]


class ReportRequest(SkipRequest):
    """A question that is skipped because something is wrong with the item."""

    reason: Reason
    words: Annotated[str, StringConstraints(max_length=500, strip_whitespace=True)] = ""

    @property
    def text(self) -> str:
        """What the owner sees."""
        return (f"{self.reason}: {self.words}" if self.words else self.reason).replace("\x00", "")


class ConsentRequest(BaseModel):
    """Agreement to what the owner asks for; `mark` identifies the text that was read."""

    model_config = ConfigDict(extra="forbid")
    mark: Annotated[str, StringConstraints(min_length=1, max_length=64)]


class PracticeRequest(BaseModel):
    """An answer to a training item."""

    model_config = ConfigDict(extra="forbid")
    number: Annotated[int, Field(ge=1, le=1000)]
    answer: Literal["yes", "no", "skip"]

    @property
    def outcome(self) -> Literal["yes", "no"] | None:
        """The answer; none where the worker cannot tell."""
        return None if self.answer == "skip" else self.answer


class ReleaseRequest(BaseModel):
    """Questions that a worker holds."""

    model_config = ConfigDict(extra="forbid")
    leases: Annotated[list[Lease], Field(min_length=1, max_length=100)]


class NextQuestion(commands.HandedOut):
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


async def find_question(
    state: AppState, given: NextRequest, who: str, disconnection: Callable[[], Awaitable[None]]
) -> NextQuestion:
    """Find a question for a worker, or wait for one.

    A client that disconnects meanwhile (`disconnection` returns) gets none, because nobody else
    could answer it until its lease expires.
    """
    end = time.monotonic() + given.wait
    tries = 0
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
            gone = gone or asyncio.ensure_future(disconnection())
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


async def _with_end(state: AppState, who: str, found: commands.HandedOut) -> NextQuestion:
    """Add the closing words for a worker who has finished, and note who gets the code."""
    if found["reason"] not in AT_THE_END:
        return NextQuestion(task=found["task"], reason=found["reason"], more=found["more"])
    end, new = await state.store.aread(lambda c: look_at_end(c, who, state.now))
    if new:
        await state.store.awrite(lambda c: note_end(c, who, state.now))
    return {**found, "end": end}


async def report_state(state: AppState, who: str) -> WorkerState:
    """How a worker and the campaign stand now."""

    def look(connection: Connection) -> WorkerState:
        _, worker = tokens.worker_of(connection, who, state.now)
        return worker_state(connection, worker)

    return await state.store.aread(look)


async def report_worker(state: AppState, who: str) -> WorkerReport:
    """Report what a worker has done and what the campaign asks for."""

    def look(connection: Connection) -> tuple[Campaign, WorkerFacts]:
        number, worker = tokens.worker_of(connection, who, state.now)
        campaign = get_campaign(connection, number)
        problem = state.policy(campaign).problem
        return campaign, get_worker(connection, number, worker, problem)

    return report_of(*await state.store.aread(look))


def report_of(campaign: Campaign, worker: Mapping[str, Any]) -> WorkerReport:
    """Report about a worker of whom these facts are known."""
    settings = campaign.settings
    agreed = worker["consent"] == settings.tasks.consent_mark
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
        "instructions": settings.tasks.instructions,
        "examples": settings.tasks.examples,
        "answers_per_worker": settings.tasks.max_answers_per_worker,
        "least_answers": settings.money.min_answers_for_code,
        "code": bool(
            settings.money.personal_codes
            or settings.money.completion_code
            or settings.money.return_url
        ),
        "consent": settings.tasks.consent,
        "consent_mark": "" if agreed else settings.tasks.consent_mark,
        "accepted": worker["accepted"],
        "earned": worker["earned"],
        "currency": settings.money.currency,
    }
