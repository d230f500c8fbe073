"""Validation of problems: what is wrong, where, and how to fix it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import crowdtree as ct
from crowdtree import CrowdtreeError, CrowdtreeWarning, Problem
from tests.strategies import problems

GOOD: dict[str, Any] = {
    "classes": ["a", "b", "c"],
    "prior": [0.5, 0.3, 0.2],
    "questions": ["q", "r"],
    "outcome": [[0, 1, "-"], [1, 1, 0]],
    "worker_error": [0.1, 0.2],
}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"classes": ["a"]}, ["classes: expected at least two classes, got 1"]),
        ({"classes": []}, ["classes: expected at least two classes, got 0"]),
        ({"classes": "abc"}, ["classes: expected a list of class names, got 'abc'"]),
        ({"classes": 3}, ["classes: expected a list of class names, got '3'"]),
        ({"classes": None}, ["classes: expected a list of class names, got 'None'"]),
        ({"classes": ["a", " ", "c"]}, ["class 2 has no name"]),
        ({"classes": ["a", "b", None]}, ["class 3 has no name"]),
        ({"classes": ["a", float("nan"), "c"]}, ["class 2 has no name"]),
        ({"classes": ["a", "b", "a "]}, ["'a' occurs more than once", "must differ"]),
        ({"classes": ["x\ny", "b", "x\ny"]}, ["'x y' occurs more than once"]),
        ({"questions": []}, ["questions: expected at least one question, got 0"]),
        ({"questions": ["q", ""]}, ["question 2 has no name"]),
        ({"questions": ["q", "q"]}, ["questions: 'q' occurs more than once"]),
        ({"prior": [0.5, 0.3]}, ["prior: expected one number per class (3), got 2"]),
        ({"prior": 0.5}, ["prior: expected one number per class (3), got one number"]),
        ({"prior": [[0.5, 0.3, 0.2]]}, ["got 1 x 3"]),
        ({"prior": [0.5, 0.3, 0.1]}, ["prior: sums to 0.9", "normalise=True", "--normalise"]),
        ({"prior": [0.5, 0.3, "x"]}, ["prior: expected numbers, got 'x' at position 3"]),
        ({"prior": [0.5, 0.3, None]}, ["prior: class 'c' has nan"]),
        ({"prior": "equal"}, ["prior: expected numbers, got 'equal'"]),
        ({"prior": [0.5, 0.5, 0]}, ["prior: class 'c' has 0", "leave out a class"]),
        ({"prior": [0.8, 0.5, -0.3]}, ["prior: class 'c' has -0.3", "positive"]),
        ({"prior": [0.5, np.nan, 0.5]}, ["prior: class 'b' has nan", "finite"]),
        ({"prior": [0.5, np.inf, 0.5]}, ["prior: class 'b' has inf", "finite"]),
        ({"prior": [1e300, 1e-300, 1], "normalise": True}, ["class 'b' vanishes", "leave it out"]),
        ({"prior": [1 + 2j, 1, 1]}, ["prior: "]),
        ({"outcome": [[0, 1, 2], [1, 1, 0]]}, ["'q', class 'c' is '2'", "write 0, 1 or -"]),
        ({"outcome": [[0, 1, "x"], [1, 1, 0]]}, ["'q', class 'c' is 'x'"]),
        ({"outcome": [[0, 1, None], [1, 1, 0]]}, ["'q', class 'c' is 'None'"]),
        ({"outcome": [[0, 1, float("nan")], [1, 1, 0]]}, ["'q', class 'c' is 'nan'"]),
        ({"outcome": [[0, 1, float("inf")], [1, 1, 0]]}, ["'q', class 'c' is 'inf'"]),
        ({"outcome": np.array([[0, 1, 1], [1, 1, 0.5]])}, ["'r', class 'c' is '0.5'"]),
        ({"outcome": np.array([[0, 1, 1], [1, np.nan, 0]])}, ["'r', class 'b' is 'nan'"]),
        ({"outcome": np.array([[0, 1, 1], [1, 257, 0]])}, ["'r', class 'b' is '257'"]),
        ({"outcome": np.array([[0, 1, 1], [1, 255, 0]], np.uint8)}, ["class 'b' is '255'"]),
        ({"outcome": np.array([[0, -2, 1], [1, 1, 0]])}, ["'q', class 'b' is '-2'"]),
        ({"outcome": [[0, 1], [1, 1, 0]]}, ["question 'q': expected one per class (3), got 2"]),
        ({"outcome": [[0, 1, 0]]}, ["2 questions x 3 classes", "got 1 x 3"]),
        ({"outcome": np.zeros((3, 2))}, ["2 questions x 3 classes", "got 3 x 2"]),
        ({"outcome": 5}, ["outcome: "]),
        ({"outcome": "01-"}, ["outcome: "]),
        ({"worker_error": 1.5}, ["worker_error: expected a probability from 0 to 1, got 1.5"]),
        ({"worker_error": -0.1}, ["worker_error: expected a probability from 0 to 1, got -0.1"]),
        ({"worker_error": np.nan}, ["worker_error: expected a probability from 0 to 1, got nan"]),
        ({"worker_error": "x"}, ["worker_error: expected numbers, got 'x'"]),
        ({"worker_error": [0.1, 1.2]}, ["worker_error: question 'r' has 1.2", "from 0 to 1"]),
        ({"worker_error": [0.1, np.nan]}, ["worker_error: question 'r' is missing"]),
        ({"worker_error": [0.1, np.inf]}, ["worker_error: question 'r' has inf"]),
        ({"worker_error": [0.1] * 3}, ["one per question (2) or one per cell (2 x 3), got 3"]),
        ({"worker_error": np.zeros((3, 2))}, ["(2 x 3), got 3 x 2"]),
        ({"worker_error": [[0.1, 0.2], [0.1]]}, ["worker_error: expected rows of equal length"]),
        ({"worker_error": [[0.1, 0.2, 0.3], [0.1, "y", 0.3]]}, ["got 'y' at position 2"]),
        (
            {"worker_error": [[0.1, 0.2, 0.3], [0.1, 7, 0.3]]},
            ["worker_error: question 'r', class 'b' has 7"],
        ),
        (
            {"worker_error": [[0.1, np.nan, 0.3], [0.1, 0.2, 0.3]]},
            ["worker_error: question 'q', class 'b' is missing"],
        ),
        ({"texts": ["one"]}, ["texts: expected one per question (2), got 1"]),
        ({"texts": "one"}, ["texts: expected a list of texts, got 'one'"]),
        ({"descriptions": ["one"]}, ["descriptions: expected one per class (3), got 1"]),
        ({"dash": "maybe"}, ['dash: expected "inapplicable" or "either"', "'maybe'"]),
        ({"dash": None}, ['dash: expected "inapplicable" or "either"']),
    ],
)
def test_bad_problems(change: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(CrowdtreeError) as caught:
        Problem(**(GOOD | change))
    found = str(caught.value)
    assert "\n" not in found
    assert len(found) < 300
    for word in words:
        assert word in found


def test_long_names_do_not_flood_a_message() -> None:
    with pytest.raises(CrowdtreeError) as caught:
        Problem(["x" * 10_000, "b"], None, ["q" * 10_000], [["z" * 10_000, 1]], 0.1)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("cells", [[0, 1, "-"], [0.0, 1.0, -1], [False, True, "–"], "01-"])
def test_ways_to_write_cells(cells: Any) -> None:
    problem = Problem(**(GOOD | {"outcome": [cells, [1, 1, 0]]}))
    assert problem.outcome.tolist() == [[0, 1, -1], [1, 1, 0]]


def test_outcome_may_be_a_frame() -> None:
    frame = pd.DataFrame({"a": [0, 1], "b": [1, 1], "c": ["-", 0]})
    assert Problem(**(GOOD | {"outcome": frame})) == Problem(**GOOD)


def test_inseparable_classes_are_named() -> None:
    twins = Problem(["a", "b", "c", "d"], None, ["q"], [[0, 0, 1, 1]], 0.1)
    with pytest.raises(CrowdtreeError, match=r"no question separates \{a, b\}, \{c, d\}; add"):
        ct.design(twins)


def test_root_that_nothing_splits_suggests_either() -> None:
    problem = Problem(["a", "b", "c"], None, ["q", "r"], [[0, 1, "-"], ["-", 0, 1]], 0.1)
    with pytest.raises(CrowdtreeError, match=r'no question splits the 3 classes; .*dash="either"'):
        ct.design(problem)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ([0.1, 0.5], "question 'r' has 0.5; at an error of 0.5 or more"),
        (0.6, r"question 'q' has 0.6 \(and 1 more\); at an error of 0.5 or more"),
        (
            [[0.1, 0.7, 0.9], [0.1, 0.1, 0.1]],
            "question 'q', class 'b' has 0.7; at an error of 0.5 or more",
        ),
    ],
)
def test_useless_errors_are_warned_about(error: Any, words: str) -> None:
    with pytest.warns(CrowdtreeWarning, match=words):
        Problem(**(GOOD | {"worker_error": error}))


def test_error_where_the_question_does_not_apply_is_not_needed() -> None:
    problem = Problem(**(GOOD | {"worker_error": [[0.1, 0.2, None], [0.1, 0.2, 0.3]]}))
    assert problem.worker_error.tolist() == [[0.1, 0.2, 0.5], [0.1, 0.2, 0.3]]


@pytest.mark.parametrize("counts", [[5, 3, 2], [5e307, 3e307, 2e307], [5e-310, 3e-310, 2e-310]])
def test_normalise(counts: list[float]) -> None:
    problem = Problem(**(GOOD | {"prior": counts, "normalise": True}))
    assert problem.prior == pytest.approx([0.5, 0.3, 0.2])
    assert problem.prior.sum() == pytest.approx(1, abs=1e-15)


def test_rounding_of_the_prior_is_accepted() -> None:
    third = Problem(**(GOOD | {"prior": [0.3333333, 0.3333333, 0.3333334]}))
    assert third.prior.tolist() == [0.3333333, 0.3333333, 0.3333334]
    Problem(**(GOOD | {"prior": [0.3333333] * 3}))
    with pytest.raises(CrowdtreeError, match=r"sums to 0\.999"):
        Problem(**(GOOD | {"prior": [0.333] * 3}))


@given(problems())
def test_arrays_are_apart_and_frozen(problem: Problem) -> None:
    for values in (problem.prior, problem.outcome, problem.worker_error):
        with pytest.raises(ValueError, match="read-only"):
            values[..., 0] = 0
    outcome = problem.outcome.copy()
    other = problem.replace(outcome=outcome)
    outcome[:] = 0
    assert other == problem


@given(problems(), st.data())
def test_equality_sees_every_part(problem: Problem, data: st.DataObject) -> None:
    assert problem == problem.replace()
    assert problem.replace().error_per_question == problem.error_per_question
    outcome = problem.outcome.copy()
    q = data.draw(st.integers(0, problem.n_questions - 1))
    c = data.draw(st.integers(0, problem.n_classes - 1))
    outcome[q, c] = {0: 1, 1: -1, -1: 0}[int(outcome[q, c])]
    changes: list[dict[str, Any]] = [
        {"outcome": outcome},
        {"classes": [*problem.classes[1:], "new"]},
        {"questions": [*problem.questions[1:], "new"]},
        {"texts": ["new"] * problem.n_questions},
        {"descriptions": ["new"] * problem.n_classes},
        {"dash": "either" if problem.dash == "inapplicable" else "inapplicable"},
        {"worker_error": 0.4321},
        {"prior": problem.prior[::-1] * [0.9, *[1] * (problem.n_classes - 1)], "normalise": True},
    ]
    for change in changes:
        assert problem.replace(**change) != problem
    assert problem != "problem"


def test_repr_of_a_problem() -> None:
    problem = Problem(**GOOD, texts=["", "Really?"], descriptions=[None, "b!", ""])
    assert [problem.text(q) for q in range(2)] == ["q", "Really?"]
    assert problem.descriptions == ("", "b!", "")
    assert problem.question_index("r") == 1
    with pytest.raises(CrowdtreeError, match="question 'z' is not in the problem, which has 'q'"):
        problem.question_index("z")
    assert Problem(**GOOD, texts=["", " "]).texts == ()
    assert repr(problem) == "Problem(3 classes x 2 questions, worker error 0.1 to 0.2)"
    assert 'dash="either"' in repr(problem.replace(dash="either"))


# ---------------------------------------------------------------- shares of yes answers


def test_strength_makes_outcomes_and_errors() -> None:
    problem = Problem.from_strength(
        ["a", "b", "c", "d"], None, ["q"], [[0.0, 0.2, 0.55, 0.9]], unclear=(0.4, 0.6)
    )
    assert problem.outcome.tolist() == [[0, 0, -1, 1]]
    assert problem.worker_error[0] == pytest.approx([0.01, 0.2, 0.5, 0.1])


def test_strength_against_the_outcome_is_an_error_below_half() -> None:
    problem = Problem.from_strength(
        ["a", "b"], None, ["q"], [[0.9, np.nan]], outcome=[[0, 1]], missing_error=0.3
    )
    assert problem.worker_error[0] == pytest.approx([0.499, 0.3])


@pytest.mark.parametrize(
    ("strength", "options", "words"),
    [
        ([[0.1, 1.2]], {}, "strength: question 'q', class 'b' has 1.2"),
        ([[-0.1, 0.2]], {}, "strength: question 'q', class 'a' has -0.1"),
        ([[0.1, np.nan]], {}, "class 'b' has no share; pass the outcome table"),
        ([[0.1]], {}, r"strength: expected 1 questions x 2 classes, got 1 x 1"),
        ([["x", 0.1]], {}, "strength: expected numbers, got 'x' at position 1"),
        ([[0.1, 0.2]], {"unclear": (0.6, 0.4)}, "unclear: expected two shares"),
    ],
)
def test_bad_strengths(strength: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(CrowdtreeError, match=words):
        Problem.from_strength(["a", "b"], None, ["q"], strength, **options)


def test_a_prior_too_large_to_sum_is_refused_or_scaled() -> None:
    huge = [1e308, 1e308]
    with pytest.raises(CrowdtreeError, match="sums to inf"):
        Problem(["a", "b"], huge, ["q"], [[0, 1]], 0.1)
    scaled = Problem(["a", "b"], huge, ["q"], [[0, 1]], 0.1, normalise=True)
    assert scaled.prior.tolist() == [0.5, 0.5]


def test_names_are_on_one_line() -> None:
    problem = ct.Problem(["a\nb", "c"], None, ["is it\r\n  red"], [[0, 1]], 0.1)
    assert problem.classes == ("a b", "c")
    assert problem.questions == ("is it red",)
    assert len(ct.design(problem).to_text().splitlines()) == 3
    with pytest.raises(CrowdtreeError, match="more than once"):
        ct.Problem(["a\nb", "a b"], None, ["q"], [[0, 1]], 0.1)
