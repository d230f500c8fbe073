"""Evaluation against the enumeration of all patterns of verdicts and votes."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import crowdtree as ct
from crowdtree import CrowdtreeError, Plan, Problem, Tree, evaluate
from crowdtree.core import evaluation
from tests.contracts.oracle import all_trees, binomial_majority, worth
from tests.strategies import problems

small = problems(classes=(2, 5), questions=(1, 5))
MOST_NODES = 9


@st.composite
def plans(draw: st.DrawFn, kind: str = "majority") -> Plan:
    """Plans of small trees (groups and both meanings of ``-`` included), with a few votes each."""
    problem = draw(small)
    try:
        tree = ct.design(problem, "random", rng=draw(st.integers(0, 99)), allow_groups=True)
    except CrowdtreeError:
        assume(False)
    assume(tree.n_nodes <= MOST_NODES)
    most = 4 if kind == "majority" else 3
    votes = st.lists(st.integers(1, most), min_size=tree.n_nodes, max_size=tree.n_nodes)
    return Plan(tree, draw(votes), vote=kind)


def check_against_enumeration(plan: Plan) -> None:
    value, truth = evaluate(plan), worth(plan)
    np.testing.assert_allclose(value.confusion, truth.confusion, atol=1e-12)
    np.testing.assert_allclose(value.confusion.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_allclose(value.visits, truth.visits, atol=1e-12)
    assert math.isclose(value.expected_questions, truth.questions, rel_tol=1e-12)
    assert math.isclose(value.expected_answers, truth.answers, rel_tol=1e-11)
    np.testing.assert_allclose(value.correct, truth.confusion.diagonal(), atol=1e-12)
    wrong = 1 - float(plan.tree.problem.prior @ truth.confusion.diagonal())
    assert abs(value.misclassification - wrong) < 1e-12


@given(plans())
@settings(max_examples=150)
def test_majority_plans_are_what_enumeration_finds(plan: Plan) -> None:
    check_against_enumeration(plan)


@given(plans("margin"))
@settings(max_examples=60)
def test_margin_plans_are_what_enumeration_finds(plan: Plan) -> None:
    check_against_enumeration(plan)


@given(plans(), st.data())
@settings(max_examples=80)
def test_recall_and_precision_are_what_enumeration_finds(plan: Plan, data: st.DataObject) -> None:
    """Bayes' rule over every class and leaf, with any set of leaves left undecided."""
    every = plan.tree.n_leaves
    left = data.draw(st.sets(st.integers(0, every - 1), max_size=every - 1))
    plan = Plan(plan.tree, plan.votes, undecided=tuple(left))
    value, truth, prior = evaluate(plan), worth(plan), plan.tree.problem.prior
    n = len(prior)
    for c, row in enumerate(value.classes):
        leaves = [leaf for leaf in range(every) if truth.label[leaf] == c and leaf not in left]
        given_label = [sum(prior[i] * truth.arrived[i, leaf] for leaf in leaves) for i in range(n)]
        assert math.isclose(row.labelled, sum(given_label), abs_tol=1e-12)
        assert math.isclose(row.recall, truth.arrived[c, leaves].sum(), abs_tol=1e-12)
        undecided = sum(truth.arrived[c, leaf] for leaf in left)
        assert math.isclose(row.undecided, undecided, abs_tol=1e-12)
        if sum(given_label) > 0:
            assert math.isclose(row.precision, given_label[c] / sum(given_label), abs_tol=1e-9)
            others = [*given_label[:c], 0.0, *given_label[c + 1 :]]
            if row.confused_with is not None:
                worst = plan.tree.problem.classes.index(row.confused_with)
                assert math.isclose(others[worst], max(others), rel_tol=1e-9)
        else:
            assert math.isnan(row.precision)
            assert row.to_dict()["precision"] is None
    for leaf in range(every):
        there = prior * truth.arrived[:, leaf]
        if there.sum() > 0:
            right = there[truth.label[leaf]] / there.sum()
            assert math.isclose(value.leaf_precision[leaf], right, abs_tol=1e-9)
    np.testing.assert_array_equal(value.recall, [row.recall for row in value.classes])
    np.testing.assert_array_equal(value.precision, [row.precision for row in value.classes])


def test_precision_weighs_rare_classes() -> None:
    """Most of what is called rare is the common class, although nearly all rare items are found."""
    problem = Problem(["common", "rare"], [0.99, 0.01], ["q"], [[0, 1]], 0.05)
    rare = evaluate(ct.design(problem)).classes[1]
    assert math.isclose(rare.recall, 0.95)
    assert math.isclose(rare.precision, 0.0095 / (0.0095 + 0.0495))
    assert rare.confused_with == "common"


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_frames_hold_the_classes_and_the_confusions(library: str) -> None:
    problem = Problem(["class", "b", "c"], None, ["q", "r"], [[0, 0, 1], [0, 1, 1]], 0.1)
    tree = ct.design(problem)
    value = evaluate(Plan(tree, [1, 1], undecided=(2,)))
    per_class, matrix = (value.to_frame(part, library=library) for part in ("classes", "confusion"))
    found = [math.nan if x is None else x for x in per_class["precision"]]
    assert found == pytest.approx(value.precision, nan_ok=True)
    assert list(per_class["class"]) == list(problem.classes)
    assert list(matrix.columns) == ["class_", "class", "b", "c", "(undecided)"]
    cells = np.array([list(matrix[name]) for name in list(matrix.columns)[1:]])
    np.testing.assert_allclose(cells.sum(axis=0), 1)
    with pytest.raises(CrowdtreeError, match='expected "polars" or "pandas", got the text'):
        value.to_frame(library="arrow")


