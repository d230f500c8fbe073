"""Items of a campaign: added from a file and edited, with the media they show."""

from __future__ import annotations

import json
import os
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import IO, TypedDict

import numpy as np
from sqlalchemy.engine import Connection

from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.text import plural, short
from crowdtree.io.items import MEDIA, media_names, numbered_items
from crowdtree.server.media import MediaFiles
from crowdtree.server.store import Store
from crowdtree.server.store.corrections import editing
from crowdtree.server.store.db.campaign_row import Campaign, get_campaign
from crowdtree.server.store.owner import campaigns
from crowdtree.server.store.queries.items import items_with_media
from crowdtree.server.store.tokens import file_name
from crowdtree.server.store.types import ItemStatus, JsonObject

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


MAX_NAMED = 10
"""Lines and files that a warning names."""
MAX_SEARCHED = 50_000
"""Items whose media are looked up before a campaign starts."""


class Added(TypedDict):
    """Items in a file: how many were new, how many were set aside before, and warnings."""

    read: int
    added: int
    set_aside: int
    conflicts: list[int]
    """Lines (of a workbook: rows) whose item is there with other content, which stays."""
    missing: list[str]
    """Files that items show and that were never uploaded."""
    warnings: list[str]


class EditedItem(editing.Edited):
    """What was edited, and warnings."""

    warnings: list[str]


def add_from_file(
    store: Store, campaign_id: int, file: IO[bytes], kind: str, media: MediaFiles | None = None
) -> Added:
    """Check all rows of a file, then add them a few thousand per transaction.

    `media` are the uploaded files of all campaigns.
    """
    campaign = store.read(lambda c: get_campaign(c, campaign_id))
    classes = campaign.classes
    there, seen = _uploaded(media, campaign), _Seen()
    added = aside = gold = 0
    missing: dict[str, None] = {}
    if file.seek(0, os.SEEK_END):
        for line, row in numbered_items(file, kind, classes):
            seen.add(line, row)
            gold += row["gold"] is not None
            missing.update(dict.fromkeys(_not_there(row["payload"], there)))
    if not seen.lines:
        raise CrowdtreeError("items: the file has no items")
    twice, conflicts = seen.conflicts(), set[int]()
    for rows in _pieces(numbered_items(file, kind, classes)):
        new, old, other = store.write(partial(_add, campaign_id, rows))
        added += new
        aside += old
        conflicts |= other
    unit = "row" if kind == "xlsx" else "line"
    found = sorted(conflicts | {later for _, later in twice})
    warnings = [unused_gold(gold)] if gold and not campaign.settings.checks.asks_gold else []
    warnings += [
        f"{unit}s {first} and {later} have the same `task` but different content: {unit} {first} "
        "is kept"
        for first, later in twice[:MAX_NAMED]
    ]
    rest = sorted(conflicts - {later for _, later in twice})
    if rest:
        warnings.append(_differing(rest, unit))
    if missing:
        warnings.append(never_uploaded(list(missing)))
    return {
        "read": len(seen.lines),
        "added": added,
        "set_aside": aside,
        "conflicts": found,
        "missing": list(missing),
        "warnings": warnings,
    }


class _Seen:
    """Which items of a file occur twice: their names and contents as numbers of 64 bits."""

    def __init__(self) -> None:
        self.lines, self.tasks, self.contents = array("q"), array("q"), array("q")

    def add(self, line: int, row: JsonObject) -> None:
        self.lines.append(line)
        self.tasks.append(hash(row["task"]))
        self.contents.append(hash((row["payload"], row["gold"])))

    def conflicts(self) -> list[tuple[int, int]]:
        """Lines with a name that an earlier line has with other content, after that line."""
        lines, tasks, contents = (np.array(x) for x in (self.lines, self.tasks, self.contents))
        order = np.argsort(tasks, kind="stable")
        begins = np.concatenate([[True], np.diff(tasks[order]) != 0])
        first = order[np.maximum.accumulate(np.where(begins, np.arange(len(order)), 0))]
        other = contents[order] != contents[first]
        pairs = zip(lines[first[other]].tolist(), lines[order[other]].tolist(), strict=True)
        return sorted(pairs, key=lambda pair: pair[1])


