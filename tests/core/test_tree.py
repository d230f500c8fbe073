"""The tree: arrays in, everything else out; round trips and refusals."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import crowdtree as ct
from crowdtree import CrowdtreeError, Problem, Tree
from tests.strategies import problems


def animals(**changes: object) -> Problem:
    made = Problem(
        ["robin", "eagle", "trout", "whale"],
        [0.4, 0.1, 0.3, 0.2],
        ["flies", "hunts", "fish"],
        [[1, 1, 0, 0], [0, 1, "-", 0], [0, 0, 1, 0]],
        [0.1, 0.2, 0.05],
        texts=["Does it fly?", "", "Is it a fish?"],
    )
    return made.replace(**changes)


def leaf(name: str) -> dict[str, str]:
    return {"label": name}


NESTED = {
    "question": "flies",
    "no": {"question": "fish", "no": leaf("whale"), "yes": leaf("trout")},
    "yes": {"question": "hunts", "no": leaf("robin"), "yes": leaf("eagle")},
}


@given(problems(), st.integers(0, 99))
def test_round_trip(problem: Problem, seed: int) -> None:
    try:
        tree = ct.design(problem, "random", rng=seed, allow_groups=True)
    except CrowdtreeError:
        return
    again = Tree.from_dict(problem, json.loads(json.dumps(tree.to_dict())), "again")
    assert np.array_equal(again.question, tree.question)
    assert np.array_equal(again.children, tree.children)
    assert again.method == "again"
    assert again.to_dict() == tree.to_dict()
    assert again.to_text() == tree.to_text()


def test_nested_form_and_nodes() -> None:
    tree = Tree.from_dict(animals(), NESTED)
    assert tree.to_dict() == NESTED
    assert tree.method == "given"
    assert (tree.n_nodes, tree.n_leaves, tree.depth) == (3, 4, 2)
    assert tree.level.tolist() == [0, 1, 1]
    root, no, yes = tree.nodes
    assert (root.index, root.question, root.text, root.level) == (0, "flies", "Does it fly?", 0)
    assert root.branches == {"no": 1, "yes": 2}
    assert (no.branches, yes.branches) == ({"no": -1, "yes": -2}, {"no": -3, "yes": -4})
    assert yes.text == "hunts"  # no text: the name
    assert no.classes == ("trout", "whale")
    np.testing.assert_allclose(tree.share, [1.0, 0.5, 0.5])
    assert tree.leaf_label.tolist() == [3, 2, 0, 1]
    assert repr(tree) == "Tree(given: 3 questions asked, depth 2)"


def test_text() -> None:
    group = animals(outcome=[[1, 1, 0, 0], [0, "-", "-", 0], [0, 0, 1, 0]])
    assert ct.design(group, "gain", allow_groups=True).to_text().splitlines() == [
        "flies",
        "├─ no  → fish",
        "│        ├─ no  → whale",
        "│        └─ yes → trout",
        "└─ yes → robin (or eagle)",
    ]


def test_groups_are_nested_with_their_likeliest_class_first_named() -> None:
    group = animals(outcome=[[1, 1, 0, 0], [0, "-", "-", 0], [0, 0, 1, 0]], prior=[1, 4, 3, 2],
                    normalise=True)  # fmt: skip
    tree = ct.design(group, "gain", allow_groups=True)
    assert tree.to_dict()["yes"] == {"label": "eagle", "group": ["robin", "eagle"]}
    even = ct.design(group.replace(prior=None), "gain", allow_groups=True)
    assert even.to_dict()["yes"]["label"] == "robin"  # of equals the first


def test_a_class_with_dash_follows_both_branches() -> None:
    problem = Problem(
        ["a", "b", "c"],
        [0.5, 0.25, 0.25],
        ["q", "r", "s"],
        [[0, 1, "-"], [0, 1, 1], [1, 1, 0]],
        [0.1, 0.2, 0.3],
        dash="either",
    )
    tree = ct.design(problem, "random", order=[0, 1, 2])
    assert tree.to_dict() == {
        "question": "q",
        "no": {"question": "r", "no": leaf("a"), "yes": leaf("c")},
        "yes": {"question": "s", "no": leaf("c"), "yes": leaf("b")},
    }
    np.testing.assert_allclose(tree.share, [1.0, 0.625, 0.375])
    assert tree.levels[1].partition == (("a", "c"), ("b", "c"))
    assert tree.levels[1].g == pytest.approx(0.1 * 0.75)  # c errs not where both answers are right
    value = ct.evaluate(tree)
    np.testing.assert_allclose(value.correct, [0.9 * 0.8, 0.9 * 0.7, (0.8 + 0.7) / 2])


def test_levels_hold_what_is_done() -> None:
    tree = ct.design(ct.example("table1"))
    names = [level.partition for level in tree.levels]
    assert names[1] == (("c1", "c2", "c3", "c5"), ("c4",))
    assert names[2] == (("c1",), ("c2", "c3", "c5"), ("c4",))
    assert names[-1] == tuple((name,) for name in tree.problem.classes)
    first = tree.levels[0]
    assert (first.depth, first.g, first.b) == (0, None, None)
    assert (first.fm, first.fc, first.fc_printed) == (None, None, None)


def test_arrays_are_read_only_and_copied() -> None:
    question, children = np.array([0]), np.array([[-1, -5]])
    tree = Tree(animals(), question, children)
    question[0] = 2
    assert tree.question.tolist() == [0]
    assert tree.children.tolist() == [[-1, -2]]  # leaves are numbered anew
    with pytest.raises(ValueError, match="read-only"):
        tree.question[0] = 1


@pytest.mark.parametrize(
    ("question", "children"),
    [
        ([0, 1], [[1, -1]]),
        ([0], [[1, -1]]),
        ([0, 1], [[-1, -1], [-1, -1]]),
        ([0, 1, 2], [[2, 1], [-1, -1], [-1, -1]]),
        ([0, 1], [[0, 1], [-1, -1]]),
        ([0, 1], [[1, 1], [-1, -1]]),
    ],
)
def test_arrays_that_are_not_a_tree(question: list[int], children: list[list[int]]) -> None:
    with pytest.raises(CrowdtreeError, match="numbered level by level, left to right"):
        Tree(animals(), question, children)


def test_more_refusals() -> None:
    with pytest.raises(CrowdtreeError, match=r"^tree: expected at least one question, got none"):
        Tree(animals(), [], [])
    for number in (3, -1):
        with pytest.raises(CrowdtreeError, match=r"^tree: questions are numbered 0\.\.2"):
            Tree(animals(), [number], [[-1, -1]])
    with pytest.raises(CrowdtreeError, match=r"^tree: no class reaches a leaf of question 'fish'"):
        _ = Tree(animals(), [0, 2], [[-1, 1], [-1, -1]]).leaf_label
    with pytest.raises(CrowdtreeError, match=r"'hunts' is asked where class 'trout' .*either"):
        _ = Tree(animals(), [1], [[-1, -1]]).steps


@pytest.mark.parametrize(
    ("nested", "message"),
    [
        (None, "tree: expected a nested table of questions, got None"),
        ({}, 'tree: every entry needs a "question" or a "label"'),
        (leaf("robin"), "tree: expected at least one question, got none"),
        ({"question": "size"}, "question 'size' is not in the problem, which has 'flies', 'hunts'"),
        ({"question": "flies", "no": leaf("trout")}, "tree: question 'flies' has no 'yes' branch"),
        ({"question": "flies", "no": 3, "yes": 4}, "tree: question 'flies' has no 'no' branch"),
        (
            {"question": "flies", "no": leaf("robin"), "yes": leaf("eagle")},
            "tree: a leaf is labelled 'robin', but the table leads trout, whale there",
        ),
        (
            NESTED | {"no": {"question": "flies", "no": leaf("whale"), "yes": leaf("trout")}},
            "tree: a leaf is labelled 'trout', but no class reaches it",
        ),
    ],
)
def test_nested_forms_that_are_not_a_tree(nested: object, message: str) -> None:
    with pytest.raises(CrowdtreeError) as caught:
        Tree.from_dict(animals(), nested)  # type: ignore[arg-type]
    assert str(caught.value).startswith(message)


def test_deep_trees() -> None:
    """A chain of 1,500 questions: nothing recurses (Python stops at 1,000)."""
    n = 1_501
    outcome = np.triu(np.ones((n - 1, n), dtype=np.int8), 1)
    problem = Problem(
        [f"c{i}" for i in range(n)], None, [f"q{i}" for i in range(n - 1)], outcome, 0.001
    )
    children = [[-1, place + 1] for place in range(n - 2)] + [[-1, -1]]
    tree = Tree(problem, np.arange(n - 1), children)
    assert tree.depth == n - 1
    assert Tree.from_dict(problem, tree.to_dict()).depth == n - 1
    assert tree.to_text().count("\n") == 2 * (n - 1)
    expected = 1 - np.mean(0.999 ** np.minimum(np.arange(1, n + 1), n - 1))
    assert ct.evaluate(tree).misclassification == pytest.approx(expected)


def test_a_question_without_branches_is_refused_by_the_names_of_its_answers():
    names = ["red", "brown", "white"]
    problem = ct.Problem(list("abc"), None, ["cap"], [names], 0.1, answers=[names])
    for branches, got in (({}, "none"), ({"brown": {"label": "a"}}, "'brown'")):
        with pytest.raises(ct.CrowdtreeError, match=f"two or more of these, got {got}$"):
            ct.Tree.from_dict(problem, {"question": "cap", "branches": branches})
