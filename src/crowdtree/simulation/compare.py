"""Comparison of all policies on one problem: rows for the table and the charts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple

import numpy as np

from crowdtree.core.bounds import burnashev_guide, fano_floor
from crowdtree.core.checking import check_call, named_options
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.evaluation import Evaluation, evaluate
from crowdtree.core.problem import Problem
from crowdtree.core.result_methods import Framed, Plotted
from crowdtree.core.votes import STOPPINGS, Stopping
from crowdtree.designs.designers import design
from crowdtree.designs.frontiers import Frontier, frontier
from crowdtree.designs.frontiers.vote_options import kinds_of_votes
from crowdtree.designs.staffing import paper_plans
from crowdtree.policies import AdaptivePolicy, BatchPolicy, PlanPolicy, Policy, expected_answers
from crowdtree.policies.adaptive import Criterion
from crowdtree.simulation.batch_dawid_skene import simulate_dawid_skene
from crowdtree.simulation.run import Estimate, Run

__all__ = ["Comparison", "CurveRow", "PolicyRow", "compare_policies"]

Simulate = Callable[[Policy[Any]], Run]
_Tell = Callable[[float, str], None]
"""Called with the share of a kind of policy that is done, and what comes next."""
PROVEN_UP_TO = 20
"""Classes up to which the frontier is proven; above, it is the greedy one."""
FRONTIER_POINTS = 40
MAX_VOTES = 51
BATCH_VOTES = (1, 3, 5, 7, 9, 13, 17)
MAX_STAFFINGS = 2000
TARGETS = (0.3, 0.2, 0.1, 0.05, 0.03, 0.02, 0.01, 0.005)
LOSS_STEPS = (64.0, 32.0, 16.0, 8.0, 4.0, 2.0, 1.0, 0.5)
"""Target losses of the adaptive policy's curve, as multiples of the one that is compared."""


class CurveRow(NamedTuple):
    """A point of a policy's curve: answers per item and misclassification, with its interval.

    `risk` is the expected loss per item, with its interval, where mistakes have different costs.
    """

    series: str
    answers: float
    misclassification: float
    low: float
    high: float
    risk: Estimate | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON; without a loss, without columns about it."""
        found = self._asdict()
        risk = found.pop("risk")
        if risk is None:
            return found
        return found | {"risk": float(risk), "risk_low": risk.low, "risk_high": risk.high}


@dataclass(frozen=True, eq=False)
class PolicyRow:
    """A policy at the error (or loss) that was asked for, or as near below it as it gets.

    `risk` is the expected loss per item; the misclassification, for 0/1 loss. `exact` separates
    computed from estimated numbers (an exact number has an interval of width 0).
    """

    policy: str
    answers: Estimate
    misclassification: Estimate
    risk: Estimate
    exact: bool
    note: str
    problem: Problem
    make: Callable[[], Run]

    @cached_property
    def run(self) -> Run:
        """Simulation of it, for the answers per question and the calibration; made when used."""
        return self.make()

    @cached_property
    def floor(self) -> float:
        """Fewest answers with which any policy has this misclassification (Fano)."""
        return fano_floor(self.problem, float(self.misclassification))

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
            **({} if self.problem.loss is None else self._risk_columns()),
            "exact": self.exact,
            "floor": self.floor,
            "times_the_floor": None if self.floor == 0 else self.times_the_floor,
            "note": self.note,
            "answers_per_question": self.run.answers_per_question,
        }

    def _risk_columns(self) -> dict[str, Any]:
        return {"risk": float(self.risk), "risk_interval": list(self.risk.interval)}


@dataclass(frozen=True, eq=False)
class Comparison(Framed, Plotted):
    """Every policy at one error, or at one expected loss, and its curve around it."""

    problem: Problem
    error: float
    rows: tuple[PolicyRow, ...]
    curves: tuple[CurveRow, ...]
    loss: float | None = None
    """Expected loss at which policies are compared, in place of the error."""

    def __repr__(self) -> str:
        best = min(self.rows, key=lambda row: row.answers, default=None)
        goal = f"error {self.error:g}" if self.loss is None else f"loss {self.loss:g}"
        found = "" if best is None else f"; fewest answers: {best.policy}, {best.answers}"
        return f"Comparison({len(self.rows)} policies at {goal}{found})"

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        wanted: dict[str, Any] = {"target_error": self.error}
        if self.loss is not None:
            wanted = {"target_loss": self.loss}
        at = self.error if self.loss is None else _error_at(self.problem, self.loss)
        return {
            **wanted,
            "floor": fano_floor(self.problem, at),
            "policies": [row.to_dict() for row in self.rows],
            "curves": [row.to_dict() for row in self.curves],
        }


class _Point(NamedTuple):
    """What a policy costs with some of its settings, and what makes a simulation of it."""

    answers: Estimate
    wrong: Estimate
    risk: Estimate
    run: Callable[[], Run]


class _Aim(NamedTuple):
    """The error or, with `loss`, the expected loss at which policies are compared."""

    value: float
    loss: bool

    def of(self, point: _Point) -> Estimate:
        """What is compared."""
        return point.risk if self.loss else point.wrong

    def of_plan(self, plan: Any) -> float:
        """What is compared, of a plan, an evaluation or a point of a frontier."""
        return float(plan.risk if self.loss else plan.misclassification)

    def cheapest(self, points: Sequence[_Point]) -> _Point | None:
        """The cheapest point that is good enough."""
        good = [point for point in points if self.of(point) <= self.value * (1 + 1e-9)]
        return min(good, key=lambda point: point.answers, default=None)


class _Setting(NamedTuple):
    """What is compared, and how: the arguments of :func:`compare_policies`."""

    problem: Problem
    aim: _Aim
    items: int
    rng: int
    max_answers: int
    criterion: Criterion | None
    time_limit: float
    allow_groups: bool
    run: Simulate


class _Way(NamedTuple):
    """A policy's points, cheapest first; `at` is the tuned one."""

    name: str
    points: list[_Point]
    exact: bool
    note: str = ""
    at: int | None = None


