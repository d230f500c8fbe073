"""Results as data frames of polars or pandas."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial, singledispatch
from typing import Any

import numpy as np

from crowdtree.audit import Audit
from crowdtree.campaign.trace import Trace
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.evaluation import Evaluation
from crowdtree.core.fixed_plan import Plan, as_plan
from crowdtree.core.outcomes import YES_NO
from crowdtree.core.per_class import class_columns, confusion_columns
from crowdtree.core.problem import DASH, Problem
from crowdtree.core.source_checks import source_facts
from crowdtree.core.tree import Tree
from crowdtree.designs.frontiers import Frontier
from crowdtree.io.problems import table_columns
from crowdtree.io.words import cell_words
from crowdtree.learning.judges.result import Judgement
from crowdtree.learning.model import Learned
from crowdtree.planning import PlanChoices
from crowdtree.policies.walk import REASONS
from crowdtree.simulation import Sweep, SweepRow
from crowdtree.simulation.compare import Comparison
from crowdtree.simulation.run import Run

Columns = Mapping[str, Sequence[Any]]
Parts = Mapping[str, Callable[[], Columns]]


def to_frame(result: Any, part: str | None = None, library: str = "polars") -> Any:
    """Tabulate a result; see :meth:`crowdtree.core.result_methods.Framed.to_frame`."""
    columns = dict(columns_of(result, part))
    try:
        if library == "polars":
            import polars as pl

            return pl.DataFrame(columns, strict=False)
        import pandas as pd

        return pd.DataFrame(columns)
    except ModuleNotFoundError:
        how = {
            "polars": """pip install 'crowdtree[frames]', or use library="pandas\"""",
            "pandas": """pip install pandas, or use library="polars\"""",
        }
        raise CrowdtreeError(f"library: {library} is not installed; {how[library]}") from None


def columns_of(result: Any, part: str | None = None) -> Columns:
    """Columns of one of the tables of a result, by default the first."""
    parts = parts_of(result)
    chosen = next(iter(parts)) if part is None else part
    if chosen not in parts:
        known = ", ".join(f'"{name}"' for name in parts)
        raise CrowdtreeError(f"part: expected one of {known}, got {part!r}")
    return parts[chosen]()


@singledispatch
def parts_of(result: Any) -> Parts:
    """Tables of a result by name."""
    raise CrowdtreeError(f"to_frame: {type(result).__name__} has no table")


def _columns(rows: Sequence[Mapping[str, Any]]) -> Columns:
    """Turn rows into columns."""
    return {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}


def _without(rows: Iterable[Mapping[str, Any]], *names: str) -> list[dict[str, Any]]:
    """Leave some cells out."""
    return [{k: v for k, v in row.items() if k not in names} for row in rows]


@parts_of.register
def _problem(problem: Problem) -> Parts:
    return {
        **{part: partial(table_columns, problem, part) for part in ("outcome", "errors")},
        "sources": lambda: _columns([row._asdict() for row in source_facts(problem)]),
    }


@parts_of.register(Tree)
@parts_of.register(Plan)
def _plan(tree: Tree | Plan) -> Parts:
    plan = as_plan(tree)

    def nodes() -> Columns:
        made = plan.tree.nodes
        found: Columns = {
            "node": [node.index for node in made],
            "level": [node.level for node in made],
            "question": [node.question for node in made],
            "classes": [", ".join(node.classes) for node in made],
            "share": [node.share for node in made],
            "votes": plan.votes.tolist(),
            "error": (plan.node_error / plan.tree.share).tolist(),
        }
        return {**found, **_branches(plan.tree)}

    return {"nodes": nodes}


def _branches(tree: Tree) -> Columns:
    """Where the answers of each node lead: a column each for no and yes, else one for all."""
    below = [
        {answer: _below(tree, child) for answer, child in node.branches.items()}
        for node in tree.nodes
    ]
    if set(tree.problem.answers) == {YES_NO}:
        return {answer: [row[answer] for row in below] for answer in YES_NO}
    return {"branches": ["; ".join(f"{k}: {v}" for k, v in row.items()) for row in below]}


def _below(tree: Tree, child: int) -> str:
    """Number of an inner node, or the label of a leaf."""
    return str(child) if child >= 0 else tree.problem.classes[tree.leaf_label[~child]]


@parts_of.register
def _evaluation(value: Evaluation) -> Parts:
    undecided = [row.undecided for row in value.classes] if value.plan.handed_over else None
    return {
        "classes": lambda: class_columns(value.classes),
        "confusion": lambda: confusion_columns(value.tree.problem, value.labelled, undecided),
    }


def _per_class(problem: Problem, joint: Any) -> Columns:
    """Recall and precision of each class, from shares of items by class and label."""
    right, share, labelled = np.diagonal(joint), joint.sum(axis=1), joint.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        recall, precision = right / share, right / labelled
    return {
        "class": list(problem.classes),
        "share": share.tolist(),
        "labelled": labelled.tolist(),
        "recall": _known(recall),
        "precision": _known(precision),
    }


