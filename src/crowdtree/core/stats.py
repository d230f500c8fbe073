"""Intervals: the normal quantile, Wilson's interval of a share, the normal interval of a mean."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Z95 = 1.959963984540054
"""Half the width of a normal 95 % interval, in standard deviations."""


def normal_quantile(level: float) -> float:
    """Half the width of a normal interval of this level, in standard deviations.

    >>> round(normal_quantile(0.95), 4), normal_quantile(0.95) == Z95
    (1.96, True)
    """
    from scipy.special import ndtri

    return float(ndtri(0.5 + level / 2))


def wilson_interval(count: float, total: float) -> tuple[float, float]:
    """Interval (95 %) of a probability after `count` of `total`; [0, 1] where `total` is 0.

    >>> [round(end, 4) for end in wilson_interval(10, 1000)]
    [0.0054, 0.0183]
    """
    if total == 0:
        return 0.0, 1.0
    share, z2 = count / total, Z95**2
    centre = (share + z2 / (2 * total)) / (1 + z2 / total)
    half = Z95 / (1 + z2 / total) * math.sqrt(share * (1 - share) / total + z2 / (4 * total**2))
    return max(0.0, min(share, centre - half)), min(1.0, max(share, centre + half))


def mean_half_width(values: NDArray[Any]) -> float:
    """Half the width of the normal 95 % interval of a mean; 0 for a single value.

    >>> round(mean_half_width(np.array([1.0, 2.0, 3.0])), 3)
    1.132
    """
    if len(values) < 2:
        return 0.0
    return Z95 * float(np.std(values, ddof=1)) / math.sqrt(len(values))
