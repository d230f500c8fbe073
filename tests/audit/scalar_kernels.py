"""The arithmetic of audits one number at a time: what the arrays are compared with.

Items are handled by strata of similar stated error. A state is ``left`` (items of each stratum not
drawn yet); ``weights`` are the chances of the strata, within which every item left is equally
likely. For losses, ``left`` is the sum of the largest ones instead. See section 13 of docs/model.md
for the formulas.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from crowdtree.audit.strata import LARGEST, LEANINGS, PRECISION, STEPS


def stake(left: Any, weights: Any, wrong: Any, total: float) -> float:
    """Stake that makes the wealth against ``wrong items left >= total`` grow fastest."""
    n = 0.0
    expected = 0.0
    for g in range(len(left)):
        n += left[g]
        expected += left[g] * wrong[g]
    if total <= expected or total <= 0.0 or total > n:
        return 0.0
    if total > n - 1.0 / LARGEST:
        return LARGEST
    c = 1.0 / (n - total)
    for _ in range(60):  # convex, started to the right of the root: Newton falls towards it
        value, slope = -1.0 - total * c, -total
        for g in range(len(left)):
            if left[g] > 0.0:
                s = weights[g] / left[g]
                root = math.sqrt((c - s) * (c - s) + 4.0 * s * c * wrong[g])
                value += left[g] * 0.5 * (c + s + root)
                if root > 0.0:
                    slope += left[g] * 0.5 * (1.0 + (c - s + 2.0 * s * wrong[g]) / root)
        if slope <= 0.0:
            return 0.0
        step = value / slope
        c -= step
        if step <= PRECISION * c:
            break
    return max(c, 0.0)


def loser(s: float, wrong: float, c: float) -> float:
    """Chance of an item times what it pays when wrong, before it is normalised.

    When right it pays `c` more. Written so that nothing cancels for large stakes.
    """
    root = math.sqrt((c - s) * (c - s) + 4.0 * s * c * wrong)
    return 2.0 * s * c * wrong / (root + c - s) if c > s else 0.5 * (s - c + root)


def bet(left: Any, weights: Any, wrong: Any, total: float, stratum: int, error: float) -> float:
    """Log of the factor of the wealth when an item of a stratum is found wrong (1) or right (0).

    Between 0 and 1 `error` is a loss, as a share of the largest that an item of the stratum can
    have; `left` and `total` are then sums of largest losses instead of counts.

    The expected factor is at most 1 whenever at least `total` of the items left are wrong.
    """
    c = stake(left, weights, wrong, total)
    if c <= 0.0:
        return 0.0
    norm = (left.sum() - total) * c
    for g in range(len(left)):
        if left[g] > 0.0:
            norm += left[g] * loser(weights[g] / left[g], wrong[g], c)
    s = weights[stratum] / left[stratum]
    pay = loser(s, wrong[stratum], c) + c * (1.0 - error)
    return math.log(pay / s) - math.log(norm) if pay > 0.0 else -math.inf


def growth(left: Any, weights: Any, wrong: Any, total: float) -> float:
    """Expected log factor of the next bet if the working model is right."""
    c = stake(left, weights, wrong, total)
    if c <= 0.0:
        return 0.0
    norm = (left.sum() - total) * c
    gain = 0.0
    for g in range(len(left)):
        if left[g] > 0.0:
            s = weights[g] / left[g]
            low = loser(s, wrong[g], c)
            norm += left[g] * low
            gain += weights[g] * (
                (1.0 - wrong[g]) * math.log((low + c) / s) + wrong[g] * math.log(low / s)
            )
    return gain - math.log(norm)


def lean(left: Any, wrong: Any, uniform: float, power: float) -> Any:
    """Chances of the strata: a uniform part, the rest by a power of the expected error."""
    n = 0.0
    total = 0.0
    weights = np.empty(len(left))
    for g in range(len(left)):
        n += left[g]
        total += left[g] * wrong[g] ** power
    for g in range(len(left)):
        part = wrong[g] ** power / total if total > 0.0 else 1.0 / n
        weights[g] = left[g] * (uniform / n + (1.0 - uniform) * part)
    return weights


def expected_checks(
    left: Any, wrong: Any, total: float, need: float, uniform: float, power: float
) -> float:
    """Checks until the log wealth has grown by `need`, if the working model is right."""
    n = float(left.sum())
    now = left.copy()
    step = max(1.0, n / STEPS)
    done = 0.0
    grown = 0.0
    while done < n and total > 0.0:
        weights = lean(now, wrong, uniform, power)
        rate = growth(now, weights, wrong, total)
        size = min(step, n - done)
        if rate > 0.0 and grown + rate * size >= need:
            return done + (need - grown) / rate
        grown += rate * size
        done += size
        rest = 0.0
        for g in range(len(now)):
            taken = min(now[g], weights[g] * size)
            now[g] -= taken
            total -= taken * wrong[g]
            rest += now[g]
        if rest < total:  # fewer items are left than the null has wrong ones
            return done
        if rest <= 0.5:
            break
    return n


def pick_lean(left: Any, wrong: Any, total: float, need: float) -> tuple[float, float, float]:
    """Choose how chances lean: the uniform share and the power that need the fewest checks.

    `total` is the number of wrong items left that is to be ruled out; a negative one stands for
    no particular number. Returns the share, the power and the expected checks.
    """
    expected = 0.0
    for g in range(len(left)):
        expected += left[g] * wrong[g]
    least = (1.3 if total >= 0.0 else 2.0) * expected + 1.0  # below, no bet is expected to win
    best, uniform, power = np.inf, 1.0, 1.0
    for share, p in LEANINGS:
        checks = expected_checks(left, wrong, max(total, least), need, share, p)
        if checks < best * (1.0 - 1e-9):
            best, uniform, power = checks, share, p
    return uniform, power, best


def wealth(
    counts: Any,
    size: Any,
    rows: Any,
    strata: Any,
    errors: Any,
    flip: bool,
    total: float,
    log: float,
    start: int,
    stop: int,
    need: float,
) -> tuple[float, int, bool]:
    """Log wealth against a total after more checks, as in `crowdtree.audit.kernels`."""
    mass = counts * size
    counts = counts.copy()
    for t in range(stop):
        g = strata[t]
        error = 1.0 - errors[t] if flip else errors[t]
        if t >= start:
            expected = 1.0 - rows[t, 1] if flip else rows[t, 1]
            log += bet(mass, rows[t, 0], expected, total, g, error)
        counts[g] -= 1.0
        mass[g] = counts[g] * size[g]
        total -= error * size[g]
        if t + 1 >= start and (log >= need or total > mass.sum() + 1e-9):
            return log, t + 1, True
    return log, stop, False
