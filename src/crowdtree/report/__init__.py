"""A page about a plan: what it costs, what its labels are worth, the tree, and an appendix."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from crowdtree.errors import CrowdtreeError, MissingExtra
from crowdtree.evaluation import Evaluation, evaluate
from crowdtree.fixed_plan import Plan, as_plan
from crowdtree.per_class import ClassRow
from crowdtree.planning import MENU_ITEMS, PlanChoices
from crowdtree.plots.html import hint, page, tree_section
from crowdtree.plots.save import write_as
from crowdtree.plots.trees import tree_views
from crowdtree.report import summary
from crowdtree.report.comparisons import (
    LARGE,
    RANDOM_DRAWS,
    Rows,
    alternatives,
    choice_row,
    design_rows,
    staffing_rows,
)
from crowdtree.report.live import LiveCampaign, LiveWorker, live_section
from crowdtree.report.templates import render
from crowdtree.simulation import Estimate, simulate
from crowdtree.tree import Tree

__all__ = [
    "LiveCampaign",
    "LiveWorker",
    "design_rows",
    "report_html",
    "staffing_rows",
    "write_report",
]

PAIRS_SHOWN = 12
MOST_ROWS = 25
"""Rows of a table that are shown at once; the others can be opened."""


def write_report(
    path: str | os.PathLike[str],
    plan: PlanChoices | Plan | Tree,
    *,
    title: str | None = None,
    live: Sequence[LiveCampaign] = (),
    price: float | None = None,
) -> Path:
    """Write a self-contained page about a plan (or a tree with one worker per question).

    Of :func:`crowdtree.plan`'s choices, the page shows both, and the fixed tree in detail.

    Parameters
    ----------
    path
        Where to write; the name ends in ``.html``.
    plan
        The choices of :func:`crowdtree.plan`, a plan, or a tree.
    title
        Heading of the page; by default its size and its exact misclassification.
    live
        Campaigns that were run with it and whose truth is known, to be shown after the plan.
    price
        Price per answer, where the plan has none; without prices, the cost is an example.

    Examples
    --------
    >>> import crowdtree as ct, pathlib, tempfile
    >>> plan = ct.staff(ct.design(ct.example("table1")), workers=8)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_report(pathlib.Path(folder, "report.html"), plan)
    ...     "Whole tree" in page.read_text()
    True
    """
    make = lambda: report_html(plan, title=title, live=live, price=price)  # noqa: E731
    return write_as(path, {".html": make, ".htm": make})


def report_html(
    plan: PlanChoices | Plan | Tree,
    *,
    title: str | None = None,
    live: Sequence[LiveCampaign] = (),
    price: float | None = None,
) -> str:
    """Make the page of :func:`write_report` as text."""
    choices, first = None, ""
    if isinstance(plan, PlanChoices):
        choices = plan if price is None else _priced(plan, price)
        title = title or summary.choices_heading(choices)
        first = _choices_html(choices, title)
        if choices.fixed_plan is None:
            return page(title, first)
        plan = choices.fixed_plan
    value = evaluate(as_plan(plan))
    head = title or summary.heading(value)
    designs = design_rows(value)
    prices = None if price is None else (price,) * value.tree.problem.n_questions
    others = alternatives(value, prices if choices is None else choices.price, choices)
    points = summary.points(value, others)
    if choices is None:
        points.insert(0, summary.cost_point(others[0], prices))
    body = render(
        "report.html",
        title=head,
        choices=first,
        value=value,
        about=summary.about(value),
        points=points,
        next_steps=summary.next_steps(value),
        problem=value.tree.problem,
        plan=value.plan,
        tree=tree_section(tree_views(value.plan)),
        live=live_section(live),
        classes=[*_unused(value), *summary.weakest(value)],
        most=MOST_ROWS,
        bounds=_bound_rows(value),
        nodes=_node_rows(value),
        pairs=value.confusions(PAIRS_SHOWN),
        others=others,
        designs=designs,
        charts=_charts(
            value, designs, staffing_rows(value), "this plan" if choices is None else "fixed tree"
        ),
    )
    return page(head, body)


def _choices_html(choices: PlanChoices, title: str) -> str:
    """Both choices in a table, and how often an adaptive policy asks each question."""
    problem, best = choices.problem, choices.recommended
    asked = []
    if best.kind == "adaptive":
        often = simulate(problem, best.policy, items=MENU_ITEMS).answers_per_question
        asked = [(problem.text(problem.question_index(q)), n) for q, n in often.items()][:MOST_ROWS]
    cost = summary.cost_point(choice_row(best), choices.price)
    return render(
        "report-choices.html", title=title, choices=choices, problem=problem, asked=asked, cost=cost
    )


def _priced(choices: PlanChoices, price: float) -> PlanChoices:
    """The choices with one price for every answer."""
    if choices.price is not None:
        raise CrowdtreeError("price: the plan has its own prices; leave it out")
    rows = []
    for choice in choices.choices:
        answers = choice.performance.answers
        cost = Estimate(*(price * end for end in (answers, answers.low, answers.high)))
        rows.append(replace(choice, performance=replace(choice.performance, cost=cost)))
    prices = (price,) * choices.problem.n_questions
    return replace(choices, price=prices, choices=tuple(rows))


def _unused(value: Evaluation) -> list[ClassRow]:
    """Classes whose label no item gets."""
    return [row for row in value.classes if math.isnan(row.precision)]


# ---------------------------------------------------------------- tables


def _bound_rows(value: Evaluation) -> Rows:
    """Exact values, bounds and approximations, each labelled as such."""
    if value.tree.problem.loss is not None:  # the paper's bounds are for its own labels
        return [
            _bound("expected loss per item", "exact", value.risk),
            _bound("additive risk: at least the expected loss", "bound", value.additive_risk),
            _bound("misclassification", "exact", value.misclassification),
        ]
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
            "printed; does not hold" if above else "printed; its lower end is not a bound",
            *bounds.printed_misclassification,
            bad=above,
        ),
        _bound("correct classification, P_c", "exact", right),
        _bound("product of b", "approximation", value.multiplicative),
        _bound("(H(L0)+1)^(-1/F^c): holds the product of b", "bound", *bounds.product),
        _bound(
            "(H(L0)+1) / F^c: P_c, as the paper prints it",
            "printed; not a bound" if inside else "printed; does not hold",
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


# ---------------------------------------------------------------- charts


def _charts(value: Evaluation, designs: Rows, staffing: Rows, name: str) -> dict[str, str]:
    try:
        from crowdtree.plots import charts
    except MissingExtra as missing:
        return dict.fromkeys(
            ("levels", "staffing", "confusion", "designs", "bounds"), hint(missing)
        )

    problem, plan = value.tree.problem, value.plan
    extra = plan.workers - value.tree.n_nodes
    made = {
        "levels": charts.level_chart(
            plan.levels, title="Entropy removed and error added by each level of questions"
        ),
        "staffing": charts.curve_chart(
            staffing,
            title="More workers, fewer wrong labels",
            x="extra workers (everyone: each answers every question)",
            subtitle=[
                "Marginal: each further pair of people goes where it helps most. Paper: its rules.",
                f"Single: all go to one question. {_means(value.tree)}",
            ],
            points=[{"x": extra, "y": value.misclassification, "label": name}]
            if plan.vote == "majority" and value.misclassification > 0
            else [],
        ),
        "confusion": charts.confusion_chart(
            value.confusion,
            problem.classes,
            title="Which label an item of each class gets",
        ),
        "designs": charts.design_chart(
            designs,
            title=_best_designs(designs),
        ),
    }
    if problem.loss is None:
        made["bounds"] = charts.bounds_chart(value)
    return {name: charts.chart_svg(chart, page=True) for name, chart in made.items()}


def _means(tree: Tree) -> str:
    if tree.n_nodes <= LARGE:
        return "Exact; random and single are means over their random choices."
    return f"Exact, except random: an estimate from {RANDOM_DRAWS} draws."


def _best_designs(designs: Rows) -> str:
    least = min(row["value"] for row in designs)
    best = [row["name"] for row in designs if row["value"] <= least * (1 + 1e-9)]
    names = " and ".join([", ".join(best[:-1]), best[-1]] if len(best) > 1 else best)
    verb = "misclassify" if len(best) > 1 else "misclassifies"
    return f"With one worker per question, {names} {verb} least"
