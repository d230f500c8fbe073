"""Reliability of a worker in one number, and how far it counts when answers are weighed.

The skill behind it is learned answer by answer
(:class:`crowdtree.learning.worker_tracker.WorkerTracker`): from gold items, whose class is known,
and from labelled items, weighted by the error of their label.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.problem import DASH, Problem
from crowdtree.learning.worker_tracker import SPREAD

LEAST_ERROR = 1e-4


def expected_right(problem: Problem, skill: float) -> float:
    """Expected share of right answers for a skill, over the definite cells of the table.

    >>> problem = Problem(["a", "b"], None, ["q"], [[0, 1]], 0.2)
    >>> round(expected_right(problem, 0.0), 3), expected_right(problem, -2.0) < 0.5
    (0.8, True)
    """
    log_odds = _log_odds(problem)
    if not len(log_odds):
        return 0.5
    return float(np.mean(1 / (1 + np.exp(-log_odds - skill))))


def level_of(problem: Problem) -> float:
    """Mean log odds of a right answer, over the definite cells of the table.

    >>> round(level_of(Problem(["a", "b"], None, ["q"], [[0, 1]], 0.2)), 2)
    1.39
    """
    log_odds = _log_odds(problem)
    return float(np.mean(log_odds)) if len(log_odds) else 0.0


def _log_odds(problem: Problem) -> NDArray[np.float64]:
    error = np.clip(problem.worker_error[problem.outcome != DASH], LEAST_ERROR, 1 - LEAST_ERROR)
    return np.asarray(np.log((1 - error) / error))


class Level(NamedTuple):
    """A revision, the line of the log after which it was in force, and the level of its table."""

    revision: int
    after: int
    level: float


def skill_variance(skills: Sequence[float], precisions: Sequence[float]) -> float:
    """Estimate how much skills differ, beyond what so few answers make them seem to.

    By moments, as for the spread of effects between studies (DerSimonian and Laird 1986). Skills
    and precisions are those of :class:`crowdtree.learning.worker_tracker.WorkerTracker`; the prior
    is taken out of them.

    >>> skill_variance([0.3, -0.3, 0.2, -0.2], [6.0, 6.0, 6.0, 6.0])
    0.0
    >>> round(skill_variance([1.5, -1.5, 1.0, -1.0], [50.0, 50.0, 50.0, 50.0]), 2)
    2.33
    """
    told = np.asarray(precisions, dtype=np.float64) - SPREAD**-2
    known = told > 0
    told = told[known]
    if len(told) < 2:
        return 0.0
    alone = np.asarray(skills)[known] * (told + SPREAD**-2) / told
    mean = (told @ alone) / told.sum()
    excess = told @ (alone - mean) ** 2 - (len(told) - 1)
    return max(0.0, float(excess / (told.sum() - told @ told / told.sum())))


def used_skill(skill: float, precision: float, variance: float) -> float:
    """Skill to weigh answers with: shrunk as much as people are alike.

    What looks like skill is mostly chance where few answers were judged, and labels that lean on it
    state errors that are too small.

    >>> used_skill(0.5, 6.0, variance=0.0), round(used_skill(0.5, 600.0, variance=0.5), 2)
    (0.0, 0.5)
    """
    told = precision - SPREAD**-2
    if told <= 0 or variance <= 0:
        return 0.0
    return skill * precision / (told + 1 / variance)


def outcome_counts(
    problem: Problem, question: int, value: int, cls: int, gold: bool
) -> dict[str, int]:
    """What an answer adds to the counts of a worker, given the class of the item.

    >>> problem = Problem(["a", "b"], None, ["q"], [[0, 1]], 0.2)
    >>> outcome_counts(problem, 0, 1, 1, gold=True), outcome_counts(problem, 0, 1, 0, gold=False)
    ({'gold_asked': 1, 'gold_right': 1}, {'judged': 1, 'agreed': 0})
    """
    truth = int(problem.outcome[question, cls])
    if truth == DASH:
        return {}
    asked, right = ("gold_asked", "gold_right") if gold else ("judged", "agreed")
    return {asked: 1, right: int(value == truth)}
