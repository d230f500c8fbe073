"""The errors that the store raises."""

from __future__ import annotations

import errno
import logging
import sqlite3
from functools import cache

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from crowdtree.core.errors import CrowdtreeError
from crowdtree.server.languages import english

log = logging.getLogger("crowdtree.server.store")
OUTAGES = {"OperationalError", "InterfaceError", "InternalError", "TimeoutError"}
"""Errors of drivers that a repeated request may not meet; all others are errors of statements."""
DAMAGED = ("malformed", "not a database")
"""In messages of SQLite about a damaged file, which have no class of their own."""
CAUSES = (
    (("full", "no space", "diskfull"), "the disk of the database is full"),
    (("readonly", "read-only"), "the database is read-only"),
    (("i/o error", "could not write", "could not extend"), "the disk of the database fails"),
    (DAMAGED, "the database file is damaged; restore a backup"),
    (("locked", "busy", "locknotavailable", "queuepool"), "the database is busy"),
)
"""Words in what a driver raised, and what they mean."""
DISK = {
    errno.ENOSPC: "the disk of the server is full",
    errno.EDQUOT: "the disk quota of the server is used up",
    errno.EROFS: "the disk of the server is read-only",
    errno.EIO: "the disk of the server fails",
}


class NotFound(CrowdtreeError):
    """The row does not exist, or belongs to another campaign."""


class Refused(CrowdtreeError):
    """A request was refused: a code for programs, a sentence for people.

    A case is the code, or the code, a dot and why. Sentences for workers and auditors are in the
    catalogues (:mod:`crowdtree.server.languages`) under the case.

    >>> error = Refused("slow.attempts")
    >>> error.code, str(error)
    ('slow', 'Too many attempts. Wait a minute.')
    """

    def __init__(self, case: str, message: str = "") -> None:
        super().__init__(message or english(f"refused.{case}"))
        self.case = case
        self.code = case.partition(".")[0]


class Unavailable(CrowdtreeError):
    """The database cannot be reached; nothing was acknowledged, so the request can be repeated."""


@cache
def database_errors() -> tuple[type[BaseException], ...]:
    """What the database drivers raise, directly or through SQLAlchemy."""
    found: list[type[BaseException]] = [DBAPIError, PoolTimeout, sqlite3.Error]
    try:
        import psycopg  # optional: only for PostgreSQL
    except ImportError:
        return tuple(found)
    return (*found, psycopg.Error)


def is_outage(error: BaseException) -> bool:
    """Whether the database failed, and not a statement.

    >>> is_outage(sqlite3.OperationalError("database or disk is full"))
    True
    >>> is_outage(sqlite3.OperationalError("no such table: x")), is_outage(sqlite3.DataError())
    (False, False)
    """
    origin = getattr(error, "orig", None) or error
    text = str(origin)
    if text.startswith("no such ") or "syntax error" in text:  # SQLite has no class for these
        return False
    known = not OUTAGES.isdisjoint(kind.__name__ for kind in type(origin).__mro__)
    return known or any(words in text for words in DAMAGED)


def driver_name(error: BaseException) -> str:
    """The driver's own name of an error that SQLAlchemy may have wrapped."""
    return type(getattr(error, "orig", None) or error).__name__


def unavailable(error: BaseException) -> Unavailable:
    """Log what the database driver raised, and make the error that clients see.

    >>> print(unavailable(sqlite3.OperationalError("database or disk is full")))
    the disk of the database is full; nothing was saved, try again later
    """
    why = str(getattr(error, "orig", None) or error).strip().partition("\n")[0]
    log.warning("the database failed: %s: %s", driver_name(error), why)
    text = f"{driver_name(error)} {why}".lower()
    for words, cause in CAUSES:
        if any(word in text for word in words):
            return Unavailable(f"{cause}; nothing was saved, try again later")
    return Unavailable("the database cannot be reached now; try again")


def disk_error(error: OSError) -> Unavailable | None:
    """The error that clients see where a file cannot be written; none for other failures.

    >>> print(disk_error(OSError(errno.ENOSPC, "No space left on device")))
    the disk of the server is full; nothing was saved, try again later
    """
    cause = DISK.get(error.errno or 0)
    if cause is None:
        return None
    log.warning("a file cannot be written: %s", error)
    return Unavailable(f"{cause}; nothing was saved, try again later")
