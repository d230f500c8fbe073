"""Advice on a plan: how many answers each error costs, with a tree or adaptively."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from crowdtree.bounds import fano_floor
from crowdtree.errors import CrowdtreeError
from crowdtree.evaluation import evaluate
from crowdtree.frontiers import frontier
from crowdtree.policy import AdaptivePolicy, PlanPolicy, Policy, expected_answers
from crowdtree.problem import Problem
from crowdtree.simulation import simulate
from crowdtree.text import percent

__all__ = ["Choice", "Offer", "Promise", "Report", "make_offer", "make_promise", "promise_of"]

Report = Callable[[float, str], None]
"""Receives the share of the work that is done (0 to 1), and what is being done."""

TARGETS = (0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.001)
SIMULATED = 2000
MOST_ANSWERS = 200
MOST_LEAD = 25
MOST_POINTS = 40
SAME = 1e-9
DEFAULT = ("tree-0.02", "tree-0.05", "tree-0.01", "tree-0.1")


@dataclass(frozen=True)
class Choice:
    """A policy with its expected performance."""

    key: str
    kind: str
    target: float
    error: float
    answers: float
    policy: Policy[Any]

    @property
    def promise(self) -> Promise:
        """Its expected performance: exact for trees, simulated for others."""
        return Promise(self.error, self.answers, self.kind == "tree")


@dataclass(frozen=True)
class Promise:
    """Expected performance of a policy, per item."""

    error: float
    answers: float
    exact: bool


@dataclass(frozen=True)
class Offer:
    """All choices for a problem, by target, and the chart of them."""

    problem: Problem
    choices: tuple[Choice, ...]
    chart: str

    def rows(self) -> list[tuple[float, Choice | None, Choice | None]]:
        """Choices by target: of the tree, and of the adaptive policy."""
        found = {(choice.kind, choice.target): choice for choice in self.choices}
        targets = sorted({choice.target for choice in self.choices}, reverse=True)
        return [(t, found.get(("tree", t)), found.get(("adaptive", t))) for t in targets]

    def get(self, key: str) -> Choice:
        """Find a choice by its key."""
        for choice in self.choices:
            if choice.key == key:
                return choice
        raise CrowdtreeError("plan: choose one of the points")

    def nearest(self, policy: Policy[Any], promise: Promise) -> Choice:
        """Find the choice that a draft has now, or the one nearest to it."""
        kind = "adaptive" if isinstance(policy, AdaptivePolicy) else "tree"
        same = [c for c in self.choices if c.policy.to_dict() == policy.to_dict()]
        mine = [c for c in self.choices if c.kind == kind] or list(self.choices)
        return same[0] if same else min(mine, key=lambda c: abs(c.error - promise.error))

    def first(self) -> Choice:
        """The default choice."""
        keys = {choice.key: choice for choice in self.choices}
        return next((keys[key] for key in DEFAULT if key in keys), self.choices[0])


def make_offer(report: Report, problem: Problem) -> Offer:
    """Work out the choices for a problem."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report(0.1, "Comparing trees")
        trees = tuple(_trees(problem))
        choices = (*trees, *_adaptive(problem, report))
    if not choices:
        raise CrowdtreeError("plan: no plan reaches an error below 20 %; add better questions")
    return Offer(problem, choices, _chart(problem, choices))


def make_promise(report: Report, policy: Policy[Any]) -> Promise:
    """Work out the expected performance of a policy, as a job."""
    del report
    return promise_of(policy)


def _trees(problem: Problem) -> Iterator[Choice]:
    """Trees whose votes stop as soon as one side leads by enough, from the greedy frontier.

    Greedy, because a page must respond within seconds; the command line finds optimal plans.
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


def _adaptive(problem: Problem, report: Report) -> Iterator[Choice]:
    last: Choice | None = None
    for done, target in enumerate(reversed(TARGETS)):
        share = 0.5 + 0.5 * done / len(TARGETS)
        report(share, f"Simulating the adaptive policy, {done + 1} of {len(TARGETS)}")
        policy = AdaptivePolicy(problem, target, MOST_ANSWERS, strict=False)
        error, answers = _simulated(policy)
        if error > target or (last is not None and answers >= last.answers * 0.995):
            continue
        last = Choice(f"adaptive-{target:g}", "adaptive", target, error, answers, policy)
        yield last


def _simulated(policy: Policy[Any]) -> tuple[float, float]:
    run = simulate(policy.problem, policy, items=SIMULATED, rng=0)
    return float(run.misclassification), float(run.answers_per_item)


def promise_of(policy: Policy[Any]) -> Promise:
    """Expected performance of a policy: exact for a plan, simulated for others.

    >>> import crowdtree as ct
    >>> round(promise_of(PlanPolicy(ct.design(ct.example("table1")))).error, 4)
    0.0823
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if isinstance(policy, PlanPolicy):
            error = evaluate(policy.voted).misclassification
            return Promise(error, expected_answers(policy.plan, policy.stopping), True)
        return Promise(*_simulated(policy), exact=False)


def _chart(problem: Problem, choices: tuple[Choice, ...]) -> str:
    """Plot error over cost for both kinds, with a mark per choice."""
    # altair is slow to import, and only this function needs it
    from crowdtree.plots.curves import EXPLAINED, LIMITS, curve_chart
    from crowdtree.plots.vega import chart_svg

    names = {"tree": ("tree", "plain"), "adaptive": ("adaptive (estimate)", "dashed")}
    rows: list[dict[str, Any]] = []
    for choice in choices:
        series, dash = names[choice.kind]
        look = {"series": series, "kind": "ours", "dash": dash}
        rows.append(look | {"x": choice.answers, "y": max(choice.error, 1e-6)})
    floor = {"series": LIMITS["floor"], "kind": "baseline", "dash": "floor"}
    wrong = sorted({max(choice.error, 1e-6) for choice in choices})
    rows += [floor | {"x": fano_floor(problem, error), "y": error} for error in wrong]
    points = [{"x": row["x"], "y": row["y"], "label": ""} for row in rows[: len(choices)]]
    svg = chart_svg(
        curve_chart(
            rows,
            title="What each error costs: lower left is better",
            x="expected answers per item",
            subtitle=["Click a point, or choose in the table.", EXPLAINED[0]],
            points=points,
        ),
        page=True,
    )
    return _named_points(svg, choices)


def _named_points(svg: str, choices: tuple[Choice, ...]) -> str:
    """Give each mark the key of its choice, for the script."""
    keys = iter(choices)

    def named(match: re.Match[str]) -> str:
        choice = next(keys)
        words = f"{choice.kind}: {percent(choice.error)}, {choice.answers:.3g} answers per item"
        return (
            f'<path class="choice" data-choice="{choice.key}" aria-hidden="true" '
            f"{match.group(1)}><title>{words}</title></path>"
        )

    pattern = (
        r'<path aria-label="[^"]*" role="graphics-symbol" aria-roledescription="point" ([^>]*)/>'
    )
    return re.sub(pattern, named, svg)
