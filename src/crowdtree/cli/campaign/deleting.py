"""The verbs `campaign delete` and `campaign erase-worker`."""

from __future__ import annotations

from typing import Annotated

from crowdtree.cli import render
from crowdtree.cli.campaign.corrections import worker_number
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
from crowdtree.cli.options import AsJson, option
from crowdtree.core.text import plural


def delete_verb(
    number: Number,
    name: Annotated[str, option("The campaign's name, to confirm.")],
    database: Database = HERE,
    media: MediaPlace = None,
    as_json: AsJson = False,
) -> None:
    """Delete a campaign with its items, answers, workers, links, webhooks and media, for good.

    A campaign that is running has to be paused first.

    Example:

      crowdtree campaign delete 1 --name Birds
    """
    delete = import_server("crowdtree.server.web.services.campaigns").delete_campaign
    files = opened_media(database, media)
    with opened(database) as store:
        gone = delete(store, files, number, name)

    counts = (plural(gone[what], what[:-1]) for what in ("items", "answers", "workers"))
    render.emit(as_json, gone, f"Deleted {gone['name']}: {', '.join(counts)}.")


def erase_worker_verb(
    number: Number,
    worker: Annotated[str, option("A worker's number, such as 7 or w7.", "W")],
    database: Database = HERE,
    as_json: AsJson = False,
) -> None:
    """Delete a worker's personal data and block the worker. The answers stay, under a number.

    Example:

      crowdtree campaign erase-worker 1 --worker 7
    """
    erase = import_server("crowdtree.server.web.services.campaigns").erase_worker
    who = worker_number(worker)
    with opened(database) as store:
        erase(store, number, who)

    then = next_step(database, "campaign", "verify", number)
    words = f"Personal data of w{who} deleted."
    render.emit(as_json, {"campaign": number, "worker": who}, words, then=then)
