"""Arithmetic of audits of few items in NumPy, with nothing to compile: bets, chances, replays.

Items are handled by strata of similar stated error. A state is ``left`` (items of each stratum not
drawn yet); ``weights`` are the chances of the strata, within which every item left is equally
likely. For losses, ``left`` is the sum of the largest ones instead. See section 13 of docs/model.md
for the formulas.

:mod:`crowdtree.audit.kernels` computes the same for many items. The last axis of arrays is the
strata. Others are for several totals, or several audits, at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdtree.audit.strata import LARGEST, LEANINGS, PRECISION, STEPS, STRENGTH
from crowdtree.jit import interpreted

__all__ = [
    "advance",
    "bet",
    "draw",
    "lean",
    "pick_lean",
    "posterior",
    "replay",
    "update",
]

draw = interpreted("crowdtree.audit.kernels").draw
CHANCES = 2_000_000
"""Pairs of random numbers that replays draw at once."""
FloatArray = NDArray[np.float64]


def _chance(left: FloatArray, weights: FloatArray) -> FloatArray:
    """Chance of one item of each stratum; 0 where none is left."""
    return np.divide(weights, left, out=np.zeros(np.broadcast(left, weights).shape), where=left > 0)


def stake(left: FloatArray, weights: FloatArray, wrong: FloatArray, total: ArrayLike) -> FloatArray:
    """Stake that makes the wealth against ``wrong items left >= total`` grow fastest."""
    total = np.asarray(total, dtype=np.float64)
    n, expected = left.sum(axis=-1), (left * wrong).sum(axis=-1)
    shape = np.broadcast_shapes(total.shape, n.shape, expected.shape, weights.shape[:-1])
    total, n = np.broadcast_to(total, shape), np.broadcast_to(n, shape)
    none = (total <= expected) | (total <= 0.0) | (total > n)
    found = np.where(none, 0.0, LARGEST)
    open_ = np.flatnonzero(~none & (total <= n - 1.0 / LARGEST))
    if len(open_):
        rows = (*shape, left.shape[-1])
        size, s, q = (
            np.broadcast_to(part, rows).reshape(-1, rows[-1])[open_]
            for part in (left, _chance(left, weights), wrong)
        )
        found.reshape(-1)[open_] = _root(size, s, q, total.reshape(-1)[open_])
    return found


def _root(left: FloatArray, s: FloatArray, wrong: FloatArray, total: FloatArray) -> FloatArray:
    """Solve for the stakes by Newton's method, one per row.

    The function is convex and the start is to the right of the root: stakes fall towards it.
    """
    found = 1.0 / (left.sum(axis=1) - total)
    rows, twice, half = np.arange(len(found)), 2.0 * s * wrong, 0.5 * left
    constant = (half * s).sum(axis=1) - 1.0
    size = half.sum(axis=1) - total
    c = found
    for _ in range(60):
        away = c[:, None] - s
        root = np.sqrt(away * away + 2.0 * twice * c[:, None])
        value = constant + size * c + np.einsum("ij,ij->i", half, root)
        away += twice
        bend = np.divide(away, root, out=np.full(root.shape, -1.0), where=root > 0.0)
        slope = size + np.einsum("ij,ij->i", half, bend)
        flat = slope <= 0.0
        step = np.divide(value, slope, out=c.copy(), where=~flat)
        c = c - step
        found[rows] = c
        on = ~flat & (step > PRECISION * c)
        if not on.all():
            if not on.any():
                break
            rows, c, s, twice, half = rows[on], c[on], s[on], twice[on], half[on]
            constant, size = constant[on], size[on]
    return np.asarray(np.maximum(found, 0.0))


def loser(s: FloatArray, wrong: FloatArray, c: FloatArray) -> FloatArray:
    """Chance of an item times what it pays when wrong, before it is normalised.

    When right it pays `c` more. Written so that nothing cancels for large stakes.
    """
    away = c - s
    root = np.sqrt(away * away + 4.0 * s * c * wrong)
    return np.where(
        away > 0.0,
        2.0 * s * c * wrong / np.where(away > 0.0, root + away, 1.0),
        0.5 * (root - away),
    )


def bet(
    left: FloatArray,
    weights: FloatArray,
    wrong: FloatArray,
    total: ArrayLike,
    stratum: Any,
    error: Any,
) -> FloatArray:
    """Log of the factor of the wealth when an item of a stratum is found wrong (1) or right (0).

    Between 0 and 1 `error` is a loss, as a share of the largest that an item of the stratum can
    have; `left` and `total` are then sums of largest losses instead of counts.

    The expected factor is at most 1 whenever at least `total` of the items left are wrong.
    """
    c = stake(left, weights, wrong, total)
    s = _chance(left, weights)
    pays = loser(s, wrong, c[..., None])
    norm = (left.sum(axis=-1) - total) * c + (left * pays).sum(axis=-1)
    here = np.broadcast_to(np.asarray(stratum)[..., None], (*pays.shape[:-1], 1))
    pay = np.take_along_axis(pays, here, axis=-1)[..., 0] + c * (1.0 - error)
    mine = np.take_along_axis(np.broadcast_to(s, pays.shape), here, axis=-1)[..., 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = np.log(pay / mine) - np.log(norm)
    return np.where(c <= 0.0, 0.0, np.where(pay > 0.0, gain, -np.inf))


def growth(
    left: FloatArray, weights: FloatArray, wrong: FloatArray, total: FloatArray
) -> FloatArray:
    """Expected log factor of the next bet if the working model is right."""
    c = stake(left, weights, wrong, total)
    s = _chance(left, weights)
    low = loser(s, wrong, c[..., None])
    norm = (left.sum(axis=-1) - total) * c + (left * low).sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = (1.0 - wrong) * np.log((low + c[..., None]) / s) + wrong * np.log(low / s)
        gain = np.where(left > 0.0, weights * gain, 0.0).sum(axis=-1)
        return np.where(c > 0.0, gain - np.log(norm), 0.0)


def lean(left: FloatArray, wrong: FloatArray, uniform: ArrayLike, power: ArrayLike) -> FloatArray:
    """Chances of the strata: a uniform part, the rest by a power of the expected error."""
    share = np.asarray(uniform)[..., None]
    part = wrong ** np.asarray(power)[..., None]
    n, total = left.sum(axis=-1)[..., None], (left * part).sum(axis=-1)[..., None]
    with np.errstate(divide="ignore", invalid="ignore"):
        rest = np.where(total > 0.0, part / total, 1.0 / n)
        return np.where(n > 0.0, left * (share / n + (1.0 - share) * rest), 0.0)


def expected_checks(
    left: FloatArray,
    wrong: FloatArray,
    total: FloatArray,
    need: FloatArray,
    uniform: FloatArray,
    power: FloatArray,
) -> FloatArray:
    """Checks until the log wealth has grown by `need`, if the working model is right; per row."""
    n = left.sum(axis=1)
    found, rows, whole = n.copy(), np.arange(len(n)), n
    step, done, grown = np.maximum(1.0, n / STEPS), np.zeros(len(n)), np.zeros(len(n))
    while True:
        on = (done < whole) & (total > 0.0)
        if not on.all():
            rows, left, wrong, total, need, uniform, power, step, done, grown, whole = (
                part[on] for part in (rows, left, wrong, total, need, uniform, power, step, done,
                                      grown, whole)
            )  # fmt: skip
        if not len(rows):
            return np.asarray(found)
        weights = lean(left, wrong, uniform, power)
        rate = growth(left, weights, wrong, total)
        size = np.minimum(step, whole - done)
        reached = (rate > 0.0) & (grown + rate * size >= need)
        grown, done = grown + rate * size, done + size
        taken = np.minimum(left, weights * size[:, None])
        left, total = left - taken, total - (taken * wrong).sum(axis=1)
        rest = left.sum(axis=1)
        over = rest < total  # fewer items are left than the null has wrong ones
        found[rows[over]] = done[over]
        with np.errstate(divide="ignore", invalid="ignore"):
            exact = done - size + (need - (grown - rate * size)) / rate
        found[rows[reached]] = exact[reached]
        total = np.where(reached | over | (rest <= 0.5), 0.0, total)  # leaves the loop


def pick_lean(
    left: FloatArray, wrong: FloatArray, total: ArrayLike, need: ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Choose how chances lean: the uniform share and the power that need the fewest checks.

    `total` is the number of wrong items left that is to be ruled out; a negative one stands for
    no particular number. Returns the share, the power and the expected checks.
    """
    rows, strata = left.shape[:-1], left.shape[-1]
    total, need = (np.broadcast_to(part, rows).reshape(-1) for part in (total, need))
    left, wrong = left.reshape(-1, strata), np.broadcast_to(wrong, left.shape).reshape(-1, strata)
    expected = (left * wrong).sum(axis=1)
    # below the least, no bet is expected to win
    least = np.where(total >= 0.0, 1.3, 2.0) * expected + 1.0
    tried = np.array(LEANINGS)
    each = np.repeat(np.arange(len(left)), len(tried))
    share, power = np.tile(tried.T, len(left))
    checks = expected_checks(
        left[each], wrong[each], np.maximum(total, least)[each], need[each], share, power
    ).reshape(-1, len(tried))
    best, chosen = checks[:, 0], np.zeros(len(left), dtype=np.intp)
    for number in range(1, len(tried)):
        better = checks[:, number] < best * (1.0 - 1e-9)
        best, chosen = np.where(better, checks[:, number], best), np.where(better, number, chosen)
    share, power = tried[chosen].T
    return share.reshape(rows), power.reshape(rows), best.reshape(rows)


