"""How much the answers about one item are worth together (docs/model.md, section 13).

People who look at the same item err together, more than any model of the answers alone can show:
an error that everybody shares leaves no trace in them. So what a fit believes is discounted before
it is stated. The first answer about an item counts in full, each further one counts as `worth` of
an independent answer: the posterior of an item with n answers is raised to the power

    scale (1 + (n - 1) worth) / n.

`scale` is 1 unless known items show that even a single answer is believed too much, as where most
items mislead everybody. `worth` differs from crowd to crowd. What is known before any item of a
crowd has been checked is how it differs between crowds whose truth is known; items of known class
then update it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from crowdtree.errors import CrowdtreeError
from crowdtree.learning.judging import Judge
from crowdtree.loss import Decision
from crowdtree.stats import normal_quantile

__all__ = ["Accuracy", "Discount", "Worth", "mean_of", "weighted_quantile"]

FloatArray = NDArray[np.float64]

CROWD_MEAN = float(np.log(0.253))
"""Mean of log worth over the eleven crowds of ``benchmarks/learn_calibration.py``."""
CROWD_SD = 0.36
"""Its standard deviation between those crowds."""
_FREEDOM = 4.0  # of the t distribution: crowds unlike those eleven occur
GRID = np.linspace(np.log(0.03), 0.0, 36)
"""Log worths."""
SCALES = np.array([1.0, 0.8, 0.6, 0.45, 0.33, 0.25, 0.18, 0.12, 0.08, 0.05, 0.02])
_MISLED = 0.02  # prior probability that the scale is not 1: below the tail of any usual interval
_LEAST = 1e-3
_LEAST_SEEN = 1e-5


class Accuracy(NamedTuple):
    """Share of the labels that are right: an estimate with its interval.

    `known` is the number of items of known class behind it: 0 where it rests on agreement alone.

    Examples
    --------
    >>> accuracy = Accuracy(0.79, 0.68, 0.90, known=0)
    >>> round(float(accuracy), 2), accuracy.needed(0.05)
    (0.79, 203)
    """

    value: float
    low: float
    high: float
    known: int
    level: float = 0.95

    def __float__(self) -> float:
        return self.value

    def needed(self, half_width: float = 0.05) -> int:
        """Estimate how many (more) known items make the interval this narrow: ± `half_width`.

        What is known already and what each item adds are taken as normal.
        """
        if not half_width > 0:
            raise CrowdtreeError(f"half_width: expected a number above 0, got {half_width!r}")
        z = normal_quantile(self.level)
        held = (2 * z / max(self.high - self.low, 1e-9)) ** 2
        return max(0, math.ceil(self.value * (1 - self.value) * ((z / half_width) ** 2 - held)))


class Discount(Protocol):
    """How far evidence is discounted before a probability is stated, and how well that is known."""

    @property
    def known(self) -> int:
        """Items of known class behind it."""
        ...

    def updated(
        self,
        posterior: FloatArray,
        answers: NDArray[Any],
        truth: NDArray[Any],
        weight: FloatArray | None = None,
    ) -> Self:
        """After items of known class, whose class the posteriors did not use."""
        ...

    def stated(self, posterior: FloatArray, answers: NDArray[Any]) -> FloatArray:
        """Probabilities to state."""
        ...

    def judged(
        self,
        posterior: FloatArray,
        answers: NDArray[Any],
        level: float,
        judge: Judge,
        made: Decision,
    ) -> tuple[float, float, float]:
        """Mean of what a judge says of the labels of some items, and its interval."""
        ...


@dataclass(frozen=True, eq=False)
class Worth:
    """What is known about the worth of a further answer.

    `weight` holds probabilities (scale, log worth) over :data:`SCALES` and :data:`GRID`.

    Examples
    --------
    >>> worth = Worth.of_a_crowd()
    >>> round(worth.mean, 2), worth.known
    (0.28, 0)
    >>> posterior = np.array([[0.99, 0.01]])
    >>> round(float(worth.stated(posterior, np.array([1]))[0, 0]), 2)
    0.99
    >>> bool(worth.stated(posterior, np.array([10]))[0, 0] < 0.9)
    True
    """

    weight: FloatArray
    known: int = 0

    @classmethod
    def of_a_crowd(cls) -> Worth:
        """Before any item of the crowd has been checked."""
        away = (GRID - CROWD_MEAN) / CROWD_SD
        return cls(_with_scales((1 + away**2 / _FREEDOM) ** (-(_FREEDOM + 1) / 2)))

    @property
    def mean(self) -> float:
        """Expected worth."""
        return float(self.weight.sum(axis=0) @ np.exp(GRID))

    def updated(
        self,
        posterior: FloatArray,
        answers: NDArray[Any],
        truth: NDArray[Any],
        weight: FloatArray | None = None,
    ) -> Worth:
        """After items of known class, whose truth the posteriors did not use."""
        if not len(truth):
            return self
        row, much = np.arange(len(truth)), np.ones(len(truth)) if weight is None else weight
        log = np.log(np.maximum(self.weight, 1e-300))
        for i, scale in enumerate(SCALES):
            for j, at in enumerate(GRID):
                chance = _discounted(posterior, answers, float(np.exp(at)), scale)[row, truth]
                log[i, j] += float(much @ np.log(np.maximum(chance, 1e-9)))
        weight = np.exp(log - log.max())
        return Worth(weight / weight.sum(), self.known + len(truth))

    def stated(self, posterior: FloatArray, answers: NDArray[Any]) -> FloatArray:
        """Probabilities to state: discounted, averaged over what the worth may be."""
        made = np.zeros_like(posterior)
        kept = np.where(self.weight >= _LEAST, self.weight, 0.0)
        for i, j in np.argwhere(kept):
            worth = float(np.exp(GRID[j]))
            made += kept[i, j] * _discounted(posterior, answers, worth, SCALES[i])
        return np.asarray(made / kept.sum())

    def judged(
        self,
        posterior: FloatArray,
        answers: NDArray[Any],
        level: float,
        judge: Judge,
        made: Decision,
    ) -> tuple[float, float, float]:
        """Mean of what a judge says of the labels of some items, and its interval.

        The interval holds the doubt about the worth and the chance in the items themselves.
        """
        places = np.argwhere(self.weight >= _LEAST_SEEN)
        values = (
            judge.expected(_discounted(posterior, answers, float(np.exp(GRID[j])), SCALES[i]), made)
            for i, j in places
        )
        return mean_of(values, self.weight[tuple(places.T)], level, judge.most)


def mean_of(
    values: Iterable[tuple[FloatArray, FloatArray]], weight: FloatArray, level: float, most: float
) -> tuple[float, float, float]:
    """Mean over items of what is expected of each under some beliefs, and its interval.

    Parameters
    ----------
    values
        Mean and variance of each item, one pair of arrays per belief.
    weight
        Weight of each belief.
    level
        Level of the interval, which holds the doubt between the beliefs and the chance in the
        items themselves.
    most
        Largest value of an item.
    """
    from scipy.special import ndtri

    parts = [(part.mean(), np.sqrt(variance.sum()) / len(part)) for part, variance in values]
    mean, noise = (np.array(column) for column in zip(*parts, strict=True))
    nodes = ndtri((np.arange(20) + 0.5) / 20)
    value, each = (mean[:, None] + noise[:, None] * nodes).ravel(), np.repeat(weight, 20)
    tail = (1 - level) / 2
    low, high = (
        float(np.clip(weighted_quantile(value, each, q), 0, most)) for q in (tail, 1 - tail)
    )
    return float(np.average(mean, weights=weight)), low, high


def _with_scales(weight: FloatArray) -> FloatArray:
    """Weights over scales and worths from those over worths."""
    scale = np.full(len(SCALES), _MISLED / (len(SCALES) - 1))
    scale[0] = 1 - _MISLED
    return np.outer(scale, weight / weight.sum())


def _discounted(
    posterior: FloatArray, answers: NDArray[Any], worth: float, scale: float
) -> FloatArray:
    """Posteriors raised to the power of so many answers, and normalised."""
    count = np.maximum(answers, 1).astype(np.float64)
    power = scale * (1 + (count - 1) * worth) / count
    score = power[:, None] * np.log(np.maximum(posterior, 1e-300))
    made = np.exp(score - score.max(axis=1, keepdims=True))
    return np.asarray(made / made.sum(axis=1, keepdims=True))


def weighted_quantile(value: FloatArray, weight: FloatArray, quantile: float) -> float:
    """Smallest value with at least this share of the weight at or below it.

    >>> weighted_quantile(np.array([3.0, 1.0, 2.0]), np.array([0.2, 0.5, 0.3]), 0.6)
    2.0
    """
    order = np.argsort(value)
    reached = np.cumsum(weight[order]) / weight.sum()
    return float(value[order[min(int(np.searchsorted(reached, quantile)), len(value) - 1)]])
