"""Rows of the database that webhooks report, and how a message is made of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.server.store.db.activity import LABELLED, NOTED, WITHDRAWN, Event
from crowdtree.server.store.db.campaign_row import get_campaign
from crowdtree.server.store.db.tables import activity, items, labels, webhooks, withdrawals
from crowdtree.server.store.queries.export import label_rows
from crowdtree.server.store.types import JsonObject

MAX_LABELS = 100
"""Labels per message."""


class Report(NamedTuple):
    """What a message says: the event, when it happened, and its data."""

    event: Event
    at: float
    data: JsonObject


@dataclass(frozen=True)
class Feed:
    """Rows that are reported in order of their ids.

    `cursor` is the column of webhooks with the last id that arrived, `report` makes a message of
    the rows of a campaign after that id, up to another one.
    """

    table: sa.Table
    cursor: str
    max_rows: int
    report: Callable[[Connection, int, int, int], Report]
    which: sa.ColumnElement[bool] | None = None

    def rows(self, campaign_id: object, after: object) -> list[sa.ColumnElement[bool]]:
        """Conditions for the rows of a campaign after an id."""
        found = [self.table.c.campaign_id == campaign_id, self.table.c.id > after]
        return found if self.which is None else [*found, self.which]

    def is_behind(self) -> sa.ColumnElement[bool]:
        """Whether there are rows that a webhook has not reported."""
        unsent = self.rows(webhooks.c.campaign_id, webhooks.c[self.cursor])
        return sa.exists().where(*unsent).correlate(webhooks)


def _labels(connection: Connection, campaign_id: int, after: int, last: int) -> Report:
    classes = get_campaign(connection, campaign_id).classes
    rows = label_rows(connection, campaign_id, classes, after, MAX_LABELS)
    rows = [row for row in rows if row["id"] <= last]
    return Report(LABELLED, max((row["at"] for row in rows), default=0.0), {"labels": rows})


def _withdrawals(connection: Connection, campaign_id: int, after: int, last: int) -> Report:
    """Report labels that were taken back: each voids every earlier one of its task."""
    rows = connection.execute(
        sa.select(withdrawals.c.label_id, withdrawals.c.at, items.c.task)
        .join(items, items.c.id == withdrawals.c.item_id)
        .where(withdrawals.c.campaign_id == campaign_id, withdrawals.c.id.between(after + 1, last))
        .order_by(withdrawals.c.id)
    ).all()
    gone = [{"task": row.task, "label_id": row.label_id, "at": row.at} for row in rows]
    return Report(WITHDRAWN, max(row.at for row in rows), {"withdrawn": gone})


def _noted(connection: Connection, campaign_id: int, after: int, last: int) -> Report:  # noqa: ARG001
    row = connection.execute(sa.select(activity).where(activity.c.id == last)).one()
    return Report(NOTED[row.action], row.at, {"actor": row.actor, **json.loads(row.detail)})


FEEDS = {
    "withdrawals": Feed(withdrawals, "sent_withdrawal_id", MAX_LABELS, _withdrawals),
    "labels": Feed(labels, "sent_label_id", MAX_LABELS, _labels),
    "activity": Feed(activity, "sent_activity_id", 1, _noted, activity.c.action.in_(NOTED)),
}
"""Rows at the same time are reported in this order."""
IS_BEHIND = sa.or_(*(feed.is_behind() for feed in FEEDS.values()))
"""Whether a webhook has something to report."""
