"""Running the server: one process on SQLite, one or more on PostgreSQL."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from crowdtree.errors import CrowdtreeError
from crowdtree.store import Store, tokens
from crowdtree.web.site import Options

__all__ = ["Serving", "application", "owner_link", "run"]

VARIABLE = "CROWDTREE_SERVING"
LINK_SECONDS = 86_400.0


@dataclass(frozen=True)
class Serving:
    """Where and how to serve."""

    database: str = "crowdtree.db"
    host: str = "127.0.0.1"
    port: int = 8321
    processes: int = 1
    media: str | None = None
    secure_cookies: bool = False
    private_webhooks: bool = False
    trusted_hosts: tuple[str, ...] = ()
    access_log: bool = False
    joins_per_minute: int = 600

    @property
    def options(self) -> Options:
        """The application's options."""
        return Options(
            media=None if self.media is None else Path(self.media),
            secure_cookies=self.secure_cookies,
            private_webhooks=self.private_webhooks,
            trusted_hosts=self.trusted_hosts,
            joins_per_minute=self.joins_per_minute,
        )


def owner_link(store: Store, base: str) -> str:
    """Make the owner's one-time link."""
    token = store.write(
        lambda c: tokens.issue(c, "once", store.clock(), name="link", seconds=LINK_SECONDS)
    )
    return f"{base}/login?token={token}"


def application() -> Any:
    """Make the application of a server process, from what :func:`run` left in the environment."""
    from crowdtree.web.app import create_app

    values = json.loads(os.environ[VARIABLE])
    serving = Serving(**{**values, "trusted_hosts": tuple(values["trusted_hosts"])})
    _quiet(serving.access_log)
    return create_app(Store(serving.database), serving.options)


def run(serving: Serving, tell: Callable[[str], None]) -> None:
    """Serve until interrupted; `tell` gets the one-time owner link first."""
    import uvicorn

    if serving.processes > 1 and not serving.database.startswith("postgres"):
        raise CrowdtreeError(
            "serve: SQLite has one writer; use --database postgresql://... for --workers "
            f"{serving.processes}"
        )
    with Store(serving.database).opened() as store:
        tell(owner_link(store, f"http://{_shown(serving.host)}:{serving.port}"))
    os.environ[VARIABLE] = json.dumps(asdict(serving))
    uvicorn.run(
        "crowdtree.web.serve:application",
        factory=True,
        host=serving.host,
        port=serving.port,
        workers=serving.processes,
        log_level="warning",
        access_log=False,  # it would write tokens of links; Guard writes its own
        server_header=False,
        timeout_graceful_shutdown=5,
        h11_max_incomplete_event_size=64 * 1024,
    )


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _quiet(access_log: bool) -> None:
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s %(message)s")
    if access_log:
        logging.getLogger("crowdtree.access").setLevel(logging.INFO)
