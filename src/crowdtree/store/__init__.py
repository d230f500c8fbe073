"""The campaign's database: SQLite in a file by default, PostgreSQL for several processes."""

from __future__ import annotations

import asyncio
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from sqlalchemy.engine import Connection

from crowdtree.store.campaigns import NotFound
from crowdtree.store.database import is_sqlite, make_engine, migrate
from crowdtree.store.desk import Desk
from crowdtree.store.lanes import Lane
from crowdtree.store.requests import Call, Next, Refused, Request, Submit, Sweep, Unavailable, Undo
from crowdtree.store.settings import Settings, checked_settings

__all__ = [
    "Call",
    "Next",
    "NotFound",
    "Refused",
    "Settings",
    "Store",
    "Submit",
    "Sweep",
    "Unavailable",
    "Undo",
    "checked_settings",
]

T = TypeVar("T")


class Store:
    """A database of campaigns, ready to serve.

    Parameters
    ----------
    url
        ``sqlite:///FILE``, a file name, ``postgresql://...``, or ``sqlite://`` for a database
        that is gone when the store is closed.
    clock
        Seconds since 1970.
    rng
        Chooses gold items.

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
        migrate(self.engine)
        self.listeners: list[Callable[[dict[int, int]], None]] = []
        generators = np.random.default_rng(rng).spawn(2)
        self.answers = Lane(self.engine, Desk(clock, generators[0]), changed=self._changed)
        self.questions = self.answers
        self.alone = is_sqlite(self.engine)
        if not self.alone:
            desk = Desk(clock, generators[1], self.answers.desk.last)
            self.questions = Lane(self.engine, desk, durable=False, changed=self._changed)

    @contextmanager
    def opened(self) -> Iterator[Store]:
        """Use the store and close it."""
        try:
            yield self
        finally:
            self.close()

    def close(self) -> None:
        """Finish what is queued and let go of the database."""
        self.answers.close()
        if self.questions is not self.answers:
            self.questions.close()
        self.engine.dispose()
        if self._folder is not None:
            self._folder.cleanup()

    def _changed(self, campaigns: dict[int, int]) -> None:
        for listener in self.listeners:
            listener(campaigns)

    def put(self, request: Request) -> None:
        """Queue a request on its lane."""
        (self.questions if isinstance(request, Next) else self.answers).put(request)

    def ask(self, request: Request) -> Any:
        """Make a request and wait for its result."""
        done = threading.Event()
        request.done = done.set
        self.put(request)
        done.wait()
        if request.error is not None:
            raise request.error
        return request.result

    async def aask(self, request: Request) -> Any:
        """Make a request and wait for its result, on an event loop."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()

        def resolve() -> None:
            if not future.done():
                future.set_result(None)

        def tell() -> None:
            try:
                loop.call_soon_threadsafe(resolve)
            except RuntimeError:  # the loop is gone: nobody waits any more
                return

        request.done = tell
        self.put(request)
        await future
        if request.error is not None:
            raise request.error
        return request.result

    def write(self, function: Callable[[Connection], T]) -> T:
        """Run a function in a transaction that is on disk when this returns."""
        found: T = self.ask(Call(function))
        return found

    async def awrite(self, function: Callable[[Connection], T]) -> T:
        """Run a function in a transaction that is on disk when this returns."""
        found: T = await self.aask(Call(function))
        return found

    def read(self, function: Callable[[Connection], T]) -> T:
        """Run a function on a consistent view of the database, without hindering writers."""
        with self.engine.connect() as connection:
            connection = connection.execution_options(reading=True)
            if not self.alone:  # otherwise each statement would see another moment
                connection = connection.execution_options(isolation_level="REPEATABLE READ")
            with connection.begin():
                return function(connection)

    async def aread(self, function: Callable[[Connection], T]) -> T:
        """Run a function on a consistent view of the database, off the event loop."""
        return await asyncio.to_thread(self.read, function)
