"""How reliable a worker is, in one number for people: the expected share of right answers.

The skill behind it is learnt answer by answer (:class:`crowdtree.learn.WorkerBook`): from gold
items, whose class is known, and from items that have their label, weighed by its error.
"""

from __future__ import annotations

import math

import numpy as np

from crowdtree.problem import DASH, Problem

__all__ = ["expected_right"]

LEAST = 1e-4


def expected_right(problem: Problem, skill: float) -> float:
    """Share of right answers of a worker of some skill, over the table's definite cells.

    >>> problem = Problem(["a", "b"], None, ["q"], [[0, 1]], 0.2)
    >>> round(expected_right(problem, 0.0), 3), expected_right(problem, -2.0) < 0.5
    (0.8, True)
    """
    error = np.clip(problem.worker_error[problem.outcome != DASH], LEAST, 1 - LEAST)
    if not len(error):
        return 0.5
    odds = (1 - error) / error * math.exp(skill)
    return float(np.mean(odds / (1 + odds)))
