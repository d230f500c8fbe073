"""Good trees found fast: keep the few most promising questions of every set, solve small sets."""

import math

import numpy as np

from ._jit import compiled
from .bitset import Words, count, list_members
from .branch import BUDGET, NODES, STOP, Control, least, small_set, splits, take_side
from .cache import Cache, find, question_at, store
from .small import Ints, question_costs, small_value
from .solution import Floats
from .tables import SMALL, Tables, Work


@compiled
def _entropy(sets: Words, row: int, weight: Floats, members: Ints) -> float:
    """Entropy of the class within a set times the weight of the set, in bits."""
    size = list_members(sets, row, members)
    total = 0.0
    sum_of_logs = 0.0
    for place in range(size):
        share = weight[members[place]]
        if share > 0.0:
            total += share
            sum_of_logs += share * math.log2(share)
    return total * math.log2(total) - sum_of_logs if total > 0.0 else 0.0


@compiled
def _guess(sets: Words, row: int, rate: float, tables: Tables, exact: Cache, work: Work) -> float:
    """Estimated cost of a set: its value if known, else its entropy times a rate."""
    if count(sets, row) <= tables.tabled[0]:
        return small_value(sets, row, tables, work)
    slot = find(sets, row, exact.words, exact.state)
    if slot >= 0 and question_at(slot, exact.words) >= 0:
        return float(exact.values[slot, exact.values.shape[1] - 2])
    return rate * _entropy(sets, row, tables.weight, work.members)


@compiled
def _rank_questions(depth: int, rate: float, tables: Tables, exact: Cache, work: Work) -> None:
    """Expected cost of every question at a set, infinite where it does not split it."""
    sets, estimate, cost = work.sets, work.estimate, work.cost
    size = list_members(sets, depth, work.members)
    question_costs(work.members, size, tables.cost, cost, depth)
    for question in range(estimate.shape[1]):
        estimate[depth, question] = np.inf
        if not splits(sets, depth, question, tables.one, tables.known):
            continue
        below = 0.0
        for answer in range(2):
            take_side(sets, depth, question, answer, tables.one, work.sides, answer)
            below += _guess(work.sides, answer, rate, tables, exact, work)
        estimate[depth, question] = cost[depth, question] + tables.keep[question] * below


@compiled
def descend(
    depth: int,
    rate: float,
    width: int,
    turn: int,
    tables: Tables,
    exact: Cache,
    upper: Cache,
    work: Work,
    control: Control,
) -> float:
    """Value of the best tree when each set tries only its `width` most promising questions.

    Promising means a small cost plus entropy left times `rate`, as in the greedy designs. `turn`
    numbers the calls from the root: what an earlier one found is improved, never lost.
    """
    sets, estimate = work.sets, work.estimate
    questions = tables.keep.size
    if count(sets, depth) <= SMALL:
        return small_set(sets, depth, tables, exact, work)
    slot = find(sets, depth, exact.words, exact.state)
    if slot >= 0 and question_at(slot, exact.words) >= 0:
        return float(exact.values[slot, exact.values.shape[1] - 2])
    slot = find(sets, depth, upper.words, upper.state)
    best = np.inf
    best_question = -1
    hurry = control[STOP] != 0 or control[NODES] >= control[BUDGET]
    if slot >= 0:
        best = upper.values[slot, upper.values.shape[1] - 2]
        best_question = question_at(slot, upper.words) % questions
        if hurry or question_at(slot, upper.words) // questions >= turn:
            return float(best)
    if hurry:
        width = 1
    control[NODES] += 1
    _rank_questions(depth, rate, tables, exact, work)
    for _ in range(width):
        question = least(estimate, depth)
        if estimate[depth, question] == np.inf:
            break
        estimate[depth, question] = np.inf
        below = 0.0
        for answer in range(2):
            take_side(sets, depth, question, answer, tables.one, sets, depth + 1)
            below += descend(depth + 1, rate, width, turn, tables, exact, upper, work, control)
        total = work.cost[depth, question] + tables.keep[question] * below
        if total < best:
            best = total
            best_question = question
    if best_question < 0:
        return 0.0
    tag = best_question + questions * turn
    store(sets, depth, best, tag, count(sets, depth), upper.words, upper.values, upper.state)
    return best
