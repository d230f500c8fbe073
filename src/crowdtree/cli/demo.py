"""The verb `demo`: the main job end to end."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from crowdtree import files
from crowdtree.cli import common, terminal
from crowdtree.cli.common import AsJson
from crowdtree.design import design
from crowdtree.evaluate import evaluate
from crowdtree.staffing import staff
from crowdtree.text import number, percent

__all__ = ["demo_verb"]

PAIRS_A_NODE = 3


def demo_verb(
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="The folder to write to.")
    ] = Path("out/demo"),
    as_json: AsJson = False,
) -> None:
    """Run the main job end to end: design, staff, evaluate, draw, and recompute the paper.

    Example:

      crowdtree demo --out out/demo
    """
    from crowdtree.plots import draw_tree
    from crowdtree.report import write_report
    from crowdtree.reproduce import reproduce

    out.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = {"out": str(out)}
    console = common.console()
    for name, page in (("table1", "table1.html"), ("animals", "report.html")):
        problem = files.example(name)
        tree = design(problem)
        plan = staff(tree, workers=2 * PAIRS_A_NODE * tree.n_nodes)
        alone, staffed = evaluate(tree), evaluate(plan)
        files.save_plan(plan, out / f"{name}.plan.json")
        draw_tree(plan, out / f"{name}.tree.svg")
        write_report(out / page, plan)
        found[name] = {
            "misclassification": alone.misclassification,
            "staffed": staffed.misclassification,
            "expected_answers": staffed.expected_answers,
        }
        if not as_json:
            title = "Table 1 of the paper" if name == "table1" else "Animals in photographs"
            console.rule(f"[bold]{title}[/]", align="left", style="dim")
            terminal.show_tree(console, staffed)
            console.print(
                f"One worker a question: [bold]{percent(alone.misclassification)}[/] wrong. "
                f"With {plan.workers} workers: [bold]{percent(staffed.misclassification)}[/], "
                f"{number(staffed.expected_answers)} answers an item.\n"
            )
    result = reproduce(out / "paper")
    found["paper"] = result.to_dict()

    def tell(console: Any) -> None:
        console.rule("[bold]The paper, recomputed[/]", align="left", style="dim")
        for line in result.lines():
            console.print(line, soft_wrap=True)
        console.print(f"\nOpen [bold]{out / 'report.html'}[/] and {out / 'paper' / 'index.html'}.")

    common.emit(as_json, found, tell)
