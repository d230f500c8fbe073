"""Vote options: for every number of votes, the error and the answers of every cell."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdtree.core.arrays import FloatArray
from crowdtree.core.bounds import checked_price
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.plurality import ENDLESS
from crowdtree.core.problem import DASH, Problem
from crowdtree.core.tree import Tree
from crowdtree.core.votes import (
    VOTES,
    CellVotes,
    Vote,
    VoteRule,
    answer_rows,
    branch_chances,
    two_verdicts,
)

Index = NDArray[np.intp] | NDArray[np.int32] | np.intp
LEAST_PRICE, MAX_PRICE = 1e-12, 1e12  # beyond, products of price and error overflow or underflow
KEPT_CELLS = 20_000_000
"""Cells of (option, question, class) up to which the whole table is kept in memory."""


def kinds_of_votes(problem: Problem) -> tuple[Vote, ...]:
    """Kinds of votes that are computed, those that stop early first."""
    dependence, several = problem.as_options().dependence, not problem.is_yes_no
    kinds = sorted(get_args(Vote), key=lambda vote: VOTES[vote].always_all)
    return tuple(vote for vote in kinds if VOTES[vote].is_computed(several, dependence))


class Branching(NamedTuple):
    """What a vote does at a node: one entry per option, (branch,) and class.

    `error` is the chance of a branch that is wrong for the class.
    """

    chance: FloatArray
    error: FloatArray
    cost: FloatArray


@dataclass(frozen=True)
class Options:
    """The possible votes of a node, with their error and cost in every cell of the table.

    `error` and `cost` have one entry per (option, question, class). A class with ``-`` has no
    error but its answers are paid for.
    """

    problem: Problem
    vote: Vote
    votes: NDArray[np.int64]
    price: FloatArray
    once: NDArray[np.bool_] | None = None
    """Questions to which further votes say nothing new; None where there are none."""

    @classmethod
    def of(
        cls,
        problem: Problem,
        vote: Vote,
        most: int,
        price: FloatArray,
        once: NDArray[np.bool_] | None = None,
    ) -> Options:
        """Odd numbers up to `most` for a majority, every lead up to `most` for a margin.

        With several answers every number for a majority, too: an even one may be worth its price.
        """
        if most < 1 or most != int(most):
            raise CrowdtreeError(f"max_votes: expected a whole number of at least 1, got {most!r}")
        step = 2 if VOTES[vote].is_plurality and problem.is_yes_no else 1
        return cls(problem, vote, np.arange(1, int(most) + 1, step), price, once)

    @property
    def rule(self) -> VoteRule:
        """The rule of the votes."""
        return VOTES[self.vote]

    @property
    def by_branch(self) -> bool:
        """Whether the cost of a vote depends on which answers have a branch."""
        return not (self.rule.always_all or self.problem.is_yes_no)

    @cached_property
    def _cell_error(self) -> FloatArray:
        return np.where(self.problem.outcome == DASH, 0.5, self.problem.worker_error)

    @cached_property
    def error(self) -> FloatArray:
        """Fused error of each option, question and class."""
        return self._errors(*self._every_cell)

    @cached_property
    def cost(self) -> FloatArray:
        """Expected price of the answers of each option, question and class."""
        return self._costs(*self._every_cell)

    def at(self, question: Index, cls: Index) -> tuple[FloatArray, FloatArray]:
        """Error and cost of each option in some cells; a large table is never made as a whole."""
        if len(self.votes) * self.problem.outcome.size <= KEPT_CELLS:
            return self.error[:, question, cls], self.cost[:, question, cls]
        return self._errors(question, cls), self._costs(question, cls)

    @cached_property
    def usable(self) -> NDArray[np.bool_]:
        """Whether each option can be chosen, by question.

        Not where a margin is too large to be computed, nor where more votes say nothing new.
        """
        shape = (len(self.votes), self.problem.n_questions)
        able = np.ones(shape, dtype=np.bool_)
        if self.by_branch:
            able = self.rule.usable(self.votes, self.problem.n_answers)
        if self.once is None:
            return able
        return able & ~((self.votes > 1)[:, None] & self.once)

    def allows(self, tree: Tree, votes: NDArray[np.int64]) -> bool:
        """Whether no question gets votes that say nothing new."""
        return self.once is None or not (self.once[tree.question] & (votes > 1)).any()

    def branching(self, question: int, answers: tuple[int, ...], usual: int) -> Branching:
        """Where votes send items at a node that has branches for some answers."""
        key = (question, answers, usual)
        found = self._branching.get(key)
        if found is None:
            found = self._branching[key] = self.votes_at(*key)
        return found

    @cached_property
    def _branching(self) -> dict[tuple[int, tuple[int, ...], int], Branching]:
        return {}

    def votes_at(self, question: int, answers: tuple[int, ...], usual: int) -> Branching:
        """Compute :meth:`branching`."""
        problem, rule = self.problem, self.rule
        every = np.arange(problem.n_classes)
        if problem.is_yes_no:
            return Branching(self.verdicts(question), *self.at(np.intp(question), every))
        usable = self.usable[:, question]
        votes = self.votes[usable]
        shape = (len(self.votes), len(answers), len(every))
        chance = np.full(shape, 1 / len(answers))
        cost = np.full((shape[0], shape[2]), ENDLESS)
        chance[usable] = branch_chances(problem, rule, question, answers, usual, votes, every)
        rows = answer_rows(problem, question, every, answers)
        rows = np.broadcast_to(rows, (len(votes), *rows.shape))
        cost[usable] = rule.answers(rows, votes[:, None], problem.dependence)
        wrong = ~problem.right[list(answers), question]
        return Branching(chance, (chance * wrong).sum(axis=1), cost * self.price[question])

    def branching_at(self, tree: Tree, node: int) -> Branching:
        """Where votes send items at a node of a tree."""
        return self.branching(*self.branches_at(tree, node))

    def branches_at(self, tree: Tree, node: int) -> tuple[int, tuple[int, ...], int]:
        """What votes at a node depend on: its question, branches and usual answer."""
        answers = tuple(answer for answer, _ in tree.branches(node))
        usual = 0 if self.problem.is_yes_no else tree.usual_answer[node]
        return int(tree.question[node]), answers, usual

    def verdicts(self, question: int) -> FloatArray:
        """Probability of either of two verdicts, as ``[option, answer, class]``."""
        every = np.arange(self.problem.n_classes)
        error, _ = self.at(np.intp(question), every)
        return np.stack(two_verdicts(self.problem, question, every, error), axis=1)

    def least(self, price: float) -> FloatArray:
        """Least error plus price of each question and class over the options."""
        questions, classes = self.problem.outcome.shape
        least = np.empty((questions, classes))
        rows = max(1, KEPT_CELLS // (len(self.votes) * classes))
        for start in range(0, questions, rows):
            block = np.arange(start, min(start + rows, questions))
            error, cost = self.at(block[:, None], np.arange(classes)[None, :])
            least[block] = (error + price * cost).min(axis=0)
        return least

    @property
    def _every_cell(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        questions, classes = self.problem.outcome.shape
        return np.arange(questions)[:, None], np.arange(classes)[None, :]

    def _errors(self, question: Index, cls: Index) -> FloatArray:
        """Fused errors; equal worker errors are fused once."""
        found = self._of_cells(CellVotes.errors, question, cls)
        return np.where(self.problem.outcome[question, cls] == DASH, 0.0, found)

    def _costs(self, question: Index, cls: Index) -> FloatArray:
        """Expected prices; votes that say nothing new are no option."""
        cost = self._paid(question, cls)
        if self.once is None:
            return cost
        again = np.broadcast_to(self.once[question], cost.shape[1:])
        several = (self.votes > 1).reshape(-1, *(1,) * (cost.ndim - 1))
        return np.where(several & again, ENDLESS, cost)

    def _paid(self, question: Index, cls: Index) -> FloatArray:
        price = np.asarray(self.price[question])
        if self.rule.always_all:
            votes = self.votes.reshape(-1, *(1,) * price.ndim)
            shape = self.problem.outcome[question, cls].shape
            return np.broadcast_to(votes * price, (len(self.votes), *shape))
        return np.asarray(self._of_cells(CellVotes.answers, question, cls) * price)

    def _of_cells(
        self,
        compute: Callable[[CellVotes, VoteRule, NDArray[np.int64]], FloatArray],
        question: Any,
        cls: Any,
    ) -> FloatArray:
        """Compute the options of some cells; those that are none cost the most."""
        if not self.by_branch:
            return compute(CellVotes(self.problem, question, cls), self.rule, self.votes)
        question, cls = np.broadcast_arrays(question, cls)
        found = np.full((len(self.votes), *question.shape), ENDLESS)
        usable = self.usable.sum(axis=0)[question]
        for count in np.unique(usable).tolist():
            here = usable == count
            cells = CellVotes(self.problem, question[here], cls[here])
            found[:count, here] = compute(cells, self.rule, self.votes[:count])
        return found

    def priced(self, price: float) -> tuple[FloatArray, NDArray[np.intp]]:
        """Cost of the options that can be best at a price, and the first option of each question.

        Error plus price is convex in the votes for a cell of error below one half, so for a set of
        cells the best option lies between the best ones of its cells: the others are left out.
        Returns ``total[option, question, class]`` and the index of its option 0 by question.
        """
        total = self.error + price * self.cost
        best = np.argmin(total, axis=0)
        useful = self.problem.outcome != DASH
        low = np.where(useful, best, len(self.votes)).min(axis=1)
        high = np.where(useful, best, -1).max(axis=1)
        odd = np.any((self._cell_error >= 0.5) & useful, axis=1) | (high < 0)
        if not self.rule.is_convex(self.problem.dependence):
            odd[:] = True
        low, high = np.where(odd, 0, low), np.where(odd, len(self.votes) - 1, high)
        width = int((high - low).max()) + 1
        first = np.minimum(low, len(self.votes) - width)
        picked = first[None, :] + np.arange(width)[:, None]
        return np.ascontiguousarray(total[picked, np.arange(len(first))[None, :]]), first


def question_prices(problem: Problem, price: ArrayLike | Mapping[str, float] | None) -> FloatArray:
    """Prices as :func:`crowdtree.core.bounds.checked_price` reads them, within limits."""
    values = checked_price(price, problem)
    bad = np.flatnonzero(~((values >= LEAST_PRICE) & (values <= MAX_PRICE)))
    if len(bad):
        name = problem.questions[bad[0] % problem.n_questions]
        raise CrowdtreeError(
            f"price: question {name!r} has {values[bad[0]]:g}; expected a number from "
            f"{LEAST_PRICE:g} to {MAX_PRICE:g}"
        )
    return values
