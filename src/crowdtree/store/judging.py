"""Folding what was learnt about workers into their rows, and pausing the unreliable."""

from __future__ import annotations

from typing import Any

import numpy as np
from sqlalchemy.engine import Connection

from crowdtree.learn.book import WorkerBook
from crowdtree.problem import DASH, Problem
from crowdtree.store import statements as sql
from crowdtree.store.database import Sql, fetch, run, run_many, run_one
from crowdtree.store.desk import Desk
from crowdtree.store.reliability import expected_right
from crowdtree.store.work import TAKEN_BACK, Loaded

__all__ = ["fold"]

AT_ONCE = 5000
UNRELIABLE = "reliability"
"""How the reason of a pause begins that the server decided by itself."""
COUNTS = ("gold_right", "gold_asked", "agreed", "judged")
DROP_PENDING = Sql(
    """DELETE FROM judgements WHERE id IN
    (SELECT id FROM judgements WHERE worker_id = :worker {skip judgements})"""
)
ANY_PENDING = Sql("SELECT 1 FROM judgements WHERE worker_id = :worker LIMIT 1")
_STANDS = """NOT EXISTS (SELECT 1 FROM answers AS later WHERE later.lease_id = answers.lease_id
    AND later.kind = 'undo' AND later.id > answers.id)"""
TAUGHT = Sql(
    f"""SELECT answers.question, answers.value, items.gold AS cls, 0.0 AS error, 1 AS gold,
    answers.at AS at, answers.id AS id FROM answers JOIN items ON items.id = answers.item_id
    WHERE answers.worker_id = :worker AND answers.fate = 'gold' AND answers.kind = 'answer'
    AND {_STANDS}
    UNION ALL SELECT answers.question, answers.value, labels.label, labels.posterior_error, 0,
    labels.at, answers.id FROM answers JOIN items ON items.id = answers.item_id
    JOIN labels ON labels.item_id = answers.item_id
    WHERE answers.worker_id = :worker AND answers.fate = 'counted' AND items.status = 2
    AND {_STANDS} ORDER BY at, id"""
)


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
    rows = []
    for row in workers:
        lines: list[Any] | None = found[row[0]]
        before = row
        if any(line[4] == TAKEN_BACK for line in found[row[0]]):
            lines, before = taught(connection, row[0]), blank(row)
        if lines is not None:
            rows.append(_judged(campaigns[row[1]], books[row[1]], before, lines))
    run_many(connection, sql.SAVE_WORKER, rows)
    return len(taken) == AT_ONCE


def blank(row: Any) -> tuple[Any, ...]:
    """Make a worker's row as if nothing had been learnt, and not paused for what was."""
    number, campaign, status, reason, *_ = row
    if status == "paused" and reason.startswith(UNRELIABLE):
        status, reason = "active", ""
    return (number, campaign, status, reason, 0.0, 0.0, *(0 for _ in COUNTS))


def taught(connection: Connection, worker: int) -> list[Any] | None:
    """Read all that the log teaches about a worker, in order; none while more is coming in.

    A step of learning cannot be taken back, so after an undo the worker is learnt anew.
    """
    run(connection, DROP_PENDING, {"worker": worker})  # they are in the log as well
    lines = [tuple(row)[:5] for row in fetch(connection, TAUGHT, worker=worker)]
    if run_one(connection, ANY_PENDING, worker=worker) is None:
        return lines
    again = {"worker_id": worker, "question": 0, "value": 0, "cls": 0, "error": 0.0}
    run_many(connection, sql.ADD_JUDGEMENT, [{**again, "gold": TAKEN_BACK}])
    return None


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
    return "paused", f"{UNRELIABLE} {right:.0%} is below {least:.0%}"
