"""Corrections by the owner: labels by hand, items edited, withdrawn and reopened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice
from typing import TypedDict

from sqlalchemy.engine import Connection

from crowdtree.server.store import Store
from crowdtree.server.store.corrections import items
from crowdtree.server.store.corrections.items import AT_ONCE, find_items
from crowdtree.server.store.db.campaign_row import get_campaign


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


def reopen_items(store: Store, number: int, tasks: Sequence[str] | None) -> Reopened:
    """Reopen items by their names, or all that are set aside, a few hundred per transaction."""
    store.read(lambda c: get_campaign(c, number))
    count = 0
    if tasks is None:
        while found := _reopen(store, number, None):
            count += found
    else:
        ids = store.read(lambda c: items.items_of_tasks(c, number, tasks))
        for start in range(0, len(ids), AT_ONCE):
            count += _reopen(store, number, ids[start : start + AT_ONCE])
    after = store.read(lambda c: get_campaign(c, number))
    return {
        "campaign": number,
        "reopened": count,
        "status": after.status,
        "status_reason": after.status_reason,
    }


def _reopen(store: Store, number: int, ids: list[int] | None) -> int:
    return store.write(partial(items.reopen, campaign_id=number, now=store.clock(), ids=ids))


def withdraw_items(store: Store, number: int, tasks: Sequence[str], reason: str = "") -> Withdrawn:
    """Withdraw items by their names, a few hundred per transaction."""
    store.read(lambda c: get_campaign(c, number))
    ids = [item.id for item in store.read(lambda c: find_items(c, number, tasks))]
    count = 0
    for start in range(0, len(ids), AT_ONCE):
        some, now = ids[start : start + AT_ONCE], store.clock()
        made = partial(items.withdraw, campaign_id=number, ids=some, now=now, reason=reason)
        count += store.write(made)
    return {"campaign": number, "withdrawn": count}


def correct_labels(
    store: Store, number: int, wanted: Mapping[str, str | None], reason: str = ""
) -> items.LabelledByHand:
    """Label items by hand, or take such labels back (``None``), a few hundred per transaction.

    All are checked first.
    """

    def check(connection: Connection) -> None:
        items.check_wanted(connection, get_campaign(connection, number), wanted)

    store.read(check)
    made: items.LabelledByHand = {"campaign": number, "corrected": 0, "undone": 0, "opened": 0}
    rest = iter(wanted.items())
    while some := dict(islice(rest, AT_ONCE)):
        done = partial(
            items.correct, campaign_id=number, wanted=some, now=store.clock(), reason=reason
        )
        found = store.write(done)
        made["corrected"] += found["corrected"]
        made["undone"] += found["undone"]
        made["opened"] += found["opened"]
    return made
