"""The best plan at one price: questions and votes chosen together."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.problem import DASH
from crowdtree.core.tree import Tree
from crowdtree.designs.designers import design
from crowdtree.designs.frontiers.vote_options import Options

DESIGNS = ("fc", "gain", "gini")
GREEDY_PRICES = np.geomspace(0.3, 1e-5, 12)
"""Prices, relative to the mean price of an answer, for which a greedy tree is designed."""


@dataclass(frozen=True)
class Priced:
    """A plan that minimises ``error + price x cost``, with a proven lower bound.

    `error` and `cost` are those of the error-free path, without the errors inside groups; no plan
    has ``error + price x cost`` below `lower_bound` at this price. `sets` of classes were searched.
    For a problem with a loss, `error` is the additive risk.
    """

    tree: Tree
    option: NDArray[np.intp]
    error: float
    cost: float
    price: float
    lower_bound: float = 0.0
    status: str = "greedy"
    sets: int = 0

    def at(self, price: float) -> float:
        """Error plus cost at a price."""
        return self.error + price * self.cost

    def proven(self, lower_bound: float, sets: int) -> Priced:
        """The same plan, proven to be the best at its price."""
        return replace(self, lower_bound=lower_bound, status="optimal", sets=sets)


class Staffed:
    """A tree with the additive error and cost of every number of votes at every node.

    For a problem with a loss: the additive risk in place of the error.
    """

    def __init__(self, tree: Tree, options: Options) -> None:
        self.tree = tree
        shape = (len(options.votes), tree.n_nodes)
        self.error, self.cost = np.zeros(shape), np.zeros(shape)
        for step, stakes in zip(tree.steps, tree.stakes, strict=True):
            error, cost = options.at(tree.question[step.node], step.cls)
            wrong = np.where(step.answer == DASH, 0.0, error * stakes)
            for total, part in ((self.error, wrong), (self.cost, cost)):
                np.add.at(total.T, step.node, (part * step.share).T)
        if options.by_branch:
            self._race_among_branches(options)

    def _race_among_branches(self, options: Options) -> None:
        """A margin takes fewer answers where some have no branch."""
        self.cost[:] = 0.0
        for step in self.tree.steps:
            for node in np.unique(step.node).tolist():
                here = step.node == node
                cost = options.branching_at(self.tree, node).cost[:, step.cls[here]]
                self.cost[:, node] += cost @ step.share[here]

    def at(self, price: float) -> Priced:
        """Best votes at a price: each node is optimised independently."""
        return self.with_votes(np.argmin(self.error + price * self.cost, axis=0), price)

    def with_votes(self, option: NDArray[np.intp], price: float) -> Priced:
        """Error and cost of given votes."""
        error, cost = (float(part[option, self._nodes].sum()) for part in (self.error, self.cost))
        return Priced(self.tree, option, error, cost, price)

    @cached_property
    def _nodes(self) -> NDArray[np.intp]:
        return np.arange(self.tree.n_nodes)


Solver = Callable[[float, int, float | None], Priced]
"""Takes the price, the most sets of classes to search, and the seconds left."""


def exact_solver(
    options: Options,
    memory_limit: float,
    progress: Callable[[], None] | None = None,
    *,
    limited: bool = False,
) -> Solver:
    """Make the proven solver: branch and bound over questions and votes at once.

    A small problem is tabulated as a whole, unless the sets to search are `limited`.
    """
    problem = options.problem
    from crowdtree.designs.designers import exact

    # A table of all sets is enough where there are few classes, and quicker to make.
    memory = int(min(memory_limit, 128 * 2.0 ** min(problem.n_classes, 40) + 1e6))

    whole = not limited and exact.is_tabulated(problem.outcome)

    def solve(price: float, node_limit: int, seconds: float | None) -> Priced:
        total, first = options.priced(price)
        found = exact.solve_additive(
            problem.outcome,
            total,
            problem.prior,
            time_limit=seconds,
            node_limit=None if whole else node_limit,
            memory_limit_bytes=memory,
            progress=None if progress is None else lambda *_: progress(),
        )
        shape = found.question.astype(np.int32), found.children.astype(np.int32)
        tree = Tree(problem, *shape, "optimal")
        option = first[found.question] + found.variant
        plan = Staffed(tree, options).with_votes(option, price)
        return replace(plan, lower_bound=found.lower_bound, status=found.status, sets=found.nodes)

    if not whole:
        solve(1 / float(options.price.mean()), 1, None)  # compiles the search
    return solve


def greedy_trees(options: Options) -> Iterator[Tree]:
    """Yield trees that are designed without any search; the paper's ``fm`` is not among them."""
    for name in DESIGNS:
        yield design(options.problem, name, allow_groups=True)
    for price in GREEDY_PRICES / options.price.mean():
        yield _greedy_tree(options, float(price))


def _greedy_tree(options: Options, price: float) -> Tree:
    """Level-greedy tree for a price.

    The price enters through a problem whose worker error is the best error-plus-price of a cell
    (scaled: the choice depends on ratios alone). Nothing is proven.
    """
    cell = options.least(price)
    plain = {} if options.problem.is_yes_no else {"table": None, "unsure": None}
    scale = (0.02 if plain else 0.49) / cell.max()  # far from errors that votes cannot mend
    scaled = options.problem.replace(worker_error=scale * cell, **plain)
    shape = design(scaled, "fm", allow_groups=True)
    return Tree(options.problem, shape.question, shape.children, "fm at a price")


def more_votes(
    tree: Tree, options: Options, fits: Callable[[NDArray[np.int64]], bool]
) -> Iterator[NDArray[np.int64]]:
    """Yield more and more votes, one step at a time where the error falls most per cost.

    Starts with the fewest. A step that does not fit is left out, and the others go on. With several
    answers a step may be of several votes, to the next corner of the error's convex envelope.
    """
    staffed = Staffed(tree, options)
    error, cost = staffed.error, staffed.cost
    option = np.zeros(tree.n_nodes, dtype=np.intp)
    if not fits(options.votes[option]):
        return
    yield options.votes[option]

    def step(node: int) -> tuple[float, int, int]:
        """Fall of the error per cost, the node, and the steps to take at once."""
        here = option[node]
        most = here + 2 if options.problem.is_yes_no else len(options.votes)  # falls may grow
        fall = error[here, node] - error[here + 1 : most, node]
        if not len(fall):
            return 0.0, node, 1
        rate = fall / (cost[here + 1 : most, node] - cost[here, node])
        best = int(np.argmax(rate))
        return -float(rate[best]), node, best + 1

    heap = [step(node) for node in range(tree.n_nodes)]
    heapq.heapify(heap)
    while heap:
        gain, node, steps = heapq.heappop(heap)
        if gain >= 0:
            return
        option[node] += steps
        if fits(options.votes[option]):
            yield options.votes[option]
            heapq.heappush(heap, step(node))
        else:
            option[node] -= steps
