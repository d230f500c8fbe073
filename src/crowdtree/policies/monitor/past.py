"""The answers that a monitor has taken in, by item: in memory, or in the log of a campaign."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from crowdtree.core.checking import describe_type
from crowdtree.policies.base import Answer

__all__ = ["PEOPLE", "InMemoryHistory", "Past", "PastItem", "Said"]

PEOPLE = "people"


class Said(NamedTuple):
    """An answer and the kind of worker who gave it."""

    answer: Answer
    kind: str = PEOPLE


class PastItem(NamedTuple):
    """The answers about an item in their order, and the position of the first; None if new."""

    began: int | None
    said: list[Said]


class Past(Protocol):
    """Answers so far. A monitor asks for those of an item that it does not hold any more."""

    def of(self, item: str) -> PastItem:
        """Find the answers about an item."""

    def items(self) -> Iterator[Sequence[Answer]]:
        """Go through the answers of every item that has some."""

    def add(self, item: str, position: int, said: Said, /) -> None:
        """Take in an answer; a log has it already."""


describe_type(Past, "a log of answers", needs=("of", "items", "add"))


class InMemoryHistory:
    """Answers in memory.

    >>> past = InMemoryHistory()
    >>> past.add("photo", 1, Said(Answer(0, 1)))
    >>> past.of("photo").began, list(past.items())
    (1, [[Answer(question=0, value=1, skill=0.0, weight=1.0, source=0)]])
    """

    def __init__(self) -> None:
        self._items: dict[str, PastItem] = {}

    def of(self, item: str) -> PastItem:
        """Find the answers about an item."""
        return self._items.get(item, PastItem(None, []))

    def items(self) -> Iterator[Sequence[Answer]]:
        """Go through the answers of every item that has some."""
        for item in self._items.values():
            yield [said.answer for said in item.said]

    def add(self, item: str, position: int, said: Said, /) -> None:
        """Take in an answer."""
        self._items.setdefault(item, PastItem(position, [])).said.append(said)
