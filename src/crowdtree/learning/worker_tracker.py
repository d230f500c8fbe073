"""Skills of workers during a campaign, updated one answer at a time.

Plain numbers, no compiled code: a server updates them at every answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crowdtree.core.arrays import FloatArray
from crowdtree.core.problem import DASH, Problem

SPREAD = 0.7  # standard deviation of skills in logits when nothing is known about the crowd
_LONGEST_STEP = 1.0  # logits a single answer may move a skill


@dataclass
class WorkerEntry:
    """One worker: skill, and its precision."""

    skill: float
    precision: float


class WorkerTracker:
    """Skills of workers, relative to the errors of a table.

    ``logit P(worker errs) = logit(e[q, c]) - skill``: each answer moves the skill by a Newton step
    of the expected log likelihood over the classes the item may have.

    Examples
    --------
    >>> problem = Problem(["a", "b"], None, ["q"], [[0, 1]], 0.2)
    >>> tracker = WorkerTracker(problem)
    >>> for _ in range(20):
    ...     tracker.update(["ann"], [0], [1], np.array([[0.0, 1.0]]))
    >>> bool(tracker.error("ann")[0, 1] < 0.1 < tracker.error("unknown")[0, 1])
    True
    >>> tracker.resume("ben", skill=1.0, precision=4.0).skill
    1.0
    """

    def __init__(self, problem: Problem) -> None:
        error = np.clip(problem.worker_error, 1e-4, 1 - 1e-4)
        self._cell = np.log1p(-error) - np.log(error)
        self._right, self._definite = problem.right, problem.outcome != DASH
        self._entries: dict[str, WorkerEntry] = {}

    def entry(self, worker: Any) -> WorkerEntry:
        """Skill of a worker; that of a typical one if unknown."""
        return self._entries.get(str(worker)) or WorkerEntry(0.0, SPREAD**-2)

    def resume(self, worker: Any, skill: float, precision: float) -> WorkerEntry:
        """Continue from the stored skill of a worker; a precision of 0 means nothing is known."""
        entry = WorkerEntry(skill, precision) if precision > 0 else self.entry(None)
        self._entries[str(worker)] = entry
        return entry

    def error(self, worker: Any) -> FloatArray:
        """Error of a worker (question, class)."""
        error = 1 / (1 + np.exp(self._cell + self.entry(worker).skill))
        return np.where(self._definite, error, 0.5)

    def update(
        self,
        workers: Sequence[Any],
        question: Sequence[int],
        answer: Sequence[int],
        posterior: FloatArray,
    ) -> None:
        """Update several different workers, each by one answer; `posterior` has a row for each.

        The posterior of an item should not contain this answer: a worker is judged by the others.
        With a posterior that is sure (gold, a finished item) that makes no difference.
        """
        entries = [self._entries.setdefault(str(name), self.entry(name)) for name in workers]
        skill = np.array([entry.skill for entry in entries])[:, None]
        places = np.asarray(question)
        chance = 1 / (1 + np.exp(-(self._cell[places] + skill)))
        right, definite = self._right[np.asarray(answer, np.intp), places], self._definite[places]
        # what the answer itself says about the class, through this worker's own error
        like = np.where(definite, np.where(right, chance, 1 - chance), 0.5)
        after = posterior * like
        total = after.sum(axis=1, keepdims=True)
        after = np.where(total > 0, after / np.where(total > 0, total, 1), posterior)
        counted = after * definite
        gap = counted * (right - chance)
        slope, square = gap.sum(axis=1), (gap * (right - chance)).sum(axis=1)
        known = (counted * chance * (1 - chance)).sum(axis=1) - (square - slope**2)
        for entry, more, move in zip(entries, known.tolist(), slope.tolist(), strict=True):
            entry.precision += max(more, 0.0)
            step = move / entry.precision
            entry.skill += max(-_LONGEST_STEP, min(_LONGEST_STEP, step))
