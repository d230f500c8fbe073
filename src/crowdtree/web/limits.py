"""Limits: how large a body, and how many logins."""

from __future__ import annotations

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["BodyLimit", "RateLimit"]

KIB, MIB, GIB = 2**10, 2**20, 2**30
SMALL = 64 * KIB
LARGE = (
    *(("/items", 2 * GIB), ("/media", 64 * MIB), ("/api/campaigns", 8 * MIB), ("/new", 8 * MIB)),
    *(("/questions", 8 * MIB), ("/share", MIB), ("/settings", 8 * MIB), ("/preview", MIB)),
)
"""Endings of the paths that take more than a small body, and how much."""


def body_limit(path: str) -> int:
    """Say how many bytes a request to a path may carry.

    >>> body_limit("/api/worker/answer"), body_limit("/api/campaigns/3/items") > 2**30
    (65536, True)
    """
    return next((most for ending, most in LARGE if path.rstrip("/").endswith(ending)), SMALL)


class TooLarge(Exception):
    """A body that goes on beyond its limit."""


class BodyLimit:
    """Refuse bodies that are too large or packed, before anything reads them.

    Packed bodies (``Content-Encoding``) are refused, so that none can unfold without end.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD", "OPTIONS"):
            await self.app(scope, receive, send)
            return
        most = body_limit(scope["path"])
        headers = dict(scope["headers"])
        if headers.get(b"content-encoding", b"identity") != b"identity":
            await _refuse(
                415, "packed", "Send the body as it is, not packed.", scope, receive, send
            )
            return
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > most:
            await _refuse(413, "large", _words(most), scope, receive, send)
            return
        if b"content-length" in headers and b"transfer-encoding" not in headers:
            await self.app(scope, receive, send)  # the server reads no more than was announced
        else:
            await self._counted(scope, receive, send, most)

    async def _counted(self, scope: Scope, receive: Receive, send: Send, most: int) -> None:
        seen = 0
        refused = False

        async def limited() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > most:
                raise TooLarge
            return message

        async def watched(message: Message) -> None:
            """Whatever the application makes of the broken body, say what is wrong with it."""
            nonlocal refused
            if seen <= most:
                await send(message)
            elif not refused:
                refused = True
                await _refuse(413, "large", _words(most), scope, receive, send)

        try:
            await self.app(scope, limited, watched)
        except TooLarge:
            if not refused:
                await _refuse(413, "large", _words(most), scope, receive, send)


def _words(most: int) -> str:
    return f"The body is larger than {most // KIB:,} KiB."


async def _refuse(
    status: int, code: str, message: str, scope: Scope, receive: Receive, send: Send
) -> None:
    response = JSONResponse(
        {"error": code, "message": message}, status, headers={"connection": "close"}
    )
    await response(scope, receive, send)


class RateLimit:
    """So many tries a while for each address; a try that succeeded can be given back.

    When all together have used a hundred times as many, addresses that have used none lately are
    still let through, the others wait: many attackers at once cannot lock out the good.

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
        """Take one try of an address; false when it has none left."""
        key = network(address)
        mine, all_left = self._level(key, self.tries), self._level("", self._most_for_all)
        if mine < 1 or (all_left < 1 and mine < self.tries):
            return False
        self._set(key, mine - 1)
        self._set("", max(0.0, all_left - 1))
        return True

    def refund(self, address: str) -> None:
        """Give a try back, because it succeeded."""
        key = network(address)
        self._set(key, min(self.tries, self._level(key, self.tries) + 1))
        most = self._most_for_all
        self._set("", min(most, self._level("", most) + 1))

    @property
    def _most_for_all(self) -> int:
        return self.EVERYBODY * self.tries

    def _level(self, key: str, most: int) -> float:
        """Tries left now; they come back evenly over the while."""
        now = self.clock()
        tokens, last = self.left.get(key, (float(most), now))
        return min(float(most), tokens + (now - last) * most / self.seconds)

    def _set(self, key: str, tokens: float) -> None:
        self.left[key] = (tokens, self.clock())
        self.left.move_to_end(key)
        while len(self.left) > self.MOST_ADDRESSES:
            self.left.popitem(last=False)


def network(address: str) -> str:
    """Say whose an address is: with IPv6 one customer has a whole /64.

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


def client_address(scope: Any) -> str:
    """Say from where a request comes."""
    client = scope.get("client")
    return str(client[0]) if client else "?"
