"""States of items and leases, and types that all parts of the store share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Any, TypeAlias, TypedDict

from crowdtree.policies import Policy

AnyPolicy: TypeAlias = Policy[Any]
"""A policy; what its states are made of concerns only the policy itself."""
JsonObject: TypeAlias = dict[str, Any]
"""An object as ``json.loads`` returns it."""


class ItemStatus(IntEnum):
    """Progress of an item."""

    NEW = 0
    OPEN = 1
    LABELLED = 2
    SET_ASIDE = 3
    GOLD = 4
    WITHDRAWN = 5

    @property
    def label(self) -> str:
        """Name in the API, in files and in tallies.

        >>> ItemStatus.SET_ASIDE.label
        'set aside'
        """
        return self.name.lower().replace("_", " ")


class LeaseState(IntEnum):
    """What became of a lease; a withdrawn one may still be answered but no longer matters."""

    ACTIVE = 0
    ANSWERED = 1
    SKIPPED = 2
    EXPIRED = 3
    WITHDRAWN = 4


ITEM_STATUSES = tuple(status.label for status in ItemStatus)
"""The names of the statuses, in order."""
LIVE_LEASES = (LeaseState.ACTIVE, LeaseState.WITHDRAWN)
"""Leases that may still be answered in time; their price is reserved."""
GIVEN_BACK = 0.0
"""When a lease expires that its worker gave back: long ago, and not held against the worker."""


def in_states(*states: IntEnum) -> str:
    """Format states for SQL text.

    >>> in_states(*LIVE_LEASES)
    'IN (0, 4)'
    """
    return f"IN ({', '.join(f'{state:d}' for state in states)})"


class Votes(TypedDict):
    """Consecutive votes on one question."""

    question: str
    yes: int
    no: int


def counted_votes(
    names: Sequence[str], answers: Iterable[tuple[int, int | None, str]]
) -> list[Votes]:
    """Sum up how an item came to its label: its questions in order, with their votes.

    Parameters
    ----------
    answers
        Question, value and fate of each answer, in order; only those that counted are summed.

    Examples
    --------
    >>> counted_votes(["q", "r"], [(0, 1, "counted"), (0, 0, "late"), (1, 0, "counted")])
    [{'question': 'q', 'yes': 1, 'no': 0}, {'question': 'r', 'yes': 0, 'no': 1}]
    """
    runs: list[Votes] = []
    for question, value, fate in answers:
        if fate != "counted":
            continue
        if not runs or runs[-1]["question"] != names[question]:
            runs.append({"question": names[question], "yes": 0, "no": 0})
        runs[-1]["yes" if value else "no"] += 1
    return runs
