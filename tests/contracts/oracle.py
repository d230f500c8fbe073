"""Slow and simple answers, written from the model and from nothing in the package.

Everything here enumerates: answers, votes, joint choices of questions, ways to staff a tree.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from crowdtree import Plan, Problem, Tree


class Row(NamedTuple):
    """A class in a node or a leaf, after so many questions, with the share of items."""

    cls: int
    share: float
    depth: int


# ------------------------------------------------------------------ the table


def splitting(problem: Problem, rows: Sequence[Row]) -> list[int]:
    """Questions that split a set of classes, by the definition (docs/model.md, section 1)."""
    found = []
    for question, cells in enumerate(problem.outcome.tolist()):
        answers = {cells[row.cls] for row in rows}
        strict = problem.dash == "inapplicable"
        if {0, 1} <= answers and not (strict and -1 in answers):
            found.append(question)
    return found


def send(problem: Problem, question: int, rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Rows of the two branches; a class with ``-`` goes both ways, half each."""
    no, yes = [], []
    for row in rows:
        answer = int(problem.outcome[question, row.cls])
        share = row.share / 2 if answer == -1 else row.share
        if answer != 1:
            no.append(Row(row.cls, share, row.depth + 1))
        if answer != 0:
            yes.append(Row(row.cls, share, row.depth + 1))
    return no, yes


def walk(
    problem: Problem, question: Sequence[int], children: Sequence[Sequence[int]]
) -> tuple[list[list[Row]], list[list[Row]]]:
    """Rows of every inner node and of every leaf, following the arrays of a tree."""
    nodes: list[list[Row]] = [[] for _ in question]
    leaves: list[list[Row]] = [[] for _ in range(len(question) + 1)]
    nodes[0] = [Row(c, share, 0) for c, share in enumerate(problem.prior.tolist())]
    for place, asked in enumerate(question):
        for child, rows in zip(children[place], send(problem, asked, nodes[place]), strict=True):
            if child >= 0:
                nodes[child] = rows
            else:
                leaves[~child] = rows
    return nodes, leaves


def final_partition(problem: Problem) -> list[tuple[int, ...]]:
    """Groups that stay together in the end, split by whatever question comes last in the file."""
    stack = [[Row(c, 1.0, 0) for c in range(problem.n_classes)]]
    found = []
    while stack:
        rows = stack.pop()
        options = splitting(problem, rows)
        if options:
            stack += send(problem, options[-1], rows)
        else:
            found.append(tuple(sorted(row.cls for row in rows)))
    return sorted(found)


def entropy(sets: Iterable[Sequence[Row]]) -> float:
    """``sum_k p(S_k) H(class | S_k)`` in bits, from the definition."""
    total = 0.0
    for rows in sets:
        whole = math.fsum(row.share for row in rows)
        total -= math.fsum(row.share * math.log2(row.share / whole) for row in rows)
    return total


# ------------------------------------------------------------------ votes


def vote_patterns(errors: Sequence[Fraction]) -> Iterator[tuple[tuple[int, ...], Fraction]]:
    """All patterns of answers to a question whose outcome is 1, with their probabilities."""
    for answers in itertools.product((0, 1), repeat=len(errors)):
        chance = Fraction(1)
        for answer, error in zip(answers, errors, strict=True):
            chance *= 1 - error if answer else error
        yield answers, chance


def majority(errors: Sequence[Fraction]) -> Fraction:
    """Error of the plain majority, by enumeration of all patterns; a tie is a fair coin."""
    wrong = Fraction(0)
    for answers, chance in vote_patterns(errors):
        lead = 2 * sum(answers) - len(answers)
        wrong += chance * (Fraction(1, 2) if lead == 0 else int(lead < 0))
    return wrong


def binomial_majority(error: Fraction, votes: int) -> Fraction:
    """Error of the majority of equally good workers: the sum of the binomial."""
    bad, base = error.numerator, error.denominator
    powers = [1]
    for _ in range(votes):
        powers.append(powers[-1] * (base - bad))
    wrong, choose, power = 0, 1, 1  # twice the sum, over base ** votes
    for k in range(votes + 1):
        wrong += ((2 * k > votes) + (2 * k >= votes)) * choose * power * powers[votes - k]
        choose = choose * (votes - k) // (k + 1)
        power *= bad
    return Fraction(wrong, 2 * base**votes)


def margin_walk(error: Fraction, margin: int) -> tuple[Fraction, Fraction]:
    """Error and expected votes of a vote that stops at a lead: the random walk, solved exactly.

    With ``u_x`` the chance to end wrongly and ``t_x`` the votes to come at lead x,
    ``u_x = e u_{x-1} + (1 - e) u_{x+1}`` and ``t_x = 1 + e t_{x-1} + (1 - e) t_{x+1}``.
    """
    states = list(range(-margin + 1, margin))
    size = len(states)
    rows = []
    for place, lead in enumerate(states):
        row = [Fraction(0)] * (size + 2)
        row[place] += 1
        for step, chance in ((-1, error), (1, 1 - error)):
            there = lead + step
            if abs(there) < margin:
                row[place + step] -= chance
            elif there == -margin:
                row[size] += chance
        row[size + 1] = Fraction(1)
        rows.append(row)
    solved = _eliminate(rows, size)
    middle = margin - 1
    return solved[middle][size], solved[middle][size + 1]


