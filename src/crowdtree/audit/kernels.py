"""Arithmetic of audits: bets, the working model, chances of strata.

Items are handled by strata of similar stated error. A state is ``left`` (items of each stratum not
drawn yet); ``weights`` are the chances of the strata, within which every item left is equally
likely. For losses, ``left`` is the sum of the largest ones instead. Strata are the last axis of an
array; the axes before it are audits, or checks, that are computed together. See section 13 of
docs/model.md for the formulas.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdtree.audit.strata import LARGEST, LEANINGS, PRECISION, STEPS, STRENGTH
from crowdtree.core.arrays import FloatArray

CHUNK = 128
"""Checks that are played together; a total is often rejected by the first ones."""
RESOLUTION = 50
"""Checks before, for each of which replays take one more in a step: they end 2 % late at most."""


def _share(part: Any, whole: Any) -> FloatArray:
    """Divide; 0 where there is nothing to divide by."""
    part, whole = np.broadcast_arrays(part, whole)
    return np.asarray(np.divide(part, whole, out=np.zeros(part.shape), where=whole > 0.0))


def stake(left: FloatArray, chance: FloatArray, wrong: FloatArray, total: Any) -> FloatArray:
    """Stake that makes the wealth against ``wrong items left >= total`` grow fastest.

    `chance` is that of one item of each stratum.
    """
    n, total = left.sum(-1), np.asarray(total, dtype=np.float64)
    all_wrong = total > n - 1.0 / LARGEST
    open_ = (total > (left * wrong).sum(-1)) & (total > 0.0) & (total <= n)
    found = np.where(open_ & all_wrong, LARGEST, 0.0)
    open_ &= ~all_wrong
    if not open_.any():
        return found
    shape = open_.shape
    row = np.flatnonzero(open_.reshape(-1))

    def rows(part: FloatArray) -> FloatArray:
        return np.broadcast_to(part, (*shape, left.shape[-1])).reshape(-1, left.shape[-1])[row]

    left, chance, wrong = rows(left), rows(chance), rows(wrong)
    total, found = np.broadcast_to(total, shape).reshape(-1)[row], found.reshape(-1)
    # The root of sum left (c + chance + root) / 2 - 1 - total c, which is convex: Newton's method
    # falls towards it from the right. Its value is written so that nothing cancels.
    middle, half = chance * (2.0 * wrong - 1.0), 0.5 * left
    square = chance * chance - middle * middle
    slack = half.sum(-1) - total
    c = 1.0 / (half.sum(-1) + slack)
    for _ in range(60):
        apart = c[:, None] + middle
        root = np.sqrt(apart * apart + square)
        value = np.einsum("ij,ij->i", half, (apart + middle) / (root + chance)) + slack
        root[root == 0.0] = 1.0
        slope = np.einsum("ij,ij->i", half, apart / root) + slack
        rises = slope > 0.0
        step = np.where(rises, value / np.where(rises, slope, 1.0), 1.0) * c
        c = c - step
        busy = step > PRECISION * c
        busy &= c > 0.0
        if not busy.all():
            found[row[~busy]] = c[~busy]
            if not busy.any():
                break
            row, c, chance, half, middle, square, slack = (
                part[busy] for part in (row, c, chance, half, middle, square, slack)
            )
    else:
        found[row] = c
    return np.maximum(found, 0.0).reshape(shape)


def loser(s: Any, wrong: Any, c: Any) -> FloatArray:
    """Chance of an item times what it pays when wrong, before it is normalised.

    When right it pays `c` more. Written so that nothing cancels for large stakes.
    """
    apart = c - s
    root = np.sqrt(apart * apart + 4.0 * s * c * wrong)
    with np.errstate(invalid="ignore", divide="ignore"):
        paid = np.where(apart > 0.0, 2.0 * s * c * wrong / (root + apart), 0.5 * (root - apart))
    return np.asarray(paid)


def bet(
    left: FloatArray, weights: FloatArray, wrong: FloatArray, total: Any, stratum: Any, error: Any
) -> FloatArray:
    """Log of the factor of the wealth when an item of a stratum is found wrong (1) or right (0).

    Between 0 and 1 `error` is a loss, as a share of the largest that an item of the stratum can
    have; `left` and `total` are then sums of largest losses instead of counts. With one more axis,
    `stratum` and `error` are several checks in the same state.

    The expected factor is at most 1 whenever at least `total` of the items left are wrong.
    """
    s = _share(weights, left)
    c = stake(left, s, wrong, total)
    low = loser(s, wrong, c[..., None])
    norm = (left.sum(-1) - total) * c + (left * low).sum(-1)
    stratum, error = np.asarray(stratum), np.asarray(error)
    single = stratum.ndim < left.ndim
    if single:
        stratum, error = stratum[..., None], error[..., None]
    pay = np.take_along_axis(low, stratum, -1) + c[..., None] * (1.0 - error)
    with np.errstate(invalid="ignore", divide="ignore"):
        found = np.log(pay / np.take_along_axis(s, stratum, -1)) - np.log(norm)[..., None]
    found = np.where(c[..., None] > 0.0, np.where(pay > 0.0, found, -np.inf), 0.0)
    return found[..., 0] if single else found


def growth(left: FloatArray, weights: FloatArray, wrong: FloatArray, total: Any) -> FloatArray:
    """Expected log factor of the next bet if the working model is right."""
    s = _share(weights, left)
    c = stake(left, s, wrong, total)
    low = loser(s, wrong, c[..., None])
    norm = (left.sum(-1) - total) * c + (left * low).sum(-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        right = np.where(left > 0.0, np.log((low + c[..., None]) / s), 0.0)
        lost = np.where((left > 0.0) & (wrong > 0.0), np.log(low / s), 0.0)
        gain = (weights * ((1.0 - wrong) * right + wrong * lost)).sum(-1) - np.log(norm)
    return np.where(c > 0.0, gain, 0.0)


def lean(left: FloatArray, wrong: FloatArray, uniform: Any, power: Any) -> FloatArray:
    """Chances of the strata: a uniform part, the rest by a power of the expected error."""
    uniform, power = (np.asarray(part, dtype=np.float64)[..., None] for part in (uniform, power))
    each = _share(1.0, left.sum(-1, keepdims=True))
    raised = wrong**power
    total = (left * raised).sum(-1, keepdims=True)
    part = np.where(total > 0.0, _share(raised, total), each)
    return np.asarray(left * (uniform * each + (1.0 - uniform) * part))


def expected_checks(
    left: FloatArray,
    wrong: FloatArray,
    total: FloatArray,
    need: FloatArray,
    uniform: FloatArray,
    power: FloatArray,
) -> FloatArray:
    """Checks until the log wealth has grown by `need`, if the working model is right."""
    n: FloatArray = left.sum(-1)
    found, done, grown = n.copy(), np.zeros(len(n)), np.zeros(len(n))
    step = np.maximum(1.0, n / STEPS)
    row = np.flatnonzero((n > 0.0) & (total > 0.0))
    now, total = left[row], total[row]
    while len(row):
        weights = lean(now, wrong[row], uniform[row], power[row])
        rate = growth(now, weights, wrong[row], total)
        size = np.minimum(step[row], n[row] - done[row])
        missing = need[row] - grown[row]
        over = (rate > 0.0) & (rate * size >= missing)
        found[row[over]] = (done[row] + missing / np.where(rate > 0.0, rate, 1.0))[over]
        grown[row] += rate * size
        done[row] += size
        taken = np.minimum(now, weights * size[:, None])
        now = now - taken
        total = total - (taken * wrong[row]).sum(-1)
        rest = now.sum(-1)
        few = ~over & (rest < total)  # fewer items are left than the null has wrong ones
        found[row[few]] = done[row[few]]
        on = ~over & ~few & (rest > 0.5) & (done[row] < n[row]) & (total > 0.0)
        row, now, total = row[on], now[on], total[on]
    return found


def pick_lean(
    left: FloatArray, wrong: FloatArray, total: Any, need: Any
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Choose how chances lean: the uniform share and the power that need the fewest checks.

    `total` is the number of wrong items left that is to be ruled out; a negative one stands for
    no particular number. Returns the share, the power and the expected checks.
    """
    total, need = np.broadcast_arrays(np.asarray(total, dtype=np.float64), need)
    shape, strata, ways = total.shape, left.shape[-1], len(LEANINGS)
    ahead = (left * wrong).sum(-1)
    least = np.where(total >= 0.0, 1.3, 2.0) * ahead + 1.0  # below, no bet is expected to win
    share, power = np.array(LEANINGS).T

    def tried(part: FloatArray) -> FloatArray:
        return np.asarray(np.repeat(np.broadcast_to(part, shape).reshape(-1), ways))

    def tables(part: FloatArray) -> FloatArray:
        return np.asarray(np.repeat(part.reshape(-1, strata), ways, axis=0))

    many = max(total.size, 1)
    checks = expected_checks(
        tables(left), tables(wrong), tried(np.maximum(total, least)), tried(need),
        np.tile(share, many), np.tile(power, many),
    ).reshape(*shape, ways)  # fmt: skip
    best, way = np.full(shape, np.inf), np.zeros(shape, dtype=np.int64)
    for k in range(ways):
        better = checks[..., k] < best * (1.0 - 1e-9)
        best, way = np.where(better, checks[..., k], best), np.where(better, k, way)
    return share[way], power[way], best


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
    """Take a check into the working model, in place; one per audit, or several each."""
    beliefs, checked, found = (np.atleast_2d(part) for part in (beliefs, checked, found))
    row = np.arange(len(beliefs))[:, None]
    stratum, error = (np.reshape(part, (len(beliefs), -1)) for part in (stratum, error))
    mine = (row, stratum)
    strength = STRENGTH + checked[mine][..., None]
    p = (STRENGTH * rates.T[stratum] + found[mine][..., None]) / strength
    beliefs *= (error[..., None] * (2.0 * p - 1.0) + (1.0 - p)).prod(axis=1)
    beliefs /= beliefs.sum(axis=1, keepdims=True)
    np.add.at(checked, mine, 1.0)
    np.add.at(found, mine, error)


