"""How many logins and joins an address may attempt."""

from __future__ import annotations

import ipaddress
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from crowdtree.server.web.processes import SHARED

MAX_ADDRESSES = 10_000
"""Addresses that are remembered, those of the last attempts."""
EVERYBODY = 100
"""How many times as many attempts all addresses together may use."""


class RateLimit:
    """Allow a number of attempts per address and period; a successful attempt is refunded.

    All addresses together may use a hundred times as many. Beyond that only addresses without
    recent attempts are let through, so that a distributed attack does not lock out everybody.

    Several processes of one server share what is left, in a file that is not kept: the database of
    the campaigns must not be slowed down by guesses.

    >>> limit = RateLimit("logins", 2, 60.0, clock=lambda: 0.0)
    >>> [limit.allows("a"), limit.allows("a"), limit.allows("a"), limit.allows("b")]
    [True, True, False, True]
    >>> limit.refund("a")
    >>> limit.allows("a")
    True
    """

    def __init__(
        self, name: str, tries: int, seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.tries = tries
        self.seconds = seconds
        self.clock = clock
        folder = os.environ.get(SHARED)
        path = ":memory:" if folder is None else str(Path(folder) / f"{name}.limit")
        self._file = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._lock = threading.Lock()
        for pragma in ("journal_mode=WAL", "synchronous=OFF"):
            self._file.execute(f"PRAGMA {pragma}").close()
        self._file.execute(
            "CREATE TABLE IF NOT EXISTS left (id INTEGER PRIMARY KEY, address TEXT UNIQUE, "
            "attempts REAL, at REAL)"
        ).close()

    def allows(self, address: str) -> bool:
        """Use one attempt of an address; false when none is left."""
        key = network(address)
        with self._writing():
            mine, all_left = self._left(key, self.tries), self._left("", self._max_for_all)
            if mine < 1 or (all_left < 1 and mine < self.tries):
                return False
            self._save(key, mine - 1)
            self._save("", max(0.0, all_left - 1))
        return True

    def refund(self, address: str) -> None:
        """Return an attempt, because it succeeded."""
        key, most = network(address), self._max_for_all
        with self._writing():
            self._save(key, min(self.tries, self._left(key, self.tries) + 1))
            self._save("", min(most, self._left("", most) + 1))

    def remembered(self) -> int:
        """Count the addresses that are remembered."""
        return int(self._file.execute("SELECT count(*) FROM left").fetchone()[0])

    @property
    def _max_for_all(self) -> int:
        return EVERYBODY * self.tries

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Keep other threads and processes out."""
        with self._lock:
            self._file.execute("BEGIN IMMEDIATE").close()
            try:
                yield
            finally:
                self._file.execute("COMMIT").close()

    def _left(self, key: str, most: int) -> float:
        """Attempts left now; they are restored evenly over the period."""
        now = self.clock()
        found = self._file.execute("SELECT attempts, at FROM left WHERE address = ?", (key,))
        left, last = found.fetchone() or (float(most), now)
        return min(float(most), left + (now - last) * most / self.seconds)

    def _save(self, key: str, left: float) -> None:
        """Write what is left under a new id, and forget the addresses with the lowest ids."""
        row = (key, left, self.clock())
        self._file.execute("REPLACE INTO left (address, attempts, at) VALUES (?, ?, ?)", row)
        oldest = "(SELECT max(id) FROM left) - ?"
        self._file.execute(f"DELETE FROM left WHERE id <= {oldest}", (MAX_ADDRESSES,))


@lru_cache(maxsize=4096)
def network(address: str) -> str:
    """Name the network of an address: with IPv6 one customer has a whole /64.

    >>> network("192.0.2.7"), network("2001:db8::1:2:3:4"), network("::ffff:192.0.2.7")
    ('from 192.0.2.7', 'from 2001:db8::/64', 'from 192.0.2.7')
    """
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return f"from {address}"
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            return f"from {found.ipv4_mapped}"
        return f"from {ipaddress.ip_network((int(found), 64), strict=False)}"
    return f"from {found}"
