"""Learning how reliable workers are, and pausing those who are not reliable enough."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.engine import Connection

from crowdtree.core.problem import Problem
from crowdtree.learning.worker_tracker import WorkerTracker
from crowdtree.server.reasons import WorkerReason
from crowdtree.server.rules.rule import Rule
from crowdtree.server.store.db import statements as sql
from crowdtree.server.store.db.sql import Query, Sql, exists, fetch, fetch_ids, run, run_many
from crowdtree.server.store.db.statements import (
    RELEARN,
    CampaignState,
    Judgement,
    WorkerRecord,
    relearn,
)
from crowdtree.server.store.owner.people import change_status
from crowdtree.server.store.reliability import (
    expected_right,
    outcome_counts,
    skill_variance,
    used_skill,
)
from crowdtree.server.store.serving.campaign import ServedCampaign
from crowdtree.server.store.types import ItemStatus

AT_ONCE = 1000
"""Judgements of one transaction, for which answers wait some 10 ms. Records that are recomputed
from the log take as many as they have; once there are that many, the others wait for the next."""
MOST_COMPARED = 1000
"""Workers by whom it is estimated how much skills differ, the best known ones."""


class Skill(NamedTuple):
    """What is known about the skill of a worker."""

    skill: float
    precision: float


class Judged(NamedTuple):
    """A worker and new evidence, in order."""

    record: WorkerRecord
    judgements: list[Judgement]


SKILLS = Query(
    Skill,
    """SELECT skill, precision FROM workers WHERE campaign_id = :campaign AND precision > 0
    ORDER BY precision DESC LIMIT :most""",
)
DROP_PENDING = Sql(
    """DELETE FROM judgements WHERE id IN
    (SELECT id FROM judgements WHERE worker_id = :worker {skip judgements})"""
)
WITH_JUDGEMENTS = Sql(
    "SELECT DISTINCT workers.campaign_id FROM judgements JOIN workers ON workers.id = worker_id"
)
TAKE_JUDGEMENTS = Query(
    Judgement,
    """DELETE FROM judgements WHERE id IN (SELECT judgements.id FROM judgements
    JOIN workers ON workers.id = judgements.worker_id WHERE workers.campaign_id = :campaign
    ORDER BY judgements.id LIMIT :most {skip judgements})
    RETURNING worker_id, question, value, cls, error, gold""",
)
ANY_PENDING = Sql("SELECT 1 FROM judgements WHERE worker_id = :worker LIMIT 1")
JUDGEMENTS_IN_LOG = Query(
    Judgement,
    f"""SELECT worker_id, question, value, cls, error, gold FROM (
    SELECT answers.worker_id, answers.question, answers.value, items.gold AS cls, 0.0 AS error,
    1 AS gold, answers.at AS at, answers.id AS id
    FROM answers JOIN items ON items.id = answers.item_id
    WHERE answers.worker_id = :worker AND answers.fate = 'gold' AND answers.kind = 'answer'
    UNION ALL SELECT answers.worker_id, answers.question, answers.value, labels.label,
    labels.posterior_error, 0, labels.at, answers.id
    FROM answers JOIN items ON items.id = answers.item_id
    JOIN labels ON labels.item_id = answers.item_id
    WHERE answers.worker_id = :worker
    AND COALESCE(answers.revised_fate, answers.fate) = 'counted'
    AND items.status = {ItemStatus.LABELLED:d}) AS found ORDER BY at, id""",
)


class Reliability(Rule[int]):
    """Learns from judgements of answers how reliable workers are."""

    name = "reliability"

    def campaigns(self, connection: Connection) -> Sequence[CampaignState]:
        """List the campaigns with judgements that wait, whatever their status."""
        ids = fetch_ids(connection, WITH_JUDGEMENTS)
        return fetch(connection, sql.CAMPAIGNS, ids=ids) if ids else []

    def look(self, _connection: Connection, _campaign: CampaignState) -> int:
        """Return how many judgements to take at once."""
        return AT_ONCE

    def apply(self, connection: Connection, campaign: CampaignState, finding: int) -> bool:
        """Apply waiting judgements to the workers' rows."""
        taken = fetch(connection, TAKE_JUDGEMENTS, campaign=campaign.id, most=finding)
        by_worker: dict[int, list[Judgement]] = {}
        for judgement in taken:
            by_worker.setdefault(judgement.worker_id, []).append(judgement)
        if not by_worker:
            return False
        records = fetch(connection, sql.LOCK_RECORDS, ids=sorted(by_worker))
        (state,) = fetch(connection, sql.CAMPAIGNS, ids=[campaign.id])
        loaded = self.cache.campaign(connection, state)
        judged, later = _evidence(connection, loaded, records, by_worker)
        rows, spread = [], _spread(connection, campaign.id)
        for learned in _learned(loaded, judged):
            used = used_skill(learned.skill, learned.precision, spread)
            rows.append(learned._replace(used_skill=used))
            _pause_if_unreliable(connection, loaded, learned)
        run_many(connection, sql.SAVE_RECORD, (row._asdict() for row in rows))
        run_many(connection, sql.ADD_JUDGEMENT, (row._asdict() for row in later))
        return bool(later) or len(taken) == finding


