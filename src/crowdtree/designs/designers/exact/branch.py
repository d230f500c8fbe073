"""The compiled depth-first branch and bound over class sets, with a memo of values and bounds."""

import numpy as np
import numpy.typing as npt

from ._jit import compiled
from .bitset import Words, count, list_members
from .blocks import blocks_bound
from .bounds import kraft_bound
from .cache import BOUND_ONLY, Cache, find, question_at, store
from .small import fill_parts, parts_bound, question_costs, small_value
from .solution import Floats
from .tables import SMALL, Tables, Work

Control = npt.NDArray[np.int64]
STOP, NODES, NODE_LIMIT, KRAFT, BUDGET = 0, 1, 2, 3, 4
LOWER, UPPER, TOLERANCE = 0, 1, 2


@compiled
def take_side(
    sets: Words, row: int, question: int, answer: int, one: Words, sides: Words, target: int
) -> None:
    """Write the classes of a set that give an answer into a row of `sides`."""
    for position in range(sets.shape[1]):
        if answer == 1:
            sides[target, position] = sets[row, position] & one[question, position]
        else:
            sides[target, position] = sets[row, position] & ~one[question, position]


@compiled
def splits(sets: Words, row: int, question: int, one: Words, known: Words) -> bool:
    """Whether a question applies to a set and both answers occur in it."""
    has_one = np.uint64(0)
    has_zero = np.uint64(0)
    unknown = np.uint64(0)
    for position in range(sets.shape[1]):
        word = sets[row, position]
        unknown |= word & ~known[question, position]
        has_one |= word & one[question, position]
        has_zero |= word & ~one[question, position]
    return bool(unknown == np.uint64(0) and has_one != np.uint64(0) and has_zero != np.uint64(0))


@compiled
def small_set(sets: Words, row: int, tables: Tables, cache: Cache, work: Work) -> float:
    """Value of a small set, remembered unless it has a slot in the tables."""
    size = count(sets, row)
    if size <= tables.tabled[0]:
        return small_value(sets, row, tables, work)
    slot = find(sets, row, cache.words, cache.state)
    if slot >= 0 and question_at(slot, cache.words) >= 0:
        return float(cache.values[slot, cache.values.shape[1] - 2])
    value = small_value(sets, row, tables, work)
    store(sets, row, value, 0, 1, cache.words, cache.values, cache.state)
    return value


@compiled
def _estimate(
    depth: int, limit: float, tables: Tables, cache: Cache, work: Work
) -> tuple[float, float, int]:
    """Estimate every question at a set from what is known of its sides.

    Questions that cannot beat the limit are dropped (infinite estimate). Returns the least
    estimate dropped, the best sum of two sides (a bound on the set itself), and how many
    questions split it.
    """
    sets, sides, estimate, cost = work.sets, work.sides, work.estimate, work.cost
    one, known, keep = tables.one, tables.known, tables.keep
    binomial, tabled, tiny = tables.binomial, tables.tabled, tables.tiny
    words, values, state = cache.words, cache.values, cache.state
    members, refined, blocks = work.members, work.refined, tables.blocks
    last = values.shape[1] - 2
    size = list_members(sets, depth, members)
    question_costs(members, size, tables.cost, cost, depth)
    dropped = np.inf
    together = 0.0
    splitting = 0
    for question in range(estimate.shape[1]):
        estimate[depth, question] = np.inf
        refined[depth, question] = False
        if not splits(sets, depth, question, one, known):
            continue
        splitting += 1
        if cost[depth, question] >= limit:
            dropped = min(dropped, cost[depth, question])
            continue
        below = 0.0
        for answer in range(2):
            take_side(sets, depth, question, answer, one, sides, answer)
            slot = -1
            if count(sides, answer) > tabled[0]:
                slot = find(sides, answer, words, state)
            if slot >= 0:
                below += values[slot, last]
            else:
                bound = parts_bound(sides, answer, binomial, tabled, tiny)
                if bound != bound:
                    bound = fill_parts(sides, answer, tables, work)
                below += max(bound, blocks_bound(sides, answer, blocks))
        together = max(together, below)
        total = cost[depth, question] + keep[question] * below
        if total >= limit:
            dropped = min(dropped, total)
        else:
            estimate[depth, question] = total
    return dropped, together, splitting


@compiled
def side_bound(
    sets: Words, row: int, kraft: bool, tables: Tables, cache: Cache, work: Work
) -> float:
    """Lower bound of a set from the memo, else from its parts and, if asked, from Kraft."""
    if count(sets, row) <= tables.tabled[0]:
        return small_value(sets, row, tables, work)
    slot = find(sets, row, cache.words, cache.state)
    if slot >= 0:
        return float(cache.values[slot, cache.values.shape[1] - 2])
    bound = max(fill_parts(sets, row, tables, work), blocks_bound(sets, row, tables.blocks))
    if kraft:
        bound = max(bound, kraft_bound(sets, row, tables, work))
        store(sets, row, bound, BOUND_ONLY, 1, cache.words, cache.values, cache.state)
    return bound


