"""Webhook messages: which are due, and what became of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.server.store.db.activity import EVENTS
from crowdtree.server.store.db.campaign_row import get_campaign
from crowdtree.server.store.db.labels import wait_for_labels
from crowdtree.server.store.db.tables import (
    activity,
    campaigns,
    deliveries,
    items,
    labels,
    webhooks,
    withdrawals,
)
from crowdtree.server.store.queries.export import LabelRow, label_rows
from crowdtree.server.store.types import JsonObject

LABELS_AT_ONCE = 100
MOST_CLAIMED = 1000
MOST_FAILURES = 20
CLAIM_SECONDS = 60.0
LONGEST_WAIT_SECONDS = 3600.0
KEPT = 50
"""Deliveries that are kept per webhook."""
MOST_ERROR = 200


class Withdrawn(TypedDict):
    """A label that was taken back: `label_id` and every earlier one of the task is void."""

    task: str
    label_id: int
    at: float


class Body(TypedDict):
    """What is sent."""

    id: str
    event: str
    campaign: int
    labels: list[LabelRow]
    withdrawn: list[Withdrawn]
    detail: JsonObject
    """What is known about an alarm, a revision or a certificate."""


@dataclass(frozen=True)
class Message:
    """A message that is due: where it goes, and how far the webhook has come with it."""

    hook: int
    url: str
    secret: str
    failures: int
    body: Body
    last_label_id: int
    last_withdrawal_id: int
    last_activity_id: int

    @property
    def ended(self) -> bool:
        """Whether this is the last message of a campaign."""
        return self.body["event"] == "campaign.finished"


def claim(connection: Connection, now: float, most: int = MOST_CLAIMED) -> list[Message]:
    """Take messages that are due, one per webhook, so that no other process sends them.

    At most `most`, those that have been due for longest first.
    """
    finished = sa.and_(campaigns.c.status == "finished", webhooks.c.finish_sent == 0)
    rows = connection.execute(
        sa.select(webhooks, campaigns.c.status.label("campaign_status"))
        .join(campaigns, campaigns.c.id == webhooks.c.campaign_id)
        .where(
            webhooks.c.status == "active",
            webhooks.c.next_try_at <= now,
            sa.or_(
                _newest(labels) > webhooks.c.sent_label_id,
                _newest(withdrawals) > webhooks.c.sent_withdrawal_id,
                _newest(activity, activity.c.action.in_(EVENTS)) > webhooks.c.sent_activity_id,
                finished,
            ),
        )
        .order_by(webhooks.c.next_try_at, webhooks.c.id)
        .limit(most)
        .with_for_update(of=webhooks, skip_locked=True)
    ).all()
    for row in rows:
        connection.execute(
            webhooks.update().where(webhooks.c.id == row.id).values(next_try_at=now + CLAIM_SECONDS)
        )
    if rows:  # messages continue from the id of the last label sent
        wait_for_labels(connection)
    return [_message(connection, row) for row in rows]


def _newest(table: sa.Table, *which: sa.ColumnElement[bool]) -> sa.ScalarSelect[int]:
    newest = sa.select(sa.func.coalesce(sa.func.max(table.c.id), 0))
    mine = table.c.campaign_id == webhooks.c.campaign_id
    return newest.where(mine, *which).scalar_subquery()


def _message(connection: Connection, hook: sa.Row[tuple[object, ...]]) -> Message:
    number, sent, void = hook.campaign_id, hook.sent_label_id, hook.sent_withdrawal_id
    told = hook.sent_activity_id
    body: Body = {
        "id": f"{hook.id}-end",
        "event": "campaign.finished",
        "campaign": number,
        "labels": [],
        "withdrawn": [],
        "detail": {},
    }
    gone = _withdrawn(connection, number, void)
    if gone:
        void = gone[-1].id
        body["withdrawn"] = [{"task": r.task, "label_id": r.label_id, "at": r.at} for r in gone]
        body |= {"id": f"{hook.id}-withdrawn-{void}", "event": "labels.withdrawn"}
    elif (entry := _event(connection, number, told)) is not None:
        told = entry.id
        body["detail"] = {"at": entry.at, "actor": entry.actor, **json.loads(entry.detail)}
        body |= {"id": f"{hook.id}-event-{told}", "event": EVENTS[entry.action]}
    else:
        classes = get_campaign(connection, number).classes
        rows = label_rows(connection, number, classes, sent, LABELS_AT_ONCE)
        sent = rows[-1]["id"] if rows else sent
        if rows or hook.campaign_status != "finished":
            body |= {"id": f"{hook.id}-{sent}", "event": "items.labelled", "labels": rows}
    return Message(hook.id, hook.url, hook.secret, hook.failures, body, sent, void, told)


def _event(connection: Connection, number: int, after: int) -> sa.Row[tuple[object, ...]] | None:
    """Read the next entry of the activity log that webhooks are told about."""
    mine = (activity.c.campaign_id == number, activity.c.id > after)
    told = activity.c.action.in_(EVENTS)
    query = sa.select(activity).where(*mine, told).order_by(activity.c.id).limit(1)
    return connection.execute(query).one_or_none()


def _withdrawn(
    connection: Connection, number: int, after: int
) -> Sequence[sa.Row[tuple[object, ...]]]:
    """Read labels that were taken back, in order."""
    return connection.execute(
        sa.select(withdrawals, items.c.task)
        .join(items, items.c.id == withdrawals.c.item_id)
        .where(withdrawals.c.campaign_id == number, withdrawals.c.id > after)
        .order_by(withdrawals.c.id)
        .limit(LABELS_AT_ONCE)
    ).all()


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
                sent_withdrawal_id=message.last_withdrawal_id,
                sent_activity_id=message.last_activity_id,
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
            labels=len(message.body["labels"]) or len(message.body["withdrawn"]),
            error=error[:MOST_ERROR],
        )
    )
    oldest = sa.select(deliveries.c.id).where(mine).order_by(deliveries.c.id.desc())
    first = connection.execute(oldest.offset(KEPT - 1).limit(1)).scalar_one_or_none()
    if first is not None:
        connection.execute(deliveries.delete().where(mine, deliveries.c.id < first))
