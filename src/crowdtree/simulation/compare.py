"""Comparison of all policies on one problem: rows for the table and the charts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from crowdtree.bounds import burnashev_guide, fano_floor
from crowdtree.designers import design
from crowdtree.errors import CrowdtreeError
from crowdtree.evaluation import evaluate
from crowdtree.frontiers import Frontier, frontier
from crowdtree.plan import Plan
from crowdtree.policy import AdaptivePolicy, BatchPolicy, PlanPolicy, Policy, expected_answers
from crowdtree.policy.adaptive import Criterion
from crowdtree.problem import Problem
from crowdtree.result_methods import Framed, Plotted
from crowdtree.simulation.batch_dawid_skene import simulate_dawid_skene
from crowdtree.simulation.run import Estimate, Run
from crowdtree.staffing import staff
from crowdtree.tree import Tree

__all__ = ["Comparison", "CurveRow", "PolicyRow", "compare_policies"]

Simulate = Callable[[Policy[Any]], Run]
PROVEN_UP_TO = 20
"""Classes up to which the frontier is proven; above, it is the greedy one."""
FRONTIER_POINTS = 40
MOST_VOTES = 51
BATCH_VOTES = (1, 3, 5, 7, 9, 13, 17)
MOST_STAFFINGS = 2000
TARGETS = (0.3, 0.2, 0.1, 0.05, 0.03, 0.02, 0.01, 0.005)


class CurveRow(NamedTuple):
    """A point of a policy's curve: answers per item and misclassification, with its interval."""

    series: str
    answers: float
    misclassification: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class PolicyRow:
    """A policy at the error that was asked for, or as near below it as it gets.

    `exact` separates computed from estimated numbers (an exact number has an interval of width 0);
    `run` is a simulation of it, for the answers per question and the calibration.
    """

    policy: str
    answers: Estimate
    misclassification: Estimate
    exact: bool
    note: str
    run: Run

    @cached_property
    def floor(self) -> float:
        """Fewest answers with which any policy has this misclassification (Fano)."""
        return fano_floor(self.run.problem, float(self.misclassification))

    @property
    def times_the_floor(self) -> float:
        """Answers over the floor at the policy's own error; NaN where the floor is 0."""
        return float(self.answers) / self.floor if self.floor > 0 else float("nan")

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "policy": self.policy,
            "answers_per_item": float(self.answers),
            "answers_per_item_interval": list(self.answers.interval),
            "misclassification": float(self.misclassification),
            "misclassification_interval": list(self.misclassification.interval),
            "exact": self.exact,
            "floor": self.floor,
            "times_the_floor": None if self.floor == 0 else self.times_the_floor,
            "note": self.note,
            "answers_per_question": self.run.answers_per_question,
        }


@dataclass(frozen=True, eq=False)
class Comparison(Framed, Plotted):
    """Every policy at one error, and its curve around it."""

    problem: Problem
    error: float
    rows: tuple[PolicyRow, ...]
    curves: tuple[CurveRow, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "target_error": self.error,
            "floor": fano_floor(self.problem, self.error),
            "policies": [row.to_dict() for row in self.rows],
            "curves": [row._asdict() for row in self.curves],
        }


class _Found(NamedTuple):
    """A policy's points, cheapest first, each with what makes its run; `at` is the tuned one."""

    name: str
    points: list[tuple[Estimate, Estimate, Callable[[], Run]]]
    exact: bool
    note: str = ""
    at: int | None = None


