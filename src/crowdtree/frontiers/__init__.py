"""Co-design: the frontier of error against price (docs/model.md, section 8).

Questions and votes are chosen together: each price of an answer gives the plan that minimises
``additive error + price x expected answers``, and the plans of all prices are the frontier. For a
problem with a loss the additive risk takes the place of the additive error.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdtree.designers import design, refuse_groups
from crowdtree.designers.loss_search import MOST_SETS, LossSearch
from crowdtree.designers.optimal import check_limits
from crowdtree.errors import CrowdtreeError
from crowdtree.evaluation import Evaluation, evaluate
from crowdtree.frontiers.priced_search import (
    Priced,
    Solver,
    exact_solver,
    greedy_solver,
    more_votes,
)
from crowdtree.frontiers.vote_options import Options, question_prices
from crowdtree.plan import Plan, Vote
from crowdtree.problem import DASH, Problem
from crowdtree.staffing import staff
from crowdtree.text import percent
from crowdtree.tree import Tree

__all__ = ["Frontier", "Point", "frontier"]

HIGHEST_PRICE = 1e4
LEAST_PRICE = 1e-6
SLACK = 1e-10
INTERRUPTED = "interrupted"


@dataclass(frozen=True, eq=False)
class Point:
    """A plan on the frontier, with its error and cost and what is proven about them.

    `gap` is 0 where no plan has a smaller ``additive + price x cost`` at the prices of the
    neighbouring edges; `status` is ``"optimal"``, a limit of the search, or ``"greedy"``.
    """

    plan: Plan
    price: NDArray[np.float64]
    gap: float
    status: str

    @cached_property
    def value(self) -> Evaluation:
        """Everything about the plan."""
        return evaluate(self.plan)

    @property
    def misclassification(self) -> float:
        """Exact share of items that get a wrong label."""
        return self.value.misclassification

    @property
    def risk(self) -> float:
        """Exact expected loss per item; for 0/1 loss the misclassification."""
        return self.value.risk

    @property
    def additive(self) -> float:
        """Additive error: an upper bound of the misclassification."""
        return self.value.additive

    @property
    def planned_answers(self) -> float:
        """Expected answers per item on its error-free path: the cost of the frontier."""
        return self.value.planned_answers

    @property
    def expected_answers(self) -> float:
        """Expected answers per item, wrong turns included."""
        return self.value.expected_answers

    @property
    def undecided(self) -> float:
        """Share of items that are reported as undecided."""
        return self.value.undecided

    @property
    def decided_error(self) -> float:
        """Share of wrong labels among the items that are decided."""
        return self.value.decided_error

    def deciding(self, error: float) -> Point | None:
        """Leave the least certain leaves undecided, until the others err in at most this share.

        Leaves are taken by their share of wrong labels, largest first, so no choice of leaves
        leaves fewer items undecided, but for part of the last leaf. What would only tell undecided
        leaves apart is no longer asked. ``None`` where no leaf is good enough.
        """
        value = self.value
        if value.misclassification <= error:
            return self
        rate = value.leaf_wrong / np.maximum(value.leaf_share, 1e-300)
        order = np.argsort(rate, kind="stable")
        share, wrong = np.cumsum(value.leaf_share[order]), np.cumsum(value.leaf_wrong[order])
        kept = int(np.searchsorted(wrong / np.maximum(share, 1e-300), error, side="right"))
        plan = self.plan.leaving_undecided(order[kept:].tolist())
        return None if plan is None else replace(self, plan=plan, gap=np.nan, status="undecided")

    @cached_property
    def planned_cost(self) -> float:
        """Expected price per item on its error-free path."""
        total = 0.0
        for step in self.plan.tree.steps:
            price = self.price[self.plan.tree.question[step.node]]
            total += float((step.share * price) @ self.plan.answers_at(step.node, step.cls))
        return total

    @cached_property
    def expected_cost(self) -> float:
        """Expected price per item, wrong turns included."""
        return float(self.value.answers_by_node @ self.price[self.plan.tree.question])

    def __repr__(self) -> str:
        return (
            f"Point(answers={self.expected_answers:.4g}, "
            f"misclassification={self.misclassification:.4g}, {self.status})"
        )


@dataclass(frozen=True, eq=False)
class Frontier:
    """All supported points, cheapest first.

    Examples
    --------
    >>> import crowdtree as ct
    >>> front = ct.frontier(ct.example("table1"), max_votes=9)
    >>> plan = front.plan_for(error=0.01)
    >>> round(ct.evaluate(plan).misclassification, 5) <= 0.01
    True
    """

    points: tuple[Point, ...]
    options: Options

    @property
    def vote(self) -> Vote:
        """Kind of vote at each node."""
        return self.options.vote

    @property
    def max_votes(self) -> int:
        """Most votes per node."""
        return int(self.options.votes[-1])

    def __iter__(self) -> Iterator[Point]:
        return iter(self.points)

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, index: int) -> Point:
        return self.points[index]

    @property
    def proven(self) -> bool:
        """Whether every point is proven optimal."""
        return all(point.status == "optimal" for point in self.points)

    def plan_for(
        self,
        error: float | None = None,
        answers: float | None = None,
        *,
        undecided: float = 0.0,
        loss: float | None = None,
    ) -> Plan:
        """Cheapest plan of at most some error or loss, or best plan of at most some answers.

        Between two points of the frontier, the trees of the neighbouring points and the paper's
        tree get more votes, one step at a time where the additive error falls most per price;
        the best of these plans and of the points is returned.

        Parameters
        ----------
        error
            Misclassification to stay below; exact.
        answers
            Expected answers per item (their price, where questions have prices), wrong turns
            included, to stay below.
        undecided
            Share of items that may be reported as undecided, with their likeliest label: the error
            is then that of the other items. A plan that reaches the error on most items costs far
            less than one that reaches it on all, and may exist where that one does not.
        loss
            Expected loss per item to stay below; exact.
        """
        if [error, answers, loss].count(None) != 2:
            raise CrowdtreeError("plan_for: expected either error or answers, or a loss")
        if not 0 <= undecided < 1:
            raise CrowdtreeError(
                f"undecided: expected a share from 0 to below 1, got {undecided!r}"
            )
        if error is not None:
            return self._for_error(error, undecided)
        if undecided:
            raise CrowdtreeError("undecided: give an error that the decided items must keep")
        if loss is not None:
            return self._for_loss(loss)
        assert answers is not None
        return self._for_answers(answers)

    def _for_error(self, error: float, undecided: float) -> Plan:
        if not 0 < error < 1:
            raise CrowdtreeError(f"error: expected a number between 0 and 1, got {error!r}")

        def kept(point: Point) -> Point | None:
            """The point, with leaves left undecided if it must; ``None`` if they are too many."""
            made = point.deciding(error)
            return made if made is not None and made.undecided <= undecided else None

        found, best = self._keeping(kept, lambda point: point.misclassification)
        if not found:
            raise CrowdtreeError(self._out_of_reach(error, best))
        return min(found, key=lambda point: point.expected_cost).plan

    def _for_loss(self, loss: float) -> Plan:
        if not 0 < loss < np.inf:
            raise CrowdtreeError(f"loss: expected a number above 0, got {loss!r}")

        def kept(point: Point) -> Point | None:
            return point if point.risk <= loss else None

        found, best = self._keeping(kept, lambda point: point.risk)
        if not found:
            raise CrowdtreeError(
                f"loss: {loss:g} is out of reach with at most {self.max_votes} votes per node; the "
                f"best possible here is {best.risk:.4g}: raise max_votes or add better questions"
            )
        return min(found, key=lambda point: point.expected_cost).plan

    def _keeping(
        self, kept: Callable[[Point], Point | None], measure: Callable[[Point], float]
    ) -> tuple[list[Point], Point]:
        """Plans that keep a limit, and the best of all by what is limited."""
        found = [made for made in map(kept, self.points) if made is not None]
        place = len(self) - len(found)
        best = self.points[-1]
        for tree in self._trees_around(place):
            for point in self._staffed(tree, lambda _: True):
                best = min(best, point, key=measure)
                made = kept(point)
                if made is not None:
                    found.append(made)
                    break
        return found, best

    def _out_of_reach(self, error: float, best: Point) -> str:
        ways = ["raise max_votes", "add better questions"]
        decided = best.deciding(error)
        if decided is not None:
            ways.insert(0, f"leave {percent(decided.undecided)} of the items undecided")
        return (
            f"error: {error:g} is out of reach with at most {self.max_votes} votes per node; the "
            f"best possible here is {best.misclassification:.4g}: {', '.join(ways[:-1])} or "
            f"{ways[-1]}"
        )

    def _for_answers(self, answers: float) -> Plan:
        def affordable(point: Point) -> bool:
            return point.expected_cost <= answers * (1 + 1e-12)

        found = [point for point in self.points if affordable(point)]
        for tree in self._trees_around(len(found)):

            def fits(votes: NDArray[np.int64], tree: Tree = tree) -> bool:
                return affordable(self._point(tree, votes))

            found.extend(self._staffed(tree, fits))
        found.extend(filter(affordable, self._algorithm_1(affordable)))
        if not found:
            least = self.points[0]
            raise CrowdtreeError(
                f"answers: {answers:g} is too low; the cheapest plan takes "
                f"{least.expected_cost:.4g} per item with an error of {least.misclassification:.4g}"
            )
        return min(found, key=lambda point: point.risk).plan

    def _algorithm_1(self, affordable: Callable[[Point], bool]) -> Iterator[Point]:
        """Yield the paper's own plans up to the budget, which can be best for some budgets."""
        if self.vote != "majority":
            return
        tree = design(self.options.problem, "fm", allow_groups=True)
        for workers in itertools.count(0, 2):
            plan = staff(tree, workers, "paper-fm")
            votes = plan.votes
            if votes.max() > self.max_votes or plan.workers < tree.n_nodes + workers:
                return  # a repeated plan: no vote helps any more
            point = self._point(tree, votes)
            yield point
            if not affordable(point):
                return

    def _trees_around(self, place: int) -> list[Tree]:
        """Trees of the points next to a position on the frontier, and the paper's."""
        near = [point.plan.tree for point in self.points[max(place - 2, 0) : place + 2]]
        near.append(design(self.options.problem, "fm", allow_groups=True))
        return list({tree.question.tobytes(): tree for tree in near}.values())

    def _staffed(self, tree: Tree, fits: Callable[[NDArray[np.int64]], bool]) -> Iterator[Point]:
        """Yield plans with more and more votes on the same tree."""
        for votes in more_votes(tree, self.options, fits):
            yield self._point(tree, votes)

    def _point(self, tree: Tree, votes: NDArray[np.int64]) -> Point:
        plan = Plan(tree, votes, self.vote, "between points of the frontier")
        return Point(plan, self.options.price, np.nan, "between points")

    def to_dict(self) -> dict[str, Any]:
        """The frontier as plain JSON."""
        return {"vote": self.vote, "proven": self.proven, "points": self.to_dicts()}

    def to_dicts(self) -> list[dict[str, Any]]:
        """Tabulate the points: one dictionary per point, with the public names."""
        return [
            {
                "expected_answers": point.expected_answers,
                "planned_answers": point.planned_answers,
                "expected_cost": point.expected_cost,
                "planned_cost": point.planned_cost,
                "misclassification": point.misclassification,
                "risk": point.risk,
                "undecided": point.undecided,
                "decided_error": point.decided_error,
                "additive": point.additive,
                "status": point.status,
                "gap": point.gap,
                "votes": point.plan.votes.tolist(),
                "tree": point.value.tree_dict,
            }
            for point in self.points
        ]

    def __repr__(self) -> str:
        first, last = self.points[0], self.points[-1]
        proof = "proven" if self.proven else "not proven"
        return (
            f"Frontier({len(self)} points, {self.vote}, {proof}: "
            f"{first.misclassification:.3g} for {first.expected_answers:.3g} answers to "
            f"{last.misclassification:.3g} for {last.expected_answers:.3g})"
        )


