"""Tables of a report: the ways to label, the questions, and what each label is worth."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from crowdtree.core.errors import MissingExtra
from crowdtree.core.evaluation import Evaluation
from crowdtree.core.text import percent
from crowdtree.planning import ITEMS, PlanChoices
from crowdtree.policies import Policy
from crowdtree.show.plots.html import hint
from crowdtree.show.report.templates import digits
from crowdtree.show.report.ways import Way
from crowdtree.simulation import Run, simulate

MAX_ROWS = 12
"""Rows of a table that are shown at once; the others can be opened."""


class Table(NamedTuple):
    """A table of texts; a cell may have a second line. The class ``n`` marks numbers."""

    title: str
    about: str
    columns: tuple[tuple[str, str], ...]
    rows: Sequence[Sequence[str | tuple[str, str]]]


def way_table(ways: Sequence[Way]) -> Table:
    """The ways to label, the first one chosen."""
    columns = [("plan", "words"), ("wrong labels", "n"), ("answers per item", "n")]
    rows: list[list[str | tuple[str, str]]]
    rows = [[way.name, (percent(way.error), way.sure), digits(way.answers)] for way in ways]
    for name, part, form in (
        ("cost per item", "cost", digits),
        ("expected loss", "risk", digits),
        ("undecided", "undecided", percent),
    ):
        if getattr(ways[0], part) is not None:
            columns.append((name, "n"))
            for row, way in zip(rows, ways, strict=True):
                value = getattr(way, part)
                row.append("" if value is None else form(value))
    return Table("", "", tuple(columns), rows)


def mix_table(choices: PlanChoices) -> Table:
    """Mixes of sources, the chosen one first, and what each source costs in them."""
    (first, *header), *rows = choices.mix_rows
    about = "Cost per item of each mix, and of each source in it; simulated."
    return Table("Who is asked", about, ((first, "words"), *((name, "n") for name in header)), rows)


def mix_figure(choices: PlanChoices) -> str:
    """A chart of error (or expected loss) over the cost of each mix."""
    try:
        from crowdtree.show.plots.mixes import mix_chart
        from crowdtree.show.plots.vega import chart_svg
    except MissingExtra as missing:
        return hint(missing)
    return chart_svg(mix_chart(choices), page=True)


def adaptive_tables(policy: Policy[Any]) -> list[Table]:
    """Questions and labels of an adaptive policy, from the simulation that chose it."""
    with warnings.catch_warnings(action="ignore"):
        run = simulate(policy.problem, policy, items=ITEMS)
    by_source = [_source_table(run)] if policy.problem.has_sources else []
    return [_question_table(run), *by_source, _run_labels(run)]


def _source_table(run: Run) -> Table:
    """Answers and cost of each source, beside the total."""
    cost, answers = run.cost_per_source(), run.answers_per_source
    rows: list[list[str | tuple[str, str]]] = [
        [name, digits(answers[name]) if name in answers else "–", digits(paid)]
        for name, paid in cost.items()
    ]
    rows.append(["all sources", digits(float(run.answers_per_item)), digits(sum(cost.values()))])
    columns = (("source", "words"), ("answers per item", "n"), ("cost per item", "n"))
    return Table("Who answers", "At the prices of the sources.", columns, rows)


def _question_table(run: Run) -> Table:
    problem = run.problem
    rows: list[list[str | tuple[str, str]]] = [
        [problem.text(problem.question_index(name)), "<0.01" if often < 0.005 else f"{often:.2f}"]
        for name, often in run.answers_per_question.items()
    ]
    columns = (("question", "words"), ("answers per item", "n"))
    return Table("How often each question is asked", "", columns, rows)


def _run_labels(run: Run) -> Table:
    """Share of right labels by the stated errors, which vary less than counts of wrong labels."""
    problem, n = run.problem, run.problem.n_classes
    given = np.bincount(run.label_index, minlength=n)
    stated = np.bincount(run.label_index, weights=run.posterior_error, minlength=n)
    items = np.bincount(run.truth_index, minlength=n)
    answers = np.bincount(run.truth_index, weights=run.answers, minlength=n)
    wrong = run.confusion
    np.fill_diagonal(wrong, 0.0)
    with np.errstate(invalid="ignore"):
        right, mean = 1 - stated / given, answers / items
    rows: list[list[str | tuple[str, str]]] = [
        [
            problem.classes[c],
            percent(float(problem.prior[c])),
            f"{mean[c]:.1f}" if items[c] else "–",
            percent(float(right[c])) if given[c] else "never given",
            problem.classes[int(wrong[:, c].argmax())] if wrong[:, c].any() else "",
        ]
        for c in np.argsort(np.where(given > 0, right, -1.0), kind="stable").tolist()
    ]
    columns = (
        ("class", "words"), ("of items", "n"), ("answers", "n"), ("labels right", "n"),
        ("else mostly", "words"),
    )  # fmt: skip
    about = "The least reliable label first. Answers are per item of the class."
    return Table("What each label is worth", about, columns, rows)


def label_table(value: Evaluation) -> Table:
    """Recall and precision of each label of a plan."""
    left = bool(value.plan.handed_over)
    order = sorted(value.classes, key=lambda row: (not math.isnan(row.precision), row.precision))
    rows: list[list[str | tuple[str, str]]] = [
        [
            row.name,
            percent(row.share),
            percent(row.recall),
            "never given" if math.isnan(row.precision) else percent(row.precision),
            *([percent(row.undecided)] if left else []),
            row.confused_with or "",
        ]
        for row in order
    ]
    columns = (
        ("class", "words"), ("of items", "n"), ("recall", "n"), ("precision", "n"),
        *([("undecided", "n")] if left else []), ("else mostly", "words"),
    )  # fmt: skip
    about = (
        "Recall: of the items of a class, how many get its label. Precision: of the items with a "
        "label, how many are of its class. Both are exact. The least precise label first."
    )
    return Table("What each label is worth", about, columns, rows)
