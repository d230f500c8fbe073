"""States of items and leases, as numbers in the database and as names everywhere else."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["ITEM_STATUSES", "LIVE_LEASES", "ItemStatus", "LeaseState", "in_states"]


class ItemStatus(IntEnum):
    """Progress of an item."""

    NEW = 0
    OPEN = 1
    LABELLED = 2
    SET_ASIDE = 3
    GOLD = 4

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


def in_states(*states: IntEnum) -> str:
    """Format states for SQL text.

    >>> in_states(*LIVE_LEASES)
    'IN (0, 4)'
    """
    return f"IN ({', '.join(f'{state:d}' for state in states)})"
