"""Compare the stored state of a campaign's monitor with the replay of the log."""

from __future__ import annotations

import json
from collections.abc import Iterator

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.policies.monitor import Monitor
from crowdtree.server.store.db.tables import monitors, revisions
from crowdtree.server.store.queries.monitor_log import (
    LoggedPast,
    Tested,
    lines_after,
    take,
    tested_policy,
)
from crowdtree.server.store.replay.tolerance import same

NUMBERS = ("totals", "log_weight", "mass", "shares", "scores")
PARTS = ("answers", "items", "keys", "alarms")
TOLERANCE = 1e-6


def check_monitor(connection: Connection, number: int) -> Iterator[str]:
    """Replay the log up to where the monitor has read it, and compare."""
    row = connection.execute(
        sa.select(monitors).where(monitors.c.campaign_id == number)
    ).one_or_none()
    if row is None or not row.state:
        return
    stored = json.loads(row.state)
    after = connection.execute(
        sa.select(revisions.c.after_answer_id).where(
            revisions.c.campaign_id == number, revisions.c.number == row.tested
        )
    ).scalar_one_or_none()
    past = LoggedPast(connection, number, Tested(row.tested, after or 0))
    monitor = Monitor(tested_policy(connection, number, row.tested), past=past)
    position = past.after
    while lines := lines_after(connection, number, position, stored["position"]):
        for line in lines:
            take(monitor, past, line)
        position = lines[-1].id
    replayed = json.loads(json.dumps(monitor.to_dict()))
    found = stored["monitor"]
    parts = ((found[name], replayed[name]) for name in (*NUMBERS, *PARTS))
    if not all(same(*pair, TOLERANCE, TOLERANCE) for pair in parts):
        yield "what its answers say about its table is not the replay of its log"
    shown = [{k: alarm[k] for k in alarm if k != "text"} for alarm in json.loads(row.alarms)]
    if row.answers != found["answers"] or shown != found["alarms"]:
        yield "the alarms that are shown are not those of its answers"
