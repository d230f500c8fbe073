"""The verbs `campaign start`, `campaign pause`, `campaign finish` and `campaign status`."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import typer

from crowdtree.cli import render
from crowdtree.cli.campaign.database import (
    HERE,
    MAX_NUMBER,
    Database,
    MediaPlace,
    Number,
    import_server,
    next_step,
    opened,
    opened_media,
)
from crowdtree.cli.options import AsJson, argument
from crowdtree.cli.render.status import status_lines
from crowdtree.server.reasons import CampaignReason


def start_verb(
    number: Number, media: MediaPlace = None, database: Database = HERE, as_json: AsJson = False
) -> None:
    """Start or resume a campaign: workers get questions.

    Files that items show but that were never uploaded are reported.

    Example:

      crowdtree campaign start 1
    """
    items = import_server("crowdtree.server.web.services.items")
    files = opened_media(database, media)
    with opened(database) as store:
        missing = store.read(lambda c: items.missing_media(c, number, files))
    if missing:
        typer.echo(f"crowdtree: warning: {items.never_uploaded(missing)}", err=True)
        typer.echo(f"Looked in {files.address}/{number}; --media names another folder.", err=True)
    _move(number, "running", database, as_json, next_step(database, "serve"))


def pause_verb(number: Number, database: Database = HERE, as_json: AsJson = False) -> None:
    """Pause a campaign: nobody gets a new question.

    Example:

      crowdtree campaign pause 1
    """
    then = next_step(database, "campaign", "start", number)
    _move(number, "paused", database, as_json, then)


def finish_verb(number: Number, database: Database = HERE, as_json: AsJson = False) -> None:
    """Finish a campaign now: open items get the best label so far.

    The server does it within seconds, or when it runs next. Items that nobody was asked about are
    set aside.

    Example:

      crowdtree campaign finish 1
    """
    then = next_step(database, "campaign", "status", number)
    _move(number, "finishing", database, as_json, then)


def _move(number: int, status: str, database: str, as_json: bool, then: str) -> None:
    campaigns = import_server("crowdtree.server.store.owner.campaigns")
    with opened(database) as store:
        store.write(lambda c: campaigns.set_status(c, number, status, store.clock()))

    def show(console: Any) -> None:
        console.print(f"[bold]Campaign {number} is {status}.[/]")

    render.emit(as_json, {"campaign": number, "status": status}, show, then=then)


def status_verb(
    number: Annotated[
        int | None,
        argument("[CAMPAIGN]", "All campaigns by default.", max=MAX_NUMBER, show_default=True),
    ] = None,
    database: Database = HERE,
    as_json: AsJson = False,
) -> None:
    """Show the progress of a campaign, or of all.

    Example:

      crowdtree campaign status 1
    """
    rows = import_server("crowdtree.server.store.db.campaign_row")
    progress = import_server("crowdtree.server.store.queries.progress").progress
    with opened(database) as store:
        if number is None:
            numbers = [row.id for row in store.read(rows.list_campaigns)]
        else:
            numbers = [number]
        found = [
            dict(store.read(partial(progress, campaign_id=n, now=store.clock()))) for n in numbers
        ]

    shown = found[0] if number is not None else {"campaigns": found}
    lines = [line for row in found for line in status_lines(row)] or ["No campaigns yet."]
    render.emit(as_json, shown, lines, then=_next(database, found))


def _next(database: str, found: list[dict[str, Any]]) -> str:
    """The next command for the only campaign that is shown."""
    if len(found) > 1:
        return next_step(database, "campaign", "status", found[0]["id"])
    if not found:
        return next_step(database, "campaign", "create", "example:animals")
    row = found[0]
    if row["status"] == "running" and row["reason"] == CampaignReason.LEFT_TO_OWNER:
        return next_step(database, "campaign", "finish", row["id"])
    if not row["items"]["total"]:
        return next_step(database, "campaign", "items", row["id"], "items.csv")
    if row["status"] in ("draft", "paused") and row["reason"] != CampaignReason.BUDGET_SPENT:
        return next_step(database, "campaign", "start", row["id"])
    if row["status"] in ("running", "paused") and not row["items"]["labelled"]:
        return next_step(database, "serve")
    return next_step(database, "campaign", "labels", row["id"], "-o", "labels.csv")
