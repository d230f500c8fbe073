"""Engines for SQLite and PostgreSQL, and the migrations that bring their tables up to date."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy.engine import Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.pool import ConnectionPoolEntry

from crowdtree.errors import CrowdtreeError
from crowdtree.files.private import make_private, open_private
from crowdtree.store.db.tables import metadata

__all__ = ["empty_log", "is_sqlite", "make_engine", "migrate", "migrate_within", "snapshot"]

BUSY_SECONDS = 30
EMPTYING = 1000
"""Milliseconds that emptying the log may hold up those who write, while others read."""
PRAGMAS = ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "secure_delete=ON")
"""How SQLite keeps data, and that it overwrites what is deleted."""
READER_KIB = 2 * 1024
"""Page cache of a connection to SQLite; a server has several, and the system caches the file."""
BESIDE = ("", "-wal", "-shm", "-journal")
"""Ends of the names of an SQLite database's files."""
MIGRATION_LOCK = 7420817
"""Key of the advisory lock that one migrating process holds on PostgreSQL."""


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
        # IMMEDIATE takes the write lock at the start, so that a transaction never fails halfway
        # with "database is locked".
        reading = connection.get_execution_options().get("reading")
        connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")

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


def is_sqlite(connection: Connection | Engine) -> bool:
    """Whether this is SQLite (otherwise PostgreSQL)."""
    return connection.dialect.name == "sqlite"


def migrate(engine: Engine, revision: str = "head") -> None:
    """Migrate the tables to a revision; safe when several processes start at once."""
    try:
        with engine.connect() as connection, connection.begin():
            migrate_within(connection, revision)
    except CommandError:  # the database is at a revision that this version does not know
        raise CrowdtreeError(
            "database: it was made by a newer crowdtree; update crowdtree, or use another "
            "--database"
        ) from None
    except DBAPIError as error:
        raise CrowdtreeError(f"database: {_reason(error)}; check --database") from None


def migrate_within(connection: Connection, revision: str = "head") -> None:
    """Migrate the tables to a revision, in the transaction of the caller."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    if not is_sqlite(connection):
        _check_encoding(connection)
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})")
    config.attributes["connection"] = connection
    if revision == "base":
        command.downgrade(config, revision)
    else:
        command.upgrade(config, revision)
    if revision == "head":
        _check_tables(connection)


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


def _check_tables(connection: Connection) -> None:
    """Refuse a database that claims to be up to date but lacks a table."""
    missing = set(metadata.tables) - set(sa.inspect(connection).get_table_names())
    if missing:
        raise CrowdtreeError(
            f"database: it was made by an unfinished crowdtree (no table {min(missing)}); "
            "use another --database"
        )


def _reason(error: DBAPIError) -> str:
    """First line of the driver's message."""
    lines = str(error.orig).strip().splitlines()
    return lines[0].strip().rstrip(".:") if lines else type(error.orig).__name__
