"""Which of the right, or of the wrong, answers people give (docs/model.md, section 9.3).

Skill acts on whether an answer is right. Which of the right or of the wrong answers it is, the
shares `within`, does not depend on skill; they have Dirichlet priors around the given table. In an
open cell (``-``) `within` is the whole table.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.arrays import BoolArray, FloatArray
from crowdtree.core.problem import DASH, Problem

_STRENGTHS = np.geomspace(1.0, 200.0, 12)
_BORROWED = 2.0  # answers of the given table that the other classes are weighed against
_LEAST = 1e-3  # share of an answer in the centre of a prior
TINY = 1e-12


def totals(values: FloatArray, right: BoolArray) -> FloatArray:
    """Sum over the group of each answer, the right or the wrong ones, along the first axis."""
    rights, others = (np.where(part, values, 0.0).sum(axis=0) for part in (right, ~right))
    return np.asarray(np.where(right, rights, others))


def shared(values: FloatArray, right: BoolArray) -> FloatArray:
    """Values as shares of their group.

    >>> shared(np.array([1.0, 3.0, 5.0]), np.array([True, True, False])).tolist()
    [0.25, 0.75, 1.0]
    """
    return np.asarray(values / np.maximum(totals(values, right), TINY))


def at_error(problem: Problem, error: FloatArray) -> FloatArray:
    """P(answer | class) of people with other errors (answer, question, class).

    Which of the right, or of the wrong, answers they give stays as it is; so do open cells.

    >>> cap = ["red", "brown", "white"]
    >>> problem = Problem(["a", "b"], None, ["cap"], [["red", "brown|white"]], 0.1, answers=[cap])
    >>> at_error(problem, np.full((1, 2), 0.4))[:, 0].round(3).tolist()
    [[0.6, 0.4], [0.2, 0.3], [0.2, 0.3]]
    """
    right, channel = problem.right, problem.channel[0]
    exists = np.arange(len(right))[:, None, None] < problem.n_answers[:, None]
    each = np.where(totals(channel, right) > 0, channel, exists)  # nobody errs: all errors alike
    table = np.where(right, 1 - error, error) * shared(each.astype(np.float64), right)
    return np.where(problem.outcome == DASH, channel, table)


class Within(NamedTuple):
    """Dirichlet pseudo-answers of the shares, and their sum: (answer, question, class)."""

    pseudo: FloatArray
    strength: FloatArray


class Groups:
    """Answers of each cell that share a Dirichlet: the right ones, and the wrong (or all) ones."""

    def __init__(self, right: BoolArray, exists: BoolArray, channel: FloatArray) -> None:
        self.masks = [right, exists & ~right]
        self.centre = shared(np.where(exists, np.maximum(channel, _LEAST), 0.0), right)
        self.kinds = [_kinds(mask) for mask in self.masks]

    def prior(self, counts: FloatArray) -> Within:
        """Centre and strength of the Dirichlets, from expected answers."""
        pseudo, strength = np.zeros_like(counts), np.zeros_like(counts)
        for mask, kind in zip(self.masks, self.kinds, strict=True):
            n, given = (np.where(mask, part, 0.0) for part in (counts, self.centre))
            total = n.sum(axis=0)
            base = _BORROWED * given + TINY
            # how much more often other classes with the same right answers give each answer
            more = (_of_others(n, kind) + base) / (_of_others(total * given, kind) + base)
            part = np.where(mask, given * more, 0.0)
            centre = part / np.maximum(part.sum(axis=0), TINY)
            size = _strengths(n, centre, (mask.sum(axis=0) > 1) & (total > 0))[:, None]
            pseudo += size * centre
            strength += np.where(mask, size, 0.0)
        return Within(pseudo, strength)


def _kinds(mask: BoolArray) -> NDArray[np.intp]:
    """Number of the kind of each cell: cells of a question whose groups have the same answers."""
    answers, questions, classes = mask.shape
    code = np.tensordot(1 << np.arange(answers), mask.astype(np.int64), axes=1)
    code += (np.arange(questions)[:, None]) << answers
    return np.unique(code, return_inverse=True)[1].reshape(questions, classes)


def _of_others(values: FloatArray, kind: NDArray[np.intp]) -> FloatArray:
    """Sums over the other classes of the same kind."""
    sums = np.stack([np.bincount(kind.ravel(), part.ravel())[kind] for part in values])
    return np.maximum(sums - values, 0.0)


def _strengths(n: FloatArray, centre: FloatArray, some: BoolArray) -> FloatArray:
    """Strength of the Dirichlets of each question, from some of its cells (empirical Bayes)."""
    from scipy.special import gammaln

    question, cls = np.nonzero(some)
    n, centre = n[:, question, cls], centre[:, question, cls]
    in_group, total = centre > 0, n.sum(axis=0)
    value = np.zeros((len(_STRENGTHS), len(some)))
    for place, size in enumerate(_STRENGTHS):
        alpha = np.where(in_group, size * centre, 1.0)
        cells = (gammaln(alpha + n) - gammaln(alpha)).sum(axis=0)
        cells -= gammaln(size + total) - gammaln(size)
        value[place] = np.bincount(question, cells, len(some))
    weight = np.exp(value - value.max(axis=0))
    return np.asarray(np.exp(np.log(_STRENGTHS) @ weight / weight.sum(axis=0)))
