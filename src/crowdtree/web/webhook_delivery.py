"""Send webhooks: signed, at least once, and never to private addresses unless allowed."""

from __future__ import annotations

import asyncio
import http.client
import ipaddress
import json
import socket
import ssl
from dataclasses import replace
from urllib.parse import SplitResult, urlsplit

from crowdtree.errors import CrowdtreeError
from crowdtree.store.background import outbox
from crowdtree.web.state import AppState
from crowdtree.webhooks import sign

__all__ = ["check_url", "deliver", "public_address"]

TIMEOUT = 10.0
REASONS: dict[type[Exception], str] = {
    TimeoutError: f"no response within {TIMEOUT:.0f} s",
    ConnectionRefusedError: "connection refused",
    ConnectionError: "connection lost",
    socket.gaierror: "unknown host",
    ssl.SSLError: "invalid certificate",
    http.client.HTTPException: "not an HTTP response",
}


def check_url(url: str, private: bool) -> str:
    """Accept an address that a webhook may be sent to, or raise."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, urlsplit("")
    schemes = ("https", "http") if private else ("https",)
    if not host or parts.scheme not in schemes or "@" in parts.netloc or port == 0:
        raise CrowdtreeError("webhook: must be an https:// address, without a user name")
    if any(ord(c) < 33 or ord(c) > 126 for c in url):
        raise CrowdtreeError("webhook: the address has characters that must be escaped")
    return url


def public_address(host: str, port: int, private: bool) -> str:
    """Resolve a name, and refuse it unless all its addresses are public."""
    found = [str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    if not private and not all(ipaddress.ip_address(a.partition("%")[0]).is_global for a in found):
        raise OSError("the address is not public")
    return found[0]


async def deliver(state: AppState) -> None:
    """Send what is due; each webhook gets one message at a time, in order."""
    due = await state.store.awrite(lambda c: outbox.claim(c, state.now))
    await asyncio.gather(*(_deliver(state, message) for message in due))


async def _deliver(state: AppState, message: outbox.Message) -> None:
    try:
        secret = state.secret_key.open(message.secret)
    except CrowdtreeError as problem:
        error = str(problem)
    else:
        message = replace(message, secret=secret)
        error = await asyncio.to_thread(_send, message, state.now, state.options.private_webhooks)
    await state.store.awrite(lambda c: outbox.settle_hook(c, message, error, state.now))


def _send(message: outbox.Message, now: float, private: bool) -> str:
    """Post a message; returns the error, or ``""``. Redirects are not followed."""
    parts = urlsplit(message.url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    body = json.dumps(message.body).encode()
    try:
        # Connect to the address that was checked: a second lookup could give another one.
        address = public_address(str(parts.hostname), port, private)
        connection = _connect(parts, address, port)
        try:
            path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            signature = sign(message.secret, body, now)
            headers = {
                "host": parts.netloc,
                "content-type": "application/json",
                "x-crowdtree-signature": signature,
            }
            connection.request("POST", path, body, headers)
            status = connection.getresponse().status
        finally:
            connection.close()
    except (OSError, ValueError, http.client.HTTPException) as error:
        return _words(error)
    return "" if 200 <= status < 300 else f"status {status}"


def _words(error: Exception) -> str:
    """Describe a failed delivery.

    >>> _words(ConnectionRefusedError()), _words(ssl.SSLError("x")), _words(OSError(28, "Full"))
    ('connection refused', 'invalid certificate', 'full')
    """
    for kind, words in REASONS.items():
        if isinstance(error, kind):
            return words
    return str(getattr(error, "strerror", None) or error or type(error).__name__).lower()[:100]


def _connect(parts: SplitResult, address: str, port: int) -> http.client.HTTPConnection:
    if parts.scheme == "http":
        return http.client.HTTPConnection(address, port, timeout=TIMEOUT)
    host = str(parts.hostname)
    connection = http.client.HTTPSConnection(host, port, timeout=TIMEOUT)
    raw = socket.create_connection((address, port), TIMEOUT)
    context = ssl.create_default_context()
    connection.sock = context.wrap_socket(raw, server_hostname=host)
    return connection
