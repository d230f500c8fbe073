"""The exclusions of a campaign, for the owner."""

from __future__ import annotations

from typing import TypedDict, cast

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.server.store.db.campaign_row import get_campaign
from crowdtree.server.store.db.tables import exclusions


class ExclusionRow(TypedDict):
    """Answers of a worker that are or were excluded; `lifted_at` is empty while they are.

    Lines of the log from `first_answer_id` to `last_answer_id`; `since` is the time that was asked
    for, if any.
    """

    id: int
    worker_id: int
    first_answer_id: int
    last_answer_id: int
    since: float | None
    at: float
    actor: str
    reason: str
    revision: int
    lifted_at: float | None
    lifted_revision: int | None


def list_exclusions(
    connection: Connection, number: int, worker: int | None = None
) -> list[ExclusionRow]:
    """List the exclusions of a campaign or of one of its workers, the first one first."""
    get_campaign(connection, number)
    columns = (exclusions.c[name] for name in ExclusionRow.__annotations__)
    query = sa.select(*columns).where(exclusions.c.campaign_id == number).order_by(exclusions.c.id)
    if worker is not None:
        query = query.where(exclusions.c.worker_id == worker)
    return [cast(ExclusionRow, dict(row._mapping)) for row in connection.execute(query)]
