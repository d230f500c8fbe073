"""The HTTP server on a port of loopback, in a thread of this process."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.server.embed import Server

from crowdtree.server.store import Store
from crowdtree.server.web.app import create_app
from crowdtree.server.web.serve import MAX_HEAD_BYTES
from tests.serving import Client, free_port
from tests.weblab import until

HEAD_SECONDS = 0.3


class LiveServer:
    """A server with a short time for request heads."""

    def __init__(self, store: Store) -> None:
        self.store, self.port, self.app = store, free_port(), create_app(store)
        self.thread = threading.Thread(target=asyncio.run, args=(self._serve(),), daemon=True)
        self.thread.start()
        assert until(self.accepts)

    async def _serve(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.server = Server(
            self.app,
            "127.0.0.1",
            self.port,
            interface=Interfaces.ASGI,
            http=HTTPModes.http1,
            http1_settings=HTTP1Settings(
                header_read_timeout=int(HEAD_SECONDS * 1000), max_buffer_size=MAX_HEAD_BYTES
            ),
            backpressure=1000,
        )
        await self.server.serve()

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.server.stop)
        self.thread.join(20)

    def accepts(self) -> bool:
        with contextlib.suppress(OSError), self.connect():
            return True
        return False

    def connect(self, text: str = "") -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        connection.sendall(text.encode())
        return connection

    def respond(self, text: str) -> tuple[int, dict[str, Any]]:
        """Read the response to an unfinished request, while the connection stays open."""
        with self.connect(text) as connection:
            received = b""
            while b"}" not in received:
                part = connection.recv(65536)
                assert part, received
                received += part
        head, _, body = received.partition(b"\r\n\r\n")
        return int(head.split(b" ")[1]), json.loads(body)

    def is_alive(self) -> bool:
        with contextlib.closing(Client(self.port)) as client:
            return client.get("/healthz") == (200, {"status": "ok"})


@contextlib.contextmanager
def live_server(store: Store) -> Iterator[LiveServer]:
    server = LiveServer(store)
    yield server
    server.close()
