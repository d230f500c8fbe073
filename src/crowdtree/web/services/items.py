"""Items of a campaign: added from a file, with the media they show."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, TypedDict

from sqlalchemy.engine import Connection

from crowdtree.errors import CrowdtreeError
from crowdtree.files.items import read_items
from crowdtree.store import Store
from crowdtree.store.db.campaign_row import get_campaign
from crowdtree.store.owner import campaigns
from crowdtree.store.types import JsonObject
from crowdtree.text import plural
from crowdtree.web.state import AppState

__all__ = [
    "MEDIA_TYPES",
    "Added",
    "add_from_file",
    "delete_media",
    "remove_media",
    "unused_gold",
]

ROWS_PER_TRANSACTION = 2000
MEDIA_TYPES = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "avif": "image/avif",
    "mp3": "audio/mpeg",
    "m4a": "audio/mp4",
    "ogg": "audio/ogg",
    "opus": "audio/ogg",
    "wav": "audio/wav",
    "flac": "audio/flac",
    "mp4": "video/mp4",
    "webm": "video/webm",
    "ogv": "video/ogg",
}
"""Types of uploaded media by file extension; none that a browser would execute."""


class Added(TypedDict):
    """Items in a file: how many were new, how many were set aside before, and warnings."""

    read: int
    added: int
    set_aside: int
    warnings: list[str]


def add_from_file(store: Store, number: int, file: IO[bytes], kind: str) -> Added:
    """Check all rows of a file, then add them a few thousand per transaction."""
    campaign = store.read(lambda c: get_campaign(c, number))
    classes = campaign.classes
    read = added = aside = gold = 0
    if file.seek(0, os.SEEK_END):
        for row in read_items(file, kind, classes):
            read += 1
            gold += row["gold"] is not None
    if not read:
        raise CrowdtreeError("items: the file has no items")
    for rows in _pieces(read_items(file, kind, classes)):
        new, old = store.write(partial(_add, number, rows))
        added += new
        aside += old
    warnings = [unused_gold(gold)] if gold and not campaign.settings.asks_gold else []
    return {"read": read, "added": added, "set_aside": aside, "warnings": warnings}


def unused_gold(count: int) -> str:
    """What to say about gold items that nobody is asked about.

    >>> unused_gold(1)
    '1 gold item is never asked about: set gold_rate (such as 0.1) or gold_first above 0'
    """
    verb = "is" if count == 1 else "are"
    return (
        f"{plural(count, 'gold item')} {verb} never asked about: set gold_rate (such as 0.1) or "
        "gold_first above 0"
    )


def _add(number: int, rows: list[JsonObject], connection: Connection) -> tuple[int, int]:
    """Add items; count the new ones, and those that are there and were set aside."""
    added = campaigns.add_items(connection, number, rows)
    old = 0 if added == len(rows) else campaigns.count_set_aside(connection, number, rows)
    return added, old


def _pieces(rows: Iterator[JsonObject]) -> Iterator[list[JsonObject]]:
    while piece := list(islice(rows, ROWS_PER_TRANSACTION)):
        yield piece


async def remove_media(state: AppState, number: int) -> None:
    """Delete the uploaded files of a campaign that is gone."""
    await asyncio.to_thread(delete_media, state.options.media, number)


def delete_media(folder: Path | None, number: int) -> None:
    """Delete the uploaded files of a campaign as far as possible."""
    if folder is not None:
        shutil.rmtree(folder / str(number), ignore_errors=True)
