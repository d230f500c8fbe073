"""Request heads without end, slow heads and silent connections end soon and delay nobody."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from crowdtree.server.store import Store
from crowdtree.server.web.serve import MAX_HEAD_BYTES, behind_proxy, call_when_ready
from tests import aside
from tests.live_server import LiveServer, live_server
from tests.serving import free_port

BEGIN = "GET /healthz HTTP/1.1\r\nhost: x\r\n"
LINES = b"".join(b"x-%d: y\r\n" % k for k in range(1000))
ENDLESS = 256 * MAX_HEAD_BYTES
"""More bytes than all buffers of the operating system take."""


@pytest.fixture
def live() -> Iterator[LiveServer]:
    with Store("sqlite://").opened() as store, live_server(store) as server:
        yield server


def send_all(connection: socket.socket, piece: bytes) -> None:
    for _ in range(ENDLESS // len(piece)):
        connection.sendall(piece)


def read_to_end(connection: socket.socket) -> bytes:
    """Read until the server closes the connection."""
    received = b""
    with contextlib.suppress(ConnectionError):
        while part := connection.recv(65536):
            received += part
    return received


@pytest.mark.parametrize("piece", [LINES, b"a" * 2**16], ids=["many lines", "one line"])
def test_a_head_without_end_is_refused(live: LiveServer, piece: bytes) -> None:
    with contextlib.ExitStack() as stack:
        endless = [stack.enter_context(live.connect(BEGIN)) for _ in range(4)]
        for connection in endless:
            with pytest.raises(ConnectionError):
                send_all(connection, piece)
            assert live.is_alive()


@pytest.mark.parametrize("text", ["", BEGIN, f"{BEGIN}\r\n{BEGIN}"], ids=["none", "half", "next"])
def test_a_connection_without_a_complete_head_is_closed(live: LiveServer, text: str) -> None:
    with live.connect(text) as silent:
        received = read_to_end(silent)
    assert received.count(b"HTTP/1.1 200") == text.count("\r\n\r\n")
    assert live.is_alive()


def test_a_head_that_arrives_byte_by_byte_is_closed(live: LiveServer) -> None:
    with live.connect(BEGIN) as slow:
        slow.settimeout(0.01)
        for _ in range(2000):
            try:
                slow.sendall(b"a")
                if slow.recv(65536) == b"":
                    break
            except TimeoutError:
                continue
            except ConnectionError:
                break
        else:
            pytest.fail("the head may go on")


def test_silent_connections_do_not_lock_others_out(live: LiveServer) -> None:
    with contextlib.ExitStack() as stack:
        silent = [stack.enter_context(live.connect()) for _ in range(200)]
        assert live.is_alive()
        for connection in silent:
            assert read_to_end(connection) == b""


def test_it_is_announced_once_connections_are_accepted() -> None:
    port, announced = free_port(), threading.Event()
    call_when_ready(announced.set, "127.0.0.1", port)
    assert not announced.is_set()
    with socket.create_server(("127.0.0.1", port)):
        assert announced.wait(20)


@pytest.mark.parametrize(
    ("trusted", "client"), [("127.0.0.1", "198.51.100.7"), ("10.0.0.1", "127.0.0.1")]
)
def test_only_known_proxies_say_where_requests_come_from(
    monkeypatch: pytest.MonkeyPatch, trusted: str, client: str
) -> None:
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", trusted)
    seen: list[str] = []

    async def app(scope: dict[str, tuple[str, int]], *_: object) -> None:
        seen.append(scope["client"][0])

    scope = {
        "type": "http",
        "client": ("127.0.0.1", 5),
        "headers": [(b"x-forwarded-for", b"198.51.100.7")],
    }
    aside.run(behind_proxy(app)(scope, None, None))
    assert seen == [client]
