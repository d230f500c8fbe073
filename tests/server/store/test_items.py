"""Items for the pages of an owner."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from crowdtree.server.store.owner import deleting
from crowdtree.server.store.queries.items import PAGE, ItemListing, divided, some_items
from tests.storelab import Small, plan_policy


def test_divided_votes_come_first(small: Callable[..., Small]) -> None:
    one = small(rows=2)
    plan = plan_policy()
    one.store.write(lambda c: deleting.change_policy(c, one.number, plan, 0.0))
    one.start()
    people_ = [one.worker() for _ in range(4)]
    assert plan.plan.votes[0] == 5
    for who, vote in zip(people_, (1, 0, 1, 1), strict=True):
        one.answer(who, vote)
    for who in people_[:3]:  # three of five agree: the vote is over
        one.answer(who, 1)
    found = one.store.read(lambda c: divided(c, one.number))
    assert (found.labels, found.questions) == (2, {"T1": (1, 7)})
    assert [(row["yes"], row["no"]) for row in found.items] == [(3, 1)]


def test_items_are_found_by_status_label_and_name(small: Callable[..., Small]) -> None:
    one = small(rows=120)
    one.start()
    who = one.worker()
    one.answer(who, 1)

    def find(**asked: Any) -> list[ItemListing]:
        return one.store.read(lambda c: some_items(c, one.number, **asked))

    assert [row["task"] for row in find(status="labelled")] == ["0"]
    assert [row["task"] for row in find(label=3)] == ["0"]
    assert find(label=0) == []
    assert [row["task"] for row in find(find="11")] == ["11", *map(str, range(110, 120))]
    assert [row["task"] for row in find(find="11", after="118")] == ["119"]
    assert [row["task"] for row in find(find="0", label=3, status="labelled")] == ["0"]
    assert find(find="0", label=2) == []
    assert find(find="%") == []
    first = find()
    assert len(first) == PAGE
    assert find(after=str(first[-1]["cursor"]))[0]["task"] == str(PAGE)
