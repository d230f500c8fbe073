"""The size and the time of request bodies, and the address a request comes from."""

from __future__ import annotations

import asyncio
import logging
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from crowdtree.server.web.errors import Refusal, error_response
from crowdtree.server.web.headers import clean_path

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
PACKED = Refusal(415, "packed", "Send the body uncompressed.")
SLOW = Refusal(408, "slow", "The body came too slowly. Send it again.")


def body_limit(path: str) -> int:
    """The largest body of a request to a path, in bytes.

    >>> body_limit("/api/worker/answer"), body_limit("/api/campaigns/3/items") > 2**30
    (65536, True)
    """
    return next((most for ending, most in LARGE if path.rstrip("/").endswith(ending)), SMALL)


class Unread(Exception):
    """A body is too large or too slow, and is not read to its end."""


class BodyLimit:
    """Refuse bodies that are too large, too slow or compressed.

    A body may take 20 s, and a second more per 16 KiB that have arrived. Compressed bodies
    (``Content-Encoding``) are refused, so that none can expand without limit.
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
            await _refuse(PACKED, scope, receive, send)
            return
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > most:
            await _refuse(_large(most), scope, receive, send)
            return
        body = _Body(receive, send, scope, most)
        try:
            await self.app(scope, body.receive, body.send)
        except Unread:
            await body.refuse()


class _Body:
    """The body of one request while it arrives."""

    def __init__(self, receive: Receive, send: Send, scope: Scope, most: int) -> None:
        self._receive, self._send, self._scope = receive, send, scope
        self.most = most
        self.seen = 0
        self.whole = self.refused = False
        self.begin = time.monotonic()
        self.problem: Refusal | None = None

    async def receive(self) -> Message:
        """Receive the next part within the time limit, or a disconnection at any time."""
        if self.whole:
            return await self._receive()
        left = self.begin + BODY_SECONDS + self.seen / SLOWEST - time.monotonic()
        try:
            async with asyncio.timeout(max(0.0, left)):
                message = await self._receive()
        except TimeoutError:
            log.warning("the body of %s came too slowly", clean_path(self._scope["path"]))
            self.problem = SLOW
            raise Unread from None
        self.seen += len(message.get("body", b""))
        self.whole = not message.get("more_body")
        if self.seen > self.most:
            self.problem = _large(self.most)
            raise Unread
        return message

    async def send(self, message: Message) -> None:
        """Send a part of the response; that of an application whose body was cut is replaced."""
        if self.problem is None:
            await self._send(message)
        else:
            await self.refuse()

    async def refuse(self) -> None:
        """Say why the body was not read, once."""
        if not self.refused and self.problem is not None:
            self.refused = True
            await _refuse(self.problem, self._scope, self._receive, self._send)


def _large(most: int) -> Refusal:
    return Refusal(413, "large", f"The body is larger than {most // KIB:,} KiB.")


async def _refuse(refusal: Refusal, scope: Scope, receive: Receive, send: Send) -> None:
    response = error_response(*refusal, headers={"connection": "close"})
    await response(scope, receive, send)


def client_address(scope: Scope) -> str:
    """The address of the client."""
    client = scope.get("client")
    return str(client[0]) if client else "?"
