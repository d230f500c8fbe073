"""The best plan at one price: questions and votes chosen together."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crowdtree.designers import design
from crowdtree.designers.loss_search import LossSearch
from crowdtree.frontiers.vote_options import Options
from crowdtree.problem import DASH
from crowdtree.tree import Tree

__all__ = ["Priced", "Solver", "exact_solver", "greedy_solver", "more_votes", "restaff"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Priced:
    """A plan that minimises ``error + price x cost``, with a proven lower bound.

    `error` and `cost` are those of the error-free path, without the errors inside groups; no plan
    has ``error + price x cost`` below `lower_bound`. For a problem with a loss, `error` is the
    additive risk.
    """

    tree: Tree
    option: NDArray[np.intp]
    error: float
    cost: float
    price: float
    lower_bound: float
    status: str

    @property
    def gap(self) -> float:
        """Relative distance of the value from its bound."""
        value = self.error + self.price * self.cost
        return max(value - self.lower_bound, 0.0) / value if value > 0 else 0.0


Solver = Callable[[float], Priced]


def exact_solver(
    options: Options, time_limit: float | None, node_limit: int | None, memory_limit: float
) -> Solver:
    """Make the proven solver: branch and bound over questions and votes at once."""
    problem = options.problem
    if problem.loss is not None:
        return _loss_solver(options)
    from crowdtree.designers import exact

    # A table of all sets is enough where there are few classes, and quicker to make.
    memory = int(min(memory_limit, 128 * 2.0 ** min(problem.n_classes, 40) + 1e6))

    def solve(price: float) -> Priced:
        total, first = options.priced(price)
        found = exact.solve_additive(
            problem.outcome,
            total,
            problem.prior,
            time_limit=time_limit,
            node_limit=node_limit,
            memory_limit_bytes=memory,
        )
        shape = found.question.astype(np.int32), found.children.astype(np.int32)
        tree = Tree(problem, *shape, "optimal")
        option = first[found.question] + found.variant
        error, cost = _worth(tree, options, option)
        return Priced(tree, option, error, cost, price, found.lower_bound, found.status)

    return solve


def _loss_solver(options: Options) -> Solver:
    """Make the proven solver of the additive risk; the sets of classes are few enough."""
    search = LossSearch(options.problem, options.error, options.cost)

    def solve(price: float) -> Priced:
        found = search.solve(price)
        tree = Tree(options.problem, found.question, found.children, "optimal")
        risk, cost = _worth(tree, options, found.option)
        return Priced(tree, found.option, risk, cost, price, found.value, "optimal")

    return solve


def greedy_solver(options: Options, allow_groups: bool) -> Solver:
    """Make the greedy solver: the level-greedy tree for the price, or the best tree so far.

    The price enters through a problem whose worker error is the best error-plus-price of a cell
    (scaled: the choice depends on ratios alone). Nothing is proven.
    """
    problem = options.problem
    trees = [design(problem, name, allow_groups=allow_groups) for name in ("fm", "fc", "gain")]
    seen = {tuple(tree.question.tolist()) for tree in trees}

    def solve(price: float) -> Priced:
        cell = (options.error + price * options.cost).min(axis=0)
        scaled = problem.replace(worker_error=0.49 * cell / cell.max())
        shape = design(scaled, "fm", allow_groups=allow_groups)
        if tuple(shape.question.tolist()) not in seen:
            seen.add(tuple(shape.question.tolist()))
            trees.append(Tree(problem, shape.question, shape.children, "fm at a price"))
        found = [restaff(tree, options, price) for tree in trees]
        return min(found, key=lambda plan: plan.error + price * plan.cost)

    return solve


def restaff(tree: Tree, options: Options, price: float) -> Priced:
    """Best votes for a given tree at a price: each node is optimised independently."""
    error, cost = _by_node(tree, options)
    option = np.argmin(error + price * cost, axis=0)
    nodes = np.arange(tree.n_nodes)
    wrong, paid = float(error[option, nodes].sum()), float(cost[option, nodes].sum())
    return Priced(tree, option, wrong, paid, price, 0.0, "greedy")


def more_votes(
    tree: Tree, options: Options, fits: Callable[[NDArray[np.int64]], bool]
) -> Iterator[NDArray[np.int64]]:
    """Yield more and more votes, one step at a time where the error falls most per cost.

    Starts with the fewest. A step that does not fit is left out, and the others go on.
    """
    error, cost = _by_node(tree, options)
    option = np.zeros(tree.n_nodes, dtype=np.intp)
    if not fits(options.votes[option]):
        return
    yield options.votes[option]

    def rate(node: int) -> float:
        here, there = option[node], option[node] + 1
        if there >= len(options.votes):
            return 0.0
        fall = error[here, node] - error[there, node]
        return float(fall / (cost[there, node] - cost[here, node]))

    heap = [(-rate(node), node) for node in range(tree.n_nodes)]
    heapq.heapify(heap)
    while heap:
        gain, node = heapq.heappop(heap)
        if gain >= 0:
            return
        option[node] += 1
        if fits(options.votes[option]):
            yield options.votes[option]
            heapq.heappush(heap, (-rate(node), node))
        else:
            option[node] -= 1


def _worth(tree: Tree, options: Options, option: NDArray[np.intp]) -> tuple[float, float]:
    error, cost = _by_node(tree, options)
    nodes = np.arange(tree.n_nodes)
    return float(error[option, nodes].sum()), float(cost[option, nodes].sum())


def _by_node(tree: Tree, options: Options) -> tuple[FloatArray, FloatArray]:
    """Additive error (additive risk, for a problem with a loss) and cost of every option."""
    shape = (len(options.votes), tree.n_nodes)
    error, cost = np.zeros(shape), np.zeros(shape)
    for step, stakes in zip(tree.steps, tree.stakes, strict=True):
        question = tree.question[step.node]
        wrong = np.where(step.answer == DASH, 0.0, options.error[:, question, step.cls] * stakes)
        for total, part in ((error, wrong), (cost, options.cost[:, question, step.cls])):
            np.add.at(total.T, step.node, (part * step.share).T)
    return error, cost
