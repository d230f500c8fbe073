"""Ways to label the items, side by side: error, answers and cost per item."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from crowdtree.core.bounds import checked_price, prices_by_question
from crowdtree.core.evaluation import Evaluation, evaluate
from crowdtree.core.problem import Problem
from crowdtree.core.text import percent_range
from crowdtree.designs.frontiers import Goal
from crowdtree.planning import ExpectedPerformance, PlanChoice, best_adaptive

MIN_TARGET = 1e-6
"""Target of the adaptive policy beside a plan without errors."""


class Way(NamedTuple):
    """A way to label the items, per item."""

    name: str
    error: float
    """Share of wrong labels, of the items that get one."""
    sure: str
    """What the error is: exact, or an interval."""
    answers: float
    cost: float | None = None
    risk: float | None = None
    """Expected loss, where mistakes have different costs."""
    undecided: float | None = None
    """Share of items without a label, where there can be some."""


def choice_way(choice: PlanChoice) -> Way:
    """A choice of :func:`crowdtree.plan`."""
    return _way(choice.name, choice.performance, choice.policy.problem)


def plan_ways(value: Evaluation, prices: Sequence[float] | None = None) -> list[Way]:
    """A plan, the adaptive policy at its error, and its tree with one worker per question.

    `prices` are those of the questions.
    """
    adaptive = _adaptive(value, prices)
    rows = [_exact("this plan", value, prices)] + ([] if adaptive is None else [adaptive])
    if int(value.plan.votes.max()) > 1:
        rows.append(_exact("the same tree, one worker per question", evaluate(value.tree), prices))
    return rows


def _exact(name: str, value: Evaluation, prices: Sequence[float] | None) -> Way:
    cost = None
    if prices is not None:
        each = checked_price(prices, value.tree.problem)
        cost = float(value.answers_by_node @ each[value.tree.question])
    loss = value.tree.problem.loss
    return Way(
        name,
        value.decided_error,
        "exact",
        value.expected_answers,
        cost,
        None if loss is None else value.risk,
        value.undecided if value.plan.handed_over else None,
    )


def _adaptive(value: Evaluation, prices: Sequence[float] | None) -> Way | None:
    """The best adaptive policy at the error (or loss) of a plan; ``None`` where there is none."""
    goal = Goal(error=max(value.decided_error, MIN_TARGET))
    problem = value.tree.problem
    if problem.loss is not None:
        goal = Goal(loss=max(value.risk, MIN_TARGET))
    if problem.whole is not None and prices is not None:
        problem = problem.whole
        prices = prices_by_question(np.asarray(prices), problem).tolist()
    found = best_adaptive(problem, goal, prices)
    return None if found is None else _way("adaptive policy", found, value.tree.problem)


def _way(name: str, found: ExpectedPerformance, problem: Problem) -> Way:
    return Way(
        name,
        found.error,
        "exact" if found.exact else percent_range(*found.error.interval),
        found.answers,
        None if math.isnan(found.cost) else found.cost,
        None if problem.loss is None else found.risk,
    )
