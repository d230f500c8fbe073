"""Compiled passes over the answers: each is one loop, linear in their number.

Imported when something is learned, never with the package.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = [
    "count_pass",
    "counting_sort",
    "encode_range",
    "find_repeats",
    "information_pass",
    "label_pass",
    "lost_pass",
    "skewness_pass",
    "vote_shares",
]

IntArray = NDArray[np.int32]
FloatArray = NDArray[np.float64]


# ---------------------------------------------------------------- encoding


def encode_range(values: NDArray[Any], low: int, span: int) -> tuple[IntArray, NDArray[Any]]:
    """Number integers of a small range in increasing order, leaving out those that never occur."""
    present = np.zeros(span, dtype=np.bool_)
    _mark(values, low, present)
    rank = (np.cumsum(present, dtype=np.int32) - 1).astype(np.int32)
    return _look_up(values, low, rank), np.flatnonzero(present) + low


@njit(cache=True)
def _mark(values: NDArray[Any], low: int, present: NDArray[np.bool_]) -> None:
    for i in range(len(values)):
        present[values[i] - low] = True


@njit(cache=True)
def _look_up(values: NDArray[Any], low: int, rank: IntArray) -> IntArray:
    codes = np.empty(len(values), np.int32)
    for i in range(len(values)):
        codes[i] = rank[values[i] - low]
    return codes


@njit(cache=True)
def counting_sort(key: IntArray, count: int) -> tuple[NDArray[np.int64], IntArray]:
    """Stable order by key, and where each key starts."""
    start = np.zeros(count + 1, np.int64)
    for i in range(len(key)):
        start[key[i] + 1] += 1
    for k in range(count):
        start[k + 1] += start[k]
    place = start[:-1].copy()
    order = np.empty(len(key), np.int32)
    for i in range(len(key)):
        order[place[key[i]]] = i
        place[key[i]] += 1
    return start, order


@njit(cache=True)
def find_repeats(
    start: NDArray[np.int64], worker: IntArray, question: IntArray, keep_last: bool
) -> tuple[NDArray[np.bool_], int, int]:
    """Mark the answers to keep; count those given twice, and the first of them."""
    keep = np.ones(len(worker), np.bool_)
    twice, first = 0, -1
    for t in range(len(start) - 1):
        a, b = start[t], start[t + 1]
        if b - a < 2:
            continue
        key = np.empty(b - a, np.int64)
        for j in range(a, b):
            key[j - a] = np.int64(question[j]) << 32 | worker[j]
        order = np.argsort(key, kind="mergesort")
        for i in range(1, b - a):
            if key[order[i]] == key[order[i - 1]]:
                twice += 1
                if first < 0:
                    first = a + order[i]
                keep[a + order[i - 1 if keep_last else i]] = False
    return keep, twice, first


@njit(cache=True)
def vote_shares(
    start: NDArray[np.int64], label: NDArray[np.int8], labels: int
) -> NDArray[np.float64]:
    """Share of each label among the answers of each item."""
    share = np.zeros((len(start) - 1, labels))
    for t in range(len(start) - 1):
        n = start[t + 1] - start[t]
        for j in range(start[t], start[t + 1]):
            share[t, label[j]] += 1.0 / n
        if n == 0:
            share[t] = 1.0 / labels
    return share


# ---------------------------------------------------------------- one question, many labels


@njit(cache=True, fastmath=True)
def label_pass(
    start: NDArray[np.int64],
    worker: IntArray,
    label: NDArray[np.int8],
    log_answer: FloatArray,
    log_prior: FloatArray,
    gold: IntArray,
    posterior: FloatArray,
    counts: FloatArray,
    mass: FloatArray,
) -> float:
    """One E-step: posterior of every item, expected counts, and the sum of log evidence.

    `log_answer` and `counts` are indexed (worker, label, type): the inner loop runs over
    neighbouring cells. `gold` holds the known type of an item, or -1.
    """
    types = log_prior.shape[0]
    counts[:] = 0.0
    mass[:] = 0.0
    total = 0.0
    score = np.empty(types)
    for t in range(len(start) - 1):
        for s in range(types):
            score[s] = log_prior[s]
        for j in range(start[t], start[t + 1]):
            row = log_answer[worker[j], label[j]]
            for s in range(types):
                score[s] += row[s]
        if gold[t] >= 0:
            total += score[gold[t]]
            for s in range(types):
                score[s] = 1.0 if s == gold[t] else 0.0
        else:
            top = score[0]
            for s in range(1, types):
                top = max(top, score[s])
            whole = 0.0
            for s in range(types):
                score[s] = np.exp(score[s] - top)
                whole += score[s]
            total += top + np.log(whole)
            for s in range(types):
                score[s] /= whole
        for s in range(types):
            posterior[t, s] = score[s]
            mass[s] += score[s]
        for j in range(start[t], start[t + 1]):
            cell = counts[worker[j], label[j]]
            for s in range(types):
                cell[s] += score[s]
    return total


@njit(cache=True)
def count_pass(
    start: NDArray[np.int64],
    worker: IntArray,
    label: NDArray[np.int8],
    posterior: FloatArray,
    counts: FloatArray,
) -> None:
    """Expected counts (worker, label, type) for given posteriors."""
    counts[:] = 0.0
    for t in range(len(start) - 1):
        for j in range(start[t], start[t + 1]):
            cell = counts[worker[j], label[j]]
            for s in range(posterior.shape[1]):
                cell[s] += posterior[t, s]


@njit(cache=True)
def lost_pass(
    start: NDArray[np.int64],
    worker: IntArray,
    label: NDArray[np.int8],
    posterior: FloatArray,
    right: FloatArray,
    by_class: FloatArray,
    by_worker: FloatArray,
) -> None:
    """Information lost because classes are not known for sure (Louis 1982, own terms only).

    ``right[w, c]`` is the chance that a worker answers an item of a class right.
    """
    by_class[:] = 0.0
    by_worker[:] = 0.0
    for t in range(len(start) - 1):
        for j in range(start[t], start[t + 1]):
            mean, square = 0.0, 0.0
            for c in range(posterior.shape[1]):
                mass = posterior[t, c]
                slope = (1.0 if label[j] == c else 0.0) - right[worker[j], c]
                mean += mass * slope
                square += mass * slope * slope
                by_class[c] += mass * (1 - mass) * slope * slope
            by_worker[worker[j]] += square - mean * mean


# ---------------------------------------------------------------- information


@njit(cache=True)
def information_pass(
    start: NDArray[np.int64],
    question: IntArray,
    worker: IntArray,
    label: NDArray[np.int8],
    sign: NDArray[np.int8],
    trust: FloatArray,
    by_label: bool,
    cell: FloatArray,
    skill: FloatArray,
    posterior: FloatArray,
    prior: FloatArray,
    sure: float,
    whole: FloatArray,
    lost: FloatArray,
) -> None:
    """Information on cells, skills and class shares were the classes known, and what is lost.

    Unknowns are numbered cells first (question by question), then workers, then classes. The loss
    is the covariance, given the answers, of the score that known classes would make (Louis 1982);
    classes less likely than `sure` are left out. Everything in a cell counts with its `trust`.
    """
    classes = posterior.shape[1]
    first_worker = cell.size
    first_class = first_worker + len(skill)
    longest = 0
    for t in range(len(start) - 1):
        longest = max(longest, start[t + 1] - start[t])
    place = np.empty((classes, 2 * longest + classes), np.int64)
    score = np.empty((classes, 2 * longest + classes))
    for t in range(len(start) - 1):
        begin, n = start[t], start[t + 1] - start[t]
        for c in range(classes):
            for d in range(classes):
                both = prior[c] if c == d else 0.0
                whole[first_class + c, first_class + d] += both - prior[c] * prior[d]
        open_ = 0
        for c in range(classes):
            mass = posterior[t, c]
            if mass < sure:
                continue
            open_ += 1
            for i in range(n):
                j = begin + i
                q, w = question[j], worker[j]
                k, v = q * classes + c, first_worker + w
                place[c, 2 * i], place[c, 2 * i + 1] = k, v
                score[c, 2 * i] = score[c, 2 * i + 1] = 0.0
                if not by_label and sign[q, c] == 0:
                    continue
                right = label[j] == c if by_label else (label[j] == 1) == (sign[q, c] > 0)
                p = 1.0 / (1.0 + np.exp(-cell[q, c] - skill[w]))
                bend = mass * trust[q, c] * p * (1 - p)
                whole[k, k] += bend
                whole[v, v] += bend
                whole[k, v] += bend
                whole[v, k] += bend
                pull = trust[q, c] * ((1.0 if right else 0.0) - p)
                score[c, 2 * i] = score[c, 2 * i + 1] = pull
            for d in range(classes):
                place[c, 2 * n + d] = first_class + d
                score[c, 2 * n + d] = (1.0 if c == d else 0.0) - prior[d]
        if open_ < 2:
            continue
        size = 2 * n + classes
        for c in range(classes):
            if posterior[t, c] < sure:
                continue
            for d in range(classes):
                if posterior[t, d] < sure:
                    continue
                weight = (posterior[t, c] if c == d else 0.0) - posterior[t, c] * posterior[t, d]
                for a in range(size):
                    part = weight * score[c, a]
                    if part != 0.0:
                        for b in range(size):
                            lost[place[c, a], place[d, b]] += part * score[d, b]


@njit(cache=True)
def skewness_pass(
    start: NDArray[np.int64],
    question: IntArray,
    worker: IntArray,
    sign: NDArray[np.int8],
    trust: FloatArray,
    cell: FloatArray,
    skill: FloatArray,
    posterior: FloatArray,
    variance: FloatArray,
    pull: FloatArray,
) -> None:
    """Third derivative of each answer's log likelihood times the variance of its worker's skill.

    Added up by unknown: cells first, then workers.
    """
    classes = posterior.shape[1]
    for t in range(len(start) - 1):
        for j in range(start[t], start[t + 1]):
            q, w = question[j], worker[j]
            for c in range(classes):
                mass = posterior[t, c] * trust[q, c]
                if mass < 1e-9 or sign[q, c] == 0:
                    continue
                p = 1.0 / (1.0 + np.exp(-cell[q, c] - skill[w]))
                part = -mass * p * (1 - p) * (1 - 2 * p) * variance[w]
                pull[q * classes + c] += part
                pull[cell.size + w] += part
