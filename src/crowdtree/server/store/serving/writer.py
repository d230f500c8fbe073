"""Writers: threads that gather waiting commands and commit them together.

On SQLite there is one writer, because the database allows only one. Its transaction is flushed to
disk before any answer in it is acknowledged; questions are acknowledged before the flush, because
a lease that is lost in a crash does no harm. After a failure they are not, because on a full disk
every lease would be lost, and the answer to it refused. On PostgreSQL answers, questions and other
transactions have a writer each, and none waits for the disk, which frees the rows that they lock at
once: answers are acknowledged by the :class:`Flusher`, of which one flush covers everything that
all processes have committed before it. If it fails, nobody was told that the answers are saved, and
clients repeat them with the same keys.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from sqlalchemy.engine import Connection, Engine

from crowdtree.server.store.db.sql import is_sqlite, pragma, transaction
from crowdtree.server.store.errors import database_errors, driver_name, is_outage, unavailable
from crowdtree.server.store.serving.answering import expire_leases, submit_all
from crowdtree.server.store.serving.assign import assign_all
from crowdtree.server.store.serving.campaign import ServingCache
from crowdtree.server.store.serving.commands import (
    AnyCommand,
    ExpireLeases,
    Next,
    Submit,
    Transaction,
)
from crowdtree.server.store.serving.unit_of_work import UnitOfWork

MAX_AT_ONCE = 256
GATHER_SECONDS = 0.005
"""How long a batch waits for more: one transaction for all costs less than one for each."""
CACHE_KIB = 16 * 1024
"""Page cache of the writer on SQLite."""
OUTAGE_SECONDS = 0.2
"""Pause after a failure of the database, before the next batch."""
CAREFUL_SECONDS = 60.0
"""For how long after a failure questions are acknowledged only when they are saved."""
RETRIED = ("DeadlockDetected", "SerializationFailure", "LockNotAvailable")
"""Errors after which the same transaction may succeed."""
BAD_COMMAND = {"IntegrityError", "DataError"}
"""Errors caused by one command and not by the database: the other commands must not fail."""
SETTINGS = {
    "synchronous_commit": "off",
    "plan_cache_mode": "force_generic_plan",
    **dict.fromkeys(("jit", "enable_seqscan", "enable_hashjoin", "enable_mergejoin"), "off"),
}
"""Settings of the writers' connections to PostgreSQL. They repeat a few statements: planning them
each time would cost more than running them, and each has an index to use, whatever the statistics
of a new table suggest."""
log = logging.getLogger("crowdtree.server.store")


def finish(commands: Sequence[AnyCommand], error: BaseException | None = None) -> None:
    """Tell those who wait that commands are done, or that they failed."""
    for command in commands:
        if command.finished:
            continue
        command.finished = True
        if error is not None:
            command.error, command.result = error, None
        if command.done is not None:
            command.done()


class BatchWriter:
    """One thread with one connection that serves commands in batches (group commit).

    Parameters
    ----------
    acknowledge
        Called with the commands that are committed; by default they are done then.
    changed
        Called after each commit with the campaigns that changed and how many questions opened.
    """

    def __init__(
        self,
        engine: Engine,
        cache: ServingCache,
        *,
        acknowledge: Callable[[list[AnyCommand]], None] = finish,
        changed: Callable[[dict[int, int]], None] = lambda _: None,
    ) -> None:
        self.engine = engine
        self.cache = cache
        self.acknowledge = acknowledge
        self.changed = changed
        self.queue: queue.SimpleQueue[AnyCommand | None] = queue.SimpleQueue()
        self.connection: Connection | None = None
        self.flushing: bool | None = None
        """Whether commits of the connection wait for the disk; ``None`` if that is not known."""
        self.careful_until = 0.0
        self.expected = 1
        """Commands that may come together: as many as in the batch before."""
        self.errors = database_errors()
        self.thread = threading.Thread(target=self._serve, name="crowdtree-writer", daemon=True)
        self.thread.start()

    def put(self, request: AnyCommand) -> None:
        """Queue a command; its `done` is called from the writer's thread."""
        self.queue.put(request)

    def close(self) -> None:
        """Finish what is queued and stop."""
        self.queue.put(None)
        self.thread.join(timeout=30)

    # ---------------------------------------------------------------- the thread

    def _serve(self) -> None:
        while True:
            batch, last = self._gather()
            if batch:
                self._attempt(batch)
            if last:
                self._drop()
                return

    def _gather(self) -> tuple[list[AnyCommand], bool]:
        """Take what waits; while several come at a time, wait a moment for as many as before."""
        found = [self.queue.get()]
        end = time.monotonic() + GATHER_SECONDS
        with suppress(queue.Empty):
            while len(found) < MAX_AT_ONCE:
                left = end - time.monotonic() if len(found) < self.expected else 0.0
                found.append(self.queue.get(timeout=left) if left > 0 else self.queue.get_nowait())
        self.expected = len(found)
        return [request for request in found if request is not None], None in found

    def _attempt(self, requests: list[AnyCommand], tries: int = 3) -> None:
        try:
            self._commit(requests)
        except self.errors as error:
            name = driver_name(error)
            if tries > 1 and name in RETRIED:
                log.info("retrying a batch: %s", name)
                self._drop()
                self._attempt([r for r in requests if not r.finished], tries - 1)
            elif len(requests) > 1 and _is_bad_command(error):
                self._drop()
                self._one_by_one(requests)
            else:
                self._failed(requests, error)
        except BaseException as error:
            log.exception("a batch of %d commands failed", len(requests))
            self._drop()
            if len(requests) == 1:
                finish(requests, error)
                return
            self._one_by_one(requests)

    def _one_by_one(self, requests: list[AnyCommand]) -> None:
        """Serve each in its own transaction: one bad command must not fail the others."""
        for request in requests:
            if not request.finished:
                self._attempt([request])

    def _failed(self, requests: list[AnyCommand], error: BaseException) -> None:
        """Report a failure; nothing was acknowledged, so clients can repeat with the same key."""
        self._drop()
        finish(requests, unavailable(error))
        if is_outage(error):
            self.careful_until = time.monotonic() + CAREFUL_SECONDS
            time.sleep(OUTAGE_SECONDS)

    def _commit(self, requests: list[AnyCommand]) -> None:
        for request in requests:
            request.result = request.error = None
        connection = self._connected()
        flush = any(not isinstance(request, Next) for request in requests)
        if flush is not self.flushing and is_sqlite(connection):
            pragma(connection, "synchronous", "FULL" if flush else "NORMAL")
            self.flushing = flush
        others = [request for request in requests if isinstance(request, Transaction)]
        served = [request for request in requests if not isinstance(request, Transaction)]
        if served:
            unit = UnitOfWork(connection, self.cache, self.cache.clock())
            with transaction(connection):
                self._questions(unit, served)
                self._answers(unit, served)
                unit.write()
            self._announce(unit)
            self.acknowledge(served)
            self.cache.trim()
        if others:
            self._transactions(connection, others)
            finish(others)

    def _questions(self, unit: UnitOfWork, requests: list[AnyCommand]) -> None:
        asked = [request for request in requests if isinstance(request, Next)]
        if asked:
            given = [r.token_hash for r in requests if isinstance(r, Submit)]
            assign_all(unit, asked, given)
            if is_sqlite(unit.connection) and time.monotonic() >= self.careful_until:
                finish(asked)

    def _answers(self, unit: UnitOfWork, requests: list[AnyCommand]) -> None:
        given = [request for request in requests if isinstance(request, Submit)]
        if given:
            submit_all(unit, given)
        for request in requests:
            if isinstance(request, ExpireLeases):
                request.result = expire_leases(unit, request.most)

    def _transactions(self, connection: Connection, requests: list[Transaction[Any]]) -> None:
        if is_sqlite(connection):
            self._run_all(connection, requests)
            return
        # The writer's own connection is tuned for the statements of the serving path only.
        with self.engine.connect() as other:
            self._run_all(other, requests)

    def _run_all(self, connection: Connection, requests: list[Transaction[Any]]) -> None:
        with connection.begin():
            for request in requests:
                try:
                    with connection.begin_nested():  # all of it, or nothing
                        request.result = request.context.run(request.function, connection)
                except ValueError as error:  # a CrowdtreeError: the caller's mistake
                    request.error = error

    def _announce(self, unit: UnitOfWork) -> None:
        if unit.touched or unit.opened:
            self.changed({n: unit.opened.get(n, 0) for n in unit.touched | set(unit.opened)})

    def _connected(self) -> Connection:
        if self.connection is None or self.connection.closed or self.connection.invalidated:
            self._drop()
            self.connection, self.flushing = self.engine.connect(), None
            if is_sqlite(self.connection):
                pragma(self.connection, "cache_size", -CACHE_KIB)
            else:
                with self.connection.begin():
                    for name, value in SETTINGS.items():
                        self.connection.exec_driver_sql(f"SET {name} = {value}")
        return self.connection

    def _drop(self) -> None:
        if self.connection is not None:
            try:
                self.connection.invalidate()
                self.connection.close()
            except Exception:  # the connection is broken already
                log.debug("closing a broken connection failed", exc_info=True)
            self.connection = None


