"""States of items and leases, as SQL text writes them."""

from __future__ import annotations

from enum import IntEnum


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

MAX_DIGITS = 18
"""Longest lease number; more digits would not fit a column of the database."""


def lease_token(number: int, nonce: str) -> str:
    """Name a lease as its worker knows it; the nonce cannot be guessed."""
    return f"{number}.{nonce}"


def split_lease(token: str) -> tuple[int, str]:
    """Number and nonce of a lease; -1 where there can be no such number.

    >>> split_lease(lease_token(12, "ab")), split_lease("x.ab")
    ((12, 'ab'), (-1, 'ab'))
    """
    number, _, nonce = token.partition(".")
    usable = number.isascii() and number.isdigit() and len(number) <= MAX_DIGITS
    return int(number) if usable else -1, nonce


def in_states(*states: IntEnum) -> str:
    """Format states for SQL text.

    >>> in_states(*LIVE_LEASES)
    'IN (0, 4)'
    """
    return f"IN ({', '.join(f'{state:d}' for state in states)})"
