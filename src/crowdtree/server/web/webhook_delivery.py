"""Send webhooks: signed, at least once, and never to private addresses unless allowed.

Each message is sent by a task of its own on the event loop, and no thread waits for a receiver: a
slow one delays neither other receivers nor the server. Redirects are not followed.
"""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from dataclasses import replace
from functools import partial

import httpx

from crowdtree.core.errors import CrowdtreeError
from crowdtree.server.store.background import outbox
from crowdtree.server.web.addresses import PublicTransport
from crowdtree.server.web.state import AppState
from crowdtree.webhooks import sign

DEADLINE = 10.0
"""Seconds for a whole delivery: look-up, connection, request and status line."""
MAX_AT_ONCE = 256
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
    """The messages that are being sent, at most one per webhook."""

    def __init__(self) -> None:
        self.tasks: dict[int, asyncio.Task[None]] = {}

    async def start_due(self, state: AppState) -> None:
        """Start to send what is due, without waiting for what is being sent."""
        free = MAX_AT_ONCE - len(self.tasks)
        if free <= 0:
            return
        for message in await state.store.awrite(lambda c: outbox.claim(c, state.now, free)):
            task = asyncio.create_task(_deliver(state, message))
            self.tasks[message.hook] = task
            task.add_done_callback(partial(self._ended, message.hook))

    def _ended(self, hook: int, task: asyncio.Task[None]) -> None:
        if self.tasks.get(hook) is task:
            del self.tasks[hook]

    async def close(self) -> None:
        """Cancel what is being sent; it is sent again after the next start."""
        tasks = list(self.tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _deliver(state: AppState, message: outbox.Message) -> None:
    try:
        secret = state.secret_key.open(message.secret)
    except CrowdtreeError as problem:
        error = str(problem)
    else:
        opened = replace(message, secret=secret)
        error = await post(opened, state.now, state.options.private_webhooks)
    await state.store.awrite(lambda c: outbox.settle_hook(c, message, error, state.now))


async def post(message: outbox.Message, now: float, private: bool) -> str:
    """Post a message; returns the error, or ``""``."""
    body = json.dumps(message.body).encode()
    headers = {
        "content-type": "application/json",
        "user-agent": "crowdtree",
        "webhook-id": message.body["id"],
        "webhook-timestamp": str(int(now)),
        "webhook-signature": sign(message.secret, message.body["id"], int(now), body),
    }
    try:
        async with (
            asyncio.timeout(DEADLINE),
            _client(private) as client,
            client.stream("POST", message.url, content=body, headers=headers) as response,
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
    while (cause := causes[-1].__cause__) is not None:
        causes.append(cause)
    for kind, words in REASONS.items():
        if any(isinstance(each, kind) for each in causes):
            return words
    first = causes[-1]
    return str(getattr(first, "strerror", None) or first or type(first).__name__).lower()[:100]
