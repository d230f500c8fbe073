"""Messages that are due, and what became of them.

A message is stored when it is first sent, so that it keeps its id, and ends at the same row, until
it has arrived. Only then does the webhook go on.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from itertools import takewhile
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.core.text import iso_time, plural
from crowdtree.server.store.db.activity import note
from crowdtree.server.store.db.sql import wait_for_labels
from crowdtree.server.store.db.tables import deliveries, webhooks
from crowdtree.server.webhooks.feeds import FEEDS, IS_BEHIND, Report

MAX_CLAIMED = 1000
MAX_FAILURES = 20
CLAIM_SECONDS = 60.0
MAX_WAIT_SECONDS = 3600.0
MAX_KEPT = 50
"""Messages that are kept per webhook."""
MAX_ERROR = 200


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
