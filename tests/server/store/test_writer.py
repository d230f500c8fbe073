"""Batches of commands are atomic, and one bad command does not affect others."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests import aside

pytest.importorskip(
    "sqlalchemy", reason="the server is not installed: pip install crowdtree[serve]"
)

import sqlalchemy as sa

import crowdtree as ct
from crowdtree.core.errors import CrowdtreeError
from crowdtree.policies import AdaptivePolicy
from crowdtree.server.store import Next, Store, Submit, Transaction, Unavailable, tokens
from crowdtree.server.store.db.sql import transaction
from crowdtree.server.store.db.tables import answers, items
from crowdtree.server.store.replay.verify import verify
from crowdtree.server.store.serving import writer
from tests.serving import Postgres
from tests.storelab import filled, work


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


def test_all_who_wait_on_an_event_loop_get_their_own_result() -> None:
    async def play(store: Store) -> list[int]:
        return await asyncio.gather(*(store.awrite(lambda _, k=k: k) for k in range(300)))

    with Store("sqlite://").opened() as store:
        for _ in range(2):  # each time on a loop of its own
            assert aside.run(play(store)) == list(range(300))


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
        work(store, hashes)  # a thread leaves while others hold the last questions
        found = store.read(lambda c: verify(c, number))
        assert found["agrees"], found["differences"]
        assert found["labelled"] == 40


def test_two_stores_on_one_postgresql_share_the_work(postgres: Postgres) -> None:
    url = postgres.migrated()
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
        work(one, hashes)  # a thread leaves while others hold the last questions
        found = one.read(lambda c: verify(c, number))
        assert found["agrees"], found["differences"]
        assert found["labelled"] == 30


def test_a_failing_call_changes_nothing_and_affects_no_other(url: str) -> None:
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


def test_after_a_failure_no_question_is_given_that_is_not_saved(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a full disk each lease would be lost, and the answer to it refused as not open."""
    with Store(str(tmp_path / "x.db"), rng=0).opened() as store:
        _, hashes = filled(store)
        leases = [store.ask(Next(who))["task"]["lease"] for who in hashes[:2]]

        @contextmanager
        def full(connection: Any) -> Iterator[None]:
            with transaction(connection):
                yield
                raise sqlite3.OperationalError("database or disk is full")

        monkeypatch.setattr(writer, "transaction", full)
        store.ask(Next(hashes[2]))
        with pytest.raises(Unavailable, match="disk of the database is full"):
            store.ask(Next(hashes[2]))
        monkeypatch.undo()
        assert store.ask(Next(hashes[2]))["task"] is not None
        for who, lease in zip(hashes, leases, strict=False):
            assert store.ask(Submit(who, lease, "answer", 1, "k"))["fate"] == "counted"


def test_an_answer_is_acknowledged_when_it_is_on_disk(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store(postgres.migrated()).opened() as store:
        number, hashes = filled(store)
        lease = store.ask(Next(hashes[0]))["task"]["lease"]
        with monkeypatch.context() as patched:
            patched.setattr(writer, "FLUSH", "SELECT 1/0")
            with pytest.raises(Unavailable):
                store.ask(Submit(hashes[0], lease, "answer", 1, "k"))
        assert store.ask(Submit(hashes[0], lease, "answer", 1, "k"))["fate"] == "counted"
        assert store.read(lambda c: verify(c, number))["answers"] == 1


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


def test_readers_see_a_consistent_snapshot(url: str) -> None:
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
