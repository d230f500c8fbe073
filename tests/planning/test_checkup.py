"""The examination of a table."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings

import crowdtree as ct
from crowdtree.planning.checkup import TARGETS
from tests.strategies import problems


def table(outcome: list[list[int]], error: object = 0.1, **options: object) -> ct.Problem:
    classes = [f"c{i}" for i in range(len(outcome[0]))]
    questions = [f"q{i}" for i in range(len(outcome))]
    return ct.Problem(classes, None, questions, outcome, error, **options)


def test_useless_and_duplicate_questions_and_classes() -> None:
    with pytest.warns(ct.CrowdtreeWarning):
        problem = table(
            [[0, 1, 1], [1, 0, 0], [1, 1, 1], [-1, -1, -1], [0, 0, 1], [0, 0, -1]],
            [0.1, 0.2, 0.1, 0.1, 0.5, 0.1],
        )
    found = ct.check(problem)
    assert found.useless == {
        "q2": "the same answer for every class",
        "q3": "- for every class",
        "q4": "people err half the time or more",
        "q5": "the same answer for every class",
    }
    assert found.same_questions == (("q0", "q1"),)
    same = ct.check(table([[0, 1, 1]]))
    assert same.same_classes == same.groups == (("c1", "c2"),)
    assert all(
        cost.answers is None and "remain because of inseparable" in cost.reason
        for cost in same.costs
    )
    assert "No question separates: c1, c2" in same.to_text()


def test_the_hardest_pairs_have_the_worst_best_question() -> None:
    problem = table([[0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 0, 1]], [0.05, 0.2, 0.25])
    first, *_ = found = ct.check(problem).pairs
    assert (first.classes, first.best, first.questions) == (("c0", "c1"), "q1", 2)
    assert first.answers == pytest.approx(ct.check(table([[0, 1]], 0.2)).pairs[0].answers)
    assert [pair.error for pair in found] == sorted((p.error for p in found), reverse=True)


@settings(max_examples=30, deadline=None)
@given(problem=problems())
def test_pairs_agree_with_counting(problem: ct.Problem) -> None:
    found = ct.check(problem, time_limit=0)
    for pair in found.pairs:
        i, j = (problem.classes.index(name) for name in pair.classes)
        errors = [
            max(problem.worker_error[q, i], problem.worker_error[q, j])
            for q in range(problem.n_questions)
            if sorted(problem.outcome[q, [i, j]]) == [0, 1]
        ]
        assert pair.questions == len(errors)
        assert pair.error == min(errors)
    separated = sum(
        any(sorted(row) == [0, 1] for row in problem.outcome[:, [i, j]].tolist())
        for i, j in itertools.combinations(range(problem.n_classes), 2)
    )
    assert len(found.pairs) == min(separated, 10)


def test_costs_are_those_of_plans_that_keep_the_target() -> None:
    problem = ct.example("animals")
    costs = ct.check(problem, time_limit=math.inf).costs
    assert [cost.target for cost in costs] == list(TARGETS)
    answers = [cost.answers for cost in costs]
    assert answers == sorted(answers)
    for cost in costs:
        assert cost.error <= cost.target
        planned = ct.plan(problem, error=cost.target).adaptive.performance
        assert cost.answers == pytest.approx(planned.answers, rel=0.05)
    assert all("time limit" in cost.reason for cost in ct.check(problem, time_limit=0).costs)


def test_costs_out_of_reach_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crowdtree.planning.adaptive_curve.MENU_ITEMS", 500)
    poor = ct.check(table([[0, 1]], 0.49), time_limit=math.inf)
    assert "out of reach" in poor.costs[-1].reason
    assert poor.pairs[0].answers is None
    assert "out of reach" in poor.to_text()


def test_a_table_without_a_first_question() -> None:
    found = ct.check(table([[0, 1, -1], [-1, 0, 1]]))
    assert [cost.target for cost in found.costs] == list(TARGETS)
    assert "No fixed tree: a tree cannot begin, because every question has -" in found.to_text()
    assert found.to_dict()["first_questions"] == 0


def test_classes_that_only_dashes_keep_together() -> None:
    found = ct.check(table([[0, 0, 1, 1, 1], [0, 1, -1, -1, -1], [-1, -1, 0, 1, -1]]))
    assert ("c2", "c3", "c4") in found.groups
    assert found.same_classes == ()
    assert "because answers are -: c2, c3, c4" in found.to_text()
    assert "--dash either" in found.to_text()


def test_pairs_of_a_huge_table_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crowdtree.planning.checkup.MAX_PAIR_WORK", 1)
    found = ct.check(table(np.eye(3, dtype=int).tolist()))
    assert found.pairs == ()
    assert "too large to compare all pairs" in found.to_text()


def _named(problem: ct.Problem) -> ct.Problem:
    """The same problem with answers called otherwise."""
    return problem.replace(answers=[["a", "b"]] * problem.n_questions)


def test_names_of_answers_change_nothing() -> None:
    problem = ct.example("animals")
    one, two = (ct.check(p).to_dict() for p in (problem, _named(problem)))
    assert {k: v for k, v in one.items() if k != "notes"} == {
        k: v for k, v in two.items() if k != "notes"
    }


@pytest.mark.filterwarnings("ignore:.*additional votes do not help")
def test_questions_with_several_answers() -> None:
    cap, size = ["red", "brown", "white"], ["small", "large"]
    problem = ct.Problem(
        ["a", "b", "c", "d"],
        None,
        ["cap", "stem", "size", "ring", "spots"],
        [
            ["red", "brown|white", "white", "red"],
            ["x", "y|z", "z", "x"],  # divides as the cap does
            ["small", "small", "-", "small"],
            [1, 1, 0, 1],
            ["few", "few|many", "many", "few"],  # worse than guessing
        ],
        [0.1, 0.2, 0.1, 0.05, 0.7],
        answers=[cap, ["x", "y", "z"], size, None, ["few", "many", "none"]],
    )
    found = ct.check(problem, time_limit=5)
    assert found.useless == {
        "size": "the same answer for every class",
        "spots": "people answer no better than by guessing",
    }
    assert found.same_questions == (("cap", "stem"),)
    assert found.same_classes == (("a", "d"),)
    pairs = {pair.classes: pair for pair in found.pairs}
    assert set(pairs) == {("a", "b"), ("a", "c"), ("b", "c"), ("b", "d"), ("c", "d")}
    assert (pairs["a", "b"].best, pairs["a", "b"].questions) == ("cap", 2)
    assert (pairs["b", "c"].best, pairs["b", "c"].questions) == ("ring", 1)
    text = found.to_text()
    assert text.startswith("4 classes, 5 questions of 2 to 3 answers; several answers are right in")
    assert "No question separates: a, d" in text


def test_answers_between_two_classes_are_those_of_a_simulation() -> None:
    """A vote that only counts answers right for either class, until one leads by the margin."""
    cap = ["red", "brown", "white", "grey"]
    problem = ct.Problem(
        ["a", "b"], None, ["cap"], [["red", "brown"]], 0.3, answers=[cap], unsure=0.2
    )
    pair = ct.check(problem, time_limit=0).pairs[0]
    rng = np.random.default_rng(1)
    chances = [0.8 * 0.7, 0.8 * 0.1, 1 - 0.8 * 0.8]  # for, against, neither
    lead = min(m for m in range(1, 9) if (0.125 / 0.875) ** m / (1 + (0.125 / 0.875) ** m) <= 0.01)
    counts = []
    for _ in range(4000):
        margin = answers = 0
        while abs(margin) < lead:
            margin += int(rng.choice([1, -1, 0], p=chances))
            answers += 1
        counts.append(answers)
    assert pair.answers == pytest.approx(np.mean(counts), rel=0.05)


def test_why_a_fixed_tree_labels_only_a_part_of_a_class() -> None:
    cells = [["red|brown", "red", "white", "white"], ["small", "small", "small", "large"]]
    names = [["red", "brown", "white"], ["small", "large"]]
    problem = ct.Problem(list("abcd"), None, ["cap", "size"], cells, 0.0, answers=names)
    tree = ct.design(problem, allow_groups=True)
    assert ct.evaluate(tree).recall.tolist() == [0.5, 1, 1, 1]
    (remark,) = ct.check(problem, time_limit=0).remarks
    assert remark.startswith("Without any mistake a fixed tree labels only a part of a (50 %): ")
    assert "pass dash" not in ct.check(problem, time_limit=0).to_text()
    assert not ct.check(ct.example("animals"), time_limit=0).remarks
