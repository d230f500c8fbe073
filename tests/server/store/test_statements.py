"""The statements of the serving path: their indexes and the types of their rows."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

import sqlalchemy as sa

from crowdtree.server.rules import reliability, rule, stalled_items, trust, wrong_table
from crowdtree.server.store import Store
from crowdtree.server.store.db import assignment
from crowdtree.server.store.db import statements as sql
from crowdtree.server.store.db.engine import ensure_tables, make_engine
from crowdtree.server.store.db.sql import Query, is_sqlite
from crowdtree.server.store.db.tables import leases
from crowdtree.server.store.queries import monitor_log
from crowdtree.server.store.replay import histories, items


def test_next_examines_few_rows_of_a_large_table(tmp_path: Path) -> None:
    """The statements of choosing use an index, never a scan or a sort."""
    with Store(f"sqlite:///{tmp_path / 'x.db'}").opened() as store:
        seeker = assignment.Seeker(1, 1, 0, 0, 0, people=2, known=1, wide=True)
        values = {**seeker._asdict(), "campaign": 1}
        offers = assignment.OFFER_FOR_ONE
        for statement in (*offers, assignment.NEW_ITEM_FOR_ONE, sql.ANY_UNFINISHED):
            plan = store.read(
                lambda c, s=statement: c.connection.driver_connection.execute(
                    f"EXPLAIN QUERY PLAN {s.sqlite}", values
                ).fetchall()
            )
            told = " | ".join(row[3] for row in plan)
            assert "SCAN" not in told, told
            assert "TEMP B-TREE" not in told, told


def test_a_page_of_items_is_read_without_going_through_the_campaign(tmp_path: Path) -> None:
    values = {"campaign": 1, "after": 5, "most": 9, "first": 5, "last": 9}
    pages = (
        items.ITEMS_AFTER,
        monitor_log.ITEMS,
        histories.LINES,
        histories.LABELS,
        histories.EVENTS,
        histories.OPEN,
    )
    with Store(f"sqlite:///{tmp_path / 'x.db'}").opened() as store:
        for statement in pages:
            plan = store.read(
                lambda c, s=statement: c.connection.driver_connection.execute(
                    f"EXPLAIN QUERY PLAN {s.sqlite}", values
                ).fetchall()
            )
            told = " | ".join(row[3] for row in plan)
            assert "TEMP B-TREE" not in told, told
            assert re.search(r"\((rowid|item_id)>\?", plan[0][3]), told


def test_leases_of_a_worker_are_found_by_index(tmp_path: Path) -> None:
    with Store(f"sqlite:///{tmp_path / 'x.db'}").opened() as store:
        names = {index.name for index in leases.indexes}
        found = store.read(
            lambda c: c.exec_driver_sql("SELECT name FROM sqlite_master WHERE type = 'index'").all()
        )
        assert names <= {row[0] for row in found}


def queries(namespace: Any) -> Iterator[tuple[str, Query[Any]]]:
    for name, value in vars(namespace).items():
        for found in value.values() if isinstance(value, dict) else [value]:
            if isinstance(found, Query):
                yield name, found


RULES = (reliability, rule, stalled_items, trust, wrong_table)
MODULES = (sql, assignment, *RULES, monitor_log, items, histories)
QUERIES = sorted({name: query for module in MODULES for name, query in queries(module)}.items())
CHOICES = [("OFFER_FOR_ONE", query) for query in assignment.OFFER_FOR_ONE]
POSTGRESQL_ONLY = ("OFFERS", "NEW_ITEMS", "TAKE_OFFERS", "START_ITEMS", "SNAPSHOT")


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def engine(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[sa.Engine]:
    """A database of either kind with empty tables."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path_factory.mktemp('statements') / 'store.db'}"
    else:
        url = request.getfixturevalue("postgres").database()
    made = make_engine(url)
    ensure_tables(made)
    yield made
    made.dispose()


@pytest.mark.parametrize(("name", "query"), [*QUERIES, *CHOICES])
def test_the_fields_of_a_row_are_the_selected_columns(
    engine: sa.Engine, name: str, query: Query[Any]
) -> None:
    """A column that is added, dropped or moved in a statement must change the row type as well."""
    lite = is_sqlite(engine)
    if lite and name in POSTGRESQL_ONLY:
        pytest.skip("runs on PostgreSQL only")
    if not lite and name == "ADD_LEASE":
        pytest.skip("inserts a row that refers to others; checked on SQLite")
    text = query.sqlite if lite else query.postgresql
    names = set(re.findall(r"(?<![:\w]):(\w+)" if lite else r"%\((\w+)\)s", text))
    numbers: Any = "[]" if lite else []
    lists = {"ids", "leases", "hashes", "present", "present_known"}
    values: dict[str, Any] = {n: numbers if n in lists else 0 for n in names}
    values |= {n: "[]" for n in ("rows", "rest") if n in names}
    values |= {n: "" for n in ("key", "nonce") if n in names}
    with engine.connect() as connection, connection.begin() as transaction:
        if name == "ADD_LEASE":  # inserts a row that refers to others, which are not there
            connection.exec_driver_sql("PRAGMA defer_foreign_keys = ON")
        driver: Any = connection.connection.driver_connection
        cursor = driver.execute(text, values)
        columns = [column[0] for column in cursor.description]
        cursor.close()
        transaction.rollback()
    fields = getattr(query.row, "_fields", None) or [
        field.name for field in dataclasses.fields(query.row) if field.name != "changed"
    ]
    assert columns == list(fields)
