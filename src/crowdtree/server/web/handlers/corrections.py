"""What an owner corrects: answers excluded, labels by hand, items edited, withdrawn, reopened."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Annotated

from pydantic import Field, model_validator

from crowdtree.server.store.corrections import editing
from crowdtree.server.store.corrections import exclusions as excluding
from crowdtree.server.store.corrections.exclusions import preview
from crowdtree.server.store.corrections.items import MAX_REASON
from crowdtree.server.store.queries.workers import list_exclusions
from crowdtree.server.store.types import JsonObject
from crowdtree.server.web.routing import Body, Id, Read, Reply, Routes, State, Write
from crowdtree.server.web.services.campaigns import correct_labels, reopen_items, withdraw_items
from crowdtree.server.web.services.items import edit_item

routes = Routes("owner")
BASE = "/api/campaigns/{campaign_id}"
MAX_ITEMS = 100_000
Reason = Annotated[str, Field(max_length=MAX_REASON)]
Name = Annotated[str, Field(max_length=1000)]
Text = Annotated[str, Field(max_length=editing.MAX_TEXT)]


class Correction(Body):
    """A correction and why it is made."""

    reason: Reason = ""


class IncludeRequest(Correction):
    """Workers whose answers count again; with `dry_run`, only what would change is reported."""

    workers: Annotated[
        list[Annotated[int, Field(ge=1, le=2**53)]], Field(min_length=1, max_length=1000)
    ]
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


class ReopenRequest(Body):
    """Items set aside or withdrawn, by their names, or all that were set aside."""

    tasks: Annotated[list[Name], Field(max_length=MAX_ITEMS)] = Field(default=[])
    all: bool = False

    @model_validator(mode="after")
    def _one_of_both(self) -> ReopenRequest:
        if bool(self.tasks) == self.all:
            raise ValueError("expected either tasks or all")
        return self


class WithdrawRequest(Correction):
    """Items to withdraw, by their names."""

    tasks: Annotated[list[Name], Field(min_length=1, max_length=MAX_ITEMS)]


class CorrectRequest(Correction):
    """Classes by the names of items; null takes a label by hand back."""

    labels: Annotated[dict[Name, Name | None], Field(min_length=1, max_length=MAX_ITEMS)]


class ItemChanges(Correction):
    """New values of some columns; null or an empty text removes a column."""

    columns: Annotated[JsonObject, Field(min_length=1, max_length=200)]


class TextChanges(Correction):
    """New texts of questions and explanations of classes, by their names."""

    questions: dict[Name, Text] = Field(default={})
    classes: dict[Name, Text] = Field(default={})


@routes.api(f"POST {BASE}/exclude", "editor")
async def exclude(state: State, campaign_id: Id, given: ExcludeRequest) -> Reply:
    """Exclude the answers of workers: items are replayed without them in the background.

    Labels are kept, replaced or withdrawn. What was paid stays paid. Answers that the workers give
    later count, unless they are blocked.
    """
    workers, since = given.workers, given.from_time
    if given.dry_run:
        return await state.store.aread(lambda c: preview(c, campaign_id, workers, since))
    reason, block = given.reason, given.block
    return await state.store.awrite(
        lambda c: excluding.exclude(
            c, campaign_id, workers, state.now, since=since, reason=reason, block=block
        )
    )


@routes.api(f"POST {BASE}/include", "editor")
async def include(state: State, campaign_id: Id, given: IncludeRequest) -> Reply:
    """Include excluded answers of workers again: items are replayed with them."""
    workers, reason = given.workers, given.reason
    if given.dry_run:
        return await state.store.aread(lambda c: preview(c, campaign_id, workers, lift=True))
    return await state.store.awrite(
        lambda c: excluding.include(c, campaign_id, workers, state.now, reason=reason)
    )


@routes.api(f"GET {BASE}/exclusions", "viewer")
def exclusions(tx: Read, campaign_id: Id) -> Sequence[Reply]:
    """List whose answers are or were excluded, with when, who and why."""
    return list_exclusions(tx.connection, campaign_id)


@routes.api(f"POST {BASE}/reopen", "editor")
def reopen(state: State, campaign_id: Id, given: ReopenRequest) -> Reply:
    """Reopen items set aside or withdrawn: skips so far no longer count, others are asked.

    A finished campaign is paused then, with these items open.
    """
    found = reopen_items(state.store, campaign_id, None if given.all else given.tasks)
    state.wake(campaign_id, found["reopened"])
    return found


@routes.api(f"POST {BASE}/correct", "editor")
def correct(state: State, campaign_id: Id, given: CorrectRequest) -> Reply:
    """Label items by hand: beside the labels of the answers, with who, when and why.

    Nobody is asked about these items any more. With null the label by hand is taken back.
    """
    found = correct_labels(state.store, campaign_id, given.labels, given.reason.strip())
    state.wake(campaign_id, found["opened"])
    return found


@routes.api(f"POST {BASE}/withdraw", "editor")
def withdraw(state: State, campaign_id: Id, given: WithdrawRequest) -> Reply:
    """Withdraw items: nobody is asked about them any more, and they have no label.

    What was paid stays paid. `POST /api/campaigns/{campaign_id}/reopen` takes it back.
    """
    return withdraw_items(state.store, campaign_id, given.tasks, given.reason.strip())


@routes.api(f"PATCH {BASE}/items/{{item}}", "editor")
def edit(state: State, campaign_id: Id, item: Id, given: ItemChanges) -> Reply:
    """Change columns of an item; answers so far stay, the activity log keeps before and after."""
    why = given.reason.strip()
    return edit_item(state.store, state.media, campaign_id, item, given.columns, why)


@routes.api(f"POST {BASE}/reword", "editor")
def reword(tx: Write, campaign_id: Id, given: TextChanges) -> Reply:
    """Change texts of questions and explanations of classes; which there are stays the same."""
    texts, why = (given.questions, given.classes), given.reason.strip()
    return editing.edit_texts(tx.connection, campaign_id, *texts, tx.now, why)
