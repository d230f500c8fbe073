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
    ``e`` (its mean is the estimate); `skill_sd` is the standard deviation. `strength` and
    `question_error` are the Beta prior, `spread` the standard deviation of skills in the crowd;
    `trust` is the probability that a cell's `sign` is right; `prior_size` is how many items of
    known class would tell the class shares as well; `peak` are the cells at the joint peak with
    the skills, where the objective was climbed to.
    """

    cell: FloatArray
    skill: FloatArray
    wrong: FloatArray
    right: FloatArray
    skill_sd: FloatArray
    question_error: FloatArray
    strength: float
    spread: float
    posterior: FloatArray
    sign: NDArray[np.int8]
    trust: FloatArray
    prior: FloatArray
    prior_size: FloatArray
    trace: tuple[float, ...] = ()
    answers: FloatArray = field(default_factory=lambda: np.zeros(0))
    peak: FloatArray = field(default_factory=lambda: np.zeros(0))

    @property
    def error(self) -> FloatArray:
        """Error of a worker of skill 0, per cell."""
        return np.asarray(1 / (1 + np.exp(self.cell)))
