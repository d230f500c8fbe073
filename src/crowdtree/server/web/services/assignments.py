"""Questions out to workers, answers in."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, Literal, NotRequired, TypedDict, get_args

from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from sqlalchemy.engine import Connection

from crowdtree.server.store import Next, Submit, preparing
from crowdtree.server.store.db.campaign_row import Campaign, get_campaign
from crowdtree.server.store.owner import people, tokens
from crowdtree.server.store.owner.completion import End, look_at_end, note_end
from crowdtree.server.store.preparing import Feedback, Training
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


class Asked(BaseModel):
    """A request for a question."""

    model_config = ConfigDict(extra="forbid")
    holding: Annotated[tuple[Lease, ...], Field(max_length=100)] = ()
    wait: Annotated[float, Field(ge=0, le=25)] = 0.0


class Skipped(BaseModel):
    """A question that the worker cannot answer."""

    model_config = ConfigDict(extra="forbid")
    lease: Lease
    key: Key


class Answered(Skipped):
    """An answer."""

    answer: Literal["yes", "no"]


class Reported(Skipped):
    """A question that is skipped because something is wrong with the item."""

    reason: Reason
    words: Annotated[str, StringConstraints(max_length=500, strip_whitespace=True)] = ""


class Agreed(BaseModel):
    """Agreement to what the owner asks for; `mark` identifies the text that was read."""

    model_config = ConfigDict(extra="forbid")
    mark: Annotated[str, StringConstraints(min_length=1, max_length=64)]


class Practised(BaseModel):
    """An answer to a training item."""

    model_config = ConfigDict(extra="forbid")
    number: Annotated[int, Field(ge=1, le=1000)]
    answer: Literal["yes", "no", "skip"]


class Held(BaseModel):
    """Questions that a worker holds."""

    model_config = ConfigDict(extra="forbid")
    leases: Annotated[list[Lease], Field(min_length=1, max_length=100)]


class Found(commands.HandedOut):
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
    state: AppState, asked: Asked, who: str, gone: Callable[[], Awaitable[bool]]
) -> Found:
    """Find a question for a worker, or wait for one.

    A client that has disconnected (`gone`) gets none, because nobody else could answer it until
    its lease expires.
    """
    end = time.monotonic() + asked.wait
    tries = 0
    while True:
        wish = Next(who, asked.holding)
        found = await state.store.aask(wish)
        left = end - time.monotonic()
        over = left <= 0.01 or state.stopping
        if found["task"] is None:
            state.waiters.pass_on(wish.campaign, tries)
        if found["task"] is not None or not found["more"] or over:
            return await _with_end(state, who, found)
        tries = await state.waiters.wait(wish.campaign, min(left, state.poll_seconds))
        if await gone():
            state.waiters.pass_on(wish.campaign, tries)
            return Found(task=None, reason=found["reason"], more=found["more"])


async def _with_end(state: AppState, who: str, found: commands.HandedOut) -> Found:
    """Add the closing words for a worker who has finished, and note who gets the code."""
    if found["reason"] not in AT_THE_END:
        return Found(task=found["task"], reason=found["reason"], more=found["more"])
    end, new = await state.store.aread(lambda c: look_at_end(c, who, state.now))
    if new:
        await state.store.awrite(lambda c: note_end(c, who, state.now))
    return {**found, "end": end}


async def submit_answer(state: AppState, given: Answered, who: str) -> commands.Taken:
    """Submit an answer."""
    value = int(given.answer == "yes")
    return await state.store.aask(Submit(who, given.lease, "answer", value, given.key))


async def submit_skip(state: AppState, given: Skipped, who: str) -> commands.Taken:
    """Submit a skip."""
    return await state.store.aask(Submit(who, given.lease, "skip", None, given.key))


async def submit_report(state: AppState, given: Reported, who: str) -> commands.Taken:
    """Report an item, which skips the question."""
    report = f"{given.reason}: {given.words}" if given.words else given.reason
    report = report.replace("\x00", "")
    return await state.store.aask(Submit(who, given.lease, "skip", None, given.key, report))


async def agree(state: AppState, given: Agreed, who: str) -> None:
    """Record that a worker agrees to what the owner asks for."""
    await state.store.awrite(lambda c: preparing.agree(c, who, given.mark, state.now))


async def training_of(state: AppState, who: str) -> Training:
    """The next training item of a worker."""
    return await state.store.aread(lambda c: preparing.training_of(c, who, state.now))


async def practise(state: AppState, given: Practised, who: str) -> Feedback:
    """Answer a training item, which counts for nothing."""
    answer = None if given.answer == "skip" else given.answer
    number = given.number
    return await state.store.awrite(lambda c: preparing.practise(c, who, number, answer, state.now))


async def report_state(state: AppState, who: str) -> WorkerState:
    """How a worker and the campaign stand now."""

    def look(connection: Connection) -> WorkerState:
        _, worker = tokens.worker_of(connection, who, state.now)
        return worker_state(connection, worker)

    return await state.store.aread(look)


async def release(state: AppState, given: Held, who: str) -> int:
    """Give questions back so that others get them; returns how many.

    Somebody who takes and gives back all questions again and again would see which of them come
    by chance, the gold items: beyond a limit the worker keeps them.
    """

    def give_back(connection: Connection) -> int:
        _, worker = tokens.worker_of(connection, who, state.now)
        if not state.release_limit.allows(f"worker {worker}"):
            return 0
        return people.release(connection, worker, given.leases)

    return await state.store.awrite(give_back)


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
