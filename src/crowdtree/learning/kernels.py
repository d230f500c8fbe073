"""Compiled passes over the answers: each is one loop, linear in their number.

Imported when something is learned, never with the package.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdtree.jit import compiled

__all__ = [
    "answer_table",
    "count_pass",
    "counting_sort",
    "draw_pass",
    "encode_range",
    "find_repeats",
    "state_pass",
    "told_pass",
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


@compiled()
def _mark(values: NDArray[Any], low: int, present: NDArray[np.bool_]) -> None:
    for i in range(len(values)):
        present[values[i] - low] = True


@compiled()
def _look_up(values: NDArray[Any], low: int, rank: IntArray) -> IntArray:
    codes = np.empty(len(values), np.int32)
    for i in range(len(values)):
        codes[i] = rank[values[i] - low]
    return codes


@compiled()
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


@compiled()
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


@compiled()
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


@compiled(fastmath=True)
def _weigh_states(
    first: int,
    last: int,
    worker: IntArray,
    label: NDArray[np.int8],
    log_answer: FloatArray,
    log_prior: FloatArray,
    low: int,
    high: int,
    score: FloatArray,
) -> tuple[float, float]:
    """Weight of each state of an item from `low` to before `high`: scale (a log) and their sum."""
    for s in range(low, high):
        score[s] = log_prior[s]
    for j in range(first, last):
        row = log_answer[worker[j], label[j]]
        for s in range(low, high):
            score[s] += row[s]
    top = score[low]
    for s in range(low + 1, high):
        top = max(top, score[s])
    whole = 0.0
    for s in range(low, high):
        score[s] = np.exp(score[s] - top)
        whole += score[s]
    return top, whole


@compiled(fastmath=True)
def state_pass(
    start: NDArray[np.int64],
    worker: IntArray,
    label: NDArray[np.int8],
    log_answer: FloatArray,
    log_prior: FloatArray,
    gold: IntArray,
    posterior: FloatArray,
    counts: FloatArray,
) -> float:
    """One E-step: posterior of every item's class, expected counts, and the log likelihood.

    `log_answer` and `counts` are indexed (worker, label, state): the inner loop runs over
    neighbouring cells. States of one class are neighbours. `gold` holds the known class of an
    item, or -1.
    """
    states, classes = len(log_prior), posterior.shape[1]
    tilts = states // classes
    counts[:] = 0.0
    posterior[:] = 0.0
    total = 0.0
    score = np.empty(states)
    for t in range(len(start) - 1):
        low = gold[t] * tilts if gold[t] >= 0 else 0
        high = low + tilts if gold[t] >= 0 else states
        top, whole = _weigh_states(
            start[t], start[t + 1], worker, label, log_answer, log_prior, low, high, score
        )
        total += top + np.log(whole)
        for s in range(low, high):
            score[s] /= whole
            posterior[t, s // tilts] += score[s]
        for j in range(start[t], start[t + 1]):
            cell = counts[worker[j], label[j]]
            for s in range(low, high):
                cell[s] += score[s]
    return total


@compiled(fastmath=True)
def draw_pass(
    start: NDArray[np.int64],
    worker: IntArray,
    label: NDArray[np.int8],
    log_answer: FloatArray,
    log_prior: FloatArray,
    gold: IntArray,
    uniform: FloatArray,
    counts: FloatArray,
) -> FloatArray:
    """Draw the state of every item: counts as drawn, and how many items are of each class.

    As :func:`state_pass` otherwise; `uniform` has one random number per item.
    """
    states, classes = len(log_prior), counts.shape[1]
    tilts = states // classes
    items = np.zeros(classes)
    counts[:] = 0.0
    score = np.empty(states)
    for t in range(len(start) - 1):
        low = gold[t] * tilts if gold[t] >= 0 else 0
        high = low + tilts if gold[t] >= 0 else states
        _, whole = _weigh_states(
            start[t], start[t + 1], worker, label, log_answer, log_prior, low, high, score
        )
        reached, drawn = 0.0, high - 1
        for s in range(low, high):
            if reached <= uniform[t] * whole:
                drawn = s
            reached += score[s]
        items[drawn // tilts] += 1.0
        for j in range(start[t], start[t + 1]):
            counts[worker[j], label[j], drawn] += 1.0
    return items


@compiled(fastmath=True)
def answer_table(logits: FloatArray, tilt: FloatArray, table: FloatArray) -> None:
    """Log P(label | worker, state) from logits (worker, class, label) and tilts (tilt, label)."""
    workers, classes, labels = logits.shape
    tilts = len(tilt)
    for w in range(workers):
        for k in range(classes):
            for t in range(tilts):
                top = logits[w, k, 0] + tilt[t, 0]
                for y in range(1, labels):
                    top = max(top, logits[w, k, y] + tilt[t, y])
                whole = 0.0
                for y in range(labels):
                    whole += np.exp(logits[w, k, y] + tilt[t, y] - top)
                whole = top + np.log(whole)
                for y in range(labels):
                    table[w, y, k * tilts + t] = logits[w, k, y] + tilt[t, y] - whole


@compiled(fastmath=True)
def told_pass(
    counts: FloatArray, table: FloatArray, given: FloatArray, expected: FloatArray
) -> None:
    """Answers of each worker to items of each class, given and expected: (worker, class, label)."""
    workers, labels, states = counts.shape
    tilts = states // labels
    given[:] = 0.0
    expected[:] = 0.0
    for w in range(workers):
        for s in range(states):
            k = s // tilts
            asked = 0.0
            for y in range(labels):
                asked += counts[w, y, s]
                given[w, k, y] += counts[w, y, s]
            if asked > 0.0:
                for y in range(labels):
                    expected[w, k, y] += asked * np.exp(table[w, y, s])


@compiled()
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
