"""How reliable a worker is, from gold items and from the labels of the items they answered.

One function, so that the model can change in one place: a Beta posterior of the share of right
answers, whose prior is the problem's own mean error with the weight of `PRIOR_ANSWERS` answers.
"""

from __future__ import annotations

import math
from typing import NamedTuple

__all__ = ["Reliability", "reliability"]

PRIOR_ANSWERS = 8.0
MOST_SKILL = 4.0


class Reliability(NamedTuple):
    """Estimated share of right answers, and the skill that goes with it (MODEL section 9)."""

    right: float
    skill: float


def reliability(mean_error: float, right: int, judged: int) -> Reliability:
    """Estimate a worker from `right` answers among `judged` ones.

    >>> reliability(0.2, 0, 0)
    Reliability(right=0.8, skill=0.0)
    >>> reliability(0.2, 10, 20).skill < 0
    True
    """
    prior = min(max(mean_error, 0.01), 0.49)
    error = (prior * PRIOR_ANSWERS + judged - right) / (PRIOR_ANSWERS + judged)
    error = min(max(error, 1e-4), 1 - 1e-4)
    skill = math.log(prior / (1 - prior)) - math.log(error / (1 - error))
    return Reliability(1 - error, min(max(skill, -MOST_SKILL), MOST_SKILL) if judged else 0.0)
