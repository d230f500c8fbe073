"""What workers ask of the store, and how it refuses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from sqlalchemy.engine import Connection

from crowdtree.errors import CrowdtreeError

__all__ = ["Call", "Next", "Refused", "Request", "Submit", "Sweep", "Unavailable", "Undo"]


class Refused(CrowdtreeError):
    """A request that cannot be granted: a code for machines, a sentence for people."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Unavailable(CrowdtreeError):
    """The database cannot be reached now; nothing was acknowledged, so try again."""


@dataclass
class Request:
    """Something to be done in a transaction; `result` or `error` is set when it is."""

    result: Any = field(default=None, init=False)
    error: BaseException | None = field(default=None, init=False)
    done: Callable[[], None] | None = field(default=None, init=False)
    finished: bool = field(default=False, init=False)


@dataclass
class Next(Request):
    """Hand the worker a question. `holding` are leases that the worker has on the screen."""

    token_hash: str
    holding: tuple[str, ...] = ()
    campaign: int = field(default=0, init=False)


@dataclass
class Submit(Request):
    """An answer or a skip, with a key that makes sending it twice harmless."""

    token_hash: str
    lease: str
    kind: Literal["answer", "skip"]
    value: int | None
    key: str


@dataclass
class Undo(Request):
    """Take back the worker's last answer or skip."""

    token_hash: str
    key: str


@dataclass
class Sweep(Request):
    """Take back the leases that have expired."""

    most: int = 200


@dataclass
class Call(Request):
    """Anything else that writes: a function of the connection, inside the transaction."""

    function: Callable[[Connection], Any]
