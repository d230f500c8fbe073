"""The verb `campaign verify`."""

from __future__ import annotations

from typing import Any

import typer

from crowdtree.cli import render
from crowdtree.cli.campaign.database import HERE, Database, Number, import_server, next_step, opened
from crowdtree.cli.options import AsJson
from crowdtree.cli.render.progress import progress, verify_words


def verify_verb(number: Number, database: Database = HERE, as_json: AsJson = False) -> None:
    """Replay the log of a campaign, and check the database (of SQLite also its file).

    Exits with 1 if they differ.

    Example:

      crowdtree campaign verify 1
    """
    verify = import_server("crowdtree.server.store.replay.verify").verify
    with opened(database) as store, progress(verify_words) as report:
        found = store.read(lambda c: verify(c, number, report))

    def show(console: Any) -> None:
        if found["agrees"]:
            console.print(
                f"[bold]No differences:[/] {found['answers']:,} answers replayed, "
                f"{found['labelled']:,} labels agree."
            )
        for text in found["differences"]:
            console.print(text, markup=False)

    then = next_step(database, "campaign", "labels", number, "-o", "labels.csv")
    render.emit(as_json, found, show, then=then if found["agrees"] else "")
    if not found["agrees"]:
        raise typer.Exit(1)
