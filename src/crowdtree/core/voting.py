"""Fusion of votes into a verdict, and the error of the verdict (docs/model.md, section 6).

People may err together on an item. With `dependence` ``rho`` the item's own share of wrong answers
is Beta distributed around the worker error, so that two answers have correlation ``rho``
(docs/model.md, section 13). More votes then tend to the probability that this share exceeds one
half, not to 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdtree.core.arrays import FloatArray
from crowdtree.core.errors import CrowdtreeError

_NEGLIGIBLE = 1e-13
"""A vote is no longer followed once the probability that it is open falls below this."""


def majority_error(
    worker_error: ArrayLike, votes: ArrayLike, dependence: float = 0.0
) -> FloatArray:
    """Probability that the majority of `votes` equally good workers is wrong.

    For ``n = 2k + 1`` votes it is ``I_e(k + 1, k + 1)``, the regularised incomplete beta function.
    An even vote that ties is settled by a fair coin, which makes ``n = 2k`` exactly as good as ``n
    = 2k - 1``. `dependence` is the correlation of two answers about one item; with it the number of
    wrong votes is beta-binomial.

    References
    ----------
    Geng, Li and Varshney (2018), Proposition 1.

    Examples
    --------
    >>> majority_error(0.2, [1, 2, 3, 5]).round(5).tolist()
    [0.2, 0.2, 0.104, 0.05792]
    >>> majority_error(0.2, [1, 3, 101], dependence=0.3).round(5).tolist()
    [0.2, 0.16382, 0.12292]
    """
    from scipy.special import betainc

    count = np.asarray(votes)
    if np.any(count < 1):
        raise CrowdtreeError(f"votes: expected at least 1 per question, got {count.min()}")
    half = (count + 1) // 2  # k + 1, with the tie rule: 2k votes count as 2k - 1
    if dependence:
        return _dependent_majority(np.asarray(worker_error, dtype=np.float64), half, dependence)
    return np.asarray(betainc(half, half, np.asarray(worker_error, dtype=np.float64)))


def _dependent_majority(error: FloatArray, half: NDArray[Any], rho: float) -> FloatArray:
    """P(at least `half` wrong of ``2 half - 1``), beta-binomial."""
    error, half = np.broadcast_arrays(error, half)
    found = np.empty(error.shape)
    for need in np.unique(half).tolist():
        here = half == need
        wrong = np.arange(need, 2 * need)[:, None]
        log_chance = _log_sequence(error[here], rho, wrong, 2 * need - 1 - wrong)
        found[here] = np.exp(_log_choose(2 * need - 1, wrong) + log_chance).sum(axis=0)
    return np.minimum(found, 1.0)


def _log_choose(n: ArrayLike, k: ArrayLike) -> FloatArray:
    from scipy.special import gammaln

    n, k = np.asarray(n), np.asarray(k)
    return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))


def binomial(successes: ArrayLike, trials: ArrayLike, chance: float) -> FloatArray:
    """Probability of so many successes; importing ``scipy.stats`` for it takes a second.

    >>> binomial([0, 1, 2, 3], 2, 0.5).round(9).tolist()
    [0.25, 0.5, 0.25, 0.0]
    """
    from scipy.special import xlog1py, xlogy

    k, n = np.broadcast_arrays(successes, trials)
    left = np.maximum(n - k, 0)
    log_chance = _log_choose(n, n - left) + xlogy(k, chance) + xlog1py(left, -chance)
    return np.where(k <= n, np.exp(log_chance), 0.0)


def _log_sequence(
    error: FloatArray, rho: float, wrong: NDArray[Any], right: NDArray[Any]
) -> FloatArray:
    """Log probability of one sequence of so many wrong and right answers, by Polya's urn.

    One row per entry of `wrong` and `right` (columns), one column per error.
    """
    most = int((wrong + right).max(initial=0))
    place = np.arange(most)[:, None]

    def rising(share: FloatArray) -> FloatArray:
        """Logarithms of the products of the first 0, 1, 2, ... shares as the urn fills."""
        with np.errstate(divide="ignore"):  # a worker without errors: log 0
            steps = np.log((1 - rho) * share[None, :] + rho * place)
        return np.concatenate([np.zeros((1, len(share))), np.cumsum(steps, axis=0)])

    total = rising(np.ones(1))
    one, two = rising(error), rising(1 - error)
    return np.asarray(one[wrong[:, 0]] + two[right[:, 0]] - total[(wrong + right)[:, 0]])


def majority_gain(worker_error: ArrayLike, pairs: ArrayLike) -> FloatArray:
    """Fall of the fused error when ``2k + 1`` votes (`pairs` k) become ``2k + 3``.

    ``f(e, k) - f(e, k + 1) = C(2k + 1, k) (1 - 2e) (e (1 - e))^(k + 1)``, in logarithms so that it
    stays exact for thousands of votes, where the difference of two fused errors would be lost.

    >>> majority_gain(0.2, [0, 1, 2]).round(6).tolist()
    [0.096, 0.04608, 0.024576]
    """
    from scipy.special import betaln, xlog1py, xlogy

    error = np.asarray(worker_error, dtype=np.float64)
    k = np.asarray(pairs, dtype=np.float64)
    # C(2k+1, k) = 1 / ((2k + 2) B(k + 1, k + 2))
    log_choose = -np.log(2 * k + 2) - betaln(k + 1, k + 2)
    log_power = xlogy(k + 1, error) + xlog1py(k + 1, -error)
    return np.asarray((1 - 2 * error) * np.exp(log_choose + log_power))


def majority_gains(worker_error: FloatArray, dependence: float = 0.0) -> Iterator[FloatArray]:
    """Yield the gains of the first, second, ... pair of extra workers, O(1) each.

    Successive gains differ by the factor ``2 (2k + 3) / (k + 2) x e (1 - e) <= 4 e (1 - e)``,
    which is less than 1 for every ``e != 0.5``: that is Proposition 1 of the paper. With
    `dependence` ``e (1 - e)`` is replaced by the chance that the urn draws a wrong and a right
    answer next, ``A B / ((S + 1) (S + 2)) < 1 / 4`` in its own units, so gains shrink as well.

    >>> gains = majority_gains(np.array([0.2]))
    >>> [round(float(next(gains)[0]), 6) for _ in range(3)]
    [0.096, 0.04608, 0.024576]
    """
    product = worker_error * (1 - worker_error)
    rho, rest = dependence, 1 - dependence
    gain = (1 - 2 * worker_error) * product * (rest**2 / (1 + rho))
    k = 0
    while True:
        # Rounding would keep the smallest floats from shrinking further.
        gain = np.where(np.abs(gain) < np.finfo(np.float64).tiny, 0.0, gain)
        yield gain
        if rho:
            wrong, right = (
                rest * worker_error + rho * (k + 1),
                rest * (1 - worker_error) + rho * (k + 1),
            )
            product = wrong * right / ((rest + rho * (2 * k + 3)) * (rest + rho * (2 * k + 4)))
        gain = gain * product * (2 * (2 * k + 3) / (k + 2))
        k += 1


def margin_error(worker_error: ArrayLike, margin: ArrayLike, dependence: float = 0.0) -> FloatArray:
    """Error of a vote that stops when one side leads by `margin`.

    ``1 / (1 + ((1 - e) / e)^margin)``: Wald's sequential test for equal errors. With
    `dependence` the same, averaged over the item's own share of wrong answers.

    References
    ----------
    Boyarskaya and Ipeirotis (2021).

    Examples
    --------
    >>> margin_error(0.2, [1, 2, 3]).round(4).tolist()
    [0.2, 0.0588, 0.0154]
    """
    from scipy.special import expit, logit

    if dependence:
        return _dependent_margin(worker_error, margin, dependence)[0]
    return np.asarray(expit(np.asarray(margin) * logit(np.asarray(worker_error, dtype=np.float64))))


def margin_votes(worker_error: ArrayLike, margin: ArrayLike, dependence: float = 0.0) -> FloatArray:
    """Expected number of votes until one side leads by `margin`.

    ``margin (1 - 2 error) / (1 - 2e)``, and ``margin**2`` for a fair coin.

    >>> margin_votes([0.2, 0.5], 3).round(3).tolist()
    [4.846, 9.0]
    """
    if dependence:
        return _dependent_margin(worker_error, margin, dependence)[1]
    error = np.asarray(worker_error, dtype=np.float64)
    lead = np.asarray(margin, dtype=np.float64)
    bias = 1 - 2 * error
    with np.errstate(divide="ignore"):  # a worker without errors: tanh(inf) = 1
        won = np.tanh(lead * np.arctanh(bias))  # 1 - 2 error, without its cancellation
    fair = bias == 0  # the limit, where the quotient would be 0 / 0
    return np.asarray(np.where(fair, lead**2, lead * won / np.where(fair, 1.0, bias)))


def _dependent_margin(
    worker_error: ArrayLike, margin: ArrayLike, rho: float
) -> tuple[FloatArray, FloatArray]:
    """Error and expected votes of margin votes under the urn, each different pair once."""
    error, lead = np.broadcast_arrays(np.asarray(worker_error, dtype=np.float64), margin)
    wrong, votes = np.empty(error.shape), np.empty(error.shape)
    for need in np.unique(lead).tolist():
        here = lead == need
        shares, place = np.unique(error[here], return_inverse=True)
        found = _urn_walk(shares, int(need), rho)
        wrong[here], votes[here] = (part[np.ravel(place)] for part in found)
    return wrong, votes


def _urn_walk(error: FloatArray, margin: int, rho: float) -> tuple[FloatArray, FloatArray]:
    """Follow the lead of the wrong side, answer by answer, until nearly all votes have stopped."""
    size = 2 * margin + 1  # leads from -margin to margin
    chance = np.zeros((size, len(error)))
    chance[margin] = 1.0
    wrong, votes = np.zeros(len(error)), np.zeros(len(error))
    lead = np.arange(-margin, margin + 1)[:, None]
    turn = 0
    while True:
        alive = chance[1:-1].sum(axis=0)
        if alive.max() < _NEGLIGIBLE:
            return wrong + alive / 2, votes
        votes += alive
        errs = ((1 - rho) * error + rho * (turn + lead) / 2) / ((1 - rho) + rho * turn)
        moved = np.zeros_like(chance)
        moved[2:] += (chance * errs)[1:-1]
        moved[:-2] += (chance * (1 - errs))[1:-1]
        wrong += moved[-1]
        chance = moved
        chance[-1] = chance[0] = 0.0
        turn += 1


def curtailed_votes(
    worker_error: ArrayLike, votes: ArrayLike, dependence: float = 0.0
) -> FloatArray:
    """Expected answers when a majority of `votes` stops as soon as it is decided.

    ``2k + 1`` votes are a race of both sides to ``k + 1``. In an even vote the first answer
    settles a tie (given a tie, it is yes or no equally often: a fair coin), so its side needs
    one answer less. Exact; same verdict as the full vote.

    >>> curtailed_votes(0.2, [1, 2, 3, 5]).round(4).tolist()
    [1.0, 1.0, 2.32, 3.6336]
    >>> round(0.8**2 * 2 + 0.2**2 * 2 + 2 * 0.8 * 0.2 * 3, 4)  # three votes, by hand
    2.32
    """
    error, count = np.broadcast_arrays(np.asarray(worker_error, dtype=np.float64), votes)
    if np.any(count < 1):
        raise CrowdtreeError(f"votes: expected at least 1 per question, got {count.min()}")
    expected = np.empty(error.shape)
    for n in np.unique(count).tolist():
        here = count == n
        e, half, rho = error[here], n // 2, dependence
        if n % 2:
            expected[here] = _race(e, half + 1, half + 1, rho)
        else:  # the first answer is one more ball in the urn
            more, was = rho / (1 + rho), (1 - rho) * e
            right = (1 - e) * _race(was, half - 1, half + 1, more)
            expected[here] = 1 + right + e * _race(was + rho, half + 1, half - 1, more)
    return expected


def _race(worker_error: FloatArray, right: int, wrong: int, rho: float = 0.0) -> FloatArray:
    """Expected answers until `right` right or `wrong` wrong ones: two cut negative binomials."""
    from scipy.special import gammaln, xlog1py, xlogy

    if right == 0 or wrong == 0:
        return 0.0 * worker_error

    def side(error: FloatArray, need: int, other: int) -> FloatArray:
        lost = np.arange(other)[:, None]  # answers for the other side before `need` are in
        ways = gammaln(need + lost) - gammaln(need) - gammaln(lost + 1)
        if rho:
            chance = np.exp(ways + _log_sequence(error, rho, lost, np.full_like(lost, need)))
        else:
            chance = np.exp(ways + xlog1py(need, -error) + xlogy(lost, error))
        return np.asarray(((need + lost) * chance).sum(axis=0))

    return side(worker_error, right, wrong) + side(1 - worker_error, wrong, right)
