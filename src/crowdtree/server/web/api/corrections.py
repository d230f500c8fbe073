"""What an owner corrects: answers excluded, labels by hand, items edited, withdrawn, reopened."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field, model_validator

from crowdtree.server.store.corrections import editing, exclusions
from crowdtree.server.store.corrections.exclusions import preview
from crowdtree.server.store.corrections.items import MAX_REASON
from crowdtree.server.store.queries.workers import list_exclusions
from crowdtree.server.store.types import JsonObject
from crowdtree.server.web.auth import OWNER_ONLY
from crowdtree.server.web.requests import Number, Reply, State
from crowdtree.server.web.routing import GuardedRoute
from crowdtree.server.web.services.corrections import correct_labels, reopen_items, withdraw_items
from crowdtree.server.web.services.items import edit_item

router = APIRouter(
    route_class=GuardedRoute, prefix="/api/campaigns", tags=["owner"], dependencies=OWNER_ONLY
)


MAX_ITEMS = 100_000
Reason = Annotated[str, Field(max_length=MAX_REASON)]
Name = Annotated[str, Field(max_length=1000)]
Text = Annotated[str, Field(max_length=editing.MAX_TEXT)]


class IncludeRequest(BaseModel):
    """Workers whose answers count again; with `dry_run`, only what would change is reported."""

    model_config = ConfigDict(extra="forbid")
    workers: Annotated[
        list[Annotated[int, Field(ge=1, le=2**53)]], Field(min_length=1, max_length=1000)
    ]
    reason: Reason = ""
    dry_run: bool = False


class ExcludeRequest(IncludeRequest):
    """Workers whose answers no longer count: all so far, or those from a time on."""

    since: dt.datetime | None = None
    block: bool = False

    @property
    def from_time(self) -> float | None:
        """Seconds since 1970; a time without a zone is in UTC."""
        since = self.since
        if since is not None and since.tzinfo is None:
            since = since.replace(tzinfo=dt.UTC)
        return None if since is None else since.timestamp()


class ReopenRequest(BaseModel):
    """Items set aside or withdrawn, by their names, or all that were set aside."""

    model_config = ConfigDict(extra="forbid")
    tasks: Annotated[list[Name], Field(max_length=MAX_ITEMS)] = []
    all: bool = False

    @model_validator(mode="after")
    def _one_of_both(self) -> ReopenRequest:
        if bool(self.tasks) == self.all:
            raise ValueError("expected either tasks or all")
        return self


class WithdrawRequest(BaseModel):
    """Items to withdraw, by their names."""

    model_config = ConfigDict(extra="forbid")
    tasks: Annotated[list[Name], Field(min_length=1, max_length=MAX_ITEMS)]
    reason: Reason = ""


class CorrectRequest(BaseModel):
    """Classes by the names of items; null takes a label by hand back."""

    model_config = ConfigDict(extra="forbid")
    labels: Annotated[dict[Name, Name | None], Field(min_length=1, max_length=MAX_ITEMS)]
    reason: Reason = ""


class ItemChanges(BaseModel):
    """New values of some columns; null or an empty text removes a column."""

    model_config = ConfigDict(extra="forbid")
    columns: Annotated[JsonObject, Field(min_length=1, max_length=200)]
    reason: Reason = ""


class TextChanges(BaseModel):
    """New texts of questions and explanations of classes, by their names."""

    model_config = ConfigDict(extra="forbid")
    questions: dict[Name, Text] = {}
    classes: dict[Name, Text] = {}
    reason: Reason = ""


@router.post("/{number}/exclude")
async def exclude(state: State, number: Number, given: ExcludeRequest) -> Reply:
    """Exclude the answers of workers: items are replayed without them in the background.

    Labels are kept, replaced or withdrawn. What was paid stays paid. Answers that the workers give
    later count, unless they are blocked.
    """
    since = given.from_time
    if given.dry_run:
        return await state.store.aread(lambda c: preview(c, number, given.workers, since))
    return await state.store.awrite(
        lambda c: exclusions.exclude(
            c,
            number,
            given.workers,
            state.now,
            since=since,
            reason=given.reason,
            block=given.block,
        )
    )


@router.post("/{number}/include")
async def include(state: State, number: Number, given: IncludeRequest) -> Reply:
    """Include excluded answers of workers again: items are replayed with them."""
    if given.dry_run:
        return await state.store.aread(lambda c: preview(c, number, given.workers, lift=True))
    return await state.store.awrite(
        lambda c: exclusions.include(c, number, given.workers, state.now, reason=given.reason)
    )


@router.get("/{number}/exclusions")
async def show_exclusions(state: State, number: Number) -> Sequence[Reply]:
    """List whose answers are or were excluded, with when, who and why."""
    return await state.store.aread(lambda c: list_exclusions(c, number))


@router.post("/{number}/reopen")
async def reopen(state: State, number: Number, given: ReopenRequest) -> Reply:
    """Reopen items set aside or withdrawn: skips so far no longer count, others are asked.

    A finished campaign is paused then, with these items open.
    """
    tasks = None if given.all else given.tasks
    found = await asyncio.to_thread(reopen_items, state.store, number, tasks)
    state.waiters.wake({number: found["reopened"]})
    return found


@router.post("/{number}/correct")
async def correct(state: State, number: Number, given: CorrectRequest) -> Reply:
    """Label items by hand: beside the labels of the answers, with who, when and why.

    Nobody is asked about these items any more. With null the label by hand is taken back.
    """
    found = await asyncio.to_thread(
        correct_labels, state.store, number, given.labels, given.reason.strip()
    )
    state.waiters.wake({number: found["opened"]})
    return found


@router.post("/{number}/withdraw")
async def withdraw(state: State, number: Number, given: WithdrawRequest) -> Reply:
    """Withdraw items: nobody is asked about them any more, and they have no label.

    What was paid stays paid. `POST /api/campaigns/{number}/reopen` takes it back.
    """
    store, reason = state.store, given.reason.strip()
    return await asyncio.to_thread(withdraw_items, store, number, given.tasks, reason)


@router.patch("/{number}/items/{item}")
async def edit(state: State, number: Number, item: Number, given: ItemChanges) -> Reply:
    """Change columns of an item; answers so far stay, the activity log keeps before and after."""
    reason = given.reason.strip()
    return await asyncio.to_thread(edit_item, state, number, item, given.columns, reason)


@router.post("/{number}/reword")
async def reword(state: State, number: Number, given: TextChanges) -> Reply:
    """Change texts of questions and explanations of classes; which there are stays the same."""
    return await state.store.awrite(
        lambda c: editing.edit_texts(
            c, number, given.questions, given.classes, state.now, given.reason.strip()
        )
    )
