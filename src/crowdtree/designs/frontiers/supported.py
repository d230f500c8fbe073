"""The curve of least ``additive error + price x planned cost``, and what is proven about it.

Every tree that was found stays in a pool. The curve is the lower hull of all plans of the pool, so
a tree that was found at one price improves the curve at every other. A plan below an edge of the
hull is looked for in the pool first, and only then by a search that proves a lower bound.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

import numpy as np

from crowdtree.core.arrays import FloatArray
from crowdtree.core.tree import Tree
from crowdtree.designs.frontiers.priced_search import Priced, Solver, Staffed
from crowdtree.designs.frontiers.vote_options import Options

Report = Callable[[int, float, float], None]

HIGHEST_PRICE, LEAST_PRICE = 1e4, 1e-6
SLACK = 1e-10
PROVEN = 1e-9
"""Relative gap that is rounding alone."""
RESOLUTION = 0.03
"""Logarithm of the ratio of neighbouring errors below which a first curve is fine enough; more
above 200 classes."""
COARSE = 0.3
"""The same after the time limit."""
FINE_FROM = 1e-3
"""Gap from which on every point is looked for."""
FIRST_BUDGET = 2_000
"""Sets of classes that the first search may go through."""
SHARE = 0.25
"""Share of all work so far that one search may take."""
MAX_SETS = int(np.iinfo(np.int64).max)


class Placed(Protocol):
    """Something with an error and a cost."""

    @property
    def error(self) -> float:
        """Expected error per item."""

    @property
    def cost(self) -> float:
        """Expected cost per item."""


AnyPlaced = TypeVar("AnyPlaced", bound=Placed)


class Bound:
    """Proven lower bound of ``error + price x cost`` over all plans, as a function of the price.

    The least value over all plans is a concave function of the price that never falls and is not
    negative at 0, so the upper hull of proven values, started at (0, 0), is a bound everywhere.
    """

    def __init__(self) -> None:
        self.price = np.zeros(1)
        self.value = np.zeros(1)

    def add(self, price: float, value: float) -> None:
        """Add a value that was proven at a price."""
        knots = [*zip(self.price.tolist(), self.value.tolist(), strict=True), (price, value)]
        hull: list[tuple[float, float]] = []
        for x, y in sorted(knots, key=lambda knot: (knot[0], -knot[1])):
            if hull and x == hull[-1][0]:
                continue
            while len(hull) > 1 and _slope(hull[-2], hull[-1]) <= _slope(hull[-1], (x, y)):
                hull.pop()
            hull.append((x, y))
        self.price, self.value = np.array(hull).T

    def at(self, price: FloatArray) -> FloatArray:
        """The bound at some prices."""
        return np.interp(price, self.price, np.maximum.accumulate(self.value))

    def gap(self, plan: Priced) -> float:
        """Least relative distance of a plan from the bound over all prices: 0 if it is optimal."""
        if len(self.price) == 1:
            return 1.0
        value = plan.error + self.price[1:] * plan.cost
        left = float(np.min((value - self.value[1:]) / value))
        return left if left > PROVEN else 0.0


def _slope(left: tuple[float, float], right: tuple[float, float]) -> float:
    return (right[1] - left[1]) / (right[0] - left[0])


class Curve:
    """The curve so far: plans on the lower hull, the trees that they may use, and the bound."""

    def __init__(
        self,
        options: Options,
        *,
        max_points: int,
        deadline: float = np.inf,
        report: Report | None = None,
    ) -> None:
        self.options = options
        self.max_points = max_points
        self.deadline = deadline
        self.bound = Bound()
        self.points: list[Priced] = []
        self.pool: list[Staffed] = []
        self.ended = "optimal"
        self.resolution = RESOLUTION * max(1.0, options.problem.n_classes / 200)
        self._ends = [limit / float(options.price.mean()) for limit in (HIGHEST_PRICE, LEAST_PRICE)]
        self._report = report
        self._known: set[bytes] = set()
        self._compared: dict[float, int] = {}
        self._searched: dict[float, int] = {}

    @property
    def late(self) -> bool:
        """Whether the time is over."""
        return time.monotonic() >= self.deadline

    def add(self, tree: Tree) -> None:
        """Put a tree into the pool."""
        key = tree.question.tobytes() + tree.children.tobytes()
        if key not in self._known:
            self._known.add(key)
            self.pool.append(Staffed(tree, self.options))

    def best(self, price: float, count: int = 1, since: int = 0) -> list[Priced]:
        """Best plans of the pool at a price, one per tree."""
        plans = [staffed.at(price) for staffed in self.pool[since:]]
        return sorted(plans, key=lambda plan: plan.at(price))[:count]

    def update(self, resolution: float = 0.0) -> None:
        """Lower the hull by the plans of the pool, until none lies below it.

        Edges whose errors differ by less than `resolution` (as a logarithm) are left alone; after
        the time limit, the curve is only made fine enough to be used.
        """
        if not self.points:
            self.points = lower_hull(self.best(price)[0] for price in self._ends)
        while len(self.points) < self.max_points:
            found = []
            for price, value, ratio in self._edges():
                since = self._compared.get(price, 0)
                if since == len(self.pool) or ratio < resolution or (self.late and ratio < COARSE):
                    continue
                self._compared[price] = len(self.pool)
                plan = self.best(price, since=since)[0]
                if plan.at(price) < value * (1 - SLACK):
                    found.append(plan)
            if not found:
                return
            self._insert(found)

    def _insert(self, plans: Iterable[Priced]) -> None:
        for plan in plans:  # one by one: a point must not be lost to those that exceed the limit
            points = lower_hull([*self.points, plan])
            if len(points) <= self.max_points:
                self.points = points

    def _edges(self) -> list[tuple[float, float, float]]:
        """Price, value on the hull and logarithm of the ratio of errors of every edge.

        The ends of the curve count as edges without an end of their own.
        """
        first, last = self.points[0], self.points[-1]
        high, low = self._ends
        edges = [(high, first.at(high), np.inf)]
        for left, right in zip(self.points, self.points[1:], strict=False):
            price = (left.error - right.error) / (right.cost - left.cost)
            ratio = np.log(left.error / max(right.error, 1e-300))
            edges.append((float(f"{price:.12e}"), left.at(price), ratio))
        edges.append((low, last.at(low), np.inf))
        return edges

    @property
    def gaps(self) -> FloatArray:
        """Relative distance of the hull from the bound at every edge."""
        price, value, _ = np.array(self._edges()).T
        gap = (value - self.bound.at(price)) / value
        return np.where(gap > PROVEN, gap, 0.0)

    @property
    def gap(self) -> float:
        """Largest distance of the curve from the proven bound, relative to its value."""
        return float(self.gaps.max())

    def report(self) -> None:
        """Tell what has been reached: points, share of the edges that are proven, and the gap."""
        if self._report is not None:
            gaps = self.gaps
            self._report(len(self.points), float(np.mean(gaps == 0)), float(gaps.max()))

    def refine(self, solve: Solver, node_limit: int | None = None) -> None:
        """Search where the gap is largest, until every edge is proven or a limit is reached.

        What a proof takes is learned on the way: a search that ends without one doubles the
        budget of the next, up to a share of all work so far, so that no price holds up the others.
        """
        most = node_limit or MAX_SETS
        budget, spent = min(FIRST_BUDGET, most), 0
        while True:
            self.update(self.resolution if self.gap > FINE_FROM else 0.0)
            price = self._next(budget)
            if price is None and budget < most and self._next(most) is not None:
                budget = min(2 * budget, most)
                continue
            if price is None:
                self.ended = "optimal" if self._next(MAX_SETS) is None else "node limit"
                return
            if self.late:
                self.ended = "time limit"
                return
            left = None if self.deadline == np.inf else self.deadline - time.monotonic()
            found = solve(price, budget, left)
            self._learn(found, budget)
            self.report()
            spent += found.sets
            if found.status == "optimal":
                budget = max(FIRST_BUDGET, 2 * found.sets)
            elif found.status == "node limit":
                budget = max(FIRST_BUDGET, min(2 * budget, int(SHARE * spent)))
            else:
                self.ended = found.status
                return
            budget = min(budget, most)

    def _learn(self, found: Priced, budget: int) -> None:
        """Keep the tree and the bound of a search."""
        price = found.price
        self._searched[price] = MAX_SETS if found.status == "optimal" else budget
        self.bound.add(price, min(found.lower_bound, found.at(price)))
        self.add(found.tree)
        if len(self.points) >= self.max_points:  # no room beside the point it improves
            mine = [point for point in self.points if point.price == price]
            if mine and found.at(price) < mine[0].at(price) * (1 - SLACK):
                self.points = lower_hull(
                    found if point is mine[0] else point for point in self.points
                )

    def _next(self, budget: int) -> float | None:
        """Price of the edge with the largest gap, among those searched with less than half."""
        price, value, _ = np.array(self._edges()).T
        if len(self.points) >= self.max_points:  # edges may stay open, but points are proven
            price = np.array([point.price for point in self.points])
            value = np.array([point.at(point.price) for point in self.points])
        gap = (value - self.bound.at(price)) / value
        searched = np.array([self._searched.get(p, 0) for p in price.tolist()], dtype=np.float64)
        gap = np.where((gap > PROVEN) & (2 * searched <= budget), gap, 0.0)
        best = int(np.argmax(gap))
        return float(price[best]) if gap[best] > 0 else None

    @property
    def support(self) -> list[float]:
        """A price at which each point is the best of the curve."""
        price = np.array([price for price, _, _ in self._edges()])
        return [float(middle) for middle in np.sqrt(price[:-1] * price[1:])]


def lower_hull(plans: Iterable[AnyPlaced]) -> list[AnyPlaced]:
    """Keep the lower convex hull: no plan dominated, errors convex in the cost, cheapest first."""
    kept: list[AnyPlaced] = []
    for plan in sorted(plans, key=lambda plan: (plan.cost, plan.error)):
        if kept and plan.error >= kept[-1].error * (1 - SLACK):
            continue
        if kept and plan.cost <= kept[-1].cost * (1 + SLACK):
            kept.pop()
        while len(kept) > 1 and _above(kept[-2], kept[-1], plan):
            kept.pop()
        kept.append(plan)
    return kept


def _above(left: Placed, middle: Placed, right: Placed) -> bool:
    chord = left.error + (right.error - left.error) * (middle.cost - left.cost) / (
        right.cost - left.cost
    )
    return middle.error >= chord * (1 - SLACK)
