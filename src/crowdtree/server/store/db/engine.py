"""Engines for SQLite and PostgreSQL, and the tables of a new database."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.pool import ConnectionPoolEntry

from crowdtree.core.errors import CrowdtreeError
from crowdtree.io.private import make_private, open_private
from crowdtree.server.store.db.sql import BUSY_SECONDS, begin_writing, is_sqlite
from crowdtree.server.store.db.tables import SCHEMA_VERSION, metadata, schema_version

EMPTYING = 1000
"""Milliseconds that emptying the log may hold up those who write, while others read."""
PRAGMAS = ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "secure_delete=ON")
"""How SQLite keeps data, and that it overwrites what is deleted."""
READER_KIB = 2 * 1024
"""Page cache of a connection to SQLite; a server has several, and the system caches the file."""
BESIDE = ("", "-wal", "-shm", "-journal")
"""Ends of the names of an SQLite database's files."""
TABLES_LOCK = 7420817
"""Key of the advisory lock that a process holds on PostgreSQL while it makes the tables."""


def make_engine(url: str) -> Engine:
    """Make an engine for ``sqlite:///file``, a plain file name, or ``postgresql://...``.

    >>> make_engine("sqlite://").dialect.name
    'sqlite'
    """
    parsed = _parsed(url)
    if parsed.get_backend_name() == "sqlite":
        return _sqlite_engine(parsed)
    if parsed.get_backend_name() != "postgresql":
        raise CrowdtreeError(
            f"database: {parsed.get_backend_name()!r} is not supported; "
            "use sqlite:///FILE or postgresql://USER@HOST/NAME"
        )
    options = {"prepare_threshold": 1, "connect_timeout": 10, "client_encoding": "utf8"}
    return sa.create_engine(
        parsed.set(drivername="postgresql+psycopg"),
        pool_size=5,
        max_overflow=10,
        pool_pre_ping=True,
        connect_args=options,
    )


def _parsed(url: str) -> sa.URL:
    try:
        return make_url(url if "://" in url else f"sqlite:///{url}")
    except (ArgumentError, ValueError):
        raise CrowdtreeError(
            "database: the address cannot be read; use sqlite:///FILE or "
            "postgresql://USER@HOST/NAME"
        ) from None


def _sqlite_engine(url: sa.URL) -> Engine:
    memory = url.database in (None, "", ":memory:")
    if not memory:
        folder = Path(str(url.database)).resolve().parent
        if not folder.is_dir():
            raise CrowdtreeError(f"database: folder {folder} does not exist; make it first")
        if not str(url.database).startswith("file:"):
            _keep_private(Path(str(url.database)))
    engine = sa.create_engine(
        url,
        connect_args={"check_same_thread": False, "timeout": BUSY_SECONDS},
        poolclass=sa.StaticPool if memory else None,
    )

    @sa.event.listens_for(engine, "connect")
    def _prepare(connection: sqlite3.Connection, _entry: ConnectionPoolEntry) -> None:
        connection.isolation_level = None  # transactions begin explicitly, in _begin
        for pragma in PRAGMAS:
            connection.execute(f"PRAGMA {pragma}").close()
        connection.execute(f"PRAGMA cache_size={-READER_KIB}").close()

    @sa.event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        if connection.get_execution_options().get("reading"):
            connection.exec_driver_sql("BEGIN")
        else:
            begin_writing(connection)

    return engine


def empty_log(engine: Engine) -> None:
    """Empty the write-ahead log of SQLite, which has what was deleted, unless it is being read."""
    if not is_sqlite(engine):
        return
    connection = engine.raw_connection()
    cursor = connection.cursor()
    try:
        cursor.execute(f"PRAGMA busy_timeout={EMPTYING}")
        with suppress(sqlite3.OperationalError):
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        cursor.execute(f"PRAGMA busy_timeout={1000 * BUSY_SECONDS}")
    finally:
        cursor.close()
        connection.close()


def _keep_private(path: Path) -> None:
    """Let only the owner read a database, also one that was made before.

    SQLite gives the files beside a database the rights of the database itself.
    """
    try:
        open_private(path).close()  # an empty file is an empty database
    except OSError:  # it exists; or it cannot be made, which connecting reports
        for end in BESIDE:
            make_private(path.with_name(path.name + end))


def ensure_tables(engine: Engine) -> None:
    """Make the tables of an empty database, or check their version.

    Safe when several processes start at once.
    """
    try:
        with engine.connect() as connection, connection.begin():
            if not is_sqlite(connection):
                _check_encoding(connection)
                connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({TABLES_LOCK})")
            there = set(sa.inspect(connection).get_table_names())
            if there.isdisjoint(metadata.tables):
                make_tables(connection)
            else:
                _check_tables(connection, there)
    except DBAPIError as error:
        raise CrowdtreeError(f"database: {_reason(error)}; check --database") from None


def make_tables(connection: Connection) -> None:
    """Make all tables, in the transaction of the caller."""
    metadata.create_all(connection)
    connection.execute(schema_version.insert().values(version=SCHEMA_VERSION))


@contextmanager
def snapshot(engine: Engine) -> Iterator[Connection]:
    """Read one consistent state of the database, without blocking writers."""
    with engine.connect() as connection:
        connection = connection.execution_options(reading=True)
        if not is_sqlite(engine):  # otherwise each statement would see its own snapshot
            connection = connection.execution_options(isolation_level="REPEATABLE READ")
        with connection.begin():
            yield connection


def _check_encoding(connection: Connection) -> None:
    """Refuse a PostgreSQL database that cannot hold every text.

    A machine without a locale makes databases that know no encoding.
    """
    found = connection.exec_driver_sql("SHOW server_encoding").scalar_one()
    if found != "UTF8":
        raise CrowdtreeError(
            f"database: expected the encoding UTF8, got {found}; make it with "
            "createdb --encoding UTF8 --template template0 NAME"
        )


def _check_tables(connection: Connection, there: set[str]) -> None:
    """Refuse tables of another version, or of another program."""
    known = schema_version.name in there
    version = connection.scalar(sa.select(schema_version.c.version)) if known else None
    if version != SCHEMA_VERSION:
        raise CrowdtreeError(
            f"database: expected tables of version {SCHEMA_VERSION}, got "
            f"{version or 'tables without a version'}; use the crowdtree that made them, or "
            "another --database"
        )
    missing = set(metadata.tables) - there
    if missing:
        raise CrowdtreeError(f"database: table {min(missing)} is missing; use another --database")


def _reason(error: DBAPIError) -> str:
    """First line of the driver's message."""
    lines = str(error.orig).strip().splitlines()
    return lines[0].strip().rstrip(".:") if lines else type(error.orig).__name__
