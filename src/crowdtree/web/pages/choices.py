"""What an owner can choose from: how many answers each error costs, with a tree or adaptively."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

from crowdtree.errors import CrowdtreeError
from crowdtree.evaluate import evaluate
from crowdtree.floors import fano_floor
from crowdtree.frontier import frontier
from crowdtree.plots.style import percent
from crowdtree.policy import AdaptivePolicy, PlanPolicy, Policy
from crowdtree.problem import Problem
from crowdtree.store.codec import problem_from_json

__all__ = ["Choice", "Offer", "offer", "planned"]

TARGETS = (0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.001)
SIMULATED = 2000
MOST_ANSWERS = 200
MOST_LEAD = 25
MOST_POINTS = 40
SAME = 1e-9


@dataclass(frozen=True)
class Choice:
    """A policy with what it is expected to do."""

    key: str
    kind: str
    target: float
    error: float
    answers: float
    policy: Policy[Any]

    @property
    def exact(self) -> bool:
        """Whether the numbers are computed exactly; else they come from simulated items."""
        return self.kind == "tree"


@dataclass(frozen=True)
class Offer:
    """All choices for a problem, by target, and the chart of them."""

    problem: Problem
    choices: tuple[Choice, ...]
    chart: str

    def rows(self) -> list[tuple[float, Choice | None, Choice | None]]:
        """Choices by target: with the tree, adaptively."""
        found = {(choice.kind, choice.target): choice for choice in self.choices}
        targets = sorted({choice.target for choice in self.choices}, reverse=True)
        return [(t, found.get(("tree", t)), found.get(("adaptive", t))) for t in targets]

    def get(self, key: str) -> Choice:
        """Find a choice by its key."""
        for choice in self.choices:
            if choice.key == key:
                return choice
        raise CrowdtreeError("plan: choose one of the points")

    def nearest(self, policy: Policy[Any]) -> Choice:
        """Find the choice that a draft has now, or the one that is nearest to it."""
        kind = "adaptive" if isinstance(policy, AdaptivePolicy) else "tree"
        same = [c for c in self.choices if c.policy.to_dict() == policy.to_dict()]
        wanted = planned(policy).error
        mine = [c for c in self.choices if c.kind == kind] or list(self.choices)
        return same[0] if same else min(mine, key=lambda c: abs(c.error - wanted))


@dataclass(frozen=True)
class Planned:
    """What a policy is expected to do, an item."""

    error: float
    answers: float
    exact: bool


def offer(problem: dict[str, Any]) -> Offer:
    """Work out the choices for a problem as the store keeps it; the last few are remembered."""
    return _offer(json.dumps(problem, sort_keys=True))


@lru_cache(maxsize=16)
def _offer(text: str) -> Offer:
    problem = problem_from_json(json.loads(text))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        choices = (*_trees(problem), *_adaptive(problem))
    if not choices:
        raise CrowdtreeError("plan: no plan reaches an error below 20 %; add better questions")
    return Offer(problem, choices, _chart(problem, choices))


def _trees(problem: Problem) -> Iterator[Choice]:
    """Trees whose votes stop as soon as one side leads by enough, from the greedy frontier.

    Greedy, because a page must answer in seconds whatever the problem; the command line proves.
    """
    front = frontier(
        problem,
        "margin",
        method="greedy",
        max_votes=MOST_LEAD,
        max_points=MOST_POINTS,
        allow_groups=True,
    )
    last: Choice | None = None
    for target in reversed(TARGETS):
        try:
            plan = front.plan_for(error=target)
        except CrowdtreeError:
            continue
        value = evaluate(plan)
        made = (value.misclassification, value.expected_answers)
        if last is not None and abs(made[0] - last.error) < SAME:
            continue  # the stricter target costs no more
        last = Choice(f"tree-{target:g}", "tree", target, *made, PlanPolicy(plan))
        yield last


def _adaptive(problem: Problem) -> Iterator[Choice]:
    last: Choice | None = None
    for target in reversed(TARGETS):
        policy = AdaptivePolicy(problem, target, MOST_ANSWERS, strict=False)
        error, answers = _simulated(policy)
        if error > target or (last is not None and answers >= last.answers * 0.995):
            continue
        last = Choice(f"adaptive-{target:g}", "adaptive", target, error, answers, policy)
        yield last


def _simulated(policy: Policy[Any]) -> tuple[float, float]:
    from crowdtree.simulate import simulate

    run = simulate(policy.problem, policy, items=SIMULATED, rng=0)
    return float(run.misclassification), float(run.answers_per_item)


def planned(policy: Policy[Any]) -> Planned:
    """What a policy promises: exactly for a plan, by simulation for others.

    >>> import crowdtree as ct
    >>> round(planned(PlanPolicy(ct.design(ct.example("table1")))).error, 4)
    0.0823
    """
    return _planned(cast("Hashable", policy))


@lru_cache(maxsize=64)
def _planned(policy: Any) -> Planned:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if isinstance(policy, PlanPolicy):
            from crowdtree.policy import expected_answers

            error = evaluate(policy.voted).misclassification
            return Planned(error, expected_answers(policy.plan, policy.stopping), True)
        return Planned(*_simulated(policy), exact=False)


def _chart(problem: Problem, choices: tuple[Choice, ...]) -> str:
    """Error over cost for both kinds, with a mark for each choice."""
    from crowdtree.plots.chart import chart_svg
    from crowdtree.plots.curves import curve_chart

    names = {"tree": ("tree", "plain"), "adaptive": ("adaptive (estimate)", "dashed")}
    rows: list[dict[str, Any]] = []
    for choice in choices:
        series, dash = names[choice.kind]
        look = {"series": series, "kind": "ours", "dash": dash}
        rows.append(look | {"x": choice.answers, "y": max(choice.error, 1e-6)})
    floor = {"series": "Fano floor", "kind": "baseline", "dash": "floor"}
    wrong = sorted({max(choice.error, 1e-6) for choice in choices})
    rows += [floor | {"x": fano_floor(problem, error), "y": error} for error in wrong]
    points = [{"x": row["x"], "y": row["y"], "label": ""} for row in rows[: len(choices)]]
    svg = chart_svg(
        curve_chart(
            rows,
            title="What each error costs: lower left is better",
            x="expected answers an item",
            subtitle=["Click a point, or choose below. Nothing can go below the Fano floor."],
            points=points,
        ),
        page=True,
    )
    return _named_points(svg, choices)


def _named_points(svg: str, choices: tuple[Choice, ...]) -> str:
    """Give each mark the key of its choice, for the script; the table below says the same."""
    keys = iter(choices)

    def named(match: re.Match[str]) -> str:
        choice = next(keys)
        words = f"{choice.kind}: {percent(choice.error)}, {choice.answers:.3g} answers an item"
        return (
            f'<path class="choice" data-choice="{choice.key}" aria-hidden="true" '
            f"{match.group(1)}><title>{words}</title></path>"
        )

    pattern = (
        r'<path aria-label="[^"]*" role="graphics-symbol" aria-roledescription="point" ([^>]*)/>'
    )
    return re.sub(pattern, named, svg)
