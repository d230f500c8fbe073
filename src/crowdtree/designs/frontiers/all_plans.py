"""Search of all trees and votes for the cheapest plan of some error, or the best of some cost.

Between two corners of the frontier's convex hull a plan may lie that is better at one error or one
cost. This search looks at every tree and every choice of votes, in what a user gets: exact
misclassification and expected cost. It leaves out what a Lagrangian lower bound excludes. Items of
class `i` without a wrong turn lose ``sum_j R_j (e_j + price x cost_j)`` along their path, where
``R_j`` is the share of them that gets to the j-th question, so all plans for a set lose at least::

    V(S) = min over questions and votes of
           sum_{i in S} p_i (e_i + price x cost_i) + (1 - max_i e_i) sum_a V(S_a)

and ``c V(S)`` for items whose shares are at least ``c`` times the prior. With several right answers
a class is in several parts, and the least ratio of the items that a vote sends to a part stands in
place of ``1 - max_i e_i``.
"""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.arrays import FloatArray
from crowdtree.core.fixed_plan import Plan
from crowdtree.core.problem import DASH, Problem
from crowdtree.core.tree import NO_BRANCH, Tree
from crowdtree.designs.frontiers.class_sets import ClassSets
from crowdtree.designs.frontiers.vote_options import Options

MAX_CELLS = 5_000_000
"""Cells of (set of classes, question, votes) up to which all plans are searched."""
MAX_SEVERAL_CELLS = 1_000_000
"""The same where questions have several answers, for which more has to be computed."""
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
    """Whether the claims of the search can be made.

    Requires 0/1 loss and, where all questions are yes/no, that ``-`` means inapplicable.
    """
    either = problem.dash == "either" and bool((problem.outcome == DASH).any())
    return problem.loss is None and not (either and problem.is_yes_no)


