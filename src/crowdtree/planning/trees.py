"""The best fixed tree for a goal, by any kind of vote."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.bounds import prices_by_question
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.problem import DASH, Problem
from crowdtree.core.votes import VOTES
from crowdtree.designs.designers import design, refuse_groups
from crowdtree.designs.frontiers import Goal, Selection, frontier
from crowdtree.designs.frontiers.choice import OutOfReach
from crowdtree.designs.frontiers.vote_options import kinds_of_votes
from crowdtree.planning.choices import ExpectedPerformance, PlanChoice
from crowdtree.policies import PlanPolicy
from crowdtree.simulation import Estimate

MAX_POINTS = 40


def best_tree(
    problem: Problem,
    goal: Goal,
    prices: NDArray[np.float64] | None,
    allow_groups: bool,
    time_limit: float,
) -> tuple[PlanChoice | None, str]:
    """The best fixed tree by any kind of vote; else the reason why there is none."""
    try:
        quick = design(problem, "fm", allow_groups=True)
    except CrowdtreeError:  # an adaptive policy can ask questions that do not apply to all classes
        return None, no_first_question(problem)
    if not allow_groups:
        refuse_groups(quick)
    best: PlanChoice | None = None
    why = ""
    for vote in kinds_of_votes(problem):
        if goal.max_answers is not None and not VOTES[vote].bounded:
            continue
        front = frontier(
            problem,
            vote,
            # the choice below searches all trees, but not with a loss
            method="greedy" if problem.loss is None else None,
            price=None if prices is None else prices_by_question(prices, problem),
            max_votes=VOTES[vote].max_votes,
            max_points=MAX_POINTS,
            time_limit=time_limit,
            allow_groups=True,
        )
        try:
            # A majority takes more answers than a lead of the same error, but for rounding.
            limit = time_limit if best is None else 0.0
            choice = tree_choice(front.select(**goal._asdict(), time_limit=limit), prices)
        except OutOfReach as error:  # its ways out are options of `frontier`
            why = why or error.reason
            continue
        except CrowdtreeError as error:
            why = why or str(error)
            continue
        if best is None or value_of(choice, goal, prices) < value_of(best, goal, prices):
            best = choice
    return (None, why) if best is None else (best, "")


def no_first_question(problem: Problem) -> str:
    """Why a problem whose classes no question splits has no tree."""
    if problem.dash == "inapplicable" and (problem.outcome == DASH).any():
        return "a tree cannot begin, because every question has - for some class"
    return "no question separates any classes"


def value_of(choice: PlanChoice, goal: Goal, prices: NDArray[np.float64] | None = None) -> Estimate:
    """What a goal leaves to be minimised, of a choice that keeps it."""
    found, loss = choice.performance, choice.policy.problem.loss
    if goal.error is not None or goal.loss is not None:
        return found.answers if prices is None else found.cost
    if loss is None:
        return found.error
    if goal.cost is None:
        return found.risk
    low, high = found.risk.low + found.cost.low, found.risk.high + found.cost.high
    return Estimate(found.risk + found.cost, low, high)


def tree_choice(
    chosen: Selection, prices: NDArray[np.float64] | None = None, target: float = np.nan
) -> PlanChoice:
    """A chosen tree as a choice; its numbers are exact."""
    point = chosen.point
    cost = np.nan if prices is None else point.expected_cost
    numbers = (point.misclassification, point.expected_answers, point.risk, cost)
    error, answers, risk, paid = (Estimate(value, value, value) for value in numbers)
    performance = ExpectedPerformance(error, answers, True, risk, paid)
    return PlanChoice("tree", PlanPolicy(chosen.plan), performance, chosen.proof, target)
