"""A page about a plan: its error, answers and price, what its labels are worth, and the tree."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from crowdtree.core.bounds import checked_price, price_by_question
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.evaluation import evaluate
from crowdtree.core.fixed_plan import Plan, as_plan
from crowdtree.core.tree import Tree
from crowdtree.planning import PlanChoices
from crowdtree.show.plots.html import page, tree_section
from crowdtree.show.plots.save import write_as
from crowdtree.show.plots.trees import tree_views
from crowdtree.show.report import details, summary
from crowdtree.show.report.live import LiveCampaign, LiveWorker, live_section
from crowdtree.show.report.templates import render
from crowdtree.show.report.ways import choice_way, plan_ways
from crowdtree.simulation import Estimate

__all__ = ["Example", "LiveCampaign", "LiveWorker", "report_html", "write_report"]


class Example(NamedTuple):
    """Another plan at the end of a report: a mix of sources with its table, or a small tree."""

    title: str
    text: str
    plan: PlanChoices | Tree


def write_report(
    path: str | os.PathLike[str],
    plan: PlanChoices | Plan | Tree,
    *,
    title: str | None = None,
    live: LiveCampaign | None = None,
    examples: Sequence[Example] = (),
    price: float | None = None,
) -> Path:
    """Write a self-contained page about a plan (or a tree with one worker per question).

    Of :func:`crowdtree.plan`'s choices, the page is about the recommended one, with the fixed tree
    as its second part.

    Parameters
    ----------
    path
        Where to write; the name ends in ``.html``.
    plan
        The choices of :func:`crowdtree.plan`, a plan, or a tree.
    title
        Heading of the page; by default its size, error and answers.
    live
        A campaign that was run with it and whose truth is known, to be shown after the plan.
    examples
        Other plans to be shown at the end.
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
    options: dict[str, Any] = {"title": title, "live": live, "examples": examples, "price": price}
    make = partial(report_html, plan, **options)
    return write_as(path, {".html": make, ".htm": make})


def report_html(
    plan: PlanChoices | Plan | Tree,
    *,
    title: str | None = None,
    live: LiveCampaign | None = None,
    examples: Sequence[Example] = (),
    price: float | None = None,
) -> str:
    """Make the page of :func:`write_report` as text."""
    if isinstance(plan, PlanChoices):
        choices = plan if price is None else _priced(plan, price)
        fixed, problem, prices = choices.fixed_plan, choices.problem, choices.price
        value = None if fixed is None else evaluate(fixed)
        adaptive = choices.recommended.kind == "adaptive"
        ways = [choice_way(choice) for choice in choices.choices]
        lead, notes = choices.reason, choices.notes
    else:
        value = evaluate(as_plan(plan))
        problem, adaptive = value.tree.problem, False
        prices = None
        if price is not None or problem.has_prices:
            each = (
                checked_price(price, problem.whole)
                if problem.whole
                else price_by_question(price, problem)
            )
            prices = tuple(each.tolist())
        ways = plan_ways(value, prices)
        lead, notes = "", []
    if adaptive:
        tables = details.adaptive_tables(choices.policy)
        points = summary.adaptive_points(
            problem, ways[0], prices, None if fixed is None else fixed.tree
        )
        lead = f"Recommended: the adaptive policy. {summary.ADAPTIVE} {lead}"
    else:
        assert value is not None
        tables = [details.label_table(value)]
        points = summary.tree_points(value, ways[0], prices)
        lead = f"{lead} {summary.about(value)}"
    if isinstance(plan, PlanChoices) and plan.mixes:
        tables = [details.mix_table(plan), *tables]
    heading = title or summary.heading(problem, ways[0])
    body = render(
        "report.html",
        title=heading,
        lead=lead.strip(),
        ways=details.way_table(ways),
        notes=notes,
        points=points,
        tables=tables,
        adaptive=adaptive,
        about="" if value is None else summary.about(value),
        mixes=details.mix_figure(plan) if isinstance(plan, PlanChoices) and plan.mixes else "",
        tree="" if value is None else tree_section(tree_views(value.plan)),
        live="" if live is None else live_section(live),
        examples=[(example, *_pictured(example.plan)) for example in examples],
        most=details.MAX_ROWS,
    )
    return page(heading, body)


def _pictured(plan: PlanChoices | Tree) -> tuple[details.Table | None, str]:
    """The table and the picture of an example."""
    if isinstance(plan, PlanChoices):
        return details.mix_table(plan), details.mix_figure(plan)
    return None, tree_section(tree_views(plan, prefix="example", fold=0.0))


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