def test_the_walk_in_blocks_is_the_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = ct.staff(ct.design(ct.example("table1")), workers=4)
    whole = evaluate(plan)
    expected = whole.confusion, whole.visits, whole.answers_by_node  # now, in one piece
    assert [len(block) for block in whole._blocks()] == [5]
    for cells, blocks in ((15, [3, 2]), (0, [1] * 5)):
        monkeypatch.setattr(evaluation, "_BLOCK_CELLS", cells)
        pieces = evaluate(plan)
        assert [len(block) for block in pieces._blocks()] == blocks
        found = pieces.confusion, pieces.visits, pieces.answers_by_node
        for mine, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(mine, theirs, atol=1e-15)


def test_wide_trees_walk_in_small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks are cut by the leaves, here four: no array of a walk has more cells than allowed."""
    problem = Problem(list("abcd"), None, ["q", "r"], [[0, 0, 1, 1], [0, 1, 0, 1]], 0.1)
    tree = Tree(problem, [0, 1, 1], [[1, 2], [-1, -1], [-1, -1]])
    monkeypatch.setattr(evaluation, "_BLOCK_CELLS", 12)
    value = evaluate(tree)
    blocks = list(value._blocks())
    assert [len(block) for block in blocks] == [3, 1]
    assert max(part.size for block in blocks for part in value.plan.flow(block)) == 12


@given(plans())
def test_the_additive_error_is_never_less(plan: Plan) -> None:
    value = evaluate(plan)
    assert value.misclassification <= value.additive * (1 + 1e-12)
    g = sum(level.g for level in plan.levels if level.g is not None)
    assert math.isclose(value.additive, g + value.group_error, rel_tol=1e-12, abs_tol=1e-15)
    b = math.prod(level.b for level in plan.levels if level.b is not None)
    assert math.isclose(value.multiplicative, b, rel_tol=1e-12, abs_tol=1e-300)


@given(plans())
def test_planned_answers_are_those_of_the_error_free_path(plan: Plan) -> None:
    sure = plan.tree.problem.replace(worker_error=0)
    tree = Tree(sure, plan.tree.question, plan.tree.children)
    walked = worth(Plan(tree, plan.votes)).answers
    if plan.tree.problem.dash == "inapplicable" or not (plan.tree.problem.outcome == -1).any():
        assert math.isclose(plan.planned_answers, walked, rel_tol=1e-12)
    shares = sum(
        node.share * votes for node, votes in zip(plan.tree.nodes, plan.votes, strict=True)
    )
    assert math.isclose(plan.planned_answers, shares, rel_tol=1e-12)


def test_groups_count_as_errors() -> None:
    problem = Problem(
        ["a", "b", "c"], [0.5, 0.2, 0.3], ["q", "r"], [[0, 0, 1], [1, "-", 1]], [0.1, 0.2]
    )
    value = evaluate(ct.design(problem, allow_groups=True))
    assert value.group_error == 0.2
    assert math.isclose(value.misclassification, 0.2 + 0.8 * 0.1)
    assert math.isclose(value.additive, 0.2 + 0.1)
    assert math.isclose(value.bounds.misclassification_upper, 0.2 + 0.1)
    assert value.correct.tolist() == [0.9, 0.0, 0.9]


def test_tiny_errors_keep_their_digits() -> None:
    """301 votes of 0.1 err with a chance far below the rounding of 1."""
    problem = Problem(["a", "b", "c"], None, ["q", "r"], [[0, 0, 1], [0, 1, 1]], 0.1)
    plan = Plan(ct.design(problem), [301, 301])
    e = binomial_majority(Fraction(1, 10), 301)
    found = [evaluate(plan).misclassification, evaluate(plan).additive]
    np.testing.assert_allclose(found, float(5 * e / 3), rtol=1e-9)
    assert 0 < found[0] < 1e-60


@pytest.mark.filterwarnings("ignore:worker_error")
def test_workers_who_are_always_wrong() -> None:
    problem = Problem(["a", "b", "c"], None, ["q", "r"], [[0, 0, 1], [0, 1, 1]], 1.0)
    value = evaluate(ct.design(problem))
    assert value.misclassification == 1
    assert value.correct.tolist() == [0, 0, 0]
    check_against_enumeration(value.plan)


def test_a_tree_is_the_plan_of_one_worker_per_node() -> None:
    tree = ct.design(ct.example("table1"))
    value = evaluate(tree)
    assert value.plan.votes.tolist() == [1] * tree.n_nodes
    assert value.expected_answers == value.expected_questions
    assert value.misclassification == evaluate(Plan(tree, [1] * tree.n_nodes)).misclassification
    assert repr(value) == (
        f"Evaluation(misclassification={value.misclassification:.6g}, "
        f"additive={value.additive:.6g}, planned_answers={value.planned_answers:.4g})"
    )


# ------------------------------------------------------------------ the paper's example


def by_hand(*ways: tuple[float, int], error: float = 0.05) -> float:
    """Equation 2 for classes of (prior, questions on the path), all errors equal."""
    return sum(prior * (1 - (1 - error) ** depth) for prior, depth in ways)


def figure_1(which: str) -> Tree:
    problem = ct.example("table1")
    leaf = {name: {"label": name} for name in problem.classes}
    last = {"question": "T2", "no": leaf["c2"], "yes": leaf["c5"]}
    if which == "b":
        t3 = {"question": "T3", "no": leaf["c3"], "yes": last}
        t5 = {"question": "T5", "no": leaf["c1"], "yes": t3}
        return Tree.from_dict(problem, {"question": "T1", "no": t5, "yes": leaf["c4"]})
    t5 = {"question": "T5", "no": leaf["c1"], "yes": leaf["c3"]}
    t4 = {"question": "T4", "no": t5, "yes": leaf["c4"]}
    return Tree.from_dict(problem, {"question": "T3", "no": t4, "yes": last})


def test_figure_1() -> None:
    ways_b = [(0.6, 1), (0.2, 2), (0.1, 3), (0.05, 4), (0.05, 4)]
    b = evaluate(figure_1("b")).misclassification
    assert math.isclose(b, by_hand(*ways_b))
    assert abs(b - 0.08231187) < 1e-8
    ways_a = [(0.6, 2), (0.2, 3), (0.1, 3), (0.05, 2), (0.05, 2)]
    a = evaluate(figure_1("a")).misclassification
    assert math.isclose(a, by_hand(*ways_a))
    assert abs(a - 0.11103750) < 1e-8


def test_all_42_trees() -> None:
    problem = ct.example("table1")
    worths = [
        evaluate(Tree.from_dict(problem, nested)).misclassification for nested in all_trees(problem)
    ]
    assert len(worths) == 42
    designed = {
        method: evaluate(ct.design(problem, method)).misclassification
        for method in ("fm", "fc", "fc-printed")
    }
    assert designed["fm"] == designed["fc"] == min(worths)
    assert designed["fc-printed"] == max(worths)
    assert round(designed["fc-printed"], 4) == 0.1336


def test_the_credible_interval_is_that_of_what_was_learned() -> None:
    class Learned:
        def credible_interval(self, plan: object) -> tuple[str, object]:
            return "interval of", plan

    plan = ct.staff(ct.design(ct.example("table1")), workers=4)
    assert evaluate(plan).credible is None
    assert evaluate(plan, Learned()).credible == ("interval of", plan)


def test_leaves_by_hand() -> None:
    """Three classes, two questions: every path through the tree written out."""
    problem = Problem(["a", "b", "c"], [0.5, 0.3, 0.2], ["q", "r"], [[0, 0, 1], [0, 1, 1]],
                      [[0.1, 0.2, 0.3], [0.05, 0.15, 0.25]])  # fmt: skip
    tree = Tree(problem, [0, 1], [[1, -1], [-2, -3]])  # q: yes is c; then r: no is a, yes is b
    value = evaluate(Plan(tree, [1, 1], undecided=(2,)))
    yes_q, yes_r = np.array([0.1, 0.2, 0.7]), np.array([0.05, 0.85, 0.75])
    reach = np.array([yes_q, (1 - yes_q) * (1 - yes_r), (1 - yes_q) * yes_r])  # c, a, b
    shares = reach * problem.prior
    assert tree.leaf_label.tolist() == [2, 0, 1]
    assert value.leaf_share == pytest.approx(shares.sum(axis=1))
    right = shares[np.arange(3), tree.leaf_label]
    assert value.leaf_wrong == pytest.approx(shares.sum(axis=1) - right)
    assert value.undecided == pytest.approx(shares[2].sum())
    decided = shares[:2].sum()
    assert value.decided_error == pytest.approx((decided - right[:2].sum()) / decided)
    assert value.misclassification == pytest.approx(1 - right.sum())
    said = value.to_dict()
    assert (said["undecided"], said["decided_error"]) == (value.undecided, value.decided_error)
    assert said["misclassification"] == value.misclassification
    assert said["votes"] == [1, 1]
    assert [node["question"] for node in said["nodes"]] == ["q", "r"]
    assert evaluate(tree).decided_error == evaluate(tree).misclassification
