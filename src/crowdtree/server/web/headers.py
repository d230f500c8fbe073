"""Security headers of every response, its request id, metrics, and a log without secrets."""

from __future__ import annotations

import logging
import re
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from crowdtree.server.web.logs import HEADER, REQUEST_ID, request_id
from crowdtree.server.web.request_metrics import observe

log = logging.getLogger("crowdtree.access")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' https: data:; "
    "media-src 'self' https:; connect-src 'self'; font-src 'self'; manifest-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=(), payment=()",
}
OURS = frozenset(name.encode() for name in (*HEADERS, "cache-control"))
SECRET_PATHS = re.compile(r"^(/(?:w|join|a)/)[^/]+")


def clean_path(path: str) -> str:
    """Remove secrets from a path.

    >>> clean_path("/join/s3cret"), clean_path("/api/campaigns/1")
    ('/join/…', '/api/campaigns/1')
    """
    return SECRET_PATHS.sub(r"\1…", path).replace("\n", " ").replace("\r", " ")


def policy_with(media: str) -> str:
    """The security policy, with one more place of pictures, sounds and videos.

    >>> policy_with("http://media.test") == POLICY.replace(" https:", " https: http://media.test")
    True
    """
    return POLICY.replace(" https:", f" https: {media}") if media else POLICY


class Guard:
    """Add the headers, count, and log one line per request (no query, no token, no body)."""

    def __init__(self, app: ASGIApp, media: str = "") -> None:
        self.app = app
        ours = HEADERS | {"content-security-policy": policy_with(media)}
        self.static = [(name.encode(), value.encode()) for name, value in ours.items()]
        self.ours = [*self.static, (b"cache-control", b"no-store")]

    def _with_ours(self, given: list[tuple[bytes, bytes]], path: str) -> list[tuple[bytes, bytes]]:
        """Add our headers to a response, except those that it sets itself."""
        ours = self.static if path.startswith("/static/") else self.ours
        there = OURS.intersection([name for name, _ in given])
        if there:
            ours = [pair for pair in ours if pair[0] not in there]
        return [*given, *ours]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begin = time.perf_counter()
        status = 500
        number = request_id(scope["headers"])
        REQUEST_ID.set(number)  # of this task, which serves nothing else

        async def guarded(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = self._with_ours(list(message["headers"]), scope["path"])
                message["headers"] = [*headers, (HEADER, number.encode())]
            await send(message)

        try:
            await self.app(scope, receive, guarded)
        finally:
            took = time.perf_counter() - begin
            observe(scope, status, took)
            if log.isEnabledFor(logging.INFO):
                _log(scope, status, took, number)


def _log(scope: Scope, status: int, took: float, number: str) -> None:
    client = scope["client"][0] if scope.get("client") else "-"
    path, ms = clean_path(scope["path"]), round(took * 1e3, 1)
    fields = {
        "method": scope["method"],
        "path": path,
        "status": status,
        "ms": ms,
        "client": client,
        "request_id": number,
    }
    log.info("%s %s %d %.1f ms %s %s", *fields.values(), extra={"request": fields})
