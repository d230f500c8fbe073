"""Restore a backup: check everything, then replace the database and the media."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import IO, cast

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from crowdtree.core.errors import CrowdtreeError
from crowdtree.server.store.backup import (
    CHUNK,
    FORMAT,
    MANIFEST,
    File,
    Manifest,
    Media,
    is_media,
    load,
    member_of,
    set_last_ids,
    table_names,
)
from crowdtree.server.store.db.engine import make_engine, make_tables
from crowdtree.server.store.db.sql import is_sqlite
from crowdtree.server.store.db.tables import SCHEMA_VERSION, metadata

MAX_MANIFEST = 2**28
"""Bytes of the list of parts, which names every uploaded file."""
MAX_LINE = 2**28
"""Bytes of a row: a line without an end must not fill the memory."""
DISCONNECTING = 20
"""Tenths of a second in which connections that are being closed may disappear."""


def restore(path: Path, database: str, media: Media, replace: bool = False) -> Manifest:
    """Load a backup into an empty database and folder or bucket, or with `replace` into any.

    Every checksum is compared before anything is replaced: if something is wrong, the database and
    the media stay as they were.
    """
    with _opened(path) as archive:
        manifest = _manifest(path, archive)
        members = filter(is_media, manifest["sha256"]) if media is not None else ()
        files = {name: _file(path, name) for name in members}
        engine = make_engine(database)
        try:
            sizes = [archive.getinfo(name).file_size for name in files]
            with media.replacing(sizes, replace) if media else nullcontext(_leave) as write:
                for name in files:
                    for _ in _parts(path, archive, manifest, name, lines=False):
                        pass  # compares the checksum
                _check_unused(engine)
                with engine.connect() as connection, connection.begin():
                    _check_empty(connection, replace)
                    _tables(path, archive, manifest, connection)
                    for name, file in files.items():
                        with archive.open(name) as content:
                            write(file, content)
        finally:
            engine.dispose()
    return manifest


def _leave(file: File, content: IO[bytes]) -> None:
    """Leave a file in the backup."""


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except FileNotFoundError as error:
        if error.filename != str(path):
            raise
        raise CrowdtreeError(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise CrowdtreeError(f"{path}: is a folder; give the name of a backup") from None
    except (zipfile.BadZipFile, EOFError, zlib.error):
        raise CrowdtreeError(
            f"{path}: is damaged, or not a backup of crowdtree; use another backup"
        ) from None


def _manifest(path: Path, archive: zipfile.ZipFile) -> Manifest:
    try:
        if archive.getinfo(MANIFEST).file_size > MAX_MANIFEST:
            raise ValueError
        found = json.loads(archive.read(MANIFEST))
        known = found["format"] == FORMAT
        if known and not _is_complete(found):
            raise ValueError
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError):
        raise CrowdtreeError(f"{path}: is not a backup of crowdtree ({MANIFEST})") from None
    if not known:
        raise CrowdtreeError(
            f"{path}: expected the format {FORMAT!r}, got {str(found['format'])[:40]!r}; "
            "update crowdtree"
        )
    missing = set(found["sha256"]) - set(archive.namelist())
    if missing:
        raise CrowdtreeError(f"{path}: {min(missing)} is missing; use another backup")
    return cast(Manifest, found)


def _is_complete(found: Manifest) -> bool:
    """Whether a manifest has all that is read of it; somebody may have written it by hand."""
    words = (found["crowdtree"], found["tables"], found["created_at"], *found["sha256"].values())
    numbers = (*found["rows"].values(), *found["last_ids"].values())
    return (
        all(isinstance(value, str) for value in words)
        and all(isinstance(value, int) for value in numbers)
        and "campaigns" in found["rows"]
        and {member_of(table) for table in found["rows"]} <= found["sha256"].keys()
    )


def _parts(
    path: Path, archive: zipfile.ZipFile, manifest: Manifest, name: str, lines: bool
) -> Iterator[bytes]:
    """Read a member by lines or chunks; raise at its end if its checksum is wrong."""
    digest = hashlib.sha256()
    with archive.open(name) as member:
        read = (lambda: member.readline(MAX_LINE)) if lines else (lambda: member.read(CHUNK))
        for part in iter(read, b""):
            if lines and len(part) == MAX_LINE:
                raise CrowdtreeError(f"{path}: {name} has too long a line; use another backup")
            digest.update(part)
            yield part
    if digest.hexdigest() != manifest["sha256"][name]:
        raise CrowdtreeError(f"{path}: the checksum of {name} is wrong; use another backup")


# ------------------------------------------------------------------------------ the database


def _tables(
    path: Path, archive: zipfile.ZipFile, manifest: Manifest, connection: Connection
) -> None:
    if manifest["tables"] != SCHEMA_VERSION:
        raise CrowdtreeError(
            f"{path}: expected tables of version {SCHEMA_VERSION}, got "
            f"{manifest['tables'][:40]!r}; restore it with crowdtree {manifest['crowdtree'][:40]}"
        )
    metadata.drop_all(connection)
    make_tables(connection)
    for table in table_names(connection):
        if table in manifest["rows"]:
            lines = _parts(path, archive, manifest, member_of(table), lines=True)
            try:
                load(connection, table, lines)
            except CrowdtreeError:
                raise
            except (ValueError, TypeError, StopIteration, RecursionError, sa.exc.ArgumentError):
                raise CrowdtreeError(
                    f"{path}: {member_of(table)} cannot be read; use another backup"
                ) from None
    set_last_ids(connection, manifest["last_ids"])


def _check_empty(connection: Connection, replace: bool) -> None:
    for table in () if replace else table_names(connection):
        query = sa.select(sa.literal(1)).select_from(sa.table(table)).limit(1)
        if connection.execute(query).first() is not None:
            raise CrowdtreeError(
                f"database: it is not empty (table {table}); use another --database, or --replace "
                "to delete what it has"
            )


def _check_unused(engine: Engine) -> None:
    """Refuse a database that a server has open: it would go on with what it remembers."""
    in_use = _sqlite_in_use if is_sqlite(engine) else _postgresql_in_use
    for _ in range(DISCONNECTING):
        if not in_use(engine):
            return
        time.sleep(0.1)
    raise CrowdtreeError("database: another program has it open; stop the server first")


def _sqlite_in_use(engine: Engine) -> bool:
    """Leaving the mode WAL requires that nobody else is connected."""
    with closing(sqlite3.connect(str(engine.url.database), timeout=0)) as connection:
        try:
            connection.execute("PRAGMA journal_mode=DELETE")
        except sqlite3.OperationalError:
            return True
        except sqlite3.DatabaseError:  # not a database, which connecting reports
            return False
    return False


def _postgresql_in_use(engine: Engine) -> bool:
    query = """SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
        AND pid <> pg_backend_pid() AND backend_type = 'client backend'"""
    with engine.connect() as connection:
        return bool(connection.exec_driver_sql(query).scalar_one())


# ------------------------------------------------------------------------------ media


def _file(path: Path, name: str) -> File:
    try:
        return File.of(name)
    except CrowdtreeError as error:
        raise CrowdtreeError(f"{path}: {error}") from None
