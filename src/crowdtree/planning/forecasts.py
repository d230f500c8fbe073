"""What comes on top of a policy's answers: certificates, and labels that rest on several people."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from crowdtree.planning.adaptive_curve import Report, expected_performance
from crowdtree.planning.choices import ExpectedPerformance
from crowdtree.policies import Policy
from crowdtree.simulation import simulate

if TYPE_CHECKING:
    from crowdtree.audit import Forecast

WATCHED_ITEMS = 300
"""Items of the simulated campaign that watches its table, which is slow."""
PEOPLE_ITEMS = 2000
"""Items by which the price of labels that rest on several people is estimated."""


def performance_job(report: Report, policy: Policy[Any]) -> ExpectedPerformance:
    """Work out the expected performance of a policy, as a job."""
    del report
    return expected_performance(policy)


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
    >>> costs = certificate_cost(lambda share, what: None, policy, 0.1, 200)
    >>> 0 < costs.checks.low <= costs.checks.median <= 200, costs.watched >= costs.answers * 0.9
    (True, True)
    """
    with warnings.catch_warnings(action="ignore"):
        report(0.1, "Simulating the campaign")
        run = simulate(policy.problem, policy, items=items, rng=0)
        report(0.5, "Simulating audits")
        checks = forecast_checks(run, bound)
        watched = None
        if policy.stops_at_target:
            report(0.7, "Simulating a campaign that watches its table")
            few = min(items, WATCHED_ITEMS)
            plain = simulate(policy.problem, policy, items=few, rng=0).answers_per_item
            adapting = simulate(policy.problem, policy, items=few, rng=0, adapt=True)
            watched = float(run.answers_per_item) * float(adapting.answers_per_item) / float(plain)
    return CertificateCost(bound, items, checks, float(run.answers_per_item), watched)


def people_costs(report: Report, policy: Policy[Any], people: Sequence[int]) -> dict[int, float]:
    """Answers per item that labels of at least some people take in addition: simulated.

    The same items and answers are simulated for each number of people, so the differences vary
    little.

    >>> import crowdtree as ct
    >>> policy = ct.policies.PlanPolicy(ct.design(ct.example("table1")))
    >>> costs = people_costs(lambda share, what: None, policy, [1, 2, 3])
    >>> costs[1], 0 < costs[2] < costs[3] < 2
    (0.0, True)
    """
    report(0.1, "Simulating labels by one person and by more")
    with warnings.catch_warnings(action="ignore"):
        runs = {
            n: simulate(policy.problem, policy, PEOPLE_ITEMS, people_per_item=n)
            for n in {1, *people}
        }
        answers = {n: float(run.answers_per_item) for n, run in runs.items()}
    return {n: max(0.0, answers[n] - answers[1]) for n in people}


def forecast_checks(run: Any, bound: float) -> Forecast:
    """Simulate audits of the labels of a simulated campaign, whose truth is known."""
    from crowdtree.audit import plan_audit

    wrong = (run.label != run.truth).tolist()
    return plan_audit(run.posterior_error.tolist(), bound, truth=wrong)
