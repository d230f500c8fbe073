"""Webhooks of a campaign: add, list, retry, remove."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypedDict, cast

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.core.errors import CrowdtreeError
from crowdtree.server.store.db.activity import note
from crowdtree.server.store.db.campaign_row import get_campaign
from crowdtree.server.store.db.tables import deliveries, webhooks
from crowdtree.server.store.errors import NotFound
from crowdtree.server.webhooks.outbox import IS_BEHIND
from crowdtree.webhooks import new_secret

MAX_HOOKS = 10


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
    failures: int
    next_try_at: float
    status: str
    last_error: str


class Delivery(TypedDict):
    """A message of a webhook; `error` says why the last attempt failed."""

    id: int
    at: float
    message: str
    event: str
    rows: int
    attempts: int
    arrived: bool
    error: str


class WebhookReport(Webhook):
    """A webhook with its last messages, and whether there is more to send."""

    deliveries: list[Delivery]
    behind: bool


def add_hook(
    connection: Connection,
    campaign_id: int,
    url: str,
    now: float,
    seal: Callable[[str], str] = str,
) -> NewWebhook:
    """Add a webhook; its secret signs messages, so it is stored as `seal` encrypts it."""
    get_campaign(connection, campaign_id)
    if len(listed_hooks(connection, campaign_id)) >= MAX_HOOKS:
        raise CrowdtreeError(f"webhooks: at most {MAX_HOOKS} per campaign")
    secret = new_secret()
    row = webhooks.insert().values(campaign_id=campaign_id, url=url, secret=seal(secret))
    webhook_id = int(connection.execute(row.returning(webhooks.c.id)).scalar_one())
    note(connection, now, "webhook", campaign_id, {"webhook": webhook_id})
    return {"id": webhook_id, "url": url, "secret": secret}


def listed_hooks(connection: Connection, campaign_id: int) -> list[Webhook]:
    """List the webhooks of a campaign."""
    get_campaign(connection, campaign_id)
    kept = [webhooks.c[name] for name in Webhook.__annotations__]
    rows = connection.execute(
        sa.select(*kept).where(webhooks.c.campaign_id == campaign_id).order_by(webhooks.c.id)
    )
    return [cast(Webhook, dict(row._mapping)) for row in rows]


def hook_deliveries(connection: Connection, campaign_id: int, webhook_id: int) -> list[Delivery]:
    """List the last messages of a webhook, the newest first."""
    _check_hook(connection, campaign_id, webhook_id)
    rows = connection.execute(
        sa.select(*(deliveries.c[name] for name in Delivery.__annotations__))
        .where(deliveries.c.webhook_id == webhook_id)
        .order_by(deliveries.c.id.desc())
    )
    return [cast(Delivery, {**row._mapping, "arrived": bool(row.arrived)}) for row in rows]


def reported_hooks(connection: Connection, campaign_id: int) -> list[WebhookReport]:
    """List the webhooks of a campaign with their last messages."""
    mine = (webhooks.c.campaign_id == campaign_id, IS_BEHIND)
    behind = set(connection.execute(sa.select(webhooks.c.id).where(*mine)).scalars())
    return [
        {
            **hook,
            "deliveries": hook_deliveries(connection, campaign_id, hook["id"]),
            "behind": hook["id"] in behind,
        }
        for hook in listed_hooks(connection, campaign_id)
    ]


def retry_hook(connection: Connection, campaign_id: int, webhook_id: int, now: float) -> None:
    """Send what is due at once, even after deliveries were given up."""
    _check_hook(connection, campaign_id, webhook_id)
    mine = webhooks.update().where(webhooks.c.id == webhook_id)
    connection.execute(mine.values(status="active", failures=0, next_try_at=0.0))
    note(connection, now, "retry webhook", campaign_id, {"webhook": webhook_id})


def remove_hook(connection: Connection, campaign_id: int, webhook_id: int, now: float) -> None:
    """Remove a webhook and its messages."""
    _check_hook(connection, campaign_id, webhook_id, lock=True)
    connection.execute(deliveries.delete().where(deliveries.c.webhook_id == webhook_id))
    connection.execute(webhooks.delete().where(webhooks.c.id == webhook_id))
    note(connection, now, "remove webhook", campaign_id, {"webhook": webhook_id})


def _check_hook(
    connection: Connection, campaign_id: int, webhook_id: int, lock: bool = False
) -> None:
    where = (webhooks.c.id == webhook_id, webhooks.c.campaign_id == campaign_id)
    query = sa.select(webhooks.c.id).where(*where)
    if connection.execute(query.with_for_update() if lock else query).one_or_none() is None:
        raise NotFound(f"webhook {webhook_id} is not in campaign {campaign_id}")
