"""Tokens, stored only as hashes, and what is derived from the secret of a campaign."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections import Counter
from functools import lru_cache
from typing import Literal, NamedTuple, TypedDict

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.server.settings.model import Settings
from crowdtree.server.store.db.tables import credentials, owners, workers
from crowdtree.server.store.errors import Refused

Role = Literal["owner", "once", "worker", "join", "auditor", "used"]
"""`once` is the owner's one-time link; `join` lets anyone become a worker of a campaign; an
`auditor` checks labels of a campaign; `used` is the signature of a link that works only once, and
opens nothing."""
OWNERS: tuple[Role, ...] = ("owner", "once")
"""Whoever holds one of these has the rights of its owner."""
OwnerRole = Literal["viewer", "editor", "admin"]
"""What an owner may do: see everything, change campaigns, or administer the server as well."""
ROOT = "owner"
"""The name of whoever runs the server: an admin, by tokens that name no other owner."""
ID_LENGTH = 16
MAX_LISTED = 200


class Credential(NamedTuple):
    """The role and owner of a token."""

    token_hash: str
    role: Role
    campaign_id: int | None
    worker_id: int | None
    name: str
    read_only: bool
    owner_id: int | None
    owner: str
    """Name of the owner."""
    owner_role: OwnerRole


class OwnerToken(TypedDict):
    """A token, a session or an unused link of an owner; the id is the beginning of its hash."""

    id: str
    owner: str
    name: str
    kind: Literal["token", "session", "link"]
    read_only: bool
    created_at: float
    expires_at: float | None


def hashed(token: str) -> str:
    """Hash a token. Tokens have 256 random bits, so a fast hash cannot be searched.

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
    owner_id: int | None = None,
    read_only: bool = False,
    name: str = "",
    seconds: float | None = None,
) -> str:
    """Make a token and store its hash; the token itself is returned only here."""
    token = secrets.token_urlsafe(32)
    connection.execute(
        credentials.insert().values(
            token_hash=hashed(token),
            role=role,
            campaign_id=campaign_id,
            worker_id=worker_id,
            owner_id=owner_id,
            read_only=int(read_only),
            name=name,
            created_at=now,
            expires_at=None if seconds is None else now + seconds,
        )
    )
    return token


def find(connection: Connection, token: str, now: float) -> Credential | None:
    """Find the role and owner of a token, unless it is unknown, expired or revoked."""
    return find_hash(connection, hashed(token), now)


def find_hash(connection: Connection, wanted: str, now: float) -> Credential | None:
    """Find the role and owner of a token by its hash."""
    table = credentials
    row = connection.execute(
        sa.select(
            *(table.c[name] for name in Credential._fields if name in table.c),
            owners.c.name.label("owner"),
            owners.c.role.label("owner_role"),
        )
        .outerjoin(owners, owners.c.id == table.c.owner_id)
        .where(table.c.token_hash == wanted, owners.c.revoked_at.is_(None), *_valid(now))
    ).one_or_none()
    if row is None or not secrets.compare_digest(row.token_hash, wanted):
        return None
    found = Credential(**row._mapping)
    return found if found.owner_id else found._replace(owner=ROOT, owner_role="admin")


def worker_of(connection: Connection, token_hash: str, now: float) -> tuple[int, int]:
    """Return the campaign and the worker of a valid worker token, or refuse."""
    found = connection.execute(
        sa.select(credentials.c.campaign_id, credentials.c.worker_id).where(
            credentials.c.token_hash == token_hash, credentials.c.role == "worker", *_valid(now)
        )
    ).one_or_none()
    if found is None:
        raise Refused("blocked" if _is_blocked(connection, token_hash) else "unknown")
    return int(found.campaign_id), int(found.worker_id)


def _is_blocked(connection: Connection, token_hash: str) -> bool:
    """Whether a token stopped working because its worker was blocked."""
    found = connection.execute(
        sa.select(workers.c.status)
        .join(credentials, credentials.c.worker_id == workers.c.id)
        .where(credentials.c.token_hash == token_hash)
    ).scalar_one_or_none()
    return found == "blocked"


def take_once(connection: Connection, token: str, now: float) -> bool:
    """Use up a one-time token; true only for the first caller."""
    mine = (credentials.c.token_hash == hashed(token), credentials.c.role == "once")
    return revoke(connection, now, *mine, *_valid(now)) == 1


def use_once(connection: Connection, signature: str, campaign: int, now: float) -> bool:
    """Remember that a signed link was used; true only for the first caller."""
    wanted = hashed(f"{campaign}:{signature}")
    if connection.execute(
        sa.select(credentials.c.role).where(credentials.c.token_hash == wanted)
    ).one_or_none():
        return False
    values = {"token_hash": wanted, "role": "used", "campaign_id": campaign, "created_at": now}
    connection.execute(credentials.insert().values(**values))
    return True


