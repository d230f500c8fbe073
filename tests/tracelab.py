"""The policies whose traces are tested."""

from __future__ import annotations

import crowdtree as ct

TABLE1 = ct.example("table1")


PLAN = ct.staff(ct.design(TABLE1), workers=8)


POLICIES = {
    "adaptive": ct.AdaptivePolicy(TABLE1, 0.01),
    "tree": ct.PlanPolicy(ct.design(TABLE1)),
    "plan": ct.PlanPolicy(PLAN),
    "curtailed": ct.PlanPolicy(PLAN, "curtailed"),
    "margin": ct.PlanPolicy(PLAN, "margin"),
    "batch": ct.BatchPolicy(TABLE1, 1),
}