def wealth(
    counts: FloatArray,
    size: FloatArray,
    rows: FloatArray,
    strata: NDArray[np.int64],
    errors: FloatArray,
    flip: bool,
    total: float,
    log: float,
    start: int,
    stop: int,
    need: float,
) -> tuple[float, int, bool]:
    """Log wealth against a total after more checks, until it is rejected.

    `counts` are the items of each stratum before the first check, of which a wrong one counts as
    its `size`: 1, or its largest loss. For every check, `rows` holds the chances of the strata and
    their expected errors, `strata` and `errors` what was drawn and found; `flip` tests the number
    of right items. The null says that the wrong items (losses) are at least `total` before the
    first check. `log` is the log wealth after `start` checks, `need` the one that rejects.

    Returns the log wealth, the checks that it includes (up to `stop`), and whether the total is
    rejected: by the wealth, or because fewer items are left than it needs.
    """
    first = max(start - 1, 0)
    before = np.bincount(strata[:first], minlength=len(counts))
    if flip:
        errors = 1.0 - errors[:stop]
    counts = counts - before
    total = total - float((errors[:first] * size[strata[:first]]).sum())
    while first < stop:
        last = min(first + CHUNK, stop)
        drawn = np.zeros((last - first + 1, len(counts)))
        drawn[np.arange(1, len(drawn)), strata[first:last]] = 1.0
        mass = (counts - np.cumsum(drawn, axis=0)) * size
        lost = errors[first:last] * size[strata[first:last]]
        totals = total - np.append(0.0, np.cumsum(lost))
        new = slice(max(start - first, 0), last - first)
        expected = rows[first:last, 1][new]
        logs = np.full(last - first, log)
        logs[new] += np.cumsum(bet(
            mass[:-1][new], rows[first:last, 0][new], 1.0 - expected if flip else expected,
            totals[:-1][new], strata[first:last][new], errors[first:last][new],
        ))  # fmt: skip
        rejected = (logs >= need) | (totals[1:] > mass[1:].sum(axis=1) + 1e-9)
        rejected[: max(start - 1 - first, 0)] = False
        if rejected.any():
            at = int(np.argmax(rejected))
            return float(logs[at]), first + at + 1, True
        log, total, first = float(logs[-1]), float(totals[-1]), last
        counts = counts - drawn.sum(axis=0)
    return log, stop, False


