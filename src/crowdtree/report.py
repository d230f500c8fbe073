"""A page about a plan: what it is worth, the tree, its levels and bounds, staffing, confusions."""

from __future__ import annotations

import math
import os
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np

from crowdtree.design import design
from crowdtree.evaluate import Evaluation, evaluate
from crowdtree.plan import Plan, as_plan
from crowdtree.plots.save import write_as
from crowdtree.plots.style import percent
from crowdtree.plots.trees import tree_views
from crowdtree.staffing import random_mean, single_mean, staff
from crowdtree.text import number, plural
from crowdtree.tree import Tree

__all__ = ["design_rows", "report_html", "staffing_rows", "write_report"]

Rows = list[dict[str, Any]]

RANDOM_ORDERS = 100
RANDOM_DRAWS = 30
MOST_ORDERS = 120
STAFFING_STEPS = 12
LARGE = 60
"""Nodes beyond which exact means take too long: `single` is left out, `random` is sampled."""
PAIRS_SHOWN = 12
_LOOKS = {
    "marginal": ("ours", "plain"),
    "paper-fm": ("paper", "plain"),
    "paper-fc": ("paper", "dashed"),
    "random": ("baseline", "dashed"),
    "single": ("baseline", "plain"),
    "everyone": ("baseline", "dotted"),
}


def write_report(
    path: str | os.PathLike[str], plan: Plan | Tree, *, title: str | None = None
) -> Path:
    """Write a self-contained page about a plan (or a tree with one worker a question).

    Parameters
    ----------
    path
        Where to write; the name ends in ``.html``.
    plan
        The plan, or a tree.
    title
        Heading of the page; by default its size and its exact misclassification.

    Examples
    --------
    >>> import crowdtree as ct, pathlib, tempfile
    >>> plan = ct.staff(ct.design(ct.example("table1")), workers=8)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_report(pathlib.Path(folder, "report.html"), plan)
    ...     "Whole tree" in page.read_text()
    True
    """
    make = lambda: report_html(plan, title=title)  # noqa: E731
    return write_as(path, {".html": make, ".htm": make})


def report_html(plan: Plan | Tree, *, title: str | None = None) -> str:
    """Make the page of :func:`write_report` as text."""
    from crowdtree.plots.page import page, render, tree_section

    value = evaluate(as_plan(plan))
    heading = title or _heading(value)
    designs = design_rows(value)
    staffing = staffing_rows(value)
    body = render(
        "report.html",
        title=heading,
        value=value,
        problem=value.tree.problem,
        plan=value.plan,
        alone=evaluate(value.tree),
        tree=tree_section(tree_views(value.plan)),
        bounds=_bound_rows(value),
        nodes=_node_rows(value),
        pairs=_confused_pairs(value),
        designs=designs,
        charts=_charts(value, designs, staffing),
    )
    return page(heading, body)


def _heading(value: Evaluation) -> str:
    size = plural(value.tree.problem.n_classes, "class", "classes")
    return (
        f"{size}, {percent(value.misclassification)} misclassified with "
        f"{number(value.expected_answers)} answers an item"
    )


# ---------------------------------------------------------------- tables


def _bound_rows(value: Evaluation) -> Rows:
    """Exact values, bounds and approximations, each named for what it is."""
    bounds = value.bounds
    right = 1 - value.misclassification
    inside = bounds.printed_correct.lower <= right <= bounds.printed_correct.upper
    above = bounds.printed_misclassification.lower > value.misclassification
    return [
        _bound("misclassification, P_m", "exact", value.misclassification),
        _bound("sum of g: at least P_m", "bound", value.additive),
        _bound("H(L0) / F^m_min: at least P_m", "bound", bounds.misclassification_upper),
        _bound("H(L0) / F^m: holds the sum of g", "bound", *bounds.additive),
        _bound(
            "H(L0) / F^m: P_m, as the paper prints it",
            "printed; does not hold" if above else "printed; its lower end is no bound",
            *bounds.printed_misclassification,
            bad=above,
        ),
        _bound("correct classification, P_c", "exact", right),
        _bound("product of b", "approximation", value.multiplicative),
        _bound("(H(L0)+1)^(-1/F^c): holds the product of b", "bound", *bounds.product),
        _bound(
            "(H(L0)+1) / F^c: P_c, as the paper prints it",
            "printed; no bound" if inside else "printed; does not hold",
            *bounds.printed_correct,
            bad=not inside,
        ),
    ]


def _bound(
    name: str, kind: str, low: float, high: float | None = None, *, bad: bool = False
) -> dict[str, Any]:
    return {"name": name, "kind": kind, "low": low, "high": high, "bad": bad}


def _node_rows(value: Evaluation) -> Rows:
    """The plan as a table: error of one answer and of the verdict at each node."""
    plan, tree = value.plan, value.tree
    alone = as_plan(tree).node_error
    return [
        {
            "number": node.index + 1,
            "level": node.level,
            "question": node.question,
            "text": node.text if node.text != node.question else "",
            "votes": int(plan.votes[node.index]),
            "before": float(alone[node.index] / node.share),
            "after": float(plan.node_error[node.index] / node.share),
            "share": node.share,
        }
        for node in tree.nodes
    ]


