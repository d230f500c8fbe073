"""Limits on connections that send no complete request: their time and their number.

The web server itself only closes connections that are idle between two requests. Here a request
line with its headers must arrive within some seconds, and so must the rest of a body after its
response was sent. (:class:`crowdtree.server.web.limits.BodyLimit` limits the time of other bodies.)
Where too many connections are silent, the oldest are closed: those of people send their request at
once.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, OrderedDict, defaultdict
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

from uvicorn.protocols.http.auto import AutoHTTPProtocol
from uvicorn.server import ServerState

from crowdtree.core.text import plural
from crowdtree.server.web.rate_limit import network

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import H11Protocol as BaseProtocol
else:
    BaseProtocol = AutoHTTPProtocol

log = logging.getLogger("crowdtree.server.web")
SILENT_SECONDS = 10.0
"""How long a connection may take for a request line and its headers."""
MOST_PER_ADDRESS = 256
"""Silent connections of one address; browsers open some ahead, and many people may share one."""
MOST_SILENT = 1024
SWEEP_SECONDS = 1.0
LOG_SECONDS = 60.0


class SilentConnections:
    """The silent connections of a server process, the oldest first."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.since: OrderedDict[GuardedProtocol, float] = OrderedDict()
        self.by_address: dict[str, OrderedDict[GuardedProtocol, None]] = defaultdict(OrderedDict)
        self.closed: Counter[str] = Counter()
        self._logged = 0.0
        self._sweeping = False

    def add(self, connection: GuardedProtocol) -> None:
        """Start the time of a connection; close the oldest if there are too many."""
        mine = self.by_address[connection.address]
        mine[connection] = None
        self.since[connection] = time.monotonic()
        if len(mine) > MOST_PER_ADDRESS:
            self._close(next(iter(mine)))
        elif len(self.since) > MOST_SILENT:
            self._close(next(iter(self.since)))
        if not self._sweeping:
            self._sweeping = True
            self.loop.call_later(SWEEP_SECONDS, self._sweep)

    def discard(self, connection: GuardedProtocol) -> None:
        """Forget a connection that has sent a request, or is closed."""
        if self.since.pop(connection, None) is None:
            return
        mine = self.by_address[connection.address]
        del mine[connection]
        if not mine:
            del self.by_address[connection.address]

    def _sweep(self) -> None:
        oldest = time.monotonic() - SILENT_SECONDS
        while self.since and next(iter(self.since.values())) <= oldest:
            self._close(next(iter(self.since)))
        self._log()
        self._sweeping = bool(self.since or self.closed)
        if self._sweeping:
            self.loop.call_later(SWEEP_SECONDS, self._sweep)

    def _close(self, connection: GuardedProtocol) -> None:
        self.discard(connection)
        self.closed[connection.address] += 1
        connection.transport.abort()

    def _log(self) -> None:
        """Log what was closed, at most once per minute."""
        now = time.monotonic()
        if not self.closed or now - self._logged < LOG_SECONDS:
            return
        self._logged = now
        address, count = self.closed.most_common(1)[0]
        log.warning(
            "closed %s without a complete request, %d %s",
            plural(self.closed.total(), "connection"),
            count,
            address,
        )
        self.closed.clear()


SILENT: WeakKeyDictionary[ServerState, SilentConnections] = WeakKeyDictionary()


class JoinedWrites:
    """A transport that sends the head of a response together with the beginning of its body.

    uvicorn writes one after the other; each write takes a system call and wakes the client.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._head = b""
        self.is_closing = transport.is_closing

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Write a part of a response; a head waits until the event loop goes on."""
        if self._head:
            head, self._head = self._head, b""
            self._transport.write(head + data)
        elif data.startswith(b"HTTP/"):
            self._head = data
            self._loop.call_soon(self._flush)
        else:
            self._transport.write(data)

    def close(self) -> None:
        """Write what waits, and close the connection."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._head:
            self.write(b"")


class GuardedProtocol(BaseProtocol):
    """uvicorn's protocol with limits on silent connections, and fewer writes."""

    def __init__(self, config: Any, server_state: ServerState, *more: Any, **named: Any) -> None:
        super().__init__(config, server_state, *more, **named)
        if server_state not in SILENT:
            SILENT[server_state] = SilentConnections(self.loop)
        self.silent = SILENT[server_state]
        self.address = "?"

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(cast(asyncio.Transport, JoinedWrites(transport, self.loop)))
        if self.client:
            self.address = network(self.client[0])
        self.silent.add(self)

    def data_received(self, data: bytes) -> None:
        """Note whether a request has begun, or only a part of one has come."""
        before = self.cycle
        super().data_received(data)
        cycle = self.cycle
        if cycle is not before:
            self.silent.discard(self)
        elif (cycle is None or cycle.response_complete) and self not in self.silent.since:
            self.silent.add(self)

    def on_response_complete(self) -> None:
        """Wait for the rest of a body that nobody reads."""
        super().on_response_complete()
        if self.cycle.more_body and not self.transport.is_closing():
            self.silent.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self.silent.discard(self)
        super().connection_lost(exc)
