"""Compiled passes over yes/no answers about classes: each is one loop, linear in their number.

A worker of skill s says yes to question q about an item of class c with probability
``sigmoid(x[q, c] + tilt[q, c] * s)``: `x` is the logit of the yes-rate at skill 0 and `tilt` is +1
where yes is the likelier answer, -1 where no is, and in between where that is not known. A skill is
known to a variance v only; its average over the logistic curve is
``sigmoid(logit / sqrt(1 + pi tilt^2 v / 8))``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from crowdtree.jit import compiled

__all__ = ["answer_pass", "class_pass", "information_pass", "residual_pass"]

IntArray = NDArray[np.int32]
FloatArray = NDArray[np.float64]

_FLATTER = 0.39269908169872414  # pi / 8
_LEAST = 1e-9  # classes less likely than this are passed over


@compiled()
def class_pass(
    start: NDArray[np.int64],
    question: IntArray,
    worker: IntArray,
    label: NDArray[np.int8],
    x: FloatArray,
    tilt: FloatArray,
    skill: FloatArray,
    variance: FloatArray,
    log_prior: FloatArray,
    gold: IntArray,
    posterior: FloatArray,
) -> float:
    """Fill in the class posterior of every item; return the log likelihood of the answers."""
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
            for c in range(low, high):
                lean = tilt[q, c]
                z = (x[q, c] + lean * skill[w]) / np.sqrt(
                    1.0 + _FLATTER * lean * lean * variance[w]
                )
                z = z if label[j] == 1 else -z
                score[c] -= np.log1p(np.exp(-z)) if z > -30.0 else -z
        if known:
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


@compiled()
def answer_pass(
    start: NDArray[np.int64],
    question: IntArray,
    worker: IntArray,
    label: NDArray[np.int8],
    x: FloatArray,
    tilt: FloatArray,
    skill: FloatArray,
    variance: FloatArray,
    posterior: FloatArray,
    by_cell: FloatArray,
    by_worker: FloatArray,
) -> None:
    """Sums over the answers, by cell (q, c, 4) and by worker (w, 3).

    By cell: score of `x`, curvature, answers, and the curvature that is lost because the class is
    not known for sure (Louis 1982, own terms only). By worker: score of the skill, curvature, and
    what of it is lost.
    """
    by_cell[:] = 0.0
    by_worker[:] = 0.0
    classes = posterior.shape[1]
    for t in range(len(start) - 1):
        low, high = classes, 0  # an item of known class has one to look at, not all
        for c in range(classes):
            if posterior[t, c] >= _LEAST:
                low, high = min(low, c), c + 1
        for j in range(start[t], start[t + 1]):
            q, w = question[j], worker[j]
            said = 1.0 if label[j] == 1 else 0.0
            to = by_worker[w]
            mean, square = 0.0, 0.0
            for c in range(low, high):
                mass = posterior[t, c]
                if mass < _LEAST:
                    continue
                lean = tilt[q, c]
                flat = 1.0 / np.sqrt(1.0 + _FLATTER * lean * lean * variance[w])
                p = 1.0 / (1.0 + np.exp(-flat * (x[q, c] + lean * skill[w])))
                slope, bend = flat * (said - p), flat * flat * p * (1 - p)
                at = by_cell[q, c]
                at[0] += mass * slope
                at[1] += mass * bend
                at[2] += mass
                at[3] += mass * (1 - mass) * slope * slope
                to[0] += mass * lean * slope
                to[1] += mass * lean * lean * bend
                mean += mass * lean * slope
                square += mass * lean * lean * slope * slope
            to[2] += square - mean * mean


@compiled()
def residual_pass(
    start: NDArray[np.int64],
    question: IntArray,
    worker: IntArray,
    label: NDArray[np.int8],
    x: FloatArray,
    tilt: FloatArray,
    skill: FloatArray,
    posterior: FloatArray,
    residual: FloatArray,
    bend: FloatArray,
) -> None:
    """Each answer less its expected value, and the variance of it, averaged over the classes."""
    for t in range(len(start) - 1):
        for j in range(start[t], start[t + 1]):
            q, w = question[j], worker[j]
            mean, square = 0.0, 0.0
            for c in range(posterior.shape[1]):
                mass = posterior[t, c]
                if mass >= _LEAST:
                    p = 1.0 / (1.0 + np.exp(-x[q, c] - tilt[q, c] * skill[w]))
                    mean += mass * p
                    square += mass * p * (1 - p)
            residual[j] = (1.0 if label[j] == 1 else 0.0) - mean
            bend[j] = square


@compiled()
def information_pass(
    start: NDArray[np.int64],
    question: IntArray,
    worker: IntArray,
    label: NDArray[np.int8],
    x: FloatArray,
    tilt: FloatArray,
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
    classes less likely than `sure` are left out.
    """
    classes = posterior.shape[1]
    first_class = x.size + len(skill)
    longest = 0
    for t in range(len(start) - 1):
        longest = max(longest, start[t + 1] - start[t])
    place = np.empty((classes, 2 * longest + classes), np.int64)
    score = np.empty((classes, 2 * longest + classes))
    for t in range(len(start) - 1):
        begin, end = start[t], start[t + 1]
        for c in range(classes):
            for d in range(classes):
                both = prior[c] if c == d else 0.0
                whole[first_class + c, first_class + d] += both - prior[c] * prior[d]
        open_ = 0
        for c in range(classes):
            if posterior[t, c] < sure:
                continue
            open_ += 1
            _add_answers(
                begin, end, c, question, worker, label, x, tilt, skill, posterior[t, c], whole,
                place[c], score[c],
            )  # fmt: skip
            for d in range(classes):
                place[c, 2 * (end - begin) + d] = first_class + d
                score[c, 2 * (end - begin) + d] = (1.0 if c == d else 0.0) - prior[d]
        if open_ > 1:
            _add_loss(posterior[t], sure, 2 * (end - begin) + classes, place, score, lost)


