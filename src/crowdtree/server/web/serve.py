"""Running the server: one process on SQLite, one or more on PostgreSQL."""

from __future__ import annotations

import atexit
import contextlib
import errno
import gc
import json
import os
import socket
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from sqlalchemy.engine import Connection

from crowdtree.core.errors import CrowdtreeError
from crowdtree.server.media import open_media
from crowdtree.server.store import Store
from crowdtree.server.store.db.activity import COMMAND_LINE, acting
from crowdtree.server.store.owner import owners
from crowdtree.server.store.owner.tokens import ROOT
from crowdtree.server.web.app import create_app
from crowdtree.server.web.logs import LogFormat, configure
from crowdtree.server.web.processes import SharedPort, allow_connections, end_with_parent
from crowdtree.server.web.request_metrics import SHARED
from crowdtree.server.web.secret_key import SecretKey
from crowdtree.server.web.state import Options
from crowdtree.server.web.stopping import before_stopping

VARIABLE = "CROWDTREE_SERVING"
LINK_SECONDS = 86_400.0
MOST_PORT = 65_535
EVERYWHERE = ("0.0.0.0", "::")
YOUNG = 20_000
"""New objects after which Python looks for unused ones; requests make few that need it."""


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

    @property
    def options(self) -> Options:
        """The application's options."""
        return Options(
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
    configure(serving.access_log, serving.log_format)
    allow_connections()
    end_with_parent()
    store = Store(serving.database)
    atexit.register(store.close)
    app = create_app(store, serving.options)
    before_stopping(app.state.crowdtree.stop)
    # What is there now stays: going through it again and again stops all requests for 50 ms.
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG)
    return app


def run(serving: Serving, announce: Callable[[str], None]) -> None:
    """Serve until interrupted; `announce` gets the owner's one-time link when all is ready.

    The port is bound first, so that a browser that opens the link at once waits for the server.
    """
    if serving.processes > 1 and not serving.database.startswith("postgres"):
        raise CrowdtreeError(
            "serve: SQLite has one writer; use --database postgresql://... for --processes "
            f"{serving.processes}"
        )
    with _listen(serving.host, serving.port) as listener:
        serving = replace(serving, port=listener.getsockname()[1])
        with Store(serving.database).opened() as store, acting(COMMAND_LINE):
            _protect(serving.options)
            link = owner_link(store, serving.base, retire=True)
        os.environ[VARIABLE] = json.dumps(asdict(serving))
        announce(link)
        configure(serving.access_log, serving.log_format)
        _serve(serving, listener)


def _protect(options: Options) -> None:
    """Refuse a key or media that cannot be used, and let nobody else read the media."""
    SecretKey(options.key_file)
    media = open_media(options.media)
    if media is not None:
        media.check()


def _serve(serving: Serving, listener: socket.socket) -> None:
    import uvicorn
    from uvicorn.supervisors import Multiprocess

    options: dict[str, Any] = {
        "factory": True,
        "log_level": "warning",
        "log_config": None,  # its lines are written as ours
        "access_log": False,  # it would log the tokens of links; Guard writes its own
        "server_header": False,
        "timeout_graceful_shutdown": 5,
        "h11_max_incomplete_event_size": 64 * 1024,
        "http": "crowdtree.server.web.connections:GuardedProtocol",
    }
    config = uvicorn.Config(
        "crowdtree.server.web.serve:application", workers=serving.processes, **options
    )
    if serving.processes > 1:
        listener.close()
        with (
            SharedPort(listener.family, (serving.host, serving.port)) as port,
            tempfile.TemporaryDirectory(prefix="crowdtree-metrics-") as folder,
        ):
            os.environ[SHARED] = folder
            Multiprocess(config, [port]).run()
        return
    server = uvicorn.Server(config)
    with contextlib.suppress(KeyboardInterrupt):  # the usual end, after everything is closed
        server.run(sockets=[listener])


def _listen(host: str, port: int) -> socket.socket:
    """Bind the port, or raise an error that says why not. Port 0 means any free port."""
    if not 0 <= port <= MOST_PORT:
        raise CrowdtreeError(f"serve: --port {port} must be between 0 and {MOST_PORT}")
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(2048)
    except OSError as error:
        listener.close()
        raise CrowdtreeError(f"serve: {_why(error, host, port)}") from None
    return listener


def _why(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"port {port} of {host} is in use, maybe by another crowdtree; "
            "stop that one or choose another port with --port"
        )
    if error.errno == errno.EACCES:
        return f"port {port} needs administrator rights; choose one above 1023 with --port"
    return f"cannot listen on --host {host}: {(error.strerror or str(error)).lower()}"