def _evidence(
    connection: Connection,
    campaign: ServedCampaign,
    records: Sequence[WorkerRecord],
    by_worker: Mapping[int, list[Judgement]],
) -> tuple[list[Judged], list[Judgement]]:
    """Read the evidence about workers; with the judgements that are left for the next time."""
    judged, later, read = [], [], 0
    for record in records:
        judgements: list[Judgement] | None = by_worker[record.id]
        if any(judgement.gold == RELEARN for judgement in by_worker[record.id]):
            if read > AT_ONCE:
                later.append(relearn(record.id))
                continue
            record = _blank(connection, campaign, record)
            judgements = _from_log(connection, record.id)
            read += len(judgements or ())
        if judgements is not None:
            judged.append(Judged(record, judgements))
    return judged, later


def _spread(connection: Connection, campaign_id: int) -> float:
    """Estimate how much the skills of the people of a campaign differ."""
    rows = fetch(connection, SKILLS, campaign=campaign_id, most=MOST_COMPARED)
    return skill_variance([row.skill for row in rows], [row.precision for row in rows])


def _blank(connection: Connection, campaign: ServedCampaign, record: WorkerRecord) -> WorkerRecord:
    """Forget what was learned about a worker, and end a pause that followed from it.

    Excluded answers are no evidence any more, but no reason to go on either.
    """
    if record.reason == WorkerReason.UNRELIABLE and not campaign.has_excluded(record.id):
        change_status(connection, [record.id], "active")
        record = record._replace(status="active")
    return WorkerRecord(*record[:4], 0.0, 0.0, 0.0, 0, 0, 0, 0)


def _from_log(connection: Connection, worker: int) -> list[Judgement] | None:
    """Read all evidence about a worker from the log; ``None`` while more is being written.

    A step of learning cannot be reversed: where evidence no longer holds, the record is recomputed.
    """
    run(connection, DROP_PENDING, worker=worker)  # they are in the log as well
    found = fetch(connection, JUDGEMENTS_IN_LOG, worker=worker)
    if not exists(connection, ANY_PENDING, worker=worker):
        return found
    run_many(connection, sql.ADD_JUDGEMENT, [relearn(worker)._asdict()])
    return None


def _learned(campaign: ServedCampaign, judged: list[Judged]) -> list[WorkerRecord]:
    """Learn from judgements."""
    problem = campaign.problem
    tracker = WorkerTracker(problem)
    entries = [tracker.resume(r.id, r.skill, r.precision) for r, _ in judged]
    for turn in zip_longest(*(found.judgements for found in judged)):  # one answer of each worker
        given = [row for row in turn if row is not None]
        tracker.update(
            [row.worker_id for row in given],
            [row.question for row in given],
            [row.value for row in given],
            _posteriors(problem, [row.cls for row in given], [row.error for row in given]),
        )
    made = []
    for (record, judgements), entry in zip(judged, entries, strict=True):
        counts: Counter[str] = Counter()
        for row in judgements:
            gold = row.gold == 1
            counts.update(outcome_counts(problem, row.question, row.value, row.cls, gold))
        changes = {name: getattr(record, name) + by for name, by in counts.items()}
        made.append(record._replace(skill=entry.skill, precision=entry.precision, **changes))
    return made


def _posteriors(
    problem: Problem, cls: Sequence[int], error: Sequence[float]
) -> NDArray[np.float64]:
    """Posteriors of labelled items: a label's error is spread evenly over the other classes."""
    errors = np.asarray(error)
    made = np.repeat(errors[:, None] / (problem.n_classes - 1), problem.n_classes, axis=1)
    made[np.arange(len(errors)), cls] = 1 - errors
    return made


def _pause_if_unreliable(
    connection: Connection, campaign: ServedCampaign, record: WorkerRecord
) -> None:
    least, after = campaign.settings.checks.pause_below, campaign.settings.checks.pause_after_checks
    if record.status != "active" or least is None or record.gold_asked + record.judged < after:
        return
    right = expected_right(campaign.problem, record.skill)
    if right < least:
        detail = f"{right:.0%} is below {least:.0%}"
        change_status(connection, [record.id], "paused", WorkerReason.UNRELIABLE, detail)
