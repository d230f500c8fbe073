"""The strategies generate what they claim; otherwise the property tests would be vacuous."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings

import crowdtree as ct
from crowdtree import Problem, design
from tests.strategies import is_separable, problems


@given(problems(separable=True))
def test_separable_problems_can_be_designed(problem: Problem) -> None:
    tree = design(problem)
    assert all(len(members) == 1 for members in tree.leaf_classes)


@given(problems())
def test_separability_agrees_with_the_designer(problem: Problem) -> None:
    if is_separable(problem.outcome, problem.dash):
        design(problem)
    else:
        with pytest.raises(
            (ct.CrowdtreeError, ct.CrowdtreeWarning), match=r"^design: no (question|definite)"
        ):
            design(problem)


@pytest.mark.parametrize(
    "wanted",
    [
        lambda p: p.dash == "either" and (p.outcome == -1).any(),
        lambda p: p.dash == "inapplicable" and (p.outcome == -1).any(),
        lambda p: not p.error_per_question and (p.worker_error == 0).any(),
        lambda p: p.error_per_question and len(set(p.worker_error[:, 0])) > 2,
        pytest.param(lambda p: len(set(p.prior)) == p.n_classes == 7, marks=pytest.mark.slow),
        lambda p: p.n_classes > 4 and len(set(p.prior)) == 1,
        lambda p: p.n_questions == 8,
        lambda p: not is_separable(p.outcome, p.dash),
        lambda p: len(np.unique(p.outcome, axis=0)) < p.n_questions,
    ],
)
def test_every_kind_occurs(wanted) -> None:  # type: ignore[no-untyped-def]
    find(problems(), wanted, settings=settings(max_examples=2000, phases=[Phase.generate]))
