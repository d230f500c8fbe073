"""Acknowledging on PostgreSQL: commands are done when what they committed is on disk.

Answers are committed without waiting for the disk, which frees the rows that they lock at once.
One flush then covers everything that was committed before it, by all processes. If it fails, nobody
was told that the answers are saved, and clients repeat them with the same keys.
"""

from __future__ import annotations

import queue
import threading

from sqlalchemy.engine import Connection, Engine

from crowdtree.server.store.errors import unavailable
from crowdtree.server.store.serving.commands import AnyCommand, finish

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
                _drop(connection)
                connection = None
            else:
                finish(commands)
        _drop(connection)

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


def _drop(connection: Connection | None) -> None:
    if connection is not None:
        connection.invalidate()
        connection.close()
