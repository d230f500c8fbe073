"""The verb `evaluate`: exact error and cost of a plan."""

from __future__ import annotations

from typing import Any

from crowdtree.cli import inputs, render
from crowdtree.cli.options import AsJson, Full, PlanFile
from crowdtree.cli.render.classes import show_classes, show_confusion
from crowdtree.cli.render.plan import show_levels, show_summary, show_tree
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.evaluation import evaluate


def evaluate_verb(file: PlanFile, as_json: AsJson = False, full: Full = False) -> None:
    """Compute the exact error, cost and confusion matrix of a plan.

    Example:

      crowdtree evaluate plan.json --json
    """
    plan = inputs.read_plan(file)
    if plan is None:
        raise CrowdtreeError(
            f"{file}: expected a plan; make one with crowdtree design {file} -o plan.json"
        )
    value = evaluate(plan)

    def show(console: Any) -> None:
        show_summary(console, value)
        show_tree(console, value, full)
        show_classes(console, value, full)
        show_confusion(console, value, full)
        show_levels(console, value)

    render.emit(as_json, value.to_dict() | {"confusion": value.confusion.tolist()}, show)