@named_options
def compare_policies(
    problem: Problem,
    error: float = 0.01,
    *,
    loss: float | None = None,
    items: int = 10_000,
    rng: int = 0,
    max_answers: int = 1000,
    criterion: Criterion | None = None,
    time_limit: float = 5.0,
    allow_groups: bool = False,
    progress: Callable[[float, str], None] | None = None,
) -> Comparison:
    """Compare all policies on one problem, with a crowd that errs as assumed.

    Plans are evaluated exactly; adaptive and batch policies are simulated (estimates with 95 %
    intervals). All get answers from the same people. Where mistakes have different costs, labels
    minimise the expected loss (except for nearest codewords, which ignore it), and every row has
    the expected loss as well; that of simulated policies is the mean of what they state, since rare
    large losses are seldom among the simulated items.

    Parameters
    ----------
    problem
        The problem.
    error
        Misclassification at which the table compares.
    loss
        In place of the error: expected loss per item at which it compares.
    items, rng
        Of every simulation.
    max_answers, criterion
        Of the adaptive policy.
    time_limit
        Seconds of each frontier's search; above 20 classes it is the greedy one.
    allow_groups
        Accept classes that no question separates.
    progress
        Called with the share that is done (of the policies, not of the time), and what comes next.

    Examples
    --------
    >>> import crowdtree as ct
    >>> found = compare_policies(ct.example("table1"), 0.02, items=1000)
    >>> [row.policy for row in found.rows][:3]
    ['adaptive', 'frontier, margin', 'frontier, majority']
    """
    from crowdtree.simulation import simulate

    check_call(compare_policies, locals())
    problem.require_one_source("compare_policies")
    if not 0 < error < 0.5:
        raise CrowdtreeError(
            f"target_error: expected a number between 0 and 0.5 for a comparison, got {error}"
        )
    if loss is not None and problem.loss is None:
        raise CrowdtreeError(
            "target_loss: every mistake costs 1 in this problem; use target_error, or give the "
            "problem a loss"
        )
    if loss is not None and not 0 < loss < float("inf"):
        raise CrowdtreeError(f"target_loss: expected a number above 0, got {loss}")
    aim = _Aim(error if loss is None else loss, loss is not None)
    run = partial(simulate, problem, items=items, rng=rng)
    setting = _Setting(
        problem, aim, items, rng, max_answers, criterion, time_limit, allow_groups, run
    )
    ways: list[_Way] = []
    makers = (_adaptive, _frontiers, _paper, _batch)
    for number, make in enumerate(makers):

        def tell(share: float, what: str, number: int = number) -> None:
            if progress is not None:
                progress((number + share) / len(makers), what)

        ways += make(setting, tell)
    ways = _with_paper_leads(ways, aim)
    rows = tuple(_row(way, aim, problem) for way in ways)
    curves = [
        CurveRow(
            way.name,
            float(point.answers),
            float(point.wrong),
            *point.wrong.interval,
            None if problem.loss is None else point.risk,
        )
        for way in ways
        for point in way.points
    ]
    return Comparison(problem, error, rows, (*curves, *_limits(problem, curves, aim)), loss)