def _is_bad_command(error: BaseException) -> bool:
    kinds = type(getattr(error, "orig", None) or error).__mro__
    return not BAD_COMMAND.isdisjoint(kind.__name__ for kind in kinds)


MAX_FLUSHES = 3
"""Flushes that wait for the disk together: with one alone, the processes would take turns."""
FLUSH = "SELECT pg_logical_emit_message(true, 'crowdtree', '')"
"""The shortest transaction whose commit waits for the disk, with all that came before it."""


class Flusher:
    """Threads that wait for the disk and then finish commands."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.queue: queue.SimpleQueue[list[AnyCommand] | None] = queue.SimpleQueue()
        self.threads = [
            threading.Thread(target=self._serve, name="crowdtree-flusher", daemon=True)
            for _ in range(MAX_FLUSHES)
        ]
        for thread in self.threads:
            thread.start()

    def put(self, commands: list[AnyCommand]) -> None:
        """Finish commands that are committed when they are on disk."""
        self.queue.put(commands)

    def close(self) -> None:
        """Finish what is queued and stop."""
        for _ in self.threads:
            self.queue.put(None)
        for thread in self.threads:
            thread.join(timeout=30)

    def _serve(self) -> None:
        connection: Connection | None = None
        while (commands := self._gather()) is not None:
            try:
                if connection is None or connection.closed or connection.invalidated:
                    connection = self._connected()
                connection.exec_driver_sql(FLUSH)
            except Exception as error:
                finish(commands, unavailable(error))
                _end(connection)
                connection = None
            else:
                finish(commands)
        _end(connection)

    def _gather(self) -> list[AnyCommand] | None:
        """Wait for committed commands, and take all that there are; nothing at the end."""
        batch = self.queue.get()
        while batch is not None and not self.queue.empty():
            try:
                more = self.queue.get_nowait()
            except queue.Empty:  # another thread took it
                break
            if more is None:
                self.queue.put(None)
                break
            batch += more
        return batch

    def _connected(self) -> Connection:
        connection = self.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        connection.exec_driver_sql("SET synchronous_commit = on")
        return connection


def _end(connection: Connection | None) -> None:
    if connection is not None:
        connection.invalidate()
        connection.close()
