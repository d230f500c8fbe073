"""Advice on a plan: how many answers each error costs, with a tree or adaptively."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from crowdtree.bounds import fano_floor
from crowdtree.errors import CrowdtreeError
from crowdtree.evaluation import evaluate
from crowdtree.frontiers import frontier
from crowdtree.policy import AdaptivePolicy, PlanPolicy, Policy, expected_answers
from crowdtree.problem import Problem
from crowdtree.simulation import simulate
from crowdtree.text import percent

if TYPE_CHECKING:
    from crowdtree.audit import Forecast

__all__ = [
    "CertificateCost",
    "Choice",
    "Offer",
    "Promise",
    "Report",
    "certificate_cost",
    "checks_of",
    "make_offer",
    "make_promise",
    "people_costs",
    "promise_of",
]

Report = Callable[[float, str], None]
"""Receives the share of the work that is done (0 to 1), and what is being done."""

TARGETS = (0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.001)
SIMULATED = 2000
WATCHED = 300
"""Items of the simulated campaign that watches its table, which is slow."""
PEOPLE_SIMULATED = 2000
"""Items by which the price of labels that rest on several people is estimated."""
MOST_ANSWERS = 200
MOST_LEAD = 25
MOST_POINTS = 40
SAME = 1e-9
REACHED = 0.99
"""Share of items that must reach a target loss so that it holds for all of them."""
DEFAULT = ("tree-0.02", "tree-0.05", "tree-0.01", "tree-0.1")


@dataclass(frozen=True)
class Choice:
    """A policy with its expected performance."""

    key: str
    kind: str
    target: float
    error: float
    answers: float
    risk: float
    policy: Policy[Any]

    @property
    def promise(self) -> Promise:
        """Its expected performance: exact for trees, simulated for others."""
        return Promise(self.error, self.answers, self.kind == "tree", self.risk)


@dataclass(frozen=True)
class Promise:
    """Expected performance of a policy, per item; `risk` is the expected loss."""

    error: float
    answers: float
    exact: bool
    risk: float = 0.0


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
        if self.problem.loss is not None:
            trees = [choice for choice in self.choices if choice.kind == "tree"] or self.choices
            return trees[len(trees) // 2]
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
        what = "an error below 20 %" if problem.loss is None else "a useful expected loss"
        raise CrowdtreeError(f"plan: no plan reaches {what}; add better questions")
    return Offer(problem, choices, _chart(problem, choices))


def make_promise(report: Report, policy: Policy[Any]) -> Promise:
    """Work out the expected performance of a policy, as a job."""
    del report
    return promise_of(policy)


@dataclass(frozen=True)
class CertificateCost:
    """What a certificate costs on top of the answers, if the table is right: simulated.

    `watched` are the answers per item of a campaign that revises its table when answers contradict
    it, None for a plan, which keeps its table by default.
    """

    bound: float
    items: int
    checks: Forecast
    answers: float
    watched: float | None

    @property
    def extra(self) -> float | None:
        """Share of more answers that watching costs."""
        return None if self.watched is None else self.watched / self.answers - 1


def certificate_cost(
    report: Report, policy: Policy[Any], bound: float, items: int
) -> CertificateCost:
    """Simulate a campaign and the audits of its labels, as a job.

    >>> import crowdtree as ct
    >>> policy = ct.AdaptivePolicy(ct.example("table1"), 0.02)
    >>> found = certificate_cost(lambda share, what: None, policy, 0.1, 200)
    >>> 0 < found.checks.low <= found.checks.median <= 200, found.watched >= found.answers * 0.9
    (True, True)
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report(0.1, "Simulating the campaign")
        run = simulate(policy.problem, policy, items=items, rng=0)
        report(0.5, "Simulating audits")
        checks = checks_of(run, bound)
        watched = None
        if isinstance(policy, AdaptivePolicy):
            report(0.7, "Simulating a campaign that watches its table")
            few = min(items, WATCHED)
            plain = simulate(policy.problem, policy, items=few, rng=0).answers_per_item
            adapting = simulate(policy.problem, policy, items=few, rng=0, adapt=True)
            watched = float(run.answers_per_item) * float(adapting.answers_per_item) / float(plain)
    return CertificateCost(bound, items, checks, float(run.answers_per_item), watched)


