"""Send webhooks: signed, at least once, and never to private addresses unless allowed.

Each message is sent by a task of its own on the event loop, and no thread waits for a receiver: a
slow one delays neither other receivers nor the server. Redirects are not followed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import ssl
from dataclasses import replace
from functools import cache, partial
from urllib.parse import urlsplit

from crowdtree.core.errors import CrowdtreeError
from crowdtree.server.store.background import outbox
from crowdtree.server.web.addresses import LOOKUPS, public_address
from crowdtree.server.web.state import AppState
from crowdtree.webhooks import sign

DEADLINE = 10.0
"""Seconds for a whole delivery: look-up, connection, request and status line."""
MOST_AT_ONCE = 256
MOST_HEAD = 16 * 1024
NOT_HTTP = "not an HTTP response"
REASONS: dict[type[Exception], str] = {
    TimeoutError: f"no response within {DEADLINE:.0f} s",
    ConnectionRefusedError: "connection refused",
    ConnectionError: "connection lost",
    socket.gaierror: "unknown host",
    ssl.SSLError: "invalid certificate",
    asyncio.IncompleteReadError: "connection lost",
    asyncio.LimitOverrunError: NOT_HTTP,
}


class Deliveries:
    """The messages that are being sent, at most one per webhook."""

    def __init__(self) -> None:
        self.tasks: dict[int, asyncio.Task[None]] = {}

    async def start_due(self, state: AppState) -> None:
        """Start to send what is due, without waiting for what is being sent."""
        free = MOST_AT_ONCE - len(self.tasks)
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
    try:
        async with asyncio.timeout(DEADLINE):
            status = await _post(message, now, private)
    except (OSError, ValueError, EOFError, asyncio.LimitOverrunError) as error:
        return _words(error)
    return "" if 200 <= status < 300 else f"status {status}"


async def _post(message: outbox.Message, now: float, private: bool) -> int:
    parts = urlsplit(message.url)
    host, secure = str(parts.hostname), parts.scheme == "https"
    port = parts.port or (443 if secure else 80)
    body = json.dumps(message.body).encode()
    # Connect to the address that was checked: a second look-up could give another one.
    address = await public_address(host, port, private)
    context = await asyncio.get_running_loop().run_in_executor(LOOKUPS, _tls) if secure else None
    reader, writer = await asyncio.open_connection(
        address, port, limit=MOST_HEAD, ssl=context, server_hostname=host if secure else None
    )
    try:
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        headers = {
            "host": parts.netloc,
            "content-type": "application/json",
            "content-length": str(len(body)),
            "connection": "close",
            "x-crowdtree-signature": sign(message.secret, body, now),
        }
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        writer.write(f"POST {path} HTTP/1.1\r\n{head}\r\n".encode("ascii") + body)
        with contextlib.suppress(ConnectionError):  # it may respond without reading everything
            await writer.drain()
        return await _status(reader)
    finally:
        writer.transport.abort()  # a graceful end would wait for the receiver


async def _status(reader: asyncio.StreamReader) -> int:
    """Read the status of a response, past those that only announce it (100 to 199)."""
    while True:
        version, _, rest = (await reader.readuntil(b"\r\n")).partition(b" ")
        if not version.startswith(b"HTTP/1.") or not rest[:3].isdigit():
            raise ValueError(NOT_HTTP)
        status = int(rest[:3])
        if status >= 200:
            return status
        await reader.readuntil(b"\r\n\r\n")


@cache
def _tls() -> ssl.SSLContext:
    """Read the certificates of the system once: it takes some milliseconds."""
    return ssl.create_default_context()


def _words(error: Exception) -> str:
    """Describe a failed delivery.

    >>> _words(ConnectionRefusedError()), _words(ssl.SSLError("x")), _words(OSError(28, "Full"))
    ('connection refused', 'invalid certificate', 'full')
    """
    for kind, words in REASONS.items():
        if isinstance(error, kind):
            return words
    return str(getattr(error, "strerror", None) or error or type(error).__name__).lower()[:100]
