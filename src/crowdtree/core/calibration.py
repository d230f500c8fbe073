"""From evidence to stated probabilities: people who look at the same item err together.

Docs/model.md, section 13.3, has the three numbers of a crowd and its questions (scale, dependence,
floor), which are fitted to items of known class that the table did not use, the `spread` of the
scale between people, and the ``tail``: a second map, fitted to the few states in which the known
items would stop.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdtree.core.arrays import FloatArray
from crowdtree.core.checking import check_call
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.result_methods import HtmlShown
from crowdtree.core.stats import wilson_interval

_SCALES = np.exp(np.linspace(np.log(0.05), np.log(3.0), 65))
_DEPENDENCES = np.concatenate([[0.0], np.geomspace(0.002, 1.0, 48)])
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(7)
_WEIGHTS /= _WEIGHTS.sum()
_COARSE = 6  # every 6th point of both is computed; a spline interpolates the log loss between them
_FLOORS = np.array([0.0, 0.005, 0.01, 0.02, 0.04, 0.07, 0.11, 0.17, 0.25, 0.4])
_SCALE_SD = 0.5  # prior of log scale: normal around 0
_DEPENDENCE_MEAN = 0.1  # prior of the dependence: exponential
_FLOOR_MEAN = 0.03  # prior of the floor: exponential
_MAX_CELLS = 400_000  # rows x classes that the grid is evaluated on
_TAIL = np.append(np.geomspace(0.002, 0.5, 31), 1.0)  # errors at which a tail is fitted
_SHIFTS = np.linspace(-2.5, 2.5, 41)[:, None, None]  # of the log odds of an error of 0.1
_SLOPES = np.linspace(0.3, 1.7, 29)[:, None]
_SHIFT_SD, _SLOPE_SD = 0.7, 0.25  # normal priors of both, around 0 and 1
FEW = 20
"""Items below which a fit is mostly the prior."""

Tail = tuple[tuple[float, float], ...]
"""Pairs of an error stated by the three numbers and the error of items that stop there."""


@dataclass(frozen=True)
class Calibration(HtmlShown):
    """How far evidence is discounted before a probability is stated.

    Attributes
    ----------
    scale
        Power of the likelihood of a single answer; 1 where the table is trusted.
    dependence
        From 0 (independent answers) to 1 (all answers together count as one).
    items
        Items of known class behind these numbers; 0 where they were assumed.
    floor
        Probability that the answers about an item say nothing about its class.
    reached
        Error that those items are left with after all their answers, as the middle and half the
        width of its 95 % interval: counted, so that it does not rest on the three numbers.
    spread
        Standard deviation of the logarithm of the scale between the people who may answer.
    tail
        Error of items that stop, by the error that the numbers above state; both rise. Empty where
        no stop was seen.
    table
        Key of the table whose evidence is discounted (:func:`crowdtree.policies.table_key`); a
        policy refuses a calibration of another table. None where it was assumed.

    Examples
    --------
    >>> Calibration(dependence=0.5).power([1, 3]).tolist()
    [1.0, 0.5]
    >>> even = np.log([0.5, 0.5])
    >>> sure = np.log([0.9, 0.1])
    >>> np.exp(Calibration(dependence=0.5).discounted(even, sure, 3)).round(3).tolist()
    [0.75, 0.25]
    """

    scale: float = 1.0
    dependence: float = 0.0
    items: int = 0
    floor: float = 0.0
    reached: tuple[float, float] | None = None
    spread: float = 0.0
    tail: Tail = field(default=(), repr=False)
    table: str | None = None

    def __post_init__(self) -> None:
        check_call(Calibration, vars(self))
        if not 0 < self.scale <= 100:
            raise CrowdtreeError(f"scale: expected a number above 0, got {self.scale}")
        if not 0 <= self.dependence <= 1:
            raise CrowdtreeError(
                f"dependence: expected a number from 0 to 1, got {self.dependence}"
            )
        if not 0 <= self.floor < 1:
            raise CrowdtreeError(f"floor: expected a number from 0 to below 1, got {self.floor}")
        if not self.spread >= 0:
            raise CrowdtreeError(f"spread: expected 0 or more, got {self.spread}")

    def __bool__(self) -> bool:
        """Whether it changes anything."""
        numbers = self.scale - 1, self.dependence, self.floor, self.spread
        return any(numbers) or bool(self.tail)

    def power(self, answers: ArrayLike) -> FloatArray:
        """Power of the likelihood of so many answers."""
        extra = np.maximum(np.asarray(answers, dtype=np.float64) - 1, 0)
        return np.asarray(self.scale / (1 + extra * self.dependence))

    def discounted(
        self, log_prior: FloatArray, log_posterior: FloatArray, answers: ArrayLike
    ) -> FloatArray:
        """Log posterior to state, from the one that takes the answers as independent.

        Classes are on the last axis; `answers` has one number per item.
        """
        if not self:
            return log_posterior
        evidence = self.power(answers)[..., None] * (log_posterior - log_prior)
        made: FloatArray | None = None
        for weight, factor in self._people():
            score = log_prior + factor * evidence
            score = score - np.logaddexp.reduce(score, axis=-1, keepdims=True) + np.log(weight)
            made = score if made is None else np.logaddexp(made, score)
        if self.floor:
            made = np.logaddexp(np.log1p(-self.floor) + made, np.log(self.floor) + log_prior)
        return self._with_tail(np.asarray(made))

    def _with_tail(self, log_posterior: FloatArray) -> FloatArray:
        """Correct the probability of the likeliest class, which stays it; scale the others."""
        if not self.tail:
            return log_posterior
        stated, counted = np.array(self.tail).T
        top = log_posterior.max(axis=-1, keepdims=True)
        error = np.clip(-np.expm1(top), 1e-300, 1 - 1e-12)
        after = np.interp(np.log(error), np.log(stated), counted)
        rivals = np.where(log_posterior < top, log_posterior, -np.inf)
        second = np.exp(rivals.max(axis=-1, keepdims=True)) / error
        after = np.minimum(after, (1 - 1e-9) / (1 + second))  # at most as likely as the first
        factor = np.log(np.maximum(after, 1e-300)) - np.log(error)
        # classes that are as likely as the first stay so
        tied = (log_posterior == top).sum(axis=-1, keepdims=True) > 1
        return np.where(tied, log_posterior, np.where(
            log_posterior < top, log_posterior + factor, np.log1p(-after)))  # fmt: skip

    def before_tail(self, error: float) -> float:
        """Largest error by the three numbers at which no more than this error is stated.

        >>> Calibration(tail=((0.01, 0.04), (0.1, 0.1), (1.0, 1.0))).before_tail(0.04)
        0.01
        >>> Calibration(tail=((0.01, 0.04), (0.1, 0.1), (1.0, 1.0))).before_tail(0.03)
        0.0
        """
        if not self.tail:
            return error
        stated, counted = np.array(self.tail).T
        if error < counted[0]:
            return 0.0
        last = int(np.searchsorted(counted, error, side="right"))
        if last == len(counted):
            return float(stated[-1])
        share = (error - counted[last - 1]) / (counted[last] - counted[last - 1])
        return float(stated[last - 1] * (stated[last] / stated[last - 1]) ** share)

    def _people(self) -> list[tuple[float, float]]:
        """Weights of the people who may answer, and their scales relative to the middle one."""
        if not self.spread:
            return [(1.0, 1.0)]
        factor = np.exp(self.spread * _NODES)
        return list(zip(_WEIGHTS.tolist(), factor.tolist(), strict=True))

    def lead_for(self, probability: FloatArray) -> FloatArray:
        """Log odds of one class against another at which a probability is stated, floor aside.

        >>> Calibration().lead_for(np.array([0.5, 0.9])).round(2).tolist()
        [0.0, 2.2]
        >>> Calibration(spread=0.5).lead_for(np.array([0.5, 0.9])).round(2).tolist()
        [0.0, 2.42]
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            plain = np.log(probability) - np.log1p(-probability)
            plain = np.where(probability < 1, plain, np.inf)
        if not self.spread:
            return plain
        lead = np.linspace(-60, 60, 4001)
        stated = sum(w * (1 + np.tanh(factor * lead / 2)) / 2 for w, factor in self._people())
        return np.where(np.isfinite(plain), np.interp(probability, stated, lead), plain)

    def scale_of(
        self,
        log_prior: FloatArray,
        log_posterior: FloatArray,
        answers: ArrayLike,
        truth: NDArray[Any],
        weight: FloatArray,
        person: NDArray[np.integer],
    ) -> tuple[FloatArray, FloatArray]:
        """Logarithm of the scale of each person alone, and its variance, the rest given.

        The arguments are those of :meth:`fit`, and the number of the person behind each row.
        """
        row, places = np.arange(len(truth)), _places(len(_SCALES))
        value = np.empty((len(places), int(person.max()) + 1))
        for i, scale in enumerate(_SCALES[places]):
            other = replace(self, scale=float(scale), spread=0.0, tail=())
            found = other.discounted(log_prior, log_posterior, answers)[row, truth]
            value[i] = np.bincount(person, weight * found, value.shape[1])
        chance = np.exp(value - value.max(axis=0))
        chance /= chance.sum(axis=0)
        log_scale = np.log(_SCALES[places])
        mean = log_scale @ chance
        return mean, np.maximum(log_scale**2 @ chance - mean**2, 1e-4)

    def with_reached(
        self,
        log_prior: FloatArray,
        log_posterior: FloatArray,
        answers: ArrayLike,
        truth: NDArray[Any],
        weight: FloatArray | None = None,
    ) -> Calibration:
        """Note the error that is left when these items have all their answers."""
        stated = self.discounted(log_prior, log_posterior, answers)
        wrong = np.argmax(stated, axis=-1) != truth
        much = np.ones(len(truth)) if weight is None else weight
        low, high = wilson_interval(float(much @ wrong), float(much.sum()))
        return replace(self, reached=((low + high) / 2, (high - low) / 2))

    def to_dict(self) -> dict[str, Any]:
        """Write as plain JSON."""
        return {
            "scale": self.scale,
            "dependence": self.dependence,
            "items": self.items,
            "floor": self.floor,
            "reached": None if self.reached is None else list(self.reached),
            "spread": self.spread,
            **({"tail": [list(point) for point in self.tail]} if self.tail else {}),
            **({"table": self.table} if self.table else {}),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any] | None) -> Calibration:
        """Read what :meth:`to_dict` wrote; nothing is discounted where there is nothing.

        >>> made = Calibration(0.5, 0.1, 30, 0.02, (0.2, 0.01))
        >>> Calibration.from_dict(made.to_dict()) == made, bool(Calibration.from_dict(None))
        (True, False)
        """
        check_call(Calibration.from_dict, {"data": data})
        if not data:
            return cls()
        values = dict(data)
        reached = values.get("reached")
        values["reached"] = None if reached is None else (float(reached[0]), float(reached[1]))
        values["tail"] = tuple((float(x), float(y)) for x, y in values.get("tail", ()))
        return cls(**values)

    @classmethod
    def fit(
        cls,
        log_prior: FloatArray,
        log_posterior: FloatArray,
        answers: ArrayLike,
        truth: NDArray[Any],
        weight: FloatArray | None = None,
    ) -> Calibration:
        """Fit the three numbers to items of known class.

        The mean of their posterior over a grid, under the log loss. The prior holds the scale
        near 1, the dependence and the floor near 0, so that a few items change little.

        Parameters
        ----------
        log_prior
            One number per class, or one row per row of `log_posterior`.
        log_posterior
            One row per item, answers taken as independent.
        answers
            Answers behind each row.
        truth
            Class of each item, counted from 0.
        weight
            Weight of each row, where one item has several rows; 1 otherwise.
        """
        if not len(truth):
            return cls()
        chance = _posterior_of(log_prior, log_posterior, answers, truth, weight)
        floor = float(chance.sum(axis=(1, 2)) @ _FLOORS)
        scale = float(np.exp(chance.sum(axis=(0, 2)) @ np.log(_SCALES)))
        dependence = float(chance.sum(axis=(0, 1)) @ _DEPENDENCES)
        items = len(truth) if weight is None else round(float(weight.sum()))
        return cls(scale, dependence, items, floor)

    @classmethod
    def draws(
        cls,
        log_prior: FloatArray,
        log_posterior: FloatArray,
        answers: ArrayLike,
        truth: NDArray[Any],
        count: int,
    ) -> list[Calibration]:
        """Equally likely calibrations given items of known class; from the prior without any.

        The arguments are those of :meth:`fit`, and the number of draws.
        """
        chance = _posterior_of(log_prior, log_posterior, answers, truth, None)
        places = np.random.default_rng(1).choice(chance.size, count, p=chance.ravel())
        floor, scale, dependence = np.unravel_index(places, chance.shape)
        columns = _SCALES[scale], _DEPENDENCES[dependence], _FLOORS[floor]
        drawn = (column.tolist() for column in columns)
        return [cls(s, d, len(truth), f) for s, d, f in zip(*drawn, strict=True)]


