"""The best plan at one price where questions have several answers or mistakes have costs.

``V(S) = min over questions and votes of sum_i s_i (e_i + price x cost_i) + sum_a V(S_a)``, where
``s_i`` is the share of the items of class ``i`` in the set and ``S_a`` the part of an answer.
Every set is solved once: exact, for problems whose questions make few sets.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.arrays import FloatArray
from crowdtree.core.tree import NO_BRANCH, Tree
from crowdtree.designs.frontiers.class_sets import ClassSets
from crowdtree.designs.frontiers.priced_search import Priced, Solver, Staffed
from crowdtree.designs.frontiers.vote_options import Options

MAX_CELLS = 5_000_000
"""Cells of (set of classes, question, votes) up to which all sets are searched."""


def max_sets(options: Options) -> int:
    """Sets of classes up to which all of them are searched."""
    return MAX_CELLS // (options.problem.n_questions * len(options.votes))


def set_solver(options: Options, sets: ClassSets) -> Solver:
    """Make the proven solver of the additive error (with a loss: risk)."""
    error, cost = _sums(options, sets)

    def solve(price: float, node_limit: int, seconds: float | None) -> Priced:
        del node_limit, seconds  # one pass over few sets
        total = error + price * cost
        option = total.argmin(axis=2)
        own = np.where(sets.asks, total.min(axis=2), np.inf)
        value = np.zeros(len(own) + 1)  # the last: an answer without a branch
        question = np.full(len(own), -1)
        for rows in sets.by_size:
            sums = own[rows] + value[sets.child[rows]].sum(axis=2)
            question[rows] = sums.argmin(axis=1)
            value[rows] = sums.min(axis=1)
        tree, place = _tree(options, sets, question)
        votes = option[place, question[place]]
        plan = Staffed(tree, options).with_votes(votes, price)
        least = min(float(value[0]), plan.at(price))  # the same but for rounding
        return plan.proven(least, len(own))

    return solve


def _sums(options: Options, sets: ClassSets) -> tuple[FloatArray, FloatArray]:
    """Additive error and cost of each option, by set and question."""
    problem, loss = options.problem, options.problem.loss
    error, cost = (
        np.einsum("sc,vqc->sqv", sets.share, cell) for cell in (options.error, options.cost)
    )
    if options.by_branch:
        for place, question in np.argwhere(sets.asks).tolist():
            made = options.branching(question, *sets.branches(place, question))
            cost[place, question] = made.cost @ sets.share[place]
    if loss is not None:
        for place in np.flatnonzero(~sets.leaf).tolist():
            asked, members = np.flatnonzero(sets.asks[place]), np.flatnonzero(sets.member[place])
            stakes = loss.stakes(problem.right_sets[np.ix_(asked, members)], members)
            wrong = options.error[:, asked][:, :, members]
            weight = stakes * sets.share[place, members]
            error[place, asked] = np.einsum("vqc,qc->qv", wrong, weight)
    return error, cost


def _tree(options: Options, sets: ClassSets, question: NDArray[np.int64]) -> tuple[Tree, list[int]]:
    """Tree of the questions chosen for the sets, and the set of each node."""
    order, children = [0], []
    for place in order:
        row = []
        for child in sets.child[place, question[place]].tolist():
            if child >= 0 and not sets.leaf[child]:
                row.append(len(order))
                order.append(child)
            else:
                row.append(NO_BRANCH if child < 0 else -1)
        children.append(row)
    return Tree(
        options.problem, question[order].astype(np.int32), np.array(children), "optimal"
    ), order
