"""The verb `campaign items`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from crowdtree.cli import inputs, render
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
from crowdtree.cli.options import AsJson
from crowdtree.cli.streams import STANDARD_INPUT
from crowdtree.files.items import item_format
from crowdtree.text import plural

__all__ = ["items_verb"]


def items_verb(
    number: Number,
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="Items: .csv, .tsv, .xlsx or .jsonl, or - for stdin."),
    ],
    media: MediaPlace = None,
    database: Database = HERE,
    as_json: AsJson = False,
) -> None:
    """Add items to a campaign from a table (CSV, XLSX) or a JSON-lines file.

    Items that the campaign has stay as they are. Lines whose item is there with other content are
    reported, and so are files that items show but that were never uploaded.

    Example:

      crowdtree campaign items 1 birds.csv
    """
    items = import_server("crowdtree.web.services.items")
    source = inputs.source_of(file)
    single_line = file == STANDARD_INPUT and source.name.endswith(".json")
    kind = "jsonl" if single_line else item_format(source.name)
    source.check()
    files = opened_media(database, media)
    with opened(database) as store, source.open() as content:
        found = items.add_from_file(store, number, content, kind, files)

    def show(console: Any) -> None:
        console.print(f"[bold]{found['added']:,} items added[/] of {found['read']:,} in the file.")
        if found["set_aside"]:
            again = next_step(database, "campaign", "reopen", number, "--all")
            aside = plural(found["set_aside"], "item")
            console.print(f"{aside} in the file had been set aside; reopen with: {again}")

    for warning in found["warnings"]:
        typer.echo(f"crowdtree: warning: {warning}", err=True)
    if found["missing"]:
        typer.echo(f"Looked in {files.place(number)}; --media names another folder.", err=True)
    render.emit(as_json, found, show, then=next_step(database, "campaign", "start", number))
