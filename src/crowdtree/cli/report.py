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
    Price,
    ReadingGroups,
    check_html,
    check_outputs,
    check_price,
    with_options,
)
from crowdtree.evaluation import evaluate
from crowdtree.fixed_plan import Plan
from crowdtree.report import write_report
from crowdtree.staffing import staff
from crowdtree.text import number, percent

__all__ = ["report_verb"]

WORKERS_PER_NODE = 10


@dataclass(frozen=True)
class Outputs:
    """Output options."""

    output: Annotated[
        Path,
        typer.Option(
            "-o", "--output", "--out", metavar="FILE", help="Write the page to FILE.html."
        ),
    ] = Path("report.html")
    as_json: AsJson = False

    def __post_init__(self) -> None:
        check_html(self.output, "-o")
        check_outputs([self.output])


@with_options
def report_verb(
    file: File,
    *,
    outputs: Outputs,
    workers: Annotated[
        int | None, typer.Option("--workers", help="Extra workers; five pairs per node by default.")
    ] = None,
    price: Price = None,
    design_method: Design = "fm",
    reading: ReadingGroups,
) -> None:
    """Write a page about a plan: tree, staffing, confusions, bounds.

    FILE is a problem (its tree is designed and staffed first) or a plan.

    Examples:

      crowdtree report example:animals

      crowdtree report plan.json -o birds.html --price 0.04
    """
    plan = inputs.read_tree(file, reading, design_method)
    if not isinstance(plan, Plan):
        plan = staff(plan, WORKERS_PER_NODE * plan.n_nodes if workers is None else workers)
    elif workers is not None:
        plan = staff(plan.tree, workers)
    check_price(price)
    write_report(outputs.output, plan, price=price)
    value = evaluate(plan)

    def show(console: Any) -> None:
        console.print(f"Misclassifies {percent(value.misclassification)} of items.")
        if price is not None:
            cost = number(price * value.expected_answers)
            console.print(f"{cost} per item at {number(price)} per answer.")

    found = {"report": str(outputs.output), "misclassification": value.misclassification}
    found |= {} if price is None else {"expected_cost": price * value.expected_answers}
    render.emit(outputs.as_json, found, show, [outputs.output])
