"""Small random problems whose questions have several answers, and plans of all their trees."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdtree import Plan, Problem, Tree
from crowdtree.core.tree import NO_BRANCH

FloatArray = NDArray[np.float64]


def random_problem(
    seed: int,
    *,
    classes: int = 4,
    questions: int = 3,
    answers: int = 5,
    unsure: bool = False,
    dependence: float = 0.0,
    definite: bool = False,
    loss: bool = False,
) -> Problem:
    """A problem with 2 to `answers` answers per question, whose first question always splits.

    Cells have one right answer, several, or ``-`` (inapplicable or either), unless `definite`;
    errors differ by cell, and some questions are free of error or have a table of their own.
    """
    rng = np.random.default_rng(seed)
    counts = rng.integers(2, answers + 1, questions)
    names = [[f"a{k}" for k in range(count)] for count in counts]
    outcome: list[list[str]] = []
    for q, count in enumerate(counts):
        row = [f"a{a}" for a in rng.integers(0, count, classes)]
        if q == 0:
            row[:2] = ["a0", "a1"]
        elif not definite:
            for c in np.flatnonzero(rng.random(classes) < 0.3).tolist():
                both = rng.choice(count, 2, replace=False)
                row[c] = "-" if rng.random() < 0.3 or count == 2 else f"a{both[0]}|a{both[1]}"
        outcome.append(row)
    error = rng.uniform(0.02, 0.45, (questions, classes))
    if rng.random() < 0.3:
        error[rng.integers(questions)] = 0.0
    options: dict[str, Any] = {}
    if rng.random() < 0.3 and not definite:
        q = int(rng.integers(questions))
        table = rng.dirichlet(np.ones(counts[q]), classes).T
        for c, cell in enumerate(outcome[q]):
            right = range(counts[q]) if cell == "-" else [int(a[1:]) for a in cell.split("|")]
            table[list(right), c] += 1.5
        options["table"] = {f"q{q}": table / table.sum(axis=0)}
    if unsure:
        options["unsure"] = rng.uniform(0, 0.4, (questions, classes))
    if loss:
        matrix = rng.uniform(0.5, 4, (classes, classes))
        np.fill_diagonal(matrix, 0)
        options["loss"] = matrix
    return Problem(
        [f"c{c}" for c in range(classes)],
        rng.dirichlet(np.full(classes, 3.0)),
        [f"q{q}" for q in range(questions)],
        outcome,
        error,
        answers=names,
        dash="either" if rng.random() < 0.5 else "inapplicable",
        dependence=dependence,
        **options,
    )


Nested = tuple[int, tuple[Any, ...]] | None
"""A question and what follows each answer: ``None`` is a leaf, ``NO_BRANCH`` no branch."""


def all_trees(problem: Problem) -> Iterator[Tree]:
    """Every tree that asks on while some question splits what is left."""

    def below(members: frozenset[int]) -> list[Nested]:
        found: list[Nested] = []
        for q in range(problem.n_questions):
            right = problem.right[: problem.n_answers[q], q]
            if not all(right[:, c].any() for c in members):
                continue
            parts = [frozenset(c for c in members if row[c]) for row in right]
            if members in parts:
                continue
            sides: list[list[Any]] = [below(p) if p else [NO_BRANCH] for p in parts]
            found += [(q, choice) for choice in itertools.product(*sides)]
        return found or [None]

    for nested in below(frozenset(range(problem.n_classes))):
        if nested is not None:
            yield _tree(problem, nested)


def _tree(problem: Problem, root: Any) -> Tree:
    width = int(problem.n_answers.max())
    queue, question, children = [root], [], []
    for q, sides in queue:
        question.append(q)
        row = [NO_BRANCH] * width
        for answer, side in enumerate(sides):
            if side is None:
                row[answer] = -1
            elif side != NO_BRANCH:
                row[answer] = len(queue)
                queue.append(side)
        children.append(row)
    return Tree(problem, np.array(question), np.array(children), "enumerated")


def pattern_chances(row: FloatArray, votes: int, dependence: float) -> Iterator[tuple[Any, float]]:
    """Counts of votes for each answer, with their chance; what lacks to 1 counts for nobody."""
    shares = [*row.tolist(), max(0.0, 1 - float(row.sum()))]
    for pattern in itertools.product(range(len(shares)), repeat=votes):
        counts = [0] * len(shares)
        chance = 1.0
        for turn, answer in enumerate(pattern):
            filled = (1 - dependence) + dependence * turn
            chance *= ((1 - dependence) * shares[answer] + dependence * counts[answer]) / filled
            counts[answer] += 1
        yield counts[:-1], chance


def enumerated(plan: Plan) -> tuple[FloatArray, float]:
    """Confusion and expected answers of a majority plan, by all patterns of votes at each node."""
    tree, problem = plan.tree, plan.tree.problem
    n = problem.n_classes
    confusion, paid = np.zeros((n, n)), 0.0
    for c in range(n):
        reach = np.zeros(tree.n_nodes)
        reach[0] = 1.0
        for node in range(tree.n_nodes):
            q, votes = int(tree.question[node]), int(plan.votes[node])
            paid += problem.prior[c] * reach[node] * votes
            sides = tree.branches(node)
            row = problem.channel[0][[answer for answer, _ in sides], q, c]
            if problem.unsure is not None:
                row = row * (1 - problem.unsure[q, c])
            for counts, chance in pattern_chances(row, votes, problem.dependence):
                leaders = [k for k, count in enumerate(counts) if count == max(counts)]
                if not max(counts):
                    usual = tree.usual_answer[node]
                    leaders = [k for k, (answer, _) in enumerate(sides) if answer == usual]
                for k in leaders:
                    child, part = sides[k][1], reach[node] * chance / len(leaders)
                    if child >= 0:
                        reach[child] += part
                    else:
                        confusion[c, tree.leaf_label[~child]] += part
    return confusion, paid
