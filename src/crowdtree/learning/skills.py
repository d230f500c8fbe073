"""Errors of the cells and skills of the workers (docs/model.md, section 9)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.arrays import BoolArray, FloatArray
from crowdtree.learning.within import TINY, shared, totals

if TYPE_CHECKING:
    from crowdtree.learning.people import People
    from crowdtree.learning.source_rates import Rates


SURE = 1 - 1e-12
"""Probability of a class that counts as known."""

_SPREADS = np.geomspace(0.02, 5, 40)


@dataclass(frozen=True, eq=False)
class SkillFit:
    """Cells, skills and how sure they are.

    `cell` is ``-logit(e)`` of a worker of skill 0; `wrong` and `right` are the Beta posterior of
    ``e`` (its mean is the estimate); `skill_sd` is the standard deviation of each skill, `spread`
    that of skills in the crowd; `posterior` (item, class) takes answers as independent;
    `prior_size` is how many items of known class would estimate the class shares as well; `answers`
    is the expected number per cell.
    """

    cell: FloatArray
    skill: FloatArray
    wrong: FloatArray
    right: FloatArray
    skill_sd: FloatArray
    spread: float
    posterior: FloatArray
    prior: FloatArray
    prior_size: FloatArray
    answers: FloatArray = field(default_factory=lambda: np.zeros(0))
    worker_rates: Rates | None = None
    source_rates: Rates | None = None
    """Errors of the workers and of their sources, where there are several sources."""
    right_answer: BoolArray = field(default_factory=lambda: np.zeros((0, 0, 0), bool))
    """Whether an answer is right (answer, question, class); none where the cell is open."""

    @property
    def error(self) -> FloatArray:
        """Error of a worker of skill 0, per cell."""
        return np.asarray(1 / (1 + np.exp(self.cell)))

    @property
    def definite(self) -> BoolArray:
        """Whether a cell has right and wrong answers."""
        return np.asarray(self.right_answer.any(axis=0))


@dataclass(frozen=True, eq=False, kw_only=True)
class ClassFit(SkillFit):
    """What was learned from questions about classes, with any number of answers.

    A worker gives a right answer with the probability ``sigmoid(cell + tilt * skill)``. `wrong` and
    `right` are the Beta posterior of the crowd's error. Each (answer, question, class): `within`,
    the shares among the right, wrong or (in
    an open cell) all answers, `within_size`, how many answers would tell a share as well, and
    `log_none`, the log probability that nobody gave an answer about an item of the class. `people`
    is how much people differ; where the fit with skills did not converge, workers are alike and
    skills mean nothing.
    """

    tilt: FloatArray
    within: FloatArray
    within_size: FloatArray
    log_none: FloatArray
    people: People
    trace: tuple[float, ...]
    converged: bool

    @property
    def error(self) -> FloatArray:
        """Error of the crowd, per cell."""
        return np.asarray(self.wrong / (self.wrong + self.right))

    @property
    def table(self) -> FloatArray:
        """P(answer | class) of the crowd (answer, question, class)."""
        return self.at_error(self.error)

    @property
    def lean(self) -> FloatArray:
        """Whether people who give rated answers more often are right more often (1) or not (-1)."""
        rated = self.right_answer[1] if len(self.right_answer) == 2 else self.definite
        return np.where(self.definite, np.where(rated, 1.0, -1.0), 0.0)

    def worker_error(self, skill: float) -> FloatArray:
        """Error of a worker of some skill, per cell."""
        error = 1 / (1 + np.exp(self.cell + self.tilt * skill))
        return np.where(self.definite, error, 0.5)

    def at_error(self, error: FloatArray, rng: np.random.Generator | None = None) -> FloatArray:
        """P(answer | class) at some error of each cell; with a generator, of drawn shares."""
        within = self.within
        if rng is not None:
            drawn = rng.gamma(np.maximum(within * self.within_size, 1e-9)) * (within > 0)
            some = totals(drawn, self.right_answer) > 0
            within = np.where(some, shared(drawn, self.right_answer), within)
        return np.asarray(self._group(error) * within)

    def _group(self, error: FloatArray) -> FloatArray:
        """Probability of the group of each answer, the right or the wrong ones."""
        group = np.where(self.right_answer, 1 - error, error)
        return np.where(self.definite, group, 1.0)

    @property
    def table_counts(self) -> tuple[FloatArray, FloatArray]:
        """Beta posterior of each entry of the table, by its mean and variance."""
        group, error = self._group(self.error), self.error
        wide = np.where(self.definite, error * (1 - error) / (self.wrong + self.right + 1), 0.0)
        own = self.within * (1 - self.within) / (self.within_size + 1)
        variance = np.maximum(wide * own + self.within**2 * wide + group**2 * own, 1e-12)
        mean = np.clip(group * self.within, 1e-9, 1 - 1e-9)
        size = np.maximum(mean * (1 - mean) / variance - 1, 1e-2)
        return mean * size, (1 - mean) * size

    def table_range(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Credible interval of each entry of the table, from 0 where nobody may give the answer.

        A Beta has no mass at 0. Where it may be, with more than the tail of the interval, that all
        who gave an answer did so about items of other classes, the answer may not occur at all.
        """
        from scipy.stats import beta

        tail, exists = (1 - level) / 2, self.within > 0
        given, other = self.table_counts
        low, high = (np.where(exists, beta.ppf(q, given, other), 0.0) for q in (tail, 1 - tail))
        return np.where(self.log_none > np.log(tail), 0.0, low), high

    def count(self, question: int, label: int, mass: FloatArray) -> None:
        """Add an answer with some mass on each class to the shares within its groups."""
        moved = np.minimum(np.abs(mass), SURE)
        self.log_none[label, question] += np.sign(mass) * np.log1p(-moved)
        right, within = self.right_answer[:, question], self.within[:, question]
        size = self.within_size[:, question]
        group = (right == right[label]) & np.asarray(within.any(axis=1))[:, None]
        answers = within * size
        answers[label] += mass
        answers = np.where(group, np.maximum(answers, 1e-6), 0.0)
        whole = answers.sum(axis=0)
        self.within[:, question] = np.where(group, answers / whole, within)
        self.within_size[:, question] = np.where(group, np.maximum(size + mass, 1e-3), size)

    def log_likelihood(
        self, question: NDArray[np.integer], skill: FloatArray, label: NDArray[np.integer]
    ) -> FloatArray:
        """Log probability of answers (one row each) given each class."""
        z = self.cell[question] + self.tilt[question] * skill[:, None]
        side = np.where(self.right_answer[label, question], 1, -1)
        chance = np.where(self.definite[question], -np.logaddexp(0, -side * z), 0.0)
        return np.asarray(chance + np.log(np.maximum(self.within[label, question], TINY)))


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
