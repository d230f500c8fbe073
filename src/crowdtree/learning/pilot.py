"""Pilots: sample sizes, sensitivity to each cell, upper errors and credible intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.arrays import BoolArray, FloatArray
from crowdtree.core.checking import check_call, check_share
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.evaluation import evaluate
from crowdtree.core.fixed_plan import Plan, as_plan
from crowdtree.core.problem import DASH, Problem
from crowdtree.core.result_methods import HtmlShown
from crowdtree.core.tree import NO_BRANCH, Tree
from crowdtree.learning.learned_problem import quietly_replaced, with_table
from crowdtree.learning.source_problem import with_upper_errors
from crowdtree.learning.within import at_error

if TYPE_CHECKING:
    from crowdtree.learning.model import Learned
    from crowdtree.learning.optimism import Optimism
    from crowdtree.learning.people import People

_STEP = 1e-5  # of an error, in a difference
_MAX_CELLS = 1 << 22  # cells (node, class) that are computed together
MAX_ERROR = 0.499
CAUTION = 3.0
"""Real labels may be wrong this many times as often as a plan says (docs/learning.md)."""
MAX_TABLES = 300
"""Draws of tables of several answers, each of which is evaluated exactly."""


@dataclass(frozen=True, eq=False)
class Pilot(HtmlShown):
    """Sizes of a pilot; estimates by the normal approximation.

    `answers_per_cell` is (question, class), `gold_per_class` one number per class, `gold_items`
    their sum (`gold_items_random` if items are drawn at random) and `answers` the total. With a
    tree or plan, `sensitivity` is ``d misclassification / d e`` per cell, and `known_items` how
    many labelled items to check so that the share of wrong labels is known to ± `half_width`,
    whatever people do.
    """

    answers_per_cell: NDArray[np.int64]
    gold_per_class: NDArray[np.int64]
    gold_items: int
    gold_items_random: int
    answers: int
    half_width: float
    level: float
    sensitivity: FloatArray | None = None
    known_items: int | None = None

    def __repr__(self) -> str:
        return (
            f"Pilot({self.gold_items:,} items of known class, {self.answers:,} answers: "
            f"errors to ± {self.half_width:g} at {self.level:g})"
        )


def plan_pilot(
    design: Problem | Tree | Plan,
    half_width: float = 0.05,
    *,
    level: float = 0.95,
    answers_per_item: int = 3,
) -> Pilot:
    """Compute how many gold items and answers make the error table known to ± `half_width`.

    A cell of error e needs ``z² e (1 - e) / half_width²`` answers (at least ``z² / 4``, so that
    even a tiny error is observed); an item gives `answers_per_item` answers to each question. With
    a tree or a plan only the cells that it uses are counted, each with its sensitivity.

    Examples
    --------
    >>> problem = Problem(["a", "b"], None, ["q"], [[0, 1]], 0.2)
    >>> pilot = plan_pilot(problem, half_width=0.05)
    >>> int(pilot.answers_per_cell[0, 0]), pilot.gold_items, pilot.answers
    (246, 164, 492)
    """
    from scipy.special import ndtri

    check_call(plan_pilot, locals())
    if not 0 < half_width < 0.5:
        raise CrowdtreeError(
            f"half_width: expected a number above 0 and below 0.5, got {half_width!r}"
        )
    check_share("level", level)
    if answers_per_item < 1:
        raise CrowdtreeError(f"answers_per_item: expected 1 or more, got {answers_per_item!r}")
    problem = design if isinstance(design, Problem) else as_plan(design).tree.problem
    z = float(ndtri(0.5 + level / 2))
    error = problem.worker_error
    need = np.ceil(np.maximum(z**2 * error * (1 - error) / half_width**2, z**2 / 4))
    used = problem.outcome != DASH
    slope, known = None, None
    if not isinstance(design, Problem):
        slope = sensitivity(design)
        used &= _asked(as_plan(design))
        # people err together, so the labels may be wrong several times as often as planned
        wrong = min(0.5, CAUTION * evaluate(design).misclassification)
        known = math.ceil(max(z**2 * wrong * (1 - wrong) / half_width**2, z**2 / 4))
    need = np.where(used, need, 0).astype(np.int64)
    per_class = -(-need.max(axis=0) // answers_per_item)
    return Pilot(
        answers_per_cell=need,
        gold_per_class=per_class,
        gold_items=int(per_class.sum()),
        gold_items_random=int(np.ceil((per_class / problem.prior).max())),
        answers=int(need.sum()),
        half_width=half_width,
        level=level,
        sensitivity=slope,
        known_items=known,
    )


def _asked(plan: Plan) -> BoolArray:
    used = np.zeros(plan.tree.problem.outcome.shape, dtype=bool)
    for step in plan.tree.steps:
        used[plan.tree.question[step.node], step.cls] = True
    return used


def sensitivity(design: Tree | Plan) -> FloatArray:
    """``d misclassification / d e[q, c]`` by the product rule, one row per question.

    Which of the right, or of the wrong, answers people give stays as it is. How the verdict of a
    vote moves with the error is a central difference.

    Examples
    --------
    >>> import crowdtree as ct
    >>> tree = ct.design(ct.example("table1"))
    >>> slope = sensitivity(tree)
    >>> bump = tree.problem.worker_error + 1e-6 * (np.arange(5) == 2)
    >>> moved = Tree(tree.problem.replace(worker_error=bump), tree.question, tree.children)
    >>> change = ct.evaluate(moved).misclassification - ct.evaluate(tree).misclassification
    >>> bool(abs(change / 1e-6 - slope[:, 2].sum()) < 1e-6)
    True
    """
    plan = as_plan(design)
    tree, problem = plan.tree, plan.tree.problem
    slope = np.zeros(problem.outcome.shape)
    moved = [_moved(problem, step) for step in (-_STEP, _STEP)]
    plans = [replace(plan, tree=Tree(p, tree.question, tree.children)) for p in moved]
    width = np.maximum(moved[1].worker_error - moved[0].worker_error, _STEP)
    most = max(1, _MAX_CELLS // tree.n_nodes)
    for first in range(0, problem.n_classes, most):
        classes = np.arange(first, min(first + most, problem.n_classes))
        ahead = _chance_ahead(plan, classes)  # of the right label, by node and branch
        less, more = (p.routes(np.arange(tree.n_nodes), classes) for p in plans)
        gain = np.sum([a * (m - n) for a, m, n in zip(ahead, more, less, strict=True)], axis=0)
        at = tree.question[:, None], classes
        np.add.at(slope, at, -plan.flow(classes).reach * gain * problem.prior[classes] / width[at])
    return np.where(problem.outcome == DASH, 0.0, slope)


def _moved(problem: Problem, step: float) -> Problem:
    """Make the problem with other errors, each within 0 and 1."""
    error = np.where(problem.outcome == DASH, problem.worker_error, problem.worker_error + step)
    error = np.clip(error, 0, 1)
    if problem.table is None:
        return quietly_replaced(problem, worker_error=error)
    return quietly_replaced(problem, table=at_error(problem, error))


def _chance_ahead(plan: Plan, classes: NDArray[np.intp]) -> list[FloatArray]:
    """Chance of the right label after each branch (answer, node), for items of some classes."""
    tree = plan.tree
    routes = plan.routes(np.arange(tree.n_nodes), classes)
    right = (tree.leaf_label[:, None] == classes).astype(np.float64)
    here = np.zeros((tree.n_nodes, len(classes)))
    ahead = [np.zeros_like(here) for _ in routes]
    for nodes in reversed(tree.by_level):
        for answer, child in enumerate(tree.children[nodes].T):
            inner, leaf = child >= 0, (child < 0) & (child != NO_BRANCH)
            ahead[answer][nodes[inner]] = here[child[inner]]
            ahead[answer][nodes[leaf]] = right[~child[leaf]]
            here[nodes] += routes[answer][nodes] * ahead[answer][nodes]
    return ahead


def upper_problem(learned: Learned, level: float = 0.95) -> Problem:
    """Make the problem with every error at the upper end of its credible interval."""
    from scipy.stats import beta

    check_share("level", level)
    wrong, right = learned.error_posterior
    problem = learned.problem
    if problem.has_sources:
        return with_upper_errors(learned, level)
    high = np.maximum(np.asarray(beta.ppf(level, wrong, right)), problem.worker_error)
    if not problem.is_yes_no:
        return with_table(problem, learned.class_fit, np.maximum(high, learned.fit.error))
    high = np.where(problem.worker_error < MAX_ERROR, np.minimum(high, MAX_ERROR), high)
    return quietly_replaced(problem, worker_error=np.where(problem.outcome == DASH, 0.5, high))


@dataclass(frozen=True)
class Credible:
    """Credible interval of a plan's misclassification: an estimate, from draws."""

    mean: float
    low: float
    high: float
    level: float
    draws: int


