"""Comparisons of a learned result: classes with each other, learned errors with assumed ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from crowdtree.core.problem import DASH

if TYPE_CHECKING:
    from crowdtree.learning.model import Learned


class Pair(NamedTuple):
    """Two classes, and the share of one's probability that lies with the other (an estimate)."""

    first: str
    second: str
    shared: float


class Against(NamedTuple):
    """One cell: the error that was assumed, and what was learned with its interval."""

    question: str
    cls: str
    assumed: float
    learned: float
    low: float
    high: float

    @property
    def outside(self) -> bool:
        """Whether the assumed error lies outside the interval."""
        return not self.low <= self.assumed <= self.high


def confused_pairs(learned: Learned, least: float = 0.001) -> list[Pair]:
    """Pairs of classes that share probability, the most confused first.

    Examples
    --------
    >>> from crowdtree.learning import learn
    >>> answers = {"task": [1, 1, 2, 2, 3, 3], "worker": ["ann", "ben"] * 3,
    ...            "label": ["cat", "cat", "dog", "dog", "cat", "dog"]}
    >>> pair, = confused_pairs(learn(answers))
    >>> pair.first, pair.second, 0 < pair.shared < 1
    ('cat', 'dog', True)
    """
    mass = learned.posterior.T @ learned.posterior
    share = mass / np.maximum(learned.posterior.sum(axis=0)[:, None], 1e-300)
    worst = np.triu(np.maximum(share, share.T), 1)
    names = learned.classes
    order = np.argsort(-worst, axis=None, kind="stable")
    found = []
    for i, j in zip(*np.unravel_index(order, worst.shape), strict=True):
        if worst[i, j] < least:
            break
        found.append(Pair(names[i], names[j], float(worst[i, j])))
    return found


def against_assumed(learned: Learned) -> list[Against]:
    """Cells that were answered, by how far the assumed error is from the learned one.

    Empty where no table was assumed. The distance is in half widths of the interval.
    """
    assumed, problem = learned.assumed, learned.problem
    if assumed is None:
        return []
    low, high = learned.intervals.worker_error
    found = [
        Against(
            problem.questions[q],
            problem.classes[c],
            float(assumed.worker_error[q, c]),
            float(problem.worker_error[q, c]),
            float(low[q, c]),
            float(high[q, c]),
        )
        for q, c in np.argwhere((problem.outcome != DASH) & (learned.fit.answers >= 1)).tolist()
    ]
    return sorted(found, key=lambda a: -abs(a.assumed - a.learned) / max(a.high - a.low, 1e-9))
