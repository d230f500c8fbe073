"""SQL text for the statements that run per question and per answer, in either dialect.

Owner queries are SQLAlchemy expressions. The statements of the serving path are text
(:class:`Sql`), executed by the driver inside the same transaction: composing them each time would
cost more than running them. A :class:`Query` names the type of its rows, whose fields are the
selected columns in order.
"""

from __future__ import annotations

import json
import re
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import starmap
from typing import Any, Generic, Protocol, TypeVar, cast

from sqlalchemy.engine import Connection, Engine

Values = Mapping[str, object]


class Row(Protocol):
    """A NamedTuple: made from the columns of a row in order."""

    def __init__(self, *columns: object) -> None: ...


R = TypeVar("R", bound=Row)

_LEASED = "UNION ALL SELECT item_id FROM leases WHERE id IN :leases"


class Sql:
    """A statement written once for both dialects, with ``:name`` and ``IN :names`` for lists.

    ``{lock items}`` and ``{skip items, workers}`` become ``FOR NO KEY UPDATE OF`` (with ``SKIP
    LOCKED``) on PostgreSQL and nothing on SQLite, which has a single writer. Not ``FOR UPDATE``:
    that would also block inserts of rows that refer to the locked one.
    ``{of items}`` selects the items ``:ids`` and those of the leases ``:leases``.

    >>> sql = Sql("SELECT id FROM items WHERE id IN :ids AND open > :n {lock items}")
    >>> sql.postgresql
    'SELECT id FROM items WHERE id = ANY(%(ids)s) AND open > %(n)s FOR NO KEY UPDATE OF items'
    >>> sql.sqlite
    'SELECT id FROM items WHERE id IN (SELECT value FROM json_each(:ids)) AND open > :n '
    """

    def __init__(self, text: str) -> None:
        text = " ".join(text.split())
        lite = text.replace("{of items}", f"IN (SELECT value FROM json_each(:ids) {_LEASED})")
        lite = re.sub(r"\{[^}]*\}", "", lite)
        self.sqlite = re.sub(r"IN :(\w+)", r"IN (SELECT value FROM json_each(:\1))", lite)
        self.lists = tuple(sorted(set(re.findall(r"json_each\(:(\w+)\)", self.sqlite))))
        """Names whose values are lists, which SQLite gets as JSON."""
        # An array, not a join or an OR, so that PostgreSQL uses the index for any number of items.
        meant = f"= ANY(ARRAY(SELECT unnest(:ids::bigint[]) {_LEASED}))"
        text = text.replace("{of items}", meant)
        post = re.sub(r"\{lock ([^}]*)\}", r"FOR NO KEY UPDATE OF \1", text)
        post = re.sub(r"\{skip ([^}]*)\}", r"FOR NO KEY UPDATE OF \1 SKIP LOCKED", post)
        post = re.sub(r"IN :(\w+)", r"= ANY(:\1)", post)
        self.postgresql = re.sub(r"(?<!:):(\w+)", r"%(\1)s", post)


class Query(Sql, Generic[R]):
    """A statement that returns rows of a type."""

    def __init__(self, row: type[R], text: str) -> None:
        super().__init__(text)
        self.row = row


class Many(Sql):
    """A statement that runs for many rows at once.

    SQLite runs it row by row. PostgreSQL gets all rows in one JSON parameter: one message and one
    plan for any number of rows. `types` gives the PostgreSQL type of each name.

    >>> sql = Many("UPDATE items SET status = :status WHERE id = :id", status="int", id="bigint")
    >>> print(sql.postgresql)
    UPDATE items SET status = r."status" FROM json_to_recordset(%(rows)s::json) AS r("status" int, \
"id" bigint) WHERE items.id = r."id"
    >>> print(Many("INSERT INTO t (a) VALUES (:a)", a="text").postgresql)
    INSERT INTO t (a) SELECT r."a" FROM json_to_recordset(%(rows)s::json) AS r("a" text)
    """

    def __init__(self, text: str, **types: str) -> None:
        super().__init__(text)
        columns = ", ".join(f'"{name}" {kind}' for name, kind in types.items())
        rows = f"json_to_recordset(%(rows)s::json) AS r({columns})"
        text = " ".join(text.split())
        if text.startswith("INSERT"):
            made = re.sub(r"VALUES \(([^)]*)\)", rf"SELECT \1 FROM {rows}", text, count=1)
        else:
            word = "FROM" if text.startswith("UPDATE") else "USING"
            table = text.removeprefix("UPDATE ").removeprefix("DELETE FROM ").split(" ")[0]
            made = text.replace(" WHERE id = ", f" {word} {rows} WHERE {table}.id = ")
        self.postgresql = re.sub(r"(?<!:):(\w+)", r'r."\1"', made)


# ------------------------------------------------------------------------------ running


class Cursor(Protocol):
    """What the cursors of sqlite3 and psycopg have in common."""

    rowcount: int

    def fetchall(self) -> list[tuple[object, ...]]:
        """Fetch the remaining rows."""
        ...

    def fetchone(self) -> tuple[object, ...] | None:
        """Fetch the next row."""
        ...


class Driver(Protocol):
    """What the connections of sqlite3 and psycopg have in common."""

    def execute(self, statement: str, values: Values, /) -> Cursor:
        """Run a statement."""
        ...

    def executemany(self, statement: str, rows: Sequence[Values], /) -> Cursor:
        """Run a statement for many rows (sqlite3 only)."""
        ...

    def pipeline(self) -> AbstractContextManager[object]:
        """Send statements without waiting for results (psycopg only)."""
        ...

    def commit(self) -> None:
        """Commit the transaction."""
        ...

    def rollback(self) -> None:
        """Roll the transaction back."""
        ...


