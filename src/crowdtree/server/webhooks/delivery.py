"""Send webhooks: signed, at least once, and never to private addresses unless allowed.

Each message is sent by a task of its own on the event loop, and no thread waits for a receiver: a
slow one delays neither other receivers nor the server. Redirects are not followed.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import httpx

from crowdtree.core.errors import CrowdtreeError
from crowdtree.server.store import Store
from crowdtree.server.webhooks import outbox
from crowdtree.server.webhooks.addresses import PublicTransport
from crowdtree.webhooks import sign

DEADLINE = 10.0
"""Seconds for a whole delivery: look-up, connection, request and status line."""
MAX_AT_ONCE = 256
MAX_IN_A_ROW = 100
"""Messages to one webhook before others have their turn."""
REASONS: dict[type[Exception], str] = {
    TimeoutError: f"no response within {DEADLINE:.0f} s",
    ConnectionRefusedError: "connection refused",
    socket.gaierror: "unknown host",
    ssl.SSLError: "invalid certificate",
    httpx.ProtocolError: "no HTTP response",
    httpx.ReadError: "connection lost",
    httpx.WriteError: "connection lost",
}


class Deliveries:
    """The messages that are being sent, at most one per webhook.

    Parameters
    ----------
    open_secret
        Decrypts the secret of a webhook.
    private
        Whether receivers may have private addresses.
    """

    def __init__(self, store: Store, open_secret: Callable[[str], str], private: bool) -> None:
        self.store, self.open_secret, self.private = store, open_secret, private
        self.tasks: set[asyncio.Task[None]] = set()

    async def start_due(self) -> None:
        """Start to send what is due, without waiting for what is being sent."""
        free, now = MAX_AT_ONCE - len(self.tasks), self.store.clock()
        if free <= 0:
            return
        for message in await self.store.awrite(lambda c: outbox.claim(c, now, free)):
            task = asyncio.create_task(self._deliver(message))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    async def close(self) -> None:
        """Cancel what is being sent; it is sent again after the next start."""
        tasks = list(self.tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _deliver(self, first: outbox.Message) -> None:
        """Send a message, and those that follow it."""
        message: outbox.Message | None = first
        for _ in range(MAX_IN_A_ROW):
            if message is None:
                return
            settled = partial(outbox.settle, message=message, error=await self._send(message))
            message = await self.store.awrite(partial(settled, now=self.store.clock()))

    async def _send(self, message: outbox.Message) -> str:
        try:
            secret = self.open_secret(message.secret)
        except CrowdtreeError as problem:
            return str(problem)
        return await post(replace(message, secret=secret), self.store.clock(), self.private)


async def post(message: outbox.Message, now: float, private: bool) -> str:
    """Post a message; returns the error, or ``""``."""
    seconds = int(now)
    headers = {
        "content-type": "application/json",
        "user-agent": "crowdtree",
        "webhook-id": message.id,
        "webhook-timestamp": str(seconds),
        "webhook-signature": sign(message.secret, message.id, seconds, message.body),
    }
    try:
        async with (
            asyncio.timeout(DEADLINE),
            _client(private) as client,
            client.stream("POST", message.url, content=message.body, headers=headers) as response,
        ):  # the status is all that is read
            return "" if response.is_success else f"status {response.status_code}"
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
        return _words(error)


def _client(private: bool) -> httpx.AsyncClient:
    """Make a client for one message, so that no connection or cookie is used for another."""
    return httpx.AsyncClient(transport=PublicTransport(private), timeout=None, trust_env=False)


def _words(error: BaseException) -> str:
    """Describe a failed delivery by what caused it.

    >>> _words(ConnectionRefusedError()), _words(ssl.SSLError("x")), _words(OSError(28, "Full"))
    ('connection refused', 'invalid certificate', 'full')
    """
    causes = [error]
    while cause := causes[-1].__cause__ or causes[-1].__context__:
        causes.append(cause)
    for kind, words in REASONS.items():
        if any(isinstance(each, kind) for each in causes):
            return words
    first = causes[-1]
    return str(getattr(first, "strerror", None) or first or type(first).__name__).lower()[:100]
