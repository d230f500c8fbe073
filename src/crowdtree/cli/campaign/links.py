"""The verbs `campaign join-link` and `campaign invite`."""

from __future__ import annotations

from typing import Annotated, Any

from crowdtree.cli import render
from crowdtree.cli.campaign.database import (
    HERE,
    HERE_URL,
    Database,
    Number,
    Url,
    base_url,
    import_server,
    opened,
)
from crowdtree.cli.options import AsJson, argument, flag


def join_link_verb(
    number: Number,
    keep: Annotated[
        bool, flag("--keep", "Keep earlier join links of the campaign working.")
    ] = False,
    url: Url = HERE_URL,
    database: Database = HERE,
    as_json: AsJson = False,
) -> None:
    """Print an open join link: anyone who opens it becomes a worker of the campaign.

    Example:

      crowdtree campaign join-link 1 --url https://label.example
    """
    base = base_url(url)
    rows = import_server("crowdtree.server.store.db.campaign_row")
    people = import_server("crowdtree.server.store.owner.people")
    with opened(database) as store:

        def make(connection: Any) -> str:
            rows.get_campaign(connection, number)
            return str(people.join_link(connection, number, store.clock(), keep))

        link = f"{base}/join/{store.write(make)}"
    render.emit(as_json, {"link": link}, link)


def invite_verb(
    number: Number,
    names: Annotated[
        list[str], argument("NAME...", "Names of people, one link each.", show_default=True)
    ],
    url: Url = HERE_URL,
    database: Database = HERE,
    as_json: AsJson = False,
) -> None:
    """Invite people as trusted workers: print a personal link for each, shown only once.

    Example:

      crowdtree campaign invite 1 Ann Bob --url https://label.example
    """
    base = base_url(url)
    rows = import_server("crowdtree.server.store.db.campaign_row")
    people = import_server("crowdtree.server.store.owner.people")
    with opened(database) as store:

        def make(connection: Any) -> dict[str, str]:
            campaign = rows.get_campaign(connection, number)
            policy, dedicated = (
                campaign.make_policy(),
                campaign.settings.tasks.one_question_per_worker,
            )
            return {
                name: people.invite(connection, number, name, policy, dedicated, store.clock())[1]
                for name in names
            }

        links = {name: f"{base}/w/{token}" for name, token in store.write(make).items()}
    render.emit(as_json, {"links": links}, [f"{name}: {link}" for name, link in links.items()])
