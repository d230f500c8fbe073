"""The evidence about one set of labels: wealth against every number of wrong items.

In a ledger of losses an item counts as what it costs, in place of 0 or 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdtree.audit import few
from crowdtree.audit.costs import totals_of_loss
from crowdtree.audit.strata import expectations, totals_to_test

__all__ = ["Ledger", "allowed_wrong", "shared_estimates"]

FloatArray = NDArray[np.float64]
FEW = 1_000
"""Items up to which nothing is compiled."""


def allowed_wrong(bound: float, items: int) -> int:
    """Count the wrong items that a bound allows.

    >>> allowed_wrong(0.07, 100)
    7
    """
    return math.floor(bound * items + 1e-9)


class Ledger:
    """What the checks say about a set of items: all of them, or those of one label.

    Parameters
    ----------
    sizes
        Items of each stratum whose truth is not known.
    stated
        Their mean stated error.
    known
        Items whose truth is known before the audit, and how many of those are wrong.
    alpha
        One minus the confidence.
    wanted
        The fewest wrong items that are to be ruled out.
    size
        In a ledger of losses: the largest loss of an item of each stratum. `stated` and the checks
        are then shares of it, `known` holds the number of items, their losses and their largest
        losses, and `wanted` is a sum of losses.
    """

    def __init__(
        self,
        sizes: FloatArray,
        stated: FloatArray,
        known: tuple[float, ...],
        alpha: float,
        wanted: float | None = None,
        size: FloatArray | None = None,
    ) -> None:
        strata = len(sizes)
        self.size = np.ones(strata) if size is None else size
        self.counts = sizes.astype(np.float64)
        self.left = self.counts * self.size
        self.items = int(sizes.sum()) + int(known[0])
        self.wrong = float(known[1])
        """Wrong items found, or their losses."""
        self.checks = 0
        self.need = math.log(1 / alpha)
        if self.left.sum() > 0:
            self.beliefs, self.rates = expectations(stated, self.left)
        else:
            self.beliefs, self.rates = np.ones(1), np.zeros((1, strata))
        self.checked, self.found = np.zeros(strata), np.zeros(strata)
        # a number between two tested ones is ruled out by the test of the lower (upper) of them
        if size is None:
            self.whole = float(self.items)
            self.totals = totals_to_test(self.items, None if wanted is None else int(wanted))
            self.ends = np.append(self.totals[1:] - 1, self.items)
        else:
            self.whole = float(self.left.sum()) + known[2]
            self.totals = totals_of_loss(self.whole, wanted)
            self.ends = np.append(self.totals[1:], self.whole)
        cells = len(self.totals)
        self.above, self.below = np.zeros(cells), np.zeros(cells)
        self.above_peak, self.below_peak = np.zeros(cells), np.zeros(cells)
        self._estimates, self._weights = 0.0, 0.0
        self._expect()

    @property
    def kernels(self) -> Any:
        """Arithmetic that suits the number of items: compiled for many."""
        if self.items <= FEW:
            return few
        from crowdtree.audit import kernels

        return kernels

    def _expect(self) -> None:
        self.expected = self.kernels.posterior(*self.model)

    def take(self, weights: FloatArray, stratum: int, error: float) -> None:
        """Take a check in; `weights` are the chances of the strata when the item was drawn.

        `error` is 1 for a wrong item, 0 for a right one, or a share of the stratum's largest loss.
        """
        left, rest = self.left, self.left.sum()
        most = self.need + math.log(2)
        wrong_left = self.totals - self.wrong
        right_left = rest - (self.ends - self.wrong)
        self.kernels.advance(
            self.above, self.above_peak, wrong_left, most,
            left, weights, self.expected, stratum, error,
        )  # fmt: skip
        self.kernels.advance(
            self.below, self.below_peak, right_left, most,
            left, weights, 1 - self.expected, stratum, 1.0 - error,
        )  # fmt: skip
        self._estimate(weights, stratum, error)
        self.counts[stratum] -= 1
        left[stratum] = self.counts[stratum] * self.size[stratum]
        self.checks += 1
        self.wrong += error * float(self.size[stratum])
        self.kernels.update(*self.model, stratum, error)
        self._expect()

    def _estimate(self, weights: FloatArray, stratum: int, error: float) -> None:
        """Add the unbiased estimate of one draw, weighted by how precise it was expected to be."""
        q, open_ = self.expected, self.left > 0
        chance = weights[open_] / self.left[open_]
        spread = float((self.left[open_] * q[open_] * (1 - q[open_]) / chance).sum())
        drawn = (error - q[stratum]) * self.left[stratum] / weights[stratum]
        weight = 1 / (spread + 1e-9)
        self._estimates += weight * (self.wrong + float((self.left * q).sum()) + drawn)
        self._weights += weight

    @property
    def model(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """The working model: beliefs, rates, checked and found."""
        return self.beliefs, self.rates, self.checked, self.found

    @property
    def remaining(self) -> int:
        """Items whose truth is not known."""
        return round(float(self.counts.sum()))

    def most_wrong(self, need: float | None = None) -> float:
        """Largest number of wrong items, or sum of losses, that is not rejected."""
        standing = self.above_peak < (self.need if need is None else need)
        top = float(self.ends[standing].max()) if standing.any() else float(self.wrong)
        return max(self.wrong, min(top, self.wrong + float(self.left.sum())))

    def interval(self) -> tuple[float, float]:
        """Fewest and most wrong items (losses), each end with half of the risk."""
        need = self.need + math.log(2)
        standing = self.below_peak < need
        least = float(self.totals[standing].min()) if standing.any() else self.whole
        high = self.most_wrong(need)
        return min(max(self.wrong, least), high), high

    @property
    def estimate(self) -> float | None:
        """Estimated number of wrong items, within the interval; none before the first check."""
        if not self.remaining:
            return self.wrong
        if not self.checks:
            return None
        low, high = self.interval()
        return float(min(max(self._estimates / self._weights, low), high))

    def wealth_against(self, total: float) -> float:
        """Log wealth against this many wrong items or more; of the next number that is tested."""
        place = np.searchsorted(self.totals, total)
        return float(self.above[min(int(place), len(self.totals) - 1)])

    @property
    def guess(self) -> float:
        """Estimated number of wrong items; before any check what the working model expects."""
        found = self.estimate
        return self.wrong + float(self.left @ self.expected) if found is None else found


def shared_estimates(total: float | None, parts: Sequence[Ledger]) -> list[float | None]:
    """Estimates of parts of the items that add up to the one of all items.

    What each part is estimated to have beyond what was found is scaled by one factor, and every
    estimate stays within the interval of its part. Parts without a check have none before the first
    check of any.
    """
    if total is None:
        return [part.estimate for part in parts]
    found = np.array([part.wrong for part in parts])
    extra = np.array([part.guess for part in parts]) - found + 1e-9
    low, high = np.array([part.interval() for part in parts]).T

    def scaled(factor: float) -> FloatArray:
        return np.asarray(np.clip(found + factor * extra, low, high))

    least, most = 0.0, 1.0
    while scaled(most).sum() < total and most < 1e12:
        most *= 4
    for _ in range(100):
        middle = (least + most) / 2
        least, most = (middle, most) if scaled(middle).sum() < total else (least, middle)
    return [round(float(value), 12) for value in scaled(most)]