def _posterior_of(
    log_prior: FloatArray,
    log_posterior: FloatArray,
    answers: ArrayLike,
    truth: NDArray[Any],
    weight: FloatArray | None,
) -> FloatArray:
    """Posterior probability of every cell of the grid, given items of known class if any."""
    if not len(truth):
        return _grid_posterior(np.zeros((len(_FLOORS), len(_SCALES), len(_DEPENDENCES))))
    count = np.asarray(answers, dtype=np.float64)
    much = np.ones(len(truth)) if weight is None else weight
    rows, part = _some_rows(log_posterior, truth, much)
    start = log_prior if log_prior.ndim == 1 else log_prior[rows]
    found = _log_likelihood_grid(start, log_posterior[rows], count[rows], truth[rows], part)
    return _grid_posterior(found)


def _some_rows(
    log_posterior: FloatArray, truth: NDArray[Any], weight: FloatArray
) -> tuple[Any, FloatArray]:
    """Choose a random part of the rows where all are too many for the grid; the weights add up."""
    if log_posterior.size <= _MAX_CELLS:
        return slice(None), weight
    few = max(1, _MAX_CELLS // log_posterior.shape[1])
    rows = np.random.default_rng(0).choice(len(truth), few, replace=False)
    part = weight[rows] * (weight.sum() / weight[rows].sum())
    return rows, part


def _log_likelihood_grid(
    log_prior: FloatArray,
    log_posterior: FloatArray,
    answers: FloatArray,
    truth: NDArray[Any],
    weight: FloatArray,
) -> FloatArray:
    """Log likelihood of the known classes on the grid (floor, scale, dependence)."""
    evidence, extra = log_posterior - log_prior, np.maximum(answers - 1, 0)
    scales, dependences = _places(len(_SCALES)), _places(len(_DEPENDENCES))
    coarse = np.empty((len(_FLOORS), len(scales), len(dependences)))
    row = np.arange(len(truth))
    blind = np.exp(np.broadcast_to(log_prior, log_posterior.shape)[row, truth])
    for j, dependence in enumerate(_DEPENDENCES[dependences]):
        for i, scale in enumerate(_SCALES[scales]):
            score = log_prior + (scale / (1 + extra * dependence))[:, None] * evidence
            top = score.max(axis=1)
            whole = top + np.log(np.exp(score - top[:, None]).sum(axis=1))
            sure = score[row, truth] - whole  # without a floor nothing underflows
            mixed = np.exp(sure)[:, None] * (1 - _FLOORS) + blind[:, None] * _FLOORS
            coarse[1:, i, j] = weight @ np.log(mixed[:, 1:])
            coarse[0, i, j] = float(weight @ sure)
    return np.stack([_between(scales, dependences, part) for part in coarse])


def _grid_posterior(log_likelihood: FloatArray) -> FloatArray:
    """Posterior probability of every cell of the grid (floor, scale, dependence)."""
    value = log_likelihood - 0.5 * (np.log(_SCALES)[:, None] / _SCALE_SD) ** 2
    value -= _DEPENDENCES / _DEPENDENCE_MEAN
    value -= _FLOORS[:, None, None] / _FLOOR_MEAN
    chance = np.exp(value - value.max()) * np.gradient(_DEPENDENCES)
    chance *= np.gradient(_FLOORS)[:, None, None]
    return np.asarray(chance / chance.sum())


def _places(count: int) -> NDArray[np.intp]:
    return np.unique(np.append(np.arange(0, count, _COARSE), count - 1))


def _between(
    scales: NDArray[np.intp], dependences: NDArray[np.intp], coarse: FloatArray
) -> FloatArray:
    from scipy.interpolate import RectBivariateSpline

    spline = RectBivariateSpline(scales, dependences, coarse)
    return np.asarray(spline(np.arange(len(_SCALES)), np.arange(len(_DEPENDENCES))))


def fit_tail(
    error: FloatArray,
    wrong: NDArray[np.bool_],
    item: NDArray[np.integer],
    weight: FloatArray | None = None,
    never_below: bool = False,
) -> Tail:
    """Fit the error of items that stop to the states that items of known class passed through.

    A policy with the threshold t stops in the first state whose stated error is at most t: a state
    with a smaller error than all before it, for every t between the two smallest so far. Those
    states, each weighing the logarithm of that range, give a line in log odds (docs/model.md,
    section 13.3); where more of the items that stop at t were wrong, ``(errors + 0.5) / (stopped +
    1)`` is stated. `error`, `wrong` and `item` are those of each state, in the order of the answers
    within an item; `weight` is that of each item. `never_below` corrects upwards only, where the
    next items are another person's.

    >>> many = np.arange(400)
    >>> tail = fit_tail(np.full(400, 0.01), many % 2 == 0, many)  # half are wrong, however sure
    >>> bool(Calibration(tail=tail).before_tail(0.3) == 0)
    True
    """
    from scipy.special import expit, logit

    grid = _TAIL[:-1]
    now, before, row = _record_lows(error, item, grid[0], grid[-1])
    each = np.ones(len(row)) if weight is None else weight[item[row]]
    bad = each * wrong[row]
    share = np.log(before / now) / np.log(grid[-1] / grid[0])
    low, high = np.searchsorted(grid, now), np.searchsorted(grid, before)
    kept = np.bincount(low, each * share, len(grid))
    lost = np.bincount(low, bad * share, len(grid))
    odds = logit(0.1) + _SHIFTS + _SLOPES * (logit(grid) - logit(0.1))
    line = expit(odds)
    value = (lost * np.log(line) + (kept - lost) * np.log1p(-line)).sum(axis=2)
    value -= 0.5 * ((_SHIFTS / _SHIFT_SD) ** 2 + ((_SLOPES - 1) / _SLOPE_SD) ** 2)[..., 0]
    chance = np.exp(value - value.max())
    made = np.tensordot(chance / chance.sum(), line, 2)
    stopped, errors = (
        np.cumsum(np.bincount(low, w, len(grid)) - np.bincount(high, w, len(grid) + 1)[:-1])
        for w in (each, bad)
    )
    counted = (errors + 0.5) / (stopped + 1)
    counted[-1] = counted[-2]  # at the last threshold every item has stopped
    made = np.maximum(made, np.minimum.accumulate(counted[::-1])[::-1])
    if never_below:
        made = np.maximum(made, grid)
    return tuple(zip(_TAIL.tolist(), [*np.minimum(made, 1).tolist(), 1.0], strict=True))


def _record_lows(
    error: FloatArray, item: NDArray[np.integer], least: float, most: float
) -> tuple[FloatArray, FloatArray, NDArray[np.intp]]:
    """Errors smaller than all before them of their item, those before, and their rows."""
    order = np.argsort(item, kind="stable")
    _, start, count = np.unique(item[order], return_index=True, return_counts=True)
    at = np.arange(len(item)) - np.repeat(start, count), np.repeat(np.arange(len(start)), count)
    lowest = np.full((int(count.max(initial=0)) + 1, len(start)), most)
    lowest[at[0] + 1, at[1]] = np.clip(error[order], least, most)
    lowest = np.minimum.accumulate(lowest, axis=0)
    now, before = lowest[at[0] + 1, at[1]], lowest[at[0], at[1]]
    low = np.flatnonzero(now < before)
    return now[low], before[low], order[low]


INDEPENDENT = Calibration()
"""Answers taken as independent: nothing is discounted."""
