"""Verbs that learn: turn answers into a problem and trust in workers; plan a pilot."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from crowdtree import files
from crowdtree.cli import common
from crowdtree.cli.common import (
    AllowGroups,
    AsJson,
    DashOption,
    Errors,
    File,
    Normalise,
    Strengths,
    WorkerError,
)
from crowdtree.cli.designing import make_tree
from crowdtree.cli.learned import show_learned
from crowdtree.errors import CrowdtreeError
from crowdtree.files.formats import ending_of
from crowdtree.learn.compare import against_assumed, confused_pairs
from crowdtree.text import number, percent, plural

__all__ = ["learn_verb", "pilot_verb"]

SHOWN = 8
MOST_PAIRS = 100


def learn_verb(
    answers: Annotated[
        str,
        typer.Argument(
            metavar="ANSWERS",
            help="Columns task,question,worker,label (.csv .parquet); without question: one.",
            show_default=False,
        ),
    ],
    gold: Annotated[
        str | None, typer.Option("--gold", metavar="FILE", help="Known classes: task,label.")
    ] = None,
    problem: Annotated[
        str | None,
        typer.Option("--problem", metavar="FILE", help="Known table of classes and questions."),
    ] = None,
    classes: Annotated[
        list[str] | None,
        typer.Option(
            "--class",
            metavar="NAME",
            help="A class, one option each, where answers and gold do not name all.",
        ),
    ] = None,
    form: Annotated[
        Literal["plain", "crowd-kit", "label-studio", "zooniverse", "wide"],
        typer.Option("--format", help="How the answers are written (crowd-kit: as plain)."),
    ] = "plain",
    level: Annotated[float, typer.Option("--level", help="Of the credible intervals.")] = 0.95,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write the problem.")
    ] = None,
    upper: Annotated[
        Path | None,
        typer.Option(
            "--upper", metavar="FILE", help="Write it with upper credible errors, to design with."
        ),
    ] = None,
    plan: Annotated[
        str | None,
        typer.Option("--plan", metavar="FILE", help="How sure is the error of this plan?"),
    ] = None,
    labels: Annotated[
        Path | None, typer.Option("--labels", metavar="FILE", help="Write the labels (.csv).")
    ] = None,
    report: Annotated[
        Path | None, typer.Option("--report", metavar="FILE", help="Write a page (.html).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Learn the table, the workers and the labels from answers.

    Examples:

      crowdtree learn answers.csv

      crowdtree learn answers.csv --gold gold.csv -o problem.yaml --report learned.html

      crowdtree learn export.json --format label-studio --labels labels.csv

      crowdtree learn answers.csv --gold gold.csv --upper careful.yaml --plan plan.json
    """
    from crowdtree.files import interchange
    from crowdtree.learn import learn

    _check_outputs(output, upper, labels, report)
    readers = {
        "label-studio": interchange.read_label_studio,
        "zooniverse": interchange.read_zooniverse,
        "wide": interchange.read_wide,
    }
    source: Any = readers[form](answers) if form in readers else answers
    known = None if problem is None else files.load_problem(problem)
    learned = learn(source, gold, problem=known, classes=classes or None, level=level)
    credible = None if plan is None else learned.credible_interval(_plan(plan))
    if output is not None:
        files.save_problem(learned.problem, output)
    if upper is not None:
        files.save_problem(learned.upper_problem(), upper)
    if labels is not None:
        _write_labels(learned, labels)
    if report is not None:
        from crowdtree.plots.learned import write_report

        write_report(report, learned)

    def tell(console: Any) -> None:
        show_learned(console, learned)
        if credible is not None:
            console.print(
                f"The plan misclassifies [bold]{percent(credible.mean)}[/] of items, "
                f"{percent(credible.low)} to {percent(credible.high)} "
                f"[dim](estimate, {percent(level)} interval)[/].\n"
            )
        if output is not None or upper is not None:
            common.tell_next(console, common.again("design", str(upper or output)))

    found = _as_dict(learned) | ({} if credible is None else {"credible": asdict(credible)})
    common.emit(as_json, found, tell)