def _with_paper_leads(ways: list[_Way], aim: _Aim) -> list[_Way]:
    """Let the frontier of leads have the paper's plan where that is better: it is one of its own.

    The paper's majorities are among the candidates of the frontier already.
    """
    by_name = {way.name: way for way in ways}
    ours, paper = by_name.get("frontier, margin"), by_name.get("paper, margin")
    if ours is None or paper is None:
        return ways
    kept, rival = aim.cheapest(ours.points), aim.cheapest(paper.points)
    if rival is None or (kept is not None and kept.answers <= rival.answers):
        return ways
    better = ours._replace(points=[*ours.points, rival])
    return [better if way is ours else way for way in ways]


def _row(way: _Way, aim: _Aim, problem: Problem) -> PolicyRow:
    """The tuned point, else the cheapest that is good enough, else the best there is."""
    point, note = aim.cheapest(way.points), way.note
    if way.at is not None:
        point = way.points[way.at]
    elif point is None:
        point, note = min(way.points, key=aim.of), "does not reach it"
    answers, wrong, risk, make = point
    return PolicyRow(way.name, answers, wrong, risk, way.exact, note, problem, make)


def _sure(value: float) -> Estimate:
    return Estimate(value, value, value)


def _simulated(run: Run, stated: bool = True) -> _Point:
    wrong = run.misclassification
    risk = wrong if run.problem.loss is None else run.stated_risk if stated else run.risk
    return _Point(run.answers_per_item, wrong, risk, partial(_made, run))


def _made(run: Run) -> Run:
    return run


def _adaptive(setting: _Setting, tell: _Tell) -> Iterator[_Way]:
    """Several targets, one of them tuned so that the mean error is the one asked for."""
    from crowdtree.simulation import tune_target

    problem, aim = setting.problem, setting.aim

    def make(target: float) -> AdaptivePolicy:
        options: dict[str, Any] = {"target_loss" if aim.loss else "target_error": target}
        options |= {"max_answers": setting.max_answers, "criterion": setting.criterion}
        return AdaptivePolicy(problem, strict=False, **options)

    note, least = "", aim.value / 4
    tell(0.0, "tuning the adaptive policy")
    try:
        tuned = tune_target(problem, make, aim.value, items=min(setting.items, 5000), loss=aim.loss)
    except CrowdtreeError:
        tuned, note = least, "does not reach it"
    others: Sequence[float] = TARGETS
    if aim.loss and problem.loss is not None:
        dearest = math.inf if problem.loss.refer is None else problem.loss.refer
        others = [t for t in (aim.value * times for times in LOSS_STEPS) if t < dearest]
    targets = sorted({tuned, *(t for t in others if t > least)}, reverse=True)
    points = []
    for number, target in enumerate(targets):
        tell(0.5 + number / (2 * len(targets)), f"simulating the adaptive policy to {target:.2g}")
        points.append(_simulated(setting.run(make(target))))
    yield _Way("adaptive", points, False, note, targets.index(tuned))


def _frontiers(setting: _Setting, tell: _Tell) -> Iterator[_Way]:
    """Yield the frontier of each kind of vote."""
    problem, aim = setting.problem, setting.aim
    method: Literal["greedy"] | None = None if problem.n_classes <= PROVEN_UP_TO else "greedy"
    kinds = kinds_of_votes(problem)
    for number, vote in enumerate(kinds):
        tell(number / len(kinds), f"searching the frontier of {vote} votes")
        front = frontier(
            problem,
            vote,
            method=method,
            max_points=FRONTIER_POINTS,
            time_limit=setting.time_limit,
            allow_groups=setting.allow_groups,
        )
        tell((number + 0.5) / len(kinds), f"searching the best plan of {vote} votes")
        values, proven = _values(front, aim)
        points = [_planned(value, setting.run, "none") for value in values]
        yield _Way(f"frontier, {vote}", points, True, "" if proven else "not proven best")


