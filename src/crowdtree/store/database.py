"""Reaching the database: engines, migrations, and the hot path's SQL in either dialect.

Owner queries are SQLAlchemy expressions. The few statements that run for every question and every
answer are text (:class:`Sql`), executed by the driver itself inside the same transaction: composing
them anew each time costs more than running them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError

from crowdtree.errors import CrowdtreeError

__all__ = [
    "Many",
    "Sql",
    "fetch",
    "is_sqlite",
    "make_engine",
    "migrate",
    "pipelined",
    "run",
    "run_many",
    "run_one",
    "send_many",
]

BUSY_SECONDS = 30


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
    options = {"prepare_threshold": 1, "connect_timeout": 10}
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
    options: dict[str, Any] = {"poolclass": sa.pool.StaticPool} if memory else {}
    engine = sa.create_engine(
        url, connect_args={"check_same_thread": False, "timeout": BUSY_SECONDS}, **options
    )

    @sa.event.listens_for(engine, "connect")
    def _prepare(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # transactions begin where we say so
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}").close()
        connection.execute("PRAGMA cache_size=-65536").close()

    @sa.event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        # IMMEDIATE: a writer waits at the door, and never fails halfway with "database is locked".
        reading = connection.get_execution_options().get("reading")
        connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")

    return engine


def is_sqlite(connection: Connection | Engine) -> bool:
    """Whether this is SQLite (otherwise PostgreSQL)."""
    return connection.dialect.name == "sqlite"


def migrate(engine: Engine, revision: str = "head") -> None:
    """Bring the tables to a version; safe when several processes start at once."""
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    try:
        with engine.connect() as connection, connection.begin():
            if not is_sqlite(engine):
                connection.exec_driver_sql("SELECT pg_advisory_xact_lock(7420817)")
            config.attributes["connection"] = connection
            if revision == "base":
                command.downgrade(config, revision)
            else:
                command.upgrade(config, revision)
                _check_tables(connection)
    except CommandError:  # it knows a version that we do not
        raise CrowdtreeError(
            "database: it was made by a newer crowdtree; update crowdtree, or use another "
            "--database"
        ) from None
    except DBAPIError as error:
        raise CrowdtreeError(f"database: {_reason(error)}; check --database") from None


def _check_tables(connection: Connection) -> None:
    """Refuse a database that says it is up to date and is not."""
    from crowdtree.store.tables import metadata

    missing = set(metadata.tables) - set(sa.inspect(connection).get_table_names())
    if missing:
        raise CrowdtreeError(
            f"database: it was made by an unfinished crowdtree (no table {min(missing)}); "
            "use another --database"
        )


def _reason(error: DBAPIError) -> str:
    """Say in a few words what the driver complains of."""
    lines = str(error.orig).strip().splitlines()
    return lines[0].strip().rstrip(".:") if lines else type(error.orig).__name__


_LEASED = "UNION ALL SELECT item_id FROM leases WHERE id IN :leases"


class Sql:
    """A statement of the hot path: written once, with ``:name`` and ``IN :names`` for lists.

    ``{lock items}`` and ``{skip wanted, items}`` become ``FOR NO KEY UPDATE OF`` (with ``SKIP
    LOCKED``) on PostgreSQL and nothing on SQLite, where there is only one writer. Not ``FOR
    UPDATE``: that would wait for everybody who inserts a row that refers to the locked one.
    ``{of items}`` means the items ``:ids`` and those of the leases ``:leases``.

    >>> sql = Sql("SELECT id FROM items WHERE id IN :ids AND open > :n {lock items}")
    >>> sql.postgresql
    'SELECT id FROM items WHERE id = ANY(%(ids)s) AND open > %(n)s FOR NO KEY UPDATE OF items'
    >>> sql.sqlite
    'SELECT id FROM items WHERE id IN (SELECT value FROM json_each(:ids)) AND open > :n '
    """

    __slots__ = ("postgresql", "sqlite")

    def __init__(self, text: str) -> None:
        text = " ".join(text.split())
        lite = text.replace("{of items}", f"IN (SELECT value FROM json_each(:ids) {_LEASED})")
        lite = re.sub(r"\{[^}]*\}", "", lite)
        self.sqlite = re.sub(r"IN :(\w+)", r"IN (SELECT value FROM json_each(:\1))", lite)
        # An array and not a join or an OR: so it goes by index, however many items there are.
        meant = f"= ANY(ARRAY(SELECT unnest(:ids::bigint[]) {_LEASED}))"
        text = text.replace("{of items}", meant)
        post = re.sub(r"\{lock ([^}]*)\}", r"FOR NO KEY UPDATE OF \1", text)
        post = re.sub(r"\{skip ([^}]*)\}", r"FOR NO KEY UPDATE OF \1 SKIP LOCKED", post)
        post = re.sub(r"IN :(\w+)", r"= ANY(:\1)", post)
        self.postgresql = re.sub(r"(?<!:):(\w+)", r"%(\1)s", post)


class Many(Sql):
    """A statement of the hot path that runs for many rows at once.

    SQLite runs it row by row. PostgreSQL gets all rows in one parameter, as JSON: one message and
    one plan, however many rows there are. `types` says what each name is there.

    >>> sql = Many("UPDATE wanted SET open = :open WHERE id = :id", open="int", id="bigint")
    >>> print(sql.postgresql)
    UPDATE wanted SET open = r."open" FROM json_to_recordset(%(rows)s::json) AS r("open" int, \
"id" bigint) WHERE wanted.id = r."id"
    >>> print(Many("INSERT INTO t (a) VALUES (:a)", a="text").postgresql)
    INSERT INTO t (a) SELECT r."a" FROM json_to_recordset(%(rows)s::json) AS r("a" text)
    """

    __slots__ = ()

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


def fetch(connection: Connection, sql: Sql, **values: Any) -> Sequence[Any]:
    """Run a hot statement and fetch all rows (plain tuples)."""
    rows: Sequence[Any] = run(connection, sql, values).fetchall()
    return rows


def run_one(connection: Connection, sql: Sql, **values: Any) -> Any:
    """Run a hot statement and fetch the first row, or ``None``."""
    return run(connection, sql, values).fetchone()


def run(connection: Connection, sql: Sql, values: Mapping[str, Any]) -> Any:
    """Run a hot statement on the driver's own connection, inside the open transaction."""
    driver: Any = connection.connection.driver_connection
    if is_sqlite(connection):
        made = {
            name: json.dumps(value) if isinstance(value, list) else value
            for name, value in values.items()
        }
        return driver.execute(sql.sqlite, made)
    return driver.execute(sql.postgresql, values)


