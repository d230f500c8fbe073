"""Plan: the best policy for an error, a budget or a loss, and the best fixed tree beside it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdtree.checking import check_call
from crowdtree.errors import CrowdtreeError
from crowdtree.frontiers import Goal
from crowdtree.frontiers.vote_options import question_prices
from crowdtree.planning.adaptive_curve import (
    ITEMS,
    MAX_ANSWERS,
    MENU_ITEMS,
    AdaptiveCurve,
    Report,
    expected_performance,
    run_cost,
    silent,
)
from crowdtree.planning.choices import ExpectedPerformance, PlanChoice, PlanChoices
from crowdtree.planning.forecasts import (
    CertificateCost,
    certificate_cost,
    forecast_checks,
    people_costs,
    performance_job,
)
from crowdtree.planning.menu import PlanMenu, make_menu
from crowdtree.planning.trees import best_tree, value_of
from crowdtree.problem import Problem

__all__ = [
    "ITEMS",
    "MAX_ANSWERS",
    "MENU_ITEMS",
    "TIME_LIMIT",
    "CertificateCost",
    "ExpectedPerformance",
    "PlanChoice",
    "PlanChoices",
    "PlanMenu",
    "Report",
    "best_adaptive",
    "certificate_cost",
    "expected_performance",
    "forecast_checks",
    "make_menu",
    "people_costs",
    "performance_job",
    "plan",
    "run_cost",
]

TIME_LIMIT = 4.0
"""Seconds for the search of fixed trees."""


def plan(
    problem: Problem,
    *,
    error: float | None = None,
    answers: float | None = None,
    cost: float | None = None,
    max_loss: float | None = None,
    price: ArrayLike | Mapping[str, float] | None = None,
    max_answers: int = MAX_ANSWERS,
    allow_groups: bool = False,
    time_limit: float = TIME_LIMIT,
    rng: int = 0,
    progress: Report | None = None,
) -> PlanChoices:
    """Plan a campaign: the best policy for an error, a budget or an expected loss.

    An adaptive policy chooses each question by the answers so far, and stops at a threshold that
    is tuned by simulation, with the same items and people for every threshold. Beside it stands
    the best fixed tree by any kind of vote, for those who need one to print or to explain. The
    adaptive policy is recommended, unless it does not reach the goal or a tree is as good.

    Parameters
    ----------
    problem
        The problem.
    error
        Share of all items that may get a wrong label; the least cost is looked for.
    answers
        In place of it: expected answers per item to stay within; the least error (or expected
        loss) is looked for.
    cost
        In place of it: expected price per item to stay within. Where mistakes have different
        costs, the least price plus expected loss is looked for; both must have the same unit.
    max_loss
        In place of it: expected loss per item to stay within, where mistakes have different costs.
    price
        Price of an answer: one number, one per question, or a price for every question by name.
    max_answers
        Most answers to one item of the adaptive policy.
    allow_groups
        Accept classes that no question separates.
    time_limit
        Seconds for the search of fixed trees; simulations take a few more.
    rng
        Seed of the simulations.
    progress
        Called with the share of the work that is done and with what is being done.

    Returns
    -------
    PlanChoices

    Examples
    --------
    >>> import crowdtree as ct
    >>> choices = ct.plan(ct.example("table1"), answers=4)
    >>> bool(choices.recommended.performance.answers <= 4), choices.recommended.kind
    (True, 'adaptive')
    """
    check_call(plan, locals())
    goal = Goal(error, answers, cost, max_loss)
    goal.check(problem)
    if cost is not None and price is None:
        raise CrowdtreeError("cost: give the price of an answer, or use answers")
    prices = None if price is None else question_prices(problem, price)
    report = progress or silent
    with warnings.catch_warnings(action="ignore"):
        report(0.0, "Searching fixed trees")
        tree, no_tree = best_tree(problem, goal, prices, allow_groups, time_limit)
        report(0.4, "Simulating adaptive policies")
        curve = AdaptiveCurve(problem, goal, prices, max_answers, rng, report=report)
        adaptive, no_adaptive = curve.best()
    return _choices(problem, goal, prices, (adaptive, no_adaptive), (tree, no_tree))


def best_adaptive(
    problem: Problem, goal: Goal, price: ArrayLike | None = None
) -> ExpectedPerformance | None:
    """Expected performance of the best adaptive policy for a goal, simulated.

    >>> import crowdtree as ct
    >>> round(best_adaptive(ct.example("table1"), Goal(error=0.01)).answers, 1)
    3.5
    """
    prices = None if price is None else question_prices(problem, price)
    with warnings.catch_warnings(action="ignore"):
        found, _ = AdaptiveCurve(problem, goal, prices).best()
    return None if found is None else found.performance


def _choices(
    problem: Problem,
    goal: Goal,
    prices: NDArray[np.float64] | None,
    adaptive: tuple[PlanChoice | None, str],
    tree: tuple[PlanChoice | None, str],
) -> PlanChoices:
    """Recommend one of the choices, and say why."""
    first, second = adaptive[0], tree[0]
    missing = adaptive[1] or tree[1]
    given = None if prices is None else tuple(prices.tolist())
    only = first or second
    if only is None:
        fix = "" if goal.error is None and goal.loss is None else "; allow more, or add questions"
        raise CrowdtreeError((tree[1] or adaptive[1]) + fix)
    if first is None or second is None:
        reason = f"The {'adaptive policy' if first is None else 'fixed tree'} is out: {missing}."
        return PlanChoices(problem, goal, given, (only,), reason, missing)
    ours, theirs = (value_of(choice, goal, prices) for choice in (first, second))
    if theirs <= ours.high:
        reason = "The fixed tree is as good as the adaptive policy, and simpler."
        return PlanChoices(problem, goal, given, (second, first), reason)
    if goal.error is not None or goal.loss is not None:
        words = "fewer answers" if prices is None else "lower cost"
    else:
        words = "lower error" if problem.loss is None else "lower expected loss"
        words = "lower cost and loss together" if problem.loss and goal.cost else words
    reason = f"{100 * (1 - ours / theirs):.0f} % {words} than the best fixed tree."
    return PlanChoices(problem, goal, given, (first, second), reason)
