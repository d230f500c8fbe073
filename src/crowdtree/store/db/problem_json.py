"""Problems as the database stores them: plain JSON that reads back exactly."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

import numpy as np

from crowdtree.problem import Problem

__all__ = ["ProblemJson", "problem_from_json", "problem_to_json"]


class ProblemJson(TypedDict):
    """A problem; `worker_error` has one number per question, or one per question and class."""

    classes: list[str]
    prior: list[float]
    questions: list[str]
    outcome: list[list[int]]
    worker_error: list[float] | list[list[float]]
    texts: list[str]
    descriptions: list[str]
    dash: Literal["inapplicable", "either"]
    dependence: NotRequired[float]


def problem_to_json(problem: Problem) -> ProblemJson:
    """Write a problem.

    >>> problem = Problem(["a", "b"], None, ["q"], [[0, 1]], 0.1)
    >>> problem_from_json(problem_to_json(problem)) == problem
    True
    """
    error = problem.worker_error
    made: ProblemJson = {
        "classes": list(problem.classes),
        "prior": problem.prior.tolist(),
        "questions": list(problem.questions),
        "outcome": problem.outcome.tolist(),
        "worker_error": (error[:, 0] if problem.error_per_question else error).tolist(),
        "texts": list(problem.texts),
        "descriptions": list(problem.descriptions),
        "dash": problem.dash,
    }
    if problem.dependence:
        made["dependence"] = problem.dependence
    return made


def problem_from_json(data: ProblemJson) -> Problem:
    """Read what :func:`problem_to_json` wrote."""
    return Problem(
        data["classes"],
        data["prior"],
        data["questions"],
        np.array(data["outcome"], dtype=np.int8),
        data["worker_error"],
        texts=data["texts"] or None,
        descriptions=data["descriptions"] or None,
        dash=data["dash"],
        dependence=data.get("dependence", 0.0),
    )
