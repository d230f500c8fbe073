"""What probability to state for a label (docs/model.md, section 13.2).

Models of the answers cannot see an error that the whole crowd shares. So the log odds x of a label
are stated through a map that is specific to the crowd, ``P(label right) = sigmoid(a + b x)``. Known
items update what is known about (a, log b) from other crowds (:data:`PRIOR`); what is stated is the
average over what they may be. With known items the interval of the accuracy holds that of a
difference estimator as well (Angelopoulos and others 2023).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from crowdtree.core.arrays import FloatArray
from crowdtree.core.loss import Decision
from crowdtree.learning.judging import Judge, difference_interval, interval_of_mean

MAX_LOG_ODDS = 8.0
"""Log odds beyond this are taken for this: no fit knows that much."""
_NODES = 41  # of the grid over a, and over log b
_REACH = 6.0  # standard deviations that it covers on either side
_UNKNOWN_NODES = 200
_MAPS = 100  # maps that stand for all of the grid


class CrowdPrior(NamedTuple):
    """How (a, log b) differ between crowds: a t distribution with this mean and scale matrix.

    Within a crowd, a differs between the labels of different classes and between the items of
    different workers, with these standard deviations. `answer` is the mean share of right answers.
    """

    mean: tuple[float, float]
    scale: tuple[tuple[float, float], tuple[float, float]]
    freedom: float
    class_sd: float
    worker_sd: float
    answer: float

    def log_density(self, point: FloatArray, extra: float = 0.0) -> FloatArray:
        """Log density up to a constant; `extra` is added to the scale of a."""
        scale = np.array(self.scale) + np.diag([extra, 0.0])
        away = point - np.array(self.mean)
        square = np.einsum("...i,ij,...j->...", away, np.linalg.inv(scale), away)
        return np.asarray(-(self.freedom + 2) / 2 * np.log1p(square / self.freedom))


PRIOR = CrowdPrior((0.22, -0.31), ((0.74, -0.16), (-0.16, 0.34)), 10.0, 0.66, 0.57, 0.67)
"""From ``python -m benchmarks.crowd_prior``: eleven crowds of known truth."""

MISLED = (1.0, 9.0)
"""Beta distribution of the share of items about which several sources are misled together.

No answer shows it, so it widens the interval until an item is known. Wider than among the surest
labels of the crowds of :data:`PRIOR` (0 to 19 % wrong), which are few.
"""
_SHARES = 20  # quantiles of that share


class Grid(NamedTuple):
    """Values that (a, b) may have, with their probabilities."""

    a: FloatArray
    b: FloatArray
    weight: FloatArray

    def right(self, x: FloatArray) -> FloatArray:
        """Probability that a label is right, (node, x)."""
        return np.asarray(expit(self.a[:, None] + self.b[:, None] * x))


class Split(NamedTuple):
    """A posterior as its label, the label's log odds and the shares of the other classes."""

    label: NDArray[np.intp]
    x: FloatArray
    rest: FloatArray

    def joined(self, right: FloatArray) -> FloatArray:
        """Posterior whose labels are right with these probabilities."""
        posterior = (1 - right)[:, None] * self.rest
        posterior[np.arange(len(right)), self.label] = right
        return np.asarray(posterior)


def split_labels(posterior: FloatArray) -> Split:
    """Split posteriors (item, class) into what is said of the label and of the other classes."""
    row, label = np.arange(len(posterior)), posterior.argmax(axis=1)
    top = posterior[row, label]
    rest = posterior + 1e-12
    rest[row, label] = 0.0
    rest /= rest.sum(axis=1, keepdims=True)
    odds = np.log(np.maximum(top, 1e-12)) - np.log(np.maximum(1 - top, 1e-12))
    return Split(label, np.clip(odds, -MAX_LOG_ODDS, MAX_LOG_ODDS), rest)


_X = np.linspace(-MAX_LOG_ODDS, MAX_LOG_ODDS, 129)


def _binned(x: FloatArray, value: FloatArray, group: NDArray[Any], groups: int) -> FloatArray:
    """Sums of values over the log odds `_X`, each shared between the nearest two (x, group)."""
    at = (x + MAX_LOG_ODDS) / (_X[1] - _X[0])
    low = np.clip(at.astype(np.intp), 0, len(_X) - 2)
    share, cell, size = at - low, low * groups + group, len(_X) * groups
    sums = np.bincount(cell, (1 - share) * value, size)
    sums = sums + np.bincount(cell + groups, share * value, size)
    return np.asarray(sums, np.float64).reshape(-1, groups)