def frontier(
    problem: Problem,
    vote: Vote = "majority",
    *,
    method: Literal["optimal", "greedy"] | None = None,
    price: ArrayLike | Mapping[str, float] | None = None,
    max_votes: int = 51,
    max_points: int = 10_000,
    time_limit: float | None = None,
    node_limit: int | None = None,
    memory_limit: float = 1e9,
    allow_groups: bool = False,
    progress: Callable[[int, float], None] | None = None,
) -> Frontier:
    """Find the trade-off of error against price: every supported plan of questions and votes.

    Parameters
    ----------
    problem
        The problem.
    vote
        ``"majority"``: a fixed odd number of votes per node (the paper); ``"margin"``: a node votes
        until one side leads by its margin, for about half the answers.
    method
        ``"optimal"`` proves every point; ``"greedy"`` builds on level-greedy trees and proves
        nothing. Optimal by default, greedy where ``-`` means either, and for large problems with a
        loss.
    price
        Price of an answer: one number, one per question, or by question name.
    max_votes
        Most votes per node (largest margin).
    max_points
        Most points; the longest edges are refined first.
    time_limit, node_limit, memory_limit
        Limits of the search at each price.
    allow_groups
        Accept classes that no question separates.
    progress
        Called after each price with the number of points and the share of edges settled.

    Returns
    -------
    Frontier
        Ctrl-C also ends the search: the points so far are returned, the last one not proven.

    Examples
    --------
    >>> import crowdtree as ct
    >>> front = ct.frontier(ct.example("table1"), vote="margin", max_votes=6)
    >>> front.proven, front[0].misclassification > front[-1].misclassification
    (True, True)
    """
    if max_points < 2:
        raise CrowdtreeError(f"max_points: expected at least 2, got {max_points!r}")
    check_limits(time_limit, 0.0, node_limit, memory_limit)
    either = problem.dash == "either" and bool((problem.outcome == DASH).any())
    large = problem.loss is not None and not either and not LossSearch(problem).reachable()
    chosen = method or ("greedy" if either or large else "optimal")
    if chosen not in ("optimal", "greedy"):
        raise CrowdtreeError(f'method: must be "optimal" or "greedy", got {chosen!r}')
    if chosen == "optimal" and either:
        raise CrowdtreeError(
            'frontier: method "optimal" requires that - means inapplicable; use "greedy"'
        )
    if chosen == "optimal" and large:
        raise CrowdtreeError(
            'frontier: method "optimal" for a loss is for small problems (at most '
            f'{MOST_SETS:,} sets of classes); use "greedy"'
        )
    quick = design(problem, "gain", allow_groups=True)  # refuses a root that no question splits
    if not allow_groups:
        refuse_groups(quick)
    prices = question_prices(problem, price)
    options = Options.of(problem, vote, max_votes, prices)
    if chosen == "optimal":
        solver = exact_solver(options, time_limit, node_limit, memory_limit)
    else:
        solver = greedy_solver(options, allow_groups)
    found = _supported(solver, float(prices.mean()), max_points, progress)
    points = tuple(
        Point(
            Plan(priced.tree, options.votes[priced.option], vote, f"frontier ({chosen})"),
            prices,
            priced.gap,
            priced.status,
        )
        for priced in found
    )
    return Frontier(points if problem.loss is None else _undominated(points), options)


