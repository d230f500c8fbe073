"""Intervals (95 %) of numbers that are sums over items; items are the independent units."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdtree.stats import Z95, wilson_interval

FloatArray = NDArray[np.float64]
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
    2005), so that few items that agree are no certainty.

    >>> mean_difference(np.zeros(98))
    Interval(value=0.0, low=-0.0195..., high=0.0195...)
    """
    if not len(values):
        return None
    n, total = len(values) + 2, float(values.sum())
    spread = float((values**2).sum()) + most**2 - total**2 / n
    half = Z95 * float(np.sqrt(max(spread, 0.0))) / n
    mean = total / len(values)
    low, high = total / n - half, total / n + half
    return Interval(mean, max(-1.0, min(mean, low)), min(1.0, max(mean, high)))


def bootstrap(
    rows: FloatArray,
    statistic: Callable[[FloatArray], FloatArray],
    rng: np.random.Generator,
    doubt: FloatArray | None = None,
    count: NDArray[Any] | None = None,
) -> Interval | None:
    """Interval of a function of the sums of `rows` (one per item), items drawn with replacement.

    `doubt`: the row of one more item, as far off as any; the interval reaches what it would give.
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
    if doubt is not None:
        ends.append(float(statistic((total + doubt)[None])[0]))
    return Interval(value, min(value, *ends), max(value, *ends))
