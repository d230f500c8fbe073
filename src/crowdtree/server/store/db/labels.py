"""Writing labels and events so that a reader who continues from an id misses none.

PostgreSQL assigns a row's id before its transaction commits: with several server processes, a
reader can see id 8 before id 7 is committed and would then skip 7. So writers hold a
shared lock until the commit, and a reader that continues from an id waits for that lock once.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy.engine import Connection

from crowdtree.server.store.db import statements as sql
from crowdtree.server.store.db.engine import is_sqlite
from crowdtree.server.store.db.sql import Sql, run, send_many

WRITING = Sql("SELECT pg_advisory_xact_lock_shared(7420818)")
READING = Sql("SELECT pg_advisory_xact_lock(7420818)")


def write_labels(
    connection: Connection,
    rows: Sequence[sql.LabelLine],
    withdrawn: Sequence[sql.Withdrawal] = (),
) -> None:
    """Write labels, and which ones were taken back."""
    if rows or withdrawn:
        hold_readers(connection)
    send_many(connection, sql.ADD_WITHDRAWAL, (row._asdict() for row in withdrawn))
    send_many(connection, sql.ADD_LABEL, (row._asdict() for row in rows))


def hold_readers(connection: Connection) -> None:
    """Have readers who continue from an id wait until the commit."""
    if not is_sqlite(connection):
        run(connection, WRITING)


def wait_for_labels(connection: Connection) -> None:
    """Wait for labels that are being written; nobody writes more until the commit."""
    if not is_sqlite(connection):
        run(connection, READING)
