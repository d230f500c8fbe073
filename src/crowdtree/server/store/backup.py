"""Backups: all tables and uploaded media of a server in one file, taken while it runs.

The file is a ZIP archive. Every table is a member ``tables/NAME.jsonl``, every uploaded file a
member ``media/CAMPAIGN/NAME``, and ``backup.json`` has the version of the tables and the SHA-256 of
every member. Rows are written as JSON, so that a backup of SQLite restores into PostgreSQL and the
other way round.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple, NotRequired, Protocol, TypedDict

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.core.errors import CrowdtreeError
from crowdtree.io.atomic import write_atomically
from crowdtree.server.store.db.engine import make_engine, snapshot
from crowdtree.server.store.db.sql import is_sqlite
from crowdtree.server.store.db.tables import schema_version

MEMBER = re.compile(r"media/(\d+)/([^/\\\0]+)", re.ASCII)


class File(NamedTuple):
    """An uploaded file: its campaign, and the name that workers get."""

    campaign_id: int
    name: str

    @property
    def member(self) -> str:
        """The name of the file in a backup."""
        return f"media/{self.campaign_id}/{self.name}"

    @classmethod
    def of(cls, member: str) -> File:
        """Read the name of a file in a backup, or raise.

        >>> File.of("media/1/bird.png")
        File(campaign_id=1, name='bird.png')
        """
        found = MEMBER.fullmatch(member)
        if found is None or found[2] in (".", ".."):
            raise CrowdtreeError(f"{member[:80]!r} is not a name of uploaded media")
        return cls(int(found[1]), found[2])


Write = Callable[[File, IO[bytes]], None]


class Media(Protocol):
    """Uploaded media: a folder, or a bucket."""

    def stored(self) -> list[File]:
        """List the files of all campaigns."""

    def read(self, file: File) -> AbstractContextManager[IO[bytes]]:
        """Open a file."""

    def replacing(self, sizes: list[int], replace: bool) -> AbstractContextManager[Write]:
        """Replace all files by files of these sizes: at the end, or not at all after an error.

        If there are files, they are refused, or replaced.
        """


def is_media(name: str) -> bool:
    """Whether a member of a backup is an uploaded file.

    >>> is_media("media/1/bird.png"), is_media("tables/items.jsonl")
    (True, False)
    """
    return name.startswith("media/")


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


FORMAT = "crowdtree backup 1"
MANIFEST = "backup.json"
CHUNK = 2**20


class Manifest(TypedDict):
    """What a backup says about itself."""

    format: str
    crowdtree: str
    """Version of the program that wrote it."""
    tables: str
    """Version of the tables."""
    created_at: str
    rows: dict[str, int]
    """Number of rows, by table."""
    last_ids: dict[str, int]
    """Last id that was given, by table."""
    sha256: dict[str, str]
    """Checksums, by member."""
    bucket: NotRequired[str]
    """Where uploaded media are that the backup does not have."""


def member_of(table: str) -> str:
    """Name the member of a table.

    >>> member_of("answers")
    'tables/answers.jsonl'
    """
    return f"tables/{table}.jsonl"


def back_up(database: str, media: Media, path: Path, left_out: str = "") -> Manifest:
    """Write the database and the uploaded media to one file, which others cannot read.

    The file says where media are that are `left_out`.

    The tables are one consistent state; a server may be writing at the same time. The database is
    not changed.
    """
    engine = make_engine(database)
    found: list[Manifest] = []

    def write(target: BinaryIO) -> None:
        with zipfile.ZipFile(target, "w") as archive:
            with snapshot(engine) as connection:
                made = _write_tables(connection, archive)
            # after the tables, so that every file that they name is there
            for file in media.stored() if media is not None else ():
                with suppress(FileNotFoundError), media.read(file) as content:
                    digest = _member(archive, file.member, _chunks(content), zipfile.ZIP_STORED)
                    made["sha256"][file.member] = digest
            if left_out:
                made["bucket"] = left_out
            archive.writestr(MANIFEST, json.dumps(made, indent=1))
            found.append(made)

    try:
        write_atomically(path, write, private=True)
    finally:
        engine.dispose()
    return found[0]


def _write_tables(connection: Connection, archive: zipfile.ZipFile) -> Manifest:
    if not sa.inspect(connection).has_table(schema_version.name):
        raise CrowdtreeError("database: it has no tables of crowdtree; check --database")
    tables = connection.execute(sa.select(schema_version.c.version)).scalar_one()
    made = Manifest(
        format=FORMAT,
        crowdtree=version("crowdtree"),
        tables=tables,
        created_at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        rows={},
        last_ids={},
        sha256={},
    )
    for table in table_names(connection):
        lines = _Counted(dump(connection, table))
        name = member_of(table)
        made["sha256"][name] = _member(archive, name, lines, zipfile.ZIP_DEFLATED)
        made["rows"][table] = lines.count - 1  # the first line names the columns
    made["last_ids"] = last_ids(connection)
    return made


class _Counted:
    """Count what is iterated."""

    def __init__(self, parts: Iterable[bytes]) -> None:
        self.parts = parts
        self.count = 0

    def __iter__(self) -> Iterator[bytes]:
        for part in self.parts:
            self.count += 1
            yield part


def _member(archive: zipfile.ZipFile, name: str, parts: Iterable[bytes], method: int) -> str:
    """Write a member; return its checksum."""
    info = zipfile.ZipInfo(name, time.gmtime()[:6])
    info.compress_type = method
    info.external_attr = 0o600 << 16
    digest = hashlib.sha256()
    with archive.open(info, "w", force_zip64=True) as member:
        for part in parts:
            digest.update(part)
            member.write(part)
    return digest.hexdigest()


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    while chunk := file.read(CHUNK):
        yield chunk
