"""Plan: the best policy for an error, a budget or a loss, and the best fixed tree beside it."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdtree.core.bounds import prices_by_question
from crowdtree.core.checking import check_call, named_options
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.problem import Problem
from crowdtree.designs.frontiers import Goal
from crowdtree.designs.frontiers.vote_options import question_prices
from crowdtree.planning.adaptive_curve import (
    ITEMS,
    MAX_ANSWERS,
    MENU_ITEMS,
    AdaptiveCurve,
    Report,
    expected_performance,
    reachable_goal,
    run_cost,
    silent,
)
from crowdtree.planning.choices import ExpectedPerformance, Mix, PlanChoice, PlanChoices
from crowdtree.planning.forecasts import (
    CertificateCost,
    certificate_cost,
    forecast_checks,
    people_costs,
    performance_job,
)
from crowdtree.planning.mixes import best_mix
from crowdtree.planning.trees import best_tree, value_of

__all__ = [
    "ITEMS",
    "MAX_ANSWERS",
    "MENU_ITEMS",
    "TIME_LIMIT",
    "CertificateCost",
    "ExpectedPerformance",
    "Mix",
    "PlanChoice",
    "PlanChoices",
    "Report",
    "best_adaptive",
    "certificate_cost",
    "expected_performance",
    "forecast_checks",
    "people_costs",
    "performance_job",
    "plan",
    "reachable_goal",
    "run_cost",
]

TIME_LIMIT = 4.0
"""Seconds for the search of fixed trees."""


@named_options
def plan(
    problem: Problem,
    *,
    error: float | None = None,
    answers: float | None = None,
    cost: float | None = None,
    max_loss: float | None = None,
    price: ArrayLike | Mapping[str, float] | None = None,
    max_answers: int | None = None,
    allow_groups: bool = False,
    time_limit: float = TIME_LIMIT,
    rng: int = 0,
    progress: Report | None = None,
) -> PlanChoices:
    """Plan a campaign: the best policy for an error, a budget or an expected loss.

    An adaptive policy chooses each question by the answers so far, and stops at a threshold that
    is tuned by simulation, with the same items and people for every threshold. Beside it stands
    the best fixed tree by any kind of vote, for those who need one to print or to explain. The
    adaptive policy is recommended, unless it does not reach the goal or a tree is as good. The
    tree is the best one found; its proof says whether a better one can exist.

    Where the problem has several sources, mixes of them are compared by their cost (``mixes`` of
    the result), and the policy asks those of the best mix.

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
        Most answers that any item may take, also with the tree, which then has majority votes:
        votes until a lead have no largest number. By default only the adaptive policy has a limit,
        of 200.
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
    goal = Goal(error, answers, cost, max_loss, max_answers=max_answers)
    goal.check(problem)
    mixed = len(problem.sources) > 1
    if mixed and answers is not None:
        raise CrowdtreeError(
            "answers: those of several sources differ in price; expected cost, error or max_loss"
        )
    if cost is not None and price is None and not problem.has_prices:
        raise CrowdtreeError("cost: give the price of an answer, or use answers")
    priced = price is not None or problem.has_prices
    prices = question_prices(problem, price) if priced else None
    report = progress or silent
    with warnings.catch_warnings(action="ignore"):
        report(0.0, "Searching fixed trees")
        tree, no_tree = best_tree(problem, goal, prices, allow_groups, time_limit)
        report(0.4, "Simulating adaptive policies")
        most = MAX_ANSWERS if max_answers is None else max_answers
        mixes: tuple[Mix, ...] = ()
        if mixed and prices is not None:
            adaptive, no_adaptive, mixes = best_mix(problem, goal, prices, most, rng, report)
        else:
            curve = AdaptiveCurve(problem, goal, prices, most, rng, report=report)
            adaptive, no_adaptive = curve.best()
    found = _choices(problem, goal, prices, (adaptive, no_adaptive), (tree, no_tree))
    return replace(found, mixes=mixes) if mixes else found


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
    given = None if prices is None else tuple(prices_by_question(prices, problem).tolist())
    only = first or second
    if only is None:
        if goal.error is None and goal.loss is None:
            raise CrowdtreeError(tree[1])
        raise CrowdtreeError(f"{adaptive[1]}; allow more, or add questions")
    if first is None or second is None:
        kind = "adaptive policy" if first is None else "fixed tree"
        reason = f"No {kind}: {_SUBJECT.sub(lambda name: _WORDS[name[0]], missing)}."
        return PlanChoices(problem, goal, given, (only,), reason, missing)
    ours, theirs = (value_of(choice, goal, prices) for choice in (first, second))
    if goal.error is not None or goal.loss is not None:
        words = "fewer answers" if prices is None else "lower cost"
    else:
        words = "lower error" if problem.loss is None else "lower expected loss"
        words = "lower cost and loss together" if problem.loss and goal.cost else words
    if ours.low <= theirs <= ours.high:
        reason = "The fixed tree is as good as the adaptive policy, and simpler."
        return PlanChoices(problem, goal, given, (second, first), reason)
    if theirs < ours.low:
        reason = f"{saving(theirs / ours)} {words} than the adaptive policy, and simpler."
        return PlanChoices(problem, goal, given, (second, first), reason)
    reason = f"{saving(ours / theirs)} {words} than the best fixed tree{_found(second)}."
    return PlanChoices(problem, goal, given, (first, second), reason)


def saving(ratio: float) -> str:
    """How much less something is; what is not nothing is never 100 % less.

    >>> saving(0.8), saving(0.001)
    ('20 %', 'Over 99 %')
    """
    return "Over 99 %" if 0 < ratio < 0.005 else f"{100 * (1 - ratio):.0f} %"


_WORDS = {
    "error: ": "an error of ",
    "loss: ": "a loss of ",
    "answers: ": "a budget of ",
    "cost: ": "a budget of ",
    "max_answers: ": "a maximum of ",
}
_SUBJECT = re.compile(f"^({'|'.join(_WORDS)})")
"""How a message about an argument begins."""


def _found(tree: PlanChoice) -> str:
    return "" if tree.proof.startswith("proven") else " found"
