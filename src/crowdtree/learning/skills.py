"""Errors of the cells and skills of the workers (docs/model.md, section 9)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

__all__ = ["SkillFit"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SkillFit:
    """Cells, skills and how sure they are.

    `cell` is ``-logit(e)`` of a worker of skill 0; `wrong` and `right` are the Beta posterior of
    ``e`` (its mean is the estimate); `skill_sd` is the standard deviation of each skill, `spread`
    that of skills in the crowd; `posterior` (item, class) takes answers as independent; `sign` is
    +1 where yes is right, -1 where no is, 0 where it is open; `prior_size` is how many items of
    known class would tell the class shares as well; `answers` is the expected number per cell.
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

    @property
    def error(self) -> FloatArray:
        """Error of a worker of skill 0, per cell."""
        return np.asarray(1 / (1 + np.exp(self.cell)))
