"""How often each source, and each of its workers, errs: estimates with intervals.

Workers of a source are taken for draws from its Beta distribution, so that one of few answers is a
typical one of that source, whatever the others are. A source of one worker stands for itself: an
expert among laymen is not drawn to them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from crowdtree.core.arrays import FloatArray

if TYPE_CHECKING:
    from crowdtree.learning.answers import Answers

_LEAST = 1e-6


class SumOfRight(NamedTuple):
    """Sums of probabilities under several maps (map, group), and their variance within a crowd."""

    values: FloatArray
    variance: FloatArray

    @property
    def total(self) -> FloatArray:
        """Variance of each sum."""
        return np.asarray(self.values.var(axis=0) + self.variance)


class Rates(NamedTuple):
    """Beta posteriors of errors: how many answers are wrong, and how many right, with the prior."""

    wrong: FloatArray
    right: FloatArray

    @property
    def mean(self) -> FloatArray:
        """Estimates."""
        return np.asarray(self.wrong / (self.wrong + self.right))

    def range(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Ends of the intervals."""
        from scipy.stats import beta

        tail = (1 - level) / 2
        low, high = (np.asarray(beta.ppf(q, *self)) for q in (tail, 1 - tail))
        return low, high


def rates_of_sources(count: FloatArray, unsure: FloatArray, right: SumOfRight) -> Rates:
    """Errors of sources (or of lone workers).

    `count` are the answers of each, `unsure` is the variance of the number of right ones since
    classes are not known, and `right` holds these numbers under each belief about the map.
    """
    half = np.full(len(count), 0.5)
    return _posterior(count, unsure, right, half, half)


def rates_of_workers(
    answers: Answers, count: FloatArray, unsure: FloatArray, right: SumOfRight
) -> Rates:
    """Errors of workers, each taken for one of its source."""
    assert answers.sources is not None
    source = answers.sources.codes(answers.workers)
    wrong, alone = np.full(len(count), 0.5), np.full(len(count), 0.5)
    for code in range(len(answers.sources.names)):
        mine = np.flatnonzero(source == code)
        if len(mine) > 1:
            missed = count[mine] - right.values[:, mine].mean(axis=0)
            doubt = unsure[mine] / np.maximum(count[mine], 1) ** 2
            wrong[mine], alone[mine] = beta_of_crowd(missed, count[mine], doubt)
    return _posterior(count, unsure, right, wrong, alone)


def _posterior(
    count: FloatArray, unsure: FloatArray, right: SumOfRight, a: FloatArray, b: FloatArray
) -> Rates:
    """Beta of the same mean and variance as the error has, Beta(a, b) before any answer."""
    rate = (count - right.values + a) / (count + a + b)
    mean = np.clip(rate.mean(axis=0), _LEAST, 1 - _LEAST)
    chance = mean * (1 - mean)
    left = np.maximum(count - unsure / chance, 0.05 * count)
    variance = rate.var(axis=0) + chance / (left + a + b + 1)
    variance += right.variance / np.maximum(count, 1) ** 2
    size = np.maximum(chance / variance - 1, 1e-2)
    return Rates(mean * size, (1 - mean) * size)


def beta_of_crowd(wrong: FloatArray, count: FloatArray, doubt: FloatArray) -> tuple[float, float]:
    """Beta distribution of the errors of workers, by its first two moments.

    >>> a, b = beta_of_crowd(np.array([2.0, 8.0]), np.array([10.0, 10.0]), np.zeros(2))
    >>> round(a / (a + b), 2), 1 < a + b < 10
    (0.5, True)
    """
    mean = (wrong.sum() + 0.5) / (count.sum() + 1)
    met = count > 0
    chance = mean * (1 - mean) / np.maximum(count, 1)
    weight = np.where(met, 1 / (chance + 0.02), 0.0)
    # expected counts vary less than drawn ones, by the doubt about the classes
    square = (wrong / np.maximum(count, 1) - mean) ** 2 + doubt
    between = float((weight * (square - chance)).sum() / max(weight.sum(), 1e-12))
    # two workers' worth of a spread as seen in most crowds keeps a tiny crowd from no spread at all
    workers = float(met.sum())
    between = (max(between, 0.0) * workers + 2 * 0.01) / (workers + 2)
    size = float(np.clip(mean * (1 - mean) / max(between, 1e-6) - 1, 1.0, 500.0))
    return float(mean * size), float((1 - mean) * size)
