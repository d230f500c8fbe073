"""What labels are worth as a whole: the share that is right, or what their mistakes cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.arrays import FloatArray
from crowdtree.core.checking import check_call
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.loss import Decision, Loss
from crowdtree.core.stats import normal_quantile


class Accuracy(NamedTuple):
    """Share of the labels that are right, or their mean loss: an estimate with its interval.

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
        check_call(Accuracy.needed, {"half_width": half_width})
        if not half_width > 0:
            raise CrowdtreeError(f"half_width: expected a number above 0, got {half_width!r}")
        z = normal_quantile(self.level)
        held = (2 * z / max(self.high - self.low, 1e-9)) ** 2
        return max(0, math.ceil(self.value * (1 - self.value) * ((z / half_width) ** 2 - held)))


@dataclass(frozen=True)
class Judge:
    """Judges labels by the share that is right or, with `costs`, by their mean loss.

    `loss` is what labels minimise; without it a label is the likeliest class.
    """

    loss: Loss | None = None
    costs: bool = False

    @property
    def most(self) -> float:
        """Largest value that an item can have."""
        if not self.costs or self.loss is None:
            return 1.0
        return max(self.loss.largest, self.loss.refer or 0.0)

    def decide(self, plain: FloatArray, stated: FloatArray) -> Decision:
        """Labels of items with these posteriors, before and after they are discounted."""
        if self.loss is not None:
            return self.loss.decide(stated)
        count = len(plain)
        return Decision(plain.argmax(axis=1), np.zeros(count), np.zeros(count, dtype=bool))

    def expected(self, posterior: FloatArray, made: Decision) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of the value of each item, given the probabilities of its classes.

        >>> Judge().expected(np.array([[0.7, 0.3]]), Decision(np.array([1]), None, None))
        (array([0.3]), array([0.21]))
        """
        if self.loss is None or not self.costs:
            right = posterior[np.arange(len(posterior)), made.label]
            return right, right * (1 - right)
        refer = self.loss.refer
        squared = Loss(self.loss.matrix**2, None if refer is None else refer**2)
        mean, square = (
            loss.risk_of(posterior, made.label, made.referred) for loss in (self.loss, squared)
        )
        return mean, np.maximum(square - mean**2, 0.0)

    def observed(self, truth: NDArray[Any], made: Decision) -> FloatArray:
        """Value of each item whose class is known."""
        if self.loss is None or not self.costs:
            return np.asarray(made.label == truth, dtype=np.float64)
        classes = np.eye(len(self.loss.matrix))
        return self.loss.risk_of(classes[truth], made.label, made.referred)


_CHANCES = 20  # quantiles of the chance in the items themselves


def interval_of_mean(
    mean: FloatArray, noise: FloatArray | float, weight: FloatArray, level: float
) -> tuple[float, float, float]:
    """Mean over items under several beliefs: its expected value and interval.

    `mean` is that over the items under each belief, `noise` its standard deviation by chance.
    """
    from scipy.special import ndtri

    nodes = ndtri((np.arange(_CHANCES) + 0.5) / _CHANCES)
    value = (mean[:, None] + np.broadcast_to(noise, mean.shape)[:, None] * nodes).ravel()
    each, tail = np.repeat(weight, _CHANCES), (1 - level) / 2
    order = np.argsort(value)
    reached = np.cumsum(each[order]) / each.sum()
    ends = np.searchsorted(reached, [tail, 1 - tail]).clip(max=len(value) - 1)
    low, high = value[order[ends]].tolist()
    return float(np.average(mean, weights=weight)), low, high


def difference_interval(
    stated: float, gap: FloatArray, weight: FloatArray, noise: float, level: float, most: float
) -> tuple[float, float, float]:
    """Mean over items, corrected by how far what is stated is off on known ones; its interval.

    It holds whatever the stated values are worth (Angelopoulos and others 2023).

    `stated` is the mean of what is stated; `gap` what was observed less what was stated of each
    known item, and `weight` the weight of each; `noise` the standard deviation of the mean by
    chance in the items; `most` the largest value of an item.
    """
    count = float(weight.sum())
    mean = stated + float(weight @ gap) / count
    # one more item, as far off as any
    doubt = (float(weight @ gap**2) + 0.25 * most**2) / (count + 1) / count
    half = normal_quantile(level) * float(np.sqrt(doubt + noise**2))
    low, mean, high = np.clip([mean - half, mean, mean + half], 0, most).tolist()
    return mean, low, high
