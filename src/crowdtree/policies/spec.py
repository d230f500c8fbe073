"""From a problem or a plan, and a few choices, to a policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.fixed_plan import Plan, as_plan
from crowdtree.core.problem import Problem
from crowdtree.core.votes import Stopping
from crowdtree.designs.designers import design
from crowdtree.designs.staffing import staff
from crowdtree.policies import BatchPolicy, PlanPolicy, Policy, policy_from_dict

__all__ = [
    "LIMITS",
    "PolicyKind",
    "PolicySpec",
    "check_same_problem",
    "make_policy",
    "revised_policy",
    "spec_of",
]

PolicyKind = Literal["plan", "adaptive", "batch", "subtypes"]
OPTIONS = {"plan": ("calibration",), "batch": ("calibration", "votes", "decoder")}
"""Options of the policies that are made of arguments; the others check theirs."""
LIMITS = ("target_error", "max_answers", "target_loss")


@dataclass(frozen=True)
class PolicySpec:
    """What to ask and when to stop.

    Parameters
    ----------
    kind
        ``"plan"`` follows a tree, ``"adaptive"`` chooses each question by what is known,
        ``"batch"`` asks every question, ``"subtypes"`` needs its `options`.
    stopping
        Plan: when the votes of a node end (:class:`crowdtree.policies.PlanPolicy`).
    design, allow_groups
        Plan: method of :func:`crowdtree.design`, where a problem is given.
    workers, answers, workers_per_node, staffing
        Plan: workers beyond one per node, or expected answers per item; without either,
        `workers_per_node` more at every node. `staffing` is the method.
    target_error, max_answers, target_loss
        Adaptive and subtypes: the error at which an item is labelled, and most answers per item;
        the expected loss at which it is labelled, in place of the error.
    options
        Further options of the policy, as its ``to_dict()`` names them; they take precedence.
    seed
        Seed of random staffing.
    """

    kind: PolicyKind = "plan"
    stopping: Stopping = "curtailed"
    design: str = "fm"
    allow_groups: bool = False
    workers: int | None = None
    answers: float | None = None
    workers_per_node: int = 0
    staffing: str = "marginal"
    target_error: float = 0.05
    max_answers: int = 50
    options: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    target_loss: float | None = None


def make_policy(source: Problem | Plan, spec: PolicySpec) -> Policy[Any]:
    """Make a policy for a problem, or for a plan and its problem.

    >>> import crowdtree as ct
    >>> make_policy(ct.example("table1"), PolicySpec(workers=8))
    PlanPolicy(Plan(...), stopping='curtailed')
    >>> make_policy(ct.example("table1"), PolicySpec("adaptive", options={"criterion": "ec2"}))
    AdaptivePolicy(ec2, target_error=0.05, max_answers=50)
    """
    problem = source.tree.problem if isinstance(source, Plan) else source
    if spec.kind == "plan":
        plan = source if isinstance(source, Plan) else _staffed(source, spec)
        return _changed(PlanPolicy(plan, spec.stopping), spec)
    if spec.kind == "batch":
        return _changed(BatchPolicy(problem), spec)
    data = {
        "policy": spec.kind,
        "target_error": spec.target_error,
        "max_answers": spec.max_answers,
        **({} if spec.target_loss is None else {"target_loss": spec.target_loss}),
        **({"strict": False} if spec.kind == "adaptive" else {}),
        **spec.options,
    }
    return policy_from_dict(problem, data)


def _staffed(problem: Problem, spec: PolicySpec) -> Plan:
    tree = design(problem, spec.design, allow_groups=spec.allow_groups)
    workers = spec.workers
    if workers is None and spec.answers is None:
        if not spec.workers_per_node:
            return as_plan(tree)
        workers = spec.workers_per_node * tree.n_nodes
    return staff(tree, workers, spec.staffing, answers=spec.answers, rng=spec.seed)


def _changed(policy: PlanPolicy | BatchPolicy, spec: PolicySpec) -> Policy[Any]:
    if not spec.options:
        return policy
    for name in spec.options:
        if name not in OPTIONS[spec.kind]:
            raise CrowdtreeError(f"policy: {name!r} is not an option of a {spec.kind} policy")
    return policy_from_dict(policy.problem, {**policy.to_dict(), **spec.options})


def spec_of(policy: Policy[Any]) -> tuple[Problem | Plan, PolicySpec]:
    """Say what makes a policy: ``make_policy(*spec_of(policy))`` makes it again.

    >>> import crowdtree as ct
    >>> policy = ct.AdaptivePolicy(ct.example("table1"), target_error=0.02, strict=False)
    >>> make_policy(*spec_of(policy))
    AdaptivePolicy(information, target_error=0.02, max_answers=100)
    """
    data = policy.to_dict()
    kind = data.pop("policy")
    if isinstance(policy, PlanPolicy):
        options = {name: data[name] for name in ("calibration",) if name in data}
        return policy.plan, PolicySpec(kind, policy.stopping, options=options)
    limits = {name: data.pop(name) for name in LIMITS if name in data}
    return policy.problem, PolicySpec(kind, options=data, **limits)


def revised_policy(policy: Policy[Any], source: Problem | Plan) -> Policy[Any]:
    """Make a policy of the same sort, with the same options, for another table or plan.

    Parameters
    ----------
    policy
        The present policy.
    source
        A problem: the new table; what mistakes cost stays as it is. A policy that follows a plan
        keeps its tree and its votes, and states other errors. Or a plan, with the problem that it
        was made for.

    Examples
    --------
    >>> import crowdtree as ct
    >>> problem = ct.example("table1")
    >>> policy = ct.AdaptivePolicy(problem, target_error=0.02, strict=False)
    >>> again = revised_policy(policy, problem.replace(worker_error=0.2, dependence=0.1))
    >>> again, again.model.shared_difficulty
    (AdaptivePolicy(information, target_error=0.02, max_answers=100), 0.1)
    """
    if isinstance(source, Problem) and source.loss is None:  # a table may leave it out
        source = source.replace(loss=policy.problem.loss)
    new = source.tree.problem if isinstance(source, Plan) else source
    check_same_problem(policy.problem, new)
    policy = policy.with_loose_calibration()  # the answers are of the same crowd
    if isinstance(source, Problem):
        data = policy.to_dict()
        if data["policy"] == "adaptive":  # the whole table is that of the problem
            data |= {"table": None, "shared_difficulty": None, "strict": False}
        return policy_from_dict(source, data)
    spec = spec_of(policy)[1] if isinstance(policy, PlanPolicy) else PolicySpec()
    return make_policy(source, spec)


def check_same_problem(present: Problem, new: Problem) -> None:
    """Refuse a table for another problem: answers so far would mean something else.

    >>> import crowdtree as ct
    >>> check_same_problem(ct.example("table1"), ct.example("animals"))
    Traceback (most recent call last):
    crowdtree.CrowdtreeError: classes: expected the 5 of the campaign, got ...
    """
    for what, old, given in (
        ("classes", present.classes, new.classes),
        ("questions", present.questions, new.questions),
    ):
        if tuple(old) == tuple(given):
            continue
        if len(old) != len(given):
            raise CrowdtreeError(
                f"{what}: expected the {len(old)} of the campaign, got {len(given)}"
            )
        place = next(k for k, pair in enumerate(zip(old, given, strict=True)) if pair[0] != pair[1])
        raise CrowdtreeError(
            f"{what}: expected those of the campaign in the same order; number {place + 1} is "
            f"{old[place]!r} there, but {given[place]!r} here"
        )
    if present.loss != new.loss:
        raise CrowdtreeError(
            "loss: what mistakes cost is not that of the campaign; only errors, the prior and the "
            "dependence can be revised"
        )
    differ = np.argwhere(present.outcome != new.outcome)
    if len(differ):
        question, cls = differ[0]
        raise CrowdtreeError(
            f"outcome: the right answer to {new.questions[question]!r} for {new.classes[cls]!r} is "
            "not that of the campaign; only errors, the prior and the dependence can be revised"
        )
