"""The verb `campaign sign-link`."""

from __future__ import annotations

from typing import Annotated

from crowdtree.cli import render
from crowdtree.cli.campaign.database import HERE, Database, Number, import_server, opened
from crowdtree.cli.options import AsJson, argument, flag, option
from crowdtree.participants import DAY, sign_link


def sign_link_verb(
    number: Number,
    link: Annotated[
        str, argument("LINK", "The join link, https://.../join/...", show_default=True)
    ],
    participants: Annotated[
        list[str], argument("PARTICIPANT...", "Ids of people, one link each.", show_default=True)
    ],
    days: Annotated[float, option("For how long the links can be opened.", "N")] = 1.0,
    once: Annotated[bool, flag("--once", "Each link can be opened once.")] = False,
    database: Database = HERE,
    as_json: AsJson = False,
) -> None:
    """Sign join links, so that nobody can change the participant id in them.

    Set participants=signed, and only such links let people join.

    Example:

      crowdtree campaign sign-link 1 https://label.example/join/TOKEN ann bob
    """
    derived = import_server("crowdtree.server.store.tokens")
    rows = import_server("crowdtree.server.store.db.campaign_row")
    with opened(database) as store:
        campaign = store.read(lambda c: rows.get_campaign(c, number))
    key = derived.signing_key(campaign.secret, campaign.settings.people.signing_key)
    links = {
        participant: sign_link(link, key, participant, seconds=days * DAY, once=once)
        for participant in participants
    }

    render.emit(as_json, {"links": links}, list(links.values()))
