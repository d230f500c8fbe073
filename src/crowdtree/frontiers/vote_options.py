"""Vote options: for every number of votes, the error and the answers of every cell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdtree import voting
from crowdtree.bounds import checked_price
from crowdtree.errors import CrowdtreeError
from crowdtree.fixed_plan import Vote
from crowdtree.problem import DASH, Problem

__all__ = ["Options", "question_prices"]

FloatArray = NDArray[np.float64]
Index = NDArray[np.intp] | NDArray[np.int32] | np.intp
LEAST_PRICE, MOST_PRICE = 1e-12, 1e12  # beyond, products of price and error overflow or underflow
KEPT_CELLS = 20_000_000
"""Cells of (option, question, class) up to which the whole table is kept in memory."""


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

    @classmethod
    def of(cls, problem: Problem, vote: Vote, most: int, price: FloatArray) -> Options:
        """Odd numbers up to `most` for a majority, every lead up to `most` for a margin."""
        if vote not in ("majority", "margin"):
            raise CrowdtreeError(f'vote: must be "majority" or "margin", got {vote!r}')
        if most < 1 or most != int(most):
            raise CrowdtreeError(f"max_votes: expected a whole number of at least 1, got {most!r}")
        step = 2 if vote == "majority" else 1
        return cls(problem, vote, np.arange(1, int(most) + 1, step), price)

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

    def yes(self, question: int) -> FloatArray:
        """Probability of the verdict yes, for each option and class, dashes included."""
        outcome = self.problem.outcome[question]
        error, _ = self.at(np.intp(question), np.arange(len(outcome)))
        return np.where(outcome == 1, 1 - error, np.where(outcome == DASH, 0.5, error))

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
        values, place = np.unique(self._cell_error[question, cls], return_inverse=True)
        fuse = voting.majority_error if self.vote == "majority" else voting.margin_error
        fused = fuse(values[None], self.votes[:, None], self.problem.dependence)
        outcome = self.problem.outcome[question, cls]
        return np.where(outcome == DASH, 0.0, fused[:, place.reshape(outcome.shape)])

    def _costs(self, question: Index, cls: Index) -> FloatArray:
        cell = self._cell_error[question, cls]
        price = np.asarray(self.price[question])
        if self.vote == "majority":
            votes = self.votes.reshape(-1, *(1,) * price.ndim)
            return np.broadcast_to(votes * price, (len(self.votes), *cell.shape))
        values, place = np.unique(cell, return_inverse=True)
        answers = voting.margin_votes(values[None], self.votes[:, None], self.problem.dependence)
        return np.asarray(answers[:, place.reshape(cell.shape)] * price)

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
        if self.vote == "margin" and self.problem.dependence:
            odd[:] = True  # convexity is proven for majorities only
        low, high = np.where(odd, 0, low), np.where(odd, len(self.votes) - 1, high)
        width = int((high - low).max()) + 1
        first = np.minimum(low, len(self.votes) - width)
        picked = first[None, :] + np.arange(width)[:, None]
        return np.ascontiguousarray(total[picked, np.arange(len(first))[None, :]]), first


def question_prices(problem: Problem, price: ArrayLike | Mapping[str, float] | None) -> FloatArray:
    """Prices as :func:`crowdtree.bounds.checked_price` reads them, within limits."""
    values = checked_price(price, problem)
    bad = np.flatnonzero(~((values >= LEAST_PRICE) & (values <= MOST_PRICE)))
    if len(bad):
        name = problem.questions[bad[0]]
        raise CrowdtreeError(
            f"price: question {name!r} has {values[bad[0]]:g}; expected a number from "
            f"{LEAST_PRICE:g} to {MOST_PRICE:g}"
        )
    return values
