"""The verb `report`: a page about a plan."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from crowdtree.cli import inputs, render
from crowdtree.cli.options import (
    AsJson,
    Design,
    File,
    ReadingGroups,
    check_html,
    check_outputs,
    with_options,
)
from crowdtree.evaluation import evaluate
from crowdtree.plan import Plan
from crowdtree.report import write_report
from crowdtree.staffing import staff
from crowdtree.text import percent

__all__ = ["report_verb"]

WORKERS_PER_NODE = 10


@dataclass(frozen=True)
class Outputs:
    """Output options."""

    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The page to write.")] = Path(
        "report.html"
    )
    as_json: AsJson = False

    def __post_init__(self) -> None:
        check_html(self.out, "--out")
        check_outputs([], self.out)


@with_options
def report_verb(
    file: File,
    *,
    outputs: Outputs,
    workers: Annotated[
        int | None, typer.Option("--workers", help="Extra workers; five pairs per node by default.")
    ] = None,
    design_method: Design = "fm",
    reading: ReadingGroups,
) -> None:
    """Write a page with the tree, its levels and bounds, the staffing and the confusions.

    Examples:

      crowdtree report example:animals

      crowdtree report plan.json --out birds.html
    """
    plan = inputs.read_tree(file, reading, design_method)
    if not isinstance(plan, Plan):
        plan = staff(plan, WORKERS_PER_NODE * plan.n_nodes if workers is None else workers)
    elif workers is not None:
        plan = staff(plan.tree, workers)
    write_report(outputs.out, plan)
    value = evaluate(plan)

    def show(console: Any) -> None:
        words = f"{outputs.out} written: misclassifies {percent(value.misclassification)}."
        console.print(words, markup=False)

    found = {"report": str(outputs.out), "misclassification": value.misclassification}
    render.emit(outputs.as_json, found, show)
