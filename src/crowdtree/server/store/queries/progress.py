"""Progress of a campaign: counts, costs, a forecast, revisions, and the test of its table."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypedDict

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.campaign.events import Cause
from crowdtree.server.reasons import CampaignReason
from crowdtree.server.settings.groups import MICRO
from crowdtree.server.store.db.campaign_row import Campaign, flows, get_campaign, tally
from crowdtree.server.store.db.tables import (
    answers,
    exclusions,
    monitors,
    revisions,
    waiting,
    workers,
)
from crowdtree.server.store.queries.items import count_corrected, replaced_labels
from crowdtree.server.store.types import ITEM_STATUSES, JsonObject


class Revision(TypedDict):
    """A policy of a campaign; number 0 is the one it started with.

    `finished_at` is empty while items are being replayed under it.
    """

    number: int
    at: float
    actor: str
    cause: Cause
    reason: JsonObject
    after_answer_id: int
    finished_at: float | None


def list_revisions(connection: Connection, campaign_id: int) -> list[Revision]:
    """List the policies of a campaign, the first one first; none if it was never revised."""
    get_campaign(connection, campaign_id)
    mine = _SELECTED.where(revisions.c.campaign_id == campaign_id)
    return [_read(row) for row in connection.execute(mine.order_by(revisions.c.number))]


def last_revision(connection: Connection, campaign_id: int) -> Revision | None:
    """Read the last revision of a campaign, or ``None``."""
    mine = _SELECTED.where(revisions.c.campaign_id == campaign_id)
    row = connection.execute(mine.order_by(revisions.c.number.desc()).limit(1)).one_or_none()
    return None if row is None else _read(row)


_SELECTED = sa.select(*(revisions.c[name] for name in Revision.__annotations__))


def _read(row: sa.Row[tuple[object, ...]]) -> Revision:
    reason = json.loads(row.reason)
    del reason["level"]  # what skills are relative to is the server's business
    return Revision(
        number=row.number,
        at=row.at,
        actor=row.actor,
        cause=Cause(row.cause),
        reason=reason,
        after_answer_id=row.after_answer_id,
        finished_at=row.finished_at,
    )


class AlarmRow(TypedDict):
    """An alarm, as in :class:`crowdtree.policies.monitor.Alarm`, with its text."""

    subject: str
    name: str
    after: int
    items: int
    evidence: float
    text: str


class FindingRow(TypedDict):
    """What the answers say beside what the table says, with a 95 % interval."""

    subject: str
    name: str
    assumed: float
    estimate: float
    low: float
    high: float
    evidence: float
    text: str


class Monitored(TypedDict):
    """How the table was tested: by how many answers, and what they say where it is wrong."""

    adapt: bool
    answers: int
    alarms: list[AlarmRow]
    findings: list[FindingRow]


def monitored(connection: Connection, campaign: Campaign) -> Monitored | None:
    """Read what the answers of a campaign say about its table; ``None`` before the first one."""
    mine = monitors.c.campaign_id == campaign.id
    row = connection.execute(sa.select(monitors).where(mine)).one_or_none()
    if row is None or not row.answers:
        return None
    return {
        "adapt": campaign.settings.table.revises(campaign.policy["policy"]),
        "answers": row.answers,
        "alarms": json.loads(row.alarms),
        "findings": json.loads(row.findings),
    }


RECENT = 500
FATES = ("counted", "gold", "skipped", "surplus", "late", "over budget")


class Forecast(TypedDict):
    """What is left to do, estimated from the campaign so far."""

    answers_left: float | None
    answers_per_minute: float | None
    seconds_left: float | None
    cost_left: float | None


class Progress(TypedDict):
    """A campaign in a few numbers; counts are by the name of what they count."""

    id: int
    name: str
    status: str
    reason: CampaignReason
    status_reason: str
    """The reason, in words."""
    items: dict[str, int]
    undecided: int
    waiting_for_workers: int
    waiting_for_known: int
    """Items whose label waits for an answer of somebody who is known."""
    answers: dict[str, int]
    answers_per_item: float | None
    estimated_error: float | None
    """Expected share of wrong labels; labels by hand count as right."""
    corrected: int
    """Items that the owner has labelled by hand."""
    spent: float
    price: float
    budget: float | None
    currency: str
    revision: Revision | None
    monitor: Monitored | None
    labels: dict[str, int]
    precision: dict[str, float | None]
    """Estimated share of right labels among the items with each label; ``None`` without items."""
    nodes: dict[str, dict[str, int]]
    workers: dict[str, int]
    excluded_workers: int
    """Workers whose answers are excluded, wholly or in part."""
    forecast: Forecast


def progress(connection: Connection, campaign_id: int, now: float) -> Progress:
    """Sum up a campaign; the cost does not depend on its size."""
    campaign = get_campaign(connection, campaign_id)
    settings = campaign.settings
    counts = tally(connection, campaign_id)
    corrected = count_corrected(connection, campaign_id)
    if corrected:
        counts = _with_corrections(connection, campaign_id, counts)
    items = {name.replace(" ", "_"): counts.get(name, 0) for name in ITEM_STATUSES}
    given = {name.replace(" ", "_"): counts.get(f"fate:{name}", 0) for name in FATES}
    closed = items["labelled"] + items["set_aside"]
    estimated = counts.get("estimated", 0)
    rate = _rate(connection, campaign_id, now)
    left = _answers_left(items, given["counted"], closed)
    waiting_items = _waiting_items(connection, campaign_id)
    stuck = is_stuck(items, waiting_items)
    return {
        "id": campaign_id,
        "name": campaign.name,
        "status": campaign.status,
        "reason": campaign.reason,
        "status_reason": campaign.status_reason,
        "items": {**items, "total": sum(items.values()) - items["gold"] - items["withdrawn"]},
        "undecided": counts.get("undecided", 0),
        "waiting_for_workers": waiting_items,
        "waiting_for_known": counts.get("held", 0),
        "answers": {**given, "expired_leases": counts.get("expired", 0)},
        "answers_per_item": counts.get("taken", 0) / estimated if estimated else None,
        "estimated_error": counts["error_nanos"] / 1e9 / estimated if estimated else None,
        "corrected": corrected,
        "spent": counts.get("spent", 0) / MICRO,
        "price": settings.money.price,
        "budget": settings.money.budget,
        "currency": settings.money.currency,
        "revision": last_revision(connection, campaign_id) if campaign.revision else None,
        "monitor": monitored(connection, campaign),
        "labels": _labels(campaign.classes, counts),
        "precision": _precision(campaign.classes, counts),
        "nodes": flows(counts, campaign.revision),
        "workers": _workers(connection, campaign_id),
        "excluded_workers": _excluded_workers(connection, campaign_id),
        "forecast": {
            "answers_left": left,
            "answers_per_minute": None if rate is None else 60 * rate,
            "seconds_left": left / rate if left is not None and rate and not stuck else None,
            "cost_left": None if left is None else left * settings.money.price,
        },
    }


def _with_corrections(
    connection: Connection, campaign_id: int, counts: dict[str, int]
) -> dict[str, int]:
    """Count labels by hand as right, in the place of those of the answers."""
    found = Counter(counts)
    for row in replaced_labels(connection, campaign_id):
        nanos, place = round(row["error"] * 1e9), row["computed"]
        found.subtract(
            {f"label:{place}": row["items"], f"label_nanos:{place}": nanos, "error_nanos": nanos}
        )
        found[f"label:{row['by_hand']}"] += row["items"]
    return found


def is_stuck(items: Mapping[str, int], waiting_items: int) -> bool:
    """Whether all items in work wait for more workers, so that the present rate says nothing."""
    return 0 < items["new"] + items["open"] <= waiting_items


def _waiting_items(connection: Connection, campaign_id: int) -> int:
    """Count the items that no worker who is present can answer."""
    found = sa.select(sa.func.count()).where(waiting.c.campaign_id == campaign_id)
    return int(connection.execute(found).scalar_one())


def _excluded_workers(connection: Connection, campaign_id: int) -> int:
    mine = (exclusions.c.campaign_id == campaign_id, exclusions.c.lifted_revision.is_(None))
    found = sa.select(sa.func.count(sa.distinct(exclusions.c.worker_id))).where(*mine)
    return int(connection.execute(found).scalar_one())


def _answers_left(items: dict[str, int], counted: int, closed: int) -> float | None:
    """Estimate the answers still needed from the answers per item so far."""
    if not closed or not counted:  # closed by hand, without answers
        return None
    unfinished = items["new"] + items["open"]
    per_item = counted / closed if items["open"] == 0 else counted / (closed + items["open"] / 2)
    return per_item * (items["new"] + items["open"] / 2) if unfinished else 0.0


def _rate(connection: Connection, campaign_id: int, now: float) -> float | None:
    """Answers per second over the last few hundred."""
    rows = (
        sa.select(answers.c.at)
        .where(answers.c.campaign_id == campaign_id)
        .order_by(answers.c.id.desc())
        .limit(RECENT)
    )
    times = [float(at) for (at,) in connection.execute(rows)]
    if len(times) < 2:
        return None
    return len(times) / max(now - times[-1], 1e-3)


def _labels(classes: Sequence[str], counts: dict[str, int]) -> dict[str, int]:
    return {name: counts.get(f"label:{c}", 0) for c, name in enumerate(classes)}


def _precision(classes: Sequence[str], counts: dict[str, int]) -> dict[str, float | None]:
    found: dict[str, float | None] = {}
    for c, name in enumerate(classes):
        items = counts.get(f"label:{c}", 0)
        wrong = counts.get(f"label_nanos:{c}", 0) / 1e9
        found[name] = 1 - wrong / items if items else None
    return found


def _workers(connection: Connection, campaign_id: int) -> dict[str, int]:
    rows = connection.execute(
        sa.select(workers.c.status, sa.func.count().label("workers"))
        .where(workers.c.campaign_id == campaign_id)
        .group_by(workers.c.status)
    )
    found: dict[str, int] = {row.status: row.workers for row in rows}
    return {status: found.get(status, 0) for status in ("active", "paused", "blocked")}
