"""Whether the server can save answers, found by writing."""

from __future__ import annotations

import asyncio
import time

from crowdtree.server.store import Store, Unavailable

KEPT_SECONDS = 1.0
"""How long a result holds, so that nobody can make the server write without end."""
PATIENCE = 5.0
"""Seconds after which a database that does not respond counts as down."""


class Readiness:
    """The last attempt to write; requests at the same time share one."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._lock = asyncio.Lock()
        self._found: Unavailable | None = None
        self._until = 0.0

    async def problem(self) -> Unavailable | None:
        """Why nothing can be written, or ``None``."""
        async with self._lock:
            if time.monotonic() >= self._until:
                self._found = await self._look()
                self._until = time.monotonic() + KEPT_SECONDS
            return self._found

    async def _look(self) -> Unavailable | None:
        try:
            async with asyncio.timeout(PATIENCE):
                await self.store.check_writable()
        except TimeoutError:
            return Unavailable(f"the database did not respond within {PATIENCE:.0f} s")
        except Unavailable as error:
            return error
        return None
