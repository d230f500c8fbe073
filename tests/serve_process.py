"""A server that a test can disturb through files, with its process of rules.

The file of the clock holds the seconds to add to the time. A file beside it, named after it with
``.trap``, kills all processes of the first server that is in the middle of an adaptation; with
``.trap-rules``, the process of the rules in the middle of what it writes next.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any


def set_traps(offset: str) -> None:
    """Die at the worst time once a file is there, and take the file away."""
    import sqlalchemy as sa

    from crowdtree.server.rules.revised_items import RevisedItems
    from crowdtree.server.store import Store
    from crowdtree.server.store.db.tables import revisions

    mine = (revisions.c.actor == "server", revisions.c.finished_at.is_(None))
    unfinished = sa.select(revisions.c.campaign_id, revisions.c.number).where(*mine)
    plain, begun = RevisedItems.apply, set[Any]()

    def trapped(self: RevisedItems, connection: Any, campaign: Any, finding: int) -> bool:
        found = {tuple(row) for row in connection.execute(unfinished)}
        if begun & found and taken(f"{offset}.trap"):
            os.killpg(0, signal.SIGKILL)
        begun.update(found)
        return plain(self, connection, campaign, finding)

    RevisedItems.apply = trapped  # type: ignore[method-assign]
    write = Store.write

    def write_or_die(self: Store, function: Any) -> Any:
        def apply(connection: Any) -> Any:
            result = function(connection)
            if taken(f"{offset}.trap-rules"):
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return write(self, apply)

    Store.write = write_or_die  # type: ignore[method-assign]


def taken(trap: str) -> bool:
    """Whether a file was there, which is taken away."""
    try:
        Path(trap).unlink()
    except FileNotFoundError:
        return False
    return True


def clock_of(offset: str) -> Callable[[], float]:
    """Make a clock that a file moves."""

    def clock() -> float:
        if not offset:
            return time.time()
        try:
            return time.time() + float(Path(offset).read_text() or 0)
        except (OSError, ValueError):  # being written
            return time.time()

    return clock


def run_rules(database: str, offset: str) -> None:
    """Run the rules, as a process of its own."""
    from crowdtree.server.rules import revised_items
    from crowdtree.server.rules.runner import Runner
    from crowdtree.server.store import Store
    from crowdtree.server.web.processes import run_until_stopped

    revised_items.AT_ONCE = 3  # so that servers are killed in the middle of a revision
    if offset:
        set_traps(offset)
    with Store(database, clock=clock_of(offset), rng=0).opened() as store:
        run_until_stopped(Runner(store))


def application(database: str, offset: str, options: str) -> Any:
    """Make the application, in the process that runs it."""
    from crowdtree.server.store import Store
    from crowdtree.server.web.app import create_app
    from crowdtree.server.web.serve import behind_proxy

    store = Store(database, clock=clock_of(offset), rng=0)
    return behind_proxy(create_app(store, **json.loads(options)))


def main() -> None:
    from crowdtree.server.web.processes import KeptProcess
    from crowdtree.server.web.serve import http_server

    database, port, offset, options = sys.argv[1:]
    load = partial(application, database, offset, options)
    with closing(KeptProcess(run_rules, database, offset)):
        http_server("127.0.0.1", int(port)).serve(target_loader=load, wrap_loader=False)


if __name__ == "__main__":
    main()
