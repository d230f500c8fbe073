"""Drafts: campaigns that nobody has answered in may still change their plan or be thrown away."""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.errors import CrowdtreeError
from crowdtree.policy import Policy
from crowdtree.store.campaigns import get, note
from crowdtree.store.codec import problem_to_json
from crowdtree.store.tables import (
    budgets,
    campaigns,
    credentials,
    deliveries,
    items,
    tallies,
    webhooks,
    workers,
)

__all__ = ["change_policy", "discard", "rename"]


def change_policy(connection: Connection, number: int, policy: Policy[Any], now: float) -> None:
    """Give a draft another plan or policy; items and workers stay."""
    _draft(connection, number)
    connection.execute(
        campaigns.update()
        .where(campaigns.c.id == number)
        .values(
            problem=json.dumps(problem_to_json(policy.problem)),
            policy=json.dumps(policy.to_dict()),
            version=campaigns.c.version + 1,
        )
    )
    note(connection, now, "owner", "policy", number)


def rename(connection: Connection, number: int, name: str, now: float) -> None:
    """Give a campaign another name."""
    get(connection, number)
    if not 0 < len(name.strip()) <= 200:
        raise CrowdtreeError("name: must have 1 to 200 characters")
    where = campaigns.c.id == number
    connection.execute(campaigns.update().where(where).values(name=name.strip()))
    note(connection, now, "owner", "rename", number, {"name": name.strip()})


def discard(connection: Connection, number: int, now: float) -> None:
    """Delete a draft with its items and invitations; the audit log keeps a line."""
    name = _draft(connection, number)["name"]
    hooks = sa.select(webhooks.c.id).where(webhooks.c.campaign_id == number)
    connection.execute(deliveries.delete().where(deliveries.c.webhook_id.in_(hooks)))
    for table in (credentials, webhooks, tallies, budgets, items, workers):
        connection.execute(table.delete().where(table.c.campaign_id == number))
    connection.execute(campaigns.delete().where(campaigns.c.id == number))
    note(connection, now, "owner", "discard", number, {"name": name})


def _draft(connection: Connection, number: int) -> dict[str, Any]:
    row = connection.execute(
        sa.select(campaigns.c.status, campaigns.c.name).where(campaigns.c.id == number)
    ).one_or_none()
    found = get(connection, number) if row is None else dict(row._mapping)
    if found["status"] != "draft":
        raise CrowdtreeError(f"campaign {number} has started and keeps its plan and its items")
    return found
