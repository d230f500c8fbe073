"""Trees of least additive risk where a wrong branch costs more for some classes than for others.

``V(S) = min_q [ sum_{i in S} p_i e_{q,i} w_{q,i}(S) + V(S_0) + V(S_1) ]``, where the weight is the
largest loss of a label in the branch that `i` should not take. It depends on `S`, so it is not the
weight of a class, which the compiled search requires. Every set that questions can make is solved
once: exact, for small problems.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.problem import DASH, Problem

FloatArray = NDArray[np.float64]
MOST_SETS = 10_000
"""Sets of classes that are searched; each takes about a tenth of a millisecond."""


class TooLarge(Exception):
    """The search was stopped: too many sets, or out of time."""


class Shape(NamedTuple):
    """A tree in arrays, with the option of each node and the value of the whole."""

    question: NDArray[np.int32]
    children: NDArray[np.int32]
    option: NDArray[np.intp]
    value: float


class _Split(NamedTuple):
    """Questions that split a set, the two parts of each, and its risk and cost per option."""

    question: NDArray[np.intp]
    parts: list[tuple[int, int]]
    risk: FloatArray
    cost: FloatArray | None


class LossSearch:
    """Exact search over the sets of classes of a problem with a loss; ``-`` means inapplicable.

    `error` is that of every option (number of votes), question and class; by default of one worker.
    After `most_sets` sets, or the `deadline` (:func:`time.monotonic`), :class:`TooLarge` is raised.
    """

    def __init__(
        self,
        problem: Problem,
        error: FloatArray | None = None,
        cost: FloatArray | None = None,
        *,
        most_sets: int = MOST_SETS,
        deadline: float | None = None,
    ) -> None:
        self.problem, self.most_sets, self.deadline = problem, most_sets, deadline
        self.error = problem.worker_error[None] if error is None else error
        self.cost = cost
        self.splits: dict[int, _Split] = {}

    def reachable(self) -> bool:
        """Whether the sets that questions can make are few enough to be searched."""
        everything = (1 << self.problem.n_classes) - 1
        waiting, seen = [everything], {everything}
        try:
            while waiting:
                for pair in self._split(waiting.pop()).parts:
                    new = [part for part in pair if part not in seen]
                    seen.update(new)
                    waiting += new
        except TooLarge:
            return False
        return True

    def _split(self, key: int) -> _Split:
        found = self.splits.get(key)
        if found is None:
            late = self.deadline is not None and time.monotonic() > self.deadline
            if late or len(self.splits) >= self.most_sets:
                raise TooLarge
            found = self.splits[key] = self._make_split(key)
        return found

    def _make_split(self, key: int) -> _Split:
        problem = self.problem
        assert problem.loss is not None
        members = np.array([c for c in range(problem.n_classes) if key >> c & 1], dtype=np.intp)
        part = problem.outcome[:, members]
        splits = np.all(part != DASH, axis=1) & np.any(part != part[:, :1], axis=1)
        question = np.flatnonzero(splits)
        bits = [1 << int(c) for c in members]
        parts = []
        for row in part[question].tolist():
            yes = sum(bit for bit, answer in zip(bits, row, strict=True) if answer)
            parts.append((key ^ yes, yes))
        share = problem.prior[members]
        stake = problem.loss.stakes(problem.right_sets[question[:, None], members], members) * share
        cells = np.ix_(np.arange(len(self.error)), question, members)
        risk = (self.error[cells] * stake).sum(axis=2)
        return _Split(
            question, parts, risk, None if self.cost is None else self.cost[cells] @ share
        )

    def solve(self, price: float = 0.0) -> Shape:
        """Tree (and options) of least ``additive risk + price x cost``."""
        best: dict[int, tuple[float, int, int]] = {}

        def value(key: int) -> float:
            split = self._split(key)
            if not len(split.question):  # one class, or a group that nothing separates
                best[key] = (0.0, -1, 0)
                return 0.0
            own = split.risk if split.cost is None else split.risk + price * split.cost
            option = np.argmin(own, axis=0)
            least = own.min(axis=0)
            top: tuple[float, int, int] = (np.inf, -1, 0)
            for place in np.argsort(least, kind="stable").tolist():
                total = float(least[place])
                if total >= top[0]:
                    break
                for part in split.parts[place]:
                    known = best.get(part)
                    total += value(part) if known is None else known[0]
                    if total >= top[0]:
                        break
                else:
                    top = (total, place, int(option[place]))
            best[key] = top
            return top[0]

        everything = (1 << self.problem.n_classes) - 1
        total = value(everything)
        return self._shape(everything, best, total)

    def _shape(self, root: int, best: dict[int, tuple[float, int, int]], total: float) -> Shape:
        question: list[int] = []
        option: list[int] = []
        children: list[list[int]] = []
        waiting: list[tuple[int, int, int]] = [(root, -1, 0)]
        for key, parent, side in waiting:
            _, place, chosen = best[key]
            if parent >= 0:
                children[parent][side] = len(question) if place >= 0 else -1
            if place < 0:
                continue
            split = self.splits[key]
            waiting += [(part, len(question), side) for side, part in enumerate(split.parts[place])]
            question.append(int(split.question[place]))
            option.append(chosen)
            children.append([-1, -1])
        return Shape(
            np.array(question, dtype=np.int32),
            np.array(children, dtype=np.int32).reshape(-1, 2),
            np.array(option, dtype=np.intp),
            total,
        )


def class_weights(problem: Problem) -> Sequence[FloatArray]:
    """Smallest and largest loss of a mistake, by class."""
    assert problem.loss is not None
    matrix = problem.loss.matrix
    others = ~np.eye(len(matrix), dtype=bool)
    return (
        np.where(others, matrix, np.inf).min(axis=1),
        np.where(others, matrix, -np.inf).max(axis=1),
    )
