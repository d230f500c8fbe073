"""All rows of a database as lines of JSON, and back: the same for SQLite and PostgreSQL."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.server.store.db.engine import is_sqlite
from crowdtree.server.store.db.tables import schema_version

AT_ONCE = 1000


def table_names(connection: Connection) -> list[str]:
    """Names of the tables, every one after those that it refers to."""
    found = sa.inspect(connection).get_sorted_table_and_fkc_names()
    return [name for name, _ in found if name and name != schema_version.name]


def dump(connection: Connection, table: str) -> Iterator[bytes]:
    """Write the columns of a table as the first line, then a line per row."""
    names = [column["name"] for column in sa.inspect(connection).get_columns(table)]
    yield _line(names)
    columns: list[Any] = [sa.column(name) for name in names]
    query = sa.select(*columns).select_from(sa.table(table))
    if "id" in names:
        query = query.order_by(sa.column("id"))
    streamed = connection.execution_options(stream_results=True, yield_per=AT_ONCE)
    for row in streamed.execute(query):
        yield _line(tuple(row))


def _line(values: Sequence[object]) -> bytes:
    return json.dumps(values, separators=(",", ":")).encode() + b"\n"


def load(connection: Connection, table: str, lines: Iterable[bytes]) -> None:
    """Insert the lines that :func:`dump` wrote."""
    rows = map(json.loads, lines)
    names = next(rows)
    insert = sa.table(table, *map(sa.column, names)).insert()
    while batch := [dict(zip(names, row, strict=True)) for row in itertools.islice(rows, AT_ONCE)]:
        connection.execute(insert, batch)


def last_ids(connection: Connection) -> dict[str, int]:
    """The last id that each table has given, also to a row that was deleted since.

    Ids are never given twice, because readers of the log continue after the last id they know.
    """
    if is_sqlite(connection):
        rows = connection.exec_driver_sql("SELECT name, seq FROM sqlite_sequence").all()
        return {name: int(last) for name, last in rows}
    found = {}
    for table, sequence in _sequences(connection).items():
        last, called = connection.exec_driver_sql(
            f"SELECT last_value, is_called FROM {sequence}"
        ).one()
        found[table] = int(last) if called else 0
    return found


def set_last_ids(connection: Connection, last: dict[str, int]) -> None:
    """Continue to give ids after those that were given."""
    if is_sqlite(connection):
        for table, number in last.items():
            given = {"name": table, "seq": number}
            connection.execute(sa.text("DELETE FROM sqlite_sequence WHERE name = :name"), given)
            connection.execute(sa.text("INSERT INTO sqlite_sequence VALUES (:name, :seq)"), given)
        return
    for table, sequence in _sequences(connection).items():
        number = last.get(table, 0)
        connection.execute(
            sa.text("SELECT setval(:sequence, :value, :called)"),
            {"sequence": sequence, "value": max(number, 1), "called": number > 0},
        )


def _sequences(connection: Connection) -> dict[str, str]:
    """Sequences of ids on PostgreSQL, by table."""
    query = sa.text("SELECT pg_get_serial_sequence(:name, 'id')")
    found = {}
    for table in table_names(connection):
        columns = sa.inspect(connection).get_columns(table)
        if any(column["name"] == "id" for column in columns):
            sequence = connection.execute(query, {"name": table}).scalar_one()
            if sequence is not None:
                found[table] = str(sequence)
    return found
