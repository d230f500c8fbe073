"""Columns of item files in exports: their order, and names that mean nothing else there."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise

from crowdtree.core.errors import CrowdtreeError
from crowdtree.io.audits import ERROR, ITEM, KNOWN

MOST_EXPORTED = 1000
STATED = ("probability", "expected_loss", "referred")
READ_AGAIN = (*ITEM, *ERROR, *KNOWN, *STATED, "truth", "label", "gold")
"""Columns that have a meaning where exported labels are read again."""


class ColumnOrder:
    """The order of the columns of a file, from rows that leave out their blank cells.

    >>> order = ColumnOrder()
    >>> for row in (["text", "price"], ["text", "place"], ["place", "price"]):
    ...     order.add(row)
    >>> order.names()
    ['text', 'place', 'price']
    """

    def __init__(self) -> None:
        self._first: dict[str, int] = {}
        self._next: dict[str, set[str]] = defaultdict(set)
        self._seen: set[tuple[str, ...]] = set()

    def add(self, names: Iterable[str]) -> None:
        """Add the columns of a row."""
        row = tuple(names)
        if row in self._seen:
            return
        if len(self._seen) < MOST_EXPORTED:
            self._seen.add(row)
        for name in row:
            self._first.setdefault(name, len(self._first))
        if len(self._first) > MOST_EXPORTED:
            raise CrowdtreeError(
                f"labels: the items have more than {MOST_EXPORTED:,} different columns; export the "
                "labels without them (--no-columns, columns=false)"
            )
        for left, right in pairwise(row):
            self._next[left].add(right)

    def names(self) -> list[str]:
        """Names in order; files that contradict each other count by their first rows."""
        before = dict.fromkeys(self._first, 0)
        for names in self._next.values():
            for name in names:
                before[name] += 1
        ready = [(place, name) for name, place in self._first.items() if not before[name]]
        found: list[str] = []
        while ready:
            _, name = heapq.heappop(ready)
            found.append(name)
            for later in self._next[name]:
                before[later] -= 1
                if not before[later]:
                    heapq.heappush(ready, (self._first[later], later))
        return found if len(found) == len(self._first) else list(self._first)


def free_names(names: Iterable[str], taken: Sequence[str]) -> dict[str, str]:
    """Name columns so that none is taken or has a meaning for labels: ``item_`` in front.

    >>> free_names(["text", "label", "Label"], ["task", "label"])
    {'text': 'text', 'label': 'item_label', 'Label': 'item_Label_2'}
    """
    used = {name.casefold() for name in (*taken, *READ_AGAIN)}
    found = {}
    for name in names:
        base = name if name.strip() and name.casefold() not in used else f"item_{name.strip()}"
        free, count = base, 1
        while free.casefold() in used:
            count += 1
            free = f"{base}_{count}"
        used.add(free.casefold())
        found[name] = free
    return found
