"""Exact values of small class sets: tables of tiny sets, and a local dynamic program above them.

The functions here are called millions of times. They take plain arrays and row numbers, because
handing over tuples of arrays or slices costs more than the work itself.
"""

import numpy as np
import numpy.typing as npt

from ._jit import compiled, lowest_bit, popcount
from .bitset import WORD, Words, list_members
from .solution import Floats
from .tables import Tables, Work

Ints = npt.NDArray[np.int64]
Halves = npt.NDArray[np.uint16]
Flags = npt.NDArray[np.bool_]


@compiled
def question_costs(members: Ints, size: int, cost: Floats, out: Floats, row: int) -> None:
    """Cost of asking each question at a set: the cheapest variant's sum over its classes.

    Written into row `row` of `out`; the last row of `out` is scratch.
    """
    questions = out.shape[1]
    last = out.shape[0] - 1
    for variant in range(cost.shape[0]):
        target = row if variant == 0 else last
        for question in range(questions):
            out[target, question] = cost[variant, members[0], question]
        for place in range(1, size):
            member = members[place]
            for question in range(questions):
                out[target, question] += cost[variant, member, question]
        if variant > 0:
            for question in range(questions):
                out[row, question] = min(out[row, question], out[last, question])


@compiled
def parts_bound(sets: Words, row: int, binomial: Ints, tabled: Ints, tiny: Floats) -> float:
    """Sum of the values of tiny parts, taken in class order: a set costs at least its parts.

    Not a number if one of them has not been computed yet.
    """
    total = 0.0
    size = 0
    rank = np.int64(0)
    largest = tabled[0]
    for position in range(sets.shape[1]):
        word = sets[row, position]
        while word != np.uint64(0):
            size += 1
            rank += binomial[lowest_bit(word) + WORD * position, size]
            word &= word - np.uint64(1)
            if size == largest:
                if size > 1:
                    total += tiny[tabled[size - 1] + rank]
                size = 0
                rank = np.int64(0)
    if size > 1:
        total += tiny[tabled[size - 1] + rank]
    return total


@compiled
def _load_answers(members: Ints, size: int, answer: Halves, dash: Halves, local: Halves) -> None:
    """Write the answers (row 0) and dashes (row 1) of a set as local masks, by question."""
    questions = local.shape[1]
    for question in range(questions):
        local[0, question] = answer[members[0], question]
        local[1, question] = dash[members[0], question]
    for place in range(1, size):
        member = members[place]
        shift = np.uint16(place)
        for question in range(questions):
            local[0, question] |= answer[member, question] << shift
            local[1, question] |= dash[member, question] << shift


@compiled
def _mask_costs(mask: int, row: int, members: Ints, cost: Floats, costs: Floats) -> None:
    """Cost of asking each question at a local mask, into a row of `costs`."""
    questions = costs.shape[1]
    last = costs.shape[0] - 1
    for variant in range(cost.shape[0]):
        target = row if variant == 0 else last
        rest = mask
        first = True
        while rest:
            member = members[lowest_bit(np.uint64(rest))]
            rest &= rest - 1
            if first:
                for question in range(questions):
                    costs[target, question] = cost[variant, member, question]
                first = False
            else:
                for question in range(questions):
                    costs[target, question] += cost[variant, member, question]
        if variant > 0:
            for question in range(questions):
                costs[row, question] = min(costs[row, question], costs[last, question])


