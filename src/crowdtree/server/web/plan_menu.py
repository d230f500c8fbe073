"""Plans for several errors, or losses, to choose from on a page."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from crowdtree.core.bounds import fano_floor
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.problem import Problem
from crowdtree.core.text import number, percent
from crowdtree.core.votes import VOTES
from crowdtree.designs.frontiers import Goal, frontier
from crowdtree.planning.adaptive_curve import MENU_ITEMS, AdaptiveCurve, Report
from crowdtree.planning.choices import ExpectedPerformance, PlanChoice
from crowdtree.planning.trees import MAX_POINTS, tree_choice
from crowdtree.policies import Policy

TARGETS = (0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.001)
DEFAULT_TARGETS = (0.02, 0.05, 0.01, 0.1)
MENU_TIME = 0.3
"""Seconds for the search of each fixed tree."""
SAME = 1e-9


@dataclass(frozen=True)
class PlanMenu:
    """Plans for several errors (or losses), to choose from on a page, and the chart of them."""

    problem: Problem
    choices: tuple[PlanChoice, ...]
    chart: str
    given: PlanChoice | None = None

    def rows(self) -> list[tuple[float, PlanChoice | None, PlanChoice | None]]:
        """Choices by target: the adaptive policy, and the tree."""
        by_kind = {(choice.kind, choice.target): choice for choice in self.choices}
        targets = sorted({choice.target for choice in self.choices}, reverse=True)
        return [(t, by_kind.get(("adaptive", t)), by_kind.get(("tree", t))) for t in targets]

    def get(self, key: str) -> PlanChoice:
        """Find a choice by its key."""
        for choice in self.choices:
            if choice.key == key:
                return choice
        raise CrowdtreeError("plan: choose one of the points")

    def nearest(self, policy: Policy[Any], performance: ExpectedPerformance) -> PlanChoice:
        """Find the choice that a draft has now, or the one nearest to it."""
        same = [c for c in self.choices if c.policy.to_dict() == policy.to_dict()]
        alike = [c for c in self.choices if c.kind == policy.kind] or list(self.choices)
        return (
            same[0]
            if same
            else min(alike, key=lambda c: abs(c.performance.error - performance.error))
        )

    def first(self) -> PlanChoice:
        """The default choice: the given one, else adaptive, of a middle target."""
        if self.given is not None:
            return self.given
        preferred = [c for c in self.choices if c.kind == "adaptive"] or list(self.choices)
        if self.problem.loss is not None:
            return preferred[len(preferred) // 2]
        by_target = {choice.target: choice for choice in preferred}
        return next((by_target[t] for t in DEFAULT_TARGETS if t in by_target), preferred[0])


def make_menu(report: Report, problem: Problem, given: PlanChoice | None = None) -> PlanMenu:
    """Work out plans for several errors, or losses, of a problem; `given` is one of its own."""
    with warnings.catch_warnings(action="ignore"):
        report(0.1, "Comparing trees")
        trees = tuple(_menu_trees(problem))
        choices = (*trees, *_menu_adaptive(problem, report))
    if given is not None:
        risk = float(f"{given.performance.risk:.2g}")
        given = given if given.target == given.target else replace(given, target=risk)
        choices = (*(c for c in choices if c.key != given.key), given)
    if not choices:
        what = "an error below 20 %" if problem.loss is None else "a useful expected loss"
        raise CrowdtreeError(f"plan: no plan reaches {what}; add better questions")
    return PlanMenu(problem, choices, _chart(problem, choices), given)


def _goal_of(problem: Problem, target: float) -> Goal:
    return Goal(error=target) if problem.loss is None else Goal(loss=target)


def _menu_trees(problem: Problem) -> Iterator[PlanChoice]:
    """Trees whose votes stop as soon as one side leads by enough."""
    front = frontier(
        problem,
        "margin",
        method="greedy",
        max_votes=VOTES["margin"].max_votes,
        max_points=MAX_POINTS,
        allow_groups=True,
    )
    last: PlanChoice | None = None
    for target in reversed(menu_targets(problem)):
        try:
            chosen = front.select(**_goal_of(problem, target)._asdict(), time_limit=MENU_TIME)
        except CrowdtreeError:
            continue
        choice = tree_choice(chosen, target=target)
        risk = choice.performance.risk
        if last is not None and abs(risk - last.performance.risk) < SAME:
            continue  # the stricter target costs no more
        last = choice
        yield last


def menu_targets(problem: Problem) -> tuple[float, ...]:
    """Errors to choose from; for a problem with a loss, expected losses.

    These are shares of what the best decision without any answer costs, rounded.

    >>> import crowdtree as ct
    >>> menu_targets(ct.example("mushrooms"))
    (0.2, 0.08, 0.04, 0.02, 0.008, 0.004, 0.0008)
    """
    if problem.loss is None:
        return TARGETS
    blind = float(problem.loss.decide(problem.prior).risk)
    return tuple(float(f"{blind * target:.1g}") for target in TARGETS)


def _menu_adaptive(problem: Problem, report: Report) -> Iterator[PlanChoice]:
    targets = menu_targets(problem)
    curve = AdaptiveCurve(problem, _goal_of(problem, targets[-1]), items=MENU_ITEMS)
    last: PlanChoice | None = None
    for done, target in enumerate(reversed(targets)):
        share = 0.5 + 0.5 * done / len(targets)
        report(share, f"Simulating the adaptive policy, {done + 1} of {len(targets)}")
        curve.goal = _goal_of(problem, target)
        choice, _ = curve.best()
        if choice is None or (
            last is not None and choice.performance.answers >= last.performance.answers * 0.995
        ):
            continue
        last = replace(choice, target=target)
        yield last


def _chart(problem: Problem, choices: tuple[PlanChoice, ...]) -> str:
    """Plot error over cost for both kinds, with a mark per choice."""
    # altair is slow to import, and only this function needs it
    from crowdtree.show.plots.curves import EXPLAINED, LIMITS, curve_chart
    from crowdtree.show.plots.vega import chart_svg

    names = {"tree": ("tree", "plain"), "adaptive": ("adaptive", "dashed")}
    rows: list[dict[str, Any]] = []
    for choice in choices:
        series, dash = names[choice.kind]
        look = {"series": series, "kind": "ours", "dash": dash}
        least = 1e-6 if choice.kind == "tree" else 0.5 / MENU_ITEMS  # none wrong of so many
        rows.append(
            look
            | {
                "x": float(choice.performance.answers),
                "y": max(float(choice.performance.risk), least),
            }
        )
    plain = problem.loss is None
    if plain:
        floor = {"series": LIMITS["floor"], "kind": "baseline", "dash": "floor"}
        wrong = sorted({row["y"] for row in rows})
        rows += [floor | {"x": fano_floor(problem, error), "y": error} for error in wrong]
    points = [{"x": row["x"], "y": row["y"], "label": ""} for row in rows[: len(choices)]]
    svg = chart_svg(
        curve_chart(
            rows,
            title=f"What each {'error' if plain else 'loss'} costs: lower left is better",
            x="expected answers per item",
            y="misclassified items" if plain else "expected loss per item",
            subtitle=["Click a point, or choose in the table.", *EXPLAINED[: int(plain)]],
            points=points,
            share=plain,
        ),
        page=True,
    )
    return _named_points(svg, choices)


def _named_points(svg: str, choices: tuple[PlanChoice, ...]) -> str:
    """Give each mark the key of its choice, for the script."""
    keys = iter(choices)

    def named(match: re.Match[str]) -> str:
        choice = next(keys)
        found = choice.performance
        words = f"{choice.kind}: {percent(found.error)}, {number(found.answers)} answers per item"
        return (
            f'<path class="choice" data-choice="{choice.key}" aria-hidden="true" '
            f"{match.group(1)}><title>{words}</title></path>"
        )

    pattern = (
        r'<path aria-label="[^"]*" role="graphics-symbol" aria-roledescription="point" ([^>]*)/>'
    )
    return re.sub(pattern, named, svg)
