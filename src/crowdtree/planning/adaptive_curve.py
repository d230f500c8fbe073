"""Adaptive policies by the threshold at which they stop, simulated as far as needed."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.bounds import checked_price, prices_by_question
from crowdtree.core.problem import Problem
from crowdtree.core.text import rounded_up
from crowdtree.designs.frontiers import Goal
from crowdtree.designs.frontiers.all_plans import least_index
from crowdtree.planning.choices import ExpectedPerformance, PlanChoice
from crowdtree.policies import AdaptivePolicy, Policy
from crowdtree.simulation import Estimate, Run, simulate

Report = Callable[[float, str], None]
"""Receives the share of the work that is done (0 to 1), and what is being done."""
ITEMS = 20_000
"""Simulated items of each adaptive policy that is tried."""
MENU_ITEMS = 4000
"""The same for the menu of a new campaign, which has many policies."""
MAX_SIMULATED_CELLS = 4e8
"""Items times classes times questions of a quick simulation."""
MIN_ITEMS = 200
MAX_ANSWERS = 200
RATIO = 1.05
"""Ratio of neighbouring stopping thresholds that are tried."""
LEAST_TARGET = 1e-7
SAME_RISK = 1e-3
"""Relative difference up to which two risks are the same: far below what one threshold changes."""
SAME = 1e-9


def silent(share: float, what: str) -> None:
    """Report nothing."""


class AdaptiveCurve:
    """Adaptive policies by the threshold at which they stop, simulated as far as needed.

    Thresholds are numbered, the loosest first. The same items and people are simulated for each,
    and questions do not depend on the threshold, so that answers only grow along the curve.
    """

    def __init__(
        self,
        problem: Problem,
        goal: Goal,
        prices: NDArray[np.float64] | None = None,
        max_answers: int = MAX_ANSWERS,
        rng: int = 0,
        items: int = ITEMS,
        report: Report | None = None,
        sources: Sequence[str] | None = None,
    ) -> None:
        self.sources = sources
        self.problem, self.goal, self.prices = problem, goal, prices
        self.max_answers, self.rng, self.items = max_answers, rng, items
        self.report = report or silent
        self.by_loss = problem.loss is not None and goal.error is None
        self._top = 0.9
        if self.by_loss:
            assert problem.loss is not None
            self._top = float(problem.loss.decide(problem.prior).risk)
            if problem.loss.refer is not None:  # at that price every item would be referred
                self._top = min(self._top, 0.999 * problem.loss.refer)
        self._tried: dict[int, PlanChoice] = {}

    def step_at(self, target: float) -> int:
        """Number of the loosest threshold that is at most a target."""
        return max(0, int(np.ceil(np.log(self._top / target) / np.log(RATIO) - SAME)))

    @cached_property
    def last(self) -> int:
        """Number of the tightest threshold."""
        return self.step_at(LEAST_TARGET * self._top)

    def reachable(self, target: float) -> float:
        """The target error (or loss), or a round number above the least that is reached."""
        self.goal = Goal(loss=target) if self.by_loss else Goal(error=target)
        if self.best()[0] is not None:
            return target
        found = min(c.performance.risk.high for c in self._tried.values())
        return rounded_up(RATIO * found)

    @property
    def points(self) -> tuple[tuple[float, float], ...]:
        """Cost and error (or expected loss) of the policies that were simulated, by cost."""
        tried = [choice.performance for choice in self._tried.values()]
        part = "risk" if self.by_loss else "error"
        return tuple(sorted((float(p.cost), float(getattr(p, part))) for p in tried))

    @property
    def least_error(self) -> Estimate:
        """Smallest error of the policies that were simulated."""
        return min(choice.performance.error for choice in self._tried.values())

    def at(self, step: int) -> PlanChoice:
        """The policy that stops at a threshold, simulated."""
        if step not in self._tried:
            done = len(self._tried)
            self.report(0.4 + 0.6 * done / (done + 8), "Simulating adaptive policies")
            policy = self._policy(self._top * RATIO**-step)
            prices = None
            if self.prices is not None:
                prices = prices_by_question(self.prices, self.problem)
            performance = simulated_performance(policy, self.items, self.rng, prices)
            self._tried[step] = PlanChoice(
                "adaptive",
                policy,
                performance,
                f"Simulated with {self.items:,} items; not proven best.",
            )
        return self._tried[step]

    def _policy(self, target: float) -> AdaptivePolicy:
        options: dict[str, Any] = {"max_answers": self.max_answers, "strict": False}
        options["target_loss" if self.by_loss else "target_error"] = float(f"{target:.4g}")
        if self.prices is not None and self.goal.answers is None:
            options["price"] = prices_by_question(self.prices, self.problem)
        if self.sources is not None:
            options["sources"] = list(self.sources)
        return AdaptivePolicy(self.problem, **options)

    def best(self) -> tuple[PlanChoice | None, str]:
        """The best policy for the goal; else the reason why there is none."""
        goal = self.goal
        if goal.error is not None:
            return self._reaching(goal.error, lambda found: found.error, "error")
        if goal.loss is not None:
            return self._reaching(goal.loss, lambda found: found.risk, "loss")
        if goal.cost is not None and self.problem.loss is not None:
            return self._cheapest_in_all(goal.cost)
        if goal.cost is not None:
            return self._within(goal.cost, lambda found: found.cost, "cost")
        assert goal.answers is not None
        return self._within(goal.answers, lambda found: found.answers, "answers")

    def _reaching(
        self, limit: float, measure: Callable[[ExpectedPerformance], Estimate], name: str
    ) -> tuple[PlanChoice | None, str]:
        """Loosest threshold whose error (or loss) is at most a limit, interval included."""

        def good(step: int) -> bool:
            return measure(self.at(step).performance).high <= limit

        first = self.step_at(limit) if limit else self.last
        tighter = self.step_at(self._top / 4)
        for high in (first, first + tighter, first + 2 * tighter):
            if good(high):  # not always: an item may end before it reaches the threshold
                break
        else:
            least = measure(self.at(high).performance)
            return None, (
                f"{name}: {limit:g} is out of reach; the adaptive policy gets to {least:.3g}"
            )
        low = -1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if good(middle) else (middle, high)
        return self.at(high), ""

    def _within(
        self, limit: float, measure: Callable[[ExpectedPerformance], Estimate], name: str
    ) -> tuple[PlanChoice | None, str]:
        """Tightest threshold whose mean keeps a budget."""
        low, high = -1, self.last + 1
        while high - low > 1:
            middle = (low + high) // 2
            fits = measure(self.at(middle).performance) <= limit
            low, high = (middle, high) if fits else (low, middle)
        if low < 0 or not self.at(low).performance.answers:
            return None, f"{name}: {limit:g} is too low for any answer"
        return self._as_good_as(low), ""

    def _as_good_as(self, step: int) -> PlanChoice:
        """The loosest threshold of the same risk: a limit of answers may leave nothing to gain."""
        most = self.at(step).performance.risk * (1 + SAME_RISK)
        low, high, reach = -1, step, 1
        while high and high - low > 1:  # first near the step, where a difference shows at once
            middle = max(low + 1, step - reach) if low < 0 else (low + high) // 2
            if self.at(middle).performance.risk <= most:
                high, reach = middle, 2 * reach
            else:
                low = middle
        return self.at(high)

    def _cheapest_in_all(self, budget: float) -> tuple[PlanChoice | None, str]:
        """Threshold of the least price plus expected loss within a budget."""

        def total(step: int) -> float:
            found = self.at(step).performance
            return float(found.cost + found.risk) if found.cost <= budget else np.inf

        best = least_index(total, 0, self.last)
        if not np.isfinite(total(best)):
            return None, f"cost: {budget:g} is too low for any answer"
        return self.at(best), ""


def simulated_performance(
    policy: Policy[Any],
    items: int = MENU_ITEMS,
    rng: int = 0,
    prices: NDArray[np.float64] | None = None,
) -> ExpectedPerformance:
    """Expected performance by simulation; stated errors vary less than counts of wrong labels."""
    run = simulate(policy.problem, policy, items=items, rng=rng)
    error, risk = _above_zero(run.stated_error), _above_zero(run.stated_risk)
    return ExpectedPerformance(error, run.answers_per_item, False, risk, run_cost(run, prices))


def quick_items(problem: Problem) -> int:
    """Items of a simulation that takes a second or so."""
    cells = problem.n_classes * problem.n_questions
    return int(np.clip(MAX_SIMULATED_CELLS / cells, MIN_ITEMS, MENU_ITEMS))


def reachable_goal(problem: Problem, error: float, loss: float) -> Goal:
    """An error (where mistakes have different costs, a loss) to suggest: one that is reached.

    >>> import crowdtree as ct
    >>> reachable_goal(ct.example("table1"), 0.01, 0.1).error
    0.01
    """
    by_loss = problem.loss is not None
    goal = Goal(loss=loss) if by_loss else Goal(error=error)
    with warnings.catch_warnings(action="ignore"):
        curve = AdaptiveCurve(problem, goal, items=quick_items(problem))
        target = curve.reachable(loss if by_loss else error)
    return Goal(loss=target) if by_loss else Goal(error=target)


def _above_zero(value: Estimate) -> Estimate:
    return Estimate(value, max(value.low, 0.0), value.high)


def run_cost(run: Run, prices: Sequence[float] | NDArray[np.float64] | None) -> Estimate:
    """Mean price per item, at prices of questions; its interval is as wide as that of the answers.

    Without prices those of the sources, where these have any.
    """
    if prices is None and not run.problem.has_prices:
        return Estimate(np.nan, np.nan, np.nan)
    cost = float(run.asked @ checked_price(prices, run.problem)) / run.items
    answers = run.answers_per_item
    each = cost / float(answers) if answers else 0.0
    return Estimate(cost, each * answers.low, each * answers.high)


def expected_performance(policy: Policy[Any]) -> ExpectedPerformance:
    """Expected performance of a policy: exact for a plan, simulated for others.

    >>> import crowdtree as ct
    >>> round(expected_performance(ct.PlanPolicy(ct.design(ct.example("table1")))).error, 4)
    0.0823
    """
    with warnings.catch_warnings(action="ignore"):
        exact = policy.evaluated()
        if exact is None:
            return simulated_performance(policy)
        value, answers = exact
        numbers = (value.misclassification, answers, value.risk, np.nan)
        error, mean, risk, cost = (Estimate(number, number, number) for number in numbers)
        return ExpectedPerformance(error, mean, True, risk, cost)
