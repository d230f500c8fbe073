"""The plans that are offered to an owner."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from crowdtree import files
from crowdtree.advise import make_offer
from crowdtree.errors import CrowdtreeError
from crowdtree.policy import AdaptivePolicy, PlanPolicy
from crowdtree.web.worker_process import silent


@pytest.fixture(scope="module")
def animals():
    return make_offer(silent, files.example("animals"))


def test_every_choice_reaches_its_target(animals):
    for choice in animals.choices:
        assert choice.error <= choice.target
    for kind in ("tree", "adaptive"):
        mine = [c for c in animals.choices if c.kind == kind]
        assert len(mine) > 3
        assert [c.target for c in mine] == sorted(c.target for c in mine)
        assert [c.answers for c in mine] == sorted((c.answers for c in mine), reverse=True)


def test_every_choice_has_one_mark_on_the_chart(animals):
    keys = re.findall(r'data-choice="([^"]+)"', animals.chart)
    assert keys == [choice.key for choice in animals.choices]
    assert " style=" not in animals.chart
    assert "<style" not in animals.chart


def test_a_choice_is_found_again(animals):
    for choice in animals.choices:
        assert animals.nearest(choice.policy, choice.promise) is choice
        assert animals.get(choice.key) is choice
    with pytest.raises(CrowdtreeError, match="choose one"):
        animals.get("tree-7")
    assert isinstance(animals.get("adaptive-0.01").policy, AdaptivePolicy)
    assert isinstance(animals.get("tree-0.01").policy, PlanPolicy)


def test_plans_for_a_problem_with_a_loss_are_offered_by_expected_loss():
    problem = files.example("mushrooms")
    offer = make_offer(silent, problem)
    trees = [choice for choice in offer.choices if choice.kind == "tree"]
    assert len(trees) > 3
    for choice in trees:
        assert choice.risk <= choice.target
        assert choice.promise.risk == choice.risk
    assert {c.policy.target_loss for c in offer.choices if c.kind == "adaptive"} <= {
        c.target for c in offer.choices
    }
    assert offer.first() in trees
    assert "expected loss per item" in offer.chart
    assert "Fano" not in offer.chart
