"""Webhook messages: which are due, and what became of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypedDict

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.store.db.campaign_row import get_campaign
from crowdtree.store.db.labels import wait_for_labels
from crowdtree.store.db.tables import campaigns, deliveries, labels, webhooks
from crowdtree.store.queries.export import LabelRow, label_rows

__all__ = ["Body", "Message", "claim", "settle_hook"]

LABELS_AT_ONCE = 100
MOST_FAILURES = 20
CLAIM_SECONDS = 60.0
LONGEST_WAIT_SECONDS = 3600.0
KEPT = 50
"""Deliveries that are kept per webhook."""
MOST_ERROR = 200


class Body(TypedDict):
    """What is sent."""

    id: str
    event: Literal["items.labelled", "campaign.finished"]
    campaign: int
    labels: list[LabelRow]


@dataclass(frozen=True)
class Message:
    """A message that is due: where it goes, and how far the webhook has come with it."""

    hook: int
    url: str
    secret: str
    failures: int
    body: Body
    last_label_id: int

    @property
    def ended(self) -> bool:
        """Whether this is the last message of a campaign."""
        return self.body["event"] == "campaign.finished"


def claim(connection: Connection, now: float) -> list[Message]:
    """Take the messages that are due, one per webhook, so that no other process sends them."""
    newest = (
        sa.select(sa.func.coalesce(sa.func.max(labels.c.id), 0))
        .where(labels.c.campaign_id == webhooks.c.campaign_id)
        .scalar_subquery()
    )
    finished = sa.and_(campaigns.c.status == "finished", webhooks.c.finish_sent == 0)
    rows = connection.execute(
        sa.select(webhooks, campaigns.c.status.label("campaign_status"))
        .join(campaigns, campaigns.c.id == webhooks.c.campaign_id)
        .where(
            webhooks.c.status == "active",
            webhooks.c.next_try_at <= now,
            sa.or_(newest > webhooks.c.sent_label_id, finished),
        )
        .with_for_update(of=webhooks, skip_locked=True)
    ).all()
    for row in rows:
        connection.execute(
            webhooks.update().where(webhooks.c.id == row.id).values(next_try_at=now + CLAIM_SECONDS)
        )
    if rows:  # messages continue from the id of the last label sent
        wait_for_labels(connection)
    return [_message(connection, row) for row in rows]


def _message(connection: Connection, hook: sa.Row[tuple[object, ...]]) -> Message:
    number = hook.campaign_id
    classes = get_campaign(connection, number).classes
    rows = label_rows(connection, number, classes, hook.sent_label_id, LABELS_AT_ONCE)
    last = rows[-1]["id"] if rows else hook.sent_label_id
    ended = not rows and hook.campaign_status == "finished"
    body: Body = {
        "id": f"{hook.id}-{'end' if ended else last}",
        "event": "campaign.finished" if ended else "items.labelled",
        "campaign": number,
        "labels": rows,
    }
    return Message(hook.id, hook.url, hook.secret, hook.failures, body, last)


def settle_hook(connection: Connection, message: Message, error: str, now: float) -> None:
    """Record that a message arrived, or when to try again (at increasing intervals)."""
    where = webhooks.c.id == message.hook
    if connection.execute(sa.select(webhooks.c.id).where(where)).one_or_none() is None:
        return  # the webhook was removed while the message was being sent
    _record(connection, message, error, now)
    if not error:
        connection.execute(
            webhooks.update()
            .where(where)
            .values(
                sent_label_id=message.last_label_id,
                finish_sent=int(message.ended),
                failures=0,
                next_try_at=0.0,
                last_error="",
            )
        )
        return
    failures = message.failures + 1
    connection.execute(
        webhooks.update()
        .where(where)
        .values(
            failures=failures,
            next_try_at=now + min(LONGEST_WAIT_SECONDS, 2.0**failures),
            last_error=error[:MOST_ERROR],
            status="failed" if failures >= MOST_FAILURES else "active",
        )
    )


def _record(connection: Connection, message: Message, error: str, now: float) -> None:
    """Add a delivery and delete the oldest."""
    mine = deliveries.c.webhook_id == message.hook
    connection.execute(
        deliveries.insert().values(
            webhook_id=message.hook,
            at=now,
            message=message.body["id"],
            event=message.body["event"],
            labels=len(message.body["labels"]),
            error=error[:MOST_ERROR],
        )
    )
    oldest = sa.select(deliveries.c.id).where(mine).order_by(deliveries.c.id.desc())
    first = connection.execute(oldest.offset(KEPT - 1).limit(1)).scalar_one_or_none()
    if first is not None:
        connection.execute(deliveries.delete().where(mine, deliveries.c.id < first))
