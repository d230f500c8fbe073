"""Random problems whose questions have any number of answers, and slow solvers for comparison."""

from __future__ import annotations

import warnings
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from crowdtree import CrowdtreeWarning, Problem
from crowdtree.core.outcomes import DASH

__all__ = ["additive_value", "greedy_tree", "random_problem", "splitting"]


def random_problem(
    rng: np.random.Generator,
    classes: int,
    questions: int,
    answers: int | tuple[int, int] = (2, 5),
    *,
    several: float = 0.0,
    dashes: float = 0.0,
    dash: str = "inapplicable",
    loss: bool = False,
    unsure: bool = False,
    error_free: float = 0.0,
    equal_errors: bool = False,
    **options: Any,
) -> Problem:
    """Draw a problem.

    Parameters
    ----------
    rng
        Source of chance.
    classes, questions
        How many.
    answers
        Answers of every question, or the fewest and the most.
    several, dashes, error_free
        Share of cells with several right answers, of cells with ``-``, of questions without error.
    dash
        What ``-`` means.
    loss
        Whether mistakes have different costs.
    unsure
        Whether workers sometimes cannot tell.
    equal_errors
        One error per question rather than per cell.
    options
        Further arguments of the problem.
    """
    low, high = (answers, answers) if isinstance(answers, int) else answers
    count = rng.integers(low, high + 1, questions)
    names = [[f"a{a}" for a in range(k)] for k in count]
    cells: list[list[str]] = []
    for k in count:
        row = []
        for _ in range(classes):
            size = int(rng.integers(2, k + 1)) if rng.random() < several else 1
            chosen = rng.choice(k, size=size, replace=False)
            row.append("-" if rng.random() < dashes else "|".join(f"a{a}" for a in chosen))
        cells.append(row)
    error = rng.uniform(0.01, 0.4, (questions, 1 if equal_errors else classes))
    error = np.broadcast_to(error, (questions, classes)).copy()
    error[rng.random(questions) < error_free] = 0.0
    if loss:
        options["loss"] = rng.uniform(0.1, 5.0, (classes, classes)) * (1 - np.eye(classes))
    if unsure:
        options["unsure"] = rng.uniform(0.0, 0.3, (questions, classes))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdtreeWarning)  # an error of guessing or more
        return Problem(
            [f"c{i}" for i in range(classes)],
            rng.dirichlet(np.full(classes, 2.0)) * 0.99 + 0.01 / classes,
            [f"q{i}" for i in range(questions)],
            cells,
            error,
            answers=names,
            dash=dash,
            **options,
        )


def splitting(problem: Problem, members: tuple[int, ...]) -> list[tuple[int, dict[int, list[int]]]]:
    """Questions that split a set of classes, with the members of the part of each answer."""
    found = []
    for q, names in enumerate(problem.answers):
        parts: dict[int, list[int]] = {}
        applies = True
        for c in members:
            right = [a for a in range(len(names)) if problem.right[a, q, c]]
            applies = applies and bool(right)
            for a in right:
                parts.setdefault(a, []).append(c)
        if applies and all(len(part) < len(members) for part in parts.values()):
            found.append((q, parts))
    return found


def additive_value(problem: Problem) -> float:
    """Least additive risk over all trees, by plain recursion over classes and their shares."""
    matrix = 1 - np.eye(problem.n_classes) if problem.loss is None else problem.loss.matrix
    right = [
        [{a for a in range(len(names)) if problem.right[a, q, c]} for c in range(problem.n_classes)]
        for q, names in enumerate(problem.answers)
    ]

    def wrong(q: int, c: int) -> float:
        if problem.outcome[q, c] == DASH or len(right[q][c]) == problem.n_answers[q]:
            return 0.0
        error = float(problem.worker_error[q, c])
        if problem.unsure is None:
            return error
        unsure = float(problem.unsure[q, c])
        return error * (1 - unsure) + unsure * (1 - len(right[q][c]) / int(problem.n_answers[q]))

    @cache
    def value(state: tuple[tuple[int, float], ...]) -> float:
        members = tuple(c for c, _ in state)
        share = dict(state)
        questions = splitting(problem, members)
        if not questions:
            return min(sum(share[c] * matrix[c, label] for c in members) for label in members)
        best = np.inf
        for q, parts in questions:
            total = 0.0
            for c in members:
                stake = max((matrix[c, d] for d in members if right[q][d] - right[q][c]), default=0)
                stake = 1.0 if problem.loss is None else stake
                total += share[c] * wrong(q, c) * stake
            for part in parts.values():
                total += value(tuple((c, share[c] / len(right[q][c])) for c in part))
            best = min(best, total)
        return best

    return value(tuple(enumerate(problem.prior.tolist())))


def greedy_tree(problem: Problem, method: str) -> list[tuple[int, ...]]:
    """Questions of the level-greedy tree, level by level, by trying all choices of a level."""
    nodes = [{c: float(p) for c, p in enumerate(problem.prior)}]
    levels = []
    groups = _final_groups(problem)
    while True:
        open_nodes = [node for node in nodes if splitting(problem, tuple(node))]
        if not open_nodes:
            return levels
        before = sum(_entropy(node) for node in open_nodes)
        best: tuple[float, tuple[int, ...], list[dict[int, float]]] | None = None
        for choice in product(*(splitting(problem, tuple(node)) for node in open_nodes)):
            error, below = 0.0, []
            for node, (q, parts) in zip(open_nodes, choice, strict=True):
                count = {c: sum(c in part for part in parts.values()) for c in node}
                below += [{c: node[c] / count[c] for c in parts[a]} for a in sorted(parts)]
                error += sum(
                    node[c] * problem.worker_error[q, c]
                    for c in node
                    if count[c] < problem.n_answers[q]
                )
            impurity = _gini if method == "gini" else _entropy
            drop = sum(map(impurity, open_nodes)) - sum(map(impurity, below))
            inside = sum(
                _entropy({c: node[c] for c in group})
                for node in open_nodes
                for group in groups
                if group <= node.keys()
            )
            score = _score(method, before - inside, drop, error)
            if best is None or score > best[0] * (1 + 1e-9):
                best = (score, tuple(q for q, _ in choice), below)
        assert best is not None
        levels.append(best[1])
        nodes = best[2]


def _score(method: str, before: float, drop: float, error: float) -> float:
    if method == "fm":
        return drop / error if error > 0 else np.inf
    if method == "fc":
        loss = -np.log1p(-error)
        return float(-np.log1p(-drop / (before + 1.0)) / loss) if loss > 0 else np.inf
    return drop


def _final_groups(problem: Problem) -> list[set[int]]:
    """Classes that no tree separates; none where that depends on the tree."""
    if (problem.right.sum(axis=0) > 1).any():
        return []
    waiting, groups = [list(range(problem.n_classes))], []
    while waiting:
        members = waiting.pop()
        questions = splitting(problem, tuple(members))
        if questions:
            waiting += questions[0][1].values()
        else:
            groups.append(set(members))
    return groups


def _gini(node: dict[int, float]) -> float:
    total = sum(node.values())
    return total - sum(p * p for p in node.values()) / total


def _entropy(node: dict[int, float]) -> float:
    total = sum(node.values())
    return -sum(p * np.log2(p / total) for p in node.values())
