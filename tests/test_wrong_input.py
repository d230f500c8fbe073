"""Wrong arguments of every public function: one line that names the argument and what it takes."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crowdtree as ct

LINES = Path(__file__).with_name("wrong_input.txt").read_text(encoding="utf-8").splitlines()
CALLS = list(zip(LINES[::2], (line.strip() for line in LINES[1::2]), strict=True))
"""Calls, each with the beginning of its message in the line below."""


def _two_classes(outcome: Any = ((0, 1),), **options: Any) -> ct.Problem:
    """A problem of two classes and a question."""
    return ct.Problem(["a", "b"], None, ["q"], outcome, 0.1, **options)


@cache
def names() -> dict[str, Any]:
    """Right arguments, and results with methods."""
    problem = ct.example("table1")
    tree = ct.design(problem)
    plan, policy = ct.staff(tree, workers=4), ct.AdaptivePolicy(problem, 0.05)
    answers = {"task": list("aabb"), "worker": list("xyxy"), "label": ["cat", "dog", "cat", "cat"]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learned = ct.learn(answers)
    return {
        "ct": ct,
        "np": np,
        "P": _two_classes,
        "problem": problem,
        "tree": tree,
        "plan": plan,
        "value": ct.evaluate(plan),
        "front": ct.frontier(problem, max_votes=3),
        "policy": policy,
        "run": ct.simulate(problem, policy, items=50),
        "answers": answers,
        "learned": learned,
        "audit": ct.Audit([0.1] * 20),
        "folder": Path("nowhere"),
    }


@pytest.mark.parametrize(("call", "words"), CALLS, ids=[call for call, _ in CALLS])
def test_wrong_arguments_get_one_line(call: str, words: str) -> None:
    with pytest.raises(ct.CrowdtreeError) as caught:
        eval(call, names())
    assert str(caught.value).startswith(words)
    assert "\n" not in str(caught.value)


def test_every_public_function_and_class_is_tried() -> None:
    unchecked = {
        "CrowdtreeError",
        "CrowdtreeWarning",
        "CrowdLabeller",
        "CrowdClassifier",
        "example",
    }
    results = {
        "Checkup",
        "Evaluation",
        "Frontier",
        "Judgement",
        "Learned",
        "PlanChoices",
        "Run",
        "Trace",
    }  # made by functions
    tried = {name for name in ct.__all__ if any(f"ct.{name}" in call for call, _ in CALLS)}
    assert set(ct.__all__) - tried <= unchecked | results
    assert len(CALLS) > 300


def test_misspelt_names_get_a_suggestion() -> None:
    with pytest.raises(AttributeError, match="no attribute 'evalute'; did you mean 'evaluate'"):
        ct.evalute  # noqa: B018
    assert set(dir(ct)) == set(ct.__all__)


def test_choices_are_no_plan_and_unknown_arguments_are_named():
    problem = ct.example("table1")
    choices = ct.plan(problem, answers=3)
    with pytest.raises(ct.CrowdtreeError, match=r"got a PlanChoices; pass its \.fixed_plan$"):
        ct.evaluate(choices)
    with pytest.raises(ct.CrowdtreeError, match="plan has no option 'eror'; did you mean 'error'"):
        ct.plan(problem, eror=0.1)