class Pending(Generic[R]):
    """The result of a statement that was sent; in a pipeline, reading it waits for it."""

    def __init__(self, cursor: Cursor, row: type[R]) -> None:
        self._cursor = cursor
        self._row = row

    def rows(self) -> list[R]:
        """Read the rows."""
        return list(starmap(self._row, self._cursor.fetchall()))


def _driver(connection: Connection) -> Driver:
    found: Any = connection.connection.dbapi_connection
    driver: Driver = found  # a call of `cast` would take half as long as the rest
    return driver


def _run(connection: Connection, sql: Sql, values: dict[str, Any]) -> Cursor:
    """Run a statement on the driver's own connection, inside the open transaction."""
    driver = _driver(connection)
    if not is_sqlite(connection):
        return driver.execute(sql.postgresql, values)
    for name in sql.lists:
        values[name] = _as_json(values[name])
    return driver.execute(sql.sqlite, values)


def _as_json(values: list[int] | list[str]) -> str:
    """Write a list; numbers are written by Python as JSON has them, in a tenth of the time.

    >>> _as_json([1, 2]), _as_json(["a"]), _as_json([])
    ('[1, 2]', '["a"]', '[]')
    """
    return json.dumps(values) if values and type(values[0]) is str else str(values)


def run(connection: Connection, sql: Sql, **values: object) -> None:
    """Run a statement."""
    _run(connection, sql, values)


def send(connection: Connection, query: Query[R], **values: object) -> Pending[R]:
    """Run a query; inside :func:`transaction` without waiting for its rows."""
    return Pending(_run(connection, query, values), query.row)


def fetch(connection: Connection, query: Query[R], **values: object) -> list[R]:
    """Run a query and fetch all rows."""
    return send(connection, query, **values).rows()


def fetch_one(connection: Connection, query: Query[R], **values: object) -> R | None:
    """Run a query and fetch the first row, or ``None``."""
    found = _run(connection, query, values).fetchone()
    return None if found is None else query.row(*found)


def fetch_ids(connection: Connection, sql: Sql, **values: object) -> list[int]:
    """Run a statement that selects one id per row, and fetch the ids."""
    return [cast(int, number) for (number,) in _run(connection, sql, values).fetchall()]


def exists(connection: Connection, sql: Sql, **values: object) -> bool:
    """Whether a statement finds a row."""
    return _run(connection, sql, values).fetchone() is not None


@contextmanager
def transaction(connection: Connection) -> Iterator[None]:
    """A transaction of statements of this module only.

    On PostgreSQL they are sent without waiting for each result before the next, and the commit with
    the last writes. On SQLite the driver begins and commits, which takes SQLAlchemy longer than
    the transaction of one answer.
    """
    driver = _driver(connection)
    if not is_sqlite(connection):
        with driver.pipeline(), connection.begin():
            yield
        return
    begin_writing(connection)
    try:
        yield
        driver.commit()
    except BaseException:
        driver.rollback()
        raise


def pragma(connection: Connection, name: str, value: str | int) -> None:
    """Change a setting of a connection to SQLite, inside or outside of a transaction."""
    _driver(connection).execute(f"PRAGMA {name}={value}", {})


def run_many(connection: Connection, sql: Many, rows: Iterable[Values]) -> int:
    """Run a statement for many rows, in order; count the rows that it changed."""
    made = list(rows)
    return _run_many(connection, sql, made).rowcount if made else 0


def send_many(connection: Connection, sql: Many, rows: Iterable[Values]) -> None:
    """Run a statement for many rows, in order, without waiting for its result."""
    made = list(rows)
    if made:
        _run_many(connection, sql, made)


def _run_many(connection: Connection, sql: Many, rows: list[Values]) -> Cursor:
    driver = _driver(connection)
    if not is_sqlite(connection):
        return driver.execute(sql.postgresql, {"rows": json.dumps(rows)})
    if len(rows) == 1:
        return driver.execute(sql.sqlite, rows[0])
    return driver.executemany(sql.sqlite, rows)


HOLD_READERS = Sql("SELECT pg_advisory_xact_lock_shared(7420818)")


WAIT_FOR_WRITERS = Sql("SELECT pg_advisory_xact_lock(7420818)")


def hold_readers(connection: Connection) -> None:
    """Have readers who continue from an id wait until the commit."""
    if not is_sqlite(connection):
        run(connection, HOLD_READERS)


def wait_for_labels(connection: Connection) -> None:
    """Wait for labels that are being written; nobody writes more until the commit."""
    if not is_sqlite(connection):
        run(connection, WAIT_FOR_WRITERS)


BUSY_SECONDS = 30


RETRY_SECONDS = 0.001
"""Between two attempts to write to SQLite while another process does."""


def begin_writing(connection: Connection) -> None:
    """Take the write lock, so that a transaction never fails halfway with "database is locked".

    SQLite itself looks for a lock that another process holds every 100 ms, and would starve beside
    one that writes all the time.
    """
    driver = cast(sqlite3.Connection, connection.connection.dbapi_connection)
    end = time.monotonic() + BUSY_SECONDS
    driver.execute("PRAGMA busy_timeout=0").close()
    try:
        while True:
            try:
                driver.execute("BEGIN IMMEDIATE").close()
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() >= end:
                    raise
                time.sleep(RETRY_SECONDS)
            else:
                return
    finally:
        driver.execute(f"PRAGMA busy_timeout={1000 * BUSY_SECONDS}").close()


def is_sqlite(connection: Connection | Engine) -> bool:
    """Whether this is SQLite (otherwise PostgreSQL)."""
    return connection.dialect.name == "sqlite"
