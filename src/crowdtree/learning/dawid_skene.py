"""Expectation maximisation of Dawid and Skene (1979): classes of items and tables of workers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.arrays import FloatArray
from crowdtree.learning.passes import Votes, with_gold

_LEAST_LOG = -60.0  # keeps 0 x log 0 out


class DawidSkeneFit(NamedTuple):
    """What the answers to one question teach.

    `posterior` is (item, class), `log_answer` the logarithm of P(label | class) of each worker
    (worker, label, class), `log_prior` that of the class shares, and `trace` the objective after
    each step.
    """

    posterior: FloatArray
    log_answer: FloatArray
    log_prior: FloatArray
    trace: tuple[float, ...]
    converged: bool


def fit_dawid_skene(
    votes: Votes,
    gold: NDArray[np.int32],
    *,
    smoothing: float = 0.0,
    tolerance: float = 1e-5,
    steps: int = 100,
) -> DawidSkeneFit:
    """Fit by EM from the majority, until the objective gains less than `tolerance` per answer.

    `gold` is the known class of each item, -1 where unknown; `smoothing` is added to every cell of
    a worker's table (0: maximum likelihood).

    Examples
    --------
    Two workers agree, the third says the opposite:

    >>> start, worker = np.array([0, 3, 6, 9]), np.array([0, 1, 2] * 3, np.int32)
    >>> label = np.array([1, 1, 0, 0, 0, 1, 1, 1, 0], np.int8)
    >>> fit = fit_dawid_skene(Votes(start, worker, label, 3, 2), np.full(3, -1, np.int32))
    >>> fit.posterior[:, 1].round().tolist(), fit.converged
    ([1.0, 0.0, 1.0], True)
    """
    posterior = with_gold(votes.shares(), gold)
    counts = votes.counts(posterior)
    trace: list[float] = []
    converged = False
    for _ in range(steps):
        log_answer, log_prior = _tables(counts, smoothing), _log(votes.mean(posterior))
        likelihood, _ = votes.expect(log_answer, log_prior, gold, posterior, counts)
        trace.append(likelihood + smoothing * float(log_answer.sum()))
        if len(trace) > 1 and trace[-1] - trace[-2] < tolerance * votes.answers:
            converged = True
            break
    return DawidSkeneFit(posterior, log_answer, log_prior, tuple(trace), converged)


def _tables(counts: FloatArray, smoothing: float) -> FloatArray:
    """Log P(label | class) of each worker; uniform where there are no answers."""
    smoothed = counts + smoothing
    total = smoothed.sum(axis=1, keepdims=True)
    share = np.where(total > 0, smoothed / np.maximum(total, 1e-300), 1 / counts.shape[1])
    return np.ascontiguousarray(_log(share))


def _log(share: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.asarray(np.maximum(np.log(share), _LEAST_LOG))
