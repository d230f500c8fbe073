"""Reliability of a worker in one number: the expected share of right answers.

The skill behind it is learned answer by answer
(:class:`crowdtree.learning.worker_tracker.WorkerTracker`): from gold items, whose class is known,
and from labelled items, weighted by the error of their label.
"""

from __future__ import annotations

import math

import numpy as np

from crowdtree.problem import DASH, Problem

__all__ = ["expected_right"]

LEAST_ERROR = 1e-4


def expected_right(problem: Problem, skill: float) -> float:
    """Expected share of right answers for a skill, over the definite cells of the table.

    >>> problem = Problem(["a", "b"], None, ["q"], [[0, 1]], 0.2)
    >>> round(expected_right(problem, 0.0), 3), expected_right(problem, -2.0) < 0.5
    (0.8, True)
    """
    error = np.clip(problem.worker_error[problem.outcome != DASH], LEAST_ERROR, 1 - LEAST_ERROR)
    if not len(error):
        return 0.5
    odds = (1 - error) / error * math.exp(skill)
    return float(np.mean(odds / (1 + odds)))
