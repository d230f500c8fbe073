"""Compiled readers for large tables: the same numbers as the plain ones, in parallel.

Imported only for large problems, because importing and compiling cost more than a small design.
"""

from __future__ import annotations

from math import log2

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from crowdtree.problem import Problem

__all__ = ["best_questions", "read_level_compiled"]

IntArray = NDArray[np.int32]
FloatArray = NDArray[np.float64]


def read_level_compiled(
    problem: Problem, cls: IntArray, share: FloatArray, start: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Read gain and error of every question at every open node, question by question."""
    nodes = len(start) - 1
    gain = np.empty((nodes, problem.n_questions))
    error = np.empty((nodes, problem.n_questions))
    per_cell = not problem.error_per_question
    table = problem.worker_error if per_cell else np.ascontiguousarray(problem.worker_error[:, :1])
    strict = problem.dash == "inapplicable"
    _read(problem.outcome, table, per_cell, strict, cls, share, start, gain, error)
    return gain, error


@njit(cache=True)
def _xlog2(x: float) -> float:
    return x * log2(x) if x > 0.0 else 0.0


@njit(parallel=True, cache=True)
def _read(  # type: ignore[no-untyped-def]
    outcome, worker_error, per_cell, strict, cls, share, start, gain, error
):
    n_questions = outcome.shape[0]
    n_classes = outcome.shape[1]
    n_nodes = start.shape[0] - 1
    whole = np.empty(n_nodes)
    pair = np.empty(n_nodes)  # two classes: every question that splits them gains the same
    for k in range(n_nodes):
        total = 0.0
        for row in range(start[k], start[k + 1]):
            total += share[row]
        whole[k] = total
        pair[k] = _xlog2(total)
        if start[k + 1] - start[k] == 2:
            pair[k] -= _xlog2(share[start[k]]) + _xlog2(share[start[k] + 1])
    for q in prange(n_questions):
        answers = outcome[q].copy()  # one reading in order; the jumps then stay in the cache
        errors = worker_error[q].copy()
        for k in range(n_nodes):
            first, last = start[k], start[k + 1]
            yes = 0.0
            either = 0.0
            wrong = 0.0
            ones = 0
            dashes = 0
            for row in range(first, last):
                c = cls[row]
                answer = answers[c]
                e = errors[c] if per_cell else errors[0]
                if answer >= 0:
                    wrong += share[row] * e
                    yes += share[row] * answer
                    ones += answer
                else:
                    dashes += 1
                    either += share[row]
                    if strict:
                        break
            zeros = last - first - ones - dashes
            error[k, q] = wrong
            if ones == 0 or zeros == 0 or (strict and dashes > 0):
                gain[k, q] = -np.inf
            elif last - first == 2:
                gain[k, q] = pair[k]
            else:
                yes += either / 2
                drop = _xlog2(whole[k]) - _xlog2(yes) - _xlog2(max(whole[k] - yes, 0.0)) - either
                gain[k, q] = max(drop, 0.0)
    return n_classes


def best_questions(
    gain: FloatArray, error: FloatArray, price: float, slack: float
) -> NDArray[np.intp]:
    """First question of each node whose ``gain - price x error`` is largest, up to the slack."""
    best = np.empty(len(gain), dtype=np.intp)
    _best(gain, error, price, slack, best)
    return best


@njit(parallel=True, cache=True)
def _best(gain, error, price, slack, best):  # type: ignore[no-untyped-def]
    for k in prange(gain.shape[0]):
        top = -np.inf
        for q in range(gain.shape[1]):
            top = max(top, gain[k, q] - price * error[k, q])
        for q in range(gain.shape[1]):
            loss = price * error[k, q]
            if gain[k, q] - loss + slack * (gain[k, q] + loss) >= top:
                best[k] = q
                break
