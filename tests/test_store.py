"""The store: tables and migrations, the lanes, and a verify that finds what it must find."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip(
    "sqlalchemy", reason="the server is not installed: pip install crowdtree[serve]"
)

import sqlalchemy as sa

import crowdtree as ct
from crowdtree.errors import CrowdtreeError
from crowdtree.policy import AdaptivePolicy, PlanPolicy
from crowdtree.store import Next, Refused, Settings, Store, Submit, Transaction, Unavailable, Undo
from crowdtree.store.background import outbox
from crowdtree.store.db import statements as sql
from crowdtree.store.db.campaign_row import get_campaign
from crowdtree.store.db.engine import make_engine, migrate
from crowdtree.store.db.labels import write_labels
from crowdtree.store.db.tables import answers, items, labels, leases, metadata, open_questions
from crowdtree.store.owner import campaigns, people, tokens, webhooks
from crowdtree.store.replay.verify import verify
from serving import Postgres


def policy() -> PlanPolicy:
    return PlanPolicy(ct.staff(ct.design(ct.example("table1")), workers=8), "curtailed")


def filled(store: Store, n: int = 10, made: Any = None, **settings: Any) -> tuple[int, list[str]]:
    """Make a running campaign with items and ten workers; returns its number and token hashes."""
    made = made or policy()
    now = store.clock()
    number = store.write(lambda c: campaigns.create(c, "x", made, Settings(**settings), now))
    rows = [{"task": f"i{k}", "payload": "{}", "gold": None} for k in range(n)]
    assert store.write(lambda c: campaigns.add_items(c, number, rows)) == n
    store.write(lambda c: campaigns.set_status(c, number, "running", now))
    invited = [
        store.write(lambda c: people.invite(c, number, "", made, False, now))[1] for _ in range(10)
    ]
    return number, [tokens.hashed(token) for token in invited]


def work(store: Store, hashes: list[str], errors: list[BaseException] | None = None) -> int:
    """Let workers answer until there is nothing left."""
    count, idle = 0, 0
    while idle < len(hashes):
        idle = 0
        for place, who in enumerate(hashes):
            found = store.ask(Next(who))["task"]
            if found is None:
                idle += 1
                continue
            try:
                store.ask(Submit(who, found["lease"], "answer", place % 2, f"k{count}"))
            except Refused as error:
                (errors if errors is not None else []).append(error)
            count += 1
    return count


# ------------------------------------------------------------------------------ tables


def test_migrations_make_the_tables_and_take_them_away(url: str) -> None:
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


# ------------------------------------------------------------------------------ serving


@pytest.mark.parametrize("kind", ["plan", "adaptive"])
def test_a_campaign_ends_with_every_item_labelled_once(url: str, kind: str) -> None:
    made = None
    if kind == "adaptive":
        made = AdaptivePolicy(ct.example("table1"), target_error=0.1, max_answers=7, strict=False)
    with Store(url, rng=0).opened() as store:
        number, hashes = filled(store, 30, made)
        work(store, hashes)
        found = store.read(lambda c: verify(c, number))
        assert found["agrees"], found["differences"]
        assert found["labelled"] == 30


def test_many_threads_never_go_beyond_a_quota(url: str) -> None:
    with Store(url, rng=0).opened() as store:
        number, hashes = filled(store, 40)
        errors: list[BaseException] = []
        threads = [threading.Thread(target=work, args=(store, [who], errors)) for who in hashes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        found = store.read(lambda c: verify(c, number))
        assert found["agrees"], found["differences"]
        assert found["labelled"] == 40


def test_two_stores_on_one_postgresql_share_the_work(postgres: Postgres) -> None:
    url = postgres.database()
    with Store(url).opened() as one, Store(url).opened() as two:
        number, hashes = filled(one, 30)
        threads = [
            threading.Thread(target=work, args=(store, [who]))
            for place, who in enumerate(hashes)
            for store in ((one, two)[place % 2],)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found = one.read(lambda c: verify(c, number))
        assert found["agrees"], found["differences"]
        assert found["labelled"] == 30


def test_a_failing_call_changes_nothing_and_hurts_nobody(url: str) -> None:
    with Store(url).opened() as store:
        number, _ = filled(store)

        def spoil(connection: Any) -> None:
            connection.execute(items.update().values(task="spoilt"))
            raise CrowdtreeError("no")

        with pytest.raises(CrowdtreeError, match="no"):
            store.write(spoil)
        with pytest.raises(ZeroDivisionError):
            store.ask(Transaction(lambda _: 1 // 0))
        assert store.read(lambda c: verify(c, number))["items"] == 10


def test_a_lost_lease_is_gone_and_not_somebody_elses(url: str) -> None:
    with Store(url).opened() as store:
        _, hashes = filled(store)
        lease = store.ask(Next(hashes[0]))["task"]["lease"]
        number = lease.partition(".")[0]
        for forged in (f"{number}.0000", f"{number}.", "999.abc", lease + "0"):
            with pytest.raises(Refused, match="not open"):
                store.ask(Submit(hashes[0], forged, "answer", 1, "k"))
        with pytest.raises(Refused, match="not open"):
            store.ask(Submit(hashes[1], lease, "answer", 1, "k"))
        assert store.ask(Submit(hashes[0], lease, "answer", 1, "k"))["fate"] == "counted"


def test_answers_cannot_be_written_twice(url: str) -> None:
    with Store(url).opened() as store:
        _, hashes = filled(store)
        work(store, hashes[:1])

        def twice(connection: Any) -> None:
            row = connection.execute(sa.select(answers).limit(1)).one()._mapping
            copy = {name: row[name] for name in row if name != "id"}
            connection.execute(answers.insert().values(**copy))

        with pytest.raises(Exception, match=r"(?i)unique|try again"):
            store.write(twice)


def test_readers_see_one_moment(url: str) -> None:
    with Store(url).opened() as store:
        number, hashes = filled(store)
        count = sa.select(sa.func.count()).select_from(answers)

        def look(connection: Any) -> tuple[int, int]:
            before = connection.execute(count).scalar_one()
            work(store, hashes[:2])
            return before, connection.execute(count).scalar_one()

        assert store.read(look) == (0, 0)
        assert store.read(lambda c: c.execute(count).scalar_one()) > 0
        assert store.read(lambda c: verify(c, number))["differences"] == []


def test_a_row_that_the_database_refuses_fails_its_own_request_only(url: str) -> None:
    with Store(url).opened() as store:
        _, hashes = filled(store)
        go = threading.Event()
        worker = sa.select(tokens.credentials.c.worker_id).limit(1).scalar_subquery()
        again = tokens.credentials.insert().values(
            token_hash=hashes[0], role="worker", worker_id=worker
        )
        held, bad = Transaction(lambda _: go.wait(30)), Transaction(lambda c: c.execute(again))
        good = Transaction(lambda c: c.execute(items.update().values(payload='{"a": 1}')).rowcount)
        done = threading.Semaphore(0)
        for request in (held, bad, good):  # the last two wait for the first: one batch
            request.done = done.release
            store.put(request)
        go.set()
        for _ in range(3):
            assert done.acquire(timeout=30)
        assert isinstance(bad.error, Unavailable)
        assert (good.error, good.result) == (None, 10)


def test_names_that_no_database_takes_are_refused_alike(url: str) -> None:
    made = policy()
    with Store(url).opened() as store:
        number, _ = filled(store)
        for bad in ("a\x00b", "a" * 201):
            with pytest.raises(CrowdtreeError, match="participant"):
                store.write(lambda c, b=bad: people.join(c, number, b, made, False, 0, {}, 9))
            with pytest.raises(CrowdtreeError, match="worker"):
                store.write(lambda c, b=bad: people.invite(c, number, b, made, False, 0))
            with pytest.raises(CrowdtreeError, match="campaign"):
                store.write(lambda c, b=bad: campaigns.create(c, b, made, Settings(), 0))


def test_keys_of_undos_are_used_once_too(url: str) -> None:
    with Store(url).opened() as store:
        number, hashes = filled(store)
        who = hashes[0]
        lease = store.ask(Next(who))["task"]["lease"]
        store.ask(Submit(who, lease, "answer", 1, "k"))
        with pytest.raises(Refused, match="nothing to undo"):
            store.ask(Undo(who, "k"))  # the key of the answer itself
        again = [store.ask(Undo(who, "u"))["task"]["lease"] for _ in range(2)]
        assert again == [lease, lease]
        store.ask(Submit(who, lease, "answer", 0, "l"))
        with pytest.raises(Refused, match="nothing to undo"):
            store.ask(Undo(who, "u"))  # an old one that comes once more takes nothing back
        assert store.read(lambda c: c.execute(sa.select(answers.c.kind)).scalars().all()) == [
            "answer",
            "undo",
            "answer",
        ]
        assert store.read(lambda c: verify(c, number))["differences"] == []


def test_two_owners_do_not_undo_each_others_settings(postgres: Postgres) -> None:
    made = policy()
    waits = sa.text("SELECT count(*) FROM pg_locks WHERE NOT granted")
    with Store(postgres.database()).opened() as store:
        number, _ = filled(store, 1)

        def change(connection: Any, **changes: Any) -> None:
            campaigns.change_settings(connection, number, made, changes, 0.0)

        with store.engine.connect() as slow, slow.begin():
            change(slow, thanks="one")
            other = threading.Thread(
                target=lambda: store.write(lambda c: change(c, completion_code="two"))
            )
            other.start()
            while other.is_alive() and not store.read(lambda c: c.execute(waits).scalar_one()):
                pass
        other.join(30)
        kept = store.read(lambda c: get_campaign(c, number)).settings
        assert (kept.thanks, kept.completion_code) == ("one", "two")


def test_webhooks_miss_no_label_that_commits_late(postgres: Postgres) -> None:
    waits = sa.text("SELECT count(*) FROM pg_locks WHERE NOT granted")
    with Store(postgres.database()).opened() as store:
        number, _ = filled(store, 2)
        first, second = (
            sql.NewLabel(number, k, 0, 0.1, "leaf", answers=1, path="[]", at=0.0) for k in (1, 2)
        )
        store.write(lambda c: webhooks.add_hook(c, number, "https://label.example/", 0.0))
        with store.engine.connect() as slow, slow.begin():
            write_labels(slow, [first])  # has its number, and is not there yet
            store.write(lambda c: write_labels(c, [second]))
            found: list[Any] = []
            due = threading.Thread(
                target=lambda: found.extend(store.write(lambda c: outbox.claim(c, 1.0)))
            )
            due.start()
            while due.is_alive() and not store.read(lambda c: c.execute(waits).scalar_one()):
                pass
        due.join(30)
        assert [row["task"] for row in found[0].body["labels"]] == ["i0", "i1"]


# ------------------------------------------------------------------------------ verify

TAMPERED = {
    "label": lambda: labels.update().where(labels.c.id == 1).values(label=0),
    "error": lambda: labels.update().where(labels.c.id == 1).values(posterior_error=0.9),
    "reason": lambda: labels.update().where(labels.c.id == 1).values(reason="budget"),
    "no label": lambda: labels.delete().where(labels.c.id == 1),
    "answer lost": lambda: answers.delete().where(answers.c.id == 3),
    "answer turned": lambda: answers.update().where(answers.c.id == 3).values(value=1),
    "fate": lambda: answers.update().where(answers.c.id == 3).values(fate="surplus"),
    "skill": lambda: answers.update().where(answers.c.id == 3).values(skill=2.0),
    "state": lambda: items.update().where(items.c.id == 1).values(state='{"node": 9}'),
    "open": lambda: open_questions.insert().values(campaign_id=1, item_id=1, question=0, needed=1),
}


@pytest.mark.parametrize("what", TAMPERED)
def test_verify_finds_what_was_tampered_with(what: str, tmp_path: Path) -> None:
    with Store(f"sqlite:///{tmp_path / 'x.db'}").opened() as store:
        number, hashes = filled(store, 5)
        work(store, hashes)
        assert store.read(lambda c: verify(c, number))["agrees"]
        store.write(lambda c: c.execute(TAMPERED[what]()).rowcount)
        assert not store.read(lambda c: verify(c, number))["agrees"]


def test_next_looks_at_few_rows_however_many_there_are(tmp_path: Path) -> None:
    """The statements of choosing use an index, never a scan or a sort."""
    with Store(f"sqlite:///{tmp_path / 'x.db'}").opened() as store:
        values = {"campaign": 1, "question": 0, "worker": 1, "after": 0}
        for statement in (*sql.CHOOSE.values(), sql.NEW_ITEM, sql.ANY_UNFINISHED):
            plan = store.read(
                lambda c, s=statement: c.connection.driver_connection.execute(
                    f"EXPLAIN QUERY PLAN {s.sqlite}", values
                ).fetchall()
            )
            told = " | ".join(row[3] for row in plan)
            assert "SCAN" not in told, told
            assert "TEMP B-TREE" not in told, told


def test_leases_of_a_worker_are_found_by_index(tmp_path: Path) -> None:
    with Store(f"sqlite:///{tmp_path / 'x.db'}").opened() as store:
        names = {index.name for index in leases.indexes}
        found = store.read(
            lambda c: c.exec_driver_sql("SELECT name FROM sqlite_master WHERE type = 'index'").all()
        )
        assert names <= {row[0] for row in found}