def _eliminate(rows: list[list[Fraction]], size: int) -> list[list[Fraction]]:
    for pivot in range(size):
        swap = next(r for r in range(pivot, size) if rows[r][pivot] != 0)
        rows[pivot], rows[swap] = rows[swap], rows[pivot]
        scale = rows[pivot][pivot]
        rows[pivot] = [value / scale for value in rows[pivot]]
        for other in range(size):
            factor = rows[other][pivot]
            if other != pivot and factor != 0:
                rows[other] = [
                    a - factor * b for a, b in zip(rows[other], rows[pivot], strict=True)
                ]
    return rows


# ------------------------------------------------------------------ values of a plan


class Worth(NamedTuple):
    """Values of a plan found by enumeration."""

    confusion: np.ndarray
    questions: float
    answers: float
    visits: np.ndarray
    arrived: np.ndarray  # probability of each leaf (column) given the class (row)
    label: list[int]  # of each leaf


def verdict(plan: Plan, node: int, cls: int) -> tuple[float, float]:
    """Probability of the verdict "yes" and expected answers, by enumeration of the votes."""
    problem, question = plan.tree.problem, int(plan.tree.question[node])
    outcome = int(problem.outcome[question, cls])
    error = Fraction(float(problem.worker_error[question, cls]))
    votes = int(plan.votes[node])
    if outcome == -1:
        error = Fraction(1, 2)
    if plan.vote == "margin":
        wrong, answers = margin_walk(error, votes)
    else:
        wrong, answers = majority([error] * votes), Fraction(votes)
    return float(1 - wrong if outcome == 1 else wrong), float(answers)


def worth(plan: Plan) -> Worth:
    """Enumerate all patterns of verdicts over all nodes, for items of every class."""
    tree, problem = plan.tree, plan.tree.problem
    n, size = problem.n_classes, tree.n_nodes
    _, leaves = walk(problem, tree.question.tolist(), tree.children.tolist())
    label = [max(rows, key=lambda row: (row.share, -row.cls)).cls for rows in leaves]
    confusion, visits, arrived = np.zeros((n, n)), np.zeros(size), np.zeros((n, size + 1))
    answers = 0.0
    for cls in range(n):
        facts = [verdict(plan, node, cls) for node in range(size)]
        for pattern in itertools.product((0, 1), repeat=size):
            chance = math.prod(
                yes if said else 1 - yes for said, (yes, _) in zip(pattern, facts, strict=True)
            )
            node = 0
            while node >= 0:
                visits[node] += problem.prior[cls] * chance
                answers += problem.prior[cls] * chance * facts[node][1]
                node = int(tree.children[node, pattern[node]])
            confusion[cls, label[~node]] += chance
            arrived[cls, ~node] += chance
    return Worth(confusion, float(visits.sum()), answers, visits, arrived, label)


# ------------------------------------------------------------------ the choice of a level


class Choice(NamedTuple):
    """One joint choice of the questions of a level: entropy before, its fall, the error."""

    questions: tuple[int, ...]
    before: float
    drop: float
    error: float


def level_choices(problem: Problem, tree: Tree, depth: int) -> Iterator[Choice]:
    """All joint choices of questions for the nodes of a level of a tree.

    The entropy leaves out what stays inside the final groups (strict ``-``).
    """
    nodes, leaves = walk(problem, tree.question.tolist(), tree.children.tolist())
    here = [rows for rows, level in zip(nodes, tree.level, strict=True) if level == depth]
    rest = entropy(leaves)
    closed = entropy(rows for rows in leaves if rows[0].depth <= depth)
    before = entropy(here) + closed - rest
    facts = []
    for rows in here:
        options = []
        for question in splitting(problem, rows):
            drop = entropy([rows]) - entropy(send(problem, question, rows))
            wrong = math.fsum(
                row.share * float(problem.worker_error[question, row.cls])
                for row in rows
                if problem.outcome[question, row.cls] >= 0
            )
            options.append((question, drop, wrong))
        facts.append(options)
    for choice in itertools.product(*facts):
        questions, drops, errors = zip(*choice, strict=True)
        yield Choice(questions, before, math.fsum(drops), math.fsum(errors))


def count_choices(problem: Problem, tree: Tree, depth: int) -> int:
    """Number of joint choices of a level."""
    nodes, _ = walk(problem, tree.question.tolist(), tree.children.tolist())
    here = [rows for rows, level in zip(nodes, tree.level, strict=True) if level == depth]
    return math.prod(len(splitting(problem, rows)) for rows in here)


# ------------------------------------------------------------------ staffing


def spread(pairs: int, teams: int) -> Iterator[tuple[int, ...]]:
    """All ways to give at most so many pairs to the teams."""
    if teams == 0:
        yield ()
        return
    for first in range(pairs + 1):
        for rest in spread(pairs - first, teams - 1):
            yield (first, *rest)


def all_trees(problem: Problem) -> Iterator[dict[str, object]]:
    """Every tree of a problem (strict ``-``), nested as files have it."""

    def grow(members: tuple[int, ...]) -> Iterator[dict[str, object]]:
        rows = [Row(c, 1.0, 0) for c in members]
        options = splitting(problem, rows)
        if not options:
            yield {"label": problem.classes[max(members, key=lambda c: (problem.prior[c], -c))]}
        for question in options:
            no, yes = (tuple(r.cls for r in part) for part in send(problem, question, rows))
            for left, right in itertools.product(grow(no), grow(yes)):
                yield {"question": problem.questions[question], "no": left, "yes": right}

    return grow(tuple(range(problem.n_classes)))
