"""The HTTP server: Granian, which limits the size and the time of request heads by itself."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import socket
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from granian.http import HTTP1Settings
from granian.utils.proxies import wrap_asgi_with_proxy_headers

if TYPE_CHECKING:
    from granian.server.mp import MPServer

MAX_HEAD_BYTES = 64 * 2**10
HEAD_SECONDS = 10
"""How long a connection may take for a request line and its headers, also for the next one."""
MAX_CONNECTIONS = 65_536
"""Per process. Connections that send nothing are closed in time, so they must not use up all."""
STOP_SECONDS = 5
"""How long requests may take to end when the server stops."""
RETRY_SECONDS = 0.05
HEADS = HTTP1Settings(header_read_timeout=HEAD_SECONDS * 1000, max_buffer_size=MAX_HEAD_BYTES)
LOGGING = {
    "handlers": {},
    "formatters": {},
    "loggers": {"_granian": {"propagate": True}, "granian.access": {"propagate": True}},
}
"""Messages of the server are written as ours, to standard error."""


def http_server(address: str, port: int, processes: int = 1) -> MPServer:
    """Make a server whose processes listen on an IP address.

    ``serve(target_loader=load, wrap_loader=False)`` runs the applications that `load` makes, one
    in each process.
    """
    from granian.constants import HTTPModes, Interfaces, RuntimeModes
    from granian.log import LogLevels
    from granian.server.mp import MPServer

    # a fork would copy threads and connections of this process
    multiprocessing.set_start_method("spawn", force=True)
    return MPServer(
        "crowdtree",
        address,
        port,
        interface=Interfaces.ASGI,
        workers=processes,
        runtime_mode=RuntimeModes.st,
        http=HTTPModes.http1,
        http1_settings=HEADS,
        websockets=False,
        backlog=2048,
        backpressure=MAX_CONNECTIONS,
        workers_kill_timeout=STOP_SECONDS,
        log_level=LogLevels.warning,
        log_dictconfig=LOGGING,
    )


def behind_proxy(app: Callable[..., Any]) -> Callable[..., Any]:
    """Believe the proxies that the environment names when they say where a request comes from."""
    trusted = os.environ.get("FORWARDED_ALLOW_IPS", "127.0.0.1")
    wrapped: Callable[..., Any] = wrap_asgi_with_proxy_headers(app, trusted)
    return wrapped


def call_when_ready(act: Callable[[], object], address: str, port: int) -> None:
    """Call a function in a thread of its own once the server accepts connections."""

    def wait() -> None:
        while True:
            with contextlib.suppress(OSError), socket.create_connection((address, port)):
                break
            time.sleep(RETRY_SECONDS)
        act()

    threading.Thread(target=wait, daemon=True).start()
