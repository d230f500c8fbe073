"""Random generators: a seed or a generator, checked in one place."""

from __future__ import annotations

import numpy as np

from crowdtree.core.errors import CrowdtreeError


def generator(rng: np.random.Generator | int | None) -> np.random.Generator:
    """Make a generator from a seed; ``None`` means seed 0, so that runs can be repeated.

    >>> int(generator(None).integers(100)) == int(generator(0).integers(100))
    True
    >>> generator(-1)
    Traceback (most recent call last):
        ...
    crowdtree.CrowdtreeError: rng: expected a seed of 0 or more, or a numpy Generator, got -1
    """
    try:
        return np.random.default_rng(0 if rng is None else rng)
    except (TypeError, ValueError):
        raise CrowdtreeError(
            f"rng: expected a seed of 0 or more, or a numpy Generator, got {rng!r}"
        ) from None
