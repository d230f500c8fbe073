"""What an audit says, for the owner: numbers, people, what is out of date."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple, TypedDict

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.audit import Forecast, Standing
from crowdtree.audit.words import next_step, sum_up
from crowdtree.campaign.events import Reason
from crowdtree.io.audits import audit_to_dict
from crowdtree.server.store.audits.stored import (
    AuditCache,
    AuditRow,
    audited_labels,
    certified,
    latest_audit,
    read_checks,
)
from crowdtree.server.store.db.campaign_row import get_campaign, tally
from crowdtree.server.store.db.tables import checks, item_events, items, labels
from crowdtree.server.store.errors import NotFound
from crowdtree.server.store.queries.export import LabelRow
from crowdtree.server.store.queries.items import BY_HAND, count_corrected
from crowdtree.server.store.types import ItemStatus, JsonObject

FORECAST_REPLAYS = 40


class AuditSummary(TypedDict):
    """An audit in a few numbers."""

    started: bool
    started_at: float | None
    claims: JsonObject | None
    """What is certified, as :meth:`crowdtree.Audit.to_dict` writes it."""
    labelled: int
    """Items that have a label now; those that the audit covers are in its claims."""
    changed: int
    """Labels that are not what was audited any more: the audit is out of date."""
    unsure: int
    """Checks in which the person could not tell; they count as wrong."""
    people: dict[str, int]
    """Checks by person."""
    corrected: int
    """Labels by hand, which count as known to be right."""


def audit_summary(connection: Connection, campaign_id: int) -> AuditSummary:
    """Sum up the audit of a campaign from what is stored."""
    get_campaign(connection, campaign_id)
    labelled = tally(connection, campaign_id).get(ItemStatus.LABELLED.label, 0)
    corrected = count_corrected(connection, campaign_id)
    row = latest_audit(connection, campaign_id)
    if row is None:
        nothing: AuditSummary = {
            "started": False,
            "started_at": None,
            "claims": None,
            "labelled": labelled,
            "changed": 0,
            "unsure": 0,
            "people": {},
            "corrected": corrected,
        }
        return nothing
    published = sa.func.coalesce(items.c.corrected, labels.c.label).label("now")
    rows = connection.execute(
        sa.select(checks.c.item_id, checks.c.label, checks.c.truth, checks.c.person, published)
        .join(items, items.c.id == checks.c.item_id)
        .join(labels, labels.c.item_id == checks.c.item_id, isouter=True)
        .where(checks.c.audit_id == row.id, checks.c.correct.is_not(None))
        .order_by(checks.c.draw)
    ).all()
    covered = labelled - _labelled_after(connection, row)
    changed = sum(entry.now not in (entry.label, entry.truth) for entry in rows)
    changed += _corrected_since(connection, row, {entry.item_id for entry in rows})
    return {
        "started": True,
        "started_at": row.at,
        "claims": row.claims,
        "labelled": labelled,
        "changed": max(changed, row.claims["items"] - covered),
        "unsure": sum(entry.truth is None for entry in rows),
        "people": dict(Counter(entry.person for entry in rows)),
        "corrected": corrected,
    }


def _corrected_since(connection: Connection, row: AuditRow, checked: set[int]) -> int:
    """Count labels without a check that are others by hand than those that an audit covers."""
    later = sa.select(item_events.c.item_id).where(
        item_events.c.campaign_id == row.campaign_id, item_events.c.at > row.at, BY_HAND
    )
    published = sa.func.coalesce(items.c.corrected, labels.c.label).label("now")
    rows = connection.execute(
        sa.select(items.c.id, items.c.task, published)
        .join(labels, labels.c.item_id == items.c.id)
        .where(items.c.id.in_(later), items.c.status == ItemStatus.LABELLED)
    ).all()
    if not rows:
        return 0
    audited = audited_labels(connection, row.id)
    classes = get_campaign(connection, row.campaign_id).classes
    return sum(
        entry.task in audited and classes[entry.now] != audited[entry.task]
        for entry in rows
        if entry.id not in checked
    )


def _labelled_after(connection: Connection, row: AuditRow) -> int:
    """Count the labels that are newer than an audit, without those that a check corrected."""
    later = (labels.c.at > row.at) | (labels.c.id > row.last_label)
    newer = (labels.c.campaign_id == row.campaign_id, later, labels.c.reason != Reason.CHECKED)
    query = (
        sa.select(sa.func.count())
        .select_from(labels)
        .join(items, items.c.id == labels.c.item_id)
        .where(*newer, items.c.status == ItemStatus.LABELLED)
    )
    return int(connection.execute(query).scalar_one())


class Coverage(NamedTuple):
    """What is certified about the labels of a campaign, and which ones that covers."""

    share: float
    """At most this share of the labels that are covered is wrong."""
    sentence: str
    at: float

    def of(self, row: LabelRow) -> float | None:
        """What is certified about the set that a label belongs to, none where it is not covered."""
        covered = row["at"] <= self.at or row["reason"] == Reason.CHECKED
        return self.share if covered and row["status"] == ItemStatus.LABELLED.label else None


def coverage(connection: Connection, campaign_id: int) -> Coverage | None:
    """What is certified now; none without checks, or if labels have changed since."""
    row = latest_audit(connection, campaign_id)
    if row is None or not row.claims["checks"] + row.claims["known"]:
        return None
    if audit_summary(connection, campaign_id)["changed"]:
        return None
    return Coverage(certified(row), sum_up(row.claims), row.at)


class AuditReport(AuditSummary):
    """An audit as the owner sees it."""

    sentence: str
    next: str
    forecast: JsonObject | None
    """How many more checks the bound is expected to take."""


def audit_report(connection: Connection, cache: AuditCache, campaign_id: int) -> AuditReport:
    """Sum up the audit of a campaign, with what to do next."""
    found = audit_summary(connection, campaign_id)
    claims, forecast = found["claims"], _forecast(connection, cache, campaign_id)
    row = latest_audit(connection, campaign_id)
    corrects = row is not None and bool(row.corrects)
    return {
        **found,
        "sentence": "" if claims is None else sum_up(claims),
        "next": "" if claims is None else next_step(claims["state"], forecast, corrects),
        "forecast": None if forecast is None else forecast.to_dict(),
    }


def _needed(connection: Connection, campaign_id: int) -> AuditRow:
    row = latest_audit(connection, campaign_id)
    if row is None:
        raise NotFound(f"campaign {campaign_id} has no audit")
    return row


def _forecast(connection: Connection, cache: AuditCache, campaign_id: int) -> Forecast | None:
    """How many more checks the bound takes; remembered until the next result."""
    row = latest_audit(connection, campaign_id)
    if row is None:
        return None
    classes = get_campaign(connection, campaign_id).classes
    drawn = read_checks(connection, row.id, classes)
    with cache.current(connection, row, drawn, exact=False) as audit:
        return cache.forecast(row.id, audit, FORECAST_REPLAYS)


def history_of(connection: Connection, cache: AuditCache, campaign_id: int) -> list[Standing]:
    """What the audit said after every check."""
    row = _needed(connection, campaign_id)
    drawn = read_checks(connection, row.id, get_campaign(connection, campaign_id).classes)
    with cache.current(connection, row, drawn, exact=False) as audit:
        return list(audit.history)


def certificate(connection: Connection, cache: AuditCache, campaign_id: int) -> JsonObject:
    """The certificate of the audit, as `crowdtree audit verify` reads it."""
    row = _needed(connection, campaign_id)
    drawn = read_checks(connection, row.id, get_campaign(connection, campaign_id).classes)
    with cache.current(connection, row, drawn, exact=False) as audit:
        return audit_to_dict(audit)


def unsure_items(connection: Connection, campaign_id: int) -> list[tuple[int, str]]:
    """Items about which a person could not tell: number and name."""
    row = latest_audit(connection, campaign_id)
    if row is None:
        return []
    drawn = read_checks(connection, row.id, get_campaign(connection, campaign_id).classes)
    return [(entry.item_id, entry.item) for entry in drawn if entry.unsure]
