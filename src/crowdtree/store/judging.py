"""Folding what was learnt about workers into their rows, and pausing the unreliable."""

from __future__ import annotations

from typing import Any

import numpy as np
from sqlalchemy.engine import Connection

from crowdtree.learn.book import WorkerBook
from crowdtree.problem import DASH, Problem
from crowdtree.store import statements as sql
from crowdtree.store.database import fetch, run_many
from crowdtree.store.desk import Desk
from crowdtree.store.reliability import expected_right
from crowdtree.store.work import Loaded

__all__ = ["fold"]

AT_ONCE = 5000
COUNTS = ("gold_right", "gold_asked", "agreed", "judged")


def fold(connection: Connection, desk: Desk) -> bool:
    """Fold the waiting judgements; true when there may be more."""
    taken = fetch(connection, sql.TAKE_JUDGEMENTS, most=AT_ONCE)
    found: dict[int, list[Any]] = {}
    for row in taken:
        found.setdefault(row[0], []).append(row[1:])
    if not found:
        return False
    workers = fetch(connection, sql.LOCK_WORKERS, ids=sorted(found))
    numbers = sorted({row[1] for row in workers})
    campaigns = {
        row[0]: desk.campaign(connection, row)
        for row in fetch(connection, sql.CAMPAIGNS, ids=numbers)
    }
    books = {n: WorkerBook(campaign.problem) for n, campaign in campaigns.items()}
    rows = [_judged(campaigns[row[1]], books[row[1]], row, found[row[0]]) for row in workers]
    run_many(connection, sql.SAVE_WORKER, rows)
    return len(taken) == AT_ONCE


def _judged(campaign: Loaded, book: WorkerBook, row: Any, found: list[Any]) -> dict[str, Any]:
    """Take judgements on a worker in, and pause one who is not reliable enough."""
    number, _, status, reason, skill, precision, *before = row
    counts = dict(zip(COUNTS, before, strict=True))
    entry = book.resume(number, skill, precision)
    for question, value, cls, error, gold in found:
        book.update(number, question, value, posterior(campaign.problem, cls, error))
        truth = int(campaign.problem.outcome[question, cls])
        if truth != DASH:
            counts["gold_asked" if gold else "judged"] += 1
            counts["gold_right" if gold else "agreed"] += int(value == truth)
    status, reason = _status(campaign, status, reason, entry.skill, counts)
    saved = {"id": number, "skill": entry.skill, "precision": entry.precision}
    return {**saved, **counts, "status": status, "status_reason": reason}


def posterior(problem: Problem, cls: int, error: float) -> Any:
    """Posterior of a labelled item, as far as it is kept: the label's error over the others."""
    made = np.full(problem.n_classes, error / (problem.n_classes - 1))
    made[cls] = 1 - error
    return made


def _status(
    campaign: Loaded, status: str, reason: str, skill: float, counts: dict[str, int]
) -> tuple[str, str]:
    least, after = campaign.settings.pause_below, campaign.settings.pause_after
    if status != "active" or least is None or counts["gold_asked"] + counts["judged"] < after:
        return status, reason
    right = expected_right(campaign.problem, skill)
    if right >= least:
        return status, reason
    return "paused", f"reliability {right:.0%} is below {least:.0%}"
