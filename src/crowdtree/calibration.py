"""From evidence to stated probabilities: people who look at the same item err together.

A posterior multiplies the likelihood of every answer as if answers were independent given the
class. They are not: hard items, misleading photographs and look-alikes mislead everybody. With
dependence ``rho``, ``n`` answers carry the evidence of ``n / (1 + (n - 1) rho)`` independent ones,
so the likelihood of all of them is raised to the power

    scale / (1 + (n - 1) rho)

before the prior is applied (docs/model.md, section 13). ``scale`` below 1 corrects a table that is
too sure even of a single answer. And on some items everybody is misled: with probability ``floor``
the answers say nothing about the class, however many there are. The three numbers belong to one
crowd and one set of questions; they are fitted to items of known class whose answers were not used
for the table. Where the next answers come from one person who is not among those that answered, the
scale itself is uncertain: it differs between people by ``spread``, and what is stated is the
average over the people who may answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdtree.errors import CrowdtreeError
from crowdtree.stats import wilson_interval

__all__ = ["FEW", "INDEPENDENT", "Calibration"]

FloatArray = NDArray[np.float64]

_SCALES = np.exp(np.linspace(np.log(0.05), np.log(3.0), 65))
_DEPENDENCES = np.concatenate([[0.0], np.geomspace(0.002, 1.0, 48)])
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(7)
_WEIGHTS /= _WEIGHTS.sum()
_COARSE = 6  # every 6th point of both is computed; a spline interpolates the log loss between them
_FLOORS = np.array([0.0, 0.005, 0.01, 0.02, 0.04, 0.07, 0.11, 0.17, 0.25, 0.4])
_SCALE_SD = 0.5  # prior of log scale: normal around 0
_DEPENDENCE_MEAN = 0.1  # prior of the dependence: exponential
_FLOOR_MEAN = 0.03  # prior of the floor: exponential
_MOST_CELLS = 400_000  # rows x classes that the grid is evaluated on
FEW = 20
"""Items below which a fit is mostly the prior."""


@dataclass(frozen=True)
class Calibration:
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

    def __post_init__(self) -> None:
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
        return self.scale != 1 or self.dependence != 0 or self.floor != 0 or self.spread != 0

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
        return np.asarray(made)

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
            other = replace(self, scale=float(scale), spread=0.0)
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
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any] | None) -> Calibration:
        """Read what :meth:`to_dict` wrote; nothing is discounted where there is nothing.

        >>> made = Calibration(0.5, 0.1, 30, 0.02, (0.2, 0.01))
        >>> Calibration.from_dict(made.to_dict()) == made, bool(Calibration.from_dict(None))
        (True, False)
        """
        if not data:
            return cls()
        values = {name: value for name, value in data.items() if name != "draws"}  # of old files
        reached = values.get("reached")
        values["reached"] = None if reached is None else (float(reached[0]), float(reached[1]))
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
            One number per class.
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
    rows = _some_rows(log_posterior, count, truth, much)
    return _grid_posterior(_log_likelihood_grid(log_prior, *rows))


def _some_rows(
    log_posterior: FloatArray, answers: FloatArray, truth: NDArray[Any], weight: FloatArray
) -> tuple[FloatArray, FloatArray, NDArray[Any], FloatArray]:
    """Return a random part of the rows where all are too many for the grid; the weights add up."""
    if log_posterior.size <= _MOST_CELLS:
        return log_posterior, answers, truth, weight
    few = max(1, _MOST_CELLS // log_posterior.shape[1])
    rows = np.random.default_rng(0).choice(len(truth), few, replace=False)
    part = weight[rows] * (weight.sum() / weight[rows].sum())
    return log_posterior[rows], answers[rows], truth[rows], part


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
    blind = np.exp(log_prior)[truth]
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


INDEPENDENT = Calibration()
"""Answers taken as independent: nothing is discounted."""