def _undominated(points: tuple[Point, ...]) -> tuple[Point, ...]:
    """Points of less risk than every cheaper one: the least additive risk need not have that."""
    kept: list[Point] = []
    for point in sorted(points, key=lambda point: (point.expected_cost, point.risk)):
        if not kept or point.risk < kept[-1].risk:
            kept.append(point)
    return tuple(kept)


def _supported(
    solve: Solver,
    scale: float,
    max_points: int,
    progress: Callable[[int, float], None] | None,
) -> list[Priced]:
    """Find all supported points by dichotomy on the price, the longest edges first."""
    cheap, good = (_uninterrupted(solve(p / scale)) for p in (HIGHEST_PRICE, LEAST_PRICE))
    points = {_key(cheap): cheap, _key(good): good}
    edges: list[tuple[float, int, Priced, Priced]] = []
    count = 0

    def push(left: Priced, right: Priced) -> None:
        nonlocal count
        width, height = right.cost - left.cost, left.error - right.error
        if width > SLACK * right.cost and height > SLACK * left.error:
            count += 1
            heapq.heappush(
                edges, (-np.log(left.error / max(right.error, 1e-300)), count, left, right)
            )

    push(cheap, good)
    settled = 0
    while edges and len(points) < max_points:
        _, _, left, right = heapq.heappop(edges)
        settled += 1
        price = (left.error - right.error) / (right.cost - left.cost)
        found = solve(price)
        chord = left.error + price * left.cost
        if found.error + price * found.cost < chord * (1 - SLACK):
            points[_key(found)] = found
            push(left, found)
            push(found, right)
        elif found.status != "optimal":  # an unproven edge makes its ends unproven
            for end in (left, right):
                points[_key(end)] = _weaker(points[_key(end)], found)
        if progress is not None:
            progress(len(points), settled / (settled + len(edges)))
        if found.status == INTERRUPTED:  # keep the points found so far
            break
    return _hull(sorted(points.values(), key=lambda point: (point.cost, point.error)))


