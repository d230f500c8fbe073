"""The verb `campaign items`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from crowdtree.cli import render
from crowdtree.cli.campaign.database import HERE, Database, Number, import_server, opened
from crowdtree.cli.options import AsJson
from crowdtree.errors import CrowdtreeError
from crowdtree.files.items import ITEM_FORMATS

__all__ = ["items_verb"]


def items_verb(
    number: Number,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Items: .csv or .jsonl.")],
    database: Database = HERE,
    as_json: AsJson = False,
) -> None:
    """Add items to a campaign from a CSV or JSON-lines file.

    Example:

      crowdtree campaign items 1 birds.csv
    """
    items = import_server("crowdtree.web.services.items")
    kind = ITEM_FORMATS.get(file.suffix.lower())
    if kind is None:
        raise CrowdtreeError(f"{file}: expected the extension .csv, .tsv or .jsonl")
    with opened(database) as store, file.open("rb") as content:
        found = items.add_from_file(store, number, content, kind)

    def show(console: Any) -> None:
        console.print(f"[bold]{found['added']:,} items added[/] of {found['read']:,} in the file.")
        console.print(f"[dim]Next: crowdtree campaign start {number}[/]")

    render.emit(as_json, found, show)
