"""The verb `campaign sign-link`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from crowdtree.cli import render
from crowdtree.cli.campaign.database import HERE, Database, Number, import_server, opened
from crowdtree.cli.options import AsJson
from crowdtree.participants import DAY, sign_link


def sign_link_verb(
    number: Number,
    link: Annotated[
        str, typer.Argument(metavar="LINK", help="The join link, https://.../join/...")
    ],
    participants: Annotated[
        list[str], typer.Argument(metavar="PARTICIPANT...", help="Ids of people, one link each.")
    ],
    days: Annotated[
        float, typer.Option("--days", metavar="N", help="For how long the links can be opened.")
    ] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Each link can be opened once.")] = False,
    database: Database = HERE,
    as_json: AsJson = False,
) -> None:
    """Sign join links, so that nobody can change the participant id in them.

    Set participants=signed, and only such links let people join.

    Example:

      crowdtree campaign sign-link 1 https://label.example/join/TOKEN ann bob
    """
    derived = import_server("crowdtree.server.store.derived")
    rows = import_server("crowdtree.server.store.db.campaign_row")
    with opened(database) as store:
        campaign = store.read(lambda c: rows.get_campaign(c, number))
    key = derived.signing_key(campaign.secret, campaign.settings.people.signing_key)
    links = {
        participant: sign_link(link, key, participant, seconds=days * DAY, once=once)
        for participant in participants
    }

    def show(console: Any) -> None:
        for signed in links.values():
            console.print(signed, soft_wrap=True, highlight=False, markup=False)

    render.emit(as_json, {"links": links}, show)
