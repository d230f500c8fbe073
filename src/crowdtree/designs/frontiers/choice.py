"""The frontier as a whole, and the choice of a plan from it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.checking import check_call, check_share
from crowdtree.core.errors import CrowdtreeError, listing
from crowdtree.core.fixed_plan import Plan
from crowdtree.core.problem import Problem
from crowdtree.core.result_methods import Framed, Plotted, Saved
from crowdtree.core.text import number, percent
from crowdtree.core.tree import Tree
from crowdtree.core.votes import Vote
from crowdtree.designs.designers import design
from crowdtree.designs.frontiers.all_plans import AllPlans, Limits, is_searchable
from crowdtree.designs.frontiers.class_sets import ClassSets
from crowdtree.designs.frontiers.point import Point
from crowdtree.designs.frontiers.priced_search import greedy_trees, more_votes
from crowdtree.designs.frontiers.set_search import max_sets
from crowdtree.designs.frontiers.vote_options import Options
from crowdtree.designs.staffing import paper_plans


class OutOfReach(CrowdtreeError):
    """A goal that no plan reaches: the reason, and ways out."""

    def __init__(self, reason: str, ways: Sequence[str]) -> None:
        super().__init__(f"{reason}: {', '.join(ways[:-1])} or {ways[-1]}")
        self.reason = reason


class Goal(NamedTuple):
    """What a plan is chosen by: the least cost at an error or loss, or the best within a budget.

    `answers` are expected answers per item, `cost` is their price. Where mistakes have different
    costs, a `cost` asks for the least price plus expected loss within it. `max_answers` is the most
    answers that any item may take, on top of that.
    """

    error: float | None = None
    answers: float | None = None
    cost: float | None = None
    loss: float | None = None
    undecided: float = 0.0
    max_answers: int | None = None

    def check(self, problem: Problem | None = None) -> None:
        """Raise for what no plan can be chosen by."""
        given = [self.error, self.answers, self.cost, self.loss]
        if given.count(None) != 3:
            raise CrowdtreeError(
                "plan: expected exactly one of error, answers, cost and max_loss, got "
                f"{4 - given.count(None)}"
            )
        for name, value in (("answers", self.answers), ("cost", self.cost), ("loss", self.loss)):
            if value is not None and not 0 < value < np.inf:
                raise CrowdtreeError(f"{name}: expected a number above 0, got {value!r}")
        if self.max_answers is not None and self.max_answers < 1:
            raise CrowdtreeError(f"max_answers: expected 1 or more, got {self.max_answers}")
        check_share("undecided", self.undecided, zero=True)
        if self.undecided and self.error is None:
            raise CrowdtreeError("undecided: give an error that the decided items must keep")
        if self.error is not None:
            check_share("error", self.error, zero=True)
        if self.loss is not None and problem is not None and problem.loss is None:
            raise CrowdtreeError(
                "loss: every mistake costs 1 in this problem; use error, or give the problem a loss"
            )


@dataclass(frozen=True, eq=False)
class Selection:
    """A plan chosen by a goal, and what is proven about it.

    `lower_bound` is proven for every tree with this kind of vote that tells all classes apart and
    keeps the goal: of the cost (or the answers), or of the error where the goal is a budget;
    ``None`` where nothing is proven. `proven` says that no such tree is better.
    """

    goal: Goal
    point: Point
    max_votes: str
    lower_bound: float | None = None
    proven: bool = False

    @property
    def plan(self) -> Plan:
        """The plan."""
        return self.point.plan

    @property
    def gap(self) -> float:
        """How far the plan may be above the best one, as a share; NaN where nothing is proven."""
        if self.lower_bound is None:
            return float("nan")
        value = self._value
        return 0.0 if self.proven else (value - self.lower_bound) / value

    @property
    def _value(self) -> float:
        budget = self.goal.answers is not None or self.goal.cost is not None
        return self.point.misclassification if budget else self.point.expected_cost

    @property
    def proof(self) -> str:
        """What is proven about the tree, as the end of a sentence."""
        vote = self.plan.rule.kind(not self.plan.tree.problem.is_yes_no)
        most = f"{vote} (at most {self.max_votes})"
        if self.lower_bound is None:
            return f"the best one found with {vote}; nothing is proven."
        budget = self.goal.answers is not None or self.goal.cost is not None
        what = "errs less within the budget" if budget else "reaches this error at a lower cost"
        if self.proven:
            return f"proven: no tree with {most} {what}."
        least = percent(self.lower_bound) if budget else number(self.lower_bound)
        return (
            f"not proven: no tree with {most} has {'an error' if budget else 'a cost'} below "
            f"{least}, {percent(self.gap)} below this one."
        )


@dataclass(frozen=True, eq=False)
class Frontier(Framed, Saved, Plotted):
    """Plans that no other plan found beats in both error and cost, cheapest first.

    Points are the corners of the lower hull of exact misclassification and expected cost over all
    plans that were found.

    Attributes
    ----------
    points
        The points.
    options
        The votes that a node can take, with their errors and costs.
    supported
        The curve that the search proves: plans of least ``additive error + price x planned cost``.
    gap
        How far that curve may be above the least possible at any price, as a share; 0 if proven.
    status
        ``"optimal"``, ``"greedy"``, or the limit that ended the search.

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
    supported: tuple[Point, ...] = ()
    gap: float = 1.0
    status: str = "greedy"

    @property
    def vote(self) -> Vote:
        """Kind of vote at each node."""
        return self.options.vote

    @property
    def max_votes(self) -> int:
        """Most votes per node."""
        return int(self.options.votes[-1])

    @property
    def _claimed_votes(self) -> str:
        """Most votes that were tried, in words: margins over many answers are limited."""
        tried = self.options.votes[self.options.usable.sum(axis=0) - 1]
        names = np.asarray(self.options.problem.questions, dtype=object)
        once = self.options.once
        again = np.ones(len(names), dtype=np.bool_) if once is None else ~once
        fewer = [
            f"; {most} at {listing(names[again & (tried == most)], 3)}"
            for most in np.unique(tried[again & (tried < self.max_votes)])
        ]
        if not again.all():
            fewer.append("; 1 where asking again gives no new answer")
        return f"{self.max_votes} per question{''.join(fewer)}"

    def __iter__(self) -> Iterator[Point]:
        return iter(self.points)

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, index: int) -> Point:
        return self.points[index]

    @property
    def proven(self) -> bool:
        """Whether every point of the supported curve is proven optimal at its price."""
        return self.status == "optimal" and all(p.status == "optimal" for p in self.supported)

    def plan_for(
        self,
        error: float | None = None,
        answers: float | None = None,
        *,
        cost: float | None = None,
        undecided: float = 0.0,
        loss: float | None = None,
    ) -> Plan:
        """Cheapest plan of at most some error or loss, or best plan within a budget.

        The plan of :meth:`select`, which also says what is proven about it.
        """
        return self.select(error, answers, cost=cost, undecided=undecided, loss=loss).plan

    def select(
        self,
        error: float | None = None,
        answers: float | None = None,
        *,
        cost: float | None = None,
        undecided: float = 0.0,
        loss: float | None = None,
        max_answers: int | None = None,
        time_limit: float | None = None,
    ) -> Selection:
        """Choose a plan by exactly one of `error`, `answers`, `cost` and `loss`.

        Candidates are the points, their trees and the paper's with more and more votes, and the
        paper's plans; for a small problem with a loss also greedy trees. Then all trees and votes
        are searched that a bound does not exclude, unless there are too many sets of classes,
        mistakes have different costs, ``-`` means either and all questions are yes/no, or
        `max_answers` is given.

        Parameters
        ----------
        error
            Misclassification to stay below; exact.
        answers
            Expected answers per item to stay below, wrong turns included; also where questions
            have prices.
        cost
            Expected price per item to stay below. Where mistakes have different costs, the plan of
            least price plus expected loss.
        undecided
            Share of items that may be reported as undecided, with their likeliest label: the error
            is then that of the other items. A plan that reaches the error on most items costs far
            less than one that reaches it on all, and may exist where that one does not.
        loss
            Expected loss per item to stay below; exact.
        max_answers
            Most answers that any item may take: majority votes on the longest path. Votes by
            margin have no largest number, unless every margin is 1.
        time_limit
            Seconds for the search of all plans; 0 leaves it out.
        """
        check_call(type(self).plan_for, locals())
        goal = Goal(error, answers, cost, loss, undecided, max_answers)
        goal.check()
        limited = undecided or max_answers is not None or time_limit == 0
        searches = not limited and is_searchable(self.options.problem)
        try:
            chosen = self._candidate(goal)
        except CrowdtreeError as reason:
            if self.options.problem.is_yes_no or not searches:
                raise
            return self._searched(goal, reason, time_limit)  # votes may help where more do not
        if not searches:
            return Selection(goal, chosen, self._claimed_votes)
        return self._searched(goal, chosen, time_limit)

    def _candidate(self, goal: Goal) -> Point:
        """Best plan among those near the frontier."""
        if goal.error is None and goal.loss is None:
            return self._within(goal)
        return self._reaching(goal)

    @cached_property
    def _all_plans(self) -> AllPlans:
        return AllPlans(self.options)

    def _searched(
        self, goal: Goal, known: Point | CrowdtreeError, time_limit: float | None
    ) -> Selection:
        """Search all plans for a better one, or for any: then `known` is the reason to give."""
        plans = self._all_plans
        if goal.answers is not None and (self.options.price != 1).any():
            plain = np.ones(self.options.problem.n_questions)
            plans = AllPlans(replace(self.options, price=plain))
        if plans.too_many:
            if isinstance(known, CrowdtreeError):
                raise known
            return Selection(goal, known, self._claimed_votes)
        if goal.error is not None:
            limits = Limits(goal.error, np.inf, "cost")
        else:
            budget = goal.answers if goal.cost is None else goal.cost
            limits = Limits(1.0, float(budget or 0.0), "error")
        if isinstance(known, Point):
            limits = limits.tightened(known.misclassification, known.expected_cost)
        deadline = np.inf if time_limit is None else time.monotonic() + time_limit
        found = plans.search(limits, deadline=deadline)
        if found.plan is not None:
            known = Point(found.plan, self.options.price, np.nan, "searched")
        if isinstance(known, CrowdtreeError):
            raise known
        return Selection(goal, known, self._claimed_votes, found.lower_bound, found.complete)

    def _reaching(self, goal: Goal) -> Point:
        """Cheapest plan found of at most some error or loss."""
        name, limit = ("error", goal.error) if goal.loss is None else ("loss", goal.loss)
        assert limit is not None

        def measure(point: Point) -> float:
            return point.misclassification if goal.loss is None else point.risk

        def kept(point: Point) -> Point | None:
            """The point, with leaves left undecided if it must; ``None`` if they are too many."""
            if not goal.undecided:
                return point if measure(point) <= limit else None
            decided = point.deciding(limit)
            return decided if decided is not None and decided.undecided <= goal.undecided else None

        good, best = self._keeping(goal, kept, measure)
        if not good:
            decided = best.deciding(limit) if goal.loss is None else None
            ways = []
            if decided is not None:
                ways = [f"leave {percent(decided.undecided)} of the items undecided"]
            raise self._out_of_reach(goal, f"{name}: {limit:g}", measure(best), ways)
        return min(good, key=lambda point: point.expected_cost)

    def _keeping(
        self,
        goal: Goal,
        kept: Callable[[Point], Point | None],
        measure: Callable[[Point], float],
    ) -> tuple[list[Point], Point]:
        """Plans that keep a limit, and the best of all by what is limited."""
        points = self._short(goal)
        good = [point for point in map(kept, points) if point is not None]
        index = len(self) - len(good) if goal.max_answers is None else len(points)
        best = min(points, key=measure)

        def fits(point: Point) -> bool:
            return _is_short(point, goal)

        sources = [self._staffed(tree, fits) for tree in self._trees_around(index)]
        for source in (*sources, filter(fits, self._algorithm_1())):
            for candidate in source:
                best = min(best, candidate, key=measure)
                point = kept(candidate)
                if point is not None:
                    good.append(point)
                    break
        return good, best

    def _short(self, goal: Goal) -> list[Point]:
        """Points whose items take no more answers than the goal allows, or the shortest trees."""
        short = [point for point in self.points if _is_short(point, goal)]
        if short:
            return short
        trees = [
            self._point(tree, np.ones(tree.n_nodes, dtype=np.int64))
            for tree in self._trees_around(0)
        ]
        least = min(trees, key=lambda point: point.plan.most_answers or 0)
        if not _is_short(least, goal):
            raise CrowdtreeError(
                f"max_answers: {goal.max_answers} is too low for the trees found; the shortest "
                f"takes {least.plan.most_answers} answers"
            )
        return [least]

    def _out_of_reach(
        self, goal: Goal, what: str, best: float, ways: Sequence[str] = ()
    ) -> OutOfReach:
        most = f"at most {self.max_votes} votes per node"
        if goal.max_answers is not None:
            most = f"at most {goal.max_answers} answers per item"
        return OutOfReach(
            f"{what} is out of reach with {most}; the best tree found gets to {best:.4g}",
            [
                *ways,
                "raise max_votes" if goal.max_answers is None else "raise max_answers",
                "add better questions",
            ],
        )

    def _within(self, goal: Goal) -> Point:
        """Best plan found within a budget of answers or money."""
        name, budget = ("answers", goal.answers) if goal.cost is None else ("cost", goal.cost)
        assert budget is not None
        priced = goal.cost is not None

        def paid(point: Point) -> float:
            return point.expected_cost if priced else point.expected_answers

        def affordable(point: Point) -> bool:
            return paid(point) <= budget * (1 + 1e-12) and _is_short(point, goal)

        points = self._short(goal)
        good = [point for point in points if affordable(point)]
        for tree in self._trees_around(len(good)):
            good.extend(self._staffed(tree, affordable))
        for point in self._algorithm_1():
            if not affordable(point):
                break
            good.append(point)
        if not good:
            least = min(points, key=paid)
            raise CrowdtreeError(
                f"{name}: {budget:g} is too low; the cheapest plan found takes "
                f"{paid(least):.4g} per item with an error of {least.misclassification:.4g}"
            )
        together = priced and self.options.problem.loss is not None
        return min(good, key=lambda point: point.risk + (paid(point) if together else 0.0))

    def _algorithm_1(self) -> Iterator[Point]:
        """Yield the paper's own plans, which can be best for some errors and budgets."""
        if not self.options.rule.always_all:
            return
        tree = design(self.options.problem, "fm", allow_groups=True)
        for plan in paper_plans(tree):
            if plan.votes.max() > self.max_votes or not self.options.allows(tree, plan.votes):
                return
            yield self._point(tree, plan.votes)

    def _trees_around(self, place: int) -> list[Tree]:
        """Trees of the points next to a position on the frontier, and the paper's.

        With a loss, the points are those of least additive risk, which can be far from the least
        risk. Greedy trees are then tried as well, where the problem is small.
        """
        problem = self.options.problem
        near = [point.plan.tree for point in self.points[max(place - 2, 0) : place + 2]]
        near.append(design(problem, "fm", allow_groups=True))
        if problem.loss is not None and self._few_sets:
            near += greedy_trees(self.options)
        return list({(t.question.tobytes(), t.children.tobytes()): t for t in near}.values())

    @cached_property
    def _few_sets(self) -> bool:
        """Whether the sets of classes that questions can make are few enough to be searched."""
        return not ClassSets(self.options.problem, max_sets(self.options)).too_many

    def _staffed(self, tree: Tree, fits: Callable[[Point], bool]) -> Iterator[Point]:
        """Yield plans with more and more votes on the same tree."""

        def fit(votes: NDArray[np.int64]) -> bool:
            return self.options.allows(tree, votes) and fits(self._point(tree, votes))

        for votes in more_votes(tree, self.options, fit):
            yield self._point(tree, votes)

    def _point(self, tree: Tree, votes: NDArray[np.int64]) -> Point:
        plan = Plan(tree, votes, self.vote, "between points of the frontier")
        return Point(plan, self.options.price, np.nan, "between points")

    def to_dict(self) -> dict[str, Any]:
        """The frontier as plain JSON."""
        return {
            "vote": self.vote,
            "proven": self.proven,
            "gap": self.gap,
            "status": self.status,
            "points": self.to_dicts(),
        }

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

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Frontier):
            return NotImplemented
        return (
            self.max_votes == other.max_votes
            and (self.status, self.gap) == (other.status, other.gap)
            and np.array_equal(self.options.price, other.options.price)
            and _facts(self.points) == _facts(other.points)
            and _facts(self.supported) == _facts(other.supported)
        )

    def __hash__(self) -> int:
        return hash(tuple(point.plan for point in self))

    def __repr__(self) -> str:
        first, last = self.points[0], self.points[-1]
        proof = "proven" if self.proven else "not proven"
        return (
            f"Frontier({len(self)} points, {self.vote}, {proof}: "
            f"{first.misclassification:.3g} for {first.expected_answers:.3g} answers to "
            f"{last.misclassification:.3g} for {last.expected_answers:.3g})"
        )


def _is_short(point: Point, goal: Goal) -> bool:
    """Whether no item takes more answers than the goal allows."""
    if goal.max_answers is None:
        return True
    most = point.plan.most_answers
    return most is not None and most <= goal.max_answers


def _facts(points: Iterable[Point]) -> list[tuple[Plan, str, str]]:
    return [(point.plan, point.status, repr(point.gap)) for point in points]
