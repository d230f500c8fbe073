"""Webhooks: signed, sent at least once, never to places they must not reach.

The signature is ``t=SECONDS,v1=HEX``: HMAC-SHA256 of ``SECONDS.BODY`` with the webhook's secret.
Receivers check it with :func:`verify_signature`, which refuses old messages, and drop ids that they
have seen.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import http.client
import ipaddress
import json
import socket
import ssl
from typing import Any
from urllib.parse import urlsplit

from crowdtree.errors import CrowdtreeError
from crowdtree.store.background import outbox
from crowdtree.web.site import Site

__all__ = ["check_url", "deliver", "sign", "verify_signature"]

TIMEOUT = 10.0
OLDEST_SECONDS = 300.0
WORDS: dict[type[Exception], str] = {
    TimeoutError: f"no answer within {TIMEOUT:.0f} s",
    ConnectionRefusedError: "connection refused",
    ConnectionError: "the connection was cut",
    socket.gaierror: "there is no such host",
    ssl.SSLError: "its certificate is not accepted",
    http.client.HTTPException: "it does not answer in HTTP",
}


def sign(secret: str, body: bytes, now: float) -> str:
    """Sign a message.

    >>> sign("secret", b"{}", 1.0)[:8]
    't=1,v1=1'
    """
    seconds = str(int(now))
    signed = hmac.new(secret.encode(), f"{seconds}.".encode() + body, hashlib.sha256)
    return f"t={seconds},v1={signed.hexdigest()}"


def verify_signature(secret: str, header: str, body: bytes, now: float) -> bool:
    """Check a message's signature and age.

    >>> header = sign("secret", b"{}", 1000.0)
    >>> verify_signature("secret", header, b"{}", 1010.0)
    True
    >>> verify_signature("secret", header, b"{}", 2000.0)
    False
    """
    parts = dict(part.partition("=")[::2] for part in header.split(","))
    seconds = parts.get("t", "")
    if not seconds.isascii() or not seconds.isdigit() or len(seconds) > 12:
        return False
    if abs(now - int(seconds)) > OLDEST_SECONDS:
        return False
    return hmac.compare_digest(sign(secret, body, int(seconds)).encode(), header.encode())


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
    """Resolve a name once, and refuse it unless all its addresses are public."""
    found = [str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    if not private and not all(ipaddress.ip_address(a.partition("%")[0]).is_global for a in found):
        raise OSError("the address is not public")
    return found[0]


async def deliver(site: Site) -> None:
    """Send what is due; each webhook gets one message at a time, in order."""
    due = await site.store.awrite(lambda c: outbox.claim(c, site.now))
    await asyncio.gather(*(_deliver(site, message) for message in due))


async def _deliver(site: Site, message: outbox.Message) -> None:
    error = await asyncio.to_thread(_send, message, site.now, site.options.private_webhooks)
    await site.store.awrite(lambda c: outbox.settle_hook(c, message, error, site.now))


def _send(message: outbox.Message, now: float, private: bool) -> str:
    """Post a message; returns what went wrong, or ``""``. Redirects are not followed."""
    parts = urlsplit(message.url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    body = json.dumps(message.body).encode()
    try:
        # Connect to the address that was checked: a name could resolve differently a second time.
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
    """Say what went wrong with a message.

    >>> _words(ConnectionRefusedError()), _words(ssl.SSLError("x")), _words(OSError(28, "Full"))
    ('connection refused', 'its certificate is not accepted', 'full')
    """
    for kind, words in WORDS.items():
        if isinstance(error, kind):
            return words
    return str(getattr(error, "strerror", None) or error or type(error).__name__).lower()[:100]


def _connect(parts: Any, address: str, port: int) -> http.client.HTTPConnection:
    if parts.scheme == "http":
        return http.client.HTTPConnection(address, port, timeout=TIMEOUT)
    connection = http.client.HTTPSConnection(parts.hostname, port, timeout=TIMEOUT)
    raw = socket.create_connection((address, port), TIMEOUT)
    context = ssl.create_default_context()
    connection.sock = context.wrap_socket(raw, server_hostname=parts.hostname)
    return connection
