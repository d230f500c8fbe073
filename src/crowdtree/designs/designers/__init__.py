"""Designers: functions that turn a problem into a tree, selected by name.

``DESIGNERS`` maps a method's name to its function. Every designer obeys one contract
(``tests/contracts``): each node's question splits its classes, and each leaf is one class or a
group that no question splits.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from crowdtree.core.checking import check_call, check_options
from crowdtree.core.errors import CrowdtreeError, CrowdtreeWarning, listing
from crowdtree.core.evaluation import Uncertain
from crowdtree.core.problem import Dash, Problem
from crowdtree.core.tree import Tree
from crowdtree.designs.designers.baselines import gain, gini, random
from crowdtree.designs.designers.greedy import fc, fc_printed, fm
from crowdtree.designs.designers.optimal import optimal, verify

__all__ = ["DESIGNERS", "design", "refuse_groups", "verify"]

DESIGNERS: Mapping[str, Callable[..., Tree]] = MappingProxyType(
    {
        "fm": fm,
        "fc": fc,
        "fc-printed": fc_printed,
        "gain": gain,
        "gini": gini,
        "random": random,
        "optimal": optimal,
    }
)


def design(
    problem: Problem,
    method: str = "fm",
    *,
    dash: Dash | None = None,
    allow_groups: bool = False,
    uncertainty: Uncertain | None = None,
    **options: Any,
) -> Tree:
    """Design the decision tree of questions that misclassifies least.

    Parameters
    ----------
    problem
        The problem.
    method
        ``"fm"`` and ``"fc"``: the paper's level-greedy designs; ``"fc-printed"``: the second with
        the score as the paper prints it; ``"gain"`` (ID3), ``"gini"`` (CART) and ``"random"``
        (questions in a random order): baselines that ignore errors; ``"optimal"``: a proven
        optimum, with a certificate; never misclassifies more than ``"fm"`` and ``"fc"``.
    dash
        What ``-`` means, if other than in the problem.
    allow_groups
        Accept leaves of several classes that no question separates; they are labelled with
        their likeliest class.
    uncertainty
        Learned estimates: the tree is designed for the upper credible end of every error, but
        its problem is the one given.
    options
        Options of the method: ``r`` for ``"fc"``, ``rng`` or ``order`` for ``"random"``,
        ``objective``, ``time_limit``, ``gap_limit``, ``node_limit``, ``memory_limit`` and
        ``progress`` for ``"optimal"``.

    Returns
    -------
    Tree

    Examples
    --------
    >>> import crowdtree as ct
    >>> tree = ct.design(ct.example("table1"))
    >>> print(tree.to_text())
    T1
    ├─ no  → T5
    │        ├─ no  → c1
    │        └─ yes → T3
    │                 ├─ no  → c3
    │                 └─ yes → T2
    │                          ├─ no  → c2
    │                          └─ yes → c5
    └─ yes → c4
    """
    check_call(design, locals())
    designer = DESIGNERS.get(method)
    if designer is None:
        raise CrowdtreeError(f"method: {method!r} is unknown; choose from {', '.join(DESIGNERS)}")
    if dash is not None and dash != problem.dash:
        problem = problem.replace(dash=dash)
    problem = problem.as_options()
    target = problem if uncertainty is None else _pessimistic(problem, uncertainty)
    check_options(f"design: method {method!r}", designer, options)
    tree = designer(target, **options)
    if not allow_groups:
        refuse_groups(tree)
    if target is problem:
        return tree
    return Tree(problem, tree.question, tree.children, f"{tree.method} for upper errors")


def _pessimistic(problem: Problem, uncertainty: Uncertain) -> Problem:
    upper = uncertainty.upper_problem()
    if (upper.classes, upper.questions) != (problem.classes, problem.questions):
        raise CrowdtreeError(
            "uncertainty: was learned for other classes or questions; design learned.problem"
        )
    with warnings.catch_warnings():  # learned errors of one half or more are reported as flags
        warnings.simplefilter("ignore", CrowdtreeWarning)
        return problem.replace(worker_error=upper.worker_error)


def refuse_groups(tree: Tree) -> None:
    """Raise an error that names the groups if some classes cannot be separated.

    Where ``-`` means either, classes often share a leaf only because of a ``-``: that is
    a warning, and only classes with equal outcomes for every question are refused.
    """
    groups = list(dict.fromkeys(members for members in tree.leaf_classes if len(members) > 1))
    if not groups:
        return
    if tree.problem.dash == "either":
        alike = _alike(tree, groups)
        if not alike:
            warnings.warn(
                f"design: no definite answers separate {_shown(tree, groups)}; each leaf is "
                "labelled with its likeliest class",
                CrowdtreeWarning,
                stacklevel=3,
            )
            return
        groups = alike
    raise CrowdtreeError(
        f"design: no question separates {_shown(tree, groups)}; add a question, or pass "
        "allow_groups=True (--allow-groups) to label each group with its likeliest class"
    )


def _alike(tree: Tree, groups: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Groups of classes with the same right answers to every question."""
    found: dict[tuple[int, ...], None] = {}
    for members in groups:
        columns: dict[bytes, list[int]] = {}
        for c in members:
            columns.setdefault(tree.problem.right[:, :, c].tobytes(), []).append(c)
        found |= {tuple(same): None for same in columns.values() if len(same) > 1}
    return list(found)


def _shown(tree: Tree, groups: list[tuple[int, ...]]) -> str:
    names = tree.problem.classes
    return listing(("{" + listing(names[c] for c in group) + "}" for group in groups), most=4)
