"""Tables learned again without a part of the items, to see what they say of new items."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.arrays import BoolArray, FloatArray
from crowdtree.core.errors import CrowdtreeError, CrowdtreeWarning
from crowdtree.learning.online import class_posteriors, with_workers_of
from crowdtree.learning.skills import spread_of

if TYPE_CHECKING:
    from crowdtree.core.problem import Problem
    from crowdtree.learning.model import Learned

FOLDS = 5


class Sheet(NamedTuple):
    """Answers as a matrix: items x questions x repeats, -1 where there is none."""

    values: NDArray[np.int8]
    worker: NDArray[np.int64]
    """The person who gave all answers of an item, -1 where there were several."""


class Refit(NamedTuple):
    """Items that are left out, and what the others teach.

    `problem` and `table` have the questions of all items, `rest` those of the others alone.
    """

    held: NDArray[np.intp]
    problem: Problem
    table: FloatArray
    rest: Learned

    def posterior(self, learned: Learned) -> FloatArray:
        """Posteriors of the items that are left out, from all their answers."""
        asked = with_workers_of(self.rest, learned.answers.items(self.held))
        names = list(self.rest.answers.questions)
        place = [names.index(name) if name in names else -1 for name in asked.questions]
        question = np.array(place, np.int32)[asked.question_column()]
        return class_posteriors(self.rest, replace(asked, question=question).rows(question >= 0))


class Refits(NamedTuple):
    """Refits without each part of the items, and whether the parts are of different people."""

    parts: list[Refit]
    by_person: bool


def sheet_of(learned: Learned) -> Sheet:
    """Arrange the answers that a table was learned from."""
    a = learned.answers
    task, question = a.task, a.question_column()
    order = np.lexsort((question, task))
    cell = task[order].astype(np.int64) * len(a.questions) + question[order]
    first = np.concatenate([[True], cell[1:] != cell[:-1]])
    start = np.flatnonzero(first)
    turn = np.arange(len(cell)) - np.repeat(start, np.diff(np.append(start, len(cell))))
    places = np.array([learned.problem.question_index(name) for name in a.questions])
    values = np.full((a.n_tasks, learned.problem.n_questions, int(turn.max()) + 1), -1, np.int8)
    values[task[order], places[question[order]], turn] = a.label[order]
    low, high = (np.full(a.n_tasks, fill, np.int64) for fill in (a.n_workers, -1))
    np.minimum.at(low, task, a.worker)
    np.maximum.at(high, task, a.worker)
    return Sheet(values, np.where(low == high, low, -1))


def refits_of(learned: Learned, worker: NDArray[np.int64], folds: int, seed: int) -> Refits:
    """Learn the table again without each part of the items, once per result and seed."""
    if folds < 2:
        raise CrowdtreeError(f"folds: expected a whole number from 2 on, got {folds}")
    known: dict[tuple[int, int], Refits] = learned.refits
    if (folds, seed) not in known:
        rng = np.random.default_rng(seed)
        parts, by_person = _parts(learned.gold, worker, folds, rng)
        known[folds, seed] = Refits([_without(learned, held) for held in parts], by_person)
    return known[folds, seed]


def _parts(
    gold: NDArray[np.int32], worker: NDArray[np.int64], folds: int, rng: np.random.Generator
) -> tuple[list[NDArray[np.intp]], bool]:
    """Items to leave out in turn, and whether those of a person are left out together.

    Every class keeps an item, so some may never be left out. Where leaving out people would lose a
    class, or an item was answered by several, items are left out.
    """
    known = np.flatnonzero(gold >= 0)
    people = rng.permutation(np.unique(worker[known]))
    if len(people) > 1 and people.min() >= 0:
        groups = [known[np.isin(worker[known], people[k::folds])] for k in range(folds)]
        kept = [np.setdiff1d(np.unique(gold[known]), gold[np.setdiff1d(known, g)]) for g in groups]
        if not any(len(lost) for lost in kept):
            return [group for group in groups if len(group)], True
    fold = np.full(len(gold), -1)
    for cls in np.unique(gold[known]):
        mine = rng.permutation(np.flatnonzero(gold == cls))
        if len(mine) > 1:
            fold[mine] = (np.arange(len(mine)) + cls) % folds
            if len(np.unique(fold[mine])) == 1:
                fold[mine[0]] = -1
    return [np.flatnonzero(fold == k) for k in range(folds) if (fold == k).any()], False


def _without(learned: Learned, held: NDArray[np.intp]) -> Refit:
    """The table that the other items teach, with the questions in the same order."""
    a, stays = learned.answers, np.ones(learned.answers.n_tasks, bool)
    stays[held] = False
    known = np.flatnonzero(stays & (learned.gold >= 0)).tolist()
    truths = {str(a.tasks[i]): learned.classes[learned.gold[i]] for i in known}
    part = a.part(np.flatnonzero(stays), all_questions=learned.assumed is not None)
    with warnings.catch_warnings(action="ignore", category=CrowdtreeWarning):
        rest = learned.refit(part, truths)
        # a question that only the left-out items were asked is taken as learned with them
        places = [learned.problem.question_index(name) for name in rest.problem.questions]
        table = learned.table.copy()
        table[: len(rest.table), places] = rest.table
        changes = {} if learned.problem.table is None else {"table": table}
        problem = learned.problem.replace(prior=rest.problem.prior, **changes)
    return Refit(held, problem, table, rest)


class Another(NamedTuple):
    """A number that differs between people: that of one more person.

    >>> other = Another.of(np.array([-0.1, 0.0, 0.1]), np.full(3, 0.01))
    >>> abs(other.centre) < 1e-9, 0.1 < other.doubt < other.sd
    (True, True)
    """

    centre: float
    doubt: float
    """Standard deviation of the centre."""
    between: float
    """Standard deviation between people, inflated where few people make it uncertain."""

    @classmethod
    def of(cls, value: FloatArray, variance: FloatArray) -> Another:
        """From the number of each person, which is known up to a variance."""
        spread, doubt = spread_of(value, 1 / variance)
        weight = 1 / (spread**2 + variance)
        centre = float(weight @ value / weight.sum())
        return cls(centre, float(weight.sum() ** -0.5), float(spread * np.exp(doubt)))

    @property
    def sd(self) -> float:
        """Standard deviation of the number of one more person."""
        return float(np.hypot(self.doubt, self.between))


def log_odds(
    wrong: BoolArray, who: NDArray[np.intp], expected: Any
) -> tuple[FloatArray, FloatArray]:
    """Log odds of an error per person, with one more item that errs as expected; variances."""
    count = np.bincount(who) + 1.0
    share = (np.bincount(who, wrong) + expected) / count
    return np.log(share) - np.log1p(-share), 1 / (count * share * (1 - share))
