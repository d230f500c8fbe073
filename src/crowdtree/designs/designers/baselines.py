"""Baselines that ignore the workers' errors: ID3, CART and a random order of questions."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdtree.core import scores
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.problem import Problem
from crowdtree.core.rng import generator
from crowdtree.core.tree import Tree
from crowdtree.designs.designers import joint
from crowdtree.designs.designers.grow import LevelTable, OpenNodes, grow


def gain(problem: Problem) -> Tree:
    """Ask the question of the largest information gain at each node.

    References
    ----------
    Quinlan (1986), ID3.
    """
    return grow(problem, lambda level: joint.first_best(level.gain, level.error, 0.0)[0], "gain")


def gini(problem: Problem) -> Tree:
    """Ask the question that lowers the Gini impurity most at each node.

    References
    ----------
    Breiman, Friedman, Olshen and Stone (1984), CART.
    """
    return grow(problem, _most_gini, "gini")


def random(
    problem: Problem,
    rng: np.random.Generator | int | None = None,
    order: ArrayLike | None = None,
) -> Tree:
    """Ask, at each node, the first question of a random (or given) order that splits it.

    `order` holds question indices; by default it is drawn by `rng`, a generator or a seed (0).
    """
    if order is not None and rng is not None:
        raise CrowdtreeError("order, rng: expected one of the two, got both")
    if order is None:
        order = generator(rng).permutation(problem.n_questions)
    ranks = np.asarray(order)
    if (
        ranks.ndim != 1
        or ranks.dtype.kind not in "iu"
        or sorted(ranks.tolist()) != list(range(problem.n_questions))
    ):
        raise CrowdtreeError(
            f"order: expected every question index from 0 to {problem.n_questions - 1} once"
        )
    return in_order(problem, ranks, "random")


def in_order(problem: Problem, order: NDArray[np.intp], method: str) -> Tree:
    """Ask, at each node, the first question of an order that splits it."""

    def choose(level: LevelTable) -> NDArray[np.intp]:
        asked = np.full(len(level.gain), -1, dtype=np.intp)
        for q in order.tolist():
            asked[(asked < 0) & (level.gain[:, q] > -np.inf)] = q
            if np.all(asked >= 0):
                break
        return asked

    return grow(problem, choose, method)


def _most_gini(level: LevelTable) -> NDArray[np.intp]:
    """Fall of ``sum_k P_k (1 - sum_i (w_i / P_k)^2)``; several right answers share a row evenly."""
    frontier, problem = level.frontier, level.problem
    found = np.empty(level.gain.shape)
    start = frontier.start[:-1]
    squares = np.add.reduceat(frontier.share**2, start)[:, None]
    step = max(1, 8_000_000 // len(frontier.cls))
    for first in range(0, problem.n_questions, step):
        block = slice(first, first + step)
        parts = _parts(problem, block, frontier)
        sums = [np.add.reduceat(part, start, axis=1).T for part in parts[1:]]
        sums.insert(0, frontier.total[:, None] - sum(sums))
        of_squares = [np.add.reduceat(part**2, start, axis=1).T for part in parts]
        found[:, block] = scores.gini_drop(frontier.total[:, None], squares, sums, of_squares)
    size = np.abs(found) + squares / frontier.total[:, None]  # of the terms that were subtracted
    return joint.top(np.where(level.gain > -np.inf, found, -np.inf), scale=size)


def _parts(problem: Problem, questions: slice, frontier: OpenNodes) -> list[NDArray[np.float64]]:
    """Share of each row of the open nodes that each answer takes."""
    right = problem.right[:, questions][:, :, frontier.cls]
    each = frontier.share / np.maximum(right.sum(axis=0), 1)
    return [np.where(here, each, 0.0) for here in right]
