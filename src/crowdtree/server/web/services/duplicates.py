"""Duplicate a campaign with its items and their media, for the pages, the API and the terminal."""

from __future__ import annotations

from functools import partial
from typing import TypedDict

from crowdtree.server.media import MediaFiles, file_of
from crowdtree.server.store import Store
from crowdtree.server.store.db.campaign_row import get_campaign
from crowdtree.server.store.owner import campaigns, deleting


class Duplicate(TypedDict):
    """A new draft."""

    id: int
    name: str
    items: int
    """How many items it has."""


def duplicate_campaign(
    store: Store, media: MediaFiles | None, number: int, name: str = "", items: bool = False
) -> Duplicate:
    """Make a draft like a campaign, with its items and their uploaded files if wanted.

    Items are copied a few thousand per transaction, so that workers do not wait; if that fails,
    the draft is deleted.
    """
    new = store.write(lambda c: campaigns.duplicate(c, number, name, store.clock()))
    try:
        copied = _copy_items(store, media, number, new) if items else 0
    except BaseException:
        store.write(lambda c: deleting.discard(c, new, store.clock()))
        if media is not None:
            media.remove(new)
        raise
    made = store.read(lambda c: get_campaign(c, new))
    return {"id": new, "name": made.name, "items": copied}


def _copy_items(store: Store, media: MediaFiles | None, number: int, new: int) -> int:
    source, target = store.read(lambda c: (get_campaign(c, number), get_campaign(c, new)))
    after = total = 0
    while True:
        copy = partial(campaigns.copy_items, source=number, target=new, after=after)
        after, copied, files = store.write(copy)
        if not copied:
            return total
        total += copied
        if media is not None:
            for file in sorted(files):
                media.copy(file_of(source, file), file_of(target, file))
