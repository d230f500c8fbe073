"""The size and the time of request bodies, and the address a request comes from."""

from __future__ import annotations

import asyncio
import logging
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from crowdtree.server.web.errors import HttpError
from crowdtree.server.web.headers import clean_path
from crowdtree.server.web.roles import SAFE

log = logging.getLogger("crowdtree.server.web")
KIB, MIB, GIB = 2**10, 2**20, 2**30
SMALL = 64 * KIB
LARGE = (
    *(("/items", 2 * GIB), ("/media", 64 * MIB), ("/api/campaigns", 8 * MIB), ("/new", 8 * MIB)),
    *(("/questions", 8 * MIB), ("/share", MIB), ("/settings", 8 * MIB), ("/preview", MIB)),
)
"""Path suffixes that accept more than a small body, with their limits."""

BODY_SECONDS, SLOWEST = 20.0, 16 * KIB
"""Time that every body gets, and the bytes for which it gets a second more."""
CLOSE = {"connection": "close"}
"""Headers of refusals that leave a body unread."""


def body_limit(path: str) -> int:
    """The largest body of a request to a path, in bytes.

    >>> body_limit("/api/worker/answer"), body_limit("/api/campaigns/3/items") > 2**30
    (65536, True)
    """
    return next((most for ending, most in LARGE if path.rstrip("/").endswith(ending)), SMALL)


class BodyLimit:
    """Refuse bodies that are too large, too slow or compressed, when they are read.

    A body may take 20 s, and a second more per 16 KiB that have arrived. Compressed bodies
    (``Content-Encoding``) are refused, so that none can expand without limit.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http" and scope["method"] not in SAFE:
            receive = _Body(scope, receive).receive
        await self.app(scope, receive, send)


class _Body:
    """The body of one request while it arrives."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self._scope, self._receive = scope, receive
        self._most = 0
        self._seen = 0
        self._whole = False
        self._begin = time.monotonic()

    async def receive(self) -> Message:
        """Receive the next part within the time limit, or a disconnection at any time."""
        if self._whole:
            return await self._receive()
        if not self._most:
            self._check_headers()
        try:
            async with asyncio.timeout(self._seconds_left()):
                message = await self._receive()
        except TimeoutError:
            log.warning("the body of %s came too slowly", clean_path(self._scope["path"]))
            words = "The body came too slowly. Send it again."
            raise HttpError(408, "slow", words, CLOSE) from None
        self._seen += len(message.get("body", b""))
        self._whole = not message.get("more_body")
        self._check_size(self._seen)
        return message

    def _check_headers(self) -> None:
        self._most = body_limit(self._scope["path"])
        for name, value in self._scope["headers"]:
            if name == b"content-encoding" and value != b"identity":
                raise HttpError(415, "packed", "Send the body uncompressed.", CLOSE)
            if name == b"content-length":
                self._check_size(int(value) if value.isdigit() else self._most + 1)

    def _check_size(self, size: int) -> None:
        if size > self._most:
            words = f"The body is larger than {self._most // KIB:,} KiB."
            raise HttpError(413, "large", words, CLOSE)

    def _seconds_left(self) -> float:
        left = self._begin + BODY_SECONDS + self._seen / SLOWEST - time.monotonic()
        return max(0.0, left)


def client_address(scope: Scope) -> str:
    """The address of the client."""
    client = scope.get("client")
    return str(client[0]) if client else "?"
