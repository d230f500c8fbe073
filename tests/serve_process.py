"""A server process whose clock a test can move: a file holds the seconds to add."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path


def main() -> None:
    import uvicorn

    from crowdtree.store import Store
    from crowdtree.store.background import revising
    from crowdtree.web import create_app

    database, port, offset, options = sys.argv[1:]
    revising.AT_ONCE = 3  # so that servers are killed in the middle of a revision

    def clock() -> float:
        if not offset:
            return time.time()
        try:
            return time.time() + float(Path(offset).read_text() or 0)
        except (OSError, ValueError):  # being written
            return time.time()

    store = Store(database, clock=clock, rng=0)
    app = create_app(store, **json.loads(options))
    uvicorn.run(app, host="127.0.0.1", port=int(port), log_level="error", access_log=False)


if __name__ == "__main__":
    main()
