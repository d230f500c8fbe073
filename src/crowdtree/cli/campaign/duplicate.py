"""The verb `campaign duplicate`."""

from __future__ import annotations

from typing import Annotated

from crowdtree.cli import render
from crowdtree.cli.campaign.database import (
    HERE,
    Database,
    MediaPlace,
    Number,
    import_server,
    next_step,
    opened,
    opened_media,
)
from crowdtree.cli.options import AsJson, flag, option
from crowdtree.core.text import plural


def duplicate_verb(
    number: Number,
    name: Annotated[str, option("Name of the new campaign.")] = "",
    items: Annotated[bool, flag("--items", "Copy the items and their uploaded media too.")] = False,
    database: Database = HERE,
    media: MediaPlace = None,
    as_json: AsJson = False,
) -> None:
    """Create a draft with the plan, questions and settings of a campaign.

    Answers, workers, links, secrets, completion code and return address are not copied.

    Example:

      crowdtree campaign duplicate 1 --items --name "Second round"
    """
    service = import_server("crowdtree.server.web.services.campaigns")
    files = opened_media(database, media)
    with opened(database) as store:
        made = service.duplicate_campaign(store, files, number, name, items)

    copied = plural(made["items"], "item")
    words = f"Campaign {made['id']} is a copy of campaign {number}, with {copied}."
    verb = ("start", made["id"]) if made["items"] else ("items", made["id"], "items.csv")
    render.emit(as_json, dict(made), words, then=next_step(database, "campaign", *verb))
