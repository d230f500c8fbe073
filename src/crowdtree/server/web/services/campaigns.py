"""Whole campaigns and many items at once: corrected, duplicated, deleted, a few per transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice
from typing import TypedDict

from sqlalchemy.engine import Connection

from crowdtree.core.errors import CrowdtreeError
from crowdtree.server.media import MediaFiles, file_of
from crowdtree.server.store import Store
from crowdtree.server.store.corrections import items as correcting
from crowdtree.server.store.corrections.items import AT_ONCE, find_items
from crowdtree.server.store.db.campaign_row import get_campaign
from crowdtree.server.store.db.engine import empty_log
from crowdtree.server.store.owner import campaigns, deleting
from crowdtree.server.store.owner.deleting import Deleted


class Reopened(TypedDict):
    """How many items were reopened, and the status of the campaign afterwards."""

    campaign: int
    reopened: int
    status: str
    status_reason: str


class Withdrawn(TypedDict):
    """How many items were withdrawn; those that had been before do not count."""

    campaign: int
    withdrawn: int


class Duplicate(TypedDict):
    """A new draft."""

    id: int
    name: str
    items: int
    """How many items it has."""


# --------------------------------------------------------------------------- corrections


def reopen_items(store: Store, campaign_id: int, tasks: Sequence[str] | None) -> Reopened:
    """Reopen items by their names, or all that are set aside, a few hundred per transaction."""
    store.read(lambda c: get_campaign(c, campaign_id))
    count = 0
    if tasks is None:
        while some := _reopen(store, campaign_id, None):
            count += some
    else:
        ids = store.read(lambda c: correcting.items_of_tasks(c, campaign_id, tasks))
        for start in range(0, len(ids), AT_ONCE):
            count += _reopen(store, campaign_id, ids[start : start + AT_ONCE])
    after = store.read(lambda c: get_campaign(c, campaign_id))
    return {
        "campaign": campaign_id,
        "reopened": count,
        "status": after.status,
        "status_reason": after.status_reason,
    }


def _reopen(store: Store, campaign_id: int, ids: list[int] | None) -> int:
    return store.write(lambda c: correcting.reopen(c, campaign_id, store.clock(), ids=ids))


def withdraw_items(
    store: Store, campaign_id: int, tasks: Sequence[str], reason: str = ""
) -> Withdrawn:
    """Withdraw items by their names, a few hundred per transaction."""
    store.read(lambda c: get_campaign(c, campaign_id))
    ids = [item.id for item in store.read(lambda c: find_items(c, campaign_id, tasks))]
    count = 0
    for start in range(0, len(ids), AT_ONCE):
        some = ids[start : start + AT_ONCE]
        apply = partial(correcting.withdraw, campaign_id=campaign_id, ids=some, reason=reason)
        count += store.write(partial(apply, now=store.clock()))
    return {"campaign": campaign_id, "withdrawn": count}


def correct_labels(
    store: Store, campaign_id: int, wanted: Mapping[str, str | None], reason: str = ""
) -> correcting.LabelledByHand:
    """Label items by hand, or take such labels back (``None``), a few hundred per transaction.

    All are checked first.
    """

    def check(connection: Connection) -> None:
        correcting.check_wanted(connection, get_campaign(connection, campaign_id), wanted)

    store.read(check)
    total: correcting.LabelledByHand = {
        "campaign": campaign_id,
        "corrected": 0,
        "undone": 0,
        "opened": 0,
    }
    rest = iter(wanted.items())
    while some := dict(islice(rest, AT_ONCE)):
        apply = partial(correcting.correct, campaign_id=campaign_id, wanted=some, reason=reason)
        part = store.write(partial(apply, now=store.clock()))
        total["corrected"] += part["corrected"]
        total["undone"] += part["undone"]
        total["opened"] += part["opened"]
    return total


# ---------------------------------------------------------------- duplicate and delete


def duplicate_campaign(
    store: Store, media: MediaFiles | None, campaign_id: int, name: str = "", items: bool = False
) -> Duplicate:
    """Make a draft like a campaign, with its items and their uploaded files if wanted.

    Items are copied a few thousand per transaction, so that workers do not wait; if that fails,
    the draft is deleted.
    """
    new = store.write(lambda c: campaigns.duplicate(c, campaign_id, name, store.clock()))
    try:
        copied = _copy_items(store, media, campaign_id, new) if items else 0
    except BaseException:
        store.write(lambda c: deleting.discard(c, new, store.clock()))
        if media is not None:
            media.remove(new)
        raise
    made = store.read(lambda c: get_campaign(c, new))
    return {"id": new, "name": made.name, "items": copied}


def _copy_items(store: Store, media: MediaFiles | None, campaign_id: int, new: int) -> int:
    source, target = store.read(lambda c: (get_campaign(c, campaign_id), get_campaign(c, new)))
    after = total = 0
    while True:
        copy = partial(campaigns.copy_items, source=campaign_id, target=new, after=after)
        after, copied, files = store.write(copy)
        if not copied:
            return total
        total += copied
        if media is not None:
            for file in sorted(files):
                media.copy(file_of(source, file), file_of(target, file))


def erase_worker(store: Store, campaign_id: int, worker: int) -> None:
    """Delete the personal data of a worker, also from the log of the database."""
    store.write(lambda c: deleting.erase_worker(c, campaign_id, worker, store.clock()))
    empty_log(store.engine)


def delete_campaign(store: Store, media: MediaFiles | None, campaign_id: int, name: str) -> Deleted:
    """Delete a campaign and its uploaded files; `name` must be that of the campaign."""
    gone = store.write_apart(
        lambda c: deleting.delete_campaign(c, campaign_id, name, store.clock())
    )
    empty_log(store.engine)
    left = "" if media is None else media.remove(campaign_id)
    if left:
        raise CrowdtreeError(
            f"campaign {campaign_id} is deleted, but not all of its files; delete the folder {left}"
        )
    return gone
