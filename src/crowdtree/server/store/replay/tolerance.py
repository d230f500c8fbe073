"""How far stored and replayed numbers may differ."""

from __future__ import annotations

import math

RELATIVE, ABSOLUTE = 1e-9, 1e-12
"""Tolerances for floating-point numbers."""


def same(stored: object, replayed: object) -> bool:
    """Whether two JSON values agree, floating-point numbers within the tolerances.

    >>> same({"a": [0.1 + 0.2, 1]}, {"a": [0.3, 1]}), same([1], [2])
    (True, False)
    """
    if isinstance(stored, dict):
        return (
            isinstance(replayed, dict)
            and stored.keys() == replayed.keys()
            and all(same(stored[key], replayed[key]) for key in stored)
        )
    if isinstance(stored, list):
        return (
            isinstance(replayed, list)
            and len(stored) == len(replayed)
            and all(map(same, stored, replayed))
        )
    if isinstance(stored, float) and isinstance(replayed, float | int):
        return math.isclose(stored, replayed, rel_tol=RELATIVE, abs_tol=ABSOLUTE)
    return stored == replayed
