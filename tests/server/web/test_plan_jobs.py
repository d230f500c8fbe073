"""From an owner's input to a policy, and back."""

from __future__ import annotations

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

import numpy as np

import crowdtree as ct
from crowdtree.core.calibration import Calibration
from crowdtree.core.errors import CrowdtreeError
from crowdtree.policies import AdaptivePolicy, BatchPolicy, PlanPolicy, Policy, SubtypePolicy
from crowdtree.server.store.owner import campaigns
from crowdtree.server.web import worker_process as module
from crowdtree.server.web.plans import PolicyRequest, policy_of, read_menu, to_request
from tests.short import settings_of
from tests.weblab import Lab


def test_errors_in_an_uploaded_table_are_reported():
    with pytest.raises(CrowdtreeError, match=r"upload one of \.csv"):
        read_menu(module.silent, b"x", "table.exe", {})
    with pytest.raises(CrowdtreeError, match="no question splits"):
        read_menu(module.silent, b"question,error,a,b\nq,0.1,1,1\n", "t.csv", {})


CALIBRATED = Calibration(0.5, 0.1, 30, 0.02, (0.2, 0.01))


def policies() -> list[Policy]:
    problem = ct.example("animals")
    tree = ct.design(problem)
    skewed = problem.replace(dependence=0.1)
    return [
        PlanPolicy(ct.staff(tree, workers=20), "curtailed"),
        PlanPolicy(ct.staff(tree, workers=20), "margin", CALIBRATED),
        PlanPolicy(tree),
        AdaptivePolicy(problem, 0.02, 77, strict=False),
        AdaptivePolicy(skewed, 0.1, 40, criterion="ec2", price=2.0, strict=False),
        AdaptivePolicy(
            problem, 0.05, repeats=3, width=2, endgame=4, strict=False, calibration=CALIBRATED
        ),
        BatchPolicy(problem),
        SubtypePolicy(
            problem,
            label=np.arange(problem.n_classes),
            share=problem.prior,
            table=np.full(problem.outcome.shape, 0.3),
        ),
    ]


@pytest.mark.parametrize("policy", policies(), ids=lambda policy: repr(policy)[:40])
def test_what_the_definition_says_can_be_posted(app: Lab, policy: Policy) -> None:
    settings = settings_of(gold_rate=0.2, instructions="Look closely.")
    number = app.store.write(
        lambda c: campaigns.create(c, "birds", policy, settings, app.clock.now)
    )
    read = app.get(f"/api/campaigns/{number}/definition").json()
    made = app.post("/api/campaigns", read)
    assert made.status_code == 201, made.text
    assert app.get(f"/api/campaigns/{made.json()['id']}/definition").json() == read
    again = policy_of(PolicyRequest(**read["policy"]))
    assert again.to_dict() == policy.to_dict()
    assert again.problem == policy.problem


def test_a_definition_is_in_the_form_of_the_files() -> None:
    plan = ct.staff(ct.design(ct.example("table1")), workers=8)
    assert to_request(PlanPolicy(plan, "margin")) == {
        "plan": ct.io.plan_to_dict(plan),
        "kind": "plan",
        "stopping": "margin",
    }
    wish = to_request(AdaptivePolicy(ct.example("table1"), 0.05))
    assert wish["problem"] == ct.io.problem_to_dict(ct.example("table1"))


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        ("adaptive", {"max_answers": 10**12}, "put max_answers next to options"),
        ("adaptive", {"colour": "red"}, "cannot be read"),
        ("adaptive", {"table": [[1, 2], [3]]}, "table"),
        ("adaptive", {"price": "much"}, ""),
        ("adaptive", {"calibration": {"reached": 7}}, ""),
        ("adaptive", {"calibration": "none"}, ""),
        ("adaptive", {"width": {}}, ""),
        ("plan", {"tree": {}}, ""),
        ("plan", {"colour": 1}, "'colour' is not an option of a plan policy"),
        ("batch", {"votes": "x"}, ""),
        ("batch", {"decoder": []}, ""),
        ("subtypes", {}, "cannot be read"),
        ("subtypes", {"label": [0, 1], "share": [1], "table": "x"}, ""),
    ],
)
def test_bad_options_are_refused(app: Lab, kind: str, options: object, words: str) -> None:
    policy = {"example": "table1", "kind": kind, "options": options}
    made = app.post("/api/campaigns", {"policy": policy})
    assert made.status_code == 422, made.text
    assert words in made.json()["message"]


def test_infinite_options_are_refused(app: Lab) -> None:
    body = '{"policy": {"example": "table1", "kind": "adaptive", "options": {"price": NaN}}}'
    headers = {**app.owner, "content-type": "application/json"}
    made = app.client.post("/api/campaigns", content=body, headers=headers)
    assert made.status_code == 422
    assert "finite" in made.json()["message"]
