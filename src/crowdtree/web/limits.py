"""The size of request bodies, and the address a request comes from."""

from __future__ import annotations

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["BodyLimit", "client_address"]

KIB, MIB, GIB = 2**10, 2**20, 2**30
SMALL = 64 * KIB
LARGE = (
    *(("/items", 2 * GIB), ("/media", 64 * MIB), ("/api/campaigns", 8 * MIB), ("/new", 8 * MIB)),
    *(("/questions", 8 * MIB), ("/share", MIB), ("/settings", 8 * MIB), ("/preview", MIB)),
)
"""Path suffixes that accept more than a small body, with their limits."""


def body_limit(path: str) -> int:
    """The largest body of a request to a path, in bytes.

    >>> body_limit("/api/worker/answer"), body_limit("/api/campaigns/3/items") > 2**30
    (65536, True)
    """
    return next((most for ending, most in LARGE if path.rstrip("/").endswith(ending)), SMALL)


class TooLarge(Exception):
    """A body exceeds its limit."""


class BodyLimit:
    """Refuse bodies that are too large or compressed, before anything reads them.

    Compressed bodies (``Content-Encoding``) are refused, so that none can expand without limit.
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
            await _refuse(415, "packed", "Send the body uncompressed.", scope, receive, send)
            return
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > most:
            await _refuse(413, "large", _words(most), scope, receive, send)
            return
        if b"content-length" in headers and b"transfer-encoding" not in headers:
            await self.app(scope, receive, send)  # the server reads no more than Content-Length
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
            """Replace the response of an application that read a truncated body."""
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


def client_address(scope: Scope) -> str:
    """The address of the client."""
    client = scope.get("client")
    return str(client[0]) if client else "?"