def posterior(
    beliefs: FloatArray, rates: FloatArray, checked: FloatArray, found: FloatArray
) -> FloatArray:
    """Expected error of each stratum by the working model."""
    return np.asarray((STRENGTH * (beliefs @ rates) + found) / (STRENGTH + checked))


def update(
    beliefs: FloatArray,
    rates: FloatArray,
    checked: FloatArray,
    found: FloatArray,
    stratum: Any,
    error: Any,
) -> None:
    """Take a check into the working model."""
    at = (..., stratum) if np.ndim(stratum) == 0 else (np.arange(len(stratum)), stratum)
    before = STRENGTH * rates[:, stratum].T + np.asarray(found[at])[..., None]
    p = before / (STRENGTH + np.asarray(checked[at])[..., None])
    share = np.asarray(error)[..., None]
    beliefs *= share * p + (1.0 - share) * (1.0 - p)
    beliefs /= beliefs.sum(axis=-1, keepdims=True)
    checked[at] += 1.0
    found[at] += error


def advance(
    logs: FloatArray,
    peaks: FloatArray,
    totals: FloatArray,
    most: float,
    left: FloatArray,
    weights: FloatArray,
    wrong: FloatArray,
    stratum: int,
    error: float,
) -> None:
    """Let the wealth against every total (of items left) take part in one check.

    Wealth that has reached `most` decides whatever is asked and is left as it is.
    """
    open_ = np.flatnonzero(peaks < most)
    logs[open_] += bet(left, weights, wrong, totals[open_], stratum, error)
    peaks[open_] = np.maximum(peaks[open_], logs[open_])


