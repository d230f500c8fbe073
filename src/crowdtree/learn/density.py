"""Log posterior density of the skill model of one question, with all that can be summed out.

Left are cells, skills and class shares. The classes of the items are summed out exactly; the mean
and the strength of the cells' prior and the spread of the skills are summed over grids.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["Grids", "log_density"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int32]

STRENGTHS = np.geomspace(0.5, 500, 13)
SPREADS = np.geomspace(0.02, 5, 80)
MEANS = np.linspace(-6.0, np.log(0.49 / 0.51), 60)  # logits


class Grids(NamedTuple):
    """Priors with their scales summed out, as sums over grids.

    A point of the first has log weight, coefficient of ``sum(log e)`` and of ``sum(log(1 - e))``;
    a point of the second log weight, the coefficient ``-1 / (2 spread^2)`` of ``sum(skill^2)``,
    and a zero.
    """

    cells: FloatArray
    skills: FloatArray

    @classmethod
    def of(cls, classes: int, workers: int, overall: float) -> Grids:
        """Make the grids: the same priors as the fit has, by :mod:`crowdtree.learn.skills`."""
        from scipy.special import betaln, expit

        strength, logit = (part.ravel() for part in np.meshgrid(STRENGTHS, MEANS))
        mean = expit(logit)
        a, b = strength * mean, strength * (1 - mean)
        weight = 2 * (overall * np.log(mean) + (1 - overall) * np.log1p(-mean))
        cells = np.stack([weight - classes * betaln(a, b), a, b], axis=1)
        log = -(workers + 1) * np.log(SPREADS) - 0.125 / SPREADS**2
        none = np.zeros_like(log)
        return cls(cells, np.stack([log, -0.5 / SPREADS**2, none], axis=1))


@njit(cache=True, fastmath=True)
def _tilt(grid: FloatArray, a: float, b: float) -> tuple[float, float, float]:
    """Log of a sum over a grid, and its slopes by the two statistics."""
    log = np.empty(len(grid))
    for g in range(len(grid)):
        log[g] = grid[g, 0] + grid[g, 1] * a + grid[g, 2] * b
    top = log.max()
    whole, by_a, by_b = 0.0, 0.0, 0.0
    for g in range(len(grid)):
        if log[g] > top - 25:
            weight = np.exp(log[g] - top)
            whole += weight
            by_a += weight * grid[g, 1]
            by_b += weight * grid[g, 2]
    return top + np.log(whole), by_a / whole, by_b / whole


@njit(cache=True, fastmath=True)
def log_density(
    x: FloatArray,
    start: NDArray[np.int64],
    worker: IntArray,
    label: NDArray[np.int8],
    gold: IntArray,
    log_other: FloatArray,
    of_cells: FloatArray,
    of_skills: FloatArray,
    slope: FloatArray,
) -> float:
    """Log posterior density (up to a constant) at `x`, and its slope.

    `x` holds cells, skills, and the log shares of all classes but the first less that of the
    first. ``log_other[l, k]`` is the log share of label l among the wrong ones for class k.
    """
    classes = len(log_other)
    workers = len(x) - 2 * classes + 1
    first = classes + workers
    log_share = np.zeros(classes)
    log_share[1:] = x[first:]
    log_share -= log_share.max()
    log_share -= np.log(np.exp(log_share).sum())
    share = np.exp(log_share)
    chance = np.empty((workers, classes))
    hit, miss = np.empty_like(chance), np.empty_like(chance)
    for w in range(workers):
        for k in range(classes):
            logit = x[k] + x[classes + w]
            low = np.log1p(np.exp(-abs(logit)))
            hit[w, k] = min(logit, 0.0) - low
            miss[w, k] = hit[w, k] - logit
            chance[w, k] = np.exp(hit[w, k])
    slope[:] = 0.0
    total = 0.0
    score = np.empty(classes)
    mass = np.zeros(classes)
    for t in range(len(start) - 1):
        score[:] = log_share
        for j in range(start[t], start[t + 1]):
            for k in range(classes):
                if label[j] == k:
                    score[k] += hit[worker[j], k]
                else:
                    score[k] += miss[worker[j], k] + log_other[label[j], k]
        if gold[t] >= 0:
            total += score[gold[t]]
            score[:] = 0.0
            score[gold[t]] = 1.0
        else:
            top = score.max()
            whole = 0.0
            for k in range(classes):
                score[k] = np.exp(score[k] - top)
                whole += score[k]
            total += top + np.log(whole)
            score /= whole
        mass += score
        for j in range(start[t], start[t + 1]):
            w = worker[j]
            for k in range(classes):
                pull = score[k] * ((1.0 if label[j] == k else 0.0) - chance[w, k])
                slope[k] += pull
                slope[classes + w] += pull
    items = len(start) - 1
    for k in range(1, classes):  # the shares are uniform on the simplex
        slope[first + k - 1] = mass[k] + 1 - (items + classes) * share[k]
    total += log_share.sum()
    wrong, right = 0.0, 0.0
    for k in range(classes):
        low = np.log1p(np.exp(-abs(x[k])))
        wrong += min(-x[k], 0.0) - low
        right += min(x[k], 0.0) - low
    value, by_wrong, by_right = _tilt(of_cells, wrong, right)
    total += value
    for k in range(classes):
        error = 1.0 / (1.0 + np.exp(x[k]))
        slope[k] += by_right * error - by_wrong * (1 - error)
    skills = x[classes:first]
    value, by_square, _ = _tilt(of_skills, (skills**2).sum(), 0.0)
    slope[classes:first] += 2 * by_square * skills
    return float(total + value)
