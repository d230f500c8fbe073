"""Errors of the cells and skills of the workers (docs/model.md, section 9)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

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

    @property
    def error(self) -> FloatArray:
        """Error of a worker of skill 0, per cell."""
        return np.asarray(1 / (1 + np.exp(self.cell)))


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