def credible_interval(
    design: Tree | Plan,
    learned: Learned,
    *,
    level: float = 0.95,
    draws: int = 1000,
    people: int | None = None,
    items: int | None = None,
    rng: np.random.Generator | int = 0,
) -> Credible:
    """Misclassification of a plan when the errors are drawn from their posteriors.

    Every draw is evaluated exactly. The interval is about the answers of `people` other people of
    the same kind (by default as many as answered, or one where each item was answered by one): how
    much people differ is drawn for all cells at once. With `items`, it is that of the share that
    will be counted wrong among so many. A plan that was designed on ``learned.problem`` prefers
    cells whose errors look small by chance; the draws are shifted by how much, where left-out items
    show it (:func:`crowdtree.learning.optimism.optimism`).
    """
    for name, count in (("people", people), ("items", items)):
        if count is not None and count < 1:
            raise CrowdtreeError(f"{name}: expected 1 or more, got {count!r}")
    if draws < 2:
        raise CrowdtreeError(f"draws: expected 2 or more, got {draws!r}")
    learned.problem.require_one_source("credible_interval")
    from crowdtree.learning.optimism import optimism

    plan = as_plan(design)
    _check_names(plan.tree.problem, learned.problem)
    rng = np.random.default_rng(rng)
    found = optimism(learned, plan)
    # where people were left out in turn, the optimism includes how they differ
    differ = getattr(learned.fit, "people", None) if found is None or not found.between else None
    tables = not learned.problem.is_yes_no
    draws = min(draws, MAX_TABLES) if tables else draws
    drawn = _drawn(learned, _asked(plan), draws, differ, people, rng)
    if tables:
        fit = learned.class_fit
        value = np.array([_misclassified(plan, fit.at_error(e, rng)) for e in drawn])
    else:
        value = 1 - _correct(plan, drawn)
    if found is not None:
        value = _shifted(value, found, people, rng)
    if items is not None:
        value = rng.binomial(items, np.clip(value, 0, 1)) / items
    tail = (1 - level) / 2
    low, high = np.quantile(value, [tail, 1 - tail])
    return Credible(float(value.mean()), float(low), float(high), level, draws)