def pipelined(connection: Connection) -> AbstractContextManager[Any]:
    """Send statements on PostgreSQL without waiting for each one's result before the next."""
    if is_sqlite(connection):
        return nullcontext()
    driver: Any = connection.connection.driver_connection
    made: AbstractContextManager[Any] = driver.pipeline()
    return made


def run_many(connection: Connection, sql: Sql, rows: Iterable[Mapping[str, Any]]) -> int:
    """Run a hot statement for many rows, in order; count the rows it changed."""
    made = list(rows)
    if not made:
        return 0
    driver: Any = connection.connection.driver_connection
    if is_sqlite(connection):
        return int(driver.executemany(sql.sqlite, made).rowcount)
    if isinstance(sql, Many):
        return int(driver.execute(sql.postgresql, {"rows": json.dumps(made)}).rowcount)
    with driver.cursor() as cursor:
        cursor.executemany(sql.postgresql, made)
        return int(cursor.rowcount)


def send_many(connection: Connection, sql: Many, rows: Iterable[Mapping[str, Any]]) -> None:
    """Run a hot statement for many rows, in order, without waiting for its result."""
    made = list(rows)
    if not made:
        return
    driver: Any = connection.connection.driver_connection
    if is_sqlite(connection):
        driver.executemany(sql.sqlite, made)
    else:
        driver.execute(sql.postgresql, {"rows": json.dumps(made)})
