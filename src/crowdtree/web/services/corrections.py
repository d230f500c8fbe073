"""Corrections by the owner: exclude and include answers, reopen items set aside."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TypedDict

from crowdtree.store import Store
from crowdtree.store.corrections import reopening
from crowdtree.store.corrections.common import AT_ONCE
from crowdtree.store.db.campaign_row import get_campaign

__all__ = ["Reopened", "reopen_items"]


class Reopened(TypedDict):
    """How many items were reopened, and the status of the campaign afterwards."""

    campaign: int
    reopened: int
    status: str
    status_reason: str


def reopen_items(store: Store, number: int, tasks: Sequence[str] | None) -> Reopened:
    """Reopen items by their names, or all that are set aside, a few hundred per transaction."""
    store.read(lambda c: get_campaign(c, number))
    count = 0
    if tasks is None:
        while found := _write(store, number, None):
            count += found
    else:
        ids = store.read(lambda c: reopening.items_of_tasks(c, number, tasks))
        for start in range(0, len(ids), AT_ONCE):
            count += _write(store, number, ids[start : start + AT_ONCE])
    after = store.read(lambda c: get_campaign(c, number))
    return {
        "campaign": number,
        "reopened": count,
        "status": after.status,
        "status_reason": after.status_reason,
    }


def _write(store: Store, number: int, ids: list[int] | None) -> int:
    return store.write(partial(reopening.reopen, number=number, now=store.clock(), ids=ids))
