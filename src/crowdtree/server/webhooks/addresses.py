"""Addresses that webhooks may be sent to: public ones only, unless the server allows others.

A name is resolved once per request: all its addresses are checked, and the connection goes to one
of them. A second look-up could give another one.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import httpx

from crowdtree.core.errors import CrowdtreeError

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
