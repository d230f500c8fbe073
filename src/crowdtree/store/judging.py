"""Folding what was learnt about workers into their rows, and pausing the unreliable."""

from __future__ import annotations

from collections import Counter
from typing import Any

from sqlalchemy.engine import Connection

from crowdtree.store import statements as sql
from crowdtree.store.database import fetch, run_many
from crowdtree.store.desk import JUDGED, Desk
from crowdtree.store.reliability import reliability
from crowdtree.store.work import Loaded

__all__ = ["fold"]

AT_ONCE = 5000


def fold(connection: Connection, desk: Desk) -> bool:
    """Fold the waiting judgements; true when there may be more."""
    taken = fetch(connection, sql.TAKE_JUDGEMENTS, most=AT_ONCE)
    gains: dict[int, Counter[str]] = {}
    for worker, *values in taken:
        gains.setdefault(worker, Counter()).update(dict(zip(JUDGED, values, strict=True)))
    if not gains:
        return False
    workers = fetch(connection, sql.LOCK_WORKERS, ids=sorted(gains))
    numbers = sorted({row[1] for row in workers})
    campaigns = {
        row[0]: desk.campaign(connection, row)
        for row in fetch(connection, sql.CAMPAIGNS, ids=numbers)
    }
    rows = [_judged(campaigns[row[1]], row, gains[row[0]]) for row in workers]
    run_many(connection, sql.SAVE_WORKER, rows)
    return len(taken) == AT_ONCE


def _judged(campaign: Loaded, row: Any, gains: Counter[str]) -> dict[str, Any]:
    """Add gains to a worker, and pause one who is not reliable enough."""
    number, _, status, reason, *before = row
    counts = {name: had + gains[name] for name, had in zip(JUDGED, before, strict=True)}
    mean_error = float(campaign.problem.worker_error.mean())
    asked = counts["gold_asked"] + counts["judged"]
    found = reliability(mean_error, counts["gold_right"] + counts["agreed"], asked)
    least, after = campaign.settings.pause_below, campaign.settings.pause_after
    if status == "active" and least is not None and asked >= after and found.right < least:
        status, reason = "paused", f"reliability {found.right:.0%} is below {least:.0%}"
    return {
        "id": number,
        **counts,
        "skill": found.skill,
        "status": status,
        "status_reason": reason,
    }
