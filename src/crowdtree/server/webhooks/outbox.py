"""Rows that webhooks report, the messages that are due, and what became of them.

A message is stored when it is first sent, so that it keeps its id, and ends at the same row, until
it has arrived. Only then does the webhook go on.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from itertools import takewhile
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.core.text import iso_time, plural
from crowdtree.server.store.db.activity import LABELLED, NOTED, WITHDRAWN, Event, note
from crowdtree.server.store.db.campaign_row import get_campaign
from crowdtree.server.store.db.sql import wait_for_labels
from crowdtree.server.store.db.tables import (
    activity,
    deliveries,
    items,
    labels,
    webhooks,
    withdrawals,
)
from crowdtree.server.store.queries.export import label_rows
from crowdtree.server.store.types import JsonObject

MAX_LABELS = 100
"""Labels per message."""
MAX_CLAIMED = 1000
MAX_FAILURES = 20
CLAIM_SECONDS = 60.0
MAX_WAIT_SECONDS = 3600.0
MAX_KEPT = 50
"""Messages that are kept per webhook."""
MAX_ERROR = 200


# --------------------------------------------------------------------------------- feeds


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


# ------------------------------------------------------------------------------ messages


@dataclass(frozen=True)
class Message:
    """A message that is due, and where it goes."""

    id: str
    webhook_id: int
    url: str
    secret: str
    body: bytes


class _Rows(NamedTuple):
    """The rows of a feed that a message reports: the last one, and how many."""

    feed: str
    last: int
    size: int


def claim(
    connection: Connection, now: float, most: int = MAX_CLAIMED, webhook_id: int | None = None
) -> list[Message]:
    """Take messages that are due, one per webhook, so that no other process sends them.

    At most `most`, those that have been due for longest first; or that of one webhook.
    """
    due = [webhooks.c.status == "active", webhooks.c.next_try_at <= now, IS_BEHIND]
    if webhook_id is not None:
        due.append(webhooks.c.id == webhook_id)
    rows = connection.execute(
        sa.select(webhooks)
        .where(*due)
        .order_by(webhooks.c.next_try_at, webhooks.c.id)
        .limit(most)
        .with_for_update(skip_locked=True)
    ).all()
    if not rows:
        return []
    taken = webhooks.update().where(webhooks.c.id.in_([row.id for row in rows]))
    connection.execute(taken.values(next_try_at=now + CLAIM_SECONDS))
    wait_for_labels(connection)  # messages continue from an id
    made = (_message(connection, row, now) for row in rows)
    return [message for message in made if message is not None]


def _message(
    connection: Connection, hook: sa.Row[tuple[object, ...]], now: float
) -> Message | None:
    """Make the message that has not arrived yet, or the next one."""
    waiting = (deliveries.c.webhook_id == hook.id, deliveries.c.arrived == 0)
    before = connection.execute(sa.select(deliveries).where(*waiting)).one_or_none()
    rows = _Rows(before.feed, before.last_id, 0) if before else _next_rows(connection, hook)
    if rows is None:  # they were withdrawn meanwhile
        return None
    feed = FEEDS[rows.feed]
    after = getattr(hook, feed.cursor)
    report = feed.report(connection, hook.campaign_id, after, rows.last)
    name = before.message if before else _add(connection, hook.id, rows, report, now)
    body = {
        "type": report.event.name,
        "timestamp": iso_time(report.at),
        "data": {"campaign": hook.campaign_id, **report.data},
    }
    return Message(name, hook.id, hook.url, hook.secret, json.dumps(body).encode())


def _next_rows(connection: Connection, hook: sa.Row[tuple[object, ...]]) -> _Rows | None:
    """Choose the rows to report next: those of one feed that are older than those of the others."""
    heads = {}
    for name, feed in FEEDS.items():
        where = feed.rows(hook.campaign_id, getattr(hook, feed.cursor))
        query = sa.select(feed.table.c.id, feed.table.c.at).where(*where)
        if rows := connection.execute(query.order_by(feed.table.c.id).limit(feed.max_rows)).all():
            heads[name] = rows
    if not heads:
        return None
    name = min(heads, key=lambda name: heads[name][0].at)
    rows = heads.pop(name)
    until = min((others[0].at for others in heads.values()), default=rows[-1].at)
    taken = list(takewhile(lambda row: row.at <= max(until, rows[0].at), rows))
    return _Rows(name, taken[-1].id, len(taken))


def _add(connection: Connection, webhook_id: int, rows: _Rows, report: Report, now: float) -> str:
    """Store a message and delete the oldest; returns its id, which no other server uses."""
    name = f"msg_{secrets.token_hex(12)}"
    connection.execute(
        deliveries.insert().values(
            webhook_id=webhook_id,
            at=now,
            message=name,
            event=report.event.name,
            feed=rows.feed,
            last_id=rows.last,
            rows=rows.size,
        )
    )
    mine = deliveries.c.webhook_id == webhook_id
    newest = sa.select(deliveries.c.id).where(mine).order_by(deliveries.c.id.desc())
    first = newest.offset(MAX_KEPT - 1).limit(1).scalar_subquery()
    connection.execute(deliveries.delete().where(mine, deliveries.c.id < first))
    return name


def settle(connection: Connection, message: Message, error: str, now: float) -> Message | None:
    """Record that a message arrived, and take the next; or record when to try it again.

    Tries are repeated at increasing intervals, and given up in the end.
    """
    mine = webhooks.c.id == message.webhook_id
    hook = connection.execute(sa.select(webhooks).where(mine).with_for_update()).one_or_none()
    waiting = (deliveries.c.message == message.id, deliveries.c.arrived == 0)
    tried = connection.execute(
        deliveries.update()
        .where(deliveries.c.webhook_id == message.webhook_id, *waiting)
        .values(
            at=now,
            attempts=deliveries.c.attempts + 1,
            error=error[:MAX_ERROR],
            arrived=int(not error),
        )
        .returning(deliveries.c.feed, deliveries.c.last_id)
    ).one_or_none()
    if hook is None or tried is None:
        return None  # the webhook was removed, or another process was faster
    if error:
        _try_again(connection, hook, error[:MAX_ERROR], now)
        return None
    sent = {FEEDS[tried.feed].cursor: tried.last_id}
    values = {"failures": 0, "next_try_at": 0.0, "last_error": "", **sent}
    connection.execute(webhooks.update().where(mine).values(**values))
    return next(iter(claim(connection, now, 1, message.webhook_id)), None)


def _try_again(
    connection: Connection, hook: sa.Row[tuple[object, ...]], error: str, now: float
) -> None:
    failures = hook.failures + 1
    over = failures >= MAX_FAILURES
    connection.execute(
        webhooks.update()
        .where(webhooks.c.id == hook.id)
        .values(
            failures=failures,
            next_try_at=now + min(MAX_WAIT_SECONDS, 2.0**failures),
            last_error=error,
            status="failed" if over else "active",
        )
    )
    if over:
        text = (
            f"a message of webhook {hook.id} failed {plural(failures, 'time')} in a row, at last "
            f"with: {error}; repair its receiver, then choose Try again on the page Webhooks"
        )
        detail = {"webhook": hook.id, "text": text}
        note(connection, now, "webhook failed", hook.campaign_id, detail, "server")
