"""Databases and their tables."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip(
    "sqlalchemy", reason="the server is not installed: pip install crowdtree[serve]"
)

import sqlalchemy as sa

from crowdtree.core.errors import CrowdtreeError
from crowdtree.server.store import Store, Unavailable
from crowdtree.server.store.db import sql
from crowdtree.server.store.db.engine import ensure_tables, make_engine
from crowdtree.server.store.db.tables import SCHEMA_VERSION, metadata, schema_version


def test_a_database_without_an_encoding_is_refused(postgres: Any) -> None:
    import psycopg

    with psycopg.connect(postgres.server.get_uri(), autocommit=True) as connection:
        wish = "ENCODING 'SQL_ASCII' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
        connection.execute(f"CREATE DATABASE plain {wish}")
    engine = make_engine(postgres.server.get_uri(database="plain"))
    with pytest.raises(CrowdtreeError, match="expected the encoding UTF8, got SQL_ASCII"):
        ensure_tables(engine)
    engine.dispose()


def test_the_tables_of_an_empty_database_are_made_once(url: str) -> None:
    engine = make_engine(url)
    for _ in range(2):
        ensure_tables(engine)
        assert set(sa.inspect(engine).get_table_names()) == set(metadata.tables)
    with engine.connect() as connection:
        assert connection.execute(sa.select(schema_version)).all() == [(SCHEMA_VERSION,)]
    engine.dispose()


def test_an_unknown_database_is_refused_in_one_line(tmp_path: Path) -> None:
    for bad in ("mysql://x/y", "://", f"sqlite:///{tmp_path}/none/x.db"):
        with pytest.raises(CrowdtreeError, match="database"):
            make_engine(bad)


def test_sqlite_is_durable(tmp_path: Path) -> None:
    with Store(f"sqlite:///{tmp_path / 'x.db'}").opened() as store:
        mode = store.read(lambda c: c.exec_driver_sql("PRAGMA journal_mode").scalar())
        level = store.write(lambda c: c.exec_driver_sql("PRAGMA synchronous").scalar())
        assert (mode, level) == ("wal", 2)


def test_a_read_that_the_database_fails_can_be_repeated(postgres: Any) -> None:
    ending = "SELECT pg_terminate_backend(pg_backend_pid())"
    with Store(postgres.migrated()).opened() as store:
        with pytest.raises(Unavailable, match="try again"):
            store.read(lambda connection: connection.exec_driver_sql(ending))
        assert store.read(lambda c: c.exec_driver_sql("SELECT 1").scalar_one()) == 1


def test_a_writer_waits_for_another_process_but_not_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (make_engine(f"sqlite:///{tmp_path / 'x.db'}") for _ in range(2))
    waits: list[float] = []
    with first.connect() as holder, second.connect() as other:
        held = holder.begin()

        def sleep(seconds: float) -> None:
            waits.append(seconds)
            if len(waits) == 3:
                held.commit()

        monkeypatch.setattr(sql.time, "sleep", sleep)
        with other.begin():
            assert len(waits) == 3
            assert other.exec_driver_sql("PRAGMA busy_timeout").scalar_one() > 0
        monkeypatch.setattr(sql, "BUSY_SECONDS", 0)
        with holder.begin(), pytest.raises(sqlite3.OperationalError, match="locked"):
            other.begin()
    for used in (first, second):
        used.dispose()
