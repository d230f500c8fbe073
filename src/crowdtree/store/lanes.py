"""Lanes: threads that gather waiting requests and commit them together.

On SQLite there is one lane, because there is one writer. Its transaction is flushed to disk before
any answer in it is acknowledged; questions handed out are acknowledged before the flush, because
losing a lease in a crash loses nothing. On PostgreSQL answers and questions have a lane each, so
that handing out questions never waits for a flush.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence

from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import DBAPIError, OperationalError

from crowdtree.store.answering import submit_all
from crowdtree.store.choosing import next_all
from crowdtree.store.database import is_sqlite, pipelined
from crowdtree.store.desk import Batch, Desk
from crowdtree.store.requests import Call, Next, Request, Submit, Sweep, Unavailable, Undo

__all__ = ["Lane"]

MOST_AT_ONCE = 256
AGAIN = ("DeadlockDetected", "SerializationFailure", "LockNotAvailable")
"""Failures after which the same transaction may well succeed."""
ONE_ROW = {"IntegrityError", "DataError"}
"""Failures that one request brings on, not the database: the others must not fail with it."""
log = logging.getLogger("crowdtree.store")


def _driver_errors() -> tuple[type[BaseException], ...]:
    import sqlite3

    found: list[type[BaseException]] = [DBAPIError, sqlite3.Error]
    try:
        import psycopg
    except ImportError:
        return tuple(found)
    return (*found, psycopg.Error)


class Lane:
    """One thread with one connection that serves requests in batches.

    Parameters
    ----------
    engine
        The database.
    desk
        What is kept between batches.
    durable
        Whether commits must be on disk before they are acknowledged.
    changed
        Called after each commit with the campaigns that changed and how many questions opened.
    """

    def __init__(
        self,
        engine: Engine,
        desk: Desk,
        *,
        durable: bool = True,
        changed: Callable[[dict[int, int]], None] = lambda _: None,
    ) -> None:
        self.engine = engine
        self.desk = desk
        self.durable = durable
        self.changed = changed
        self.waiting: queue.SimpleQueue[Request | None] = queue.SimpleQueue()
        self.connection: Connection | None = None
        self.errors = _driver_errors()
        self.thread = threading.Thread(target=self._serve, name="crowdtree-lane", daemon=True)
        self.thread.start()

    def put(self, request: Request) -> None:
        """Queue a request; its `done` is called from the lane's thread."""
        self.waiting.put(request)

    def close(self) -> None:
        """Finish what is queued and stop."""
        self.waiting.put(None)
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

    def _gather(self) -> tuple[list[Request], bool]:
        found = [self.waiting.get()]
        while len(found) < MOST_AT_ONCE:
            try:
                found.append(self.waiting.get_nowait())
            except queue.Empty:
                break
        return [request for request in found if request is not None], None in found

    def _attempt(self, requests: list[Request], tries: int = 3) -> None:
        try:
            self._commit(requests)
        except self.errors as error:
            name = type(getattr(error, "orig", None) or error).__name__
            if tries > 1 and name in AGAIN:
                log.info("trying a batch again: %s", name)
                self._drop()
                self._attempt([r for r in requests if not r.finished], tries - 1)
            elif len(requests) > 1 and _of_one_row(error):
                self._drop()
                self._one_by_one(requests)
            else:
                self._failed(requests, error, name)
        except BaseException as error:
            log.exception("a batch of %d requests failed", len(requests))
            self._drop()
            if len(requests) == 1:
                _finish(requests, error)
                return
            self._one_by_one(requests)

    def _one_by_one(self, requests: list[Request]) -> None:
        """Serve each alone: one bad request must not fail the others."""
        for request in requests:
            if not request.finished:
                self._attempt([request])

    def _failed(self, requests: list[Request], error: BaseException, name: str) -> None:
        """Nothing was acknowledged: whoever asked may ask again with the same key."""
        why = str(getattr(error, "orig", None) or error).strip().partition("\n")[0]
        log.warning("the database failed: %s: %s", name, why)
        self._drop()
        _finish(requests, Unavailable("the database cannot be reached now; try again"))
        if isinstance(error, OperationalError):
            time.sleep(0.2)

    def _commit(self, requests: list[Request]) -> None:
        for request in requests:
            request.result = request.error = None
        connection = self._connected()
        flush = self.durable and any(not isinstance(request, Next) for request in requests)
        if is_sqlite(connection):
            level = "FULL" if flush else "NORMAL"
            connection.connection.driver_connection.execute(  # type: ignore[union-attr]
                f"PRAGMA synchronous={level}"
            )
        calls = [request for request in requests if isinstance(request, Call)]
        hot = [request for request in requests if not isinstance(request, Call)]
        if hot:
            batch = Batch(connection, self.desk, self.desk.clock())
            # The commit goes out with the last writes: on PostgreSQL one wait for both.
            with pipelined(connection), connection.begin():
                self._questions(batch, hot)
                self._answers(batch, hot)
                batch.write()
            self._announce(batch)
            _finish(hot)
        if calls:
            self._calls(connection, calls)
            _finish(calls)
        self.desk.forget()

    def _questions(self, batch: Batch, requests: list[Request]) -> None:
        asked = [request for request in requests if isinstance(request, Next)]
        if asked:
            next_all(batch, asked)
            if is_sqlite(batch.connection):
                _finish(asked)

    def _answers(self, batch: Batch, requests: list[Request]) -> None:
        given = [request for request in requests if isinstance(request, Submit | Undo)]
        if given:
            submit_all(batch, given)
        for request in requests:
            if isinstance(request, Sweep):
                request.result = batch.expire(request.most)

    def _calls(self, connection: Connection, calls: list[Call]) -> None:
        if not is_sqlite(connection):  # the lane's own is set up for the hot statements only
            with self.engine.connect() as another:
                self._call(another, calls)
        else:
            self._call(connection, calls)

    def _call(self, connection: Connection, calls: list[Call]) -> None:
        with connection.begin():
            for request in calls:
                try:
                    with connection.begin_nested():  # all of it, or nothing
                        request.result = request.function(connection)
                except ValueError as error:  # a CrowdtreeError: the caller's mistake
                    request.error = error

    def _announce(self, batch: Batch) -> None:
        if batch.touched or batch.opened:
            self.changed({n: batch.opened.get(n, 0) for n in batch.touched | set(batch.opened)})

    def _connected(self) -> Connection:
        if self.connection is None or self.connection.closed or self.connection.invalidated:
            self._drop()
            self.connection = self.engine.connect()
            if not is_sqlite(self.connection):
                with self.connection.begin():
                    for name, value in self._settings().items():
                        self.connection.exec_driver_sql(f"SET {name} = {value}")
        return self.connection

    def _settings(self) -> dict[str, str]:
        """Say how PostgreSQL should treat this lane.

        The same few statements run all the time: planning them anew costs more than running them,
        and each has an index to go by, whatever the statistics of a young table say.
        """
        commit = "on" if self.durable else "off"
        planning = {"plan_cache_mode": "force_generic_plan", "jit": "off"}
        never = dict.fromkeys(("enable_seqscan", "enable_hashjoin", "enable_mergejoin"), "off")
        return {"synchronous_commit": commit, **planning, **never}

    def _drop(self) -> None:
        if self.connection is not None:
            try:
                self.connection.invalidate()
                self.connection.close()
            except Exception:  # it is broken anyway
                log.debug("closing a broken connection failed", exc_info=True)
            self.connection = None


def _of_one_row(error: BaseException) -> bool:
    kinds = type(getattr(error, "orig", None) or error).__mro__
    return not ONE_ROW.isdisjoint(kind.__name__ for kind in kinds)


def _finish(requests: Sequence[Request], error: BaseException | None = None) -> None:
    for request in requests:
        if request.finished:
            continue
        request.finished = True
        if error is not None:
            request.error, request.result = error, None
        if request.done is not None:
            request.done()