def _differing(lines: list[int], unit: str) -> str:
    """What to say about items that the campaign has with other content.

    >>> _differing([3], "line"), _differing([3, 7], "row")[:34]
    ('line 3: the item exists with other content and stays as it is; edit it in the campaign', \
'rows 3, 7: these items exist with ')
    """
    if len(lines) == 1:
        said = f"{unit} {lines[0]}: the item exists with other content and stays as it is"
        return f"{said}; edit it in the campaign"
    more = f" and {len(lines) - MAX_NAMED:,} more" if len(lines) > MAX_NAMED else ""
    shown = ", ".join(map(str, lines[:MAX_NAMED]))
    said = f"{unit}s {shown}{more}: these items exist with other content and stay as they are"
    return f"{said}; edit them in the campaign"


def never_uploaded(names: list[str]) -> str:
    """What to say about files that items show but that nobody has uploaded; nothing for none.

    >>> never_uploaded(["a.png"])
    '1 file that items show was never uploaded: a.png'
    """
    if not names:
        return ""
    shown = ", ".join(short(name, 60) for name in names[:MAX_NAMED])
    more = f" and {len(names) - MAX_NAMED:,} more" if len(names) > MAX_NAMED else ""
    verb = "was" if len(names) == 1 else "were"
    return f"{plural(len(names), 'file')} that items show {verb} never uploaded: {shown}{more}"


def missing_media(connection: Connection, campaign_id: int, media: MediaFiles | None) -> list[str]:
    """Files that the first items of a campaign show and that were never uploaded."""
    campaign = get_campaign(connection, campaign_id)
    rows = items_with_media(connection, campaign_id, MAX_SEARCHED)
    there = _uploaded(media if rows else None, campaign)
    return list(dict.fromkeys(name for text in rows for name in _not_there(text, there)))


def _uploaded(media: MediaFiles | None, campaign: Campaign) -> Callable[[str], bool]:
    """Whether a file of a campaign was uploaded."""
    names = set() if media is None else media.names(campaign.id)
    return lambda name: file_name(campaign.secret, name) in names


def _not_there(payload: str, there: Callable[[str], bool]) -> Iterable[str]:
    """Files that an item shows and that are not there."""
    if not any(f'"{name}"' in payload for name in MEDIA):
        return ()
    return (name for name in media_names(json.loads(payload)) if not there(name))


def edit_item(
    store: Store,
    media: MediaFiles | None,
    campaign_id: int,
    item: int,
    columns: Mapping[str, object],
    reason: str = "",
) -> EditedItem:
    """Change columns of an item, and say which files it shows that were never uploaded."""
    edited = store.write(
        lambda c: editing.edit_item(c, campaign_id, item, columns, store.clock(), reason)
    )
    campaign = store.read(lambda c: get_campaign(c, campaign_id))
    warning = missing_of_item(campaign, media, edited["after"])
    return {**edited, "warnings": [warning] if warning else []}


def missing_of_item(
    campaign: Campaign, media: MediaFiles | None, columns: Mapping[str, object]
) -> str:
    """Say which files an item shows that were never uploaded; nothing if all are there."""
    names = media_names(columns)
    there = _uploaded(media if names else None, campaign)
    return never_uploaded([name for name in names if not there(name)])


def unused_gold(count: int) -> str:
    """What to say about gold items that nobody is asked about.

    >>> unused_gold(1)
    '1 gold item is never asked about: set checks.gold_rate (such as 0.1) or checks.gold_first \
above 0'
    """
    verb = "is" if count == 1 else "are"
    return (
        f"{plural(count, 'gold item')} {verb} never asked about: set checks.gold_rate (such as "
        "0.1) or checks.gold_first above 0"
    )


Numbered = tuple[int, JsonObject]


def _add(
    campaign_id: int, rows: list[Numbered], connection: Connection
) -> tuple[int, int, set[int]]:
    """Add items; count the new ones and those that were set aside, and find those that differ."""
    found = [row for _, row in rows]
    added = campaigns.add_items(connection, campaign_id, found)
    if added == len(rows):
        return added, 0, set()
    there = campaigns.stored_items(connection, campaign_id, [row["task"] for row in found])
    aside = sum(there[row["task"]].status == ItemStatus.SET_ASIDE for row in found)
    other = {
        line
        for line, row in rows
        if (json.loads(there[row["task"]].payload), there[row["task"]].gold)
        != (json.loads(row["payload"]), row["gold"])
    }
    return added, aside, other


def _pieces(rows: Iterator[Numbered]) -> Iterator[list[Numbered]]:
    while piece := list(islice(rows, ROWS_PER_TRANSACTION)):
        yield piece
