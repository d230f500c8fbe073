"""Input of the compiled search: bit sets, weighted costs and the values of tiny sets."""

from math import comb
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .bitset import Words, pack
from .groups import final_groups
from .solution import Floats

SMALL = 8  # sets up to this size are solved directly, in local bit masks
LARGEST_TABLED = 4  # sets up to this size have a slot of their own


class Tables(NamedTuple):
    """The problem, laid out for the search.

    `one` and `known` (question, word) are the classes answered 1 and those with a definite answer;
    `answer` and `dash` the same by class, for small sets. `cost` (variant, class, question) is
    weight x cost, and `keep` what remains of the cost below a question (1: additive). `cheapest`
    are the questions of a class by their least cost, -1 after the last definite one, at
    `cheapest_cost`. `representative` marks one class of every group that no tree separates. `tiny`
    has the values of all sets of two to four classes, filled when first needed; `tabled` the
    largest tabled size and the offsets of sizes in it. `blocks` has those of all subsets of sixteen
    consecutive classes, once built.
    """

    one: Words
    known: Words
    answer: npt.NDArray[np.uint16]
    dash: npt.NDArray[np.uint16]
    cost: Floats
    keep: Floats
    cheapest: npt.NDArray[np.int64]
    cheapest_cost: Floats
    representative: npt.NDArray[np.bool_]
    weight: Floats
    binomial: npt.NDArray[np.int64]
    tabled: npt.NDArray[np.int64]
    tiny: Floats
    blocks: Floats


class Work(NamedTuple):
    """Scratch memory of the search, one row per depth where recursion needs it."""

    members: npt.NDArray[np.int64]
    local_members: npt.NDArray[np.int64]
    local: npt.NDArray[np.uint16]
    local_rank: npt.NDArray[np.int64]
    local_lower: Floats
    local_exact: npt.NDArray[np.bool_]
    local_cost: Floats
    local_estimate: Floats
    splits: npt.NDArray[np.bool_]
    steps: Floats
    order: npt.NDArray[np.int64]
    coins: Floats
    sets: Words
    sides: Words
    cost: Floats
    estimate: Floats
    refined: npt.NDArray[np.bool_]


def _largest_tabled(classes: int, memory_limit_bytes: int) -> int:
    size = 1
    total = 0
    while size < LARGEST_TABLED:
        total += 8 * comb(classes, size + 1)
        if total > memory_limit_bytes // 4:
            break
        size += 1
    return size


def build(
    outcome: npt.NDArray[np.int8],
    cost: Floats,
    weight: Floats,
    keep: Floats,
    memory_limit_bytes: int,
) -> Tables:
    """Lay out a problem for the search; `cost` is (variant, question, class)."""
    questions, classes = outcome.shape
    known = outcome >= 0
    weighted = np.where(known, cost * weight, 0.0)
    least = np.where(known, weighted.min(axis=0), np.inf).T
    order = np.argsort(least, axis=1, kind="stable")
    least = np.take_along_axis(least, order, axis=1)
    order[np.isinf(least)] = -1
    representative = np.zeros(classes, dtype=bool)
    for group in final_groups(outcome):
        representative[group[int(np.argmax(weight[group]))]] = True
    binomial = np.array([[comb(n, k) for k in range(5)] for n in range(classes + 1)])
    largest = _largest_tabled(classes, memory_limit_bytes)
    sizes = [comb(classes, k) if k <= largest else 0 for k in (2, 3, 4)]
    offsets = [0, sizes[0], sizes[0] + sizes[1]]
    return Tables(
        one=pack(outcome == 1).reshape(questions, -1),
        known=pack(known).reshape(questions, -1),
        answer=np.ascontiguousarray((outcome == 1).T.astype(np.uint16)),
        dash=np.ascontiguousarray((~known).T.astype(np.uint16)),
        cost=np.ascontiguousarray(weighted.transpose(0, 2, 1)),
        keep=np.ascontiguousarray(keep, dtype=np.float64),
        cheapest=np.ascontiguousarray(order, dtype=np.int64),
        cheapest_cost=np.ascontiguousarray(least),
        representative=representative,
        weight=np.ascontiguousarray(weight, dtype=np.float64),
        binomial=binomial.astype(np.int64),
        tabled=np.array([largest, *offsets], dtype=np.int64),
        tiny=np.full(max(1, sum(sizes)), np.nan),
        blocks=np.zeros((0, 1)),
    )


def scratch(tables: Tables) -> Work:
    """Reserve the scratch memory of one search."""
    questions, words = tables.one.shape
    classes = tables.weight.size
    depth = classes + 1
    return Work(
        members=np.zeros(classes + 1, np.int64),
        local_members=np.zeros(classes + SMALL, np.int64),
        local=np.zeros((2, questions), np.uint16),
        local_rank=np.zeros(1 << SMALL, np.int64),
        local_lower=np.zeros(1 << SMALL),
        local_exact=np.zeros(1 << SMALL, np.bool_),
        local_cost=np.zeros((SMALL + 2, questions)),
        local_estimate=np.zeros((SMALL + 1, questions)),
        splits=np.zeros(questions, np.bool_),
        steps=np.zeros((classes, 40)),
        order=np.zeros(classes, np.int64),
        coins=np.zeros((2, 4 * classes + 8)),
        sets=np.zeros((depth, words), np.uint64),
        sides=np.zeros((2, words), np.uint64),
        cost=np.zeros((depth + 1, questions)),
        estimate=np.zeros((depth, questions)),
        refined=np.zeros((depth, questions), np.bool_),
    )
