"""Requests go to the address that was checked, whatever a name is resolved to later."""

from __future__ import annotations

import asyncio
import datetime
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

import httpx
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from crowdtree.server.webhooks import delivery as addresses
from crowdtree.server.webhooks.delivery import NotPublic, PublicTransport
from tests import aside

NAME = "label.example"


@pytest.fixture
def resolver(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Let names have these addresses, one list per look-up; returns the names looked up."""

    def resolve(*answers: list[str]) -> list[str]:
        left, asked = list(answers), []

        def look(host: str, _: int) -> list[str]:
            asked.append(host)
            return left.pop(0)

        monkeypatch.setattr(addresses, "_look", look)
        return asked

    return resolve


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Where connections go; those that leave this computer are refused."""
    opened: list[str] = []
    connect = asyncio.BaseEventLoop.create_connection

    async def record(loop: Any, made: Any, host: str, *args: Any, **options: Any) -> Any:
        opened.append(host)
        if host != "127.0.0.1":
            raise ConnectionRefusedError
        return await connect(loop, made, host, *args, **options)

    monkeypatch.setattr(asyncio.BaseEventLoop, "create_connection", record)
    return opened


def posted(url: str, private: bool = True, count: int = 1) -> list[int]:
    """Post to an address, several times with one client; returns the statuses."""

    async def post() -> list[int]:
        async with httpx.AsyncClient(transport=PublicTransport(private), trust_env=False) as client:
            return [(await client.post(url, content=b"x")).status_code for _ in range(count)]

    return aside.run(post())


def test_the_connection_goes_to_the_address_that_was_checked(
    receive: Any, resolver: Any, connections: list[str]
) -> None:
    receiver = receive()
    asked = resolver(["127.0.0.1"])
    assert posted(f"http://{NAME}:{receiver.port}/hook?x=1") == [204]
    path, headers, _ = receiver.requests[0]
    assert (path, headers["host"]) == ("/hook?x=1", f"{NAME}:{receiver.port}")
    assert (asked, connections) == ([NAME], ["127.0.0.1"])


@pytest.mark.parametrize("host", [NAME, "xn--bcher-kva.example"])
def test_a_name_that_is_rebound_to_a_private_address_is_not_reached(
    receive: Any, resolver: Any, connections: list[str], host: str
) -> None:
    receiver = receive()
    resolver(["8.8.8.8"], ["127.0.0.1"])
    url = f"http://{host}:{receiver.port}/"
    with pytest.raises(httpx.ConnectError):
        posted(url, private=False)
    with pytest.raises(NotPublic):
        posted(url, private=False)
    assert (connections, receiver.requests) == (["8.8.8.8"], [])


@pytest.mark.parametrize("found", [["8.8.8.8", "10.0.0.1"], ["::ffff:127.0.0.1"], ["fd00::1"]])
def test_one_private_address_is_enough_to_refuse_a_name(
    resolver: Any, connections: list[str], found: list[str]
) -> None:
    resolver(found)
    with pytest.raises(NotPublic):
        posted(f"https://{NAME}/", private=False)
    assert connections == []


def test_redirects_are_not_followed_and_every_request_is_checked(
    receive: Any, resolver: Any
) -> None:
    receiver = receive()
    receiver.statuses, receiver.headers = [302, 302], {"location": "http://127.0.0.1/"}
    asked = resolver(["127.0.0.1"], ["127.0.0.1"])
    assert posted(f"http://{NAME}:{receiver.port}/", count=2) == [302, 302]
    assert asked == [NAME, NAME]


def certificate(folder: Path, name: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Make a certificate for a name; the contexts of a server and of a client that trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    today = datetime.datetime.now(datetime.UTC)
    day = datetime.timedelta(1)
    made = (
        x509.CertificateBuilder(subject, subject, key.public_key(), 1, today - day, today + day)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "c.pem").write_bytes(made.public_bytes(pem) + private)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "c.pem")
    return server, ssl.create_default_context(cadata=made.public_bytes(pem).decode())


@pytest.mark.parametrize("other", [NAME, "other.example"])
def test_the_certificate_must_be_that_of_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, receive: Any, resolver: Any, other: str
) -> None:
    server, client = certificate(tmp_path, other)
    monkeypatch.setattr(addresses, "tls", lambda: client)
    receiver = receive(server)
    resolver(["127.0.0.1"])
    url = f"https://{NAME}:{receiver.port}/"
    if other == NAME:
        assert posted(url) == [204]
    else:
        with pytest.raises(httpx.ConnectError, match="certificate"):
            posted(url)
    assert receiver.names == [NAME]
