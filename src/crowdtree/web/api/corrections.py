"""What an owner corrects: answers to exclude or include, items to reopen."""

from __future__ import annotations

import asyncio
import datetime as dt
from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field, model_validator

from crowdtree.store.corrections import excluding
from crowdtree.store.corrections.common import MOST_REASON
from crowdtree.store.corrections.preview import preview
from crowdtree.store.queries.exclusions import list_exclusions
from crowdtree.store.types import JsonObject
from crowdtree.web.auth import OWNER_ONLY
from crowdtree.web.requests import Number, state_of
from crowdtree.web.routing import GuardedRoute
from crowdtree.web.services.corrections import reopen_items

__all__ = ["router"]

router = APIRouter(
    route_class=GuardedRoute, prefix="/api/campaigns", tags=["owner"], dependencies=OWNER_ONLY
)


class Included(BaseModel):
    """Workers whose answers count again; with `dry_run`, only what would change is reported."""

    model_config = ConfigDict(extra="forbid")
    workers: Annotated[
        list[Annotated[int, Field(ge=1, le=2**53)]], Field(min_length=1, max_length=1000)
    ]
    reason: Annotated[str, Field(max_length=MOST_REASON)] = ""
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
    """Items that were set aside, by their names, or all of them."""

    model_config = ConfigDict(extra="forbid")
    tasks: Annotated[list[Annotated[str, Field(max_length=1000)]], Field(max_length=100_000)] = []
    all: bool = False

    @model_validator(mode="after")
    def _one_of_both(self) -> Reopened:
        if bool(self.tasks) == self.all:
            raise ValueError("expected either tasks or all")
        return self


@router.post("/{number}/exclude")
async def exclude(request: Request, number: Number, wish: Excluded) -> JsonObject:
    """Exclude the answers of workers: items are replayed without them in the background.

    Labels are kept, replaced or withdrawn. What was paid stays paid. Answers that the workers give
    later count, unless they are blocked.
    """
    state, since = state_of(request), wish.from_time
    if wish.dry_run:
        return dict(await state.store.aread(lambda c: preview(c, number, wish.workers, since)))
    return dict(
        await state.store.awrite(
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
    )


@router.post("/{number}/include")
async def include(request: Request, number: Number, wish: Included) -> JsonObject:
    """Include excluded answers of workers again: items are replayed with them."""
    state = state_of(request)
    if wish.dry_run:
        return dict(await state.store.aread(lambda c: preview(c, number, wish.workers, lift=True)))
    return dict(
        await state.store.awrite(
            lambda c: excluding.include(c, number, wish.workers, state.now, reason=wish.reason)
        )
    )


@router.get("/{number}/exclusions")
async def exclusions(request: Request, number: Number) -> list[JsonObject]:
    """List whose answers are or were excluded, with when, who and why."""
    rows = await state_of(request).store.aread(lambda c: list_exclusions(c, number))
    return [dict(row) for row in rows]


@router.post("/{number}/reopen")
async def reopen(request: Request, number: Number, wish: Reopened) -> JsonObject:
    """Reopen items that were set aside: skips so far no longer count, others are asked.

    A finished campaign is paused then, with these items open.
    """
    state = state_of(request)
    tasks = None if wish.all else wish.tasks
    found = await asyncio.to_thread(reopen_items, state.store, number, tasks)
    state.waiters.wake({number: found["reopened"]})
    return dict(found)
