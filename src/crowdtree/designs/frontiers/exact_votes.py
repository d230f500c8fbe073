"""Votes chosen for what is shown: the exact misclassification and the expected cost.

The search minimises the additive error and the cost of the error-free path. An item may err twice,
and after a wrong turn it takes another path. Here the votes of a tree are chosen anew, one node at
a time with all others fixed, which is exact for the node and never makes a plan worse.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from functools import reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.arrays import FloatArray
from crowdtree.core.tree import NO_BRANCH, Tree
from crowdtree.designs.frontiers.priced_search import Priced, Staffed
from crowdtree.designs.frontiers.supported import Curve, lower_hull
from crowdtree.designs.frontiers.vote_options import KEPT_CELLS, Options

Choice = NDArray[np.intp]

MAX_SWEEPS = 6
MAX_CELLS = 1_000_000_000
"""Cells of (node, option, class) to go through for the points of one frontier."""
PRICES = 40
"""Prices at which trees other than that of the point are tried."""
RIVALS, RIVALS_AT_ENDS = 3, 12
"""Trees of the pool that are tried at a price."""
FEWEST = 20
"""Candidates that are tried even after the deadline, so that the curve can be used."""
AT_ONCE = 4_000_000
"""Cells of (plan, node, class) in memory at once."""


class Verdicts:
    """Probability of each branch but the first, and cost, of every option and class.

    A cost that is the same for all classes has one column.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._kept: dict[Any, tuple[list[FloatArray], FloatArray]] = {}
        self.cells = len(options.votes) * options.problem.n_classes

    def keys(self, tree: Tree) -> list[Any]:
        """What the votes of each node depend on: its question, branches and usual answer."""
        return [self._options.branches_at(tree, node) for node in range(tree.n_nodes)]

    def __getitem__(self, key: Any) -> tuple[list[FloatArray], FloatArray]:
        found = self._kept.get(key)
        if found is None:
            if len(self._kept) * self.cells > KEPT_CELLS:
                self._kept.clear()
            found = self._kept[key] = self._made(key)
        return found

    def _made(self, key: Any) -> tuple[list[FloatArray], FloatArray]:
        made = self._options.votes_at(*key)
        same = self._options.rule.always_all
        chances = np.ascontiguousarray(made.chance.transpose(1, 0, 2)[1:])
        return list(chances), made.cost[:, :1] if same else made.cost


class ExactVotes:
    """Several plans of one tree, with votes chosen for exact misclassification and expected cost.

    Votes are given as one row of options per plan.
    """

    def __init__(self, tree: Tree, verdicts: Verdicts) -> None:
        self._prior = tree.problem.prior
        self._classes = np.arange(tree.problem.n_classes)
        self._label = tree.leaf_label.tolist()
        self._keys = verdicts.keys(tree)
        self._children = [
            [child for child in row if child != NO_BRANCH] for row in tree.children.tolist()
        ]
        self._verdicts = verdicts

    def improve(self, option: Choice, price: FloatArray) -> Choice:
        """Choose the votes of each node in turn, from the leaves up, until none changes."""
        option = option.copy()
        open_ = np.arange(len(option))
        for _ in range(MAX_SWEEPS):
            better = self._sweep(option[open_], price[open_])
            changed = np.any(better != option[open_], axis=1)
            option[open_] = better
            open_ = open_[changed]
            if not len(open_):
                break
        return option

    def worth(self, option: Choice) -> tuple[FloatArray, FloatArray]:
        """Exact misclassification and expected cost of each plan."""
        reach = self._reach(option)
        lost = list(reach)
        paid = np.zeros(len(option))
        for node in reversed(range(len(reach))):
            others, cost = self._verdicts[self._keys[node]]
            votes = option[:, node]
            first, *rest = self._below(node, lost)
            lost[node] = first + _mixed(others, votes, [other - first for other in rest])
            paid += (reach[node] * cost[votes]).sum(axis=1)
        return lost[0] @ self._prior, paid

    def _below(self, node: int, inner: list[FloatArray]) -> list[FloatArray]:
        """What is to come on each branch of a node, by class; at a leaf, whether it is wrong."""
        return [
            inner[child]
            if child >= 0
            else (self._classes != self._label[~child]).astype(np.float64)[None, :]
            for child in self._children[node]
        ]

    def _reach(self, option: Choice) -> list[FloatArray]:
        """Share of items of each class that come to each node, wrong turns included."""
        everything = np.broadcast_to(self._prior, (len(option), len(self._prior)))
        reach = [everything] * len(self._keys)
        for node, children in enumerate(self._children):
            chances = self._verdicts[self._keys[node]][0]
            others = [reach[node] * chance[option[:, node]] for chance in chances]
            first = reach[node] - reduce(add, others)
            for child, part in zip(children, (first, *others), strict=True):
                if child >= 0:
                    reach[child] = part
        return reach

    def _sweep(self, option: Choice, price: FloatArray) -> Choice:
        reach = self._reach(option)
        chosen = option.copy()
        plans = np.arange(len(option))
        below = list(reach)  # errors and price to come, by class
        for node in reversed(range(len(reach))):
            here = reach[node]
            others, cost = self._verdicts[self._keys[node]]
            first, *rest = self._below(node, below)
            gaps = [other - first for other in rest]
            value = (here * first).sum(axis=1) + reduce(
                add, [chance @ (here * gap).T for chance, gap in zip(others, gaps, strict=True)]
            )
            if cost.shape[1] == 1:
                value += cost * (price * here.sum(axis=1))
            else:
                value += cost @ (here * price[:, None]).T
            best = np.argmin(value, axis=0)
            better = value[best, plans] < value[chosen[:, node], plans] * (1 - 1e-12)
            votes = chosen[:, node] = np.where(better, best, chosen[:, node])
            below[node] = first + _mixed(others, votes, gaps) + price[:, None] * cost[votes]
        return chosen


