"""Optimal trees of small problems without a compiler: NumPy over all sets that a tree can meet.

Real tables have few such sets, because many questions apply to some classes only. They depend on
the outcomes alone, so that a frontier, which solves one problem at many prices, lists them once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from crowdtree.core.loss import Loss
from crowdtree.core.problem import Problem

from .solution import Floats, Solution, can_compile

MAX_CELLS = 500_000
"""States times questions up to which a problem is tabulated: tenths of a second, megabytes."""
MAX_CELLS_PLAIN = 4_000_000
"""The same where the search for larger problems is not installed: seconds."""
TIE = 1e-12
"""Relative difference of costs that counts as a tie; the first question in the file wins."""
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Splits:
    """Every state that trees of a problem can meet, and every question that splits it.

    A state is a set of classes (`member`, (state, class)), with the questions asked before where
    paths matter. States are ordered by falling size, splits by state and then by question: `parent`
    is split by `question` into the states `child` (answer, split). `levels` are the splits of the
    states of equal size, small sets first, with where each state starts among them, and its number.
    """

    member: npt.NDArray[np.bool_]
    parent: Ints
    question: Ints
    child: Ints
    levels: list[tuple[slice, Ints, Ints]]


def list_splits(outcome: npt.NDArray[np.int8], *, paths: bool = False) -> Splits | None:
    """List the states of a problem; None if they are too many to tabulate.

    With `paths`, sets that are reached by different questions are different states.
    """
    most = MAX_CELLS if can_compile() else MAX_CELLS_PLAIN
    return _list_splits(outcome.tobytes(), outcome.shape, paths, most)


@lru_cache(maxsize=4)
def _list_splits(cells: bytes, shape: tuple[int, int], paths: bool, most: int) -> Splits | None:
    outcome = np.frombuffer(cells, np.int8).reshape(shape)
    classes = shape[1]
    bits = [1 << place for place in range(classes)]
    answers = [
        (number, sum(bits[c] for c in np.flatnonzero(row == 1)),
         sum(bits[c] for c in np.flatnonzero(row < 0)), 1 << (classes + number) if paths else 0)
        for number, row in enumerate(outcome)
    ]  # fmt: skip
    states: dict[int, list[tuple[int, int, int]]] = {}
    everything = (1 << classes) - 1
    waiting = [everything]
    while waiting:
        state = waiting.pop()
        if state in states:
            continue
        members = state & everything
        splits = states[state] = []
        for number, one, dash, mark in answers:
            yes = members & one
            if yes and yes != members and not members & dash:
                asked = (state ^ members) | mark
                sides = (members ^ yes) | asked, yes | asked
                splits.append((number, *sides))
                waiting += sides
        if len(states) * len(answers) > most:
            return None
    return _arrange(states, classes)


def _arrange(states: dict[int, list[tuple[int, int, int]]], classes: int) -> Splits:
    everything = (1 << classes) - 1
    order = sorted(states, key=lambda state: (-(state & everything).bit_count(), state))
    place = {state: row for row, state in enumerate(order)}
    width = -(-classes // 8)
    packed = b"".join((state & everything).to_bytes(width, "little") for state in order)
    member = np.unpackbits(
        np.frombuffer(packed, np.uint8).reshape(-1, width), axis=1, count=classes,
        bitorder="little",
    ).astype(bool)  # fmt: skip
    rows = [
        (row, number, place[zero], place[one])
        for row, state in enumerate(order)
        for number, zero, one in states[state]
    ]
    table = np.array(rows, np.int64).reshape(-1, 4)
    sizes = member.sum(axis=1)[table[:, 0]]
    ends = [0, *(np.flatnonzero(np.diff(sizes)) + 1).tolist(), len(table)]
    levels = []
    for first, last in pairwise(ends):
        starts = np.flatnonzero(np.diff(table[first:last, 0], prepend=-1))
        levels.append((slice(first, last), starts, table[first:last, 0][starts]))
    parent, question, child = table[:, 0].copy(), table[:, 1].copy(), table[:, 2:].T.copy()
    return Splits(member, parent, question, child, levels[::-1])


def solve_tabulated(splits: Splits, spent: Floats, keep: Floats, constant: float = 0.0) -> Solution:
    """Find the tree of least cost by dynamic programming over the states.

    `spent` (variant, split) is the cost of asking there, `keep` what remains of the cost below a
    question, `constant` the part of the cost that every tree has.
    """
    value = np.zeros(len(splits.member))
    least, kept = spent.min(axis=0), keep[splits.question]
    total = np.empty(len(splits.parent))
    zero, one = splits.child
    for level, starts, states in splits.levels:
        below = value[zero[level]] + value[one[level]]
        total[level] = least[level] + kept[level] * below
        value[states] = np.minimum.reduceat(total[level], starts)
    question: list[int] = []
    variant: list[int] = []
    children: list[list[int]] = []
    leaves: list[Ints] = []
    waiting = [(0, -1, 0)]
    for state, above, answer in waiting:
        here = slice(*np.searchsorted(splits.parent, [state, state + 1]))
        leaf = here.start == here.stop
        if above >= 0:
            children[above][answer] = ~len(leaves) if leaf else len(question)
        if leaf:
            leaves.append(np.flatnonzero(splits.member[state]))
            continue
        chosen = here.start + int(np.argmax(total[here] <= value[state] * (1 + TIE)))
        waiting += [(int(splits.child[side, chosen]), len(question), side) for side in (0, 1)]
        question.append(int(splits.question[chosen]))
        variant.append(int(np.argmin(spent[:, chosen])))
        children.append([0, 0])
    worth = float(value[0]) + constant
    return Solution(
        question=np.array(question, np.int64),
        variant=np.array(variant, np.int64),
        children=np.array(children, np.int64).reshape(-1, 2),
        leaves=leaves,
        value=worth,
        lower_bound=worth,
        status="optimal",
        nodes=len(splits.member),
        forgotten=0,
    )


def additive_costs(
    splits: Splits, outcome: npt.NDArray[np.int8], cost: Floats, weight: Floats
) -> Floats:
    """Weighted cost of every split: shape (variants, splits)."""
    weighted = np.where(outcome >= 0, cost * weight, 0.0)
    # Not a product of matrices: the threads of that take longer than so small a sum.
    member = splits.member.astype(np.float64)
    by_state = (np.einsum("sc,qc->sq", member, table) for table in weighted)
    return np.stack([table[splits.parent, splits.question] for table in by_state])


def risk_costs(splits: Splits, problem: Problem, loss: Loss) -> Floats:
    """Additive risk of every split: errors times the largest loss of a label in a wrong branch."""
    spent = np.zeros(len(splits.parent))
    starts = [start + level.start for level, at, _ in splits.levels for start in at.tolist()]
    ends = dict(pairwise([*sorted(starts), len(spent)]))
    for start in starts:
        rows = slice(start, ends[start])
        asked, members = splits.question[rows], np.flatnonzero(splits.member[splits.parent[start]])
        cells = np.ix_(asked, members)
        wrong = problem.worker_error[cells] * loss.stakes(problem.right_sets[cells], members)
        spent[rows] = wrong @ problem.prior[members]
    return spent[np.newaxis]


def path_costs(
    splits: Splits, outcome: npt.NDArray[np.int8], error: Floats, weight: Floats
) -> Floats:
    """Weight that a question loses at every split, of the weight that arrives there."""
    wrong = np.where(outcome >= 0, error, 0.0)
    arriving = np.where(splits.member, weight, 0.0)
    spent = np.empty(len(splits.parent))
    for level, _, _ in reversed(splits.levels):
        parent, question = splits.parent[level], splits.question[level]
        spent[level] = (arriving[parent] * wrong[question]).sum(axis=1)
        left = arriving[parent] * (1.0 - wrong[question])
        for side in (0, 1):
            child = splits.child[side, level]
            arriving[child] = np.where(splits.member[child], left, 0.0)
    return spent[np.newaxis]
