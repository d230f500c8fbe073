"""Send webhooks: signed, at least once, and only to public addresses unless others are allowed.

Each message is sent by a task of its own on the event loop, and no thread waits for a receiver: a
slow one delays neither other receivers nor the server. Redirects are not followed. A name is
resolved once per request: all its addresses are checked, and the connection goes to one of them. A
second look-up could give another one.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache, partial

import httpx

from crowdtree.core.errors import CrowdtreeError
from crowdtree.server.store import Store
from crowdtree.server.webhooks import outbox
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
LOOKUP_SECONDS = 5.0
"""How long saving a webhook waits for the look-up of its host."""
LOOKUPS = ThreadPoolExecutor(32, "crowdtree-lookup")
"""Look-ups cannot be cancelled, so they must not occupy the threads that read the database."""
UNICAST = ipaddress.ip_network("2000::/3")
SPECIAL = [
    ipaddress.ip_network(text)
    for text in (
        "192.0.0.0/24",  # protocol assignments
        "192.88.99.0/24",  # relays of 6to4
        "224.0.0.0/4",  # multicast
        "2001::/23",  # protocol assignments, Teredo among them
        "2002::/16",  # 6to4: contains an IPv4 address, maybe a private one
        "3fff::/20",  # documentation
    )
]
"""Ranges without public hosts that ``is_global`` does not know in all versions of Python."""


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


# ----------------------------------------------------------------------------- addresses


class NotPublic(OSError):
    """A host has an address that is private, or reserved for a special purpose."""


def is_public(address: str) -> bool:
    """Whether an IP address belongs to a host on the public internet.

    IPv6 addresses outside of 2000::/3 do not. That excludes all forms that embed an IPv4
    address: ``::ffff:127.0.0.1``, ``::127.0.0.1`` and ``64:ff9b::7f00:1``.

    >>> [is_public(a) for a in ("9.9.9.9", "2620:fe::fe", "10.0.0.1", "64:ff9b::7f00:1")]
    [True, True, False, False]
    """
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address) and found not in UNICAST:
        return False
    return found.is_global and not any(found in network for network in SPECIAL)


def check_url(url: str, private: bool) -> httpx.URL:
    """Accept the address of a webhook by its form, or raise."""
    if any(ord(c) < 33 or ord(c) > 126 for c in url):
        raise CrowdtreeError("webhook: the address has characters that must be escaped")
    try:
        parts = httpx.URL(url)
    except httpx.InvalidURL:
        parts = httpx.URL("")
    schemes = ("https", "http") if private else ("https",)
    port = parts.port is None or 0 < parts.port < 65_536
    if not parts.host or parts.scheme not in schemes or parts.userinfo or not port:
        raise CrowdtreeError("webhook: must be an https:// address, without a user name")
    return parts


async def check_address(url: str, private: bool) -> str:
    """Accept the address of a webhook by its form and by its host, or raise.

    A host that is unknown now is accepted: it is looked up again for each message.
    """
    host = check_url(url, private).raw_host.decode()
    try:
        async with asyncio.timeout(LOOKUP_SECONDS):
            await public_address(host, 443, private)
    except NotPublic as error:
        raise CrowdtreeError(
            f"webhook: {host}: {error}; whoever runs the server can allow it (--private-webhooks)"
        ) from None
    except (OSError, ValueError, TimeoutError):
        return url
    return url


async def public_address(host: str, port: int, private: bool) -> str:
    """Resolve a name, and refuse it unless all its addresses are public."""
    loop = asyncio.get_running_loop()
    found = await loop.run_in_executor(LOOKUPS, _look, host, port)
    if not private and not all(map(is_public, found)):
        raise NotPublic("the address is private or reserved, not public")
    return found[0]


class PublicTransport(httpx.AsyncHTTPTransport):
    """Send requests to public addresses only, unless others are allowed."""

    def __init__(self, private: bool) -> None:
        super().__init__(verify=tls(), trust_env=False)
        self.private = private

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Connect to the address that was checked; the certificate is that of the name."""
        host = request.url.raw_host.decode()
        address = await public_address(host, request.url.port or 443, self.private)
        request.url = request.url.copy_with(host=address)
        request.extensions = {**request.extensions, "sni_hostname": host}
        return await super().handle_async_request(request)


@cache
def tls() -> ssl.SSLContext:
    """Read the certificates of the system once: it takes some milliseconds."""
    return ssl.create_default_context()


def _look(host: str, port: int) -> list[str]:
    return [str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
