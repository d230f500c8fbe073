"""Exact bounds from a fixed number of items that were drawn with equal chances."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from crowdtree.core.arrays import FloatArray

CLOSE = 1 + 1e-9
"""Probabilities that exceed the risk by less than rounding errors do not reject."""


def max_wrong(items: int, drawn: int, found: int, risk: float) -> int:
    """Largest number of wrong items that a sample does not rule out.

    It is ruled out if `found` or fewer wrong items among those `drawn` have a probability of at
    most `risk` (the hypergeometric distribution).

    >>> max_wrong(1000, 100, 2, 0.05), max_wrong(10, 10, 2, 0.05)
    (59, 2)
    """
    logs = _log_factorials(items)
    low, high = found, items - drawn + found  # at `low` the probability is 1
    while low < high:
        middle = (low + high + 1) // 2
        rejected = _at_most(logs, middle, drawn, found) * CLOSE <= risk
        low, high = (low, middle - 1) if rejected else (middle, high)
    return low


def min_wrong(items: int, drawn: int, found: int, risk: float) -> int:
    """Fewest wrong items that a sample does not rule out: right and wrong change places."""
    return items - max_wrong(items, drawn, drawn - found, risk)


def max_found(items: int, drawn: int, total: int, risk: float) -> int:
    """Most wrong items in a sample that still rule out `total` in all; -1 if none do.

    >>> max_found(1000, 100, 60, 0.05), max_found(1000, 100, 10, 0.05)
    (2, -1)
    """
    logs = _log_factorials(items)
    low, high = -1, min(drawn, total)
    while low < high:
        middle = (low + high + 1) // 2
        rejected = _at_most(logs, total, drawn, middle) * CLOSE <= risk
        low, high = (middle, high) if rejected else (low, middle - 1)
    return low


def _at_most(logs: FloatArray, wrong: int, drawn: int, found: int) -> float:
    """Probability of at most `found` wrong items among those drawn."""
    items = len(logs) - 1
    x = np.arange(max(0, drawn + wrong - items), min(found, wrong, drawn) + 1)
    chances = (
        logs[wrong] - logs[x] - logs[wrong - x]
        + logs[items - wrong] - logs[drawn - x] - logs[items - wrong - drawn + x]
    )  # fmt: skip
    every = logs[items] - logs[drawn] - logs[items - drawn]
    return math.fsum(np.exp(chances - every))


@lru_cache(maxsize=4)
def _log_factorials(items: int) -> FloatArray:
    return np.append(0.0, np.cumsum(np.log(np.arange(1, items + 1))))