@compiled
def _mask_value(
    mask: int,
    members: Ints,
    cost: Floats,
    keep: Floats,
    local: Halves,
    lower: Floats,
    exact: Flags,
    costs: Floats,
    estimates: Floats,
) -> float:
    """Exact value of a local mask; `lower` holds values or bounds of its subsets."""
    if exact[mask]:
        return float(lower[mask])
    row = popcount(np.uint64(mask))
    _mask_costs(mask, row, members, cost, costs)
    best = np.inf
    waiting = 0
    for question in range(costs.shape[1]):
        estimates[row, question] = np.inf
        one = mask & int(local[0, question])
        zero = mask ^ one
        if one == 0 or zero == 0 or mask & int(local[1, question]):
            continue
        total = costs[row, question] + keep[question] * (lower[one] + lower[zero])
        if exact[one] and exact[zero]:
            best = min(best, total)
        else:
            estimates[row, question] = total
            waiting += 1
    while waiting:
        question = 0
        for other in range(1, costs.shape[1]):
            if estimates[row, other] < estimates[row, question]:
                question = other
        if estimates[row, question] >= best:
            break
        estimates[row, question] = np.inf
        waiting -= 1
        below = 0.0
        one = mask & int(local[0, question])
        for side in (one, mask ^ one):
            below += _mask_value(side, members, cost, keep, local, lower, exact, costs, estimates)
        best = min(best, costs[row, question] + keep[question] * below)
    lower[mask] = best if best < np.inf else 0.0  # nothing splits it: a group
    exact[mask] = True
    return float(lower[mask])


@compiled
def _local_value(size: int, tables: Tables, work: Work) -> float:
    """Value of the set whose classes are in `work.local_members`.

    Subsets with a slot in the tables are read from there (and computed when first met); larger
    ones start from the sum of two parts and are solved only if the search asks for them.
    """
    members, local, lower, exact = (
        work.local_members, work.local, work.local_lower, work.local_exact,
    )  # fmt: skip
    ranks, binomial, tabled, tiny = work.local_rank, tables.binomial, tables.tabled, tables.tiny
    cost, keep, costs, estimates = (
        tables.cost, tables.keep, work.local_cost, work.local_estimate,
    )  # fmt: skip
    _load_answers(members, size, tables.answer, tables.dash, local)
    largest = tabled[0]
    ranks[0] = 0
    lower[0] = 0.0
    exact[0] = True
    for high in range(size):
        for low in range(1 << high):
            mask = low | (1 << high)
            inside = popcount(np.uint64(mask))
            if inside == 1:
                lower[mask] = 0.0
                exact[mask] = True
                ranks[mask] = binomial[members[high], 1]
                continue
            if inside > largest:
                exact[mask] = False
                rest = mask
                for _ in range(largest):
                    rest &= rest - 1
                lower[mask] = lower[rest] + lower[mask ^ rest]
                continue
            ranks[mask] = ranks[low] + binomial[members[high], inside]
            slot = tabled[inside - 1] + ranks[mask]
            exact[mask] = tiny[slot] == tiny[slot]
            lower[mask] = tiny[slot]
            if not exact[mask]:
                tiny[slot] = _mask_value(
                    mask, members, cost, keep, local, lower, exact, costs, estimates
                )
    full = (1 << size) - 1
    return _mask_value(full, members, cost, keep, local, lower, exact, costs, estimates)


@compiled
def small_value(sets: Words, row: int, tables: Tables, work: Work) -> float:
    """Value of a set of at most SMALL classes."""
    size = list_members(sets, row, work.local_members)
    if size < 2:
        return 0.0
    if size <= tables.tabled[0]:
        slot = tables.tabled[size - 1]
        for place in range(size):
            slot += tables.binomial[work.local_members[place], place + 1]
        if tables.tiny[slot] == tables.tiny[slot]:
            return float(tables.tiny[slot])
    return _local_value(size, tables, work)


@compiled
def fill_parts(sets: Words, row: int, tables: Tables, work: Work) -> float:
    """Sum of the values of tiny parts as in `parts_bound`, computing those that are missing."""
    binomial, tabled, tiny = tables.binomial, tables.tabled, tables.tiny
    total = parts_bound(sets, row, binomial, tabled, tiny)
    if total == total:
        return total
    members = work.local_members
    size = 0
    for position in range(sets.shape[1]):
        word = sets[row, position]
        while word != np.uint64(0):
            members[size] = lowest_bit(word) + WORD * position
            word &= word - np.uint64(1)
            size += 1
            if size == tabled[0]:
                _local_value(size, tables, work)
                size = 0
    if size > 1:
        _local_value(size, tables, work)
    return parts_bound(sets, row, binomial, tabled, tiny)
