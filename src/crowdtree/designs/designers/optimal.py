"""Proven optimal trees, with a certificate that can be checked (docs/model.md, section 8)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from crowdtree.core.arrays import FloatArray
from crowdtree.core.checking import check_call
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.evaluation import evaluate
from crowdtree.core.outcomes import DASH, SEVERAL
from crowdtree.core.problem import Problem
from crowdtree.core.tree import Certificate, Tree
from crowdtree.designs.designers.greedy import fc, fm
from crowdtree.designs.designers.grow import refuse_unsplit
from crowdtree.designs.designers.parts_search import PartsSearch, one_vote_error

if TYPE_CHECKING:  # importing it compiles
    from crowdtree.designs.designers.exact.solution import Limits, Solution

Objective = Literal["additive", "exact"]
ROUGH_GAP = 0.02
"""Gap at which the search of least additive error ends where it only begins another search."""
LESS_MISCLASSIFIED = "less misclassified"
"""Status of a greedy tree that misclassifies less than the tree of least additive error."""
Progress = Callable[[float, float, int], None]
"""Called about once a second with the best value, the proven lower bound and the sets searched."""


def optimal(
    problem: Problem,
    objective: Objective | None = None,
    *,
    time_limit: float | None = None,
    gap_limit: float = 0.0,
    node_limit: int | None = None,
    memory_limit: float = 2e9,
    progress: Progress | None = None,
) -> Tree:
    """Search all trees and prove which is best (docs/internals/search.md).

    Without an `objective` the search minimises the additive error, an upper bound of the
    misclassification (for a problem with a loss the additive risk: docs/model.md, section 15), and
    its tree is compared with the greedy ones: the tree that misclassifies least is returned, and
    the certificate says how far its additive error is from the bound.

    Parameters
    ----------
    objective
        ``"additive"`` or ``"exact"`` (the misclassification itself); the search then returns the
        tree that is best by that objective.
    time_limit
        Seconds, without compiling, after which the best tree so far is returned with its gap,
        as after Ctrl-C.
    gap_limit
        Stop when (value - lower bound) / value is at most this.
    node_limit
        Sets to search; unlike a time limit it gives the same result on every machine.
    memory_limit
        Bytes for the cache of solved sets; when it is full, the search evicts entries and goes on.
    progress
        Called about once a second.

    Examples
    --------
    >>> import crowdtree as ct
    >>> tree = ct.design(ct.example("table1"), "optimal")
    >>> tree.certificate.status, round(tree.certificate.value, 6), tree.certificate.gap
    ('optimal', 0.085, 0.0)
    """
    began = time.monotonic()
    if objective is not None and objective not in get_args(Objective):
        raise CrowdtreeError(f'objective: must be "additive" or "exact", got {objective!r}')
    check_limits(time_limit, gap_limit, node_limit, memory_limit)
    limits: Limits = {
        "time_limit": time_limit,
        "began": began,
        "gap_limit": gap_limit,
        "node_limit": node_limit,
        "memory_limit_bytes": int(memory_limit),
        "progress": progress,
    }
    if problem.loss is not None and objective == "exact":
        raise CrowdtreeError(
            'objective: "exact" is for 0/1 loss; use "additive" for a problem with a loss'
        )
    searched: Objective = objective or "additive"
    found = _of_two_parts(problem, searched, limits) if _has_two_parts(problem) else None
    if found is None:
        by_parts = _by_parts if searched == "additive" else _least_wrong
        best, lower, status, nodes = by_parts(problem, limits)
    else:
        if not len(found.question):
            refuse_unsplit(problem)
        shape = found.question.astype(np.int32), found.children.astype(np.int32)
        best = Tree(problem, *shape, "optimal")
        # Groups cost the same in every tree, so they shift the value and its bound equally.
        lower = _value(best, searched) - max(found.value - found.lower_bound, 0.0)
        status, nodes = found.status, found.nodes
    stopped = objective == "exact" and status != "optimal"
    if stopped or (objective is None and problem.loss is None):
        best, status = _least_misclassified(best, _greedy(problem), status)
    return _certified(best, searched, lower, status, nodes)


def _of_two_parts(problem: Problem, objective: Objective, limits: Limits) -> Solution | None:
    """Solve a problem whose questions make two parts: tabulated if small, else compiled.

    None where that needs numba, which is not installed, or where the loss depends on the label:
    like all problems with other questions, these are searched by parts.
    """
    from crowdtree.designs.designers import exact

    if objective == "exact":
        return exact.solve_exact(problem.outcome, problem.worker_error, problem.prior, **limits)
    weight = _class_weights(problem)
    if problem.loss is not None and weight is None:
        return exact.solve_risk(problem, problem.loss, limits)
    if not exact.can_compile() and not exact.is_tabulated(problem.outcome):
        return None
    error = problem.worker_error if weight is None else problem.worker_error * weight
    return exact.solve_additive(problem.outcome, error, problem.prior, **limits)


def _has_two_parts(problem: Problem) -> bool:
    """Whether every question splits a set of classes into two that share none."""
    fractional = problem.dash == "either" and bool((problem.outcome == DASH).any())
    several = bool((problem.outcome == SEVERAL).any())
    return bool(problem.n_answers.max() == 2 and problem.unsure is None) and not (
        fractional or several
    )


def _greedy(problem: Problem) -> list[Tree]:
    return [fm(problem), fc(problem)]


def _by_parts(problem: Problem, limits: Limits) -> tuple[Tree, float, str, int]:
    """Tree of least additive risk for any questions, with bound, status and sets searched."""
    search = PartsSearch(problem, one_vote_error(problem), **limits)
    tree = _search_from(search, _greedy(problem))
    return tree, search.lower, search.status, search.nodes


def _least_wrong(problem: Problem, limits: Limits) -> tuple[Tree, float, str, int]:
    """The same of least misclassification; the search begins with that of least additive error."""
    limit = limits["time_limit"]
    first: Limits = {**limits, "gap_limit": max(limits["gap_limit"], ROUGH_GAP)}
    first["time_limit"] = None if limit is None else limit / 4
    additive, _, _, nodes = _by_parts(problem, first)
    if limits["node_limit"] is not None:
        limits = {**limits, "node_limit": max(limits["node_limit"] - nodes, 1)}
    search = PartsSearch(problem, **limits)
    tree = _search_from(search, [*_greedy(problem), additive])
    return tree, search.lower, search.status, nodes + search.nodes


def _search_from(search: PartsSearch, rivals: Sequence[Tree]) -> Tree:
    """Search for a tree that is better than the best of some."""
    values = [search.value_of(tree) for tree in rivals]
    best = replace(rivals[int(np.argmin(values))], method="optimal")
    shape = search.solve(min(values), max_nodes=2 * max(tree.n_nodes for tree in rivals))
    if shape is None:
        return best
    return Tree(best.problem, shape.question, shape.children, "optimal")


def _least_misclassified(tree: Tree, rivals: Sequence[Tree], status: str) -> tuple[Tree, str]:
    """Compare a tree with the greedy ones: the one that misclassifies least, itself if equal."""
    best, least = tree, evaluate(tree).misclassification
    for rival in rivals:
        wrong = evaluate(rival).misclassification
        if wrong < least * (1 - 1e-12):
            best, least = replace(rival, method=f"optimal ({rival.method})"), wrong
    return best, LESS_MISCLASSIFIED if best is not tree and status == "optimal" else status


def _certified(tree: Tree, objective: str, lower: float, status: str, nodes: int) -> Tree:
    """The tree with its certificate; no tree has a value below `lower`."""
    value = _value(tree, objective)
    lower = value if status == "optimal" else min(max(lower, 0.0), value)
    gap = (value - lower) / value if value > 0 else 0.0
    return replace(tree, certificate=Certificate(objective, value, lower, gap, status, nodes))


def _class_weights(problem: Problem) -> FloatArray | None:
    """Loss of a mistake by class; None for 0/1 loss, and where it depends on the label."""
    if problem.loss is None:
        return None
    matrix = problem.loss.matrix
    weight = np.asarray(matrix.max(axis=1))
    other = np.where(np.eye(len(matrix), dtype=bool), weight[:, None], matrix)
    return weight if np.array_equal(other.min(axis=1), weight) else None


def verify(tree: Tree, certificate: Certificate | None = None) -> Certificate:
    """Check a certificate against the tree, without the search that made it.

    The value is recomputed by the oracle (:func:`crowdtree.core.evaluation`), and the numbers must
    agree with each other. The lower bound itself rests on the search.

    Returns
    -------
    Certificate
        The one that was checked.

    Examples
    --------
    >>> import crowdtree as ct
    >>> ct.verify(ct.design(ct.example("table1"), "optimal")).status
    'optimal'
    """
    check_call(verify, locals())
    claim = certificate or tree.certificate
    if claim is None:
        raise CrowdtreeError(f"verify: a tree made by {tree.method!r} has no certificate")
    value = _value(tree, claim.objective)
    slack = 1e-9 * max(value, 1e-300)
    if abs(value - claim.value) > slack:
        raise CrowdtreeError(
            f"verify: the certificate says {claim.value:.12g}, but the tree has {value:.12g}"
        )
    if claim.lower_bound > value + slack:
        raise CrowdtreeError(
            f"verify: the lower bound {claim.lower_bound:.12g} is above the value {value:.12g}"
        )
    gap = (value - claim.lower_bound) / value if value > 0 else 0.0
    if abs(gap - claim.gap) > 1e-9 or (claim.status == "optimal" and gap > 1e-9):
        raise CrowdtreeError(f"verify: the gap is {gap:.6g}, not {claim.gap:.6g} ({claim.status})")
    return claim


def _value(tree: Tree, objective: str) -> float:
    worth = evaluate(tree)
    return worth.additive_risk if objective == "additive" else worth.misclassification


def check_limits(
    time_limit: float | None, gap_limit: float, node_limit: int | None, memory_limit: float
) -> None:
    """Refuse limits of the search that are negative, not a number or too small."""
    for name, limit, least in (
        ("time_limit", time_limit, 0.0),
        ("gap_limit", gap_limit, 0.0),
        ("node_limit", node_limit, 1),
        ("memory_limit", memory_limit, 1e6),
    ):
        if limit is not None and not limit >= least:
            raise CrowdtreeError(f"{name}: must be at least {least:g}, got {limit!r}")
