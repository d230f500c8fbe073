"""Receivers of webhooks on this computer."""

from __future__ import annotations

import http.server
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from tests.weblab import Lab, lab


class Receiver:
    """A receiver of requests on this computer."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        self.arrived = threading.Condition()
        self.names: list[str] = []
        """Names that TLS clients ask for."""
        self.statuses: list[int] = []
        """Statuses of the next responses; then 204."""
        self.headers: dict[str, str] = {}
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                with outer.arrived:
                    outer.requests.append((self.path, headers, body))
                    outer.arrived.notify_all()
                self.send_response(outer.statuses.pop(0) if outer.statuses else 204)
                for name, value in outer.headers.items():
                    self.send_header(name, value)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                return

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if context is not None:
            context.sni_callback = lambda _, name, __: self.names.append(name)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_port
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    def until(self, kind: str) -> bool:
        """Wait for a message of a type."""
        with self.arrived:
            return self.arrived.wait_for(
                lambda: any(json.loads(body)["type"] == kind for *_, body in self.requests), 60
            )

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def app() -> Iterator[Lab]:
    with lab(private_webhooks=True) as made:
        yield made


@pytest.fixture
def receive() -> Iterator[Callable[..., Receiver]]:
    opened: list[Receiver] = []

    def make(*args: Any) -> Receiver:
        opened.append(Receiver(*args))
        return opened[-1]

    yield make
    for each in opened:
        each.close()
