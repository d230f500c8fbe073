"""Write a backup."""

from __future__ import annotations

import hashlib
import json
import time
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import IO, BinaryIO, NotRequired, TypedDict

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.core.errors import CrowdtreeError
from crowdtree.io.atomic import write_atomically
from crowdtree.server.store.backup.media import Media
from crowdtree.server.store.backup.tables import dump, last_ids, table_names
from crowdtree.server.store.db.engine import make_engine, snapshot
from crowdtree.server.store.db.tables import schema_version

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
                made = _tables(connection, archive)
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


def _tables(connection: Connection, archive: zipfile.ZipFile) -> Manifest:
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
