"""Proven optimal trees behind ``method="optimal"`` and the frontiers, on arrays only.

Problems in which trees can meet few sets of classes are tabulated with NumPy; for the others the
compiled branch and bound is imported.
"""

from typing import Unpack

import numpy as np
import numpy.typing as npt

from crowdtree.core.errors import needing
from crowdtree.core.loss import Loss
from crowdtree.core.problem import Problem

from .groups import class_free, label_weights
from .solution import Floats, Limits, Solution, can_compile
from .tabulated import (
    Splits,
    additive_costs,
    list_splits,
    path_costs,
    risk_costs,
    solve_tabulated,
)

__all__ = ["Solution", "can_compile", "is_tabulated", "solve_additive", "solve_exact", "solve_risk"]


def is_tabulated(outcome: npt.NDArray[np.int8]) -> bool:
    """Whether a problem is small enough to be solved without compiling the search."""
    return list_splits(outcome) is not None


def solve_additive(
    outcome: npt.NDArray[np.int8], cost: Floats, weight: Floats, **limits: Unpack[Limits]
) -> Solution:
    """Find the tree of least additive cost.

    Parameters and result are those of
    :func:`crowdtree.designs.designers.exact.search.solve_additive`.
    """
    splits = _splits(outcome, limits)
    if splits is None:
        with needing("the search for so large a problem", "fast"):
            from . import search

        return search.solve_additive(outcome, cost, weight, **limits)
    variants = cost if cost.ndim == 3 else cost[np.newaxis]
    spent = additive_costs(splits, outcome, variants, weight)
    return solve_tabulated(splits, spent, np.ones(len(outcome)))


def solve_exact(
    outcome: npt.NDArray[np.int8], error: Floats, weight: Floats, **limits: Unpack[Limits]
) -> Solution | None:
    """Find the tree of least misclassification; None where it has to be compiled and cannot be.

    Parameters and result are those of
    :func:`crowdtree.designs.designers.exact.exact_objective.solve_exact`.
    """
    alike = class_free(outcome, error)
    splits = _splits(outcome, limits, paths=not alike)
    if splits is None:
        if not can_compile():
            return None
        from . import exact_objective

        return exact_objective.solve_exact(outcome, error, weight, **limits)
    labelled, always_wrong = label_weights(outcome, weight)
    if alike:
        spent = additive_costs(splits, outcome, error[np.newaxis], labelled)
        keep = 1.0 - np.where(outcome >= 0, error, 0.0).max(axis=1)
    else:
        spent = path_costs(splits, outcome, error, labelled)
        keep = np.ones(len(outcome))
    return solve_tabulated(splits, spent, keep, always_wrong)


def solve_risk(problem: Problem, loss: Loss, limits: Limits) -> Solution | None:
    """Find the tree of least additive risk; None where a problem is too large to be tabulated."""
    splits = _splits(problem.outcome, limits)
    if splits is None:
        return None
    spent = risk_costs(splits, problem, loss)
    return solve_tabulated(splits, spent, np.ones(problem.n_questions))


def _splits(outcome: npt.NDArray[np.int8], limits: Limits, *, paths: bool = False) -> Splits | None:
    """Splits of a problem that is small enough to be tabulated.

    A limit on the sets searched asks for the search, where it is installed.
    """
    searched = limits.get("node_limit") is not None and can_compile()
    return None if searched else list_splits(outcome, paths=paths)
