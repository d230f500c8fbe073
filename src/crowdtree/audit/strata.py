"""Strata of similar stated error, and what the working model expects of them.

The working model chooses chances and bets. No bound depends on whether it is right.
"""

from __future__ import annotations

import numpy as np

from crowdtree.core.arrays import FloatArray, IntArray

MAX_STRATA = 12
SLOPES = {-0.5: 0.3, 0.0: 1.0, 0.5: 1.0, 1.0: 1.5}
"""Slopes of the true on the stated log odds, with their prior weights: 0 if errors say nothing."""
DOUBLINGS = range(-6, 7)
"""The mean error may be this many times double the stated one."""
DECAY = 0.6
"""Prior weight of one more doubling."""
EVERY = 200
"""Totals up to this one are tested one by one."""
LARGEST = 1e9
"""Largest stake; the null that everything left is wrong allows any."""
PRECISION = 1e-10
"""Relative change of a stake below which it is found."""
STRENGTH = 20.0
"""Checks in one stratum that count as much as what the other strata say about it."""
STEPS = 30
"""Steps in which the rest of an audit is looked ahead to choose chances."""
LEANINGS = ((1.0, 0.5), *((share, power) for share in (0.75, 0.5, 0.35, 0.2, 0.1)
                          for power in (0.5, 1.0)))  # fmt: skip
"""Chances that are tried: the uniform share, and the power of the expected error in the rest."""
RATIO = 1.01
"""Further totals are tested in steps of this ratio."""


def stratify(errors: FloatArray, most: int = MAX_STRATA) -> IntArray:
    """Put items into strata by stated error; equal errors share one, unsure items have more.

    >>> stratify(np.array([0.1, 0.0, 0.5, 0.1])).tolist()
    [1, 0, 2, 1]
    """
    cuts = np.unique(errors)
    if len(cuts) > most:
        ordered = np.sort(errors)
        roots = np.sqrt(ordered)
        mass = 0.5 / len(ordered) + 0.5 * roots / roots.sum()
        part = np.minimum(((np.cumsum(mass) - mass / 2) * most).astype(np.int64), most - 1)
        cuts = np.unique(ordered[np.searchsorted(part, np.unique(part))])
    return np.asarray(np.searchsorted(cuts, errors, side="right") - 1, dtype=np.int64)


def expectations(stated: FloatArray, sizes: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Hypotheses about the errors of strata: prior weights, and one row of errors each."""
    n = sizes.sum()
    clipped = np.clip(stated, 0.25 / n, 1 - 0.25 / n)
    odds = np.log(clipped / (1 - clipped))
    mean = float(np.clip((sizes * stated).sum() / n, 1 / n, 0.5))
    cases = [(slope, times) for slope in SLOPES for times in DOUBLINGS]
    beliefs = np.array([SLOPES[slope] * DECAY ** abs(times) for slope, times in cases])
    means = np.clip([mean * 2.0**times for _, times in cases], 0.5 / n, 0.9)
    rows = _shifted(np.array([slope * odds for slope, _ in cases]), sizes / n, means)
    return beliefs / beliefs.sum(), rows


def _shifted(odds: FloatArray, shares: FloatArray, means: FloatArray) -> FloatArray:
    """Errors of these log odds, each row shifted so that its mean is as wanted."""
    low, high = np.full(len(odds), -60.0), np.full(len(odds), 60.0)
    for _ in range(60):
        middle = (low + high) / 2
        below = (1 / (1 + np.exp(-odds - middle[:, None]))) @ shares < means
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray(1 / (1 + np.exp(-odds - high[:, None])))


def totals_to_test(n: int, wanted: int | None = None) -> FloatArray:
    """Numbers of wrong items that are tested, 0 to n; the one wanted is among them.

    >>> totals_to_test(3).tolist()
    [0.0, 1.0, 2.0, 3.0]
    """
    made = set(range(min(n, EVERY) + 1))
    k = float(EVERY)
    while k < n:
        k *= RATIO
        made.add(min(int(k), n))
    if wanted is not None:
        made.add(min(wanted, n))
    return np.array(sorted(made), dtype=np.float64)
