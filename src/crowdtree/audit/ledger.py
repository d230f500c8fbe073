"""The evidence about one set of labels: a test of every number of wrong items.

In a ledger of losses an item counts as what it costs, in place of 0 or 1.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from crowdtree.audit import kernels
from crowdtree.audit.costs import totals_of_loss
from crowdtree.audit.exact import max_found, max_wrong, min_wrong
from crowdtree.audit.strata import expectations, totals_to_test
from crowdtree.core.arrays import FloatArray

PLAN_SHARE = 0.9
"""Share of the risk that the bound at a planned number of checks takes; the rest is for all others.

The larger it is, the nearer is that bound to the one of a fixed sample, and the wider are others.
"""


def allowed_wrong(bound: float, items: int) -> int:
    """Count the wrong items that a bound allows.

    >>> allowed_wrong(0.07, 100)
    7
    """
    return math.floor(bound * items + 1e-9)


class TotalTests:
    """Tests of totals one after another, each played only as far as a bound asks.

    Totals are in an order in which each is of interest only once all before it are rejected: for
    an upper bound from the largest down. `totals` are numbers of wrong items before the first
    check, or of right items with `flip`.
    """

    def __init__(self, ledger: Ledger, totals: FloatArray, flip: bool) -> None:
        self._ledger = ledger
        self._totals = totals
        self._flip = flip
        self._logs = np.zeros(len(totals))
        self._played = np.zeros(len(totals), dtype=np.int64)
        impossible = np.flatnonzero(totals > ledger.left.sum() + 1e-9).tolist()
        self._rejected = dict.fromkeys(impossible, 0), dict.fromkeys(impossible, 0)
        """Check that rejects each total with the whole risk, and with half of it."""
        self._looked: tuple[dict[int, int], dict[int, int]] = {}, {}
        """Checks after which each total was last not rejected."""
        self._order: tuple[list[int], list[int]] = ([], [])
        """Check after which the first total is rejected, the first two are, and so on."""

    def log_wealth(self, number: int) -> float:
        """Log of the wealth against one total; no longer followed once half of the risk rejects."""
        self._reject(number, 1)
        return float(self._logs[number])

    def _reject(self, number: int, half: int) -> bool:
        """Play a total on; whether it is rejected, with half of the risk or with the whole."""
        for level in range(half + 1):
            if number in self._rejected[level]:
                continue
            ledger = self._ledger
            if self._looked[level].get(number) == ledger.checks:
                return False
            log, played, rejected = kernels.wealth(
                ledger.first, ledger.size, *ledger.checks_made, self._flip,
                self._totals[number], self._logs[number], self._played[number], ledger.checks,
                ledger.need + level * math.log(2),
            )  # fmt: skip
            self._logs[number], self._played[number] = log, played
            if not rejected:
                self._looked[level][number] = ledger.checks
                return False
            self._rejected[level][number] = played
        return True

    def open(self, half: int, checks: int) -> int:
        """Number of the first total that is not rejected after so many checks."""
        order = self._order[half]
        while len(order) < len(self._totals) and self._reject(len(order), half):
            order.append(max(self._rejected[half][len(order)], order[-1] if order else 0))
        return bisect.bisect_right(order, checks)


class Ledger:
    """What the checks say about a set of items: all of them, or those of one label.

    `sizes` are the items of each stratum whose truth is not known, `stated` their mean stated
    error; `known` are the other items, and how many of those are wrong; `risk` is one minus the
    confidence, `wanted` the fewest wrong items to rule out; `planned` says whether there will be a
    bound at a planned number of checks (:meth:`look`). In a ledger of losses `size` is the largest
    loss of an item of each stratum, `stated` and checks are shares of it, `known` holds items,
    their losses and their largest losses, and `wanted` is a sum of losses.
    """

    def __init__(
        self,
        sizes: FloatArray,
        stated: FloatArray,
        known: tuple[float, ...],
        risk: float,
        wanted: float | None = None,
        size: FloatArray | None = None,
        planned: bool = False,
    ) -> None:
        strata = len(sizes)
        self.size = np.ones(strata) if size is None else size
        self.first = sizes.astype(np.float64)
        """Items of each stratum before the first check."""
        self.counts = self.first.copy()
        self.left = self.counts * self.size
        self.items = int(sizes.sum()) + int(known[0])
        self.checks = 0
        self._plan_risk = PLAN_SHARE * risk if planned else 0.0
        self._plan: tuple[int, Sequence[int]] | None = None
        self.need = -math.log(risk - self._plan_risk)
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
        before = float(known[1])
        self.above = TotalTests(self, (self.totals - before)[::-1].copy(), False)
        self.below = TotalTests(self, self.left.sum() - (self.ends - before), True)
        self._wrongs, self._lefts = [before], [float(self.left.sum())]
        self._estimates: list[float] = []
        self._sums = np.zeros(2)
        self._rows = np.empty((16, 2, strata))
        self._strata, self._errors = np.empty(16, dtype=np.int64), np.empty(16)
        self.expected: FloatArray = kernels.posterior(*self.model)

    @property
    def wrong(self) -> float:
        """Wrong items found, or their losses."""
        return self._wrongs[-1]

    @property
    def checks_made(self) -> tuple[FloatArray, NDArray[np.int64], FloatArray]:
        """Chances and expected errors of every check, its stratum, and what was found."""
        return self._rows, self._strata, self._errors

    def take(self, weights: FloatArray, stratum: int, error: float) -> None:
        """Take a check in; `weights` are the chances of the strata when the item was drawn.

        `error` is 1 for a wrong item, 0 for a right one, or a share of the stratum's largest loss.
        """
        t = self.checks
        if t == len(self._errors):
            self._rows, self._strata, self._errors = (
                np.concatenate([part, np.empty_like(part)]) for part in self.checks_made
            )
        self._rows[t, 0], self._rows[t, 1] = weights, self.expected
        self._strata[t], self._errors[t] = stratum, error
        self._estimate(weights, stratum, error)
        self.counts[stratum] -= 1
        self.left[stratum] = self.counts[stratum] * self.size[stratum]
        self.checks += 1
        self._wrongs.append(self.wrong + error * float(self.size[stratum]))
        self._lefts.append(float(self.left.sum()))
        kernels.update(*self.model, stratum, error)
        self.expected = kernels.posterior(*self.model)

    def _estimate(self, weights: FloatArray, stratum: int, error: float) -> None:
        """Add the unbiased estimate of one draw, weighted by how precise it was expected to be."""
        q, open_ = self.expected, self.left > 0
        chance = weights[open_] / self.left[open_]
        spread = float((self.left[open_] * q[open_] * (1 - q[open_]) / chance).sum())
        drawn = (error - q[stratum]) * self.left[stratum] / weights[stratum]
        estimate = self.wrong + float((self.left * q).sum()) + drawn
        self._sums += np.array([estimate, 1.0]) / (spread + 1e-9)
        self._estimates.append(float(self._sums[0] / self._sums[1]))

    def look(self) -> None:
        """Compute the exact bounds at the planned number of checks: after those made so far.

        The number of checks must not depend on their results, and every item must have had the
        same chance in each of them.
        """
        sample = (round(float(self.first.sum())), self.checks, round(self.wrong - self._wrongs[0]))
        known, risk = round(self._wrongs[0]), self._plan_risk
        exact = max_wrong(*sample, risk), min_wrong(*sample, risk / 2), max_wrong(*sample, risk / 2)
        self._plan = self.checks, [known + wrong for wrong in exact]

    def rejecting(self, total: float, checks: int) -> int:
        """Most wrong items in further checks that rule out a total at the planned number of checks.

        `checks` is that number in all. Negative if none do, as in a ledger of losses.
        """
        if not self._plan_risk:
            return -1
        items, before = round(float(self.first.sum())), round(self._wrongs[0])
        most = max_found(items, checks, round(total) - before, self._plan_risk)
        return most - round(self.wrong) + before

    @property
    def model(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """The working model: beliefs, rates, checked and found."""
        return self.beliefs, self.rates, self.checked, self.found

    @property
    def remaining(self) -> int:
        """Items whose truth is not known."""
        return round(float(self.counts.sum()))

    def _planned(self, checks: int) -> Sequence[float]:
        """Bound and interval of the planned number of checks, if it is reached."""
        if self._plan is None or checks < self._plan[0]:
            return self.whole, 0.0, self.whole
        return self._plan[1]

    def _high(self, half: int, checks: int | None) -> float:
        t = self.checks if checks is None else checks
        rejected = self.above.open(half, t)
        tested = float(self.ends[::-1][rejected]) if rejected < len(self.ends) else 0.0
        top = min(tested, self._planned(t)[2 * half], self._wrongs[t] + self._lefts[t])
        return max(self._wrongs[t], top)

    def most_wrong(self, checks: int | None = None) -> float:
        """Largest number of wrong items, or sum of losses, that is not rejected."""
        return self._high(0, checks)

    def interval(self, checks: int | None = None) -> tuple[float, float]:
        """Fewest and most wrong items (losses), each end with half of the risk."""
        t = self.checks if checks is None else checks
        rejected = self.below.open(1, t)
        tested = float(self.totals[rejected]) if rejected < len(self.totals) else self.whole
        high = self._high(1, t)
        return min(max(self._wrongs[t], tested, self._planned(t)[1]), high), high

    def estimate_after(self, checks: int) -> float | None:
        """Estimated number of wrong items, within the interval; none before the first check."""
        if not self._lefts[checks]:
            return self._wrongs[checks]
        if not checks:
            return None
        low, high = self.interval(checks)
        return min(max(self._estimates[checks - 1], low), high)

    @property
    def estimate(self) -> float | None:
        """Estimated number of wrong items after all checks."""
        return self.estimate_after(self.checks)

    def wrong_after(self, checks: int) -> float:
        """Wrong items found in the first checks, and those known from the start."""
        return self._wrongs[checks]

    def wealth_against(self, total: float) -> float:
        """Log wealth against this many wrong items or more; of the next number that is tested."""
        index = min(int(np.searchsorted(self.totals, total)), len(self.totals) - 1)
        return self.above.log_wealth(len(self.totals) - 1 - index)

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
