"""What every request passes: limits of its body, headers, errors, counts, and one line of log."""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import re
import secrets
import time
from collections.abc import Callable
from functools import lru_cache

from prometheus_client import Counter, Histogram, disable_created_metrics
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from crowdtree.server.web.errors import SAFE, HttpError
from crowdtree.server.web.processes import REQUEST_ID, SHARED

log = logging.getLogger("crowdtree.server.web")
access_log = logging.getLogger("crowdtree.access")

# ------------------------------------------------------------------------------- headers

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
NAMES = frozenset(name.encode() for name in (*HEADERS, "cache-control"))
SECRET_PATHS = re.compile(r"^(/(?:w|join|a)/)[^/]+")
ID_HEADER = b"x-request-id"
ACCEPTED_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
PROCESS = secrets.token_hex(4)
"""Start of the request ids of this process."""
COUNTER = itertools.count()


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


def request_id(headers: list[tuple[bytes, bytes]]) -> str:
    """Take the id of a request from its header ``X-Request-Id``, or make one.

    >>> request_id([(b"x-request-id", b"proxy-17")])
    'proxy-17'
    >>> len(request_id([(b"x-request-id", b"two words")]))
    16
    """
    for name, value in headers:
        if name == ID_HEADER and ACCEPTED_ID.fullmatch(value):
            return value.decode()
    return f"{PROCESS}{next(COUNTER):08x}"


# -------------------------------------------------------------------------------- bodies

KIB, MIB, GIB = 2**10, 2**20, 2**30
SMALL = 64 * KIB
LARGE = {
    "items": 2 * GIB,
    "media": 64 * MIB,
    **dict.fromkeys(("campaigns", "new", "questions", "settings"), 8 * MIB),
    **dict.fromkeys(("share", "preview"), MIB),
}
"""Last segments of paths that accept more than a small body, with their limits."""
BODY_SECONDS, SLOWEST = 20.0, 16 * KIB
"""Time that every body gets, and the bytes for which it gets a second more."""
CLOSE = {"connection": "close"}
"""Headers of refusals that leave a body unread."""


def body_limit(path: str) -> int:
    """The largest body of a request to a path, in bytes.

    >>> body_limit("/api/worker/answer"), body_limit("/api/campaigns/3/items") > 2**30
    (65536, True)
    """
    return LARGE.get(path.rstrip("/").rpartition("/")[2], SMALL)


class Body:
    """The body of one request while it arrives: refused if it is too large, slow or compressed.

    A body may take 20 s, and a second more per 16 KiB that have arrived. Compressed bodies
    (``Content-Encoding``) are refused, so that none can expand without limit.
    """

    __slots__ = ("_begin", "_is_whole", "_max", "_receive", "_scope", "_seen")

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self._scope, self._receive = scope, receive
        self._max = self._seen = 0
        self._is_whole = False
        self._begin = time.monotonic()

    async def receive(self) -> Message:
        """Receive the next part within the time limit, or a disconnection at any time."""
        if self._is_whole:
            return await self._receive()
        if not self._max:
            self._check_headers()
        left = self._begin + BODY_SECONDS + self._seen / SLOWEST - time.monotonic()
        try:
            async with asyncio.timeout(max(0.0, left)):
                message = await self._receive()
        except TimeoutError:
            log.warning("the body of %s came too slowly", clean_path(self._scope["path"]))
            words = "The body came too slowly. Send it again."
            raise HttpError(408, "slow", words, CLOSE) from None
        self._seen += len(message.get("body", b""))
        self._is_whole = not message.get("more_body")
        self._check_size(self._seen)
        return message

    def _check_headers(self) -> None:
        self._max = body_limit(self._scope["path"])
        for name, value in self._scope["headers"]:
            if name == b"content-encoding" and value != b"identity":
                raise HttpError(415, "packed", "Send the body uncompressed.", CLOSE)
            if name == b"content-length":
                self._check_size(int(value) if value.isdigit() else self._max + 1)

    def _check_size(self, size: int) -> None:
        if size > self._max:
            words = f"The body is larger than {self._max // KIB:,} KiB."
            raise HttpError(413, "large", words, CLOSE)


