"""Problems as the database keeps them: plain JSON that reads back exactly."""

from __future__ import annotations

from typing import Any

import numpy as np

from crowdtree.problem import Problem

__all__ = ["problem_from_json", "problem_to_json"]


def problem_to_json(problem: Problem) -> dict[str, Any]:
    """Write a problem.

    >>> problem = Problem(["a", "b"], None, ["q"], [[0, 1]], 0.1)
    >>> problem_from_json(problem_to_json(problem)) == problem
    True
    """
    error = problem.worker_error
    return {
        "classes": list(problem.classes),
        "prior": problem.prior.tolist(),
        "questions": list(problem.questions),
        "outcome": problem.outcome.tolist(),
        "worker_error": (error[:, 0] if problem.error_per_question else error).tolist(),
        "texts": list(problem.texts),
        "descriptions": list(problem.descriptions),
        "dash": problem.dash,
        **({"dependence": problem.dependence} if problem.dependence else {}),
    }


def problem_from_json(data: dict[str, Any]) -> Problem:
    """Read what :func:`problem_to_json` wrote."""
    values = dict(data)
    values["outcome"] = np.array(values["outcome"], dtype=np.int8)
    values["texts"] = values["texts"] or None
    values["descriptions"] = values["descriptions"] or None
    return Problem(**values)
