"""The status of workers: the only place that pauses, blocks and reactivates them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from sqlalchemy.engine import Connection

from crowdtree.server.reasons import WorkerReason
from crowdtree.server.store.db.sql import run
from crowdtree.server.store.db.statements import RELEASE_LEASES
from crowdtree.server.store.db.tables import workers

WorkerStatus = Literal["active", "paused", "blocked"]


def change_status(
    connection: Connection,
    ids: Collection[int],
    status: WorkerStatus,
    reason: WorkerReason = WorkerReason.NONE,
    detail: str = "",
) -> None:
    """Change the status of workers; what they hold is released unless they are active."""
    change = workers.update().where(workers.c.id.in_(ids))
    connection.execute(change.values(status=status, reason=reason, reason_detail=detail))
    if status != "active":
        run(connection, RELEASE_LEASES, workers=list(ids))
