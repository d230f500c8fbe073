"""Compiled readers for large tables: the same numbers as the plain ones, in parallel.

Imported only for large problems, because importing and compiling cost more than a small design.
Tables of a level are kept question by question, as they are read; what is handed out is their
transpose (one row per node), which costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import log2

import numpy as np
from numba import get_num_threads, prange, set_num_threads
from numpy.typing import NDArray

from crowdtree.core.jit import compiled
from crowdtree.core.problem import Problem

IntArray = NDArray[np.int32]
FloatArray = NDArray[np.float64]

_SMALL = 8  # classes up to which the gain of a node is looked up by its pattern of answers
_ANY_ORDER = {"reassoc", "contract", "nsz"}  # allow reordering of sums, and no other fast-math flag


@contextmanager
def _threads(cells: int, enough: int = 1_000_000) -> Iterator[None]:
    """Limit the threads for small work, where synchronisation costs more than it saves."""
    most = get_num_threads()
    set_num_threads(min(most, max(1, cells // enough)))
    try:
        yield
    finally:
        set_num_threads(most)


def read_level(
    problem: Problem, cls: IntArray, share: FloatArray, start: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Read gain and error of every question at every open node, question by question."""
    shape = (problem.n_questions, len(start) - 1)
    gain, error = np.empty(shape), np.empty(shape)
    per_cell = not problem.error_per_question
    table = problem.worker_error if per_cell else np.ascontiguousarray(problem.worker_error[:, :1])
    strict = problem.dash == "inapplicable"
    whole = np.add.reduceat(share, start[:-1])
    by_pattern = _gain_by_pattern(share, start, whole)
    place = cls.astype(np.uint32)  # unsigned: skips the test for negative indices
    with _threads(problem.n_questions * len(cls)):
        _read(
            problem.outcome, table, per_cell, strict, place, share, start, whole, by_pattern,
            gain, error,
        )  # fmt: skip
    return gain.T, error.T


@compiled()
def _xlog2(x: float) -> float:
    return x * log2(x) if x > 0.0 else 0.0


@compiled()
def _gain_by_pattern(share, start, whole):  # type: ignore[no-untyped-def]
    """Gain of each small node for each pattern of answers (bit i: the i-th class says yes)."""
    n_nodes = len(start) - 1
    table = np.full((n_nodes, 1 << _SMALL), -np.inf)
    for k in range(n_nodes):
        size = start[k + 1] - start[k]
        if size <= _SMALL:
            for pattern in range(1, (1 << size) - 1):
                yes = 0.0
                no = 0.0
                for i in range(size):
                    if (pattern >> i) & 1:
                        yes += share[start[k] + i]
                    else:
                        no += share[start[k] + i]
                drop = _xlog2(whole[k]) - _xlog2(yes) - _xlog2(no)
                table[k, pattern] = max(drop, 0.0)
    return table


@compiled(parallel=True, fastmath=_ANY_ORDER)
def _read(  # type: ignore[no-untyped-def]
    outcome, worker_error, per_cell, strict, cls, share, start, whole, by_pattern, gain, error
):
    n_nodes = start.shape[0] - 1
    for q in prange(outcome.shape[0]):
        answers = outcome[q].copy()  # one sequential pass; random access then stays in the cache
        errors = worker_error[q].copy()
        definite = answers.min() >= 0
        for k in range(n_nodes):
            here = cls[start[k] : start[k + 1]]
            part = share[start[k] : start[k + 1]]
            size = len(here)
            if per_cell:
                wrong = 0.0
                if definite:
                    for i in range(size):
                        wrong += part[i] * errors[here[i]]
                else:
                    for i in range(size):
                        wrong += part[i] * errors[here[i]] if answers[here[i]] >= 0 else 0.0
            if definite and size <= _SMALL:
                pattern = 0
                for i in range(size):
                    pattern |= answers[here[i]] << i
                gain[q, k] = by_pattern[k, pattern]
                either = 0.0
            elif definite:
                yes = 0.0
                ones = 0
                for i in range(size):
                    yes += part[i] * answers[here[i]]
                    ones += answers[here[i]]
                gain[q, k] = _drop(whole[k], yes, 0.0, ones, size - ones)
                either = 0.0
            else:
                yes = 0.0
                either = 0.0
                ones = 0
                zeros = 0
                for i in range(size):
                    answer = answers[here[i]]
                    yes += part[i] if answer == 1 else 0.0
                    either += part[i] if answer < 0 else 0.0
                    ones += answer == 1
                    zeros += answer == 0
                if strict and ones + zeros < size:
                    zeros = 0  # does not apply
                gain[q, k] = _drop(whole[k], yes + either / 2, either, ones, zeros)
            error[q, k] = wrong if per_cell else (whole[k] - either) * errors[0]


@compiled()
def _drop(whole, yes, either, ones, zeros):  # type: ignore[no-untyped-def]
    """Fall of the entropy at a node; -inf unless both answers occur."""
    if ones == 0 or zeros == 0:
        return -np.inf
    drop = _xlog2(whole) - _xlog2(yes) - _xlog2(max(whole - yes, 0.0)) - either
    return max(drop, 0.0)


