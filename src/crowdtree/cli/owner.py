"""The verbs `owner link`, `owner list` and `owner revoke`: who may log in as the owner."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from crowdtree.cli import render
from crowdtree.cli.campaign.database import HERE, Database, import_server, next_step, opened
from crowdtree.cli.groups import make_group
from crowdtree.cli.options import AsJson
from crowdtree.cli.serve import Address, base_url
from crowdtree.errors import CrowdtreeError

__all__ = ["owner_app"]

HERE_URL = f"http://127.0.0.1:{Address.port}"
MOST_HOURS = 24.0 * 365


def link_verb(
    url: Annotated[
        str,
        typer.Option(
            "--url",
            metavar="URL",
            envvar="CROWDTREE_URL",
            help="Address of the server, as --url of serve.",
        ),
    ] = HERE_URL,
    hours: Annotated[
        float, typer.Option("--hours", min=0.01, max=MOST_HOURS, help="How long it can be used.")
    ] = 24.0,
    database: Database = HERE,
    as_json: AsJson = False,
) -> None:
    """Print a link that logs the owner in, once. The server may be running.

    Example:

      crowdtree owner link --url https://label.example
    """
    serve = import_server("crowdtree.web.serve")
    with opened(database) as store:
        link = serve.owner_link(store, base_url(url), 3600 * hours)

    def show(console: Any) -> None:
        console.print(link, soft_wrap=True, markup=False, highlight=False)

    render.emit(as_json, {"link": link, "hours": hours}, show)


def list_verb(database: Database = HERE, as_json: AsJson = False) -> None:
    """List tokens, sessions and unused links of the owner, without their secrets. Times are UTC.

    Example:

      crowdtree owner list
    """
    tokens = import_server("crowdtree.store.owner.tokens")
    with opened(database) as store:
        rows = store.read(lambda c: tokens.listed(c, store.clock()))

    def show(console: Any) -> None:
        for row in rows:
            ends = _at(row["expires_at"])
            line = f"{row['id']}  {row['kind']:<7}  since {_at(row['created_at'])}, until {ends}"
            console.print(f"{line}  {row['name']}", markup=False, soft_wrap=True)
        if not rows:
            console.print("There is no token, session or unused link.")

    then = "" if rows else next_step(database, "owner", "link")
    render.emit(as_json, {"access": rows}, show, then=then)


def revoke_verb(
    ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="[IDS]...", help="From crowdtree owner list.", show_default=False),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Revoke all tokens, sessions and links.")
    ] = False,
    database: Database = HERE,
    as_json: AsJson = False,
) -> None:
    """End tokens, sessions or links of the owner at once. Campaigns are not affected.

    Example:

      crowdtree owner revoke 0123456789abcdef
    """
    if bool(ids) == everything:
        raise CrowdtreeError("owner revoke: give ids from crowdtree owner list, or --all")
    tokens = import_server("crowdtree.store.owner.tokens")
    with opened(database) as store:

        def revoke(connection: Any) -> int:
            known = {row["id"] for row in tokens.listed(connection, store.clock())}
            unknown = sorted(set(ids or ()) - known)
            if unknown:
                raise CrowdtreeError(
                    f"{unknown[0]}: there is no such token, session or link; "
                    "crowdtree owner list shows their ids"
                )
            wanted = [""] if everything else ids or []
            return sum(
                tokens.revoke_owner_tokens(connection, store.clock(), start) for start in wanted
            )

        count = store.write(revoke)

    def show(console: Any) -> None:
        console.print(f"Revoked: {count}.")

    render.emit(as_json, {"revoked": count}, show, then=next_step(database, "owner", "link"))


def _at(seconds: float | None) -> str:
    """Write a time.

    >>> _at(0.0), _at(None)
    ('1970-01-01 00:00', 'revoked')
    """
    return "revoked" if seconds is None else time.strftime("%Y-%m-%d %H:%M", time.gmtime(seconds))


owner_app = make_group(
    "Make, list and revoke what logs the owner in.", link_verb, list_verb, revoke_verb
)
