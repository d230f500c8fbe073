"""The verbs `owner add`, `role`, `link`, `token`, `list` and `revoke`: who may do what."""

from __future__ import annotations

import time
from typing import Annotated, Any

from crowdtree.cli import render
from crowdtree.cli.campaign.database import (
    HERE,
    HERE_URL,
    Database,
    Url,
    base_url,
    import_server,
    next_step,
    opened,
)
from crowdtree.cli.groups import make_group
from crowdtree.cli.options import AsJson, argument, flag, option
from crowdtree.core.errors import CrowdtreeError

MOST_HOURS = 24.0 * 365
ROOT = "owner"
ROLES = ("viewer", "editor", "admin")
Name = Annotated[str, argument("NAME", "The person's name.")]
Hours = Annotated[
    float, option("How long it can be used.", None, "--hours", min=0.01, max=MOST_HOURS)
]


def add_verb(
    name: Name,
    role: Annotated[str, option("viewer, editor or admin.", "ROLE")] = "viewer",
    url: Url = HERE_URL,
    hours: Hours = 72.0,
    database: Database = HERE,
    as_json: AsJson = False,
) -> None:
    """Add a viewer, an editor or an administrator, and print a login link.

    Example:

      crowdtree owner add Ann --role editor --url https://label.example
    """
    wanted, base = _role(role), base_url(url)
    owners = import_server("crowdtree.server.store.owner.owners")
    with opened(database) as store:

        def add(connection: Any) -> str:
            made = owners.add(connection, name, wanted, store.clock())
            return str(owners.make_link(connection, made, store.clock(), 3600 * hours))

        link = f"{base}/login?token={store.write(add)}"
    found = {"name": name, "role": wanted, "link": link, "hours": hours}
    render.emit(as_json, found, link)


def role_verb(
    name: Name,
    role: Annotated[str, argument("ROLE", "viewer, editor or admin.")],
    database: Database = HERE,
    as_json: AsJson = False,
) -> None:
    """Change a person's role; it takes effect with the next request.

    Example:

      crowdtree owner role Ann admin
    """
    wanted = _role(role)
    owners = import_server("crowdtree.server.store.owner.owners")
    with opened(database) as store:

        def change(connection: Any) -> None:
            owner = owners.find(connection, name)
            if owner is None:
                raise CrowdtreeError(f"{ROOT}: whoever runs the server is always an admin")
            owners.set_role(connection, owner, wanted, store.clock())

        store.write(change)

    then = next_step(database, "owner", "list")
    render.emit(as_json, {"name": name, "role": wanted}, f"{name}: {wanted}", then=then)


def link_verb(
    name: Annotated[str, argument("[NAME]", "The person to log in.")] = ROOT,
    url: Url = HERE_URL,
    hours: Hours = 24.0,
    database: Database = HERE,
    as_json: AsJson = False,
) -> None:
    """Print a link that logs an owner in, once. The server may be running.

    Without a name it is for whoever runs the server, an admin.

    Example:

      crowdtree owner link --url https://label.example
    """
    serve = import_server("crowdtree.server.web.serve")
    with opened(database) as store:
        link = serve.owner_link(store, base_url(url), 3600 * hours, name=name)
    render.emit(as_json, {"link": link, "hours": hours}, link)


def token_verb(
    purpose: Annotated[str, argument("PURPOSE", "What it is for.")],
    owner: Annotated[str, option("The person with whose role it works.", "NAME")] = ROOT,
    read_only: Annotated[
        bool, flag("--read-only", "Let it read what viewers see, and change nothing.")
    ] = False,
    database: Database = HERE,
    as_json: AsJson = False,
) -> None:
    """Print a token for a program; it works until it is revoked.

    Example:

      crowdtree owner token metrics --read-only
    """
    owners = import_server("crowdtree.server.store.owner.owners")
    with opened(database) as store:

        def make(connection: Any) -> str:
            found, now = owners.find(connection, owner), store.clock()
            return str(owners.make_token(connection, found, purpose, now, read_only=read_only))

        token = store.write(make)
    found = {"token": token, "owner": owner, "purpose": purpose, "read_only": read_only}
    render.emit(as_json, found, token)


def list_verb(database: Database = HERE, as_json: AsJson = False) -> None:
    """List owners, and their tokens, sessions and unused links without the secrets. Times are UTC.

    Example:

      crowdtree owner list
    """
    owners = import_server("crowdtree.server.store.owner.owners")
    tokens = import_server("crowdtree.server.store.tokens")
    with opened(database) as store:
        people = store.read(lambda c: owners.list_owners(c, store.clock()))
        rows = store.read(lambda c: tokens.listed(c, store.clock()))

    lines = [f"{person['role']:<7}  {person['name']}" for person in people]
    lines += map(_access_line, rows)
    lines += [] if rows else ["There is no token, session or unused link."]
    then = "" if rows else next_step(database, "owner", "link")
    render.emit(as_json, {"people": people, "access": rows}, lines, then=then)


def _access_line(row: dict[str, Any]) -> str:
    times = f"since {_at(row['created_at'])}, until {_at(row['expires_at'])}"
    name = f"{row['owner']}: {row['name']}{' (read-only)' if row['read_only'] else ''}"
    return f"{row['id']}  {row['kind']:<7}  {times}  {name}"


def revoke_verb(
    which: Annotated[
        list[str] | None,
        argument("[NAMES|IDS]...", "People, or ids of tokens, from crowdtree owner list."),
    ] = None,
    everything: Annotated[
        bool, flag("--all", "Revoke all tokens, sessions and links; people stay.")
    ] = False,
    database: Database = HERE,
    as_json: AsJson = False,
) -> None:
    """Remove people, or revoke tokens, sessions or links. Campaigns are not affected.

    Examples:

      crowdtree owner revoke Ann

      crowdtree owner revoke 0123456789abcdef
    """
    if bool(which) == everything:
        raise CrowdtreeError("owner revoke: give names or ids from crowdtree owner list, or --all")
    owners = import_server("crowdtree.server.store.owner.owners")
    with opened(database) as store:

        def revoke(connection: Any) -> int:
            now = store.clock()
            if everything:
                return int(owners.revoke_token(connection, "", now))
            return sum(owners.revoke_any(connection, each, now) for each in which or ())

        count = store.write(revoke)

    then = next_step(database, "owner", "list")
    render.emit(as_json, {"revoked": count}, f"Revoked: {count}.", then=then)


def _role(text: str) -> str:
    """Check a role.

    >>> _role("Editor")
    'editor'
    """
    if text.strip().lower() not in ROLES:
        raise CrowdtreeError(f"role: expected viewer, editor or admin, got {text!r}")
    return text.strip().lower()


def _at(seconds: float | None) -> str:
    """Write a time.

    >>> _at(0.0), _at(None)
    ('1970-01-01 00:00', 'revoked')
    """
    return "revoked" if seconds is None else time.strftime("%Y-%m-%d %H:%M", time.gmtime(seconds))


owner_app = make_group(
    "Manage owners, their roles and how they log in.",
    add_verb,
    role_verb,
    link_verb,
    token_verb,
    list_verb,
    revoke_verb,
)