def listed(connection: Connection, now: float, *where: sa.ColumnElement[bool]) -> list[OwnerToken]:
    """List valid tokens, sessions and unused links of owners."""
    names = ("token_hash", "role", "name", "read_only", "created_at", "expires_at")
    rows = connection.execute(
        sa.select(*(credentials.c[name] for name in names), owners.c.name.label("owner"))
        .outerjoin(owners, owners.c.id == credentials.c.owner_id)
        .where(credentials.c.role.in_(OWNERS), *where, *_valid(now))
        .order_by(credentials.c.created_at.desc(), credentials.c.token_hash)
        .limit(MAX_LISTED)
    )
    return [
        {
            "id": row.token_hash[:ID_LENGTH],
            "owner": row.owner or ROOT,
            "name": row.name,
            "kind": _kind(row.role, row.expires_at),
            "read_only": bool(row.read_only),
            "created_at": row.created_at,
            "expires_at": row.expires_at,
        }
        for row in rows
    ]


def counts(connection: Connection, now: float) -> Counter[tuple[int | None, str]]:
    """Count the valid tokens, sessions and unused links of each owner."""
    names = ("owner_id", "role", "expires_at")
    rows = connection.execute(
        sa.select(*(credentials.c[name] for name in names)).where(
            credentials.c.role.in_(OWNERS), *_valid(now)
        )
    )
    return Counter((row.owner_id, _kind(row.role, row.expires_at)) for row in rows)


def _kind(role: Role, expires_at: float | None) -> Literal["token", "session", "link"]:
    if role == "once":
        return "link"
    return "token" if expires_at is None else "session"


def revoke(connection: Connection, now: float, *where: sa.ColumnElement[bool]) -> int:
    """Revoke all tokens that match; count them."""
    table = credentials
    done = connection.execute(
        table.update().where(table.c.revoked_at.is_(None), *where).values(revoked_at=now)
    )
    return done.rowcount


def count(connection: Connection, now: float, *where: sa.ColumnElement[bool]) -> int:
    """Count the valid tokens that match."""
    found = sa.select(sa.func.count()).select_from(credentials).where(*where, *_valid(now))
    return int(connection.execute(found).scalar_one())


def of_owner(owner: int | None) -> sa.ColumnElement[bool]:
    """Condition for tokens, sessions and links of an owner; none is whoever runs the server."""
    return sa.and_(
        credentials.c.role.in_(OWNERS), credentials.c.owner_id.is_not_distinct_from(owner)
    )


def revoke_owner_tokens(
    connection: Connection, now: float, start_of_hash: str, *where: sa.ColumnElement[bool]
) -> int:
    """Revoke the owner tokens, sessions and links whose hash starts like this; count them."""
    mine = credentials.c.token_hash.startswith(start_of_hash, autoescape=True)
    return revoke(connection, now, credentials.c.role.in_(OWNERS), mine, *where, *_valid(now))


def _valid(now: float) -> tuple[sa.ColumnElement[bool], sa.ColumnElement[bool]]:
    """Conditions for a token that is neither revoked nor expired."""
    table = credentials
    unexpired = sa.or_(table.c.expires_at.is_(None), table.c.expires_at > now)
    return table.c.revoked_at.is_(None), unexpired


MAX_ENDING = 4
"""Longest extension of a file name that is kept."""


def new_secret() -> str:
    """Make the secret of a campaign."""
    return secrets.token_urlsafe(32)


def _derived(secret: str, purpose: str, text: str = "") -> bytes:
    return hmac.digest(secret.encode(), f"{purpose}:{text}".encode(), "sha256")


@lru_cache(maxsize=4096)  # an item is shown to several people, one soon after the other
def item_name(secret: str, task: str) -> str:
    """Name an item for workers, so that its name says nothing about it.

    >>> item_name("secret", "gold 1"), len(item_name("secret", "plain 1"))
    ('352090352195d1ec', 16)
    """
    return _derived(secret, "item", task).hex()[:16]


def file_name(secret: str, name: str) -> str:
    """Name an uploaded file for workers; the extension stays.

    >>> file_name("secret", "gold 1.png")[16:], file_name("secret", "x.is gold")[16:]
    ('.png', '')
    """
    stem, _, ending = name.rpartition(".")
    kept = stem and ending.isalnum() and len(ending) <= MAX_ENDING
    return _derived(secret, "file", name).hex()[:16] + (f".{ending}" if kept else "")


def personal_code(secret: str, worker: int) -> str:
    """The completion code of one worker.

    >>> personal_code("secret", 7)
    'Y4VS-DP75-4SUG'
    """
    text = base64.b32encode(_derived(secret, "code", str(worker))).decode()
    return "-".join((text[:4], text[4:8], text[8:12]))


def code_of(settings: Settings, secret: str, worker: int) -> str:
    """The completion code that a worker gets; empty where the campaign gives none."""
    return (
        personal_code(secret, worker)
        if settings.money.personal_codes
        else settings.money.completion_code
    )


def signing_key(secret: str, number: int) -> str:
    """A key with which a campaign's participant ids are signed; the owner can see it.

    >>> signing_key("secret", 0) == signing_key("secret", 1)
    False
    """
    return _derived(secret, f"participants {number}" if number else "participants").hex()


def network_mark(secret: str, network: str) -> str:
    """Recognise a network without storing its address; nothing for no network."""
    return _derived(secret, "network", network).hex()[:32] if network else ""