def _confused_pairs(value: Evaluation) -> Rows:
    """The likeliest confusions, by the share of all items that suffer them."""
    problem = value.tree.problem
    joint = problem.prior[:, None] * value.confusion
    np.fill_diagonal(joint, 0.0)
    order = np.argsort(-joint, axis=None, kind="stable")[:PAIRS_SHOWN]
    rows = []
    for truth, label in zip(*np.unravel_index(order, joint.shape), strict=True):
        if joint[truth, label] > 0:
            rows.append(
                {
                    "truth": problem.classes[truth],
                    "label": problem.classes[label],
                    "given": float(value.confusion[truth, label]),
                    "overall": float(joint[truth, label]),
                }
            )
    return rows


# ---------------------------------------------------------------- comparisons


def design_rows(value: Evaluation) -> Rows:
    """Misclassification of several designs with one worker a question.

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
        half = 1.96 * float(wrong.std(ddof=1)) / len(orders) ** 0.5
        row |= {
            "label": f"estimate from {len(orders)} orders, 95 % ± {percent(half)}",
            "low": max(mean - half, 0.0),
            "high": mean + half,
        }
    return row


def staffing_rows(value: Evaluation) -> Rows:
    """Misclassification over extra workers, by method.

    Exact, but for `random` in large trees: there it is the mean of `RANDOM_DRAWS` draws, with the
    95 % interval of that mean.
    """
    tree = value.tree
    extra = value.plan.workers - tree.n_nodes
    most = max(4 * tree.n_nodes, math.ceil(1.5 * extra))
    budgets = sorted({2 * round(most * step / STAFFING_STEPS / 2) for step in range(13)})
    rows: Rows = []
    for method, (kind, dash) in _LOOKS.items():
        if method == "single" and tree.n_nodes > LARGE:
            continue
        look = {"series": method, "kind": kind, "dash": dash}
        rows += [look | {"x": workers} | _staffed(tree, method, workers) for workers in budgets]
    return rows


def _staffed(tree: Tree, method: str, workers: int) -> dict[str, float]:
    if method == "single":
        return {"y": single_mean(tree, workers)}
    if method == "random" and tree.n_nodes <= LARGE:
        return {"y": random_mean(tree, workers)}
    if method == "random":
        return _random_draws(tree, workers)
    return {"y": evaluate(staff(tree, workers, method)).misclassification}


def _random_draws(tree: Tree, workers: int) -> dict[str, float]:
    rng = np.random.default_rng(0)
    wrong = np.array(
        [
            evaluate(staff(tree, workers, "random", rng=rng)).misclassification
            for _ in range(RANDOM_DRAWS)
        ]
    )
    mean, half = float(wrong.mean()), 1.96 * float(wrong.std(ddof=1)) / RANDOM_DRAWS**0.5
    return {"y": mean, "low": max(mean - half, 0.0), "high": mean + half}


# ---------------------------------------------------------------- charts


def _charts(value: Evaluation, designs: Rows, staffing: Rows) -> dict[str, str]:
    from crowdtree.plots import charts

    problem, plan = value.tree.problem, value.plan
    extra = plan.workers - value.tree.n_nodes
    made = {
        "levels": charts.level_chart(
            plan.levels, title="What each level of questions settles, and the error it adds"
        ),
        "bounds": charts.bounds_chart(value),
        "staffing": charts.curve_chart(
            staffing,
            title="More workers, fewer wrong labels",
            x="extra workers (everyone: each answers every question)",
            subtitle=[_means(value.tree)],
            points=[{"x": extra, "y": value.misclassification, "label": "this plan"}]
            if plan.vote == "majority" and value.misclassification > 0
            else [],
        ),
        "confusion": charts.confusion_chart(
            value.confusion,
            problem.classes,
            title="Which label an item of each class gets",
            subtitle=["Teal: right. Red: wrong. In % of the class."]
            if problem.n_classes <= 8
            else ["Teal: right. Red: wrong, the fuller the likelier."],
        ),
        "designs": charts.design_chart(
            designs,
            title=_best_designs(designs),
        ),
    }
    return {name: charts.chart_svg(chart, page=True) for name, chart in made.items()}


def _means(tree: Tree) -> str:
    if tree.n_nodes <= LARGE:
        return "Exact; random and single are means over their random choices."
    return f"Exact, but random: an estimate from {RANDOM_DRAWS} draws."


def _best_designs(designs: Rows) -> str:
    least = min(row["value"] for row in designs)
    best = [row["name"] for row in designs if row["value"] <= least * (1 + 1e-9)]
    names = " and ".join([", ".join(best[:-1]), best[-1]] if len(best) > 1 else best)
    verb = "misclassify" if len(best) > 1 else "misclassifies"
    return f"With one worker a question, {names} {verb} least"
