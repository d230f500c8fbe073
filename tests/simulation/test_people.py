"""Labels of several people: simulated as in a live campaign."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import crowdtree as ct
from crowdtree.campaign.events import Answered
from crowdtree.campaign.fold import begin, extend
from crowdtree.campaign.view import ItemRules, Revision, open_questions
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.rng import generator
from crowdtree.policies import AdaptivePolicy, BatchPolicy, PlanPolicy
from crowdtree.policies.walk import Round
from crowdtree.simulation import Crowd, simulate

PROBLEM = ct.example("table1").replace(worker_error=0.1)
PLAN = ct.staff(ct.design(PROBLEM), workers=6)
POLICIES = {
    "tree": PlanPolicy(ct.design(PROBLEM)),
    "curtailed": PlanPolicy(PLAN, "curtailed"),
    "margin": PlanPolicy(PLAN, "margin"),
    "batch": BatchPolicy(PROBLEM),
    "adaptive": AdaptivePolicy(PROBLEM, 0.2, 20),
}
ITEMS = 60


def played(policy: Any, people: int, seed: int) -> tuple[list[int], list[int]]:
    """Labels, and numbers of answers, of the fold: each answer is another person's."""
    block = Crowd().block(PROBLEM, int(generator(seed).integers(0, 2**63)), 0, ITEMS)
    revision, labels, answers = Revision(policy, ItemRules(people=people)), [], []
    for row in range(ITEMS):
        view = begin(revision)
        values = np.zeros((2, PROBLEM.n_questions), dtype=np.int64)
        while view.label is None:
            (question, *_) = open_questions(revision, view)
            assert isinstance(question, int)
            asked = (np.array([n]) for n in (row, question, values[:, question].sum()))
            value = int(block.answer(Round(*asked, values[:, question, None].copy)).value[0])
            values[value, question] += 1
            view = extend([revision], view, Answered(int(values.sum()), question, value))
        labels.append(view.label.label)
        answers.append(view.answers)
    return labels, answers


@pytest.mark.parametrize("people", [1, 2, 4, 7])
@pytest.mark.parametrize("name", POLICIES)
def test_simulated_labels_are_those_of_the_engine(name: str, people: int) -> None:
    policy = POLICIES[name]
    run = simulate(PROBLEM, policy, ITEMS, rng=people, people_per_item=people)
    assert (run.label_index.tolist(), run.answers.tolist()) == played(policy, people, seed=people)
    assert run.answers.min() >= people


def test_more_people_take_more_answers_while_the_table_is_revised() -> None:
    crowd = Crowd(problem=PROBLEM.replace(worker_error=0.35))
    run = simulate(PROBLEM, POLICIES["adaptive"], 150, crowd=crowd, adapt=True, people_per_item=5)
    assert run.adaptation is not None
    assert run.adaptation.revisions
    assert run.answers.min() >= 5


def test_checkpoints_of_other_numbers_of_people_are_not_used(tmp_path: Any) -> None:
    runs = [
        simulate(PROBLEM, POLICIES["tree"], ITEMS, checkpoint=tmp_path, people_per_item=people)
        for people in (1, 3, 1)
    ]
    assert runs[0] == runs[2] != runs[1]


def test_impossible_numbers_of_people_are_refused() -> None:
    few = AdaptivePolicy(PROBLEM, max_answers=2, strict=False)
    with pytest.raises(CrowdtreeError, match=r"3 people cannot answer .* at most 2"):
        simulate(PROBLEM, few, 10, people_per_item=3)
    with pytest.raises(CrowdtreeError, match="people_per_item: expected at least 1, got 0"):
        simulate(PROBLEM, few, 10, people_per_item=0)
    with pytest.raises(CrowdtreeError, match="policy: expected a policy, got a Tree"):
        simulate(PROBLEM, ct.design(PROBLEM), 10, people_per_item=2)  # type: ignore[arg-type]
