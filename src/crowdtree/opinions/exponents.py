"""Exponents of several opinions at once: penalised likelihood, and its profile intervals.

An item of class ``y`` whose sources state ``s_m`` has log likelihood ``log P(y)`` with
``P(c) ~ prior(c) prod_m r_m(c)^w_m``, ``r_m = s_m / prior``. It is concave in the exponents. Each
exponent has an exponential prior with mean 1: that of calibrated probabilities, and so that a
useless opinion gets 0.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from crowdtree.policy.base import normalised

__all__ = ["blend", "fit_exponents", "fit_scaled", "profile_interval"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
RATE = 1.0
"""Rate of the exponential prior of an exponent."""
BIAS_SD = 1.0
"""Standard deviation of the prior of a class's bias, in logits."""
DROP = 1.920729
"""Fall of the log likelihood at the ends of a 95 % interval: half the quantile of chi square."""
MOST = 64.0


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
    told = np.array([ratio[rows, truth].sum() for ratio in ratios])

    def loss(exponents: FloatArray) -> tuple[float, FloatArray]:
        log_posterior = blend(log_prior, ratios, exponents)
        chance = np.exp(log_posterior)
        expected = np.array([np.vdot(chance, ratio) for ratio in ratios])
        value = RATE * exponents.sum() - log_posterior[rows, truth].sum()
        return float(value), RATE + expected - told

    bounds = [(0.0, MOST)] * len(ratios)
    start = np.full(len(ratios), 0.5)
    if fixed is not None:
        bounds[fixed[0]] = (fixed[1], fixed[1])
        start[fixed[0]] = fixed[1]
    from scipy.optimize import minimize

    found = minimize(loss, start, jac=True, bounds=bounds, method="L-BFGS-B")
    return np.asarray(found.x), -float(found.fun)


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


def fit_scaled(log_prior: FloatArray, ratio: FloatArray, truth: IntArray) -> FloatArray:
    """Slope and one bias per class (vector scaling), as one row."""
    from scipy.optimize import minimize

    rows = np.arange(len(truth))
    counts = np.bincount(truth, minlength=len(log_prior))
    told = ratio[rows, truth].sum()

    def loss(numbers: FloatArray) -> tuple[float, FloatArray]:
        slope, bias = numbers[0], numbers[1:]
        log_posterior = normalised(log_prior + slope * ratio + bias)
        chance = np.exp(log_posterior)
        penalty = RATE * slope + 0.5 * (bias @ bias) / BIAS_SD**2
        change = chance.sum(axis=0) - counts + bias / BIAS_SD**2
        value = penalty - log_posterior[rows, truth].sum()
        return float(value), np.append(RATE + np.vdot(chance, ratio) - told, change)

    start = np.append(0.5, np.zeros(len(log_prior)))
    bounds = [(0.0, MOST)] + [(None, None)] * len(log_prior)
    return np.asarray(minimize(loss, start, jac=True, bounds=bounds, method="L-BFGS-B").x)