def _check_names(plan: Problem, learned: Problem) -> None:
    """Refuse a plan for other classes or questions than those learned."""
    if (plan.questions, plan.classes) == (learned.questions, learned.classes):
        return
    if (set(plan.questions), set(plan.classes)) == (set(learned.questions), set(learned.classes)):
        moved = "questions" if plan.questions != learned.questions else "classes"
        raise CrowdtreeError(
            f"plan: has the learned {moved} in another order; design on learned.problem"
        )
    raise CrowdtreeError(
        f"plan: is for {plan.n_questions} questions and {plan.n_classes} classes that are not "
        f"those learned ({learned.n_questions} and {learned.n_classes}); design on learned.problem"
    )


def _shifted(
    value: FloatArray, found: Optimism, people: int | None, rng: np.random.Generator
) -> FloatArray:
    """Errors of a plan moved by what left-out items show, in log odds."""
    value = np.clip(value, 1e-12, 1 - 1e-12)
    sd = np.hypot(found.doubt, (found.between or 0.0) / np.sqrt(people or 1))
    gap = found.centre + sd * rng.standard_normal(len(value))
    return np.asarray(1 / (1 + (1 - value) / value * np.exp(-gap)))


def _drawn(
    learned: Learned,
    asked: BoolArray,
    draws: int,
    differ: People | None,
    people: int | None,
    rng: np.random.Generator,
) -> FloatArray:
    """Error tables (draw, question, class); cells that are not `asked` keep their mean."""
    from scipy.special import expit, logit

    wrong, right = learned.error_posterior
    made = np.tile(wrong / (wrong + right), (draws, 1, 1))
    q, c = np.nonzero(asked)
    drawn = np.clip(rng.beta(wrong[q, c], right[q, c], (draws, len(q))), 1e-9, 1 - 1e-9)
    if differ is not None:
        skill, more = differ.draws(draws, people, rng)
        drawn = expit(logit(drawn) - skill - learned.class_fit.lean[q, c] * more[:, q])
    made[:, q, c] = drawn
    return made


def _misclassified(plan: Plan, table: FloatArray) -> float:
    """Misclassification of a plan under another table of answers: exact."""
    tree = plan.tree
    problem = quietly_replaced(tree.problem, table=table)
    moved = Tree(problem, tree.question, tree.children)
    return evaluate(replace(plan, tree=moved)).misclassification


def _correct(plan: Plan, errors: FloatArray) -> FloatArray:
    """Probability of the right label, one per draw of the error table."""
    tree, prior = plan.tree, plan.tree.problem.prior
    alive = np.broadcast_to(prior, (len(errors), len(prior)))
    right = np.zeros(len(errors))
    for step, rows in zip(tree.steps, tree.leaf_rows, strict=True):
        error = errors[:, tree.question[step.node], step.cls]
        fused = plan.rule.two_way_error(error, plan.votes[step.node], 0.0)
        passed = alive[:, step.parent] * np.where(step.answer == DASH, 0.5, 1 - fused)
        mine = tree.leaf_label[rows.node] == rows.cls
        right += passed[:, rows.parent[mine]].sum(axis=1)
        alive = passed
    return right
