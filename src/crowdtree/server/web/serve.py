"""Running the server: one process for requests on SQLite, one or more on PostgreSQL.

A further process runs the rules of the campaigns. The HTTP server is Granian, which limits the
size and the time of request heads by itself.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import gc
import json
import multiprocessing
import os
import socket
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from granian.http import HTTP1Settings
from granian.utils.proxies import wrap_asgi_with_proxy_headers
from sqlalchemy.engine import Connection
from starlette.types import ASGIApp, Receive, Scope, Send

from crowdtree.core.errors import CrowdtreeError
from crowdtree.server.media import open_media
from crowdtree.server.store import Store
from crowdtree.server.store.db.activity import COMMAND_LINE, acting
from crowdtree.server.store.owner import owners
from crowdtree.server.store.tokens import ROOT
from crowdtree.server.web.processes import (
    SHARED,
    KeptProcess,
    LogFormat,
    allow_connections,
    configure_logs,
    end_with_parent,
    run_rules,
)
from crowdtree.server.web.secret_key import SecretKey

if TYPE_CHECKING:
    from fastapi import FastAPI
    from granian.server.mp import MPServer

VARIABLE = "CROWDTREE_SERVING"
LINK_SECONDS = 86_400.0
MAX_PORT = 65_535
EVERYWHERE = ("0.0.0.0", "::")
YOUNG = 20_000
"""New objects after which Python looks for unused ones; requests make few that need it."""
MAX_HEAD_BYTES = 64 * 2**10
HEAD_SECONDS = 10
"""How long a connection may take for a request line and its headers, also for the next one."""
MAX_CONNECTIONS = 65_536
"""Per process. Connections that send nothing are closed in time, so they must not use up all."""
STOP_SECONDS = 5
"""How long requests may take to end when the server stops."""
RETRY_SECONDS = 0.05
FORWARDED = (b"x-forwarded-for", b"x-forwarded-proto")
HEADS = HTTP1Settings(header_read_timeout=HEAD_SECONDS * 1000, max_buffer_size=MAX_HEAD_BYTES)
LOGGING = {
    "handlers": {},
    "formatters": {},
    "loggers": {"_granian": {"propagate": True}, "granian.access": {"propagate": True}},
}
"""Messages of the server are written as ours, to standard error."""


@dataclass(frozen=True)
class Serving:
    """Where and how to serve."""

    database: str = "crowdtree.db"
    host: str = "127.0.0.1"
    port: int = 8321
    processes: int = 1
    media: str | None = None
    key_file: str | None = None
    secure_cookies: bool = False
    private_webhooks: bool = False
    trusted_hosts: tuple[str, ...] = ()
    access_log: bool = False
    log_format: LogFormat = "text"
    joins_per_minute: int = 600
    url: str = ""

    def protect(self) -> None:
        """Refuse a key or media that cannot be used, and let nobody else read the media."""
        SecretKey(None if self.key_file is None else Path(self.key_file))
        media = open_media(self.media)
        if media is not None:
            media.check()

    def make_app(self, store: Store) -> FastAPI:
        """Make the application on a store."""
        from crowdtree.server.web.app import create_app  # the first process needs little of it

        return create_app(
            store,
            media=self.media,
            key_file=None if self.key_file is None else Path(self.key_file),
            secure_cookies=self.secure_cookies,
            private_webhooks=self.private_webhooks,
            trusted_hosts=self.trusted_hosts,
            joins_per_minute=self.joins_per_minute,
            url=self.url,
        )

    @property
    def base(self) -> str:
        """The address at which the owner reaches the server."""
        host = "127.0.0.1" if self.host in EVERYWHERE else self.host
        return self.url or f"http://{f'[{host}]' if ':' in host else host}:{self.port}"


def beside(database: str, end: str) -> str:
    """Name a file or folder of a database: beside an SQLite file, else in the current folder.

    >>> beside("birds.db", "-media"), beside("sqlite:///data/b.db", ".key")
    ('birds-media', 'data/b.key')
    >>> beside("postgresql://h", "-media")
    'crowdtree-media'
    """
    scheme, found, rest = database.partition("://")
    if found and scheme.partition("+")[0] != "sqlite":
        return f"crowdtree{end}"
    path = Path(rest.removeprefix("/") if found else database)
    return str(path.with_name(f"{path.stem}{end}")) if path.name else f"crowdtree{end}"


def owner_link(
    store: Store,
    base: str,
    seconds: float = LINK_SECONDS,
    retire: bool = False,
    name: str = ROOT,
) -> str:
    """Make a one-time link of an owner; `retire` ends those that were never used."""

    def make(connection: Connection) -> str:
        owner = owners.find(connection, name)
        return owners.make_link(connection, owner, store.clock(), seconds, retire)

    return f"{base}/login?token={store.write(make)}"


def application() -> Any:
    """Make the application of a server process, as :func:`run` configured it in the environment."""
    values = json.loads(os.environ[VARIABLE])
    serving = Serving(**{**values, "trusted_hosts": tuple(values["trusted_hosts"])})
    configure_logs(serving.access_log, serving.log_format)
    allow_connections()
    end_with_parent()
    store = Store(serving.database)
    atexit.register(store.close)
    app = serving.make_app(store)
    # What is there now stays: going through it again and again stops all requests for 50 ms.
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG)
    return behind_proxy(app)


def run(serving: Serving, announce: Callable[[str], None]) -> None:
    """Serve until interrupted; `announce` gets the owner's one-time link when all is ready."""
    if serving.processes > 1 and not serving.database.startswith("postgres"):
        raise CrowdtreeError(
            "serve: SQLite has one writer; use --database postgresql://... for --processes "
            f"{serving.processes}"
        )
    address, port = free_address(serving.host, serving.port)
    serving = replace(serving, port=port)
    with Store(serving.database).opened() as store, acting(COMMAND_LINE):
        serving.protect()
        link = owner_link(store, serving.base, retire=True)
    os.environ[VARIABLE] = json.dumps(asdict(serving))
    configure_logs(serving.access_log, serving.log_format)
    with closing(KeptProcess(run_rules, serving.database, serving.log_format)):
        _serve(serving, address, lambda: announce(link))