class AllPlans:
    """All plans of a problem by one kind of vote; :meth:`search` finds the best one."""

    def __init__(self, options: Options) -> None:
        self.options, self.problem = options, options.problem
        self._known: dict[float, FloatArray] = {}
        each = options.problem.n_questions * len(options.votes)
        several = not options.problem.is_yes_no
        most = MAX_SEVERAL_CELLS if several else MAX_CELLS
        self.sets = ClassSets(options.problem, most / each)
        if self.sets.too_many:
            return
        self._share = np.where(self.sets.member, self.sets.share, 1.0)
        self._cheapest = np.where(self.sets.asks, options.price[None, :], np.inf).min(axis=1)
        self._cheapest[self.sets.leaf] = 0.0
        if several:
            self._sum_several()
        else:
            self._sum_alike()

    def _sum_alike(self) -> None:
        """Tables of the bound where a vote does the same wherever it is taken."""
        options = self.options
        definite = self.problem.outcome != DASH
        self.error = options.error.transpose(1, 0, 2)  # question, option, class
        self.cost = options.cost.transpose(1, 0, 2)
        questions = range(self.problem.n_questions)
        self.chance = np.array([options.verdicts(q) for q in questions])  # and as `verdicts`
        worst = np.where(definite, self.problem.worker_error, 0.0)
        if (worst > 0.5).any():  # a vote may make these worse: take the largest fused error
            lost = np.broadcast_to(
                self.error.max(axis=2), (len(self.sets.member), *self.error.shape[:2])
            )
        else:
            place = np.where(self.sets.member[:, None, :], worst[None], -1.0).argmax(axis=2)
            question = np.arange(self.problem.n_questions)
            lost = self.error[question[None, :], :, place]
        self._kept = 1 - lost
        # einsum, because threads of a matrix product cost more than they save at this size
        self._set_error, self._set_cost = (
            np.einsum("sc,qvc->sqv", self.sets.share, cell) for cell in (self.error, self.cost)
        )

    def _sum_several(self) -> None:
        """Tables of the bound where a vote depends on the branches of its node."""
        sets, right = self.sets, self.problem.right
        ways = right.sum(axis=0)
        shape = (len(sets.share), self.problem.n_questions, len(self.options.votes))
        self._set_error, self._set_cost, self._kept = (np.zeros(shape) for _ in range(3))
        for place, question in np.argwhere(sets.asks).tolist():
            answers, usual = sets.branches(place, question)
            made = self.options.branching(question, answers, usual)
            self._set_error[place, question] = made.error @ sets.share[place]
            self._set_cost[place, question] = made.cost @ sets.share[place]
            stays = right[list(answers), question] & sets.member[place]
            kept = np.where(stays, made.chance * ways[question], np.inf)
            self._kept[place, question] = kept.min(axis=(1, 2))

    def _votes_at(
        self, place: int, asked: NDArray[np.intp]
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Chance of each answer, error and cost of votes on some questions about a set."""
        if self.problem.is_yes_no:
            return self.chance[asked], self.error[asked], self.cost[asked]
        shape = (len(asked), len(self.options.votes), *self.sets.child.shape[2:])
        chance = np.zeros((*shape, self.problem.n_classes))
        rows = []
        for row, question in enumerate(asked.tolist()):
            answers, usual = self.sets.branches(place, question)
            rows.append(self.options.branching(question, answers, usual))
            chance[row][:, list(answers)] = rows[-1].chance
        error, cost = (np.array([getattr(r, name) for r in rows]) for name in ("error", "cost"))
        return chance, error, cost

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
            child = sets.child[rows]
            below = np.where(child >= 0, value[child], 0.0).sum(axis=2)
            own = self._set_error[rows] + price * self._set_cost[rows]
            own += self._kept[rows] * below[:, :, None]
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

        The best value known is the limit of what is minimised. After `max_expansions` partial
        plans, or the `deadline` (of :func:`time.monotonic`), the search ends with a bound.
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
        root = _Open(0, self.problem.prior, self._value[0], -1, 0)
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
        sets = self.sets
        member = sets.member[here.set]
        asked = np.flatnonzero(sets.asks[here.set])
        chance, own_error, own_cost = self._votes_at(here.set, asked)
        errors = partial.error + own_error @ np.where(member, here.reach, 0.0)
        costs = partial.cost + own_cost @ here.reach
        good = (errors <= limits.error) & (costs <= limits.cost)
        row, option = np.nonzero(good & self.options.usable.T[asked])
        question, error, cost = asked[row], errors[row, option], costs[row, option]
        bound = np.zeros((len(row), len(self._price)))
        complete: NDArray[np.bool_] = np.full(len(row), not rest)
        for side in range(sets.child.shape[2]):
            child = sets.child[here.set, question, side]
            reach, inside = here.reach * chance[row, option, side], sets.member[child]
            within = np.where(inside, reach, 0.0)
            leaf = sets.leaf[child] | (child < 0)
            group = within.sum(axis=1) - reach[np.arange(len(row)), sets.label[child]]
            error = error + np.where(leaf & (child >= 0), group, 0.0)
            ratio = np.where(inside, reach / self._share[child], np.inf).min(axis=1)
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
        sets = self.sets
        number = len(partial.nodes)
        nodes = (*partial.nodes, (question, option, here.parent, here.side))
        member = sets.member[here.set]
        chance, own_error, own_cost = (
            table[0, option] for table in self._votes_at(here.set, np.array([question]))
        )
        error = partial.error + float(own_error[member] @ here.reach[member])
        cost = partial.cost + float(own_cost @ here.reach)
        new = []
        for side, child in enumerate(sets.child[here.set, question].tolist()):
            if child < 0:
                continue
            reach = here.reach * chance[side]
            inside = sets.member[child]
            if sets.leaf[child]:
                error += float(reach[inside].sum() - reach[sets.label[child]])
                continue
            ratio = float((reach[inside] / sets.share[child][inside]).min())
            bound = ratio * self._value[child]
            bound = bound + self._price * float(reach[~inside].sum() * self._cheapest[child])
            new.append(_Open(child, reach, bound, number, side))
        return _Partial(error, cost, nodes, (*rest, *new))

    def _plan(self, partial: _Partial) -> Plan:
        """A complete plan; nodes are numbered level by level."""
        below: dict[tuple[int, int], int] = {
            (parent, side): number for number, (_, _, parent, side) in enumerate(partial.nodes)
        }
        sides = range(self.sets.child.shape[2])
        order = [0]
        for number in order:
            order += [below[number, side] for side in sides if (number, side) in below]
        place = {number: k for k, number in enumerate(order)}
        at = [0] * len(order)  # set of each node; parents come first
        for number, (_, _, parent, side) in enumerate(partial.nodes[1:], start=1):
            at[number] = int(self.sets.child[at[parent], partial.nodes[parent][0], side])
        children = [
            [
                place[below[number, side]]
                if (number, side) in below
                else (
                    -1
                    if self.sets.child[at[number], partial.nodes[number][0], side] >= 0
                    else NO_BRANCH
                )
                for side in sides
            ]
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
