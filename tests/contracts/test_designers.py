"""Every registered designer fulfils the contract."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import assume, given, settings

import crowdtree as ct
from crowdtree import CrowdtreeError, Problem, Tree
from crowdtree.designs.designers import DESIGNERS
from tests.contracts import check_tree
from tests.contracts.oracle import Row, final_partition, splitting
from tests.strategies import is_separable, problems

ALL = sorted(DESIGNERS)
BY_SCORE = sorted(set(DESIGNERS) - {"random"})  # the others follow an order, so ties do not occur


def made(problem: Problem, method: str, **options: object) -> Tree:
    """Design, or drop the example where the designer says that it does not take this ``-``."""
    try:
        return ct.design(problem, method, allow_groups=True, **options)
    except CrowdtreeError as error:
        assume(not (problem.dash == "either" and "either" in str(error) and "dash" in str(error)))
        raise


def splits_at_all(problem: Problem) -> bool:
    return bool(splitting(problem, [Row(c, 1.0, 0) for c in range(problem.n_classes)]))


@pytest.mark.parametrize("method", ALL)
@given(problem=problems())
def test_contract(method: str, problem: Problem) -> None:
    if not splits_at_all(problem):
        with pytest.raises(CrowdtreeError, match=r"no question splits the \d+ classes"):
            made(problem, method)
        return
    check_tree(problem, made(problem, method))


@pytest.mark.parametrize("method", ALL)
@given(problem=problems(dash="inapplicable"))
@settings(max_examples=40)
def test_groups_are_refused_and_named_unless_allowed(method: str, problem: Problem) -> None:
    assume(splits_at_all(problem))
    if is_separable(problem.outcome, problem.dash):
        assert all(len(group) == 1 for group in ct.design(problem, method).leaf_classes)
        return
    group = next(group for group in final_partition(problem) if len(group) > 1)
    with pytest.raises(CrowdtreeError, match=r"separates \{.*allow_groups=True") as caught:
        ct.design(problem, method)
    shown = re.findall(r"\{(.*?)\}", str(caught.value))
    assert {problem.classes[c] for c in group[:5]} in [set(re.findall(r"c\d+", s)) for s in shown]


@pytest.mark.parametrize("method", ALL)
@given(problem=problems(separable=True))
@settings(max_examples=30)
def test_designs_repeat(method: str, problem: Problem) -> None:
    first, again = made(problem, method), made(problem, method)
    assert np.array_equal(first.question, again.question)
    assert np.array_equal(first.children, again.children)


@pytest.mark.parametrize("method", BY_SCORE)
@given(problem=problems(separable=True))
@settings(max_examples=60)
def test_the_first_of_equal_questions_is_asked(method: str, problem: Problem) -> None:
    """A copy of every question, before or behind the others, changes nothing."""
    tree = made(problem, method)
    m = problem.n_questions
    for order in (np.repeat(np.arange(m), 2), np.tile(np.arange(m), 2)):
        twice = problem.replace(
            questions=[f"t{i}" for i in range(2 * m)],
            outcome=problem.outcome[order],
            worker_error=problem.worker_error[order],
        )
        first = np.array([int(np.flatnonzero(order == q)[0]) for q in range(m)])
        assert np.array_equal(made(twice, method).question, first[tree.question])


@pytest.mark.parametrize("method", BY_SCORE)
@given(problem=problems(separable=True, dash="inapplicable"))
@settings(max_examples=60)
def test_the_opposite_question_is_as_good(method: str, problem: Problem) -> None:
    """Swapping yes and no of a later copy must not win by rounding."""
    tree = made(problem, method)
    m = problem.n_questions
    flipped = np.where(problem.outcome >= 0, 1 - problem.outcome, -1)
    twice = problem.replace(
        questions=[f"t{i}" for i in range(2 * m)],
        outcome=np.concatenate([problem.outcome, flipped]),
        worker_error=np.concatenate([problem.worker_error, problem.worker_error]),
    )
    assert np.array_equal(made(twice, method).question, tree.question)


def test_the_contract_itself_refuses_bad_trees() -> None:
    problem = Problem(
        ["a", "b", "c"], [0.5, 0.3, 0.2], ["q", "r"], [[0, 0, 1], [0, 1, 1]], [0.1, 0.2]
    )
    check_tree(problem, Tree(problem, [0, 1], [[1, -1], [-1, -1]]))
    with pytest.raises(AssertionError, match="could be split"):
        check_tree(problem, Tree(problem, [0], [[-1, -1]]))
    with pytest.raises(AssertionError, match="does not split"):
        check_tree(problem, Tree(problem, [0, 0, 1], [[1, -1], [2, -1], [-1, -1]]))
