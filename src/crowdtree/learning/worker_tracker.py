"""Reliability of workers during a live run, updated one answer at a time.

Plain numbers, no compiled code: a server updates it at every answer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdtree.errors import CrowdtreeError
from crowdtree.problem import DASH, Problem
from crowdtree.stats import Z95

if TYPE_CHECKING:
    from crowdtree.learning.model import Learned

__all__ = ["WorkerEntry", "WorkerTracker"]

FloatArray = NDArray[np.float64]
SPREAD = 0.7  # standard deviation of skills in logits when nothing is known about the crowd
_LONGEST_STEP = 1.0  # logits a single answer may move a skill


@dataclass
class WorkerEntry:
    """One worker: skill, its precision, and what the answers were."""

    skill: float
    precision: float
    answers: int = 0
    yes: int = 0
    right: float = 0.0


class WorkerTracker:
    """Reliability of workers during a campaign.

    ``logit P(worker errs) = logit(e[q, c]) - skill``: each answer moves the skill by a Newton step
    of the expected log likelihood over the classes the item may have.

    Parameters
    ----------
    problem
        Questions, outcomes and the errors of a typical worker.
    spread
        Standard deviation of the skills in the crowd, in logits.

    Examples
    --------
    >>> problem = Problem(["a", "b"], None, ["q"], [[0, 1]], 0.2)
    >>> tracker = WorkerTracker(problem)
    >>> for _ in range(20):
    ...     tracker.update("ann", "q", 1, [0.0, 1.0])
    >>> tracker.error("ann", "q", "b") < 0.1 < tracker.error("unknown", "q", "b")
    True
    >>> tracker.interval("ann")[0] < tracker.entry("ann").skill < tracker.interval("ann")[1]
    True
    """

    def __init__(self, problem: Problem, spread: float = SPREAD) -> None:
        if not spread > 0:
            raise CrowdtreeError(f"spread: expected a positive number, got {spread!r}")
        self.problem = problem
        self.spread = float(spread)
        error = np.clip(problem.worker_error, 1e-4, 1 - 1e-4)
        self._cell = np.log1p(-error) - np.log(error)
        self._sign = np.where(problem.outcome == DASH, 0, 2 * problem.outcome.astype(int) - 1)
        self._question = {name: i for i, name in enumerate(problem.questions)}
        self._class = {name: i for i, name in enumerate(problem.classes)}
        self._entries: dict[str, WorkerEntry] = {}

    @classmethod
    def from_learned(cls, learned: Learned) -> WorkerTracker:
        """Start from what was learned: skills and their precision carry over."""
        tracker = cls(learned.problem, learned.fit.spread or SPREAD)
        if learned.kind == "classes":
            tracker._cell, tracker._sign = learned.fit.cell.copy(), learned.fit.sign.astype(int)
        yes = _yes_counts(learned)
        for name, worker in learned.workers.items():
            place = learned.worker_index[name]
            tracker._entries[name] = WorkerEntry(
                worker.skill,
                float(learned.fit.skill_sd[place]) ** -2,
                worker.answers,
                int(yes[place]),
                worker.agreement * worker.answers,
            )
        return tracker

    @property
    def workers(self) -> tuple[str, ...]:
        """Workers seen so far."""
        return tuple(self._entries)

    def entry(self, worker: Any) -> WorkerEntry:
        """Skill and counts of a worker; those of a typical one if unknown."""
        return self._entries.get(str(worker)) or WorkerEntry(0.0, self.spread**-2)

    def resume(self, worker: Any, skill: float, precision: float) -> WorkerEntry:
        """Continue from the stored skill of a worker; a precision of 0 means nothing is known.

        >>> tracker = WorkerTracker(Problem(["a", "b"], None, ["q"], [[0, 1]], 0.2))
        >>> tracker.resume("ann", skill=1.0, precision=4.0).skill
        1.0
        """
        entry = WorkerEntry(skill, precision) if precision > 0 else self.entry(None)
        self._entries[str(worker)] = entry
        return entry

    def update(self, worker: Any, question: Any, answer: int, posterior: ArrayLike) -> None:
        """Update a worker by one answer to an item whose class has this posterior.

        The posterior should not contain this answer: a worker is judged by the others. With a
        posterior that is sure (gold, a finished item) that makes no difference.
        """
        q = self._place(question)
        mass = np.asarray(posterior, dtype=np.float64)
        if mass.shape != (self.problem.n_classes,):
            raise CrowdtreeError(
                f"posterior: expected one number per class ({self.problem.n_classes}), "
                f"got shape {mass.shape}"
            )
        self.update_all([worker], [q], [answer], mass[None])

    def update_all(
        self,
        workers: Sequence[Any],
        question: Sequence[int],
        answer: Sequence[int],
        posterior: FloatArray,
    ) -> None:
        """Update several different workers, each by one answer; `posterior` has a row for each."""
        entries = [self._entries.setdefault(str(name), self.entry(name)) for name in workers]
        skill = np.array([entry.skill for entry in entries])[:, None]
        places = np.asarray(question)
        sign = self._sign[places] * np.where(answer, 1, -1)[:, None]
        chance = 1 / (1 + np.exp(-(self._cell[places] + skill)))
        right = sign > 0
        # what the answer itself says about the class, through this worker's own error
        like = np.where(right, chance, np.where(sign < 0, 1 - chance, 0.5))
        after = posterior * like
        total = after.sum(axis=1, keepdims=True)
        after = np.where(total > 0, after / np.where(total > 0, total, 1), posterior)
        counted = after * (sign != 0)
        gap = counted * (right - chance)
        slope, square = gap.sum(axis=1), (gap * (right - chance)).sum(axis=1)
        known = (counted * chance * (1 - chance)).sum(axis=1) - (square - slope**2)
        shares = (counted * right).sum(axis=1) + 0.5 * (after * (sign == 0)).sum(axis=1)
        for place, entry in enumerate(entries):
            entry.precision += max(float(known[place]), 0.0)
            step = float(slope[place]) / entry.precision
            entry.skill += max(-_LONGEST_STEP, min(_LONGEST_STEP, step))
            entry.answers += 1
            entry.yes += int(bool(answer[place]))
            entry.right += float(shares[place])

    def error(self, worker: Any, question: Any, cls: Any = None) -> Any:
        """Error of a worker at a question: for one class, or for all as an array."""
        q = self._place(question)
        made = 1 / (1 + np.exp(self._cell[q] + self.entry(worker).skill))
        made = np.where(self._sign[q] == 0, 0.5, made)
        if cls is None:
            return made
        c = self._class.get(str(cls), cls) if isinstance(cls, str) else cls
        if not isinstance(c, int | np.integer):
            raise CrowdtreeError(f"class {cls!r} is not in the problem")
        return float(made[c])

    def likelihood(self, worker: Any, question: Any, answer: int) -> FloatArray:
        """P(this answer | class) for this worker: the factor of the posterior."""
        q = self._place(question)
        wrong = self.error(worker, q)
        sign = self._sign[q] * (1 if answer else -1)
        return np.where(sign > 0, 1 - wrong, np.where(sign < 0, wrong, 0.5))

    def interval(self, worker: Any) -> tuple[float, float]:
        """95 % interval of the skill (Laplace: an estimate)."""
        entry = self.entry(worker)
        half = Z95 / math.sqrt(entry.precision)
        return entry.skill - half, entry.skill + half

    def flagged(self, least_answers: int = 10) -> dict[str, str]:
        """Workers to look at, and why: no better than a coin for sure, or always the same."""
        base = float(np.median(self._cell[self._sign != 0])) if (self._sign != 0).any() else 0.0
        found = {}
        for name, entry in self._entries.items():
            if entry.answers < least_answers:
                continue
            if entry.yes in (0, entry.answers) and entry.right < 0.75 * entry.answers:
                found[name] = "always the same answer"
            elif base + self.interval(name)[1] < 0.4:  # errs with at least 40 %
                found[name] = "no better than a coin"
        return found

    def _place(self, question: Any) -> int:
        if isinstance(question, int | np.integer):
            return int(question)
        found = self._question.get(str(question))
        if found is None:
            raise CrowdtreeError(f"question {question!r} is not in the problem")
        return found


def _yes_counts(learned: Learned) -> NDArray[np.intp]:
    """How often each worker said yes; of several labels, anything but the favourite."""
    a = learned.answers
    table = np.zeros((len(learned.fit.skill), max(2, len(a.labels))), np.intp)
    np.add.at(table, (a.worker, a.label), 1)
    return table[:, 1] if len(a.labels) <= 2 else table.sum(axis=1) - table.max(axis=1)
