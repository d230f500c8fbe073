"""Webhooks of a campaign: add, list, retry, remove."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypedDict, cast

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.core.errors import CrowdtreeError
from crowdtree.server.store.db.activity import EVENTS, note
from crowdtree.server.store.db.campaign_row import get_campaign
from crowdtree.server.store.db.tables import activity, deliveries, labels, webhooks, withdrawals
from crowdtree.server.store.errors import NotFound
from crowdtree.webhooks import new_secret

MOST_HOOKS = 10
MOST_LISTED = 50


class NewWebhook(TypedDict):
    """A webhook that was added; the secret is shown only here."""

    id: int
    url: str
    secret: str


class Webhook(TypedDict):
    """A webhook without its secret."""

    id: int
    campaign_id: int
    url: str
    sent_label_id: int
    sent_withdrawal_id: int
    sent_activity_id: int
    finish_sent: int
    failures: int
    next_try_at: float
    status: str
    last_error: str


class Delivery(TypedDict):
    """A message of a webhook; `error` is empty if it arrived."""

    id: int
    at: float
    message: str
    event: str
    labels: int
    error: str


class WebhookReport(Webhook):
    """A webhook with its last messages, and whether labels are still to be sent."""

    deliveries: list[Delivery]
    behind: bool


def add_hook(
    connection: Connection,
    number: int,
    url: str,
    now: float,
    seal: Callable[[str], str] = str,
) -> NewWebhook:
    """Add a webhook; its secret signs messages, so it is stored as `seal` encrypts it."""
    get_campaign(connection, number)
    if len(listed_hooks(connection, number)) >= MOST_HOOKS:
        raise CrowdtreeError(f"webhooks: at most {MOST_HOOKS} per campaign")
    secret = new_secret()
    made = connection.execute(
        webhooks.insert()
        .values(campaign_id=number, url=url, secret=seal(secret))
        .returning(webhooks.c.id)
    )
    hook = int(made.scalar_one())
    note(connection, now, "webhook", number, {"webhook": hook})
    return {"id": hook, "url": url, "secret": secret}


def seal_secrets(connection: Connection, seal: Callable[[str], str], prefix: str) -> int:
    """Encrypt the secrets that are stored as they are, without the prefix; count them."""
    plain = sa.select(webhooks.c.id, webhooks.c.secret).where(
        webhooks.c.secret.not_like(f"{prefix}%")
    )
    rows = connection.execute(plain).all()
    for row in rows:
        mine = webhooks.c.id == row.id
        connection.execute(webhooks.update().where(mine).values(secret=seal(row.secret)))
    return len(rows)


def listed_hooks(connection: Connection, number: int) -> list[Webhook]:
    """List the webhooks of a campaign."""
    get_campaign(connection, number)
    kept = [webhooks.c[name] for name in Webhook.__annotations__]
    rows = connection.execute(
        sa.select(*kept).where(webhooks.c.campaign_id == number).order_by(webhooks.c.id)
    )
    return [cast(Webhook, dict(row._mapping)) for row in rows]


def hook_deliveries(connection: Connection, number: int, hook: int) -> list[Delivery]:
    """List the last messages of a webhook, the newest first."""
    _check_hook(connection, number, hook)
    columns = [deliveries.c[name] for name in Delivery.__annotations__]
    rows = connection.execute(
        sa.select(*columns)
        .where(deliveries.c.webhook_id == hook)
        .order_by(deliveries.c.id.desc())
        .limit(MOST_LISTED)
    )
    return [cast(Delivery, dict(row._mapping)) for row in rows]


def reported_hooks(connection: Connection, number: int) -> list[WebhookReport]:
    """List the webhooks of a campaign with their last messages."""
    newest, void, told = (
        connection.execute(
            sa.select(sa.func.coalesce(sa.func.max(table.c.id), 0)).where(
                table.c.campaign_id == number, which
            )
        ).scalar_one()
        for table, which in (
            (labels, sa.true()),
            (withdrawals, sa.true()),
            (activity, activity.c.action.in_(EVENTS)),
        )
    )
    return [
        {
            **hook,
            "deliveries": hook_deliveries(connection, number, hook["id"]),
            "behind": newest > hook["sent_label_id"]
            or void > hook["sent_withdrawal_id"]
            or told > hook["sent_activity_id"],
        }
        for hook in listed_hooks(connection, number)
    ]


def retry_hook(connection: Connection, number: int, hook: int, now: float) -> None:
    """Send what is due at once, even after deliveries were given up."""
    _check_hook(connection, number, hook)
    connection.execute(
        webhooks.update()
        .where(webhooks.c.id == hook)
        .values(status="active", failures=0, next_try_at=0.0)
    )
    note(connection, now, "retry webhook", number, {"webhook": hook})


def _check_hook(connection: Connection, number: int, hook: int) -> None:
    where = (webhooks.c.id == hook, webhooks.c.campaign_id == number)
    if connection.execute(sa.select(webhooks.c.id).where(*where)).one_or_none() is None:
        raise NotFound(f"webhook {hook} is not in campaign {number}")


def remove_hook(connection: Connection, number: int, hook: int, now: float) -> None:
    """Remove a webhook and its deliveries."""
    _check_hook(connection, number, hook)
    connection.execute(deliveries.delete().where(deliveries.c.webhook_id == hook))
    connection.execute(webhooks.delete().where(webhooks.c.id == hook))
    note(connection, now, "remove webhook", number, {"webhook": hook})