def draw(left: FloatArray, weights: FloatArray, u: float) -> tuple[int, int]:
    """Stratum and place among its items left that a uniform number points at."""
    at = u * float(weights.sum())
    last = 0
    for g, (items, weight) in enumerate(zip(left.tolist(), weights.tolist(), strict=True)):
        if items > 0.5 and weight > 0.0:
            last = g
            if at < weight:
                return g, min(int(at / weight * items), int(items + 0.5) - 1)
            at -= weight
    return last, int(left[last] + 0.5) - 1


def _draw_strata(left: FloatArray, weights: FloatArray, u: FloatArray) -> NDArray[np.int64]:
    """Stratum that each uniform number points at."""
    open_ = (left > 0.5) & (weights > 0.0)
    ends = np.cumsum(np.where(open_, weights, 0.0), axis=1)
    at = u * weights.sum(axis=1)[:, None]
    drawn = (ends[:, None, :] <= at[:, :, None]).sum(axis=2)
    last = left.shape[1] - 1 - np.argmax(open_[:, ::-1], axis=1)
    return np.asarray(np.minimum(drawn, last[:, None]))


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
    planned: tuple[int, int] = (0, -1),
    resolution: int | None = RESOLUTION,
) -> NDArray[np.int64]:
    """Play the rest of audits until every total is rejected; the first total is aimed at.

    `left` are the items left of each stratum and `bad` the wrong ones among them, a row per audit;
    `model` is the working model at the start; `totals` are numbers of wrong items left, or sums of
    losses, a row per audit or one for all, and `logs` the log wealth against them, which rejects at
    `need`. Chances are chosen anew after `batch` checks, unless they are `uniform`; a wrong item
    counts as its `size`. `planned` holds the checks until the planned number (0: none), with equal
    chances, and how many wrong ones among them still reject the first total. With a `resolution`
    one check per so many before is taken at a time, as if nothing changed between them: an
    approximation for forecasts.

    Returns the check that rejects each total, or -1 (audit, total).
    """
    crossed = np.full((len(bad), np.shape(totals)[-1]), -1, dtype=np.int64)
    totals, logs = (np.array(np.broadcast_to(part, crossed.shape)) for part in (totals, logs))
    plan, most = planned
    audits = np.arange(len(bad))
    rates = model[1]
    left, beliefs, checked, found = (
        np.tile(part, (len(bad), 1)) for part in (left, model[0], *model[2:])
    )
    bad = bad.copy()
    before = left
    share, power, wrongs = np.ones(len(bad)), np.ones(len(bad)), np.zeros(len(bad))
    t, n, done = 0, round(float(left[0].sum())) if len(left) else 0, int(model[2].sum())
    fresh, again = 0, plan  # checks at which expected errors and chances are computed anew
    while t < n and len(audits):
        mass = left * size
        wrong = posterior(beliefs, rates, checked, found)
        if t >= fresh:
            before, fresh = wrong, t + batch
            if not uniform and t >= again:
                again = t + (done + t) // 10  # as an audit does
                aim = np.flatnonzero(crossed[audits, 0] < 0)
                goal = totals[audits[aim], 0], need - logs[audits[aim], 0]
                share[aim], power[aim], _ = pick_lean(
                    mass[aim], wrong[aim], np.maximum(goal[0], 0.0), np.maximum(goal[1], 0.1)
                )
        weights = lean(mass, before, share, power)
        end = t + 1 if resolution is None else t + max(1, (done + t) // resolution)
        end = min(end, plan if t < plan else n)
        chance, t = rng.random((len(audits), end - t, 2)), end
        g = _draw_strata(left, weights, chance[:, :, 0])
        drawn = (np.arange(len(audits))[:, None], g)
        error = (chance[:, :, 1] * left[drawn] < bad[drawn]).astype(np.float64)
        for k in range(totals.shape[1]):
            on = np.flatnonzero(crossed[audits, k] < 0)
            logs[audits[on], k] += bet(
                mass[on], weights[on], wrong[on], totals[audits[on], k], g[on], error[on]
            ).sum(axis=1)
        np.subtract.at(left, drawn, 1.0)
        np.subtract.at(bad, drawn, error)
        left, bad = np.maximum(left, 0.0), np.maximum(bad, 0.0)
        totals[audits] -= (error * size[g]).sum(axis=1)[:, None]
        update(beliefs, rates, checked, found, g, error)
        wrongs += error.sum(axis=1)
        if t == plan:
            rejecting = audits[(wrongs <= most) & (crossed[audits, 0] < 0)]
            crossed[rejecting, 0] = t
        rest = (left * size).sum(axis=1)[:, None] + 1e-9
        over = (crossed[audits] < 0) & ((logs[audits] >= need) | (totals[audits] > rest))
        crossed[audits] = np.where(over, t, crossed[audits])
        open_ = (crossed[audits] < 0).any(axis=1)
        if not open_.all():
            audits, left, bad, before = audits[open_], left[open_], bad[open_], before[open_]
            beliefs, checked, found = beliefs[open_], checked[open_], found[open_]
            share, power, wrongs = share[open_], power[open_], wrongs[open_]
    return crossed
