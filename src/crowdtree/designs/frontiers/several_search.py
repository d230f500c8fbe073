"""The best plan at one price where questions have several answers: every set of classes, once.

``V(S) = min over questions and votes of sum_i s_i (e_i + price x cost_i) + sum_a V(S_a)``, where
``s_i`` is the share of the items of class ``i`` in the set and ``S_a`` the part of an answer.
Exact, for problems whose questions make few sets.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.tree import NO_BRANCH, Tree
from crowdtree.designs.frontiers.class_sets import ClassSets
from crowdtree.designs.frontiers.priced_search import Priced, Solver, Staffed
from crowdtree.designs.frontiers.vote_options import Options

FloatArray = NDArray[np.float64]
MAX_CELLS = 2_000_000
"""Cells of (set of classes, question, votes) up to which all sets are searched."""


def class_sets(options: Options) -> ClassSets:
    """Sets of classes of a problem, if they are few enough to be searched."""
    return ClassSets(
        options.problem, MAX_CELLS / (options.problem.n_questions * len(options.votes))
    )


def several_solver(options: Options, sets: ClassSets) -> Solver:
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
    problem = options.problem
    if problem.loss is None:
        error = np.einsum("sc,vqc->sqv", sets.share, options.error)
    else:
        error = np.zeros((len(sets.share), problem.n_questions, len(options.votes)))
    by_branch = options.vote == "margin"
    cost = (
        np.zeros_like(error)
        if by_branch
        else sets.share.sum(axis=1)[:, None, None] * (options.price[:, None] * options.votes)
    )
    if not by_branch and problem.loss is None:
        return error, cost
    for place, question in np.argwhere(sets.asks).tolist():
        share = sets.share[place]
        if by_branch:
            cost[place, question] = (
                options.branching(question, *sets.branches(place, question)).cost @ share
            )
        if problem.loss is not None:
            members = np.flatnonzero(sets.member[place])
            stakes = problem.loss.stakes(problem.right_sets[[question]][:, members], members)[0]
            wrong = options.error[:, question, members]
            error[place, question] = wrong @ (stakes * share[members])
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
