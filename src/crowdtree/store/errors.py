"""The errors that the store raises."""

from __future__ import annotations

import logging

from crowdtree.errors import CrowdtreeError

__all__ = ["BLOCKED", "NotFound", "Refused", "Unavailable", "driver_name", "unavailable"]

log = logging.getLogger("crowdtree.store")
BLOCKED = "You cannot take part in this any more."


class NotFound(CrowdtreeError):
    """The row does not exist, or belongs to another campaign."""


class Refused(CrowdtreeError):
    """A worker's request was refused: a code for programs, a sentence for people."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Unavailable(CrowdtreeError):
    """The database cannot be reached; nothing was acknowledged, so the request can be repeated."""


def driver_name(error: BaseException) -> str:
    """The driver's own name of an error that SQLAlchemy may have wrapped."""
    return type(getattr(error, "orig", None) or error).__name__


def unavailable(error: BaseException) -> Unavailable:
    """Log what the database driver raised, and make the error that clients see."""
    why = str(getattr(error, "orig", None) or error).strip().partition("\n")[0]
    log.warning("the database failed: %s: %s", driver_name(error), why)
    return Unavailable("the database cannot be reached now; try again")
