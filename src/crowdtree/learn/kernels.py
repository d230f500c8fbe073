"""Compiled passes over the answers: each is one loop, linear in their number.

Imported when something is learned, never with the package.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = [
    "answer_table",
    "cell_counts",
    "class_pass",
    "count_pass",
    "counting_sort",
    "draw_pass",
    "encode_range",
    "find_repeats",
    "information_pass",
    "sign_pass",
    "sign_scores",
    "skewness_pass",
    "skill_pass",
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
def _score_states(
    first: int,
    last: int,
    worker: IntArray,
    label: NDArray[np.int8],
    log_answer: FloatArray,
    log_prior: FloatArray,
    score: FloatArray,
) -> None:
    """Log joint probability of an item's answers with each state."""
    for s in range(len(log_prior)):
        score[s] = log_prior[s]
    for j in range(first, last):
        row = log_answer[worker[j], label[j]]
        for s in range(len(log_prior)):
            score[s] += row[s]


@njit(cache=True, fastmath=True)
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
    total = 0.0
    score = np.empty(states)
    for t in range(len(start) - 1):
        _score_states(start[t], start[t + 1], worker, label, log_answer, log_prior, score)
        low, high = 0, states
        if gold[t] >= 0:
            low, high = gold[t] * tilts, (gold[t] + 1) * tilts
        top = score[low]
        for s in range(low + 1, high):
            top = max(top, score[s])
        whole = 0.0
        for s in range(states):
            score[s] = np.exp(score[s] - top) if low <= s < high else 0.0
            whole += score[s]
        total += top + np.log(whole)
        posterior[t] = 0.0
        for s in range(low, high):
            score[s] /= whole
            posterior[t, s // tilts] += score[s]
        for j in range(start[t], start[t + 1]):
            cell = counts[worker[j], label[j]]
            for s in range(low, high):
                cell[s] += score[s]
    return total


@njit(cache=True, fastmath=True)
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
        _score_states(start[t], start[t + 1], worker, label, log_answer, log_prior, score)
        low, high = 0, states
        if gold[t] >= 0:
            low, high = gold[t] * tilts, (gold[t] + 1) * tilts
        top = score[low]
        for s in range(low + 1, high):
            top = max(top, score[s])
        whole = 0.0
        for s in range(low, high):
            score[s] = np.exp(score[s] - top)
            whole += score[s]
        reached, drawn = 0.0, high - 1
        for s in range(low, high):
            if reached <= uniform[t] * whole:
                drawn = s
            reached += score[s]
        items[drawn // tilts] += 1.0
        for j in range(start[t], start[t + 1]):
            counts[worker[j], label[j], drawn] += 1.0
    return items


@njit(cache=True, fastmath=True)
def answer_table(logits: FloatArray, tilt: FloatArray, table: FloatArray) -> None:
    """Log P(label | worker, state) from logits (worker, class, label) and tilts (tilt, label)."""
    workers, classes, labels = logits.shape
    tilts = len(tilt)
    for w in range(workers):
        for k in range(classes):
            for t in range(tilts):
                top = logits[w, k, 0] + tilt[t, 0]
                for l in range(1, labels):
                    top = max(top, logits[w, k, l] + tilt[t, l])
                whole = 0.0
                for l in range(labels):
                    whole += np.exp(logits[w, k, l] + tilt[t, l] - top)
                whole = top + np.log(whole)
                for l in range(labels):
                    table[w, l, k * tilts + t] = logits[w, k, l] + tilt[t, l] - whole


@njit(cache=True, fastmath=True)
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
            for l in range(labels):
                asked += counts[w, l, s]
                given[w, k, l] += counts[w, l, s]
            if asked > 0.0:
                for l in range(labels):
                    expected[w, k, l] += asked * np.exp(table[w, l, s])


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


# ---------------------------------------------------------------- many questions, one class an item


@njit(cache=True)
def _log_right(x: float) -> float:
    """``log sigmoid(x)`` without overflow."""
    return -np.log1p(np.exp(-x)) if x > -30.0 else x


@njit(cache=True)
def class_pass(
    start: NDArray[np.int64],
    question: IntArray,
    worker: IntArray,
    label: NDArray[np.int8],
    sign: NDArray[np.int8],
    trust: FloatArray,
    cell: FloatArray,
    other: FloatArray,
    skill: FloatArray,
    log_prior: FloatArray,
    gold: IntArray,
    posterior: FloatArray,
) -> float:
    """One E-step over classes: ``P(answer) = sigmoid(+-(cell[q, c] + skill[w]))``.

    `sign` is +1 where the error-free answer is yes, -1 where it is no, 0 where nobody knows (the
    answer is then a fair coin, whoever gives it). A sign holds with probability `trust`; with the
    other sign the cell is `other`, and logarithms are averaged. Returns the sum of log evidence.
    """
    classes = len(log_prior)
    total = 0.0
    for t in range(len(start) - 1):
        score = posterior[t]
        for c in range(classes):
            score[c] = log_prior[c]
        known = gold[t] >= 0
        low, high = (gold[t], gold[t] + 1) if known else (0, classes)
        for j in range(start[t], start[t + 1]):
            q, w = question[j], worker[j]
            said = 1.0 if label[j] == 1 else -1.0
            for c in range(low, high):
                if sign[q, c] == 0:
                    score[c] -= 0.6931471805599453
                    continue
                side = said * sign[q, c]
                hold = trust[q, c]
                score[c] += hold * _log_right(side * (cell[q, c] + skill[w]))
                if hold < 1.0:
                    score[c] += (1.0 - hold) * _log_right(-side * (other[q, c] + skill[w]))
        if gold[t] >= 0:
            total += score[gold[t]]
            for c in range(classes):
                score[c] = 1.0 if c == gold[t] else 0.0
            continue
        top = score.max()
        whole = 0.0
        for c in range(classes):
            score[c] = np.exp(score[c] - top)
            whole += score[c]
        total += top + np.log(whole)
        for c in range(classes):
            score[c] /= whole
    return total


@njit(cache=True)
def skill_pass(
    start: NDArray[np.int64],
    question: IntArray,
    worker: IntArray,
    label: NDArray[np.int8],
    sign: NDArray[np.int8],
    trust: FloatArray,
    cell: FloatArray,
    skill: FloatArray,
    posterior: FloatArray,
    by_cell: FloatArray,
    by_worker: FloatArray,
) -> None:
    """Sums of the Polya-Gamma M-step, by cell (q, c, .) and by worker (w, .), added to what is.

    ``x = cell + skill``, ``v(x) = tanh(x / 2) / (2 x)``: the new cell is
    ``sum(+-1/2 - v skill) / sum(v)`` and the new skill likewise. The last axis holds

    0. the pull ``sum(+-1/2 - v other)``,
    1. the weight ``sum(v)``,
    2. the curvature ``sum(P (1 - P))`` of the expected log likelihood,
    3. what of it is lost because the class is not known for sure (Louis 1982, own terms only).

    Everything in a cell counts with its `trust`.
    """
    classes = posterior.shape[1]
    for t in range(len(start) - 1):
        low, high = classes, 0  # an item of known class has one to look at, not all
        for c in range(classes):
            if posterior[t, c] >= 1e-9:
                low, high = min(low, c), c + 1
        for j in range(start[t], start[t + 1]):
            q, w = question[j], worker[j]
            said = 0.5 if label[j] == 1 else -0.5
            mean, square = 0.0, 0.0
            for c in range(low, high):
                mass = posterior[t, c] * trust[q, c]
                if mass < 1e-9 or sign[q, c] == 0:
                    continue
                x = cell[q, c] + skill[w]
                v = np.tanh(x / 2) / (2 * x) if abs(x) > 1e-6 else 0.25
                right = said * sign[q, c]
                p = 1.0 / (1.0 + np.exp(-x))
                slope = right + 0.5 - p
                mean += mass * slope
                square += mass * slope * slope
                at = by_cell[q, c]
                at[0] += mass * (right - v * skill[w])
                at[1] += mass * v
                at[2] += mass * p * (1 - p)
                at[3] += mass * (1 - mass) * slope * slope
                to = by_worker[w]
                to[0] += mass * (right - v * cell[q, c])
                to[1] += mass * v
                to[2] += mass * p * (1 - p)
            by_worker[w, 3] += square - mean * mean


@njit(cache=True)
def sign_pass(
    start: NDArray[np.int64],
    question: IntArray,
    worker: IntArray,
    label: NDArray[np.int8],
    sign: NDArray[np.int8],
    cell: FloatArray,
    other: FloatArray,
    skill: FloatArray,
    posterior: FloatArray,
    gain: FloatArray,
) -> None:
    """How much likelier the answers of each cell are with its sign than with the other one."""
    gain[:] = 0.0
    for t in range(len(start) - 1):
        for j in range(start[t], start[t + 1]):
            q, w = question[j], worker[j]
            for c in range(posterior.shape[1]):
                mass = posterior[t, c]
                if mass < 1e-9 or sign[q, c] == 0:
                    continue
                side = sign[q, c] if label[j] == 1 else -sign[q, c]
                here = _log_right(side * (cell[q, c] + skill[w]))
                gain[q, c] += mass * (here - _log_right(-side * (other[q, c] + skill[w])))


@njit(cache=True)
def sign_scores(
    start: NDArray[np.int64],
    question: IntArray,
    worker: IntArray,
    label: NDArray[np.int8],
    sign: NDArray[np.int8],
    cell: FloatArray,
    other: FloatArray,
    skill: FloatArray,
    posterior: FloatArray,
    row: IntArray,
    score: FloatArray,
) -> None:
    """Score with the sign less score with the other one, of cells whose sign is open.

    ``row[q, c]`` is the row of an open cell in `score`, -1 of the others; columns are the workers
    and, last, the cell itself.
    """
    score[:] = 0.0
    for t in range(len(start) - 1):
        for j in range(start[t], start[t + 1]):
            q, w = question[j], worker[j]
            for c in range(posterior.shape[1]):
                r = row[q, c]
                if r < 0 or posterior[t, c] < 1e-9:
                    continue
                right = 1.0 if (label[j] == 1) == (sign[q, c] > 0) else 0.0
                with_it = right - 1.0 / (1.0 + np.exp(-cell[q, c] - skill[w]))
                without = (1.0 - right) - 1.0 / (1.0 + np.exp(-other[q, c] - skill[w]))
                score[r, w] += posterior[t, c] * (with_it - without)
                score[r, -1] += posterior[t, c] * with_it


@njit(cache=True)
def cell_counts(
    start: NDArray[np.int64],
    question: IntArray,
    label: NDArray[np.int8],
    posterior: FloatArray,
    counts: FloatArray,
) -> None:
    """Expected answers no and yes of each cell: ``counts[q, c, answer]``."""
    counts[:] = 0.0
    for t in range(len(start) - 1):
        for j in range(start[t], start[t + 1]):
            for c in range(posterior.shape[1]):
                counts[question[j], c, label[j]] += posterior[t, c]


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
