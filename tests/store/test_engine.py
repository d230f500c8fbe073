"""Databases and migrations."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip(
    "sqlalchemy", reason="the server is not installed: pip install crowdtree[serve]"
)

import sqlalchemy as sa

import crowdtree as ct
from crowdtree.errors import CrowdtreeError
from crowdtree.files import problem_to_dict
from crowdtree.policy import AdaptivePolicy
from crowdtree.store import ExpireLeases, Next, Settings, Store, Unavailable
from crowdtree.store.db import engine as module
from crowdtree.store.db.campaign_row import get_campaign
from crowdtree.store.db.engine import make_engine, migrate
from crowdtree.store.db.tables import metadata, open_questions
from crowdtree.store.owner import campaigns, people, tokens
from crowdtree.store.queries.progress import progress
from crowdtree.store.replay.verify import verify
from storelab import filled, work
from weblab import lab


def test_a_database_without_an_encoding_is_refused(postgres: Any) -> None:
    import psycopg

    with psycopg.connect(postgres.server.get_uri(), autocommit=True) as connection:
        wish = "ENCODING 'SQL_ASCII' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
        connection.execute(f"CREATE DATABASE plain {wish}")
    engine = make_engine(postgres.server.get_uri(database="plain"))
    with pytest.raises(CrowdtreeError, match="expected the encoding UTF8, got SQL_ASCII"):
        migrate(engine)
    engine.dispose()


def test_migrations_create_and_drop_the_tables(url: str) -> None:
    engine = make_engine(url)
    migrate(engine)
    migrate(engine)  # again: nothing to do
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    migrate(engine, "base")
    assert set(sa.inspect(engine).get_table_names()) <= {"alembic_version"}
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


def test_open_questions_survive_the_change_of_their_table(url: str) -> None:
    """Revision 0002 renames the table `wanted`; going back and forth loses nothing."""
    engine = make_engine(url)
    migrate(engine)
    with Store(url).opened() as store:
        number, hashes = filled(store, 3)
        store.ask(Next(hashes[0]))
        store.write(lambda _: None)  # on SQLite a question is returned before its commit
        rows = sa.select(open_questions).order_by(open_questions.c.id)
        before = store.read(lambda c: c.execute(rows).all())
    assert before
    downgrade(engine, "0001")
    assert "wanted" in sa.inspect(engine).get_table_names()
    migrate(engine)
    assert "wanted" not in sa.inspect(engine).get_table_names()
    engine.dispose()
    with Store(url).opened() as store:
        assert store.read(lambda c: c.execute(rows).all()) == before
        work(store, hashes)  # new rows get new ids
        found = store.read(lambda c: verify(c, number))
        assert (found["differences"], found["labelled"]) == ([], 3)


TOGETHER = ct.example("table1").replace(dependence=0.3)
PER_CELL = ct.Problem(
    ["a", "b", "c"],
    [0.5, 0.3, 0.2],
    ["q", "r"],
    [[0, 1, "-"], [1, 0, 0]],
    [[0.1, 0.2, 0.3], [0.05, 0.15, 0.25]],
    texts=["Is it q?", ""],
    descriptions=["first", "", "third"],
    dash="either",
)


@pytest.mark.parametrize("problem", [ct.example("animals"), TOGETHER, PER_CELL])
def test_problems_survive_the_change_of_their_form(url: str, problem: ct.Problem) -> None:
    """Revision 0003 writes problems as files do; going back and forth loses nothing."""
    policy = AdaptivePolicy(problem, target_error=0.4, strict=False)
    with Store(url).opened() as store:
        number = store.write(lambda c: campaigns.create(c, "", policy, Settings(), 0.0))
    engine = make_engine(url)
    downgrade(engine, "0002")
    with engine.connect() as connection:
        query = sa.text("SELECT problem FROM campaigns")
        stored = json.loads(connection.execute(query).scalar_one())
        connection.rollback()
    assert stored["classes"] == list(problem.classes)
    assert stored["outcome"] == problem.outcome.tolist()
    engine.dispose()
    with Store(url).opened() as store:
        found = store.read(lambda c: get_campaign(c, number))
    assert found.problem == problem_to_dict(problem)
    assert found.make_policy().problem == problem
    assert (found.classes, found.questions) == (list(problem.classes), list(problem.questions))


def downgrade(engine: sa.Engine, revision: str) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(module.__file__).parent / "migrations"))
    with engine.connect() as connection, connection.begin():
        config.attributes["connection"] = connection
        command.downgrade(config, revision)


# ------------------------------------------------------------------------------ old databases

OLD = Path(__file__).parent.parent / "data" / "campaign-0.1.db"
"""A database of version 0.1.0, written by the code of commit 4113173.

