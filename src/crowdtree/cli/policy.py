"""The policy that the options of a verb describe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import typer

from crowdtree.cli import inputs
from crowdtree.cli.options import ReadingGroups
from crowdtree.policy.spec import PolicySpec, make_policy
from crowdtree.problem import Problem

__all__ = ["PolicyOptions", "read_policy"]

WORKERS_PER_NODE = 6


@dataclass(frozen=True)
class PolicyOptions:
    """Options of the policy."""

    policy: Annotated[
        Literal["adaptive", "plan", "curtailed", "margin", "batch"],
        typer.Option("--policy", help="Policy that chooses the questions."),
    ] = "adaptive"
    target_error: Annotated[
        float, typer.Option("--target-error", help="Error at which the adaptive policy stops.")
    ] = 0.01
    target_loss: Annotated[
        float | None,
        typer.Option("--target-loss", help="Expected loss at which it stops instead."),
    ] = None
    max_answers: Annotated[int, typer.Option("--max-answers", help="Most answers per item.")] = 100
    criterion: Annotated[
        Literal["information", "accuracy", "ec2", "gbs", "loss"] | None,
        typer.Option(
            "--criterion",
            help="Criterion that the adaptive policy maximises: information, or loss for a "
            "problem with a loss.",
            show_default=False,
        ),
    ] = None
    workers: Annotated[
        int | None,
        typer.Option("--workers", help="Extra workers of a plan; six per node by default."),
    ] = None

    def spec(self, allow_groups: bool) -> PolicySpec:
        """The policy that the options describe."""
        if self.policy == "batch":
            return PolicySpec("batch")
        if self.policy == "adaptive":
            return PolicySpec(
                "adaptive",
                target_error=self.target_error,
                target_loss=self.target_loss,
                max_answers=self.max_answers,
                options={"criterion": self.criterion, "strict": True},
            )
        return PolicySpec(
            stopping="none" if self.policy == "plan" else self.policy,
            allow_groups=allow_groups,
            workers=self.workers,
            workers_per_node=WORKERS_PER_NODE,
        )


def read_policy(file: str, options: PolicyOptions, reading: ReadingGroups) -> tuple[Problem, Any]:
    """Make the requested policy, from a problem or a plan."""
    problem, plan = inputs.read_either(file, reading)
    source = problem if plan is None else plan
    return problem, make_policy(source, options.spec(reading.allow_groups))
