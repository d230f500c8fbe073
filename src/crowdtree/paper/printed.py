"""Data of the paper: Table 1, the two trees of Fig. 1, and all trees of Table 1."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import cache
from itertools import permutations
from typing import Any

import numpy as np

from crowdtree.core.errors import CrowdtreeWarning
from crowdtree.core.problem import DASH, Problem
from crowdtree.core.tree import Tree
from crowdtree.designs.designers import design
from crowdtree.io import example

FIG_1A: dict[str, Any] = {
    "question": "T3",
    "no": {
        "question": "T4",
        "no": {"question": "T5", "no": {"label": "c1"}, "yes": {"label": "c3"}},
        "yes": {"label": "c4"},
    },
    "yes": {"question": "T2", "no": {"label": "c2"}, "yes": {"label": "c5"}},
}
FIG_1B: dict[str, Any] = {
    "question": "T1",
    "no": {
        "question": "T5",
        "no": {"label": "c1"},
        "yes": {
            "question": "T3",
            "no": {"label": "c3"},
            "yes": {"question": "T2", "no": {"label": "c2"}, "yes": {"label": "c5"}},
        },
    },
    "yes": {"label": "c4"},
}


def table_1(worker_error: float = 0.05) -> Problem:
    """Table 1 with one error for all questions (0.05 in Section II, 0.2 in Fig. 4)."""
    return _table_1().replace(worker_error=np.full(5, worker_error))


@cache
def _table_1() -> Problem:
    return example("table1")


def with_error(tree: Tree, worker_error: float) -> Tree:
    """Take the same tree with another error of all workers."""
    with warnings.catch_warnings():  # Fig. 3 runs up to 0.5, where votes stop helping
        warnings.simplefilter("ignore", CrowdtreeWarning)
        problem = tree.problem.replace(worker_error=np.full(tree.problem.n_questions, worker_error))
    return Tree(problem, tree.question, tree.children, tree.method)


def all_trees(problem: Problem) -> list[Tree]:
    """Enumerate every tree whose questions all apply and split.

    >>> len(all_trees(table_1()))
    42
    """
    everything = tuple(range(problem.n_classes))
    return [Tree.from_dict(problem, nested) for nested in _subtrees(problem, everything)]


def _subtrees(problem: Problem, classes: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    if len(classes) == 1:
        yield {"label": problem.classes[classes[0]]}
        return
    for question, name in enumerate(problem.questions):
        outcome = problem.outcome[question, list(classes)]
        if DASH in outcome or outcome.min() == outcome.max():
            continue
        halves = [tuple(np.array(classes)[outcome == side].tolist()) for side in (0, 1)]
        for no in _subtrees(problem, halves[0]):
            for yes in _subtrees(problem, halves[1]):
                yield {"question": name, "no": no, "yes": yes}


def order_trees(problem: Problem) -> list[tuple[Tree, int]]:
    """Trees of all orders of the questions, each with the number of orders that give it."""
    found: dict[str, tuple[Tree, int]] = {}
    for order in permutations(range(problem.n_questions)):
        tree = design(problem, "random", order=order)
        key = tree.to_text()
        found[key] = (tree, found.get(key, (tree, 0))[1] + 1)
    return list(found.values())


def same_shape(tree: Tree, nested: dict[str, Any]) -> bool:
    """Whether a tree is one that the paper draws."""
    return tree.to_dict() == nested
