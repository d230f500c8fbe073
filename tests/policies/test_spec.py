"""One way from a problem or a plan to a policy."""

from __future__ import annotations

import pytest

import crowdtree as ct
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.fixed_plan import as_plan
from crowdtree.policies import AdaptivePolicy, BatchPolicy, PlanPolicy
from crowdtree.policies.spec import PolicySpec, make_policy, spec_of

PROBLEM = ct.example("table1")
PLAN = ct.staff(ct.design(PROBLEM), workers=8)


def plan_of(source, **spec):
    policy = make_policy(source, PolicySpec(**spec))
    assert isinstance(policy, PlanPolicy)
    return policy.plan


def test_a_problem_is_designed_and_staffed():
    tree = ct.design(PROBLEM)
    same = [
        (plan_of(PROBLEM), as_plan(tree)),
        (plan_of(PROBLEM, workers=8), PLAN),
        (plan_of(PROBLEM, answers=6.0), ct.staff(tree, answers=6.0)),
        (plan_of(PROBLEM, workers_per_node=2), ct.staff(tree, workers=2 * tree.n_nodes)),
        (plan_of(PROBLEM, workers_per_node=2, workers=8), PLAN),
        (plan_of(PROBLEM, design="gain"), as_plan(ct.design(PROBLEM, "gain"))),
    ]
    for made, expected in same:
        assert made.votes.tolist() == expected.votes.tolist()
        assert made.tree.to_dict() == expected.tree.to_dict()


def test_a_plan_stays_as_it_is_or_gives_its_problem():
    assert plan_of(PLAN, workers=100, stopping="none") is PLAN
    adaptive = make_policy(PLAN, PolicySpec("adaptive", target_error=0.02, max_answers=30))
    assert isinstance(adaptive, AdaptivePolicy)
    assert adaptive.problem is PROBLEM
    assert (adaptive.target_error, adaptive.max_answers, adaptive.strict) == (0.02, 30, False)
    assert isinstance(make_policy(PLAN, PolicySpec("batch")), BatchPolicy)


def test_options_take_precedence_and_are_checked():
    strict = make_policy(PROBLEM, PolicySpec("adaptive", options={"strict": True, "width": 2}))
    assert (strict.to_dict()["strict"], strict.to_dict()["width"]) == (True, 2)
    votes = make_policy(PROBLEM, PolicySpec("batch", options={"votes": 3}))
    assert votes.to_dict()["votes"] == 3
    with pytest.raises(CrowdtreeError, match="'tree' is not an option of a plan policy"):
        make_policy(PROBLEM, PolicySpec(options={"tree": {}}))
    with pytest.raises(CrowdtreeError, match="'subtypes' cannot be read"):
        make_policy(PROBLEM, PolicySpec("subtypes"))


@pytest.mark.parametrize(
    "policy",
    [
        PlanPolicy(PLAN, "margin"),
        AdaptivePolicy(PROBLEM, 0.03, criterion="gbs", repeats=4),
        BatchPolicy(PROBLEM, 5),
    ],
    ids=lambda policy: type(policy).__name__,
)
def test_a_policy_is_made_again_from_its_spec(policy):
    again = make_policy(*spec_of(policy))
    assert again.to_dict() == policy.to_dict()
    assert again.problem == policy.problem
