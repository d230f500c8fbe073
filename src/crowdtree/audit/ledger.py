"""The evidence about one set of labels: wealth against every number of wrong items."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdtree.audit import few
from crowdtree.audit.strata import expectations, totals_to_test

__all__ = ["Ledger", "allowed_wrong"]

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
    """

    def __init__(
        self,
        sizes: FloatArray,
        stated: FloatArray,
        known: tuple[int, int],
        alpha: float,
        wanted: int | None = None,
    ) -> None:
        strata = len(sizes)
        self.left = sizes.astype(np.float64)
        self.items = int(sizes.sum()) + known[0]
        self.known = known
        self.wrong = known[1]
        self.checks = 0
        self.need = math.log(1 / alpha)
        if self.left.sum() > 0:
            self.beliefs, self.rates = expectations(stated, self.left)
        else:
            self.beliefs, self.rates = np.ones(1), np.zeros((1, strata))
        self.checked, self.found = np.zeros(strata), np.zeros(strata)
        self.totals = totals_to_test(self.items, wanted)
        # a number between two tested ones is ruled out by the test of the lower (upper) of them
        self.ends = np.append(self.totals[1:] - 1, self.items)
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
        self.expected = self.kernels.posterior(self.beliefs, self.rates, self.checked, self.found)

    def take(self, weights: FloatArray, stratum: int, error: bool) -> None:
        """Take a check in; `weights` are the chances of the strata when the item was drawn."""
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
            left, weights, 1 - self.expected, stratum, not error,
        )  # fmt: skip
        self._estimate(weights, stratum, error)
        left[stratum] -= 1
        self.checks += 1
        self.wrong += int(error)
        self.beliefs = self.kernels.update(
            self.beliefs, self.rates, self.checked, self.found, stratum, error
        )
        self._expect()

    def _estimate(self, weights: FloatArray, stratum: int, error: bool) -> None:
        """Add the unbiased estimate of one draw, weighted by how precise it was expected to be."""
        q, open_ = self.expected, self.left > 0
        chance = weights[open_] / self.left[open_]
        spread = float((self.left[open_] * q[open_] * (1 - q[open_]) / chance).sum())
        drawn = (float(error) - q[stratum]) * self.left[stratum] / weights[stratum]
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
        return round(float(self.left.sum()))

    def most_wrong(self, need: float | None = None) -> int:
        """Largest number of wrong items that is not rejected."""
        standing = self.above_peak < (self.need if need is None else need)
        top = float(self.ends[standing].max()) if standing.any() else float(self.wrong)
        return int(max(self.wrong, min(top, self.wrong + self.remaining)))

    def interval(self) -> tuple[int, int]:
        """Fewest and most wrong items, each end with half of the risk."""
        need = self.need + math.log(2)
        standing = self.below_peak < need
        least = float(self.totals[standing].min()) if standing.any() else float(self.items)
        high = self.most_wrong(need)
        return int(min(max(self.wrong, least), high)), high

    @property
    def estimate(self) -> float | None:
        """Estimated number of wrong items, within the interval; none before the first check."""
        if not self.remaining:
            return float(self.wrong)
        if not self.checks:
            return None
        low, high = self.interval()
        return float(min(max(self._estimates / self._weights, low), high))

    def wealth_against(self, total: int) -> float:
        """Log wealth against this many wrong items or more; of the next number that is tested."""
        place = np.searchsorted(self.totals, total)
        return float(self.above[min(int(place), len(self.totals) - 1)])
