"""The requests that the store serves, their results, and what workers see of an item."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, Protocol, TypeVar

from sqlalchemy.engine import Connection
from typing_extensions import TypedDict

from crowdtree.io.items import MEDIA, is_address, visible
from crowdtree.server.settings.model import Settings
from crowdtree.server.store.serving.campaign import ServedCampaign
from crowdtree.server.store.tokens import file_name, item_name
from crowdtree.server.store.types import JsonObject

T = TypeVar("T")


class QuestionText(TypedDict):
    """A question as workers see it."""

    name: str
    text: str


class Task(TypedDict):
    """A question about an item, to be answered within some seconds."""

    lease: str
    seconds: float
    item: JsonObject
    question: QuestionText


NO_MORE = ("finished", "done", "all answered", "worker paused", "consent", "training")
"""Reasons for which it is of no use to wait; with any other reason there is no work now."""


class HandedOut(TypedDict):
    """A task, or the reason why there is none; `more` says whether to ask again later."""

    task: Task | None
    reason: str
    more: bool


class Taken(TypedDict):
    """What became of an answer; `late` says that the lease had expired."""

    fate: str
    late: bool


@dataclass
class Command(Generic[T]):
    """Something to do in a transaction; `result` or `error` is set when it is done."""

    result: T | None = field(default=None, init=False)
    error: BaseException | None = field(default=None, init=False)
    done: Callable[[], None] | None = field(default=None, init=False)
    finished: bool = field(default=False, init=False)


AnyCommand = Command[Any]


@dataclass
class Next(Command[HandedOut]):
    """Hand the worker a question. `holding` are leases that the worker's page already shows."""

    token_hash: str
    holding: tuple[str, ...] = ()
    campaign: int = field(default=0, init=False)


@dataclass
class Submit(Command[Taken]):
    """An answer or a skip, with a key that makes it safe to send twice.

    With `report`, a skip of an item about which the worker reports something.
    """

    token_hash: str
    lease: str
    kind: Literal["answer", "skip"]
    value: int | None
    key: str
    report: str = ""


@dataclass
class ExpireLeases(Command[int]):
    """Take back up to `most` items' leases that have expired."""

    most: int = 200


@dataclass
class Transaction(Command[T]):
    """Any other write: a function of the connection, run inside the transaction.

    It runs in the context of the caller, so that the activity log knows who asked for it.
    """

    function: Callable[[Connection], T]
    context: Context = field(default_factory=copy_context, init=False)


class Naming(Protocol):
    """What decides how the items of a campaign are named for workers."""

    @property
    def settings(self) -> Settings:
        """The settings of the campaign."""
        ...

    @property
    def secret(self) -> str:
        """The secret of the campaign."""
        ...


def make_task(
    campaign: ServedCampaign, lease: str, question: int, task: str, payload: str, seconds: float
) -> Task:
    """Make what a worker sees: an item and a question."""
    problem = campaign.problem
    return {
        "lease": lease,
        "seconds": round(seconds, 3),
        "item": shown_item(campaign, task, payload),
        "question": {"name": problem.questions[question], "text": problem.text(question)},
    }


def shown_item(campaign: Naming, task: str, payload: str) -> JsonObject:
    """Select what leaves the server of an item: the columns that are shown, and a name.

    Names that the owner gave may say what an item is, so those of the item and of its uploaded
    files are replaced, unless the name is all there is to show or the owner wants it
    (`tasks.show_item_names`).
    """
    shown = visible(json.loads(payload))
    if campaign.settings.tasks.show_item_names or not shown.keys() - {"alt"}:
        return {"task": task, **shown}
    for name in MEDIA:
        if name in shown and not is_address(shown[name]):
            shown[name] = file_name(campaign.secret, shown[name])
    return {"task": item_name(campaign.secret, task), **shown}
