"""A server process that a test can disturb through files.

The file of the clock holds the seconds to add to the time. A file beside it, named after it with
``.trap``, kills the first process that is in the middle of an adaptation.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any


def set_trap(trap: Path) -> None:
    """Die between two transactions of an adaptation once the file is there, and take it away."""
    import sqlalchemy as sa

    from crowdtree.server.rules.revised_items import Revising
    from crowdtree.server.store.db.tables import revisions

    mine = (revisions.c.actor == "server", revisions.c.finished_at.is_(None))
    unfinished = sa.select(revisions.c.campaign_id, revisions.c.number).where(*mine)
    plain, begun = Revising.round, set[Any]()

    def trapped(self: Revising, connection: Any) -> dict[int, bool]:
        found = {tuple(row) for row in connection.execute(unfinished)}
        if begun & found and trap.exists():
            trap.unlink()
            os.killpg(0, signal.SIGKILL)
        begun.update(found)
        return plain(self, connection)

    Revising.round = trapped  # type: ignore[method-assign]


def application(database: str, offset: str, options: str) -> Any:
    """Make the application, in the process that runs it."""
    from crowdtree.server.rules import revised_items
    from crowdtree.server.store import Store
    from crowdtree.server.web.app import create_app
    from crowdtree.server.web.http_server import behind_proxy

    revised_items.AT_ONCE = 3  # so that servers are killed in the middle of a revision
    if offset:
        set_trap(Path(f"{offset}.trap"))

    def clock() -> float:
        if not offset:
            return time.time()
        try:
            return time.time() + float(Path(offset).read_text() or 0)
        except (OSError, ValueError):  # being written
            return time.time()

    store = Store(database, clock=clock, rng=0)
    return behind_proxy(create_app(store, **json.loads(options)))


def main() -> None:
    from crowdtree.server.web.http_server import http_server

    database, port, offset, options = sys.argv[1:]
    load = partial(application, database, offset, options)
    http_server("127.0.0.1", int(port)).serve(target_loader=load, wrap_loader=False)


if __name__ == "__main__":
    main()