def _uninterrupted(point: Priced) -> Priced:
    """Raise the interrupt where an end of the frontier is missing; without both there is none."""
    if point.status == INTERRUPTED:
        raise KeyboardInterrupt
    return point


def _key(point: Priced) -> tuple[float, float]:
    return float(f"{point.cost:.9e}"), float(f"{point.error:.9e}")


def _weaker(point: Priced, edge: Priced) -> Priced:
    if point.status != "optimal":
        return point
    return Priced(
        point.tree,
        point.option,
        point.error,
        point.cost,
        point.price,
        (1 - edge.gap) * (point.error + point.price * point.cost),
        edge.status,
    )


def _hull(points: list[Priced]) -> list[Priced]:
    """Keep the lower convex hull: no point dominated, errors convex in the cost."""
    kept: list[Priced] = []
    for point in points:
        if kept and point.error >= kept[-1].error * (1 - SLACK):
            continue
        while len(kept) > 1 and _above(kept[-2], kept[-1], point):
            kept.pop()
        kept.append(point)
    return kept


def _above(left: Priced, middle: Priced, right: Priced) -> bool:
    chord = left.error + (right.error - left.error) * (middle.cost - left.cost) / (
        right.cost - left.cost
    )
    return middle.error >= chord * (1 + SLACK)
