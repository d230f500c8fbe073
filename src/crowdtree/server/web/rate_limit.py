"""How many logins and joins an address may attempt."""

from __future__ import annotations

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache


class RateLimit:
    """Allow a number of attempts per address and period; a successful attempt is refunded.

    All addresses together may use a hundred times as many. Beyond that only addresses without
    recent attempts are let through, so that a distributed attack does not lock out everybody.

    >>> limit = RateLimit(2, 60.0, clock=lambda: 0.0)
    >>> [limit.allows("a"), limit.allows("a"), limit.allows("a"), limit.allows("b")]
    [True, True, False, True]
    >>> limit.refund("a")
    >>> limit.allows("a")
    True
    """

    MOST_ADDRESSES = 10_000
    EVERYBODY = 100

    def __init__(
        self, tries: int, seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.tries = tries
        self.seconds = seconds
        self.clock = clock
        self.left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def allows(self, address: str) -> bool:
        """Use one attempt of an address; false when none is left."""
        key = network(address)
        mine, all_left = self._level(key, self.tries), self._level("", self._most_for_all)
        if mine < 1 or (all_left < 1 and mine < self.tries):
            return False
        self._set(key, mine - 1)
        self._set("", max(0.0, all_left - 1))
        return True

    def refund(self, address: str) -> None:
        """Return an attempt, because it succeeded."""
        key = network(address)
        self._set(key, min(self.tries, self._level(key, self.tries) + 1))
        most = self._most_for_all
        self._set("", min(most, self._level("", most) + 1))

    @property
    def _most_for_all(self) -> int:
        return self.EVERYBODY * self.tries

    def _level(self, key: str, most: int) -> float:
        """Attempts left now; they are restored evenly over the period."""
        now = self.clock()
        tokens, last = self.left.get(key, (float(most), now))
        return min(float(most), tokens + (now - last) * most / self.seconds)

    def _set(self, key: str, tokens: float) -> None:
        self.left[key] = (tokens, self.clock())
        self.left.move_to_end(key)
        while len(self.left) > self.MOST_ADDRESSES:
            self.left.popitem(last=False)


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
