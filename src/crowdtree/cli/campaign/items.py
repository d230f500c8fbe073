"""The verb `campaign items`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from crowdtree.cli import inputs, render
from crowdtree.cli.campaign.database import (
    HERE,
    Database,
    Number,
    import_server,
    next_step,
    opened,
)
from crowdtree.cli.options import AsJson
from crowdtree.cli.streams import STANDARD_INPUT
from crowdtree.errors import CrowdtreeError
from crowdtree.files.items import ITEM_FORMATS
from crowdtree.text import plural

__all__ = ["items_verb"]


def items_verb(
    number: Number,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Items: .csv, .tsv or .jsonl, or - for stdin.")
    ],
    database: Database = HERE,
    as_json: AsJson = False,
) -> None:
    """Add items to a campaign from a CSV or JSON-lines file.

    Example:

      crowdtree campaign items 1 birds.csv
    """
    items = import_server("crowdtree.web.services.items")
    source = inputs.source_of(file)
    ending = Path(source.name).suffix.lower()
    if file == STANDARD_INPUT and ending == ".json":  # a single line
        ending = ".jsonl"
    kind = ITEM_FORMATS.get(ending)
    if kind is None:
        raise CrowdtreeError(f"{source.name}: expected the extension .csv, .tsv or .jsonl")
    source.check()
    with opened(database) as store, source.open() as content:
        found = items.add_from_file(store, number, content, kind)

    def show(console: Any) -> None:
        console.print(f"[bold]{found['added']:,} items added[/] of {found['read']:,} in the file.")
        if found["set_aside"]:
            again = next_step(database, "campaign", "reopen", number, "--all")
            aside = plural(found["set_aside"], "item")
            console.print(f"{aside} in the file had been set aside; reopen with: {again}")

    for warning in found["warnings"]:
        typer.echo(f"crowdtree: warning: {warning}", err=True)
    render.emit(as_json, found, show, then=next_step(database, "campaign", "start", number))