def people_costs(report: Report, policy: Policy[Any], people: Sequence[int]) -> dict[int, float]:
    """Answers per item that labels of at least some people take in addition: simulated.

    The same items and answers are simulated for each number of people, so the differences vary
    little.

    >>> import crowdtree as ct
    >>> policy = ct.policy.PlanPolicy(ct.design(ct.example("table1")))
    >>> found = people_costs(lambda share, what: None, policy, [1, 2, 3])
    >>> found[1], 0 < found[2] < found[3] < 2
    (0.0, True)
    """
    report(0.1, "Simulating labels by one person and by more")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runs = {
            n: simulate(policy.problem, policy, PEOPLE_SIMULATED, people_per_item=n)
            for n in {1, *people}
        }
        answers = {n: float(run.answers_per_item) for n, run in runs.items()}
    return {n: max(0.0, answers[n] - answers[1]) for n in people}


def checks_of(run: Any, bound: float) -> Forecast:
    """Simulate audits of the labels of a simulated campaign, whose truth is known."""
    from crowdtree.audit import plan_audit

    wrong = (run.label != run.truth).tolist()
    return plan_audit(run.posterior_error.tolist(), bound, truth=wrong)


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
    for target in reversed(targets_of(problem)):
        try:
            plan = front.plan_for(**{"error" if problem.loss is None else "loss": target})
        except CrowdtreeError:
            continue
        value = evaluate(plan)
        made = (value.misclassification, value.expected_answers, value.risk)
        if last is not None and abs(value.risk - last.risk) < SAME:
            continue  # the stricter target costs no more
        last = Choice(f"tree-{target:g}", "tree", target, *made, PlanPolicy(plan))
        yield last


def targets_of(problem: Problem) -> tuple[float, ...]:
    """Errors to choose from; for a problem with a loss, expected losses.

    These are shares of what the best decision without any answer costs, rounded.

    >>> import crowdtree as ct
    >>> targets_of(ct.example("mushrooms"))
    (0.2, 0.08, 0.04, 0.02, 0.008, 0.004, 0.0008)
    """
    if problem.loss is None:
        return TARGETS
    blind = float(problem.loss.decide(problem.prior).risk)
    return tuple(float(f"{blind * target:.1g}") for target in TARGETS)


def _adaptive(problem: Problem, report: Report) -> Iterator[Choice]:
    last: Choice | None = None
    for done, target in enumerate(reversed(targets_of(problem))):
        share = 0.5 + 0.5 * done / len(TARGETS)
        report(share, f"Simulating the adaptive policy, {done + 1} of {len(TARGETS)}")
        options: dict[str, Any] = {"max_answers": MOST_ANSWERS, "strict": False}
        options["target_error" if problem.loss is None else "target_loss"] = target
        policy = AdaptivePolicy(problem, **options)
        error, answers, risk = _simulated(policy)
        if risk > target or (last is not None and answers >= last.answers * 0.995):
            continue
        last = Choice(f"adaptive-{target:g}", "adaptive", target, error, answers, risk, policy)
        yield last


def _simulated(policy: Policy[Any]) -> tuple[float, float, float]:
    run = simulate(policy.problem, policy, items=SIMULATED, rng=0)
    risk = float(run.risk)
    target = getattr(policy, "target_loss", None)
    if target is not None and run.reasons.get("target", 0) >= REACHED * run.items:
        # Rare large losses make few simulated items a poor estimate; each item stops at the target.
        risk = target
    return float(run.misclassification), float(run.answers_per_item), risk


def promise_of(policy: Policy[Any]) -> Promise:
    """Expected performance of a policy: exact for a plan, simulated for others.

    >>> import crowdtree as ct
    >>> round(promise_of(PlanPolicy(ct.design(ct.example("table1")))).error, 4)
    0.0823
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if isinstance(policy, PlanPolicy):
            value = evaluate(policy.voted)
            answers = expected_answers(policy.plan, policy.stopping)
            return Promise(value.misclassification, answers, True, value.risk)
        error, answers, risk = _simulated(policy)
        return Promise(error, answers, False, risk)


def _chart(problem: Problem, choices: tuple[Choice, ...]) -> str:
    """Plot error over cost for both kinds, with a mark per choice."""
    # altair is slow to import, and only this function needs it
    from crowdtree.plots.curves import EXPLAINED, LIMITS, curve_chart
    from crowdtree.plots.vega import chart_svg

    names = {"tree": ("tree", "plain"), "adaptive": ("adaptive", "dashed")}
    rows: list[dict[str, Any]] = []
    for choice in choices:
        series, dash = names[choice.kind]
        look = {"series": series, "kind": "ours", "dash": dash}
        least = 1e-6 if choice.kind == "tree" else 0.5 / SIMULATED  # none wrong of so many
        rows.append(look | {"x": choice.answers, "y": max(choice.risk, least)})
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
