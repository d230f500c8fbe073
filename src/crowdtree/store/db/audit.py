"""The audit log: what the owner and the server did."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Literal, TypedDict

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.store.db.tables import audit
from crowdtree.store.types import JsonObject

__all__ = ["AuditEntry", "audited", "note"]


class AuditEntry(TypedDict):
    """One action."""

    id: int
    at: float
    actor: str
    action: str
    campaign_id: int | None
    detail: JsonObject


def note(
    connection: Connection,
    now: float,
    action: str,
    campaign: int | None,
    detail: Mapping[str, object] | None = None,
    actor: Literal["owner", "server"] = "owner",
) -> None:
    """Append to the audit log."""
    text = json.dumps(dict(detail or {}))
    connection.execute(
        audit.insert().values(at=now, actor=actor, action=action, campaign_id=campaign, detail=text)
    )


def audited(connection: Connection, number: int, most: int = 500) -> list[AuditEntry]:
    """Read the last entries about a campaign, the newest first."""
    rows = connection.execute(
        sa.select(audit)
        .where(audit.c.campaign_id == number)
        .order_by(audit.c.id.desc())
        .limit(most)
    )
    return [
        AuditEntry(
            id=row.id,
            at=row.at,
            actor=row.actor,
            action=row.action,
            campaign_id=row.campaign_id,
            detail=json.loads(row.detail),
        )
        for row in rows
    ]
