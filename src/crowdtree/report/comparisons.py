"""Other designs and staffing methods, for comparison with the plan of a page."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from itertools import islice, permutations
from typing import Any, NamedTuple

import numpy as np

from crowdtree.designers import design
from crowdtree.errors import CrowdtreeError
from crowdtree.evaluation import Evaluation, evaluate
from crowdtree.planning import PlanChoice, PlanChoices
from crowdtree.policy import AdaptivePolicy
from crowdtree.simulation import Estimate, simulate
from crowdtree.staffing import PAPER_SCORES, paper_plans, random_means, single_mean, staff
from crowdtree.stats import mean_half_width
from crowdtree.text import percent
from crowdtree.tree import Tree

__all__ = [
    "LARGE",
    "LOOKS",
    "RANDOM_DRAWS",
    "Alternative",
    "Rows",
    "alternatives",
    "choice_row",
    "design_rows",
    "staffing_rows",
]

Rows = list[dict[str, Any]]

RANDOM_ORDERS = 100
RANDOM_DRAWS = 30
MOST_ORDERS = 120
STAFFING_STEPS = 12
SIMULATED = 2000
MOST_ANSWERS = 200
LEAST_TARGET = 1e-6
"""Target of the adaptive policy beside a plan without errors."""
LARGE = 60
"""Nodes beyond which exact means take too long: `single` is left out, `random` is sampled."""
LOOKS = {
    "marginal": ("ours", "plain"),
    "paper-fm": ("paper", "plain"),
    "paper-fc": ("paper", "dashed"),
    "random": ("baseline", "dashed"),
    "single": ("baseline", "plain"),
    "everyone": ("baseline", "dotted"),
}
"""Colour and line of each staffing method in charts."""


class Alternative(NamedTuple):
    """A way to label the items, with its error and cost per item."""

    name: str
    error: float
    undecided: float
    answers: float
    label: str
    cost: float | None = None
    simulated: bool = False


def alternatives(
    value: Evaluation, prices: Sequence[float] | None = None, choices: PlanChoices | None = None
) -> list[Alternative]:
    """The plan, an adaptive policy, and the tree with one worker each.

    Of `choices`, these are its own policies; else the adaptive policy has the error of the plan.
    `prices` are those of the questions.
    """
    if choices is not None:
        rows = [choice_row(choice) for choice in choices.choices]
    else:
        adaptive = _adaptive(value, prices)
        rows = [_exact("this plan", value, prices)] + ([] if adaptive is None else [adaptive])
    if int(value.plan.votes.max()) > 1:
        rows.append(_exact("the same tree, one worker per question", evaluate(value.tree), prices))
    return rows


def choice_row(choice: PlanChoice) -> Alternative:
    """A policy of a plan, with its own numbers."""
    found = choice.performance
    label = "exact" if found.exact else f"simulated, {_interval(found.error)}"
    cost = None if math.isnan(found.cost) else found.cost
    return Alternative(choice.name, found.error, math.nan, found.answers, label, cost)


def _interval(wrong: Estimate) -> str:
    return f"95 % interval {percent(wrong.low)} to {percent(wrong.high)}"


def _exact(name: str, value: Evaluation, prices: Sequence[float] | None) -> Alternative:
    cost = None
    if prices is not None:
        cost = float(value.answers_by_node @ np.asarray(prices)[value.tree.question])
    error, undecided = value.decided_error, value.undecided
    return Alternative(name, error, undecided, value.expected_answers, "exact", cost)


def _adaptive(value: Evaluation, prices: Sequence[float] | None) -> Alternative | None:
    """Simulate the adaptive policy at the error of the plan; ``None`` where it cannot run."""
    target = min(max(value.decided_error, LEAST_TARGET), 0.5)
    with warnings.catch_warnings(action="ignore"):
        try:
            policy = AdaptivePolicy(value.tree.problem, target, MOST_ANSWERS, strict=False)
            run = simulate(value.tree.problem, policy, items=SIMULATED, rng=0)
        except CrowdtreeError:
            return None
    wrong = run.decided_error
    return Alternative(
        f"adaptive, target {percent(target)}",
        float(wrong),
        float(run.undecided),
        float(run.answers_per_item),
        f"{SIMULATED:,} simulated items, {_interval(wrong)}",
        None if prices is None else float(run.asked @ np.asarray(prices)) / run.items,
        simulated=True,
    )


def design_rows(value: Evaluation) -> Rows:
    """Misclassification of several designs with one worker per question.

    The mean over question orders is exact while there are few orders; else it is an estimate
    from a fixed sample, with a 95 % interval.
    """
    problem, mine = value.tree.problem, value.tree
    rows: Rows = []
    for method in ("fm", "fc", "gain", "gini"):
        tree = design(problem, method, allow_groups=True)
        same = tree.to_text() == mine.to_text()
        rows.append(_design_row(method, tree, "ours" if same else "baseline"))
    if not any(row["kind"] == "ours" for row in rows):
        rows.insert(0, _design_row(f"{mine.method} (this tree)", mine, "ours"))
    rows.append(_random_order_row(value))
    return rows


def _design_row(name: str, tree: Tree, kind: str) -> dict[str, Any]:
    made = evaluate(tree)
    return {
        "name": name,
        "value": made.misclassification,
        "answers": made.expected_answers,
        "label": "exact",
        "kind": kind,
    }


def _random_order_row(value: Evaluation) -> dict[str, Any]:
    problem = value.tree.problem
    every = math.factorial(min(problem.n_questions, 20)) <= MOST_ORDERS
    rng = np.random.default_rng(0)
    orders = (
        list(permutations(range(problem.n_questions)))
        if every
        else [rng.permutation(problem.n_questions) for _ in range(RANDOM_ORDERS)]
    )
    made = [evaluate(design(problem, "random", order=o, allow_groups=True)) for o in orders]
    wrong = np.array([v.misclassification for v in made])
    mean = float(wrong.mean())
    row: dict[str, Any] = {
        "name": "mean of random orders",
        "value": mean,
        "answers": float(np.mean([v.expected_answers for v in made])),
        "label": f"exact mean of all {len(orders)} orders",
        "kind": "baseline",
    }
    if not every:
        half = mean_half_width(wrong)
        row |= {
            "label": f"estimate from {len(orders)} orders, 95 % ± {percent(half)}",
            "low": max(mean - half, 0.0),
            "high": mean + half,
        }
    return row


def staffing_rows(value: Evaluation) -> Rows:
    """Misclassification over extra workers, by method.

    Exact except for `random` in large trees, which is the mean of `RANDOM_DRAWS` draws, with the
    95 % interval of that mean.
    """
    tree = value.tree
    extra = value.plan.workers - tree.n_nodes
    most = max(4 * tree.n_nodes, math.ceil(1.5 * extra))
    budgets = sorted({2 * round(most * step / STAFFING_STEPS / 2) for step in range(13)})
    rows: Rows = []
    for method, (kind, dash) in LOOKS.items():
        if method == "single" and tree.n_nodes > LARGE:
            continue
        look = {"series": method, "kind": kind, "dash": dash}
        made = zip(budgets, _staffed(tree, method, budgets), strict=True)
        rows += [look | {"x": workers} | found for workers, found in made]
    return rows


def _staffed(tree: Tree, method: str, budgets: Sequence[int]) -> list[dict[str, float]]:
    """Misclassification with each of some numbers of extra workers."""
    if method == "random" and tree.n_nodes > LARGE:
        return [_random_draws(tree, workers) for workers in budgets]
    if method == "random":
        return [{"y": mean} for mean in random_means(tree, budgets[-1])[list(budgets)].tolist()]
    if method == "single":
        return [{"y": single_mean(tree, workers)} for workers in budgets]
    if method in PAPER_SCORES:
        steps = list(islice(paper_plans(tree, method), budgets[-1] // 2 + 1))
        plans = [steps[min(workers // 2, len(steps) - 1)] for workers in budgets]
    else:
        plans = [staff(tree, workers, method) for workers in budgets]
    return [{"y": evaluate(plan).misclassification} for plan in plans]


def _random_draws(tree: Tree, workers: int) -> dict[str, float]:
    rng = np.random.default_rng(0)
    wrong = np.array(
        [
            evaluate(staff(tree, workers, "random", rng=rng)).misclassification
            for _ in range(RANDOM_DRAWS)
        ]
    )
    mean, half = float(wrong.mean()), mean_half_width(wrong)
    return {"y": mean, "low": max(mean - half, 0.0), "high": mean + half}