# -------------------------------------------------------------------------------- counts

BUCKETS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 30.0)
METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))

# the start of the process says the same
disable_created_metrics()  # type: ignore[no-untyped-call]

_seconds = Histogram(
    "crowdtree_request_seconds",
    "Time from a request to the end of its response, by route; next waits for a question.",
    ("route",),
    buckets=BUCKETS,
    registry=None,
)
_requests = Counter(
    "crowdtree_requests",
    "Requests, by route, method and status.",
    ("route", "method", "status"),
    registry=None,
)


def request_collectors() -> list[Collector]:
    """What to collect: the counts of this process, or of all that share a folder."""
    if SHARED in os.environ:
        return [MultiProcessCollector(None)]  # type: ignore[no-untyped-call]
    return [_seconds, _requests]


@lru_cache(maxsize=1000)
def _series(route: str, method: str, status: int) -> tuple[Histogram, Counter]:
    """Find the time series of a sort of request."""
    return _seconds.labels(route), _requests.labels(route, method, status)


def _count(scope: Scope, status: int, seconds: float) -> None:
    """Count a request by its route, not its path: labels must be few, and paths hold secrets."""
    method = scope["method"] if scope["method"] in METHODS else "other"
    route = getattr(scope.get("route"), "path", "other")
    if scope["path"].startswith("/static/"):
        route = "/static"
    times, count = _series(route, method, status)
    times.observe(seconds)
    count.inc()


# ---------------------------------------------------------------------------- middleware


class Middleware:
    """The one middleware around the routes.

    Parameters
    ----------
    respond
        Makes the response to an error.
    media
        One more place from which pages load pictures, sounds and videos.
    """

    def __init__(
        self, app: ASGIApp, respond: Callable[[Request, Exception], Response], media: str = ""
    ) -> None:
        self.app, self.respond = app, respond
        values = HEADERS | {"content-security-policy": policy_with(media)}
        self.static = [(name.encode(), value.encode()) for name, value in values.items()]
        self.headers = [*self.static, (b"cache-control", b"no-store")]

    def _with_headers(
        self, given: list[tuple[bytes, bytes]], path: str
    ) -> list[tuple[bytes, bytes]]:
        """Add our headers to a response, except those that it sets itself."""
        ours = self.static if path.startswith("/static/") else self.headers
        own = NAMES.intersection([name for name, _ in given])
        if own:
            ours = [pair for pair in ours if pair[0] not in own]
        return [*given, *ours]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begin = time.perf_counter()
        status = 0
        name = request_id(scope["headers"])
        REQUEST_ID.set(name)  # of this task, which serves nothing else

        async def send_all(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = self._with_headers(list(message["headers"]), scope["path"])
                message["headers"] = [*headers, (ID_HEADER, name.encode())]
            await send(message)

        if scope["method"] not in SAFE:
            receive = Body(scope, receive).receive
        try:
            await self.app(scope, receive, send_all)
        except Exception as error:
            if status:  # the response has begun: nothing else can be sent
                raise
            await self.respond(Request(scope, receive), error)(scope, receive, send_all)
        finally:
            took = time.perf_counter() - begin
            _count(scope, status or 500, took)
            if access_log.isEnabledFor(logging.INFO):
                _log(scope, status or 500, took, name)


def _log(scope: Scope, status: int, took: float, name: str) -> None:
    """Log a request, without its query, its tokens and its body."""
    fields = {
        "method": scope["method"],
        "path": clean_path(scope["path"]),
        "status": status,
        "ms": round(took * 1e3, 1),
        "client": client_address(scope),
        "request_id": name,
    }
    access_log.info("%s %s %d %.1f ms %s %s", *fields.values(), extra={"request": fields})


def client_address(scope: Scope) -> str:
    """The address of the client."""
    client = scope.get("client")
    return str(client[0]) if client else "?"