def best_questions(
    gain: FloatArray, error: FloatArray, price: float, slack: float, nodes: NDArray[np.intp]
) -> tuple[NDArray[np.intp], FloatArray]:
    """First question of some nodes whose ``gain - price x error`` is largest, up to the slack.

    Also the least error of any question that splits the node.
    """
    best = np.empty(len(nodes), dtype=np.intp)
    least = np.empty(len(nodes))
    with _threads(len(nodes) * gain.shape[1]):
        _best(_by_question(gain), _by_question(error), price, slack, nodes, best, least)
    return best, least


def hull_corners(gain: FloatArray, error: FloatArray, slack: float) -> list[NDArray[np.intp]]:
    """Corners of every node's upper left hull, from the least error up.

    The i-th array holds the i-th corner of each node, -1 where the node has no more.
    """
    gain, error = _by_question(gain), _by_question(error)
    corner = np.full(gain.shape[1], -1, dtype=np.intp)
    _first_corner(gain, error, slack, corner)
    found = [corner]
    while True:
        corner = np.full(gain.shape[1], -1, dtype=np.intp)
        _next_corner(gain, error, slack, found[-1], corner)
        if np.all(corner < 0):
            return found
        found.append(corner)


def first_alike(
    choice: NDArray[np.intp], gain: FloatArray, error: FloatArray, slack: float
) -> NDArray[np.intp]:
    """Replace each question by the first in the file with the same effect at its node."""
    first = choice.copy()
    _first_same(_by_question(gain), _by_question(error), slack, first)
    return first


def _by_question(table: FloatArray) -> FloatArray:
    return np.ascontiguousarray(table.T)


_CHUNK = 128  # nodes that a thread handles together: a few cache lines of every question


@compiled(parallel=True)
def _best(gain, error, price, slack, nodes, best, least):  # type: ignore[no-untyped-def]
    for chunk in prange((len(nodes) + _CHUNK - 1) // _CHUNK):
        first = chunk * _CHUNK
        here = nodes[first : first + _CHUNK]
        width = len(here)
        top = np.full(width, -np.inf)
        reach = np.full(width, -np.inf)  # the largest value plus slack so far ...
        rival = np.full(width, -np.inf)  # ... and what it was when the winner came
        least[first : first + width] = np.inf
        for q in range(gain.shape[0]):
            for i in range(width):
                plus = gain[q, here[i]]
                if plus > -np.inf:
                    wrong = error[q, here[i]]
                    loss = price * wrong
                    if plus - loss > top[i]:
                        top[i] = plus - loss
                        rival[i] = reach[i]
                        best[first + i] = q
                    reach[i] = max(reach[i], plus - loss + slack * (plus + loss))
                    least[first + i] = min(least[first + i], wrong)
        for i in range(width):
            if rival[i] >= top[i]:  # a tie with an earlier question: look for the first
                for q in range(gain.shape[0]):
                    plus = gain[q, here[i]]
                    loss = price * error[q, here[i]]
                    if plus - loss + slack * (plus + loss) >= top[i]:
                        best[first + i] = q
                        break


@compiled(parallel=True)
def _first_corner(gain, error, slack, corner):  # type: ignore[no-untyped-def]
    """Find the least error, and among equals (up to the slack) the largest gain."""
    for chunk in prange((gain.shape[1] + _CHUNK - 1) // _CHUNK):
        first = chunk * _CHUNK
        last = min(first + _CHUNK, gain.shape[1])
        least = np.full(last - first, np.inf)
        for q in range(gain.shape[0]):
            for k in range(first, last):
                if gain[q, k] > -np.inf:
                    least[k - first] = min(least[k - first], error[q, k])
        for q in range(gain.shape[0]):
            for k in range(first, last):
                if gain[q, k] > -np.inf and error[q, k] <= least[k - first] * (1 + slack):
                    c = corner[k]
                    if c < 0 or gain[q, k] > gain[c, k] * (1 + slack):
                        corner[k] = q


@compiled(parallel=True)
def _next_corner(gain, error, slack, here, corner):  # type: ignore[no-untyped-def]
    """Find the steepest edge from a corner, and among equals the farthest end."""
    for chunk in prange((gain.shape[1] + _CHUNK - 1) // _CHUNK):
        first = chunk * _CHUNK
        last = min(first + _CHUNK, gain.shape[1])
        steepest = np.zeros(last - first)
        for q in range(gain.shape[0]):
            for k in range(first, last):
                c = here[k]
                if c >= 0 and gain[q, k] > gain[c, k] * (1 + slack):
                    far = error[q, k] - error[c, k]
                    if far > slack * error[c, k]:
                        slope = (gain[q, k] - gain[c, k]) / far
                        best = steepest[k - first]
                        farther = corner[k] >= 0 and gain[q, k] > gain[corner[k], k] * (1 + slack)
                        if slope > best * (1 + slack) or (slope >= best * (1 - slack) and farther):
                            steepest[k - first] = slope
                            corner[k] = q


@compiled(parallel=True)
def _first_same(gain, error, slack, choice):  # type: ignore[no-untyped-def]
    for k in prange(gain.shape[1]):
        g, e = gain[choice[k], k], error[choice[k], k]
        for q in range(choice[k]):
            if abs(gain[q, k] - g) <= slack * g and abs(error[q, k] - e) <= slack * e:
                choice[k] = q
                break
