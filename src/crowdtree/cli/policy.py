"""The policy that the options of a verb describe."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, Literal

import numpy as np

from crowdtree.cli import inputs
from crowdtree.cli.options import ExtraWorkers, Reading, ReadingGroups, given, option, share_option
from crowdtree.core.errors import CrowdtreeError, one_line
from crowdtree.core.problem import Problem
from crowdtree.core.votes import Early
from crowdtree.policies.spec import PolicySpec, make_policy

WORKERS_PER_NODE = 6


@dataclass(frozen=True)
class PolicyOptions:
    """Options of the policy."""

    policy: Annotated[
        Literal["adaptive", "plan", Early, "batch"] | None,
        option(
            "Policy that asks the questions; by default plan for a tree, else adaptive.",
            show_default=False,
        ),
    ] = None
    target_error: Annotated[
        float, share_option("--target-error", help="Error at which the adaptive policy stops.")
    ] = 0.01
    target_loss: Annotated[
        float | None, option("Expected loss at which it stops, in place of an error.")
    ] = None
    max_answers: Annotated[int, option("Maximum answers per item.")] = 100
    criterion: Annotated[
        Literal["information", "accuracy", "ec2", "gbs", "loss"] | None,
        option(
            "Criterion that the adaptive policy maximises: information, or loss for a problem "
            "with a loss.",
            show_default=False,
        ),
    ] = None
    workers: ExtraWorkers = None

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
            stopping="none" if self.policy is None or self.policy == "plan" else self.policy,
            allow_groups=allow_groups,
            workers=self.workers,
            workers_per_node=WORKERS_PER_NODE,
        )


def check_target(problem: Problem, target_error: float) -> None:
    """Raise for a target of 0 that no number of answers reaches, as `frontier --error 0` does.

    >>> check_target(Problem(["a", "b"], None, ["q"], [[0, 1]], 0.1), 0.0)
    Traceback (most recent call last):
        ...
    crowdtree.CrowdtreeError: --target-error: 0 is out of reach: people err, so that no
    number of answers excludes 'b' on an item of 'a'; give a target above 0
    """
    if target_error:
        return
    chance = problem.channel.reshape(-1, problem.n_classes)  # of every answer to every question
    excluded = (chance > 0).T @ (chance == 0)  # [truth, other]
    np.fill_diagonal(excluded, True)
    if not excluded.all():
        truth, other = (one_line(problem.classes[c]) for c in np.argwhere(~excluded)[0])
        raise CrowdtreeError(
            f"--target-error: 0 is out of reach: people err, so that no number of answers excludes "
            f"{other} on an item of {truth}; give a target above 0"
        )


ADAPTIVE_ONLY = ("--target-error", "--target-loss", "--max-answers", "--criterion")
TREE_ONLY = ("--workers", "--answers", "--stopping")


def refuse_unused(options: Any, adaptive: bool, fix: str, staffed: bool = False) -> None:
    """Refuse options that the policy does not take, rather than ignore them.

    Parameters
    ----------
    options
        The group of options.
    adaptive
        Whether the policy is adaptive; a fixed tree otherwise.
    fix
        The option that chooses the other kind.
    staffed
        Whether the votes of the tree are given, so that no workers can be added.
    """
    named = {f"--{field.name}".replace("_", "-") for field in fields(options)}
    written = inputs.written() & named
    for name in TREE_ONLY if adaptive else ADAPTIVE_ONLY:
        if name in written:
            kind = "fixed trees" if adaptive else "adaptive policies"
            raise CrowdtreeError(f"{name}: is only for {kind}; leave it out, or {fix}")
    for name in TREE_ONLY[:2] if staffed else ():
        if name in written:
            raise CrowdtreeError(
                f"{name}: the plan has its votes already; leave it out, or use the problem's file"
            )


def chosen_policy(file: str, options: Any, reading: Reading | None = None) -> Any:
    """The policy that `plan` wrote to a file, if it did; options of a policy are then refused."""
    chosen = inputs.read_chosen(file, reading)
    for name, _ in given(options) if chosen is not None else ():
        raise CrowdtreeError(
            f"{name}: {file} holds a policy with its own settings; "
            "leave it out, or use the problem's file"
        )
    return chosen


def read_policy(file: str, options: PolicyOptions, reading: ReadingGroups) -> tuple[Problem, Any]:
    """Take the policy that `plan` chose, or make the requested one from a problem or a plan."""
    chosen = chosen_policy(file, options, reading)
    if chosen is not None:
        return chosen.problem, chosen
    problem, plan = inputs.read_either(file, reading)
    if options.policy is None:
        options = replace(options, policy="adaptive" if plan is None else "plan")
    if options.policy == "adaptive":
        check_target(problem, options.target_error)
    other = "plan" if options.policy == "adaptive" else "adaptive"
    adaptive = options.policy == "adaptive"
    refuse_unused(options, adaptive, f"use --policy {other}", plan is not None)
    source = problem if plan is None else plan
    return problem, make_policy(source, options.spec(reading.allow_groups))
