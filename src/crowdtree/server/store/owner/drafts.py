"""Drafts: a campaign that was not started can change its policy or be deleted."""

from __future__ import annotations

from sqlalchemy.engine import Connection

from crowdtree.core.errors import CrowdtreeError
from crowdtree.server.store.db.activity import note
from crowdtree.server.store.db.campaign_row import Campaign, definition_of, get_campaign
from crowdtree.server.store.db.tables import campaigns
from crowdtree.server.store.owner.deleting import remove_rows
from crowdtree.server.store.types import AnyPolicy


def change_policy(connection: Connection, number: int, policy: AnyPolicy, now: float) -> None:
    """Replace the policy of a draft; items and workers stay."""
    _draft(connection, number)
    connection.execute(
        campaigns.update()
        .where(campaigns.c.id == number)
        .values(
            **definition_of(policy),
            version=campaigns.c.version + 1,
        )
    )
    note(connection, now, "policy", number)


def discard(connection: Connection, number: int, now: float) -> None:
    """Delete a draft with its items and invitations; the activity log keeps an entry."""
    name = _draft(connection, number).name
    remove_rows(connection, number)
    note(connection, now, "discard", number, {"name": name})


def _draft(connection: Connection, number: int) -> Campaign:
    found = get_campaign(connection, number)
    if found.status != "draft":
        raise CrowdtreeError(f"campaign {number} has started and keeps its plan and its items")
    return found
