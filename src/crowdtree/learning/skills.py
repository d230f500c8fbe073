"""Errors of the cells and skills of the workers (docs/model.md, section 9)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from crowdtree.learning.people import People
    from crowdtree.learning.source_rates import Rates

__all__ = ["ClassFit", "SkillFit", "spread_of"]

FloatArray = NDArray[np.float64]

_SPREADS = np.geomspace(0.02, 5, 40)


@dataclass(frozen=True, eq=False)
class SkillFit:
    """Cells, skills and how sure they are.

    `cell` is ``-logit(e)`` of a worker of skill 0; `wrong` and `right` are the Beta posterior of
    ``e`` (its mean is the estimate); `skill_sd` is the standard deviation of each skill, `spread`
    that of skills in the crowd; `posterior` (item, class) takes answers as independent; `sign` is
    +1 where yes is right, -1 where no is, 0 where it is open; `prior_size` is how many items of
    known class would estimate the class shares as well; `answers` is the expected number per cell.
    """

    cell: FloatArray
    skill: FloatArray
    wrong: FloatArray
    right: FloatArray
    skill_sd: FloatArray
    spread: float
    posterior: FloatArray
    sign: NDArray[np.int8]
    prior: FloatArray
    prior_size: FloatArray
    answers: FloatArray = field(default_factory=lambda: np.zeros(0))
    worker_rates: Rates | None = None
    source_rates: Rates | None = None
    """Errors of the workers and of their sources, where there are several sources."""

    @property
    def error(self) -> FloatArray:
        """Error of a worker of skill 0, per cell."""
        return np.asarray(1 / (1 + np.exp(self.cell)))


@dataclass(frozen=True, eq=False, kw_only=True)
class ClassFit(SkillFit):
    """What was learned from yes/no questions about classes.

    `x` and `tilt` give the answers of a worker, ``P(yes) = sigmoid(x + tilt * skill)``. `wrong` and
    `right` are the Beta posterior of the crowd's error, with respect to `sign`. `people` is how
    much people differ, `trace` is the objective after each step, and `converged` is whether the
    fit with skills converged; where it did not, workers are alike and the skills 0 mean nothing.
    """

    x: FloatArray
    tilt: FloatArray
    people: People
    trace: tuple[float, ...]
    converged: bool

    @property
    def error(self) -> FloatArray:
        """Error of the crowd, per cell."""
        return np.asarray(self.wrong / (self.wrong + self.right))

    def worker_error(self, skill: float) -> FloatArray:
        """Error of a worker of some skill, per cell."""
        yes = 1 / (1 + np.exp(-self.x - self.tilt * skill))
        return np.where(self.sign > 0, 1 - yes, np.where(self.sign < 0, yes, 0.5))

    def says_yes(self, question: Any, label: Any) -> NDArray[np.bool_]:  # noqa: ARG002
        """Whether an answer is the one that rates are of (for each class, where that differs)."""
        return np.asarray(label == 1)

    def log_likelihood(
        self, question: NDArray[np.integer], skill: FloatArray, label: NDArray[np.integer]
    ) -> FloatArray:
        """Log probability of answers (one row each) given each class."""
        z = self.x[question] + self.tilt[question] * skill[:, None]
        return np.asarray(-np.logaddexp(0, np.where(label == 1, -1, 1)[:, None] * z))


def spread_of(
    alone: FloatArray, held: FloatArray, pull: FloatArray | float = 1.0
) -> tuple[float, float]:
    """Spread of the skills, and the variance of its logarithm.

    A grid is weighed by the normal likelihood of what each worker's answers alone say (known to a
    variance of 1 / `held`), their centre integrated out. One pseudo-worker half a logit off keeps
    a tiny crowd from 0.

    >>> skill = np.append(np.random.default_rng(0).normal(0, 0.7, 200), -8.0)
    >>> pull = np.append(np.ones(200), 0.03)
    >>> spread, doubt = spread_of(skill, np.full(201, 1e6), pull)
    >>> round(spread, 1), doubt < 0.01
    (0.7, True)
    """
    value = np.empty(len(_SPREADS))
    for i, spread in enumerate(_SPREADS):
        whole = spread**2 / pull + 1 / held
        weight = 1 / whole
        centre = (weight @ alone) / weight.sum()
        value[i] = -0.5 * (np.log(whole) + (alone - centre) ** 2 / whole).sum()
        value[i] -= 0.5 * np.log(weight.sum())
    value -= np.log(_SPREADS) + 0.125 / _SPREADS**2
    chance = np.exp(value - value.max())
    chance /= chance.sum()
    log = float(chance @ np.log(_SPREADS))
    return float(np.exp(log)), float(chance @ (np.log(_SPREADS) - log) ** 2)
