"""The Kraft bound: no tree beats the best prefix code with the classes' cheapest steps."""

import numpy as np
import numpy.typing as npt

from ._jit import compiled
from .bitset import Words, list_members
from .solution import Floats
from .tables import Tables, Work

SPARE_LEVELS = 4
Ints = npt.NDArray[np.int64]


@compiled
def _mark_splitting(
    sets: Words, row: int, one: Words, known: Words, splits: npt.NDArray[np.bool_]
) -> None:
    """Mark the questions for which both answers occur in a set."""
    for question in range(splits.size):
        has_one = np.uint64(0)
        has_zero = np.uint64(0)
        for position in range(sets.shape[1]):
            word = sets[row, position]
            ones = word & one[question, position]
            has_one |= ones
            has_zero |= (word & known[question, position]) ^ ones
        splits[question] = has_one != np.uint64(0) and has_zero != np.uint64(0)


@compiled
def _fill_steps(
    member: int,
    row: int,
    levels: int,
    cheapest: Ints,
    cheapest_cost: Floats,
    keep: Floats,
    splits: npt.NDArray[np.bool_],
    steps: Floats,
) -> None:
    """Least cost of a class's first, second, ... question in a set, made non-decreasing.

    The questions of a path differ, so d of them cost at least the d cheapest. With `keep` below 1
    later steps are discounted; averaging violators (isotonic regression) gives the largest convex
    function below, which package-merge requires.
    """
    level = 0
    remaining = 1.0
    for place in range(cheapest.shape[1]):
        question = cheapest[member, place]
        if question < 0:
            break
        if not splits[question]:
            continue
        steps[row, level] = cheapest_cost[member, place] * remaining
        remaining *= keep[question]
        level += 1
        if level == levels:
            break
    while level < levels:
        steps[row, level] = np.inf
        level += 1
    for last in range(1, levels):
        if steps[row, last] >= steps[row, last - 1]:
            continue
        start = last
        total = steps[row, last]
        while start > 0 and steps[row, start - 1] * (last - start + 1) > total:
            start -= 1
            total += steps[row, start]
        for place in range(start, last + 1):
            steps[row, place] = total / (last - start + 1)


@compiled
def kraft_bound(sets: Words, row: int, tables: Tables, work: Work) -> float:
    """Least sum of step costs over all depths that satisfy Kraft's inequality (package-merge).

    References
    ----------
    Larmore and Hirschberg (1990), A fast algorithm for optimal length-limited Huffman codes.
    """
    representative = tables.representative
    members = work.members
    cheapest, cheapest_cost, keep = tables.cheapest, tables.cheapest_cost, tables.keep
    marks, steps, order, coins = work.splits, work.steps, work.order, work.coins
    every = list_members(sets, row, members)
    size = 0
    for place in range(every):
        if representative[members[place]]:
            members[size] = members[place]
            size += 1
    if size < 2:
        return 0.0
    levels = 0
    while (1 << levels) < size:
        levels += 1
    levels = min(levels + SPARE_LEVELS, size - 1, steps.shape[1])
    _mark_splitting(sets, row, tables.one, tables.known, marks)
    for place in range(size):
        _fill_steps(members[place], place, levels, cheapest, cheapest_cost, keep, marks, steps)
    return _package_merge(size, levels, steps, order, coins)


@compiled
def _sort_column(size: int, level: int, steps: Floats, order: Ints) -> None:
    """Sort the rows by one column; insertion, as the order barely changes between columns."""
    for place in range(1, size):
        row = order[place]
        value = steps[row, level]
        before = place - 1
        while before >= 0 and steps[order[before], level] > value:
            order[before + 1] = order[before]
            before -= 1
        order[before + 1] = row


@compiled
def _package_merge(size: int, levels: int, steps: Floats, order: Ints, coins: Floats) -> float:
    """Cheapest coins worth `size - 1`, where step d of a class is worth 2**-d."""
    count = 0
    for place in range(size):
        order[place] = place
    for level in range(levels - 1, -1, -1):
        _sort_column(size, level, steps, order)
        if level == levels - 1 and levels < size - 1:
            # Deeper levels are cut off: the last step then frees all that is left, for no more
            # than it costs, so its coins join those one level up and the bound stays valid.
            for place in range(size):
                coins[0, place] = steps[order[place], level]
            count = size
            continue
        taken = 0
        total = 0
        for place in range(size):
            value = steps[order[place], level]
            while taken < count and coins[0, taken] <= value:
                coins[1, total] = coins[0, taken]
                taken += 1
                total += 1
            coins[1, total] = value
            total += 1
        while taken < count:
            coins[1, total] = coins[0, taken]
            taken += 1
            total += 1
        count = total // 2
        for pair in range(count):
            coins[0, pair] = coins[1, 2 * pair] + coins[1, 2 * pair + 1]
    answer = 0.0
    for pair in range(size - 1):
        answer += coins[0, pair]
    return answer