Its script created two campaigns on ``ct.example("table1")`` (the first a plan with 8 workers,
curtailed, gold_rate 0.2, price 0.01, budget 100, most_skips 2, thanks "Thank you"; the second
adaptive with target error 0.03 and at most 9 answers, gold_rate 0.1), with 15 items each, three of
them gold. Six workers per campaign took seven turns with answers, skips and undos; then the clock
went on by 700 s, the leases that three of them held expired, one worker took another question, and
the housekeeping ran once. The file was shrunk with VACUUM and a page size of 1024.
"""


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return Path(shutil.copy(OLD, tmp_path / "old.db"))


def stated_precision(path: Path, campaign: int) -> dict[str, float | None]:
    """Mean stated probability of the labels, read from the rows themselves."""
    found: dict[str, float | None] = dict.fromkeys(ct.example("table1").classes)
    query = """SELECT label, 1 - AVG(posterior_error) FROM labels JOIN items ON items.id = item_id
        WHERE labels.campaign_id = ? AND items.status = 2 GROUP BY label"""
    with sqlite3.connect(path) as connection:
        for label, share in connection.execute(query, (campaign,)):
            found[ct.example("table1").classes[label]] = share
    return found


def test_a_database_of_version_0_1_is_read_and_goes_on(old: Path) -> None:
    with Store(str(old), clock=lambda: 2_000_000.0, rng=0).opened() as store:
        for number in (1, 2):
            found = store.read(lambda c, n=number: verify(c, n))
            assert found["differences"] == []
            campaign = store.read(lambda c, n=number: get_campaign(c, n))
            assert campaign.problem == problem_to_dict(ct.example("table1"))
            seen = store.read(lambda c, n=number: progress(c, n, 2e6))
            assert seen["precision"] == pytest.approx(stated_precision(old, number))
            policy = campaign.make_policy()
            invited = [
                store.write(lambda c, n=number, p=policy: people.invite(c, n, "", p, False, 2e6))[1]
                for _ in range(9)
            ]
            store.ask(ExpireLeases())
            assert work(store, [tokens.hashed(token) for token in invited])
            after = store.read(lambda c, n=number: verify(c, n))
            assert after["differences"] == []
            assert after["labelled"] > found["labelled"]
            seen = store.read(lambda c, n=number: progress(c, n, 2e6))
            assert seen["precision"] == pytest.approx(stated_precision(old, number))


def test_added_and_removed_settings_are_accepted(old: Path) -> None:
    """A setting of today that version 0.1 did not know, and one of then that is gone."""
    with sqlite3.connect(old) as connection:
        text = connection.execute("SELECT settings FROM campaigns WHERE id = 1").fetchone()[0]
        values = json.loads(text)
        del values["give_up_seconds"], values["participant_parameter"]
        values["retired"] = {"any": "thing"}
        changed = (json.dumps(values),)
        connection.execute("UPDATE campaigns SET settings = ? WHERE id = 1", changed)
    connection.close()
    with lab(f"sqlite:///{old}") as app:
        campaign = app.store.read(lambda c: get_campaign(c, 1))
        assert (campaign.settings.thanks, campaign.settings.price) == ("Thank you", 0.01)
        assert campaign.settings.give_up_seconds == Settings().give_up_seconds
        assert app.store.read(lambda c: verify(c, 1))["differences"] == []
        for page in ("", "/share", "/items", "/workers", "/questions", "/plan", "/webhooks"):
            assert app.get(f"/c/1{page}").status_code == 200, page
        written = app.get("/api/campaigns/1/definition").json()["settings"]
        assert "retired" not in written
        assert written["participant_parameter"] == Settings().participant_parameter
        worker = app.worker(1)
        assert worker.next()["task"] is not None
        changed_settings = {"thanks": "Thanks"}
        sent = app.client.patch(
            "/api/campaigns/1/settings", json=changed_settings, headers=app.owner
        )
        assert sent.status_code == 200


def test_a_read_that_the_database_fails_can_be_repeated(postgres: Any) -> None:
    ending = "SELECT pg_terminate_backend(pg_backend_pid())"
    with Store(postgres.migrated()).opened() as store:
        with pytest.raises(Unavailable, match="try again"):
            store.read(lambda connection: connection.exec_driver_sql(ending))
        assert store.read(lambda c: c.exec_driver_sql("SELECT 1").scalar_one()) == 1
