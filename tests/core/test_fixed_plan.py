"""Plans: votes per node, teams, and invalid input."""

from __future__ import annotations

import numpy as np
import pytest

import crowdtree as ct
from crowdtree import CrowdtreeError, Plan, Problem, Tree
from crowdtree.core import voting


def tree(worker_error: object = 0.2) -> Tree:
    """Four classes; question r is asked at two nodes."""
    problem = Problem(
        ["a", "b", "c", "d"],
        [0.4, 0.3, 0.2, 0.1],
        ["q", "r"],
        [[0, 0, 1, 1], [0, 1, 0, 1]],
        worker_error,
    )
    return Tree(problem, [0, 1, 1], [[1, 2], [-1, -1], [-1, -1]])


def test_errors_and_answers() -> None:
    plan = Plan(tree([0.2, 0.3]), [3, 1, 5])
    fused = voting.majority_error([0.2, 0.3, 0.3], [3, 1, 5])
    assert plan.error_at([0, 1, 2], 0).tolist() == fused.tolist()
    np.testing.assert_allclose(plan.node_error, fused * [1.0, 0.7, 0.3])
    assert plan.answers_at([0, 2], [[0], [1]]).tolist() == [[3, 5], [3, 5]]
    assert plan.planned_answers == pytest.approx(3 + 0.7 + 0.3 * 5)
    assert plan.levels[1].g == pytest.approx(fused[0])
    assert plan.levels[2].g == pytest.approx(0.7 * fused[1] + 0.3 * fused[2])
    assert plan.workers == 9
    assert repr(plan) == "Plan(given: 3 nodes, majority of 1 to 5)"
    assert repr(Plan(plan.tree, [2, 2, 2])) == "Plan(given: 3 nodes, majority of 2)"


def test_two_votes_are_one() -> None:
    assert Plan(tree(), [2, 2, 2]).error_at(0, 0) == 0.2


def test_margin() -> None:
    plan = Plan(tree(), [2, 1, 3], vote="margin")
    assert plan.error_at(2, 0) == pytest.approx(float(voting.margin_error(0.2, 3)))
    votes = voting.margin_votes(0.2, [2, 1, 3])
    assert plan.planned_answers == pytest.approx(float(votes @ [1.0, 0.7, 0.3]))


def test_where_both_answers_are_right() -> None:
    problem = Problem(["a", "b", "c"], None, ["q"], [[0, 1, "-"]], 0.1, dash="either")
    one = Tree(problem, [0], [[-1, -1]])
    assert Plan(one, [3]).error_at(0, 2) == 0.5
    assert Plan(one, [3]).answers_at(0, 2) == 3
    assert Plan(one, [3], vote="margin").answers_at(0, 2) == 9  # a fair coin
    assert Plan(one, [3]).node_error.tolist() == pytest.approx([2 / 3 * 0.028])


def test_pooled_teams_count_once() -> None:
    assert Plan(tree(), [3, 5, 5], pool="question").workers == 8
    with pytest.raises(CrowdtreeError, match=r"^votes: the nodes of question 'r' differ in votes"):
        Plan(tree(), [3, 5, 3], pool="question")


def test_votes_are_copied_and_read_only() -> None:
    votes = np.array([1, 1, 1])
    plan = Plan(tree(), votes)
    votes[0] = 7
    assert plan.votes.tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match="read-only"):
        plan.votes[0] = 3
    assert Plan(tree(), [3.0, 1.0, 1.0]).votes.tolist() == [3, 1, 1]


@pytest.mark.parametrize(
    ("votes", "options", "message"),
    [
        ([1, 1], {}, r"^votes: expected one per node \(3\), got shape \(2,\)"),
        ([1, 0, 1], {}, "^votes: every node needs at least 1, got 0"),
        ([1, 1.5, 1], {}, "^votes: expected whole numbers"),
        ([1, float("nan"), 1], {}, "^votes: expected whole numbers"),
        (["x", "y", "z"], {}, "^votes: expected numbers"),
        ([1, 1, 1], {"vote": "show of hands"}, '^vote: expected "majority" or "margin"'),
        ([1, 1, 1], {"pool": "all"}, '^pool: expected "node" or "question"'),
    ],
)
def test_refusals(votes: list[float], options: dict[str, str], message: str) -> None:
    with pytest.raises(CrowdtreeError, match=message):
        Plan(tree(), votes, **options)


def test_repr_of_a_plan() -> None:
    plan = ct.staff(tree(), workers=4, pool="question")
    assert (plan.method, plan.pool, plan.vote) == ("marginal", "question", "majority")
    assert plan.votes[1] == plan.votes[2]
