"""One base error for every mistake a user can make and mend."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["CrowdtreeError", "CrowdtreeWarning", "listing"]


class CrowdtreeError(ValueError):
    """A mistake in the input, told in one line: what happened, where, and what to do.

    >>> raise CrowdtreeError("prior: sums to 0.9; pass normalise=True")
    Traceback (most recent call last):
        ...
    crowdtree.errors.CrowdtreeError: prior: sums to 0.9; pass normalise=True
    """


class CrowdtreeWarning(UserWarning):
    """Something legal that is seldom meant, such as a worker who errs more often than not."""


def listing(names: Iterable[str], most: int = 5) -> str:
    """Join names for a message and count what does not fit.

    >>> listing(["a", "b", "c", "d"], most=2)
    'a, b and 2 more'
    """
    shown = list(names)
    rest = len(shown) - most
    head = ", ".join(shown[:most])
    return f"{head} and {rest} more" if rest > 0 else head