def _drawn(left: FloatArray, weights: FloatArray, u: FloatArray) -> NDArray[np.intp]:
    """Stratum that a uniform number points at, per row."""
    open_ = (left > 0.5) & (weights > 0.0)
    reached = np.cumsum(np.where(open_, weights, 0.0), axis=1)
    hit = open_ & ((u * weights.sum(axis=1))[:, None] < reached)
    last = left.shape[1] - 1 - np.argmax(open_[:, ::-1], axis=1)
    return np.asarray(np.where(hit.any(axis=1), np.argmax(hit, axis=1), last))


def replay(
    left: FloatArray,
    bad: FloatArray,
    model: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
    totals: FloatArray,
    logs: FloatArray,
    need: float,
    batch: int,
    uniform: bool,
    rng: np.random.Generator,
    size: FloatArray,
) -> NDArray[np.int64]:
    """Play the rest of audits until every total is rejected; the first total is aimed at.

    Parameters
    ----------
    left
        Items left of each stratum.
    bad
        Wrong ones among them, a row per audit.
    model
        Beliefs, rates, checked and found: the working model at the start.
    totals, logs
        Numbers of wrong items left, or sums of losses, a row per audit or one for all, and the log
        wealth against them.
    need
        Log wealth that rejects.
    batch
        Checks after which the chances are chosen anew.
    uniform
        Draw all items with the same chance.
    rng
        Of draws and results.
    size
        What a wrong item of each stratum counts: 1, or its largest loss.

    Returns
    -------
    array of int64, shape (audits, totals)
        The check that rejects each total, or -1.
    """
    beliefs, rates, checked, found = model
    audits, n = len(bad), round(float(left.sum()))
    crossed = np.full((audits, np.shape(totals)[-1]), -1, dtype=np.int64)
    rows: NDArray[Any] = np.arange(audits)
    left, beliefs, checked, found, totals, logs = (
        np.tile(part, (audits, 1)) if part.ndim == 1 else part.copy()
        for part in (left, beliefs, checked, found, totals, logs)
    )
    bad, leaning = bad.copy(), np.ones((audits, 2))
    seen = np.empty(left.shape)  # expected errors when the batch was drawn
    most = max(1, CHANCES // audits)
    for t in range(n):
        if t % most == 0:
            chances = rng.random((audits, min(most, n - t), 2))
        wrong, mass = posterior(beliefs, rates, checked, found), left * size
        if t % batch == 0:
            seen = wrong.copy()
            aim = np.flatnonzero(crossed[rows, 0] < 0)
            if not uniform and len(aim):
                rest = np.maximum(need - logs[aim, 0], 0.1)
                aimed = np.maximum(totals[aim, 0], 0.0)
                picked = pick_lean(mass[aim], wrong[aim], aimed, rest)
                leaning[aim] = np.stack(picked[:2], axis=1)
        weights = lean(mass, seen, *leaning.T)
        chance = chances[rows, t % most]
        g, each = _drawn(left, weights, chance[:, 0]), np.arange(len(rows))
        error = (chance[:, 1] * left[each, g] < bad[each, g]).astype(np.float64)
        for k in range(totals.shape[1]):
            bets = np.flatnonzero(crossed[rows, k] < 0)
            logs[bets, k] += bet(
                mass[bets], weights[bets], wrong[bets], totals[bets, k], g[bets], error[bets]
            )
        left[each, g] -= 1.0
        bad[each, g] -= error
        totals -= (error * size[g])[:, None]
        update(beliefs, rates, checked, found, g, error)
        most_left = (left * size).sum(axis=1, keepdims=True) + 1e-9
        now = crossed[rows]
        now[(now < 0) & ((logs >= need) | (totals > most_left))] = t + 1
        crossed[rows] = now
        on = ((now < 0) & (totals > 0.0)).any(axis=1)  # nothing rejects a total of 0
        if not on.all():
            if not on.any():
                break
            rows = rows[on]
            left, bad, beliefs, checked, found, totals, logs, leaning, seen = (
                part[on] for part in (left, bad, beliefs, checked, found, totals, logs, leaning,
                                      seen)
            )  # fmt: skip
    return crossed
