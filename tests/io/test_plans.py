"""Plans as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import crowdtree as ct
from crowdtree import CrowdtreeError, Problem
from crowdtree.core.fixed_plan import Plan
from crowdtree.core.tree import Certificate
from crowdtree.io import (
    load_plan,
    plan_from_dict,
    plan_to_dict,
    save_plan,
)
from tests.io.helpers import expected, put
from tests.strategies import problems


@given(st.data())
def test_plans_round_trip(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    problem = data.draw(problems(separable=True, nasty=True))
    tree = ct.design(problem)
    n = tree.n_nodes
    votes = data.draw(st.lists(st.integers(1, 9), min_size=n, max_size=n))
    vote = data.draw(st.sampled_from(["majority", "margin"]))
    pool = data.draw(st.sampled_from(["node", "question"]))
    if pool == "question":  # one team per question
        first = tree.question.tolist().index
        votes = [votes[first(question)] for question in tree.question.tolist()]
    plan = Plan(tree, votes, vote, "some method", pool)
    path = tmp_path_factory.mktemp("plan") / "plan.json"
    save_plan(plan, path)
    back = load_plan(path)
    assert back.tree.problem == problem
    assert back.tree.to_dict() == tree.to_dict()
    assert back.votes.tolist() == votes
    assert (back.vote, back.method, back.pool) == (plan.vote, plan.method, plan.pool)
    assert back.tree.method == "fm"


def test_tree_is_a_plan_of_one_vote_each(tmp_path: Path) -> None:
    tree = ct.design(ct.example("animals"))
    save_plan(tree, tmp_path / "tree.json")
    plan = load_plan(tmp_path / "tree.json")
    assert plan.votes.tolist() == [1] * tree.n_nodes
    assert load_plan(tmp_path / "tree.json").tree.to_dict() == tree.to_dict()
    assert "votes" not in tree.to_dict()


@pytest.mark.parametrize("gap", [0.0, 0.125, float("inf")])
def test_certificate_is_kept(tmp_path: Path, gap: float) -> None:
    import dataclasses

    proven = Certificate("additive", 1 / 3, 0.1, gap, "time limit", 12)
    tree = dataclasses.replace(ct.design(ct.example("table1")), certificate=proven)
    save_plan(tree, tmp_path / "tree.json")
    assert load_plan(tmp_path / "tree.json").tree.certificate == proven


def test_plan_for_another_problem(tmp_path: Path) -> None:
    problem = ct.example("table1")
    save_plan(ct.design(problem), tmp_path / "p.json")
    other = problem.replace(worker_error=0.25)
    assert load_plan(tmp_path / "p.json", other).tree.problem is other
    bare = put(tmp_path, json.dumps(ct.design(problem).to_dict()), "bare.json")
    assert load_plan(bare, problem).tree.to_dict() == ct.design(problem).to_dict()
    with pytest.raises(CrowdtreeError, match=r"bare\.json: contains no problem; pass problem="):
        load_plan(bare)
    with pytest.raises(CrowdtreeError, match="question 'T1' is not in the problem"):
        load_plan(bare, expected())


def test_groups_are_kept(tmp_path: Path) -> None:
    problem = Problem(["a", "b", "c"], None, ["q"], [[0, 0, 1]], 0.1)
    tree = ct.design(problem, allow_groups=True)
    save_plan(tree, tmp_path / "p.json")
    saved = json.loads((tmp_path / "p.json").read_text())
    assert saved["tree"]["no"] == {"label": "a", "group": ["a", "b"]}
    assert load_plan(tmp_path / "p.json").tree.leaf_classes == tree.leaf_classes


def test_very_deep_tree(tmp_path: Path) -> None:
    n = 1500
    outcome = np.eye(n - 1, n, dtype=np.int8)  # each question picks out one class
    problem = Problem(
        [f"c{i}" for i in range(n)], None, [f"q{i}" for i in range(n - 1)], outcome, 0.001
    )
    children = [[i + 1, -1] for i in range(n - 1)]
    children[-1][0] = -2
    tree = ct.Tree(problem, np.arange(n - 1), np.array(children))
    save_plan(Plan(tree, np.arange(1, n)), tmp_path / "deep.json")
    back = load_plan(tmp_path / "deep.json")
    assert back.tree.children.tolist() == tree.children.tolist()
    assert back.votes.tolist() == list(range(1, n))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": "problem"}, "expected a plan, got a problem"),
        ({"crowdtree": 2}, "was written by a newer crowdtree"),
        ({"vote": "loudest"}, "vote: .*'loudest'"),
        ({"colour": "red"}, "colour: no such field"),
        ({"tree": None}, "tree: is missing"),
        ({"tree": {}}, "tree: is missing"),
        ({"tree": {"question": "q1"}}, "has no 'no' branch"),
        ({"tree": {"question": "x", "no": {}, "yes": {}}}, "question 'x' is not in the problem"),
        ({"tree": {"question": "q2", "no": {}, "yes": {}}}, 'needs a "question" or a "label"'),
        ({"tree": {"question": "q2", "no": {"label": "a"}, "yes": {"label": "b"}}}, "labelled 'a'"),
        ({"votes": 0}, "'0' votes; expected a whole number of at least 1"),
        ({"votes": 1.5}, "'1.5' votes; expected a whole number of at least 1"),
        (
            {"nodes": [{"question": "q2", "no": 0, "yes": {}}]},
            r"nodes\[0\].no: expected the number",
        ),
        ({"problem": {"classes": []}}, "problem: questions: is missing"),
        ({"problem": None}, "contains no problem"),
    ],
)
def test_bad_plans(tmp_path: Path, change: dict[str, object], words: str) -> None:
    tree = ct.design(expected())
    save_plan(tree, tmp_path / "p.json")
    data = json.loads((tmp_path / "p.json").read_text())
    if "votes" in change:
        data["tree"] |= change
    else:
        data |= change
    path = put(tmp_path, json.dumps(data), "p.json")
    with pytest.raises(CrowdtreeError, match=words) as caught:
        load_plan(path)
    assert "\n" not in str(caught.value)
    assert "p.json" in str(caught.value)


def test_plans_are_json(tmp_path: Path) -> None:
    with pytest.raises(CrowdtreeError, match=r"expected the extension \.json for a plan"):
        save_plan(ct.design(ct.example("table1")), tmp_path / "p.csv")
    with pytest.raises(CrowdtreeError, match=r"expected the extension \.json for a plan"):
        load_plan(tmp_path / "p.csv")


@pytest.mark.parametrize("vote", ["majority", "margin"])
@pytest.mark.parametrize("pool", ["node", "question"])
def test_the_json_form_of_a_plan_keeps_all_that_a_policy_needs(vote: str, pool: str) -> None:
    tree = ct.design(ct.example("animals"), "optimal")
    plan = Plan(tree, [3] * tree.n_nodes, vote, "mine", pool)
    back = plan_from_dict(json.loads(json.dumps(plan_to_dict(plan))), "plan")
    assert back.tree.problem == tree.problem
    assert back.tree.method == tree.method
    assert back.tree.certificate == tree.certificate
    assert ct.PlanPolicy(back).to_dict() == ct.PlanPolicy(plan).to_dict()