@compiled()
def _add_answers(
    begin: int,
    end: int,
    c: int,
    question: IntArray,
    worker: IntArray,
    label: NDArray[np.int8],
    x: FloatArray,
    tilt: FloatArray,
    skill: FloatArray,
    mass: float,
    whole: FloatArray,
    place: NDArray[np.int64],
    score: FloatArray,
) -> None:
    """Add the information of an item's answers were its class `c`; note their scores."""
    classes = x.shape[1]
    for j in range(begin, end):
        q, w = question[j], worker[j]
        k, v = q * classes + c, x.size + w
        lean = tilt[q, c]
        p = 1.0 / (1.0 + np.exp(-x[q, c] - lean * skill[w]))
        bend = mass * p * (1 - p)
        whole[k, k] += bend
        whole[v, v] += lean * lean * bend
        whole[k, v] += lean * bend
        whole[v, k] += lean * bend
        slope = (1.0 if label[j] == 1 else 0.0) - p
        i = 2 * (j - begin)
        place[i], place[i + 1] = k, v
        score[i], score[i + 1] = slope, lean * slope


@compiled()
def _add_loss(
    posterior: FloatArray,
    sure: float,
    size: int,
    place: NDArray[np.int64],
    score: FloatArray,
    lost: FloatArray,
) -> None:
    """Add the covariance of an item's score over the classes that it may have."""
    for c in range(len(posterior)):
        if posterior[c] < sure:
            continue
        for d in range(len(posterior)):
            if posterior[d] < sure:
                continue
            weight = (posterior[c] if c == d else 0.0) - posterior[c] * posterior[d]
            for a in range(size):
                part = weight * score[c, a]
                if part != 0.0:
                    for b in range(size):
                        lost[place[c, a], place[d, b]] += part * score[d, b]
