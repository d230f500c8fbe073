"""The verb `campaign items`: add items from a file, or list those that there are."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from typing import Annotated, Any, Literal

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
from crowdtree.cli.options import AsJson, argument, option, with_options
from crowdtree.cli.render.tables import make_table
from crowdtree.cli.streams import STANDARD_INPUT
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.text import percent, plural, short
from crowdtree.io.items import item_format

WORDS = ("text", "markdown", "alt", "image", "audio", "video")
"""Columns that say what an item is; the first that it has is listed."""


@dataclass(frozen=True)
class Search:
    """Which items to list."""

    text: Annotated[str, option("List items that contain TEXT.", "TEXT", "--search")] = ""
    find: Annotated[str, option("List items whose name begins with TEXT.", "TEXT", "--name")] = ""
    status: Annotated[
        Literal["new", "open", "labelled", "set aside", "gold", "withdrawn"] | None,
        option("List items with this status.", show_default=False),
    ] = None
    label: Annotated[str, option("List items with this label.", "CLASS")] = ""


@with_options
def items_verb(
    number: Number,
    search: Search,
    file: Annotated[
        str | None,
        argument(
            "FILE",
            "Items to add: .csv, .tsv, .xlsx or .jsonl, or - for stdin. Without it, the items of "
            "the campaign are listed.",
        ),
    ] = None,
    most: Annotated[int, option("List up to N items.", "N", min=1, max=100000)] = 50,
    media: MediaPlace = None,
    database: Database = HERE,
    as_json: AsJson = False,
) -> None:
    """Add items from a table (CSV, XLSX) or JSON lines, or list the items.

    Items that the campaign has stay as they are. Lines whose item is there with other content are
    reported, and so are files that items show but that were never uploaded.

    Examples:

      crowdtree campaign items 1 birds.csv

      crowdtree campaign items 1 --status "set aside" --search robin
    """
    if file is None:
        _list(number, search, most, database, as_json)
    elif search != Search():
        raise CrowdtreeError("items: expected a file to add, or options to list items, got both")
    else:
        _add(number, file, media, database, as_json)


def _list(number: int, search: Search, most: int, database: str, as_json: bool) -> None:
    queries = import_server("crowdtree.server.store.queries.items")
    wish = {name: (value or "").strip() for name, value in asdict(search).items()}
    with opened(database) as store:
        found = store.read(partial(queries.page_of_items, campaign_id=number, most=most, **wish))

    def show(console: Any) -> None:
        table = make_table("item", "status", "label", "wrong", "content", left=5, wrap=True)
        table.columns[1].no_wrap = True
        for row in found["items"]:
            table.add_row(*_cells(row))
        if found["items"]:
            console.print(table, markup=False)
        console.print(f"{plural(len(found['items']), 'item')}.")
        if found["next"]:
            console.print(f"There may be more: --most {most * 10} lists them.")

    render.emit(as_json, dict(found), show)


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    """An item in the list: its name, status, label, chance that it is wrong, and content."""
    by_hand, known = row["corrected"], row["gold"]
    label = row["label"] if row["status"] == "labelled" else None
    note = " (by hand)" if by_hand else " (known)" if known else ""
    wrong = row["posterior_error"] if label and not note else None
    words = (str(row["item"].get(name) or "") for name in WORDS)
    content = short(next(filter(None, words), ""), 60)
    shown = "" if row["status"] == "withdrawn" else f"{by_hand or known or label or ''}{note}"
    return row["task"], row["status"], shown, "" if wrong is None else percent(wrong), content


def _add(number: int, file: str, media: str | None, database: str, as_json: bool) -> None:
    items = import_server("crowdtree.server.web.services.items")
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
        typer.echo(f"Looked in {files.address}/{number}; --media names another folder.", err=True)
    render.emit(as_json, found, show, then=next_step(database, "campaign", "start", number))
