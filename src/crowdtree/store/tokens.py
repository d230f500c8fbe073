"""Tokens: random, kept only as hashes, revocable."""

from __future__ import annotations

import hashlib
import secrets
from typing import Any, Literal, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.store.tables import credentials

__all__ = ["Credential", "Role", "find", "hashed", "issue", "listed", "revoke", "take_once"]

Role = Literal["owner", "once", "worker", "join"]
"""`once` is the owner's one-time link; `join` lets anybody become a worker of a campaign."""
ID_LENGTH = 16
MOST_LISTED = 200


class Credential(NamedTuple):
    """What a token stands for."""

    token_hash: str
    role: Role
    campaign_id: int | None
    worker_id: int | None
    name: str


def hashed(token: str) -> str:
    """Hash a token. Tokens are 256 random bits, so a plain fast hash cannot be searched.

    >>> len(hashed("secret"))
    64
    """
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def issue(
    connection: Connection,
    role: Role,
    now: float,
    *,
    campaign_id: int | None = None,
    worker_id: int | None = None,
    name: str = "",
    seconds: float | None = None,
) -> str:
    """Make a token and store its hash; the token itself is returned this once."""
    token = secrets.token_urlsafe(32)
    connection.execute(
        credentials.insert().values(
            token_hash=hashed(token),
            role=role,
            campaign_id=campaign_id,
            worker_id=worker_id,
            name=name,
            created_at=now,
            expires_at=None if seconds is None else now + seconds,
        )
    )
    return token


def find(connection: Connection, token: str, now: float) -> Credential | None:
    """Find what a token stands for, unless it is unknown, expired or revoked."""
    wanted = hashed(token)
    row = connection.execute(_good(credentials.c.token_hash == wanted, now)).one_or_none()
    if row is None or not secrets.compare_digest(row.token_hash, wanted):
        return None
    return Credential(*row)


def take_once(connection: Connection, token: str, now: float) -> bool:
    """Use up a one-time token; true for the first to come only."""
    table = credentials
    done = connection.execute(
        table.update()
        .where(
            table.c.token_hash == hashed(token),
            table.c.role == "once",
            table.c.revoked_at.is_(None),
            sa.or_(table.c.expires_at.is_(None), table.c.expires_at > now),
        )
        .values(revoked_at=now)
    )
    return done.rowcount == 1


def listed(connection: Connection, now: float) -> list[dict[str, Any]]:
    """List the owner's tokens and sessions that work now; an id is the beginning of its hash."""
    columns = [credentials.c[name] for name in ("token_hash", "name", "created_at", "expires_at")]
    rows = connection.execute(
        sa.select(*columns)
        .where(
            credentials.c.role == "owner",
            credentials.c.revoked_at.is_(None),
            sa.or_(credentials.c.expires_at.is_(None), credentials.c.expires_at > now),
        )
        .order_by(credentials.c.created_at.desc(), credentials.c.token_hash)
        .limit(MOST_LISTED)
    )
    return [
        {
            "id": row.token_hash[:ID_LENGTH],
            "name": row.name,
            "kind": "token" if row.expires_at is None else "session",
            "created_at": row.created_at,
            "expires_at": row.expires_at,
        }
        for row in rows
    ]


def revoke(connection: Connection, now: float, *where: Any) -> int:
    """Revoke all tokens that fit; count them."""
    table = credentials
    done = connection.execute(
        table.update().where(table.c.revoked_at.is_(None), *where).values(revoked_at=now)
    )
    return done.rowcount


def _good(condition: Any, now: float) -> Any:
    table = credentials
    columns = [
        table.c.token_hash,
        table.c.role,
        table.c.campaign_id,
        table.c.worker_id,
        table.c.name,
    ]
    return sa.select(*columns).where(
        condition,
        table.c.revoked_at.is_(None),
        sa.or_(table.c.expires_at.is_(None), table.c.expires_at > now),
    )
