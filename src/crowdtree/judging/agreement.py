"""How far answers agree beyond chance: Cohen's and Fleiss' kappa, Krippendorff's alpha."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdtree.judging.intervals import FloatArray, Interval, bootstrap

IntArray = NDArray[np.integer[Any]]


def krippendorff_alpha(counts: IntArray, rng: np.random.Generator) -> Interval | None:
    """Krippendorff's alpha of nominal answers, with its bootstrap interval by item.

    ``alpha = 1 - D_o / D_e``: how often two answers about an item differ, over how often two of all
    these answers differ. Items with fewer than two answers do not count.

    Parameters
    ----------
    counts
        Answers of each item (row) by label (column); answers may be missing.

    References
    ----------
    Krippendorff (2011), Computing Krippendorff's alpha-reliability.

    Examples
    --------
    >>> alpha = krippendorff_alpha(np.array([[2, 0], [2, 0], [1, 1], [0, 2]]),
    ...                            np.random.default_rng(0))
    >>> round(alpha.value, 3)
    0.533
    """
    counts = counts[counts.sum(axis=1) > 1]
    if not (counts.sum(axis=0) > 0).sum() > 1:
        return None
    size = counts.sum(axis=1)
    differ = (size**2 - (counts**2).sum(axis=1)) / (size - 1)
    doubt = np.zeros(1 + counts.shape[1])
    doubt[[0, *(1 + label for label in _common(counts.sum(axis=0)))]] = [2, 1, 1]
    return bootstrap(np.column_stack([differ, counts]), _alpha, rng, doubt)


def _alpha(sums: FloatArray) -> FloatArray:
    observed, labels = sums[:, 0], sums[:, 1:]
    total = labels.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(1 - (total - 1) * observed / (total**2 - (labels**2).sum(axis=1)))


def fleiss_kappa(counts: IntArray) -> float | None:
    """Fleiss' kappa; none unless every item has the same number of answers, two or more.

    >>> round(fleiss_kappa(np.array([[2, 0], [2, 0], [1, 1], [0, 2]])), 3)
    0.467
    """
    counts = counts[counts.sum(axis=1) > 0]
    size = counts.sum(axis=1)
    if not len(size) or size[0] < 2 or (size != size[0]).any():
        return None
    n = int(size[0])
    agree = float((((counts**2).sum(axis=1) - n) / (n * (n - 1))).mean())
    chance = float(((counts.sum(axis=0) / counts.sum()) ** 2).sum())
    return (agree - chance) / (1 - chance) if chance < 1 else None


def cohen_kappa(
    first: IntArray, second: IntArray, labels: int, rng: np.random.Generator
) -> Interval | None:
    """Cohen's kappa of two workers who answered the same items, with its bootstrap interval.

    >>> first, second = np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1])
    >>> cohen_kappa(first, second, 2, np.random.default_rng(0)).value
    0.5
    """
    first, second = first.astype(np.int64), second.astype(np.int64)
    counts = np.bincount(np.concatenate([first, second]), minlength=labels)
    if (counts > 0).sum() < 2:
        return None
    one, two = _common(counts)
    met, place = np.unique(
        np.append(first * labels + second, one * labels + two), return_inverse=True
    )
    rows = np.eye(len(met))[place]
    cells = np.eye(labels * labels)[met]

    def kappa(sums: FloatArray) -> FloatArray:
        table = (sums @ cells).reshape(-1, labels, labels) / sums.sum(axis=1)[:, None, None]
        agree = np.trace(table, axis1=1, axis2=2)
        chance = (table.sum(axis=1) * table.sum(axis=2)).sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray((agree - chance) / (1 - chance))

    return bootstrap(rows[:-1], kappa, rng, rows[-1])


def _common(counts: IntArray) -> tuple[int, int]:
    """The two most common labels; one more item on which they stand against each other is doubt."""
    first, second = np.argsort(-counts, kind="stable")[:2].tolist()
    return first, second
