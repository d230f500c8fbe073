"""Webhooks: who is to be told, how far they have been told, and what is due."""

from __future__ import annotations

import secrets
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.errors import CrowdtreeError
from crowdtree.store.campaigns import NotFound, get, note
from crowdtree.store.exports import label_rows
from crowdtree.store.labelling import wait_for_labels
from crowdtree.store.tables import campaigns, deliveries, labels, webhooks

__all__ = [
    "add_hook",
    "claim",
    "hook_deliveries",
    "listed_hooks",
    "remove_hook",
    "retry_hook",
    "settle_hook",
]

LABELS_AT_ONCE = 100
MOST_HOOKS = 10
MOST_FAILURES = 20
CLAIM_SECONDS = 60.0
KEPT = 50
"""Deliveries of a webhook that are remembered."""


def add_hook(connection: Connection, number: int, url: str, now: float) -> dict[str, Any]:
    """Add a webhook; its secret is shown this once (it is kept readable, because it signs)."""
    get(connection, number)
    if len(listed_hooks(connection, number)) >= MOST_HOOKS:
        raise CrowdtreeError(f"webhooks: at most {MOST_HOOKS} a campaign")
    secret = secrets.token_urlsafe(32)
    made = connection.execute(
        webhooks.insert()
        .values(campaign_id=number, url=url, secret=secret)
        .returning(webhooks.c.id)
    )
    hook = int(made.scalar_one())
    note(connection, now, "owner", "webhook", number, {"webhook": hook})
    return {"id": hook, "url": url, "secret": secret}


def listed_hooks(connection: Connection, number: int) -> list[dict[str, Any]]:
    """List the webhooks of a campaign, without their secrets."""
    get(connection, number)
    kept = [c for c in webhooks.c if c.name != "secret"]
    rows = connection.execute(
        sa.select(*kept).where(webhooks.c.campaign_id == number).order_by(webhooks.c.id)
    )
    return [dict(row._mapping) for row in rows]


def hook_deliveries(connection: Connection, number: int, hook: int) -> list[dict[str, Any]]:
    """List the last messages of a webhook, the newest first; `error` is empty for one that came."""
    _mine(connection, number, hook)
    columns = [c for c in deliveries.c if c.name != "webhook_id"]
    rows = connection.execute(
        sa.select(*columns)
        .where(deliveries.c.webhook_id == hook)
        .order_by(deliveries.c.id.desc())
        .limit(KEPT)
    )
    return [dict(row._mapping) for row in rows]


def retry_hook(connection: Connection, number: int, hook: int, now: float) -> None:
    """Send what is due at once, also where it was given up."""
    _mine(connection, number, hook)
    connection.execute(
        webhooks.update()
        .where(webhooks.c.id == hook)
        .values(status="active", failures=0, next_try_at=0.0)
    )
    note(connection, now, "owner", "retry webhook", number, {"webhook": hook})


def _mine(connection: Connection, number: int, hook: int) -> None:
    where = (webhooks.c.id == hook, webhooks.c.campaign_id == number)
    if connection.execute(sa.select(webhooks.c.id).where(*where)).one_or_none() is None:
        raise NotFound(f"webhook {hook} is not in campaign {number}")


def remove_hook(connection: Connection, number: int, hook: int, now: float) -> None:
    """Remove a webhook and what is remembered of it."""
    _mine(connection, number, hook)
    connection.execute(deliveries.delete().where(deliveries.c.webhook_id == hook))
    connection.execute(webhooks.delete().where(webhooks.c.id == hook))
    note(connection, now, "owner", "remove webhook", number, {"webhook": hook})


def claim(connection: Connection, now: float) -> list[dict[str, Any]]:
    """Take what is due, so that no other process sends it too: one message a webhook."""
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
    if rows:  # messages go on from a number
        wait_for_labels(connection)
    return [_message(connection, dict(row._mapping)) for row in rows]


def _message(connection: Connection, hook: dict[str, Any]) -> dict[str, Any]:
    number = hook["campaign_id"]
    classes = get(connection, number)["problem"]["classes"]
    rows = label_rows(connection, number, classes, hook["sent_label_id"], LABELS_AT_ONCE)
    last = rows[-1]["id"] if rows else hook["sent_label_id"]
    ended = not rows and hook["campaign_status"] == "finished"
    body = {
        "id": f"{hook['id']}-{'end' if ended else last}",
        "event": "campaign.finished" if ended else "items.labelled",
        "campaign": number,
        "labels": rows,
    }
    return {**hook, "body": body, "last": last, "ended": ended}


def settle_hook(connection: Connection, message: dict[str, Any], error: str, now: float) -> None:
    """Note that a message arrived, or when to try again (later and later)."""
    where = webhooks.c.id == message["id"]
    if connection.execute(sa.select(webhooks.c.id).where(where)).one_or_none() is None:
        return  # removed while the message was on its way
    _remember(connection, message, error, now)
    if not error:
        connection.execute(
            webhooks.update()
            .where(where)
            .values(
                sent_label_id=message["last"],
                finish_sent=int(message["ended"]),
                failures=0,
                next_try_at=0.0,
                last_error="",
            )
        )
        return
    failures = message["failures"] + 1
    connection.execute(
        webhooks.update()
        .where(where)
        .values(
            failures=failures,
            next_try_at=now + min(3600.0, 2.0**failures),
            last_error=error[:200],
            status="failed" if failures >= MOST_FAILURES else "active",
        )
    )


def _remember(connection: Connection, message: dict[str, Any], error: str, now: float) -> None:
    """Keep a line about a message, and forget the oldest."""
    hook, body = message["id"], message["body"]
    connection.execute(
        deliveries.insert().values(
            webhook_id=hook,
            at=now,
            message=body["id"],
            event=body["event"],
            labels=len(body["labels"]),
            error=error[:200],
        )
    )
    oldest = (
        sa.select(deliveries.c.id)
        .where(deliveries.c.webhook_id == hook)
        .order_by(deliveries.c.id.desc())
        .offset(KEPT - 1)
        .limit(1)
    )
    first = connection.execute(oldest).scalar_one_or_none()
    if first is not None:
        connection.execute(
            deliveries.delete().where(deliveries.c.webhook_id == hook, deliveries.c.id < first)
        )
