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
from crowdtree.plan import Vote
from crowdtree.problem import DASH, Problem

__all__ = ["Options", "question_prices"]

FloatArray = NDArray[np.float64]
LEAST_PRICE, MOST_PRICE = 1e-12, 1e12  # beyond, products of price and error overflow or underflow


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
        fuse = voting.majority_error if self.vote == "majority" else voting.margin_error
        fused = fuse(self._cell_error[None], self.votes[:, None, None], self.problem.dependence)
        return np.where(self.problem.outcome[None] == DASH, 0.0, fused)

    @cached_property
    def cost(self) -> FloatArray:
        """Expected price of the answers of each option, question and class."""
        if self.vote == "majority":
            shape = (len(self.votes), *self.problem.outcome.shape)
            return np.broadcast_to(
                self.votes[:, None, None] * self.price[None, :, None].astype(float), shape
            )
        answers = voting.margin_votes(
            self._cell_error[None], self.votes[:, None, None], self.problem.dependence
        )
        return np.asarray(answers * self.price[None, :, None])

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
