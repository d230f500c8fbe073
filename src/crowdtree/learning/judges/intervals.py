"""Intervals (95 %) of numbers that are sums over items; items are the independent units."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.arrays import FloatArray
from crowdtree.core.stats import Z95, wilson_interval

REPLICATES = 1000
_CELLS = 4_000_000  # weights that are drawn at a time


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95 % interval."""

    value: float
    low: float
    high: float

    @property
    def half(self) -> float:
        """Half the width."""
        return (self.high - self.low) / 2


def share(part: FloatArray, whole: FloatArray | None = None) -> Interval | None:
    """Estimate a share: the sum of `part` over that of `whole` (1 by default), one entry per item.

    Wilson's interval for the number of independent trials that would be as precise.

    >>> share(np.array([1.0, 1.0, 0.0, 1.0]))
    Interval(value=0.75, low=0.256..., high=0.963...)
    """
    whole = np.ones(len(part)) if whole is None else whole
    total, n = float(whole.sum()), int((whole > 0).sum())
    if not total:
        return None
    value = min(max(float(part.sum()) / total, 0.0), 1.0)
    variance = float(((part - value * whole) ** 2).sum()) / total**2 * n / max(n - 1, 1)
    size = value * (1 - value) / variance if variance > 1e-12 and n > 1 else n
    return Interval(value, *wilson_interval(value * size, size))


def mean_difference(values: FloatArray, most: float = 1.0) -> Interval | None:
    """Mean of paired differences, one per item, from -1 to 1.

    Two items are added, of which one differs by `most`, half of it either way (Agresti and Min
    2005), so that few items that agree are no certainty. As one model is compared with the mean of
    several people, differences are skewed; centre (Johnson 1978) and width allow for that.

    >>> mean_difference(np.zeros(98))
    Interval(value=0.0, low=-0.0329..., high=0.0329...)
    """
    if not len(values):
        return None
    mean, far = float(values.mean()), most / math.sqrt(2)
    values = np.append(values, [-far, far])
    n, centre, spread = len(values), float(values.mean()), float(values.std())
    scaled, more = (values - centre) / spread, (1 + 2 * Z95**2) / (6 * len(values))
    centre += more * float((scaled**3).mean()) * spread
    half = Z95 * spread / math.sqrt(n) * (1 + more * max(float((scaled**4).mean()) - 3, 0.0))
    low, high = min(mean, centre - half), max(mean, centre + half)
    return Interval(mean, max(-1.0, low), min(1.0, high))


def bootstrap(
    rows: FloatArray,
    statistic: Callable[[FloatArray], FloatArray],
    rng: np.random.Generator,
    doubt: FloatArray,
    count: NDArray[Any] | None = None,
) -> Interval | None:
    """Interval of a function of the sums of `rows` (one per item), items drawn with replacement.

    `doubt`: the row of one more item, as far off as any (or several); the interval reaches what it
    would give, so that few items that agree are no certainty.
    `count`: for how many items each row stands; otherwise equal rows are counted, and drawn as one.
    """
    if not len(rows):
        return None
    kinds = rows
    if count is None:
        kinds, count = np.unique(rows, axis=0, return_counts=True)
    items, total = int(count.sum()), count @ kinds
    value = float(statistic(total[None])[0])
    if not np.isfinite(value):
        return None
    parts: list[Any] = []
    step = max(1, _CELLS // len(kinds))
    for first in range(0, REPLICATES, step):
        times = rng.multinomial(items, count / items, min(step, REPLICATES - first))
        parts.append(statistic(times @ kinds))
    values = np.concatenate(parts)
    ends = np.quantile(values[np.isfinite(values)], [0.025, 0.975]).tolist()
    ends += statistic(total + np.atleast_2d(doubt)).tolist()
    return Interval(value, min(value, *ends), max(value, *ends))