@compiled
def _refine(depth: int, question: int, tables: Tables, cache: Cache, work: Work) -> float:
    """Estimate of a question with the Kraft bound of both sides."""
    below = 0.0
    for answer in range(2):
        take_side(work.sets, depth, question, answer, tables.one, work.sides, answer)
        below += side_bound(work.sides, answer, True, tables, cache, work)
    return float(work.cost[depth, question] + tables.keep[question] * below)


@compiled
def least(values: Floats, row: int) -> int:
    """Column of the smallest entry of a row, the first one of several."""
    best = 0
    for place in range(1, values.shape[1]):
        if values[row, place] < values[row, best]:
            best = place
    return best


@compiled
def _bound_sides(
    depth: int, question: int, tables: Tables, cache: Cache, work: Work
) -> tuple[float, float, int]:
    """Lower bounds of both sides, and which of them is smaller."""
    sides = work.sides
    for answer in range(2):
        take_side(work.sets, depth, question, answer, tables.one, sides, answer)
    bound_0 = side_bound(sides, 0, False, tables, cache, work)
    bound_1 = side_bound(sides, 1, False, tables, cache, work)
    return bound_0, bound_1, 0 if count(sides, 0) <= count(sides, 1) else 1


@compiled
def search(
    depth: int,
    limit: float,
    tables: Tables,
    cache: Cache,
    work: Work,
    control: Control,
    status: Floats,
) -> tuple[float, bool]:
    """Solve the set in `work.sets[depth]` if its value is below a limit, else prove that it is not.

    Returns the value or a lower bound, and whether it is the value.
    """
    sets = work.sets
    if count(sets, depth) <= SMALL:
        return small_set(sets, depth, tables, cache, work), True
    limit -= status[TOLERANCE]
    slot = find(sets, depth, cache.words, cache.state)
    known = 0.0
    if slot >= 0:
        known = cache.values[slot, cache.values.shape[1] - 2]
        if question_at(slot, cache.words) >= 0:
            return known, True
        if known >= limit:
            return known, False
    if control[NODES] >= control[NODE_LIMIT]:
        control[STOP] = 1
    if control[STOP] != 0:
        return known, False
    before = control[NODES]
    control[NODES] += 1
    floor, together, splitting = _estimate(depth, limit, tables, cache, work)
    if splitting == 0:
        store(sets, depth, 0.0, 0, 1, cache.words, cache.values, cache.state)
        return 0.0, True
    known = max(known, together)
    best = np.inf
    best_question = -1
    estimate = work.estimate
    while known < limit and control[STOP] == 0:
        question = least(estimate, depth)
        expected = estimate[depth, question]
        if depth == 0:
            status[LOWER] = max(status[LOWER], min(min(best, floor), expected))
        if expected >= min(limit, best - status[TOLERANCE]):
            break
        if control[KRAFT] == 1 and not work.refined[depth, question]:
            work.refined[depth, question] = True
            estimate[depth, question] = max(expected, _refine(depth, question, tables, cache, work))
            continue
        estimate[depth, question] = np.inf
        ceiling = min(limit, best - status[TOLERANCE])
        keep = tables.keep[question]
        cost = work.cost[depth, question]
        bound_0, bound_1, answer = _bound_sides(depth, question, tables, cache, work)
        total = cost + keep * (bound_0 + bound_1)
        solved_0 = solved_1 = False
        allowed = (ceiling - cost) / keep if keep > 0.0 else np.inf
        # The smaller side first, but only up to its share of the limit: this usually suffices to
        # refute the question, and neither side has to be solved. Then the other side with
        # all that is left, and if that was solved, the first one again.
        for turn in range(3):
            if total >= ceiling:
                break
            if turn == 0:
                target = allowed * bound_0 / max(bound_0 + bound_1, 1e-300)
                if answer == 1:
                    target = allowed - target
            elif answer == 0:
                target = allowed - bound_1
            else:
                target = allowed - bound_0
            if not (solved_0 if answer == 0 else solved_1):
                take_side(sets, depth, question, answer, tables.one, sets, depth + 1)
                value, solved = search(depth + 1, target, tables, cache, work, control, status)
                if answer == 0:
                    bound_0, solved_0 = max(value, bound_0), solved
                else:
                    bound_1, solved_1 = max(value, bound_1), solved
                total = cost + keep * (bound_0 + bound_1)
                if control[STOP] != 0:
                    break
            answer = 1 - answer
        exact = solved_0 and solved_1
        if not exact:
            floor = min(floor, total)
        elif total < best:
            best = total
            best_question = question
    spent = control[NODES] - before
    words, values, state = cache.words, cache.values, cache.state
    if control[STOP] == 0 and best < limit and known < limit:
        store(sets, depth, best, best_question, spent, words, values, state)
        return best, True
    bound = max(known, min(min(best, floor), estimate[depth, least(estimate, depth)]))
    store(sets, depth, bound, BOUND_ONLY, spent, words, values, state)
    return bound, False
