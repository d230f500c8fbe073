"""Owners of the server by name: add, list, change the role, revoke.

Whoever runs the server needs no row: they log in by the link that `crowdtree serve` or `crowdtree
owner link` prints, as an admin called `owner`.
"""

from __future__ import annotations

import unicodedata
from typing import Any, TypedDict, get_args

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.core.errors import CrowdtreeError
from crowdtree.server.store import tokens
from crowdtree.server.store.db.activity import COMMAND_LINE, SERVER, note
from crowdtree.server.store.db.tables import credentials, owners
from crowdtree.server.store.errors import NotFound
from crowdtree.server.store.owner.campaigns import storable
from crowdtree.server.store.tokens import ROOT, OwnerRole

ROLES: tuple[OwnerRole, ...] = get_args(OwnerRole)
"""The roles; each may do what those before it may."""
RESERVED = (ROOT, SERVER, "worker", COMMAND_LINE.address)
"""Names of others in the activity log, and what stands there instead of one."""


class OwnerRow(TypedDict):
    """An owner; the id is none for whoever runs the server."""

    id: int | None
    name: str
    role: OwnerRole
    created_at: float | None
    sessions: int
    tokens: int
    links: int


def may(role: OwnerRole, least: OwnerRole) -> bool:
    """Whether a role may do what takes at least another one.

    >>> may("editor", "viewer"), may("viewer", "admin")
    (True, False)
    """
    return ROLES.index(role) >= ROLES.index(least)


def add(connection: Connection, name: str, role: OwnerRole, now: float) -> int:
    """Add an owner; somebody whose rights were revoked may come back. Returns the id."""
    name = " ".join(name.split())
    if not name or not storable(name) or not name.isprintable():
        raise CrowdtreeError("owner: expected a name of 1 to 200 printable characters")
    if _key(name) in RESERVED or _is_id(name):
        raise CrowdtreeError(f"owner: {name!r} is taken; choose another name")
    row = _called(connection, name)
    if row is None:
        made = owners.insert().values(name=name, role=role, created_at=now)
        owner = int(connection.execute(made.returning(owners.c.id)).scalar_one())
    elif row.revoked_at is None:
        raise CrowdtreeError(f"owner: there is already somebody called {row.name!r}")
    else:
        owner, name = int(row.id), str(row.name)
        again = {"role": role, "created_at": now, "revoked_at": None}
        connection.execute(owners.update().where(owners.c.id == owner).values(**again))
    note(connection, now, "add owner", None, {"name": name, "role": role})
    return owner


def _called(connection: Connection, name: str) -> sa.Row[Any] | None:
    """Find somebody by the name, in any case; the databases differ in what they call the same."""
    rows = connection.execute(sa.select(owners))
    return next((row for row in rows if _key(row.name) == _key(name)), None)


def _key(name: str) -> str:
    """What is the same for names that look the same.

    >>> _key("Ann") == _key("\uff21nn")
    True
    """
    return unicodedata.normalize("NFKC", name).casefold()


def _is_id(name: str) -> bool:
    """Whether a name looks like the id of a token, which the command line accepts as well."""
    return len(name) == tokens.ID_LENGTH and set(name) <= set("0123456789abcdef")


def _get(connection: Connection, owner: int) -> sa.Row[Any]:
    """Read an owner."""
    mine = (owners.c.id == owner, owners.c.revoked_at.is_(None))
    row = connection.execute(sa.select(owners).where(*mine)).one_or_none()
    if row is None:
        raise NotFound(f"there is no owner {owner}")
    return row


def _name(connection: Connection, owner: int | None) -> str:
    return ROOT if owner is None else str(_get(connection, owner).name)


def find(connection: Connection, name: str) -> int | None:
    """Find the id of an owner by the name; none is whoever runs the server."""
    wanted = " ".join(name.split())
    if _key(wanted) == ROOT:
        return None
    row = _called(connection, wanted)
    if row is None or row.revoked_at is not None:
        raise NotFound(f"owner: there is nobody called {name!r}; crowdtree owner list shows names")
    return int(row.id)


def list_owners(connection: Connection, now: float) -> list[OwnerRow]:
    """List owners by name, after whoever runs the server."""
    rows = connection.execute(sa.select(owners).where(owners.c.revoked_at.is_(None)))
    named = [(int(row.id), str(row.name), row.role, row.created_at) for row in rows]
    everybody = [(None, ROOT, "admin", None), *sorted(named, key=lambda row: row[1].casefold())]
    counts = tokens.counts(connection, now)
    return [
        OwnerRow(
            id=owner,
            name=name,
            role=role,
            created_at=since,
            sessions=counts[owner, "session"],
            tokens=counts[owner, "token"],
            links=counts[owner, "link"],
        )
        for owner, name, role, since in everybody
    ]


def set_role(connection: Connection, owner: int, role: OwnerRole, now: float) -> None:
    """Change the role of an owner, from the next request on."""
    row = _get(connection, owner)
    connection.execute(owners.update().where(owners.c.id == owner).values(role=role))
    note(connection, now, "role", None, {"name": row.name, "role": role, "before": row.role})


def revoke(connection: Connection, owner: int | None, now: float) -> int:
    """End all tokens, sessions and links of an owner, who is removed; count them.

    Whoever runs the server is logged out everywhere, and can make a new link.
    """
    name = _name(connection, owner)
    if owner is not None:
        connection.execute(owners.update().where(owners.c.id == owner).values(revoked_at=now))
    count = tokens.revoke(connection, now, tokens.of_owner(owner))
    note(connection, now, "revoke owner", None, {"name": name})
    return count


def make_link(
    connection: Connection, owner: int | None, now: float, seconds: float, replace: bool = False
) -> str:
    """Make a token that logs an owner in, once; `replace` ends those that were not used."""
    name = _name(connection, owner)
    if replace:
        tokens.revoke(connection, now, credentials.c.role == "once", tokens.of_owner(owner))
    note(connection, now, "login link", None, {"name": name})
    return tokens.issue(connection, "once", now, owner_id=owner, name="link", seconds=seconds)


def make_token(
    connection: Connection, owner: int | None, purpose: str, now: float, read_only: bool = False
) -> str:
    """Make a token for programs, with the rights of an owner or only to read."""
    if not purpose.strip() or not storable(purpose):
        raise CrowdtreeError("token: expected a purpose of 1 to 200 characters without NUL")
    name = _name(connection, owner)
    detail = {"name": name, "purpose": purpose, "read_only": read_only}
    note(connection, now, "token", None, detail)
    return tokens.issue(connection, "owner", now, owner_id=owner, read_only=read_only, name=purpose)


def revoke_token(
    connection: Connection, token_id: str, now: float, *where: sa.ColumnElement[bool]
) -> int:
    """End a token, session or link by its id; count what ended."""
    count = tokens.revoke_owner_tokens(connection, now, token_id, *where)
    if count:
        note(connection, now, "revoke token", None, {"id": token_id or "all"})
    return count


def revoke_any(connection: Connection, which: str, now: float) -> int:
    """Remove a person by the name, or end a token, session or link by its id; count what ended."""
    if not _is_id(which):
        return revoke(connection, find(connection, which), now)
    count = revoke_token(connection, which, now)
    if not count:
        raise NotFound(
            f"{which}: there is no such token, session or link; crowdtree owner list shows the ids"
        )
    return count
