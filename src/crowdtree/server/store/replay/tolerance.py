"""How far stored and replayed numbers may differ."""

from __future__ import annotations

import math

RELATIVE, ABSOLUTE = 1e-9, 1e-12
"""Tolerances for floating-point numbers."""


def same(
    stored: object, replayed: object, relative: float = RELATIVE, absolute: float = ABSOLUTE
) -> bool:
    """Whether two JSON values agree, floating-point numbers within the tolerances.

    >>> same({"a": [0.1 + 0.2, 1]}, {"a": [0.3, 1]}), same([1], [2])
    (True, False)
    """
    if isinstance(stored, dict) and isinstance(replayed, dict):
        alike = (same(stored[key], replayed[key], relative, absolute) for key in stored)
        return stored.keys() == replayed.keys() and all(alike)
    if isinstance(stored, list) and isinstance(replayed, list):
        pairs = zip(stored, replayed, strict=False)
        return len(stored) == len(replayed) and all(
            same(one, other, relative, absolute) for one, other in pairs
        )
    if isinstance(stored, float) and isinstance(replayed, float | int):
        return math.isclose(stored, replayed, rel_tol=relative, abs_tol=absolute)
    return stored == replayed
