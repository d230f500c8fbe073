"""Search of all trees and votes for the cheapest plan of some error, or the best of some cost.

The frontier holds the corners of a convex hull; between two of them a plan may lie that is better
than what the corners offer at one error or one cost. This search looks at every tree and every
choice of votes, in what a user gets: exact misclassification and expected cost, wrong turns
included. It leaves out what a lower bound excludes.

The bound is Lagrangian. Items of class `i` that have taken no wrong turn lose
``sum_j R_j (e_j + price x cost_j)`` along their path, where ``R_j`` is the share of them that gets
to the j-th question. So the least sum over all plans for a set of classes is at least ``V(S)``::

    V(S) = min over questions and votes of
           sum_{i in S} p_i (e_i + price x cost_i) + (1 - max_i e_i) (V(S_0) + V(S_1))

and at least ``c V(S)`` for items whose shares are at least ``c`` times the prior.
"""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdtree.fixed_plan import Plan
from crowdtree.frontiers.vote_options import Options
from crowdtree.problem import DASH, Problem
from crowdtree.tree import Tree

__all__ = ["AllPlans", "Limits", "Result", "is_searchable", "least_index"]

FloatArray = NDArray[np.float64]
MAX_CELLS = 5_000_000
"""Cells of (set of classes, question, votes) up to which all plans are searched."""
MAX_EXPANSIONS = 6_000
"""Partial plans that are continued before the search gives up."""
PRICES = np.geomspace(1e2, 1e-7, 128)
"""Prices, relative to the mean price of an answer, among which the best bound is looked for."""
AROUND = np.array([1.0, 0.25, 4.0])
"""Prices at which partial plans are bounded, relative to the one of the best bound."""
SAME = 1e-9
TINY = 1e-300
"""What makes a limit stricter that is 0."""


class Limits(NamedTuple):
    """What a plan must keep: an error and a cost, of which the other one is to be minimised."""

    error: float
    cost: float
    least: str
    """What is minimised: ``"cost"`` or ``"error"``."""

    def tightened(self, error: float, cost: float) -> Limits:
        """Limits that only a better plan than this one keeps."""
        if self.least == "cost":
            return self._replace(cost=cost * (1 - SAME))
        return self._replace(error=error * (1 - SAME) - TINY)


class Result(NamedTuple):
    """The best plan that was found, if any, and a proven lower bound of what is minimised.

    `complete` says that no plan is better than the best one (that was known before, if `plan` is
    ``None``), up to rounding.
    """

    plan: Plan | None
    lower_bound: float
    complete: bool


class _Open(NamedTuple):
    """A node without a question: its set, and the share of items of each class that get there."""

    set: int
    reach: FloatArray
    bound: FloatArray
    parent: int
    side: int


class _Partial(NamedTuple):
    """A plan some of whose nodes still lack a question."""

    error: float
    cost: float
    nodes: tuple[tuple[int, int, int, int], ...]
    """Question, option, parent and side of the nodes so far."""
    open: tuple[_Open, ...]


class _Children(NamedTuple):
    """Ways to continue a partial plan: one row per question and votes of its first open node."""

    question: NDArray[np.intp]
    option: NDArray[np.intp]
    error: FloatArray
    cost: FloatArray
    bound: FloatArray
    complete: NDArray[np.bool_]

    def choice(self, row: int) -> tuple[int, int]:
        """Question and option of a row."""
        return int(self.question[row]), int(self.option[row])


def is_searchable(problem: Problem) -> bool:
    """Whether the claims of the search can be made: 0/1 loss, and ``-`` means inapplicable."""
    either = problem.dash == "either" and bool((problem.outcome == DASH).any())
    return problem.loss is None and not either


class _Sets:
    """Sets of classes that questions can make, with what each question makes of them."""

    def __init__(self, problem: Problem, most: float) -> None:
        n, m = problem.n_classes, problem.n_questions
        bits = [1 << c for c in range(n)]
        yes, dash = (
            [sum(b for b, cell in zip(bits, row, strict=True) if cell == value) for row in table]
            for table, value in ((problem.outcome.tolist(), 1), (problem.outcome.tolist(), DASH))
        )
        index = {(1 << n) - 1: 0}
        keys = [(1 << n) - 1]
        parts: list[list[tuple[int, int]]] = []
        for key in keys:
            row = []
            for q in range(m):
                one = key & yes[q]
                if key & dash[q] or not one or one == key:
                    row.append((-1, -1))
                    continue
                for part in (key ^ one, one):
                    if part not in index:
                        index[part] = len(keys)
                        keys.append(part)
                row.append((index[key ^ one], index[one]))
            parts.append(row)
            if len(keys) > most:
                break
        self.too_many = len(keys) > most
        if self.too_many:
            return
        self.member = np.array([[bool(key & bit) for bit in bits] for key in keys])
        self.child = np.array(parts).reshape(len(keys), m, 2)
        self.asks = self.child[:, :, 0] >= 0
        self.leaf: NDArray[np.bool_] = np.asarray(~self.asks.any(axis=1))
        size = self.member.sum(axis=1)
        self.by_size = [np.flatnonzero((size == s) & ~self.leaf) for s in range(2, n + 1)]
        prior = np.where(self.member, problem.prior, 0.0)
        self.label = prior.argmax(axis=1)
        self.group_error = prior.sum(axis=1) - prior.max(axis=1)


