"""How a label comes about, answer by answer."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import crowdtree as ct
from crowdtree.campaign.events import Answered
from crowdtree.campaign.fold import fold
from crowdtree.campaign.trace import explain, from_view
from crowdtree.campaign.view import Revision
from tests.tracelab import POLICIES, TABLE1


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("true_class", [None, "c1", "c5"])
def test_every_policy_is_followed_to_its_label(name, true_class):
    policy = POLICIES[name]
    trace = explain(policy, true_class=true_class, rng=4)
    assert trace.label is not None
    assert trace.ignored == ()
    assert trace.open_questions == ()
    state = policy.start()
    for step in trace.steps:  # the policy's own steps give the same beliefs and the same end
        answer = ct.policies.Answer(TABLE1.question_index(step.question), int(step.answer == "yes"))
        state = policy.update(state, answer)
        np.testing.assert_allclose(step.posterior, policy.posterior(state), rtol=1e-12)
    assert policy.ask(state) == trace.decision
    assert trace.label == TABLE1.classes[trace.decision.label]
    if true_class is not None:
        assert trace.true_class == true_class


def test_seed_decides():
    one, same = (explain(POLICIES["adaptive"], rng=7).to_dict() for _ in range(2))
    assert one == same
    assert any(explain(POLICIES["adaptive"], rng=s).to_dict() != one for s in range(5))


def test_lines_show_each_step_and_the_verdict():
    trace = explain(POLICIES["adaptive"], [(0, 1), (0, 1)])
    lines = list(trace.lines())
    assert lines[0] == "Before any answer"
    assert [line for line in lines if re.match(r"\d\. ", line)] == ["1. T1  → yes", "2. T1  → yes"]
    assert lines[-1].startswith("Label: c4 after 2 answers (sure enough); chance of being wrong 0.")
    full = next(line for line in reversed(lines[:-1]) if line.strip().startswith("c4"))
    assert full.count("█") == 24
    prior = [line for line in lines[1:6] if "█" in line]
    assert sum(line.count("█") for line in prior) == pytest.approx(24, abs=3)


def test_an_open_item_says_what_comes_next():
    trace = explain(POLICIES["adaptive"], [(0, 0)])
    assert trace.label is None
    assert trace.to_dict()["label"] is None
    asked = POLICIES["adaptive"].ask(
        POLICIES["adaptive"].update(POLICIES["adaptive"].start(), ct.policies.Answer(0, 0))
    )
    assert trace.open_questions == tuple(TABLE1.questions[q] for q in asked.questions)
    assert trace.verdict() == f"Not decided yet. Next question: T{asked.questions[0] + 1}"


def test_answers_that_do_not_count_are_listed_separately():
    tree = POLICIES["tree"]
    other = (int(tree.plan.tree.question[0]) + 1) % TABLE1.n_questions
    trace = explain(tree, [(other, 1), (0, 1), (0, 0)])
    assert [(s.question, s.answer) for s in trace.steps] == [("T1", "yes")]
    assert trace.ignored == ((f"T{other + 1}", "yes", "surplus"), ("T1", "no", "late"))
    notes = list(trace.notes())
    assert notes == [
        f"Not counted: T{other + 1}  → yes (the policy did not ask for it)",
        "Not counted: T1  → no (the item already had its label)",
    ]
    assert set(notes) < set(trace.lines())
    assert trace.to_dict()["ignored"][1] == {"question": "T1", "answer": "no", "reason": "late"}


def test_an_item_of_a_campaign_is_traced_with_the_workers_own_skill():
    policy = POLICIES["adaptive"]
    revision = Revision(policy)
    # the second one comes too late: the first was enough
    view = fold([revision], [Answered("ann", 0, 1, skill=1.5), Answered("ann", 0, 0)])
    trace = from_view(revision, view)
    assert len(trace.steps) == 1
    assert trace.ignored == (("T1", "no", "late"),)
    plain = explain(policy, [(0, 1)])
    assert trace.steps[0].posterior.max() > plain.steps[0].posterior.max()


def test_json_names_everything():
    told = json.loads(json.dumps(explain(POLICIES["margin"], true_class="c2", rng=1).to_dict()))
    assert told["true_class"] == "c2"
    assert told["label"] in TABLE1.classes
    assert 0 <= told["posterior_error"] < 1
    assert told["reason"] == "leaf"
    for step in told["steps"]:
        assert step["answer"] in ("yes", "no")
        assert step["question"] in TABLE1.questions
        assert sum(step["posterior"].values()) == pytest.approx(1)
        assert list(step["posterior"]) == list(TABLE1.classes)


def test_answers_by_name_number_and_mapping_and_problems_in_place_of_policies():
    policy = POLICIES["adaptive"]
    by_number = explain(policy, [(0, 1), (1, 0)]).to_dict()
    for spelling in ([("T1", "yes"), ("T2", "no")], {"T1": "Y", "T2": False}):
        assert explain(policy, spelling).to_dict() == by_number
    assert explain(TABLE1, rng=2).to_dict() == explain(ct.AdaptivePolicy(TABLE1), rng=2).to_dict()
    tree = ct.design(TABLE1)
    assert explain(tree, true_class=3).true_class == "c4"
    assert explain(tree, [("T1", 1)]).label == "c4"
