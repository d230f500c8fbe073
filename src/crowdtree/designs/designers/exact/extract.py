"""Conversion of the caches to a tree as arrays, and the cost of such a tree."""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ._jit import compiled
from .bitset import Words, count, list_members
from .branch import search, small_set, splits, take_side
from .cache import Cache, find, question_at
from .incumbent import descend
from .small import question_costs
from .tables import SMALL, Tables, Work

if TYPE_CHECKING:
    from .search import Run

Ints = npt.NDArray[np.int64]
TreeArrays = tuple[Ints, Ints, Ints, list[Ints]]
MISSING, LEAF = -2, -1


@compiled
def _small_question(sets: Words, tables: Tables, cache: Cache, work: Work) -> int:
    """First question that attains the value of the small set in row 0, or LEAF."""
    best = small_set(sets, 0, tables, cache, work)
    size = list_members(sets, 0, work.members)
    question_costs(work.members, size, tables.cost, work.cost, 0)
    chosen = LEAF
    least = np.inf
    for question in range(tables.keep.size):
        if not splits(sets, 0, question, tables.one, tables.known):
            continue
        total = 0.0
        for answer in range(2):
            take_side(sets, 0, question, answer, tables.one, work.sides, answer)
            total += small_set(work.sides, answer, tables, cache, work)
        total = work.cost[0, question] + tables.keep[question] * total
        if total <= best * (1 + 1e-12):
            return question
        if total < least:
            least = total
            chosen = question
    return chosen


@compiled
def remembered_question(sets: Words, tables: Tables, exact: Cache, upper: Cache, work: Work) -> int:
    """Question that the caches hold for a set, LEAF, or MISSING if it was evicted."""
    if count(sets, 0) <= SMALL:
        return _small_question(sets, tables, exact, work)
    slot = find(sets, 0, exact.words, exact.state)
    if slot < 0 or question_at(slot, exact.words) < 0:
        slot = find(sets, 0, upper.words, upper.state)
        if slot < 0:
            return MISSING
        question = question_at(slot, upper.words) % tables.keep.size
    else:
        question = question_at(slot, exact.words)
    return question if splits(sets, 0, question, tables.one, tables.known) else LEAF


@compiled
def is_solved(sets: Words, exact: Cache) -> bool:
    """Whether the best question of the set in row 0 is known and remembered."""
    slot = find(sets, 0, exact.words, exact.state)
    return slot >= 0 and question_at(slot, exact.words) >= 0


def _question(current: Words, exact: bool, run: "Run") -> int:
    """Question of a set, searching again if it was evicted."""
    run.work.sets[0] = current[0]
    large = count(current, 0) > SMALL
    if exact and large and not is_solved(current, run.exact):
        status = run.status.copy()
        search(0, np.inf, run.tables, run.exact, run.work, run.control, status)
    found = remembered_question(current, run.tables, run.exact, run.upper, run.work)
    if found == MISSING:
        descend(0, run.rate, 1, run.turn, run.tables, run.exact, run.upper, run.work, run.control)
        found = remembered_question(current, run.tables, run.exact, run.upper, run.work)
    return int(found)


def _members(words: Words) -> Ints:
    flags = np.unpackbits(words.astype("<u8").view(np.uint8), bitorder="little")
    return np.flatnonzero(flags).astype(np.int64)


def extract(run: "Run", exact: bool) -> TreeArrays | None:
    """Read the tree breadth first; `exact` requires proven sets."""
    question: list[int] = []
    variant: list[int] = []
    children: list[list[int]] = []
    leaves: list[Ints] = []
    waiting: list[tuple[Words, int, int]] = [(run.everything[np.newaxis], -1, 0)]
    for current, parent, answer in waiting:
        chosen = _question(current, exact, run)
        if parent >= 0:
            children[parent][answer] = len(question) if chosen >= 0 else ~len(leaves)
        members = _members(current[0])
        if chosen < 0:
            leaves.append(members)
            continue
        costs = run.tables.cost[:, members, chosen].sum(axis=1)
        for side_answer in range(2):
            side = np.zeros_like(current)
            take_side(current, 0, chosen, side_answer, run.tables.one, side, 0)
            waiting.append((side, len(question), side_answer))
        question.append(chosen)
        variant.append(int(np.argmin(costs)))
        children.append([0, 0])
    return (
        np.array(question, np.int64),
        np.array(variant, np.int64),
        np.array(children, np.int64).reshape(-1, 2),
        leaves,
    )


def tree_value(tree: TreeArrays, tables: Tables) -> float:
    """Cost of a tree, summed class by class."""
    question, variant, children, leaves = tree
    total = 0.0
    members: dict[int, Ints] = {~place: leaf for place, leaf in enumerate(leaves)}
    below: dict[int, float] = {}
    for node in range(len(question) - 1, -1, -1):
        left, right = children[node]
        members[node] = np.sort(np.concatenate([members[left], members[right]]))
        spent = tables.cost[variant[node], members[node], question[node]].sum()
        rest = below.get(left, 0.0) + below.get(right, 0.0)
        below[node] = total = float(spent + tables.keep[question[node]] * rest)
    return total


def leaf_order(children: Ints, leaves: list[Ints]) -> Ints:
    """The classes in the order of the leaves, left to right."""
    order: list[Ints] = []
    waiting = [0 if len(children) else ~0]
    while waiting:
        node = waiting.pop()
        if node < 0:
            order.append(leaves[~node])
        else:
            waiting += [int(children[node, 1]), int(children[node, 0])]
    return np.concatenate(order)
