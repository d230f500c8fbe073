"""What checks say about a campaign's stated errors: its policy, calibrated by them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.campaign.view import carried_skill
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.text import plural
from crowdtree.policies import Answer
from crowdtree.server.store.audits.stored import AuditCache, latest_audit, read_checks
from crowdtree.server.store.db.campaign_row import get_campaign
from crowdtree.server.store.db.sql import Query, fetch
from crowdtree.server.store.db.tables import checks, items
from crowdtree.server.store.owner.revisions import revise
from crowdtree.server.store.serving.cache import load_campaign
from crowdtree.server.store.types import AnyPolicy


class SaidAnswer(NamedTuple):
    """An answer about an item that was not excluded."""

    id: int
    item_id: int
    question: int
    value: int
    skill: float


ANSWERS = Query(
    SaidAnswer,
    """SELECT id, item_id, question, value, skill FROM answers WHERE item_id IN :ids
    AND kind = 'answer' AND fate IN ('counted', 'surplus', 'late')
    AND COALESCE(revised_fate, '') <> 'excluded' ORDER BY id""",
)


def checked_truths(connection: Connection, number: int) -> dict[int, int]:
    """True class of every item that was checked, by item; without those nobody could tell."""
    found = connection.execute(
        sa.select(checks.c.item_id, checks.c.truth)
        .where(checks.c.campaign_id == number, checks.c.truth.is_not(None))
        .order_by(checks.c.id)
    )
    return dict(found.all())


def calibrated(
    connection: Connection, cache: AuditCache, number: int, policy: Any
) -> tuple[AnyPolicy, int]:
    """Calibrate a policy by the items that audits have checked; returns it, and how many they are.

    They were drawn with unequal chances, and have weights accordingly.
    """
    row = latest_audit(connection, number)
    truths = checked_truths(connection, number)
    if row is None or not truths:
        raise CrowdtreeError(f"campaign {number}: no item has been checked yet; check some first")
    found = get_campaign(connection, number)
    served = load_campaign(connection, number)
    drawn = read_checks(connection, row.id, found.classes)
    with cache.current(connection, row, drawn) as audit:
        weights = audit.weights
    query = sa.select(items.c.id, items.c.task).where(items.c.campaign_id == number)
    names = dict(connection.execute(query.where(items.c.task.in_(weights))).all())
    ids = [item for item in truths if item in names]
    said: dict[int, list[Answer]] = {item: [] for item in ids}
    for line in fetch(connection, ANSWERS, ids=ids):
        skill = carried_skill(line.skill, line.id, served.present.levels)
        said[line.item_id].append(Answer(line.question, line.value, skill))
    truth = np.array([truths[item] for item in ids], dtype=np.int64)
    weight = [weights[names[item]] for item in ids]
    made = policy.calibrate_on(list(said.values()), truth, weight)
    return policy.changed(calibration=made.to_dict()), len(ids)


def calibrate(connection: Connection, cache: AuditCache, number: int, now: float) -> int:
    """Revise a campaign so that its stated errors follow from what was checked.

    Items whose stated error is then above the target are asked about again. Returns the number of
    the revision.
    """
    present = get_campaign(connection, number, lock=True).make_policy()
    policy, count = calibrated(connection, cache, number, present)
    reason = {"text": f"calibrated by {plural(count, 'checked item')}", "checks": count}
    return revise(connection, number, policy, reason, now)