def _known(values: Any) -> list[float | None]:
    return [float(value) if np.isfinite(value) else None for value in values]


@parts_of.register
def _plan_choices(choices: PlanChoices) -> Parts:
    names = ("name", "answers", "error", "risk", "cost", "exact", "proof")
    rows = (choice.to_dict() for choice in choices.choices)
    return {"choices": lambda: _columns([{n: row.get(n) for n in names} for row in rows])}


@parts_of.register
def _frontier(front: Frontier) -> Parts:
    return {"points": lambda: _columns(_without(front.to_dicts(), "votes", "tree"))}


@parts_of.register
def _run(run: Run) -> Parts:
    names = np.array(run.problem.classes, dtype=object)

    def items() -> Columns:
        return {
            "class": names[run.truth_index].tolist(),
            "label": names[run.label_index].tolist(),
            "answers": run.answers.tolist(),
            "stated_error": run.posterior_error.tolist(),
            **({} if run.stated_loss is None else {"stated_loss": run.stated_loss.tolist()}),
            "reason": np.array(REASONS, dtype=object)[run.reason].tolist(),
        }

    return {
        "items": items,
        "classes": lambda: _per_class(run.problem, run.confusion),
        "sources": lambda: _run_sources(run),
        "confusion": lambda: confusion_columns(run.problem, run.confusion),
        "calibration": lambda: _columns([row._asdict() for row in run.calibration()]),
    }


def _run_sources(run: Run) -> Columns:
    """Answers and cost per item of each source, and of the expert."""
    cost = run.cost_per_source()
    return {
        "source": list(cost),
        "answers": [run.answers_per_source.get(name, 0.0) for name in cost],
        "cost": list(cost.values()),
    }


@parts_of.register
def _comparison(comparison: Comparison) -> Parts:
    intervals = ("answers_per_item_interval", "misclassification_interval", "risk_interval")
    rows = (row.to_dict() for row in comparison.rows)
    return {
        "policies": lambda: _columns(_without(rows, "answers_per_question", *intervals)),
        "curves": lambda: _columns([row.to_dict() for row in comparison.curves]),
    }


@parts_of.register
def _sweep(sweep: Sweep) -> Parts:
    def cell(row: SweepRow) -> dict[str, Any]:
        wrong = row.run.misclassification
        return {
            "policy": row.policy,
            "crowd": row.crowd,
            "misclassification": float(wrong),
            "low": wrong.low,
            "high": wrong.high,
            "answers_per_item": float(row.run.answers_per_item),
            "stated_error": float(row.run.stated_error),
        }

    return {"cells": lambda: _columns(list(map(cell, sweep)))}


@parts_of.register
def _learned(learned: Learned) -> Parts:
    return {
        "labels": learned.label_columns,
        "answers": lambda: dict(learned.to_columns()),
        "workers": lambda: _columns([row._asdict() for row in learned.workers.values()]),
        "sources": lambda: _columns([row._asdict() for row in learned.sources.values()]),
        "errors": lambda: _errors(learned),
        "flags": lambda: _columns([flag._asdict() for flag in learned.flags]),
    }


@parts_of.register
def _judgement(judgement: Judgement) -> Parts:
    parts = ("models", "label_scores", "tests", "together", "agreement", "drift")
    first = "models" if judgement.models else "agreement"
    order = sorted(parts, key=lambda part: part != first)
    return {part: partial(_judged, judgement, part) for part in order}


def _judged(judgement: Judgement, part: str) -> Columns:
    return _columns(judgement.rows(part))


def _errors(learned: Learned) -> Columns:
    """One row per cell of the table whose right answer is known."""
    problem, ends = learned.problem, learned.intervals.worker_error
    cells = np.argwhere(problem.outcome != DASH)
    words = [cell_words(problem, q) for q in range(problem.n_questions)]
    question, cls = cells[:, 0], cells[:, 1]
    return {
        "question": [problem.questions[q] for q in question],
        "class": [problem.classes[c] for c in cls],
        "outcome": [words[q][c] for q, c in cells],
        "error": problem.worker_error[question, cls].tolist(),
        "low": ends.low[question, cls].tolist(),
        "high": ends.high[question, cls].tolist(),
    }


@parts_of.register
def _trace(trace: Trace) -> Parts:
    def steps() -> Columns:
        problem = trace.problem
        first = dict.fromkeys(("question", *(["source"] if problem.has_sources else []), "answer"))
        rows: list[dict[str, Any]]
        rows = [first | dict(zip(problem.classes, trace.prior.tolist(), strict=True))]
        for step in trace.steps:
            asked = {name: getattr(step, name) for name in first}
            rows.append(asked | dict(zip(problem.classes, step.posterior.tolist(), strict=True)))
        return _columns(rows)

    return {"steps": steps}


@parts_of.register
def _audit(audit: Audit) -> Parts:
    return {"history": lambda: _columns([found.to_dict() for found in audit.history])}
