"""Proven optimal trees: against enumeration of every tree, and certificates that can be checked."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import crowdtree as ct
from tests.contracts.oracle import all_trees
from tests.strategies import problems


def worth(tree: ct.Tree, objective: str) -> float:
    value = ct.evaluate(tree)
    return value.additive if objective == "additive" else value.misclassification


def has_root(problem: ct.Problem) -> bool:
    return any(set(row) == {0, 1} for row in problem.outcome.tolist())


@settings(max_examples=120, deadline=None)
@given(
    problem=problems(classes=(2, 6), questions=(1, 6), dash="inapplicable").filter(has_root),
    objective=st.sampled_from(["additive", "exact"]),
)
def test_equals_the_best_of_all_trees(problem, objective):
    tree = ct.design(problem, "optimal", objective=objective, allow_groups=True)
    best = min(worth(ct.Tree.from_dict(problem, n), objective) for n in all_trees(problem))
    assert tree.certificate.status == "optimal"
    assert tree.certificate.gap == 0
    assert worth(tree, objective) == pytest.approx(best, rel=1e-9, abs=1e-12)
    assert ct.verify(tree).value == pytest.approx(best, rel=1e-9, abs=1e-12)


def big(seed: int = 0, classes: int = 24, questions: int = 24) -> ct.Problem:
    rng = np.random.default_rng(seed)
    return ct.Problem(
        [f"c{i}" for i in range(classes)],
        rng.dirichlet(np.ones(classes)),
        [f"q{i}" for i in range(questions)],
        rng.integers(0, 2, (questions, classes)).astype(np.int8),
        rng.uniform(0.01, 0.3, (questions, classes)),
    )


def test_never_worse_than_greedy():
    for seed in range(4):
        problem = big(seed)
        proven = ct.design(problem, "optimal", objective="additive")
        best = ct.evaluate(proven).additive
        for method in ("fm", "fc", "gain", "gini", "random"):
            assert best <= ct.evaluate(ct.design(problem, method)).additive * (1 + 1e-12)


@pytest.mark.parametrize("objective", ["additive", "exact"])
def test_a_node_limit_is_deterministic_with_a_valid_bound(objective):
    problem = big(7, 30, 30)
    options = {"objective": objective, "node_limit": 30}
    first, second = (ct.design(problem, "optimal", **options) for _ in range(2))
    assert first.certificate == second.certificate
    assert first.question.tolist() == second.question.tolist()
    claim = ct.verify(first)
    assert claim.lower_bound <= claim.value
    if objective == "additive":
        assert claim.lower_bound <= ct.design(problem, "optimal").certificate.value * (1 + 1e-9)


@pytest.mark.parametrize("limits", [{}, {"node_limit": 1}])
def test_never_misclassifies_more_than_greedy_and_says_what_is_proven(limits):
    statuses = set()
    for seed in range(12):
        problem = big(seed, 8, 8)
        tree = ct.design(problem, "optimal", **limits, allow_groups=True)
        statuses.add(ct.verify(tree).status)
        for method in ("fm", "fc"):
            rival = ct.evaluate(ct.design(problem, method, allow_groups=True))
            wrong = ct.evaluate(tree).misclassification
            assert wrong <= rival.misclassification * (1 + 1e-12)
    assert statuses <= {"optimal", "less misclassified", "node limit"}


def test_no_time_still_gives_a_tree():
    tree = ct.design(big(1, 40, 40), "optimal", time_limit=0)
    assert tree.certificate.status in ("time limit", "optimal")
    assert ct.verify(tree).lower_bound <= tree.certificate.value


def test_a_gap_limit_is_kept():
    tree = ct.design(big(3, 30, 30), "optimal", gap_limit=0.1)
    assert tree.certificate.gap <= 0.1


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"value": 0.5}, "says"),
        ({"lower_bound": 0.9}, "above the value"),
        ({"lower_bound": 0.01}, "gap"),
        ({"gap": 0.2}, "gap"),
    ],
)
def test_a_false_certificate_is_refused(change, says):
    tree = ct.design(ct.example("table1"), "optimal")
    with pytest.raises(ct.CrowdtreeError, match=says):
        ct.verify(tree, tree.certificate._replace(**change))


def test_only_optimal_trees_have_a_certificate():
    tree = ct.design(ct.example("table1"))
    assert tree.certificate is None
    with pytest.raises(ct.CrowdtreeError, match="no certificate"):
        ct.verify(tree)
    proven = ct.design(ct.example("table1"), "optimal").certificate
    assert ct.verify(dataclasses.replace(tree, certificate=proven)) == proven


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"objective": "beauty"}, "additive"),
        ({"time_limit": -1}, "time_limit"),
        ({"gap_limit": float("nan")}, "gap_limit"),
        ({"node_limit": 0}, "node_limit"),
        ({"memory_limit": 10}, "memory_limit"),
        ({"colour": "red"}, "has no option 'colour'"),
    ],
)
def test_bad_limits_get_one_line(options, says):
    with pytest.raises(ct.CrowdtreeError, match=says) as error:
        ct.design(ct.example("table1"), "optimal", **options)
    assert "\n" not in str(error.value)
