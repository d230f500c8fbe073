"""The cheapest mix of sources for a goal: which of them to ask at all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import cast

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.bounds import prices_by_question
from crowdtree.core.problem import Problem
from crowdtree.designs.frontiers import Goal
from crowdtree.planning.adaptive_curve import (
    ITEMS,
    AdaptiveCurve,
    Report,
    quick_items,
    run_cost,
    silent,
)
from crowdtree.planning.choices import Mix, PlanChoice
from crowdtree.planning.trees import value_of
from crowdtree.policies import AdaptivePolicy
from crowdtree.simulation import simulate

MAX_TRIED = 4
"""Sources up to which every mix is tried; of more, sources are left out one at a time."""
NEAR = 1.15
"""Ratio to the least cost up to which a mix is tuned, after a quick look."""
SAME = 1.01
"""Ratio to the least cost up to which fewer sources are preferred."""
TUNED = 3
"""Mixes that are tuned at most, besides people only and models only."""
Names = tuple[str, ...]


@dataclass(frozen=True)
class _Search:
    """What the curves of all mixes have in common."""

    problem: Problem
    goal: Goal
    prices: NDArray[np.float64]
    max_answers: int
    rng: int

    def curve(self, mix: Names | None, items: int, report: Report = silent) -> AdaptiveCurve:
        """Policies that ask some of the sources."""
        return AdaptiveCurve(
            self.problem, self.goal, self.prices, self.max_answers, self.rng, items, report, mix
        )


def best_mix(
    problem: Problem,
    goal: Goal,
    prices: NDArray[np.float64],
    max_answers: int,
    rng: int,
    report: Report,
) -> tuple[PlanChoice | None, str, tuple[Mix, ...]]:
    """The adaptive policy of the best mix for a goal, why there is none, and the mixes tried.

    Every mix is looked at with the same stopping rule, and the best ones are tuned. The first of
    the mixes is the chosen one; people only and models only are among them.
    """
    search = _Search(problem, goal, prices, max_answers, rng)
    items = quick_items(problem)
    report(0.4, "Comparing mixes of sources")
    curves: dict[Names, AdaptiveCurve] = {}
    tuned: dict[Names, tuple[PlanChoice | None, str]] = {}

    def tune(mix: Names) -> None:
        curves[mix] = search.curve(None if mix == every else mix, items)
        tuned[mix] = curves[mix].best()

    every = tuple(source.name for source in problem.sources)
    tune(every)
    pure = list(_pure(problem))
    shortlist = _shortlist(search, every, tuned[every][0], items)
    for done, mix in enumerate([m for m in (*shortlist, *pure) if m not in tuned]):
        report(0.5 + 0.05 * done, f"Simulating {' + '.join(mix)}")
        tune(mix)
    reached = {mix: choice for mix, (choice, _) in tuned.items() if choice is not None}
    if not reached:
        return None, tuned[every][1], ()
    value = {mix: float(value_of(choice, goal, prices)) for mix, choice in reached.items()}
    good = [mix for mix in value if value[mix] <= SAME * min(value.values())]
    best = min(good, key=lambda mix: (len(mix), value[mix]))
    report(0.8, f"Simulating {' + '.join(best)}")
    choice, why = search.curve(None if best == every else best, ITEMS, report).best()
    if choice is None:
        choice = reached[best]
    shown = [best, *[mix for mix in dict.fromkeys([*pure, *tuned]) if mix != best]]
    mixes = tuple(
        replace(
            _mix(problem, mix, choice, prices, rng, ITEMS)
            if mix == best
            else _mix(problem, mix, reached.get(mix), prices, rng, items),
            curve=curves[mix].points,
        )
        for mix in shown
    )
    return choice, why, mixes


def _pure(problem: Problem) -> Iterator[Names]:
    """People only, and models only, as far as there are any beside others."""
    for kind in ("people", "model"):
        names = tuple(s.name for s in problem.sources if s.kind == kind)
        if names and len(names) < len(problem.sources):
            yield names


def _shortlist(search: _Search, every: Names, choice: PlanChoice | None, items: int) -> list[Names]:
    """Mixes that are cheap at the stopping rule of the mix of all sources."""
    if choice is None:  # every mix has less to go by
        return []
    looked: dict[Names, float] = {}

    def look(mix: Names) -> float:
        if mix not in looked:
            looked[mix] = _cost_at(search, choice, mix, items)
        return looked[mix]

    look(every)
    if len(every) <= MAX_TRIED:
        for size in range(1, len(every)):
            for mix in combinations(every, size):
                look(mix)
    else:
        mix = every
        while len(mix) > 1:
            smaller = [tuple(name for name in mix if name != gone) for gone in mix]
            best = min(smaller, key=look)
            if look(best) > NEAR * min(looked.values()):
                break
            mix = best
    least = min(looked.values())
    near = sorted((mix for mix in looked if looked[mix] <= NEAR * least), key=look)
    return near[:TUNED]


def _cost_at(search: _Search, choice: PlanChoice, mix: Names, items: int) -> float:
    """What a mix leaves to be minimised, stopping as `choice` does; inf where it errs more."""
    policy = cast("AdaptivePolicy", choice.policy)
    other = policy.changed(sources=list(mix), strict=False)
    run = simulate(search.problem, other, items, search.rng)
    cost = float(run_cost(run, prices_by_question(search.prices, search.problem)))
    goal = search.goal
    if goal.cost is not None:
        return float(run.stated_risk) * (1 + cost / goal.cost)
    limit = goal.error if goal.error is not None else goal.loss
    stated = float(run.stated_error if goal.error is not None else run.stated_risk)
    assert limit is not None
    return cost if stated <= 1.5 * limit else float("inf")


def _mix(
    problem: Problem,
    names: Names,
    choice: PlanChoice | None,
    prices: NDArray[np.float64],
    rng: int,
    items: int,
) -> Mix:
    """Describe a mix: its performance, and what each source contributes and costs."""
    if choice is None:
        return Mix(names, None, {}, {})
    run = simulate(problem, choice.policy, items, rng)
    cost = run.cost_per_source(prices_by_question(prices, problem))
    return Mix(names, choice.performance, run.answers_per_source, cost)
