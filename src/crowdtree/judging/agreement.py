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


def cohen_kappa(first: IntArray, second: IntArray, rng: np.random.Generator) -> Interval | None:
    """Cohen's kappa of two workers who answered the same items, with its bootstrap interval.

    >>> first, second = np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1])
    >>> cohen_kappa(first, second, np.random.default_rng(0)).value
    0.5
    """
    names, code = np.unique(np.concatenate([first, second]), return_inverse=True)
    labels = len(names)
    if labels < 2:
        return None
    cell = code[: len(first)] * labels + code[len(first) :]
    one, two = _common(np.bincount(code))
    cells, place = np.unique(np.append(cell, one * labels + two), return_inverse=True)
    rows, columns = np.eye(labels)[cells // labels], np.eye(labels)[cells % labels]
    same = cells // labels == cells % labels

    def kappa(sums: FloatArray) -> FloatArray:
        total = sums.sum(axis=1)
        agree = sums[:, same].sum(axis=1) / total
        chance = ((sums @ rows) * (sums @ columns)).sum(axis=1) / total**2
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray((agree - chance) / (1 - chance))

    unit = np.eye(len(cells))
    count = np.bincount(place[:-1], minlength=len(cells))
    return bootstrap(unit, kappa, rng, unit[place[-1]], count)


def _common(counts: IntArray) -> tuple[int, int]:
    """The two most common labels; one more item on which they stand against each other is doubt."""
    first, second = np.argsort(-counts, kind="stable")[:2].tolist()
    return first, second
