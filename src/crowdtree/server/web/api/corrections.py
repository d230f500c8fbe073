"""What an owner corrects: answers excluded, labels by hand, items edited, withdrawn, reopened."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field, model_validator

from crowdtree.server.store.corrections import editing, excluding
from crowdtree.server.store.corrections.common import MOST_REASON
from crowdtree.server.store.corrections.preview import preview
from crowdtree.server.store.queries.exclusions import list_exclusions
from crowdtree.server.store.types import JsonObject
from crowdtree.server.web.auth import OWNER_ONLY
from crowdtree.server.web.requests import Number, Reply, State
from crowdtree.server.web.routing import GuardedRoute
from crowdtree.server.web.services.corrections import correct_labels, reopen_items, withdraw_items
from crowdtree.server.web.services.items import edit_item

router = APIRouter(
    route_class=GuardedRoute, prefix="/api/campaigns", tags=["owner"], dependencies=OWNER_ONLY
)


MOST_ITEMS = 100_000
Reason = Annotated[str, Field(max_length=MOST_REASON)]
Name = Annotated[str, Field(max_length=1000)]
Text = Annotated[str, Field(max_length=editing.MOST_TEXT)]


class Included(BaseModel):
    """Workers whose answers count again; with `dry_run`, only what would change is reported."""

    model_config = ConfigDict(extra="forbid")
    workers: Annotated[
        list[Annotated[int, Field(ge=1, le=2**53)]], Field(min_length=1, max_length=1000)
    ]
    reason: Reason = ""
    dry_run: bool = False


class Excluded(Included):
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


class Reopened(BaseModel):
    """Items set aside or withdrawn, by their names, or all that were set aside."""

    model_config = ConfigDict(extra="forbid")
    tasks: Annotated[list[Name], Field(max_length=MOST_ITEMS)] = []
    all: bool = False

    @model_validator(mode="after")
    def _one_of_both(self) -> Reopened:
        if bool(self.tasks) == self.all:
            raise ValueError("expected either tasks or all")
        return self


class Withdrawn(BaseModel):
    """Items to withdraw, by their names."""

    model_config = ConfigDict(extra="forbid")
    tasks: Annotated[list[Name], Field(min_length=1, max_length=MOST_ITEMS)]
    reason: Reason = ""


class Corrected(BaseModel):
    """Classes by the names of items; null takes a label by hand back."""

    model_config = ConfigDict(extra="forbid")
    labels: Annotated[dict[Name, Name | None], Field(min_length=1, max_length=MOST_ITEMS)]
    reason: Reason = ""


class EditedItem(BaseModel):
    """New values of some columns; null or an empty text removes a column."""

    model_config = ConfigDict(extra="forbid")
    columns: Annotated[JsonObject, Field(min_length=1, max_length=200)]
    reason: Reason = ""


class EditedTexts(BaseModel):
    """New texts of questions and explanations of classes, by their names."""

    model_config = ConfigDict(extra="forbid")
    questions: dict[Name, Text] = {}
    classes: dict[Name, Text] = {}
    reason: Reason = ""


@router.post("/{number}/exclude")
async def exclude(state: State, number: Number, wish: Excluded) -> Reply:
    """Exclude the answers of workers: items are replayed without them in the background.

    Labels are kept, replaced or withdrawn. What was paid stays paid. Answers that the workers give
    later count, unless they are blocked.
    """
    since = wish.from_time
    if wish.dry_run:
        return await state.store.aread(lambda c: preview(c, number, wish.workers, since))
    return await state.store.awrite(
        lambda c: excluding.exclude(
            c,
            number,
            wish.workers,
            state.now,
            since=since,
            reason=wish.reason,
            block=wish.block,
        )
    )


@router.post("/{number}/include")
async def include(state: State, number: Number, wish: Included) -> Reply:
    """Include excluded answers of workers again: items are replayed with them."""
    if wish.dry_run:
        return await state.store.aread(lambda c: preview(c, number, wish.workers, lift=True))
    return await state.store.awrite(
        lambda c: excluding.include(c, number, wish.workers, state.now, reason=wish.reason)
    )


@router.get("/{number}/exclusions")
async def exclusions(state: State, number: Number) -> Sequence[Reply]:
    """List whose answers are or were excluded, with when, who and why."""
    return await state.store.aread(lambda c: list_exclusions(c, number))


@router.post("/{number}/reopen")
async def reopen(state: State, number: Number, wish: Reopened) -> Reply:
    """Reopen items set aside or withdrawn: skips so far no longer count, others are asked.

    A finished campaign is paused then, with these items open.
    """
    tasks = None if wish.all else wish.tasks
    found = await asyncio.to_thread(reopen_items, state.store, number, tasks)
    state.waiters.wake({number: found["reopened"]})
    return found


@router.post("/{number}/correct")
async def correct(state: State, number: Number, wish: Corrected) -> Reply:
    """Label items by hand: beside the labels of the answers, with who, when and why.

    Nobody is asked about these items any more. With null the label by hand is taken back.
    """
    found = await asyncio.to_thread(
        correct_labels, state.store, number, wish.labels, wish.reason.strip()
    )
    state.waiters.wake({number: found["opened"]})
    return found


@router.post("/{number}/withdraw")
async def withdraw(state: State, number: Number, wish: Withdrawn) -> Reply:
    """Withdraw items: nobody is asked about them any more, and they have no label.

    What was paid stays paid. `POST /api/campaigns/{number}/reopen` takes it back.
    """
    store, reason = state.store, wish.reason.strip()
    return await asyncio.to_thread(withdraw_items, store, number, wish.tasks, reason)


@router.patch("/{number}/items/{item}")
async def edit(state: State, number: Number, item: Number, wish: EditedItem) -> Reply:
    """Change columns of an item; answers so far stay, the activity log keeps before and after."""
    reason = wish.reason.strip()
    return await asyncio.to_thread(edit_item, state, number, item, wish.columns, reason)


@router.post("/{number}/reword")
async def reword(state: State, number: Number, wish: EditedTexts) -> Reply:
    """Change texts of questions and explanations of classes; which there are stays the same."""
    return await state.store.awrite(
        lambda c: editing.edit_texts(
            c, number, wish.questions, wish.classes, state.now, wish.reason.strip()
        )
    )
