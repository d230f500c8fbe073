"""How often plans of a learned table err on items that were left out of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.arrays import BoolArray, FloatArray
from crowdtree.core.calibration import FEW
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.evaluation import evaluate
from crowdtree.core.fixed_plan import Plan, as_plan
from crowdtree.designs.designers import DESIGNERS, design
from crowdtree.learning.refits import FOLDS, Another, log_odds, refits_of, sheet_of
from crowdtree.policies import PlanPolicy
from crowdtree.policies.replay import RecordedAnswers
from crowdtree.policies.walk import walk_items

if TYPE_CHECKING:
    from crowdtree.core.problem import Problem
    from crowdtree.core.tree import Tree
    from crowdtree.learning.model import Learned

OPTIMISM_SD = 0.5
"""Prior deviation of the log odds by which new items err more often than stated."""
MOSTLY = 0.8
"""Share of questions that items were asked at least, so that a plan can be tried on them."""
MAX_NODES = 20_000
"""Of the search for an optimal tree that is made again only to see how optimistic it is."""


class Optimism(NamedTuple):
    """How much more often than stated new items are labelled wrong, in log odds.

    `doubt` is the standard deviation of what is known of it, and `between` that between people,
    where each item was answered by one person; None otherwise.
    """

    centre: float
    doubt: float
    between: float | None


class _Tried(NamedTuple):
    """Left-out items under the plan that was made without them."""

    wrong: BoolArray
    worker: NDArray[np.int64]
    stated: FloatArray
    """Error that the plan states, one number per item."""
    by_person: bool


def _tried(
    learned: Learned, make: Callable[[Problem], Tree | Plan], folds: int = FOLDS, seed: int = 0
) -> _Tried:
    """Try plans, each made without a part of the items, on that part: one answer per vote."""
    sheet = sheet_of(learned)
    refits = refits_of(learned, sheet.worker, folds, seed)
    found = []
    for held, _, _, rest in refits.parts:
        taught = rest.problem
        order = [learned.problem.question_index(name) for name in taught.questions]
        plan = as_plan(make(taught))
        source = RecordedAnswers(sheet.values[held][:, order])
        labels = walk_items(PlanPolicy(plan), source, len(held)).label
        stated = np.full(len(held), evaluate(plan).misclassification)
        found.append((labels != learned.gold[held], sheet.worker[held], stated))
    if not found:
        raise CrowdtreeError("plan: expected two items of known class of some class, got one")
    wrong, worker, stated = (np.concatenate(column) for column in zip(*found, strict=True))
    return _Tried(wrong, worker, stated, refits.by_person)


def optimism(learned: Learned, plan: Plan) -> Optimism | None:
    """How far what a plan states is from what left-out items show: it errs more often than stated.

    The plan is made again without each part of the items, and what it states is compared with its
    errors on that part. Nothing is known (None) of a plan that no designer made from this table,
    without 20 items of known class, where these were asked only some of the questions, or where
    some of the items alone are too few to make a plan.
    """
    known = learned.gold >= 0
    if learned.kind != "classes" or known.sum() < FEW:
        return None
    make = _maker(learned, plan)
    if make is None or (sheet_of(learned).values[known, :, 0] >= 0).mean() < MOSTLY:
        return None
    try:
        wrong, worker, stated, person = _tried(learned, make)
    except CrowdtreeError:  # a part of the items leaves no question that splits the classes
        return None
    who = np.unique(worker, return_inverse=True)[1] if person else np.zeros(len(wrong), np.intp)
    expected = np.clip(np.bincount(who, stated) / np.bincount(who), 1e-6, 1 - 1e-6)
    seen, variance = log_odds(wrong, who, expected)
    gap = seen - np.log(expected) + np.log1p(-expected)
    if person:
        other = Another.of(gap, variance)
        return Optimism(other.centre, other.doubt, other.between)
    kept = OPTIMISM_SD**2 / (OPTIMISM_SD**2 + variance[0])
    return Optimism(float(kept * gap[0]), float(np.sqrt(kept * variance[0])), None)


def _maker(learned: Learned, plan: Plan) -> Callable[[Problem], Plan] | None:
    """What made the plan: its designer or a frontier, with at most as many votes as answers.

    A frontier is made again by the greedy method, and its point is the one that asks as much. A
    tree for upper errors is none of the designers' (None): one for the errors themselves would be
    another tree.
    """
    there, method = plan.tree.problem.worker_error, plan.tree.method
    if method.endswith(" for upper errors") or not np.allclose(
        there, learned.problem.worker_error, atol=1e-6
    ):
        return None
    votes = min(sheet_of(learned).values.shape[2], int(plan.votes.max()))
    votes -= (votes + 1) % 2  # a majority is of an odd number
    if plan.method.startswith("frontier"):
        wanted = min(plan.planned_answers, votes * as_plan(plan.tree).planned_answers)
        return lambda taught: _point(taught, votes, wanted)
    if method not in DESIGNERS:
        return None
    options: dict[str, Any] = {"node_limit": MAX_NODES} if method == "optimal" else {}

    def make(taught: Problem) -> Plan:
        tree = design(taught, method, allow_groups=True, **options)
        return Plan(tree, np.full(tree.n_nodes, votes))

    return make


def _point(problem: Problem, votes: int, wanted: float) -> Plan:
    """Plan of a frontier that asks about as much as wanted."""
    from crowdtree.designs.frontiers import frontier

    points = frontier(problem, method="greedy", max_votes=votes, allow_groups=True).points
    return min(points, key=lambda point: abs(point.planned_answers - wanted)).plan
