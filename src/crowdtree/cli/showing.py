"""Verbs that show results: report and reproduce."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

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
from crowdtree.cli.designing import Design, make_tree
from crowdtree.errors import CrowdtreeError
from crowdtree.evaluate import evaluate
from crowdtree.staffing import staff
from crowdtree.text import percent

__all__ = ["report_verb", "reproduce_verb"]


def report_verb(
    file: File,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The page to write.")] = Path(
        "report.html"
    ),
    workers: Annotated[
        int | None, typer.Option("--workers", help="Extra workers; five pairs per node by default.")
    ] = None,
    design_method: Design = "fm",
    as_json: AsJson = False,
    worker_error: WorkerError = None,
    errors: Errors = None,
    dash: DashOption = None,
    normalise: Normalise = False,
    strengths: Strengths = False,
    allow_groups: AllowGroups = False,
) -> None:
    """Write a page with the tree, its levels and bounds, the staffing and the confusions.

    Examples:

      crowdtree report example:animals

      crowdtree report plan.json --out birds.html
    """
    from crowdtree.report import write_report

    if out.suffix not in (".html", ".htm"):
        raise CrowdtreeError(f"{out}: a report is written as .html; use --out {out.stem}.html")
    reading = (worker_error, errors, dash, normalise, strengths)
    plan = common.read_plan(file, *reading)
    if plan is None:
        problem = common.read_problem(file, *reading)
        tree = make_tree(problem, design_method, allow_groups, seed=0)
        plan = staff(tree, 10 * tree.n_nodes if workers is None else workers)
    elif workers is not None:
        plan = staff(plan.tree, workers)
    write_report(out, plan)
    value = evaluate(plan)

    def tell(console: Any) -> None:
        words = f"{out} written: misclassifies {percent(value.misclassification)}."
        console.print(words, markup=False)

    found = {"report": str(out), "misclassification": value.misclassification}
    common.emit(as_json, found, tell)


def reproduce_verb(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder to write to.")],
    as_json: AsJson = False,
) -> None:
    """Recompute every figure and number of the paper, and show its errors.

    Example:

      crowdtree reproduce --out paper
    """
    from crowdtree.reproduce import reproduce

    result = reproduce(out)

    def tell(console: Any) -> None:
        console.print(f"[bold]{out / 'index.html'}[/] shows all of it.\n")
        for line in result.lines():
            console.print(line, soft_wrap=True)

    common.emit(as_json, result.to_dict(), tell)