def compare_policies(
    problem: Problem,
    error: float = 0.01,
    *,
    items: int = 10_000,
    rng: int = 0,
    max_answers: int = 1000,
    criterion: Criterion | None = None,
    time_limit: float = 5.0,
    allow_groups: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Comparison:
    """Compare all policies on one problem, with a crowd that errs as assumed.

    Plans are evaluated exactly; adaptive and batch policies are simulated (estimates with 95 %
    intervals). All get answers from the same people.

    Parameters
    ----------
    problem
        The problem; what mistakes cost is ignored, since the table compares at equal error.
    error
        Misclassification at which the table compares.
    items, rng
        Of every simulation.
    max_answers, criterion
        Of the adaptive policy.
    time_limit
        Seconds of each frontier's search; above 20 classes it is the greedy one.
    allow_groups
        Accept classes that no question separates.
    progress
        Called with the name of what comes next.

    Examples
    --------
    >>> import crowdtree as ct
    >>> found = compare_policies(ct.example("table1"), 0.02, items=1000)
    >>> [row.policy for row in found.rows][:3]
    ['adaptive', 'frontier, margin', 'frontier, majority']
    """
    from crowdtree.simulation import simulate

    if not 0 < error < 0.5:
        raise CrowdtreeError(
            f"target_error: expected a number between 0 and 0.5 for a comparison, got {error}"
        )

    problem = problem.replace(loss=None)

    def run(policy: Policy[Any]) -> Run:
        return simulate(problem, policy, items, rng)

    tree = design(problem, "fm", allow_groups=allow_groups)
    makers: Sequence[tuple[str, Callable[[], Iterator[_Found]]]] = (
        ("adaptive", lambda: _adaptive(problem, error, max_answers, criterion, run, items)),
        ("frontier", lambda: _frontiers(problem, error, time_limit, allow_groups, run)),
        ("paper", lambda: _paper(tree, error, run)),
        ("batch", lambda: _batch(problem, error, run, items, rng)),
    )
    found: list[_Found] = []
    for name, make in makers:
        if progress is not None:
            progress(name)
        found += make()
    rows = tuple(_row(one, error) for one in found)
    curves = [
        CurveRow(one.name, float(answers), float(wrong), wrong.low, wrong.high)
        for one in found
        for answers, wrong, _ in one.points
    ]
    return Comparison(problem, error, rows, (*curves, *_limits(problem, curves)))


def _row(found: _Found, error: float) -> PolicyRow:
    """The tuned point, else the cheapest that is good enough, else the best there is."""
    good = [point for point in found.points if point[1] <= error * (1 + 1e-9)]
    note = found.note
    if found.at is not None:
        point = found.points[found.at]
    elif good:
        point = min(good, key=lambda p: p[0])
    else:
        point = min(found.points, key=lambda p: p[1])
        note = note or "does not reach it"
    answers, wrong, make = point
    return PolicyRow(found.name, answers, wrong, found.exact, note, make())


def _sure(value: float) -> Estimate:
    return Estimate(value, value, value)


def _simulated(run: Run) -> tuple[Estimate, Estimate, Callable[[], Run]]:
    return run.answers_per_item, run.misclassification, lambda: run


def _adaptive(
    problem: Problem, error: float, most: int, criterion: Any, run: Simulate, items: int
) -> Iterator[_Found]:
    """Several targets, one of them tuned so that the mean error is the one asked for."""
    from crowdtree.simulation import tune_target

    def make(target: float) -> AdaptivePolicy:
        return AdaptivePolicy(problem, target, most, criterion=criterion, strict=False)

    note = ""
    try:
        tuned = tune_target(problem, make, error, items=min(items, 5000))
    except CrowdtreeError:
        tuned, note = error / 4, "does not reach it"
    targets = sorted({tuned, *(t for t in TARGETS if t > error / 4)}, reverse=True)
    points = [_simulated(run(make(target))) for target in targets]
    yield _Found("adaptive", points, False, note, targets.index(tuned))


def _frontiers(
    problem: Problem, error: float, seconds: float, allow_groups: bool, run: Simulate
) -> Iterator[_Found]:
    method: Literal["greedy"] | None = None if problem.n_classes <= PROVEN_UP_TO else "greedy"
    for vote in ("margin", "majority"):
        front = frontier(
            problem,
            vote,
            method=method,
            max_points=FRONTIER_POINTS,
            time_limit=seconds,
            allow_groups=allow_groups,
        )
        points = [_planned(plan, run, "none") for plan in _plans(front, error)]
        proof = "" if front.proven else "not proven optimal"
        yield _Found(f"frontier, {vote}", points, True, proof)


def _plans(front: Frontier, error: float) -> Iterator[Plan]:
    """Yield the points down to an eighth of the error, and the plan chosen for it."""
    for point in front:
        yield point.plan
        if point.misclassification < error / 8:
            break
    try:
        yield front.plan_for(error=error)
    except CrowdtreeError:  # out of reach: the points show what can be reached
        return


def _planned(
    plan: Plan, run: Simulate, stopping: Literal["none", "curtailed", "margin"]
) -> tuple[Estimate, Estimate, Callable[[], Run]]:
    policy = PlanPolicy(plan, stopping)
    answers = expected_answers(plan, stopping)
    wrong = evaluate(policy.voted).misclassification
    return _sure(answers), _sure(wrong), lambda: run(policy)


def _paper(tree: Tree, error: float, run: Simulate) -> Iterator[_Found]:
    """Yield the paper's tree with Algorithm 1, its votes stopped in all three ways."""
    plans = []
    for pairs in range(MOST_STAFFINGS):
        plan = staff(tree, 2 * pairs, "paper-fm")
        plans.append(plan)
        if evaluate(plan).misclassification < error / 2 or plan.votes.max() > MOST_VOTES:
            break
    ways: Sequence[tuple[str, Literal["none", "curtailed", "margin"]]] = (
        ("paper, margin", "margin"),
        ("paper, curtailed", "curtailed"),
        ("paper", "none"),
    )
    for name, stopping in ways:
        yield _Found(name, [_planned(plan, run, stopping) for plan in plans], True)


def _batch(problem: Problem, error: float, run: Simulate, items: int, rng: int) -> Iterator[_Found]:
    """Yield all questions at once: nearest codeword, posterior, and fused by Dawid and Skene."""

    def fused(votes: int) -> Run:
        return simulate_dawid_skene(problem, votes, items, rng)

    several = BATCH_VOTES[1:]  # one answer agrees with none: nothing can be learnt from it
    ways: Sequence[tuple[str, Callable[[int], Run], Sequence[int]]] = (
        (
            "batch, posterior",
            lambda votes: run(BatchPolicy(problem, votes, "posterior")),
            BATCH_VOTES,
        ),
        ("batch, Dawid-Skene", fused, several),
        ("batch, nearest", lambda votes: run(BatchPolicy(problem, votes)), BATCH_VOTES),
    )
    for name, ask, counts in ways:
        points = []
        for votes in counts:
            points.append(_simulated(ask(votes)))
            wrong = [float(point[1]) for point in points]
            if wrong[-1] <= error or (len(wrong) > 1 and wrong[-1] > 0.9 * wrong[-2]):
                break  # reached, or more votes no longer help
        yield _Found(name, points, False)


def _limits(problem: Problem, curves: Sequence[CurveRow]) -> Iterator[CurveRow]:
    """Yield floor and guide over the errors that the curves span."""
    wrong = [row.misclassification for row in curves if row.misclassification > 0]
    for error in np.geomspace(max(wrong), max(min(wrong), 1e-6), 40).tolist():
        for series, line in (("floor", fano_floor), ("guide", burnashev_guide)):
            yield CurveRow(series, line(problem, error), error, error, error)