def pilot_verb(
    file: File,
    half_width: Annotated[
        float, typer.Option("--half-width", help="The errors are to be known to ± this.")
    ] = 0.05,
    level: Annotated[float, typer.Option("--level", help="Of the intervals.")] = 0.95,
    answers_per_item: Annotated[
        int, typer.Option("--answers-per-item", help="Answers to each question of an item.")
    ] = 3,
    as_json: AsJson = False,
    worker_error: WorkerError = None,
    errors: Errors = None,
    dash: DashOption = None,
    normalise: Normalise = False,
    strengths: Strengths = False,
    allow_groups: AllowGroups = False,
) -> None:
    """Say how many gold items and answers a pilot needs, and which cells matter.

    FILE is a problem (with guessed errors) or a plan.

    Examples:

      crowdtree pilot example:animals

      crowdtree pilot plan.json --half-width 0.02
    """
    from crowdtree.learn.pilot import plan_pilot

    reading = (worker_error, errors, dash, normalise, strengths)
    plan = common.read_plan(file, *reading)
    if plan is None:
        problem = common.read_problem(file, *reading)
        design: Any = make_tree(problem, "fm", allow_groups, seed=0)
    else:
        problem, design = plan.tree.problem, plan
    pilot = plan_pilot(design, half_width, level=level, answers_per_item=answers_per_item)
    cells = _sensitive_cells(problem, pilot)
    found = {
        "gold_items": pilot.gold_items,
        "gold_items_random": pilot.gold_items_random,
        "gold_per_class": dict(zip(problem.classes, pilot.gold_per_class.tolist(), strict=True)),
        "answers": pilot.answers,
        "half_width": pilot.half_width,
        "level": pilot.level,
        "cells": cells,
    }

    def tell(console: Any) -> None:
        console.print(
            f"[bold]{plural(pilot.gold_items, 'gold item')} and {plural(pilot.answers, 'answer')}"
            f"[/] make every error that matters known to ± {percent(half_width)} "
            f"[dim](estimate, {percent(level)} intervals)[/]."
        )
        console.print(
            f"Items taken as they come instead of chosen by class: "
            f"{plural(pilot.gold_items_random, 'item')}.\n"
        )
        console.print("Cells that move the misclassification most:")
        for cell in cells[:SHOWN]:
            console.print(
                f"  {number(cell['sensitivity']):>7}  {cell['question']} · {cell['class']} "
                f"({plural(cell['answers'], 'answer')})",
                markup=False,
            )

    common.emit(as_json, found, tell)


def _check_outputs(
    output: Path | None, upper: Path | None, labels: Path | None, report: Path | None
) -> None:
    """Refuse what cannot be written before anything is, and before the work is done."""
    for problem in (output, upper):
        if problem is not None:
            ending_of(problem)
    if labels is not None and labels.suffix.lower() != ".csv":
        raise CrowdtreeError(f"{labels}: labels are written as .csv; use {labels.stem}.csv")
    if report is not None and report.suffix.lower() not in (".html", ".htm"):
        raise CrowdtreeError(f"{report}: the page is written as .html; use {report.stem}.html")
    made = [path for path in (output, upper, labels, report) if path is not None]
    for path in made:
        if path.is_dir():
            raise CrowdtreeError(f"{path}: is a folder; give the name of a file")
        if not path.parent.is_dir():
            raise CrowdtreeError(
                f"{path}: the folder {path.parent} does not exist; create it first"
            )
    if len({path.absolute() for path in made}) < len(made):
        raise CrowdtreeError(
            f"{made[0]}: two results would be written to one file; name each its own"
        )


def _plan(path: str) -> Any:
    made = common.read_plan(path, None, None, None, False, False)
    if made is None:
        raise CrowdtreeError(f"{path}: is no plan; write one with crowdtree staff ... -o plan.json")
    return made


def _sensitive_cells(problem: Any, pilot: Any) -> list[dict[str, Any]]:
    """Cells by their part in the misclassification, the largest first."""
    slope = pilot.sensitivity
    used = [(float(slope[q, c]), q, c) for q, c in zip(*slope.nonzero(), strict=True)]
    return [
        {
            "question": problem.questions[q],
            "class": problem.classes[c],
            "sensitivity": size,
            "answers": int(pilot.answers_per_cell[q, c]),
        }
        for size, q, c in sorted(used, key=lambda cell: (-abs(cell[0]), cell[1], cell[2]))
    ]


def _as_dict(learned: Any) -> dict[str, Any]:
    problem = learned.problem
    low, high = learned.intervals.worker_error
    return {
        "classes": list(problem.classes),
        "questions": list(problem.questions),
        "prior": problem.prior.tolist(),
        "outcome": problem.outcome.tolist(),
        "worker_error": problem.worker_error.tolist(),
        "intervals": {
            "level": learned.intervals.level,
            "worker_error": {"low": low.tolist(), "high": high.tolist()},
        },
        "workers": [worker._asdict() for worker in learned.workers.values()],
        "confused": [pair._asdict() for pair in confused_pairs(learned)[:MOST_PAIRS]],
        "against_assumed": [
            {**cell._asdict(), "outside": cell.outside} for cell in against_assumed(learned)
        ],
        "flags": [flag._asdict() for flag in learned.flags],
        "labels": dict(learned.labels),
    }


def _write_labels(learned: Any, path: Path) -> None:
    from crowdtree.files.atomic import write_atomically

    write_atomically(path, learned.label_frame().write_csv)
