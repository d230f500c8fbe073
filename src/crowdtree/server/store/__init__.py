"""The campaign database: SQLite in a file by default, PostgreSQL for several processes.

========================= =====================================================================
``store.db``              engine, tables, statements with their row types
``store.serving``         workers: questions out, answers in, in batches of one transaction
``store.owner``           owners: campaigns, drafts, workers, revisions
``store.queries``         read-only queries for pages, downloads and the API
``store.audits``          audits: items to check out, results in, what is certified
``store.corrections``     excluded answers, labels by hand, items edited, withdrawn, reopened
``store.replay``          verification: fold the log again and compare all that is stored
``store.backup``          all tables and media in one file; ``store.restore`` brings them back
``store.tokens``          who somebody is, and what follows from the secret of a campaign
========================= =====================================================================
"""

from __future__ import annotations

import asyncio
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from sqlalchemy.engine import Connection

from crowdtree.server.store.audits.stored import AuditCache
from crowdtree.server.store.db.engine import ensure_tables, make_engine, snapshot
from crowdtree.server.store.db.sql import is_sqlite
from crowdtree.server.store.errors import (
    NotFound,
    Refused,
    Unavailable,
    database_errors,
    is_outage,
    unavailable,
)
from crowdtree.server.store.serving.campaign import ServingCache
from crowdtree.server.store.serving.commands import (
    Command,
    ExpireLeases,
    Next,
    Submit,
    Transaction,
)
from crowdtree.server.store.serving.writer import BatchWriter, Flusher

__all__ = [
    "ExpireLeases",
    "Next",
    "NotFound",
    "Refused",
    "Store",
    "Submit",
    "Transaction",
    "Unavailable",
]

T = TypeVar("T")
KINDS: dict[type[Command[Any]], str] = {Next: "questions", Transaction: "transactions"}
"""Names of the writers on PostgreSQL, beside the one of answers."""


class Store:
    """A database of campaigns, ready to serve.

    Parameters
    ----------
    url
        ``sqlite:///FILE``, a file name, ``postgresql://...``, or ``sqlite://`` for a temporary
        database that is deleted when the store is closed.
    rng
        Random generator or seed that chooses gold items.

    Examples
    --------
    >>> with Store("sqlite://").opened() as store:
    ...     store.read(lambda connection: connection.dialect.name)
    'sqlite'
    """

    def __init__(
        self,
        url: str = "sqlite://",
        clock: Callable[[], float] = time.time,
        rng: np.random.Generator | int | None = None,
    ) -> None:
        self._folder = None
        if url == "sqlite://":
            self._folder = tempfile.TemporaryDirectory(prefix="crowdtree-")
            url = f"sqlite:///{Path(self._folder.name) / 'crowdtree.db'}"
        self.clock = clock
        self.engine = make_engine(url)
        ensure_tables(self.engine)
        self.listeners: list[Callable[[dict[int, int]], None]] = []
        """Called after a commit with the campaigns that changed and how many questions opened."""
        self.has_one_writer = is_sqlite(self.engine)
        """Whether all transactions of the database wait for each other."""
        self.flusher = None if self.has_one_writer else Flusher(self.engine)
        self.writers = self._make_writers(np.random.default_rng(rng).spawn(2))
        self.audits = AuditCache()
        self._results: _Results | None = None

    def _make_writers(self, generators: Sequence[np.random.Generator]) -> dict[str, BatchWriter]:
        """Make the threads that write: one on SQLite, one per kind of command on PostgreSQL."""
        cache = ServingCache(self.clock, generators[0])
        make = partial(BatchWriter, self.engine, changed=self._changed)
        if self.flusher is None:
            return {"answers": make(cache)}
        second = ServingCache(self.clock, generators[1])
        return {
            "questions": make(second),
            "transactions": make(cache),
            "answers": make(cache, acknowledge=self.flusher.put),
        }

    @contextmanager
    def opened(self) -> Iterator[Store]:
        """Use the store and close it."""
        try:
            yield self
        finally:
            self.close()

    def close(self) -> None:
        """Finish the queued commands and close the database."""
        for writer in self.writers.values():
            writer.close()
        if self.flusher is not None:
            self.flusher.close()
        self.engine.dispose()
        if self._folder is not None:
            self._folder.cleanup()

    def _changed(self, campaigns: dict[int, int]) -> None:
        for listener in self.listeners:
            listener(campaigns)

    def put(self, command: Command[Any]) -> None:
        """Queue a command on its writer."""
        self.writer_of(type(command)).put(command)

    def writer_of(self, kind: type[Command[Any]]) -> BatchWriter:
        """The writer that serves a kind of command."""
        return self.writers.get(KINDS.get(kind, ""), self.writers["answers"])

    def queued(self) -> dict[str, int]:
        """Count the commands that wait, by writer."""
        return {name: writer.queue.qsize() for name, writer in self.writers.items()}

    def ask(self, command: Command[T]) -> T:
        """Run a command and wait for its result."""
        done = threading.Event()
        command.done = done.set
        self.put(command)
        done.wait()
        return _result(command)

    async def aask(self, command: Command[T]) -> T:
        """Run a command and wait for its result, on an event loop."""
        loop = asyncio.get_running_loop()
        if self._results is None or self._results.loop is not loop:
            self._results = _Results(loop)
        future: asyncio.Future[None] = loop.create_future()
        command.done = partial(self._results.put, future)
        self.put(command)
        await future
        return _result(command)

    def write(self, function: Callable[[Connection], T]) -> T:
        """Run a function in a transaction that is on disk when this returns."""
        return self.ask(Transaction(function))

    async def awrite(self, function: Callable[[Connection], T]) -> T:
        """Run a function in a transaction that is on disk when this returns."""
        return await self.aask(Transaction(function))

    def write_apart(self, function: Callable[[Connection], T]) -> T:
        """Run a long transaction; on PostgreSQL beside the writer, so that answers do not wait."""
        if self.has_one_writer:
            return self.write(function)
        try:
            with self.engine.begin() as connection:
                return function(connection)
        except database_errors() as error:
            raise unavailable(error) from error

    def read(self, function: Callable[[Connection], T]) -> T:
        """Run a function on a consistent snapshot of the database, without blocking writers."""
        try:
            with snapshot(self.engine) as connection:
                return function(connection)
        except database_errors() as error:
            if not is_outage(error):
                raise
            raise unavailable(error) from error

    async def aread(self, function: Callable[[Connection], T]) -> T:
        """Run a function on a consistent snapshot of the database, off the event loop."""
        return await asyncio.to_thread(self.read, function)

    async def check_writable(self) -> None:
        """Write to the database, changing nothing, or raise :class:`Unavailable`."""
        await self.awrite(_rewrite)


class _Results:
    """Futures of an event loop that a writer has done; those of a batch wake the loop once."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._done: deque[asyncio.Future[None]] = deque()
        self._called = False

    def put(self, future: asyncio.Future[None]) -> None:
        """Resolve a future soon; called from the writer's thread."""
        self._done.append(future)
        if not self._called:
            self._called = True
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                self.loop.call_soon_threadsafe(self._resolve)

    def _resolve(self) -> None:
        self._called = False  # before looking: what comes later is another call
        while self._done:
            future = self._done.popleft()
            if not future.done():
                future.set_result(None)


def _rewrite(connection: Connection) -> None:
    connection.exec_driver_sql("UPDATE schema_version SET version = version")


def _result(command: Command[T]) -> T:
    if command.error is not None:
        raise command.error
    return cast(T, command.result)