@dataclass(frozen=True, eq=False)
class CrowdMap:
    """What is known about the map from log odds to stated probabilities of one crowd.

    `pairs` counts pairs of answers about one item, which show how often people err. `posterior`,
    `truth` and `weight` are those of the known items; the posteriors did not use the class.
    `several` sources may be misled together (:data:`MISLED`).

    Examples
    --------
    >>> crowd = CrowdMap(labels=2, pairs=500)
    >>> sure = np.array([[0.99, 0.01]])
    >>> bool(0.9 < crowd.stated(sure, np.array([3]))[0, 0] < 0.98)
    True
    >>> CrowdMap(labels=2, pairs=0).stated(sure, np.array([1])).round(1).tolist()
    [[0.7, 0.3]]
    """

    labels: int
    pairs: float
    posterior: FloatArray | None = None
    several: bool = False
    truth: NDArray[Any] = field(default_factory=lambda: np.zeros(0, np.int64))
    weight: FloatArray = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def of_crowd(cls, labels: int, answers: NDArray[Any], several: bool = False) -> CrowdMap:
        """Before any item has been checked; `answers` is the number of answers of each item."""
        count = answers.astype(np.float64)
        return cls(labels, float((count * (count - 1)).sum() / 2), several=several)

    @property
    def known(self) -> int:
        """Items of known class behind it."""
        return len(self.truth)

    @cached_property
    def _split(self) -> Split:
        """The known items."""
        none = np.zeros((0, self.labels))
        return split_labels(none if self.posterior is None else self.posterior)

    @cached_property
    def grid(self) -> Grid:
        """Values of (a, b) that are possible."""
        if not self.pairs:
            chance = 1 / self.labels
            above = (np.arange(_UNKNOWN_NODES) + 0.5) / _UNKNOWN_NODES
            share = chance + (1 - chance) * above
            # a Beta distribution as wide as the uniform one, whose mean is that of other crowds
            mean = max((PRIOR.answer - chance) / (1 - chance), 0.1)
            prior = (2 * mean - 1) * np.log(above) + (1 - 2 * mean) * np.log1p(-above)
            score = self._log_likelihood(np.log(share / (1 - share)), np.zeros(len(share))) + prior
            return Grid(np.log(share / (1 - share)), np.zeros(len(share)), _normalised(score))
        peak, spread = self._peak()
        away = np.linspace(-_REACH, _REACH, _NODES)
        nodes = peak + np.stack(np.meshgrid(away, away), axis=-1).reshape(-1, 2) @ spread.T
        return Grid(nodes[:, 0], np.exp(nodes[:, 1]), _normalised(self._log_posterior(nodes)))

    def _log_likelihood(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Log probability of the known items at each of some (a, b)."""
        if not self.known:
            return np.zeros(len(a))
        odds = a[:, None] + b[:, None] * self._split.x
        right = self._split.label == self.truth
        return np.asarray(-np.logaddexp(0, np.where(right, -odds, odds)) @ self.weight)

    def _log_posterior(self, nodes: FloatArray) -> FloatArray:
        prior = PRIOR.log_density(nodes, 4 / self.pairs)  # few pairs say little about errors
        return np.asarray(prior + self._log_likelihood(nodes[:, 0], np.exp(nodes[:, 1])))

    def _peak(self) -> tuple[FloatArray, FloatArray]:
        """Likeliest (a, log b), and a root of their covariance there."""
        from scipy.optimize import minimize

        def loss(point: FloatArray) -> float:
            return -float(self._log_posterior(point[None])[0])

        best = minimize(loss, np.array(PRIOR.mean), method="Nelder-Mead").x
        step = 0.05 * np.eye(2)
        near = [
            [
                loss(best + i + j) - loss(best + i - j) - loss(best - i + j) + loss(best - i - j)
                for j in step
            ]
            for i in step
        ]
        curvature = np.array(near) / (4 * 0.05**2) + 1e-3 * np.eye(2)
        values, vectors = np.linalg.eigh(curvature)
        return best, vectors / np.sqrt(np.maximum(values, 1e-3))

    def updated(
        self,
        posterior: FloatArray,
        answers: NDArray[Any],  # noqa: ARG002 - as of TableDiscount
        truth: NDArray[Any],
        weight: FloatArray | None = None,
    ) -> CrowdMap:
        """After items of known class, whose class the posteriors did not use."""
        if not len(truth):
            return self
        fresh = np.ones(len(truth)) if weight is None else weight
        before = () if self.posterior is None else (self.posterior,)
        return replace(
            self,
            posterior=np.concatenate([*before, posterior]),
            truth=np.concatenate([self.truth, truth]),
            weight=np.concatenate([self.weight, fresh]),
        )

    def stated_right(self, x: FloatArray) -> FloatArray:
        """Probability to state that labels of these log odds are right."""
        return np.interp(x, _X, self.grid.weight @ self.grid.right(_X))

    def typical_right(self, posterior: FloatArray) -> FloatArray:
        """Probability that labels are right by the mean map, whatever the doubt about it."""
        a, b = float(self.grid.weight @ self.grid.a), float(self.grid.weight @ self.grid.b)
        return np.asarray(1 / (1 + np.exp(-(a + b * split_labels(posterior).x))))

    def stated(
        self,
        posterior: FloatArray,
        answers: NDArray[Any],  # noqa: ARG002 - as of TableDiscount
    ) -> FloatArray:
        """Probabilities to state."""
        split = split_labels(posterior)
        return split.joined(self.stated_right(split.x))

    def judged(
        self,
        posterior: FloatArray,
        answers: NDArray[Any],  # noqa: ARG002 - as of TableDiscount
        level: float,
        judge: Judge,
        made: Decision,
    ) -> tuple[float, float, float]:
        """Mean of what a judge says of the labels of some items, and its interval."""
        split = split_labels(posterior)
        if_right, if_wrong = (
            judge.expected(split.joined(np.full(len(posterior), right)), made)[0]
            for right in (1.0, 0.0)
        )
        chance = self.grid.right(_X)
        everything = np.zeros(len(posterior), np.intp)
        change = _binned(split.x, if_right - if_wrong, everything, 1)[:, 0]
        mean, weight = (chance @ change + if_wrong.sum()) / len(posterior), self.grid.weight
        variance = judge.expected(split.joined(self.stated_right(split.x)), made)[1].sum()
        variance += self._class_variance(split, if_right - if_wrong)
        noise = float(np.sqrt(variance)) / len(posterior)
        value, low, high = interval_of_mean(mean, noise, weight, level)
        if self.several and not self.known:
            misled = (1 - _misled())[:, None]
            mean = ((misled * (chance @ change) + if_wrong.sum()) / len(posterior)).ravel()
            ends = interval_of_mean(mean, noise, np.tile(weight, _SHARES), level)
            low, high = min(low, ends[1]), max(high, ends[2])
        if self.known > 1 and self.posterior is not None:
            stated = self.stated(self.posterior, self.truth)
            labels = judge.decide(self.posterior, stated)
            gap = judge.observed(self.truth, labels) - judge.expected(stated, labels)[0]
            ends = difference_interval(value, gap, self.weight, noise, level, judge.most)
            low, high = min(low, ends[1]), max(high, ends[2])
        return value, max(min(low, value), 0.0), min(max(high, value), judge.most)

    def _class_variance(self, split: Split, change: FloatArray) -> float:
        """Variance of a sum of probabilities since a differs between the labels of classes.

        `change` is what each label adds if it is right. Where all add the same, the doubt about the
        common a holds this as well; where labels of least loss add and others subtract, it cancels.
        """
        known, right = self.stated_right(self._split.x), self.stated_right(split.x)
        weight = np.bincount(self._split.label, self.weight * known * (1 - known), self.labels)
        alike = np.bincount(split.label, right * (1 - right), self.labels)
        slope = np.bincount(split.label, change * right * (1 - right), self.labels)
        apart = slope - alike * slope.sum() / max(alike.sum(), 1e-12)
        return float((apart**2 / (PRIOR.class_sd**-2 + weight)).sum())

    def sums(
        self, posterior: FloatArray, item: NDArray[Any], cls: NDArray[Any], group: NDArray[Any]
    ) -> FloatArray:
        """Sums of stated probabilities under maps that are equally likely (map, group).

        The probability that `item` is of class `cls` (by `posterior`, before the map) is counted in
        the sum `group`.
        """
        split, grid = split_labels(posterior), self.grid
        reached = np.cumsum(grid.weight)
        chosen = np.searchsorted(reached, reached[-1] * (np.arange(_MAPS) + 0.5) / _MAPS)
        right = Grid(grid.a[chosen], grid.b[chosen], grid.weight[chosen]).right(_X)
        own, rest = split.label[item] == cls, split.rest[item, cls]
        groups = int(group.max()) + 1 if len(group) else 0
        change = _binned(split.x[item], np.where(own, 1.0, -rest), group, groups)
        return np.asarray(right @ change + np.bincount(group, rest, groups))

    def slopes(
        self, posterior: FloatArray, item: NDArray[Any], cls: NDArray[Any], group: NDArray[Any]
    ) -> FloatArray:
        """Change of the sums of :meth:`sums` with a, by the label of the items (group, label)."""
        split = split_labels(posterior)
        right = self.stated_right(split.x)
        own, rest = split.label[item] == cls, split.rest[item, cls]
        change = np.where(own, 1.0, -rest) * (right * (1 - right))[item]
        cell = group.astype(np.int64) * self.labels + split.label[item]
        groups = int(group.max()) + 1 if len(group) else 0
        sums = np.bincount(cell, change, groups * self.labels)
        return np.asarray(sums, np.float64).reshape(groups, self.labels)


def _normalised(score: FloatArray) -> FloatArray:
    weight = np.exp(score - score.max())
    return np.asarray(weight / weight.sum())


def _misled() -> FloatArray:
    """Equally likely shares of items about which several sources are misled together."""
    from scipy.stats import beta

    return np.asarray(beta.ppf((np.arange(_SHARES) + 0.5) / _SHARES, *MISLED))
