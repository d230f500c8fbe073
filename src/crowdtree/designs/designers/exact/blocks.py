"""Disjoint pattern databases: exact values of all subsets of fixed blocks of sixteen classes.

A set costs at least the sum of its parts in the blocks. The classes are put in the order of the
leaves of a good tree first, so that the sets that matter lie in few blocks.
"""

import numpy as np
import numpy.typing as npt

from ._jit import compiled
from .bitset import Words
from .small import Halves
from .solution import Floats
from .tables import Tables

BLOCK = 16
HALF = 8


@compiled
def _half_costs(base: int, size: int, cost: Floats, halves: Floats) -> None:
    """Cost of each question at every subset of the classes `base`, ..., `base + size - 1`."""
    for variant in range(cost.shape[0]):
        for question in range(cost.shape[2]):
            halves[variant, 0, question] = 0.0
        for high in range(size):
            for low in range(1 << high):
                for question in range(cost.shape[2]):
                    halves[variant, low | (1 << high), question] = (
                        halves[variant, low, question] + cost[variant, base + high, question]
                    )


@compiled
def _best_split(
    mask: int,
    block: int,
    lower: Floats,
    upper: Floats,
    keep: Floats,
    local: Halves,
    values: Floats,
) -> float:
    """Least cost plus value of both sides over the questions; 0 if none splits the mask."""
    best = np.inf
    low = mask & ((1 << HALF) - 1)
    high = mask >> HALF
    for question in range(keep.size):
        if mask & np.int64(local[1, question]):
            continue
        one = mask & np.int64(local[0, question])
        spent = lower[0, low, question] + upper[0, high, question]
        for variant in range(1, lower.shape[0]):
            spent = min(spent, lower[variant, low, question] + upper[variant, high, question])
        # The empty set has an infinite value, so a question that does not split never wins.
        below = values[block, one] + values[block, mask ^ one]
        best = min(best, spent + keep[question] * below)
    return best if best < np.inf else 0.0


@compiled
def fill_blocks(
    tables: Tables,
    values: Floats,
    lower: Floats,
    upper: Floats,
    local: Halves,
    control: npt.NDArray[np.int64],
) -> None:
    """Fill `values[block, subset]` by dynamic programming, subsets before supersets.

    Ends early when the first entry of `control` is set: what is not filled is a bound of 0.
    """
    classes = tables.weight.size
    cost, keep, answer, dash = tables.cost, tables.keep, tables.answer, tables.dash
    for block in range(values.shape[0]):
        base = block * BLOCK
        size = min(BLOCK, classes - base)
        _half_costs(base, min(size, HALF), cost, lower)
        _half_costs(base + HALF, max(size - HALF, 0), cost, upper)
        for question in range(keep.size):
            local[0, question] = np.uint16(0)
            local[1, question] = np.uint16(0)
            for place in range(size):
                local[0, question] |= answer[base + place, question] << np.uint16(place)
                local[1, question] |= dash[base + place, question] << np.uint16(place)
        values[block, 0] = np.inf
        for mask in range(1, 1 << size):
            if control[0] != 0:
                break
            if mask & (mask - 1) == 0:
                values[block, mask] = 0.0
            else:
                values[block, mask] = _best_split(mask, block, lower, upper, keep, local, values)
        values[block, 0] = 0.0


@compiled
def blocks_bound(sets: Words, row: int, values: Floats) -> float:
    """Sum of the values of a set's parts in the blocks."""
    total = 0.0
    for block in range(values.shape[0]):
        word = sets[row, block >> 2] >> np.uint64((block & 3) * BLOCK)
        total += values[block, np.int64(word & np.uint64((1 << BLOCK) - 1))]
    return total


def build_blocks(tables: Tables, local: Halves, control: npt.NDArray[np.int64]) -> Floats:
    """Values of all subsets of every block, unless stopped before."""
    classes = tables.weight.size
    questions = tables.keep.size
    variants = tables.cost.shape[0]
    values = np.zeros((-(-classes // BLOCK), 1 << min(BLOCK, classes)))
    halves = np.zeros((2, variants, 1 << HALF, questions))
    fill_blocks(tables, values, halves[0], halves[1], local, control)
    return values
