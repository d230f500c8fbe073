"""Results as small tables of HTML, for notebooks. They follow the notebook's own colours."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from functools import singledispatch
from html import escape
from typing import Any

from crowdtree.audit import Audit
from crowdtree.audit.words import next_step, sum_up
from crowdtree.campaign.trace import Trace
from crowdtree.core.errors import MissingExtra
from crowdtree.core.evaluation import Evaluation
from crowdtree.core.fixed_plan import Plan
from crowdtree.core.problem import Problem
from crowdtree.core.text import number, percent, plural
from crowdtree.core.tree import Tree
from crowdtree.designs.frontiers import Frontier
from crowdtree.io.words import cell_words
from crowdtree.learning.flags import Flags
from crowdtree.learning.judges.result import Judgement
from crowdtree.learning.model import Learned
from crowdtree.planning import PlanChoices
from crowdtree.planning.checkup import Checkup
from crowdtree.show.output.frames import columns_of
from crowdtree.show.output.pictures import chart_of
from crowdtree.show.plots.html import hint
from crowdtree.show.report.details import way_table
from crowdtree.show.report.judging import judgement_size, judgement_tables
from crowdtree.show.report.learned_tables import accuracy_words
from crowdtree.show.report.ways import choice_way
from crowdtree.simulation import Sweep
from crowdtree.simulation.compare import Comparison
from crowdtree.simulation.run import Estimate, Run

MOST_ROWS, MOST_COLUMNS = 12, 12


@singledispatch
def to_html(result: Any) -> str:
    """Show a result as HTML: by default its numbers and texts, by name."""
    data = result.to_dict() if hasattr(result, "to_dict") else vars(result)
    plain = {name: value for name, value in data.items() if isinstance(value, str | int | float)}
    return _facts(repr(result), [(n.replace("_", " "), str(v)) for n, v in plain.items()])


@to_html.register
def _tree(tree: Tree | Plan) -> str:
    picture = tree.draw().encode()
    data = b64encode(picture).decode()
    return f'<img alt="{escape(repr(tree))}" src="data:image/svg+xml;base64,{data}">'


def _table(header: Sequence[str], rows: Iterable[Sequence[Any]], total: int) -> str:
    """A table, and a line that says how many of its rows are left out."""
    head = "".join(f"<th>{escape(str(name))}</th>" for name in header)
    made = [
        "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows
    ]
    more = f"<p>… and {total - len(made):,} more rows</p>" if total > len(made) else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(made)}</tbody></table>{more}"


def _facts(title: str, facts: Iterable[tuple[str, str]]) -> str:
    rows = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in facts
    )
    return f"<p><strong>{escape(title)}</strong></p><table><tbody>{rows}</tbody></table>"


def _chart(result: Any) -> str:
    try:
        from crowdtree.show.plots.vega import chart_svg

        return chart_svg(chart_of(result))
    except MissingExtra as missing:
        return hint(missing)


def _part(result: Any, part: str) -> str:
    """One of the tables of a result, its first rows."""
    columns = columns_of(result, part)
    rows = list(zip(*columns.values(), strict=True))
    shown = [[_cell(name, cell) for name, cell in zip(columns, row, strict=True)] for row in rows]
    return _table(list(columns), shown[:MOST_ROWS], len(rows))


_SHARES = {
    "share", "labelled", "recall", "precision", "misclassification", "decided_error", "undecided",
    "error", "error_low", "error_high", "agreement", "probability", "floor_error",
}  # fmt: skip


def _cell(name: str, cell: Any) -> str:
    if cell is None:
        return "–"
    if not isinstance(cell, float):
        return str(cell)
    return percent(cell) if name in _SHARES else number(cell)


def _estimate(value: Estimate, write: Any) -> str:
    return f"{write(float(value))} (95 %: {write(value.low)} to {write(value.high)})"


@to_html.register
def _problem(problem: Problem) -> str:
    classes = problem.classes[:MOST_COLUMNS]
    cut = ["…"] if problem.n_classes > len(classes) else []
    signs = {0: "no", 1: "yes", "0|1": "no or yes", "-": "–"}
    prior = [percent(share) for share in problem.prior[: len(classes)]]
    rows = [["how often", "", *prior, *cut]]
    for q, name in enumerate(problem.questions[:MOST_ROWS]):
        low, high = float(problem.worker_error[q].min()), float(problem.worker_error[q].max())
        error = percent(low) if low == high else f"{percent(low)} to {percent(high)}"
        words = cell_words(problem, q)[: len(classes)]
        cells = [signs.get(word, str(word).replace("|", " or ")) for word in words]
        rows.append([name, error, *cells, *cut])
    title = f"<p><strong>{escape(repr(problem))}</strong></p>"
    table = _table(["question", "worker error", *classes, *cut], rows, problem.n_questions + 1)
    return title + table + (_part(problem, "sources") if problem.has_sources else "")


@to_html.register
def _evaluation(value: Evaluation) -> str:
    facts = [
        ("wrong labels", f"{percent(value.misclassification)} (exact for this table)"),
        ("answers per item", number(value.expected_answers)),
        ("questions per item", number(value.expected_questions)),
    ]
    if value.plan.undecided:
        facts.insert(1, ("undecided items", percent(value.undecided)))
        facts.insert(2, ("wrong among the decided", percent(value.decided_error)))
    return _facts("Evaluation", facts) + _part(value, "classes")


@to_html.register
def _frontier(front: Frontier) -> str:
    return f"<p><strong>{escape(repr(front))}</strong></p>{_chart(front)}"


@to_html.register
def _plan_choices(choices: PlanChoices) -> str:
    head = f"<p><strong>{escape(choices.headline)}</strong> {escape(choices.reason)}</p>"
    shown = way_table([choice_way(choice) for choice in choices.choices])
    rows = [
        [cell if isinstance(cell, str) else f"{cell[0]} ({cell[1]})" for cell in row]
        for row in shown.rows
    ]
    notes = "".join(f"<p>{escape(note)}</p>" for note in choices.notes)
    return head + _table([name for name, _ in shown.columns], rows, len(rows)) + notes


@to_html.register
def _run(run: Run) -> str:
    reasons = ", ".join(f"{name} {count:,}" for name, count in run.reasons.items())
    facts = [
        ("items", f"{run.items:,}"),
        ("wrong labels", _estimate(run.misclassification, percent)),
        ("stated error", percent(float(run.stated_error))),
        ("answers per item", _estimate(run.answers_per_item, number)),
        ("labelled because of", reasons),
    ]
    sources = _part(run, "sources") if run.problem.has_sources else ""
    return _facts("Simulation", facts) + sources


@to_html.register
def _sweep(sweep: Sweep) -> str:
    return f"<p><strong>{escape(repr(sweep))}</strong></p>" + _part(sweep, "cells")


@to_html.register
def _trace(trace: Trace) -> str:
    return f"<p><strong>{escape(trace.verdict())}</strong></p>" + _part(trace, "steps")


@to_html.register
def _checkup(checkup: Checkup) -> str:
    return f"<pre>{escape(checkup.to_text())}</pre>"


@to_html.register
def _comparison(comparison: Comparison) -> str:
    title = f"All policies at {percent(comparison.error)} wrong labels"
    return f"<p><strong>{escape(title)}</strong></p>" + _part(comparison, "policies")


@to_html.register
def _learned(learned: Learned) -> str:
    a = learned.answers
    who = f"{plural(a.n_answers, 'answer')} from {plural(a.n_workers, 'worker')}"
    facts = [
        ("learned from", f"{who} about {plural(a.n_tasks, 'item')}"),
        ("labels", " ".join(accuracy_words(learned))),
        ("a typical worker errs", f"in {percent(learned.typical_error)} of the answers"),
        ("points to check", str(learned.flags)),
    ]
    return _facts("Learned", facts) + _part(learned, "labels")


@to_html.register
def _judgement(judgement: Judgement) -> str:
    size = escape(judgement_size(judgement))
    head = f"<p><strong>{escape(judgement.headline)}</strong> ({size})</p>"
    tables = judgement_tables(judgement)
    if not tables:
        return head
    heads, rows = tables[0].heads, tables[0].rows
    return head + _table(list(heads), rows[:MOST_ROWS], len(rows))


@to_html.register
def _flags(flags: Flags) -> str:
    rows = [(flag.kind, flag.subject, flag.message) for flag in flags.worst(MOST_ROWS)]
    return f"<p>{escape(str(flags))}</p>" + _table(["what", "where", "why"], rows, len(flags))


@to_html.register
def _audit(audit: Audit) -> str:
    claims = audit.to_dict()
    said = sum_up(claims)
    if audit.bound is not None:
        said += f" {next_step(audit.state, audit.forecast())}"
    words = f"<p>{escape(said)}</p>"
    return words + (_chart(audit) if audit.history else "")
