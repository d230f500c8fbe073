"""The verb `report`: a page about a plan."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from crowdtree.cli import inputs, render
from crowdtree.cli.options import (
    AsJson,
    File,
    Prices,
    ReadingGroups,
    check_html,
    check_outputs,
    given,
    option,
    with_options,
)
from crowdtree.cli.plan import GoalOptions, default_goal
from crowdtree.cli.render.progress import job_words, progress
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.evaluation import evaluate
from crowdtree.core.fixed_plan import Plan
from crowdtree.core.text import amount, number, percent
from crowdtree.planning import PlanChoices
from crowdtree.policies import Policy
from crowdtree.show.report import write_report


@dataclass(frozen=True)
class Outputs:
    """Output options."""

    output: Annotated[
        Path, option("Write the report to FILE.html.", "FILE", "-o", "--output", "--out")
    ] = Path("report.html")
    as_json: AsJson = False

    def __post_init__(self) -> None:
        check_html(self.output, "-o")
        check_outputs([self.output])


@with_options
def report_verb(
    file: File, *, outputs: Outputs, goal: GoalOptions, price: Prices = None, reading: ReadingGroups
) -> None:
    """Write a page about a plan: error, answers, cost, what its labels are worth, the tree.

    FILE is a plan, or a problem, for which one is made first (by default for --error 0.01, or
    --max-loss 0.1 where mistakes have different costs).

    Examples:

      crowdtree report plan.json -o birds.html

      crowdtree report example:animals --error 0.02 --price 0.04
    """
    plan = _plan(file, goal, price, reading)
    one = None if isinstance(plan, PlanChoices) else inputs.one_price(price)
    write_report(outputs.output, plan, price=one)
    if isinstance(plan, PlanChoices):
        found = plan.recommended.performance
        error, answers, cost = float(found.error), float(found.answers), float(found.cost)
    else:
        value = evaluate(plan)
        error, answers = value.misclassification, value.expected_answers
        cost = float("nan") if one is None else one * answers

    paid = "" if math.isnan(cost) else f" for {number(cost)}"
    words = f"{percent(error)} wrong with {amount(answers, 'answer')} per item{paid}."
    data = {"report": str(outputs.output), "misclassification": error, "expected_answers": answers}
    data |= {} if math.isnan(cost) else {"expected_cost": cost}
    render.emit(outputs.as_json, data, words, [outputs.output])


def _plan(
    file: str, goal: GoalOptions, price: list[str] | None, reading: ReadingGroups
) -> PlanChoices | Plan:
    """The plan of the file, or the choices for its problem."""
    held: PlanChoices | Plan | Policy[Any] | None = inputs.read_choices(file, reading)
    if held is None:
        held = inputs.read_plan(file, reading)
    if held is not None:
        if goal.given:
            raise CrowdtreeError(
                f"{given(goal)[0][0]}: {file} is a plan; leave it out, or use the problem's file"
            )
        if not isinstance(held, PlanChoices | Plan):
            if held.plan is not None:
                return held.plan
            raise CrowdtreeError(f"{file}: holds a policy alone; write one with crowdtree plan -o")
        if isinstance(held, PlanChoices) and price:
            raise CrowdtreeError(f"--price: {file} has its own prices; use the problem's file")
        return held
    problem = inputs.read_problem(file, reading)
    chosen = goal if goal.given else default_goal(problem)
    with progress(job_words) as watch:
        return chosen.plan(problem, inputs.read_prices(problem, price), reading, progress=watch)