def _serve(serving: Serving, address: str, announce: Callable[[], None]) -> None:
    with contextlib.ExitStack() as stack:
        if serving.processes > 1:
            folder = tempfile.TemporaryDirectory(prefix="crowdtree-metrics-")
            os.environ[SHARED] = stack.enter_context(folder)
        server = http_server(address, serving.port, serving.processes)
        call_when_ready(announce, address, serving.port)
        server.serve(target_loader=application, wrap_loader=False)


def free_address(host: str, port: int) -> tuple[str, int]:
    """Find the IP address and port to serve at, or say why not. Port 0 means any free port."""
    if not 0 <= port <= MAX_PORT:
        raise CrowdtreeError(f"serve: --port {port} must be between 0 and {MAX_PORT}")
    try:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
            probe.listen()
            found = probe.getsockname()
    except OSError as error:
        raise CrowdtreeError(f"serve: {_why(error, host, port)}") from None
    return found[0], found[1]


def _why(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"port {port} of {host} is in use, maybe by another crowdtree; "
            "stop that one or choose another port with --port"
        )
    if error.errno == errno.EACCES:
        return f"port {port} needs administrator rights; choose one above 1023 with --port"
    return f"cannot listen on --host {host}: {(error.strerror or str(error)).lower()}"


# --------------------------------------------------------------------------- HTTP server


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


def behind_proxy(app: ASGIApp) -> ASGIApp:
    """Believe the proxies that the environment names when they say where a request comes from."""
    trusted = os.environ.get("FORWARDED_ALLOW_IPS", "127.0.0.1")
    wrapped: ASGIApp = wrap_asgi_with_proxy_headers(app, trusted)

    async def choose(scope: Scope, receive: Receive, send: Send) -> None:
        names = {name for name, _ in scope.get("headers", ())}
        await (app if names.isdisjoint(FORWARDED) else wrapped)(scope, receive, send)

    return choose


def call_when_ready(act: Callable[[], object], address: str, port: int) -> None:
    """Call a function in a thread of its own once the server accepts connections."""

    def wait() -> None:
        while True:
            with contextlib.suppress(OSError), socket.create_connection((address, port)):
                break
            time.sleep(RETRY_SECONDS)
        act()

    threading.Thread(target=wait, daemon=True).start()
