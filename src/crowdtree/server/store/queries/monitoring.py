"""What the answers of a campaign say about its table."""

from __future__ import annotations

import json
from typing import TypedDict

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.server.store.db.campaign_row import Campaign
from crowdtree.server.store.db.tables import monitors


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
