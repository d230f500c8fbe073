"""Compiled branch and bound for the exact objective, where weights depend on the path.

A state is a class set and the set of questions asked on the path to it. The weight of a class is
multiplied by the probability that all answers on the path were right.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ._jit import compiled
from .bitset import Words, count, list_members
from .branch import (
    NODE_LIMIT,
    NODES,
    STOP,
    TOLERANCE,
    Control,
    least,
    side_bound,
    small_set,
    splits,
    take_side,
)
from .cache import BOUND_ONLY, Cache, find, question_at, store
from .solution import Floats
from .tables import SMALL, Tables, Work


class Path(NamedTuple):
    """Scratch of the dive, a row per depth.

    `survival` (depth, class) is the probability that each class reaches the state; `state`, the key
    of the memo, has the words of the classes, then those of the questions; `error` is (class,
    question).
    """

    survival: Floats
    error: Floats
    state: Words
    sets: Words
    cost: Floats
    estimate: Floats
    members: npt.NDArray[np.int64]


@compiled
def _relaxed(sets: Words, row: int, tables: Tables, cache: Cache, work: Work) -> float:
    """Bound of a set at its first weights, where a question costs all classes its worst error."""
    if count(sets, row) <= SMALL:
        return small_set(sets, row, tables, cache, work)
    return side_bound(sets, row, True, tables, cache, work)


@compiled
def _side_estimate(
    depth: int,
    size: int,
    question: int,
    answer: int,
    tables: Tables,
    cache: Cache,
    work: Work,
    path: Path,
) -> float:
    """Lower bound of one side of a question, with the weights that arrive there.

    The cost of a set is monotone and homogeneous in its weights, so it is at least the smallest
    share of weight left times the cost at the first weights.
    """
    share = 1.0
    for place in range(size):
        member = path.members[depth, place]
        if tables.answer[member, question] == answer and tables.weight[member] > 0.0:
            left = path.survival[depth, member] * (1.0 - path.error[member, question])
            share = min(share, left)
    take_side(path.sets, depth, question, answer, tables.one, work.sides, answer)
    return share * _relaxed(work.sides, answer, tables, cache, work)


@compiled
def _estimate_all(depth: int, tables: Tables, cache: Cache, work: Work, path: Path) -> int:
    """Estimate every question at a state; return how many split its set."""
    size = list_members(path.sets, depth, work.members)
    for place in range(size):
        path.members[depth, place] = work.members[place]
    splitting = 0
    for question in range(path.cost.shape[1]):
        path.estimate[depth, question] = np.inf
        if not splits(path.sets, depth, question, tables.one, tables.known):
            continue
        splitting += 1
        spent = 0.0
        for place in range(size):
            member = path.members[depth, place]
            arriving = tables.weight[member] * path.survival[depth, member]
            spent += arriving * path.error[member, question]
        path.cost[depth, question] = spent
        below = 0.0
        if size > 2:
            for answer in range(2):
                below += _side_estimate(depth, size, question, answer, tables, cache, work, path)
        path.estimate[depth, question] = spent + below
    return splitting


@compiled
def _enter(depth: int, question: int, answer: int, tables: Tables, path: Path) -> None:
    """Write the state one question further into the next row."""
    words = path.sets.shape[1]
    take_side(path.sets, depth, question, answer, tables.one, path.sets, depth + 1)
    for position in range(path.state.shape[1]):
        path.state[depth + 1, position] = path.state[depth, position]
    for position in range(words):
        path.state[depth + 1, position] = path.sets[depth + 1, position]
    path.state[depth + 1, words + question // 64] |= np.uint64(1) << np.uint64(question % 64)
    for member in range(path.survival.shape[1]):
        chance = 1.0 - path.error[member, question]
        path.survival[depth + 1, member] = path.survival[depth, member] * chance


@compiled
def dive(
    depth: int,
    limit: float,
    tables: Tables,
    cache: Cache,
    memo: Cache,
    work: Work,
    path: Path,
    control: Control,
    status: Floats,
) -> tuple[float, bool]:
    """Solve the state in row `depth` if its loss is below a limit, else prove that it is not."""
    if count(path.sets, depth) < 2:
        return 0.0, True
    limit -= status[TOLERANCE]
    slot = find(path.state, depth, memo.words, memo.state)
    known = 0.0
    if slot >= 0:
        known = memo.values[slot, memo.values.shape[1] - 2]
        if question_at(slot, memo.words) >= 0:
            return known, True
        if known >= limit:
            return known, False
    if control[NODES] >= control[NODE_LIMIT]:
        control[STOP] = 1
    if control[STOP] != 0:
        return known, False
    before = control[NODES]
    control[NODES] += 1
    if _estimate_all(depth, tables, cache, work, path) == 0:
        store(path.state, depth, 0.0, 0, 1, memo.words, memo.values, memo.state)
        return 0.0, True
    best = np.inf
    best_question = -1
    floor = np.inf
    while control[STOP] == 0:
        question = least(path.estimate, depth)
        expected = path.estimate[depth, question]
        ceiling = min(limit, best - status[TOLERANCE])
        if expected >= ceiling:
            break
        path.estimate[depth, question] = np.inf
        cost = path.cost[depth, question]
        size = count(path.sets, depth)
        bound_0 = bound_1 = 0.0
        if size > 2:
            bound_0 = _side_estimate(depth, size, question, 0, tables, cache, work, path)
            bound_1 = _side_estimate(depth, size, question, 1, tables, cache, work, path)
        total = cost + bound_0 + bound_1
        exact = True
        for answer in range(2):
            if total >= ceiling:
                exact = False
                break
            _enter(depth, question, answer, tables, path)
            allowance = ceiling - cost - (bound_1 if answer == 0 else bound_0)
            value, exact = dive(
                depth + 1, allowance, tables, cache, memo, work, path, control, status
            )
            # A solved side counts at its value, which rounding may leave just below its bound.
            if answer == 0:
                bound_0 = value if exact else max(value, bound_0)
            else:
                bound_1 = value if exact else max(value, bound_1)
            total = cost + bound_0 + bound_1
            if not exact:
                break
        if not exact:
            floor = min(floor, total)
        elif total < best:
            best = total
            best_question = question
    spent = control[NODES] - before
    if control[STOP] == 0 and best < limit:
        store(path.state, depth, best, best_question, spent, memo.words, memo.values, memo.state)
        return best, True
    bound = max(known, min(min(best, floor), path.estimate[depth, least(path.estimate, depth)]))
    store(path.state, depth, bound, BOUND_ONLY, spent, memo.words, memo.values, memo.state)
    return bound, False
