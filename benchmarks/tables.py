"""Generated tables for the benchmarks, and scikit-learn's tree as one of ours."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from crowdtree import Problem, Tree


def made_problem(n_classes: int, n_questions: int, seed: int = 0) -> Problem:
    """A table of fair coins with an error per cell and unequal priors.

    Built in place and handed over read-only, so that the problem takes it without a copy.
    """
    rng = np.random.default_rng(seed)
    outcome = rng.integers(0, 2, (n_questions, n_classes), dtype=np.int8)
    error = rng.random((n_questions, n_classes))
    error *= 0.19
    error += 0.01
    outcome.flags.writeable = error.flags.writeable = False
    return Problem(
        [f"c{i}" for i in range(n_classes)],
        rng.dirichlet(np.full(n_classes, 2.0)),
        [f"q{i}" for i in range(n_questions)],
        outcome,
        error,
    )


def from_sklearn(problem: Problem, fitted: Any) -> Tree:
    """scikit-learn's fitted tree, with its nodes numbered level by level as ours are."""
    tree = fitted.tree_
    question, children = [], []
    queue = deque([0])
    inner = 1
    while queue:
        node = queue.popleft()
        question.append(int(tree.feature[node]))
        pair = []
        for child in (int(tree.children_left[node]), int(tree.children_right[node])):
            if tree.children_left[child] < 0:
                pair.append(-1)
            else:
                pair.append(inner)
                inner += 1
                queue.append(child)
        children.append(pair)
    return Tree(problem, np.array(question), np.array(children), "scikit-learn")
