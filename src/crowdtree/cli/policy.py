"""The policy that a verb asks for, from its options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import typer

from crowdtree.cli import inputs
from crowdtree.cli.options import ReadingGroups
from crowdtree.policy import AdaptivePolicy, BatchPolicy, PlanPolicy
from crowdtree.problem import Problem
from crowdtree.staffing import staff

__all__ = ["PolicyOptions", "read_policy"]

WORKERS_PER_NODE = 6


@dataclass(frozen=True)
class PolicyOptions:
    """How items are asked about, and when to stop."""

    policy: Annotated[
        Literal["adaptive", "plan", "curtailed", "margin", "batch"],
        typer.Option("--policy", help="How items are asked about."),
    ] = "adaptive"
    target_error: Annotated[
        float, typer.Option("--target-error", help="Error at which the adaptive policy stops.")
    ] = 0.01
    max_answers: Annotated[int, typer.Option("--max-answers", help="Most answers per item.")] = 100
    criterion: Annotated[
        Literal["information", "accuracy", "ec2", "gbs"],
        typer.Option("--criterion", help="What the adaptive policy maximises."),
    ] = "information"
    workers: Annotated[
        int | None,
        typer.Option("--workers", help="Extra workers of a plan; six per node by default."),
    ] = None


def read_policy(file: str, options: PolicyOptions, reading: ReadingGroups) -> tuple[Problem, Any]:
    """Make the policy that was asked for, from a problem or a plan."""
    problem, plan = inputs.read_either(file, reading)
    if options.policy == "adaptive":
        return problem, AdaptivePolicy(
            problem, options.target_error, options.max_answers, criterion=options.criterion
        )
    if options.policy == "batch":
        return problem, BatchPolicy(problem)
    if plan is None:
        tree = inputs.make_tree(problem, "fm", reading.allow_groups)
        extra = WORKERS_PER_NODE * tree.n_nodes if options.workers is None else options.workers
        plan = staff(tree, extra)
    return problem, PlanPolicy(plan, "none" if options.policy == "plan" else options.policy)
