"""Writing labels, so that whoever reads them by their numbers misses none.

PostgreSQL gives a row its number before its transaction commits: with several server processes
number 8 can be there before number 7 is. Who has read up to 8 would never see 7. So whoever writes
labels holds a shared lock to the commit, and whoever reads on from a number waits for it once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy.engine import Connection

from crowdtree.store import statements as sql
from crowdtree.store.database import Sql, is_sqlite, run, send_many

__all__ = ["wait_for_labels", "write_labels"]

WRITING = Sql("SELECT pg_advisory_xact_lock_shared(7420818)")
READING = Sql("SELECT pg_advisory_xact_lock(7420818)")


def write_labels(connection: Connection, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write labels."""
    made = list(rows)
    if made and not is_sqlite(connection):
        run(connection, WRITING, {})
    send_many(connection, sql.ADD_LABEL, made)


def wait_for_labels(connection: Connection) -> None:
    """Wait for labels that are being written; until the commit nobody writes more."""
    if not is_sqlite(connection):
        run(connection, READING, {})
