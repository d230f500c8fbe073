"""The verb `demo`: the main job end to end, with a live campaign."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from crowdtree import files
from crowdtree.cli import render
from crowdtree.cli.campaign.database import import_server
from crowdtree.cli.options import AsJson, Folder, check_folder
from crowdtree.cli.render.plan import show_tree
from crowdtree.cli.render.progress import counting, progress
from crowdtree.designers import design
from crowdtree.evaluation import evaluate
from crowdtree.paper import reproduce
from crowdtree.plots import draw_tree
from crowdtree.report import write_report
from crowdtree.staffing import staff
from crowdtree.text import amount, percent

if TYPE_CHECKING:
    from crowdtree.fixed_plan import Plan
    from crowdtree.report import LiveCampaign

__all__ = ["demo_verb"]

PAIRS_PER_NODE = 3
PEOPLE, SPAMMERS = 30, 2
TARGET = 0.02
TITLES = {"table1": "Table 1 of the paper", "animals": "Animals in photographs"}


def demo_verb(
    out: Folder = Path("out/demo"),
    as_json: AsJson = False,
) -> None:
    """Run everything on two examples, with a live campaign.

    Designs, staffs and draws two trees, runs a campaign, and recomputes the paper. The campaign
    runs over HTTP on this machine; only its workers are simulated.

    Example:

      crowdtree demo --out out/demo
    """
    check_folder(out)
    out.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = {"out": str(out)}
    console = render.console()
    for name, page in (("table1", "table1.html"), ("animals", "report.html")):
        plan, found[name] = _design(name, out, console, as_json)
        live = _campaigns(plan, out, console, as_json) if name == "animals" else []
        write_report(out / page, plan, live=live)
    found["campaigns"] = {run.name: run.to_dict() for run in live}
    result = reproduce(out / "paper")
    found["paper"] = result.to_dict()

    def show(console: Any) -> None:
        console.rule("[bold]The paper, recomputed[/]", align="left", style="dim")
        for line in result.lines():
            console.print(line, soft_wrap=True)
        console.print(f"\nOpen [bold]{out / 'report.html'}[/] and {out / 'paper' / 'index.html'}.")

    render.emit(as_json, found, show)


def _design(name: str, out: Path, console: Any, quiet: bool) -> tuple[Plan, dict[str, float]]:
    """Design, staff and draw an example."""
    tree = design(files.example(name))
    plan = staff(tree, workers=2 * PAIRS_PER_NODE * tree.n_nodes)
    alone, staffed = evaluate(tree), evaluate(plan)
    files.save_plan(plan, out / f"{name}.plan.json")
    draw_tree(plan, out / f"{name}.tree.svg")
    if not quiet:
        console.rule(f"[bold]{TITLES[name]}[/]", align="left", style="dim")
        show_tree(console, staffed)
        console.print(
            f"One worker per question: [bold]{percent(alone.misclassification)}[/] wrong. "
            f"With {plan.workers} workers: [bold]{percent(staffed.misclassification)}[/], "
            f"{amount(staffed.expected_answers, 'answer')} per item.\n"
        )
    return plan, {
        "misclassification": alone.misclassification,
        "staffed": staffed.misclassification,
        "expected_answers": staffed.expected_answers,
    }


def _campaigns(plan: Plan, out: Path, console: Any, quiet: bool) -> list[LiveCampaign]:
    """Run the plan and the adaptive policy as live campaigns, with the same items and people."""
    rehearsal = import_server("crowdtree.demo.rehearsal")
    from crowdtree.demo.example import GOLD, ITEMS, example_items

    problem, rng = plan.tree.problem, np.random.default_rng(0)
    items = example_items(problem, ITEMS, rng, GOLD)
    crowd = rehearsal.people(PEOPLE, SPAMMERS, rng)
    wishes = {
        "the plan": ({"plan": files.plan_to_dict(plan)}, evaluate(plan).misclassification),
        f"adaptive ({percent(TARGET)} asked for)": (
            {"example": "animals", "kind": "adaptive", "target_error": TARGET},
            None,
        ),
    }
    database = out / "campaign.db"
    for old in out.glob("campaign.db*"):
        old.unlink()
    if not quiet:
        console.rule("[bold]A live campaign over HTTP[/]", align="left", style="dim")
        console.print(
            f"{ITEMS} items, {PEOPLE} simulated workers of mixed skill, {SPAMMERS} of them "
            "spammers. The server sees their answers only.",
        )
    runs = []
    with rehearsal.served(database) as owner:
        for name, (policy, promised) in wishes.items():
            with progress(counting(name)) as watch:
                run = rehearsal.rehearse(
                    owner, name, problem, policy, items, crowd, rng=1, report=watch
                )
            runs.append(replace(run, promised=promised))
            if not quiet:
                console.print(_said(run), highlight=False)
    if not quiet:
        console.print(f"[dim]To view it: crowdtree serve --database {database}[/]\n")
    return runs


def _said(run: LiveCampaign) -> str:
    """Summarise a campaign in one line."""
    spammers, others = run.found_out
    return (
        f"[bold]{run.name}[/]: {percent(run.wrong)} wrong ({percent(run.wrong.low)} to "
        f"{percent(run.wrong.high)}) with {amount(run.answers_per_item, 'answer')} per item; "
        f"{spammers} of {SPAMMERS} spammers paused, and {others} of the others."
    )
