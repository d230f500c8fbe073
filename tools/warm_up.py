"""Compile every kernel once, so that the test processes find it in the cache."""

import numpy as np

import crowdtree as ct
from crowdtree.designs.designers import grow, joint
from crowdtree.simulation import engine


def main() -> None:
    """Run every compiled path on problems that are as small as it takes."""
    rng = np.random.default_rng(0)
    large = ct.Problem(
        [f"c{i}" for i in range(24)],
        None,
        [f"q{i}" for i in range(24)],
        rng.integers(0, 2, (24, 24)).astype(np.int8),
        rng.uniform(0.05, 0.3, (24, 24)),
    )
    for problem in (ct.example("table1"), large):
        for objective in ("additive", "exact"):
            ct.design(problem, "optimal", objective=objective, time_limit=60)
    ct.frontier(ct.example("table1"), max_votes=3)
    engine.COMPILE_FROM = grow.COMPILED_FROM = joint.COMPILED_FROM = 0
    for method in ("fm", "fc", "gain", "gini"):
        for dash in ("inapplicable", "either"):
            ct.design(large.replace(dash=dash), method, allow_groups=True)
    plan = ct.staff(ct.design(ct.example("table1")), workers=8)
    for stopping in ("none", "curtailed", "margin"):
        ct.simulate(plan.tree.problem, ct.PlanPolicy(plan, stopping), items=10, rng=0)
    ct.plan_audit([0.01] * 280 + [0.2] * 20, 0.1)
    audit = ct.Audit([0.01] * 280 + [0.2] * 20, rng=0, planned=5)
    for _ in range(5):
        audit.record(audit.draw(), wrong=False)


if __name__ == "__main__":
    main()