class AllPlans:
    """All plans of a problem by one kind of vote; :meth:`search` finds the best one."""

    def __init__(self, options: Options) -> None:
        self.options, self.problem = options, options.problem
        self._known: dict[float, FloatArray] = {}
        each = options.problem.n_questions * len(options.votes)
        self.sets = _Sets(options.problem, MAX_CELLS / each)
        if self.sets.too_many:
            return
        definite = self.problem.outcome != DASH
        self.error = options.error.transpose(1, 0, 2)  # question, option, class
        self.cost = options.cost.transpose(1, 0, 2)
        self.yes = np.array([options.yes(q) for q in range(self.problem.n_questions)])
        worst = np.where(definite, self.problem.worker_error, 0.0)
        if (worst > 0.5).any():  # a vote may make these worse: take the largest fused error
            self._worst = np.broadcast_to(
                self.error.max(axis=2), (len(self.sets.member), *self.error.shape[:2])
            )
        else:
            place = np.where(self.sets.member[:, None, :], worst[None], -1.0).argmax(axis=2)
            question = np.arange(self.problem.n_questions)
            self._worst = self.error[question[None, :], :, place]
        share = np.where(self.sets.member, self.problem.prior, 0.0)
        # einsum, because threads of a matrix product cost more than they save at this size
        self._set_error, self._set_cost = (
            np.einsum("sc,qvc->sqv", share, cell) for cell in (self.error, self.cost)
        )
        self._cheapest = np.where(self.sets.asks, options.price[None, :], np.inf).min(axis=1)
        self._cheapest[self.sets.leaf] = 0.0

    @property
    def too_many(self) -> bool:
        """Whether there are too many sets of classes for the search."""
        return self.sets.too_many

    def least(self, price: float) -> FloatArray:
        """Lower bound ``V(S)`` of ``misclassification + price x cost`` of every set."""
        found = self._known.get(price)
        if found is None:
            found = self._known[price] = self._least(price)
        return found

    def _least(self, price: float) -> FloatArray:
        sets = self.sets
        value = np.where(sets.leaf, sets.group_error, 0.0)
        for rows in sets.by_size:
            if not len(rows):
                continue
            below = value[sets.child[rows]].sum(axis=2)
            own = self._set_error[rows] + price * self._set_cost[rows]
            own += (1 - self._worst[rows]) * below[:, :, None]
            own[~sets.asks[rows]] = np.inf
            value[rows] = own.min(axis=(1, 2))
        return value

    def _bound_at(self, limits: Limits, price: float, value: float) -> float:
        """Bound of what is minimised that follows from the least sum at a price."""
        if limits.least == "cost":
            return (value - limits.error) / price
        return value - price * limits.cost

    def search(
        self,
        limits: Limits,
        *,
        max_expansions: int = MAX_EXPANSIONS,
        deadline: float = np.inf,
    ) -> Result:
        """Find the best plan within limits, best bound first.

        Parameters
        ----------
        limits
            What to keep and what to minimise; the best value known so far is the limit of what is
            minimised.
        max_expansions, deadline
            Partial plans to continue, and the time (of :func:`time.monotonic`), after which the
            search ends with a bound.
        """
        prices = PRICES / self.options.price.mean()

        def bound(index: int) -> float:
            price = float(prices[index])
            return -self._bound_at(limits, price, float(self.least(price)[0]))

        self._price = prices[least_index(bound, 0, len(prices) - 1)] * AROUND
        self._value = np.array([self.least(p) for p in self._price]).T  # set, price
        return self._branch(limits, max_expansions, deadline)

    def _branch(self, limits: Limits, max_expansions: int, deadline: float) -> Result:
        best: Plan | None = None
        least = limits
        prior = self.problem.prior
        root = _Open(0, prior, self._value[0], -1, 0)
        start = _Partial(0.0, 0.0, (), (root,))
        order = itertools.count()
        key = self._bound_at(limits, self._price[0], float(root.bound[0]))
        heap: list[tuple[float, int, _Partial, int, int]] = []
        waiting: list[tuple[float, _Partial]] = [(key, start)]
        expanded = 0
        while waiting or heap:
            if waiting:
                bound, partial = waiting.pop()
            else:
                bound, _, before, question, option = heapq.heappop(heap)
                if bound >= self._limit(least):
                    heap.clear()
                    break
                partial = self._extended(before, question, option)
            if expanded >= max_expansions or time.monotonic() >= deadline:
                return Result(best, bound, complete=False)
            expanded += 1
            found = self._children(partial, least)
            for row in np.flatnonzero(found.complete).tolist():
                error, cost = float(found.error[row]), float(found.cost[row])
                if error <= least.error and cost <= least.cost:
                    best = self._plan(self._extended(partial, *found.choice(row)))
                    least = limits.tightened(error, cost)
            top = least.error + self._price * least.cost
            for row in np.flatnonzero(~found.complete & (found.bound < top).all(axis=1)).tolist():
                key = self._bound_at(least, self._price[0], float(found.bound[row, 0]))
                heapq.heappush(heap, (key, next(order), partial, *found.choice(row)))
        return Result(best, self._limit(least), complete=True)

    @staticmethod
    def _limit(limits: Limits) -> float:
        return limits.cost if limits.least == "cost" else limits.error

    def _children(self, partial: _Partial, limits: Limits) -> _Children:
        """Bound every question and vote at the first open node that may keep the limits."""
        here, rest = partial.open[0], partial.open[1:]
        sets, prior = self.sets, self.problem.prior
        member = sets.member[here.set]
        asked = np.flatnonzero(sets.asks[here.set])
        errors = partial.error + self.error[asked] @ np.where(member, here.reach, 0.0)
        costs = partial.cost + self.cost[asked] @ here.reach
        row, option = np.nonzero((errors <= limits.error) & (costs <= limits.cost))
        question, error, cost = asked[row], errors[row, option], costs[row, option]
        bound = np.zeros((len(row), len(self._price)))
        complete: NDArray[np.bool_] = np.full(len(row), not rest)
        yes = self.yes[question, option]
        for side, share in ((0, 1 - yes), (1, yes)):
            child = sets.child[here.set, question, side]
            reach, inside = here.reach * share, sets.member[child]
            within = np.where(inside, reach, 0.0)
            leaf = sets.leaf[child]
            group = within.sum(axis=1) - reach[np.arange(len(row)), sets.label[child]]
            error = error + np.where(leaf, group, 0.0)
            ratio = np.where(inside, reach / prior, np.inf).min(axis=1)
            outside = (reach.sum(axis=1) - within.sum(axis=1)) * self._cheapest[child]
            bound += np.where(
                leaf[:, None],
                0.0,
                ratio[:, None] * self._value[child] + outside[:, None] * self._price,
            )
            complete &= leaf
        bound += error[:, None] + self._price * cost[:, None]
        for node in rest:
            bound += node.bound
        return _Children(question, option, error, cost, bound, complete)

    def _extended(self, partial: _Partial, question: int, option: int) -> _Partial:
        """Give the first open node a question and votes."""
        here, rest = partial.open[0], partial.open[1:]
        sets, prior = self.sets, self.problem.prior
        number = len(partial.nodes)
        nodes = (*partial.nodes, (question, option, here.parent, here.side))
        member = sets.member[here.set]
        error = partial.error + float(self.error[question, option][member] @ here.reach[member])
        cost = partial.cost + float(self.cost[question, option] @ here.reach)
        yes = self.yes[question, option]
        new = []
        for side, share in ((0, 1 - yes), (1, yes)):
            child = int(sets.child[here.set, question, side])
            reach = here.reach * share
            inside = sets.member[child]
            if sets.leaf[child]:
                error += float(reach[inside].sum() - reach[sets.label[child]])
                continue
            ratio = float((reach[inside] / prior[inside]).min())
            bound = ratio * self._value[child]
            bound = bound + self._price * float(reach[~inside].sum() * self._cheapest[child])
            new.append(_Open(child, reach, bound, number, side))
        return _Partial(error, cost, nodes, (*rest, *new))

    def _plan(self, partial: _Partial) -> Plan:
        """A complete plan; nodes are numbered level by level."""
        below: dict[tuple[int, int], int] = {
            (parent, side): number for number, (_, _, parent, side) in enumerate(partial.nodes)
        }
        order = [0]
        for number in order:
            order += [below[number, side] for side in (0, 1) if (number, side) in below]
        place = {number: k for k, number in enumerate(order)}
        children = [
            [place[below[number, s]] if (number, s) in below else -1 for s in (0, 1)]
            for number in order
        ]
        question = [partial.nodes[number][0] for number in order]
        option = [partial.nodes[number][1] for number in order]
        tree = Tree(
            self.problem,
            np.array(question, dtype=np.int32),
            np.array(children, dtype=np.int32),
            "searched",
        )
        return Plan(tree, self.options.votes[option], self.options.vote, "all plans searched")


def least_index(value: Callable[[int], float], low: int, high: int) -> int:
    """Index of the least value between two indices, for values that fall and then rise.

    >>> least_index(lambda k: abs(k - 37.2), 0, 100)
    37
    """
    known: dict[int, float] = {}

    def at(index: int) -> float:
        if index not in known:
            known[index] = value(index)
        return known[index]

    while high - low > 3:
        step = round(0.382 * (high - low))
        left, right = low + step, high - step
        if left >= right:
            left, right = low + (high - low) // 2, low + (high - low) // 2 + 1
        low, high = (low, right) if at(left) <= at(right) else (left, high)
    return min(range(low, high + 1), key=at)