def _mixed(chances: list[FloatArray], votes: Choice, gaps: list[FloatArray]) -> FloatArray:
    """What the other branches add to the first, by their chances."""
    return reduce(add, [chance[votes] * gap for chance, gap in zip(chances, gaps, strict=True)])


class _Candidate(NamedTuple):
    """A plan, placed by its exact misclassification and expected cost."""

    cost: float
    error: float
    plan: Priced

    def at(self, price: float) -> float:
        """Misclassification plus expected cost at a price."""
        return self.error + price * self.cost


_Start = tuple[Priced, float]
"""A plan, and a price at which its votes are to be improved."""


def shown_plans(curve: Curve, designs: list[Tree], deadline: float = np.inf) -> list[Priced]:
    """Plans on the lower hull of exact misclassification and expected cost, cheapest first.

    Candidates are the points of the curve; at some prices the best trees of the pool and the
    designs, with votes chosen exactly; then, at the price of every point, the best of these with
    its votes chosen again. After the deadline no further candidate is tried.
    """
    staffed = {id(entry.tree): entry for entry in curve.pool}
    for point in curve.points:  # a search may find a tree of the pool again, as another object
        if id(point.tree) not in staffed:
            staffed[id(point.tree)] = Staffed(point.tree, curve.options)
    verdicts = Verdicts(curve.options)
    price = curve.support
    last = len(price) - 1
    starts: list[_Start] = []
    for place in sorted({round(i * last / PRICES) for i in range(PRICES + 1)}):
        plans = curve.best(price[place], RIVALS_AT_ENDS if place in (0, last) else RIVALS)
        plans += [staffed[id(t)].at(price[place]) for t in designs if id(t) in staffed]
        starts += [(plan, price[place]) for plan in {id(p.tree): p for p in plans}.values()]
    affordable = MAX_CELLS // (3 * verdicts.cells * curve.pool[0].tree.n_nodes)
    first = starts[: affordable // 2]
    points = [curve.points[place] for place in _coarse_to_fine(len(curve.points))]
    found: list[_Candidate] = []

    def add(starts: list[_Start]) -> None:
        nonlocal found
        made = list(found)
        for candidate in _candidates(starts, staffed, verdicts):
            made.append(candidate)
            if len(made) >= FEWEST and time.monotonic() >= deadline:
                break
        found = lower_hull(made)

    add([(point, 0.0) for point in points])
    if time.monotonic() < deadline:
        add(first)
    if time.monotonic() < deadline:
        add([(min(found, key=lambda c: c.at(at)).plan, at) for at in price[: affordable // 2]])
    return [candidate.plan for candidate in found]


def _coarse_to_fine(count: int) -> list[int]:
    """Places on a curve, so that those at the beginning are spread over all of it.

    >>> _coarse_to_fine(5)
    [0, 4, 2, 1, 3]
    """
    order = {0: None, count - 1: None}
    step = count - 1
    while len(order) < count:
        step = max(1, step // 2)
        order |= dict.fromkeys(range(0, count, step))
    return list(order)


def _candidates(
    starts: list[_Start], staffed: Mapping[int, Staffed], verdicts: Verdicts
) -> Iterator[_Candidate]:
    """Yield each plan with its votes chosen exactly for its price; at price 0, as it is."""
    by_tree: dict[int, list[_Start]] = {}
    for plan, price in starts:
        by_tree.setdefault(id(plan.tree), []).append((plan, price))
    for key, rows in by_tree.items():
        tree = staffed[key].tree
        votes = ExactVotes(tree, verdicts)
        many = max(1, AT_ONCE // (tree.n_nodes * tree.problem.n_classes))
        for start in range(0, len(rows), many):
            block = rows[start : start + many]
            option = np.array([plan.option for plan, _ in block])
            prices = np.array([price for _, price in block])
            improved = prices > 0
            option[improved] = votes.improve(option[improved], prices[improved])
            for row, error, cost in zip(option, *votes.worth(option), strict=True):
                yield _Candidate(float(cost), float(error), staffed[key].with_votes(row, 0.0))
