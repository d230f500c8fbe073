"""Exponents of several opinions at once: penalised likelihood, and its profile intervals.

An item of class ``y`` whose sources state ``s_m`` has log likelihood ``log P(y)`` with
``P(c) ~ prior(c) prod_m r_m(c)^w_m``, ``r_m = s_m / prior``. It is concave in the exponents. Each
exponent has an exponential prior with mean 1: that of calibrated probabilities, and so that a
useless opinion gets 0. A source that does not clearly predict left-out items is ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.arrays import FloatArray
from crowdtree.core.stats import mean_half_width
from crowdtree.policies.base import normalised

__all__ = ["blend", "fit_exponents", "is_useful", "log_ratios", "profile_interval", "splits"]

IntArray = NDArray[np.int64]
Loss = Callable[[FloatArray], tuple[float, FloatArray, FloatArray]]
"""A convex loss with its gradient and its second derivatives."""
RATE = 1.0
"""Rate of the exponential prior of an exponent."""
FOLDS = 10
LEAST = 1e-9
"""Least stated probability: nothing is certain."""
DROP = 1.920729
"""Fall of the log likelihood at the ends of a 95 % interval: half the quantile of chi square."""
MOST = 64.0
"""Largest exponent."""
STEPS = 100
PRECISE = 1e-10


def blend(log_prior: FloatArray, ratios: Sequence[FloatArray], exponents: FloatArray) -> FloatArray:
    """Log prior of each item: that of the problem, times each ratio to its power.

    >>> even = np.log([0.5, 0.5])
    >>> np.exp(blend(even, [np.log([[0.8, 0.2]])], np.array([0.5]))).round(3).tolist()
    [[0.667, 0.333]]
    """
    score = log_prior + sum(w * r for w, r in zip(exponents.tolist(), ratios, strict=True))
    return normalised(np.asarray(score))


def fit_exponents(
    log_prior: FloatArray,
    ratios: Sequence[FloatArray],
    truth: IntArray,
    fixed: tuple[int, float] | None = None,
) -> tuple[FloatArray, float]:
    """Likeliest exponents, all together, and the penalised log likelihood.

    `fixed` holds one of them (its place, its value).
    """
    rows = np.arange(len(truth))
    table = np.stack(ratios)

    def loss(exponents: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        log_posterior = blend(log_prior, ratios, exponents)
        chance = np.exp(log_posterior)
        mean = (table * chance).sum(axis=2)
        around = table - mean[:, :, None]
        slope = RATE + (mean - table[:, rows, truth]).sum(axis=1)
        curve = np.einsum("mic,nic,ic->mn", around, around, chance)
        value = RATE * exponents.sum() - log_posterior[rows, truth].sum()
        return float(value), slope, curve

    start = np.full(len(ratios), 0.5)
    low, high = np.zeros(len(ratios)), np.full(len(ratios), MOST)
    if fixed is not None:
        start[fixed[0]] = low[fixed[0]] = high[fixed[0]] = fixed[1]
    found = _least(loss, start, low, high)
    return found, -loss(found)[0]


def _least(loss: Loss, start: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Minimise a convex loss within bounds by projected Newton steps.

    Written here because the library's method waits for threads that take longer than its work.
    """
    here = start
    value, slope, curve = loss(here)
    for _ in range(STEPS):
        free = ~((here <= low) & (slope > 0)) & ~((here >= high) & (slope < 0)) & (low < high)
        if not free.any() or np.abs(slope[free]).max() < PRECISE:
            break
        part = curve[np.ix_(free, free)] + 1e-9 * np.eye(int(free.sum()))
        step = np.zeros(len(here))
        step[free] = -np.linalg.solve(part, slope[free])
        length = 1.0
        while length > PRECISE:
            there = np.clip(here + length * step, low, high)
            after = loss(there)
            if after[0] < value:
                break
            length /= 2
        else:
            break
        gain, (here, (value, slope, curve)) = value - after[0], (there, after)
        if gain < PRECISE:
            break
    return here


def profile_interval(
    log_prior: FloatArray,
    ratios: Sequence[FloatArray],
    truth: IntArray,
    exponents: FloatArray,
    place: int,
) -> tuple[float, float]:
    """Interval (95 %) of one exponent: where its profile likelihood is not too far below the top.

    From bisection; the other exponents follow.
    """
    top = fit_exponents(log_prior, ratios, truth)[1]

    def inside(value: float) -> bool:
        return fit_exponents(log_prior, ratios, truth, (place, value))[1] >= top - DROP

    def end(good: float, bad: float) -> float:
        for _ in range(14):
            middle = (good + bad) / 2
            good, bad = (middle, bad) if inside(middle) else (good, middle)
        return good

    best = float(exponents[place])
    low = 0.0 if inside(0.0) else end(best, 0.0)
    above = max(2 * best, 0.1)
    while above < MOST and inside(above):
        above *= 2
    return low, end(best, above)


def log_ratios(rows: FloatArray, prior: FloatArray) -> FloatArray:
    """Log ratios of stated probability and prior (item, class); 0 without an opinion.

    A class that a source does not know keeps its prior.

    >>> log_ratios(np.array([[0.5, 0.5, np.nan]]), np.array([0.25, 0.25, 0.5])).tolist()
    [[0.0, 0.0, 0.0]]
    """
    unknown = np.isnan(rows)
    absent = unknown.all(axis=1, keepdims=True)
    known = np.where(unknown, 0.0, prior).sum(axis=1, keepdims=True)
    share = np.where(unknown.any(axis=1, keepdims=True), known, 1.0)
    stated = np.where(unknown, prior, rows * share)
    return np.where(absent, 0.0, np.log(np.maximum(stated, LEAST)) - np.log(prior))


def splits(items: int) -> Iterator[tuple[IntArray, IntArray]]:
    """Items that are left out, a tenth at a time, and the rest; the same ones every time.

    >>> [(len(held), len(rest)) for held, rest in splits(25)][-1], list(splits(1))
    ((2, 23), [])
    """
    order = np.random.default_rng(0).permutation(items)
    fold = np.empty(items, dtype=np.int64)
    fold[order] = np.arange(items) % FOLDS
    for out in range(min(FOLDS, items) if items > 1 else 0):
        yield np.flatnonzero(fold == out), np.flatnonzero(fold != out)


def is_useful(log_prior: FloatArray, ratio: FloatArray, truth: IntArray) -> bool:
    """Whether a source alone predicts left-out classes better than the prior of the problem.

    The 95 % interval of its mean gain in log loss must be above 0.
    """
    gain = np.zeros(len(truth))
    for held, rest in splits(len(truth)):
        power = fit_exponents(log_prior, [ratio[rest]], truth[rest])[0]
        log_posterior = blend(log_prior, [ratio[held]], power)
        gain[held] = (log_posterior - log_prior)[np.arange(len(held)), truth[held]]
    return bool(gain.mean() > mean_half_width(gain))
