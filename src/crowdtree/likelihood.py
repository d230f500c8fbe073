"""How likely each answer is under each class: the model behind every posterior.

An answer is yes with probability ``yes[q, c]``. A worker of skill ``s`` errs with
``logit error = logit worker_error - s`` (docs/model.md, section 9). Answers of different people to
the same question on the same item may be correlated: with ``shared_difficulty`` ``rho`` the
item's own share of yes is Beta distributed around ``yes[q, c]``, so that two answers have
correlation ``rho`` and the next answer, after ``y`` times yes among ``n``, is yes with probability
``((1 - rho) yes + rho y) / ((1 - rho) + rho n)`` (the beta-binomial, or Polya's urn).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdtree.errors import CrowdtreeError
from crowdtree.problem import DASH, Problem, check_dependence

__all__ = ["AnswerModel", "binary_entropy", "yes_probability"]

FloatArray = NDArray[np.float64]
LEAST = 1e-9
"""Least error of any worker: keeps posteriors finite when error-free answers contradict."""


def yes_probability(problem: Problem, given: ArrayLike | None = None) -> FloatArray:
    """Probability of the answer yes, one row per question, one column per class.

    ``1 - worker_error`` where the outcome is 1, ``worker_error`` where it is 0, one half where it
    is ``-``. A `given` table replaces that wherever it is not NaN.

    >>> problem = Problem(["a", "b", "c"], None, ["q"], [[0, 1, "-"]], 0.1)
    >>> yes_probability(problem).tolist()
    [[0.1, 0.9, 0.5]]
    >>> yes_probability(problem, [[np.nan, np.nan, 0.7]]).tolist()
    [[0.1, 0.9, 0.7]]
    """
    error, outcome = problem.worker_error, problem.outcome
    yes = np.where(outcome == 1, 1 - error, np.where(outcome == DASH, 0.5, error))
    if given is None:
        return yes
    try:
        table = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise CrowdtreeError("yes_probability: expected a table of numbers") from None
    if table.shape != yes.shape:
        raise CrowdtreeError(
            f"yes_probability: expected {yes.shape[0]} questions x {yes.shape[1]} classes, "
            f"got shape {table.shape}"
        )
    if np.any((table < 0) | (table > 1)):
        raise CrowdtreeError("yes_probability: every entry must lie in [0, 1], or be NaN")
    return np.where(np.isnan(table), yes, table)


def binary_entropy(probability: ArrayLike) -> FloatArray:
    """Entropy of a coin, in bits.

    >>> binary_entropy([0.0, 0.11, 0.5]).round(4).tolist()
    [0.0, 0.4999, 1.0]
    """
    p = np.asarray(probability, dtype=np.float64)
    tiny = np.finfo(np.float64).tiny
    yes, no = np.log2(np.maximum(p, tiny)), np.log2(np.maximum(1 - p, tiny))
    return np.asarray(np.abs(p * yes + (1 - p) * no))


@dataclass(frozen=True, eq=False)
class AnswerModel:
    """Probabilities of answers given the class.

    Parameters
    ----------
    yes
        ``P(yes | class)``, one row per question; kept 1e-9 away from 0 and 1.
    sign
        1 where yes is the right answer, -1 where no is, 0 where neither is; skill acts in that
        direction.
    shared_difficulty
        Correlation of two people's answers to one question on one item, from 0 to below 1.

    Examples
    --------
    >>> problem = Problem(["a", "b"], None, ["q"], [[0, 1]], 0.2)
    >>> AnswerModel.of(problem).yes_given(0, skill=1.0).round(3).tolist()
    [0.084, 0.916]
    >>> AnswerModel.of(problem, shared_difficulty=0.5).yes_given(0, yes=1, asked=1).tolist()
    [0.6, 0.9]
    """

    yes: FloatArray
    sign: NDArray[np.int8]
    shared_difficulty: float = 0.0

    @classmethod
    def of(
        cls,
        problem: Problem,
        given: ArrayLike | None = None,
        shared_difficulty: float | None = None,
    ) -> AnswerModel:
        """Make the model of a problem; `given` replaces outcome and error where it is not NaN.

        Without `shared_difficulty` it is the problem's `dependence`.
        """
        if shared_difficulty is None:
            shared_difficulty = problem.dependence
        rho = check_dependence(shared_difficulty, "shared_difficulty")
        yes = yes_probability(problem, given)
        sign = np.where(problem.outcome == DASH, 0, 2 * problem.outcome - 1)
        if given is not None:
            replaced = ~np.isnan(np.asarray(given, dtype=np.float64))
            sign = np.where(replaced, np.sign(yes - 0.5), sign)
        yes = np.clip(yes, LEAST, 1 - LEAST)
        yes.flags.writeable = False
        return cls(yes, sign.astype(np.int8), rho)

    @cached_property
    def logs(self) -> FloatArray:
        """Logarithms of P(no) and P(yes) of an average worker, one table per answer."""
        return np.stack([np.log1p(-self.yes), np.log(self.yes)])

    def yes_given(
        self, question: int, skill: float = 0.0, yes: int = 0, asked: int = 0
    ) -> FloatArray:
        """P(yes | class) of the next answer to a question that was asked before on this item."""
        share = self.yes[question]
        if skill:
            share = skilled(share, self.sign[question], skill)
        return urn(share, self.shared_difficulty, yes, asked)

    def log_likelihood(
        self, question: int, value: int, skill: float = 0.0, yes: int = 0, asked: int = 0
    ) -> FloatArray:
        """Logarithm of the probability of an answer under each class."""
        if not skill and not (self.shared_difficulty and asked):
            return np.asarray(self.logs[value, question])
        share = self.yes_given(question, skill, yes, asked)
        return np.log(share) if value else np.log1p(-share)

    def evidence(
        self,
        question: NDArray[Any],
        value: NDArray[Any],
        skill: FloatArray | None,
        yes: NDArray[Any],
        asked: NDArray[Any],
    ) -> FloatArray:
        """Logarithm of the probability of many answers under each class, one row per answer."""
        if skill is None and not self.shared_difficulty:
            return np.asarray(self.logs[value, question])
        share = self.yes[question]
        if skill is not None:
            share = skilled(share, self.sign[question], skill[:, None])
        share = urn(share, self.shared_difficulty, yes[:, None], asked[:, None])
        return np.where(value[:, None] == 1, np.log(share), np.log1p(-share))


def skilled(yes: FloatArray, sign: ArrayLike, skill: ArrayLike) -> FloatArray:
    """P(yes) of a worker of some skill: the logit moves by `skill` towards the right answer.

    >>> skilled(np.array([0.2, 0.8, 0.5]), [-1, 1, 0], 1.0).round(3).tolist()
    [0.084, 0.916, 0.5]
    """
    shift = np.exp(-np.asarray(sign) * np.asarray(skill, dtype=np.float64))
    moved = yes / (yes + (1 - yes) * shift)
    return np.asarray(np.clip(moved, LEAST, 1 - LEAST))


def urn(share: FloatArray, rho: float, yes: ArrayLike, asked: ArrayLike) -> FloatArray:
    """P(yes) of the next answer after `yes` yeses among `asked` answers of correlation `rho`."""
    if not rho:
        return share
    return np.asarray(
        ((1 - rho) * share + rho * np.asarray(yes)) / ((1 - rho) + rho * np.asarray(asked))
    )