def _values(front: Frontier, aim: _Aim) -> tuple[list[Evaluation], bool]:
    """Points down to an eighth of the error or loss, the plan chosen for it, and its proof."""
    values = []
    for point in front:
        values.append(point.value)
        if aim.of_plan(point) < aim.value / 8:
            break
    try:
        chosen = front.select(loss=aim.value) if aim.loss else front.select(error=aim.value)
    except CrowdtreeError:  # out of reach: the points show what can be reached
        return values, False
    return [*values, chosen.point.value], chosen.proven


def _planned(value: Evaluation, run: Simulate, stopping: Stopping) -> _Point:
    policy = PlanPolicy(value.plan, stopping)
    if policy.voted is not value.plan:
        value = evaluate(policy.voted)
    same = policy.rule is policy.voted.rule
    answers = value.expected_answers if same else expected_answers(value.plan, stopping)
    return _Point(
        _sure(answers), _sure(value.misclassification), _sure(value.risk), partial(run, policy)
    )


def _paper(setting: _Setting, tell: _Tell) -> Iterator[_Way]:
    """Yield the paper's tree with Algorithm 1, its votes stopped in all ways."""
    tree, aim = design(setting.problem, "fm", allow_groups=setting.allow_groups), setting.aim
    tell(0.0, "computing the plans of the paper")
    plans = []
    for plan in itertools.islice(paper_plans(tree), MAX_STAFFINGS):
        plans.append(evaluate(plan))
        if aim.of_plan(plans[-1]) < aim.value / 2 or plan.votes.max() > MAX_VOTES:
            break
    for number, stopping in enumerate(reversed(STOPPINGS), start=1):
        name = "paper" if stopping == "none" else f"paper, {stopping}"
        tell(number / (len(STOPPINGS) + 1), f"computing {name}")
        points = []
        for value in plans:
            try:
                points.append(_planned(value, setting.run, stopping))
            except CrowdtreeError:  # several answers: too many counts of votes to follow
                if tree.problem.is_yes_no:
                    raise
                break
        if points:
            yield _Way(name, points, True)


def _batch(setting: _Setting, tell: _Tell) -> Iterator[_Way]:
    """Yield all questions at once: nearest codeword, posterior, and fused by Dawid and Skene."""

    problem, aim, run = setting.problem, setting.aim, setting.run

    def fused(votes: int) -> Run:
        return simulate_dawid_skene(problem, votes, setting.items, setting.rng)

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
    for number, (name, ask, counts) in enumerate(ways):
        tell(number / len(ways), f"simulating {name}")
        points: dict[int, _Point] = {}

        def wrong(votes: int, ask: Any = ask, points: dict[int, _Point] = points) -> float:
            points[votes] = _simulated(ask(votes), stated=ask is not fused)
            return float(aim.of(points[votes]))

        last = math.inf
        for fewer, votes in itertools.pairwise((counts[0] - 1, *counts)):
            now = wrong(votes)
            if now <= aim.value:  # reached: perhaps with fewer, which are not among the counts
                any(wrong(between) <= aim.value for between in range(fewer + 1, votes))
                break
            if now > 0.9 * last:
                break  # more votes no longer help
            last = now
        yield _Way(name, [points[votes] for votes in sorted(points)], False)


def _limits(problem: Problem, curves: Sequence[CurveRow], aim: _Aim) -> Iterator[CurveRow]:
    """Yield floor and guide over the errors, or the expected losses, that the curves span."""
    found = [float(row.risk or 0.0) if aim.loss else row.misclassification for row in curves]
    found = [value for value in found if value > 0]
    for value in np.geomspace(max(found), max(min(found), 1e-6), 40).tolist():
        error = _error_at(problem, value) if aim.loss else value
        if aim.loss and error >= _guessing(problem):
            continue
        for series, line in (("floor", fano_floor), ("guide", burnashev_guide)):
            risk = _sure(value) if aim.loss else None
            yield CurveRow(series, line(problem, error), error, error, error, risk)


def _error_at(problem: Problem, risk: float) -> float:
    """Largest share of wrong best guesses that an expected loss allows.

    Every wrong label costs the smallest loss or more, and a wrong best guess that is not given as
    a label costs the price of the expert.
    """
    assert problem.loss is not None
    least = problem.loss.least
    if problem.loss.refer is not None:
        least = min(least, problem.loss.refer)
    return min(risk / least, _guessing(problem)) if least else _guessing(problem)


def _guessing(problem: Problem) -> float:
    """Share of wrong labels that needs no answer."""
    return 1 - 1 / problem.n_classes
