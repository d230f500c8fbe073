"""What an item may still reach: the evidence of the answers to come, discounted like the rest.

With a dependence above 0 the evidence of any number of answers is bounded, since
``n / (1 + (n - 1) rho) < 1 / rho``. So there are items whose stated error cannot reach the target.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdtree.calibration import Calibration
from crowdtree.policy.base import FloatArray

__all__ = ["reach_probability"]

LEADERS = 4
"""Classes that are taken in turn for the true one: the likeliest, which stand for the others."""
CHUNK = 256


def reach_probability(
    stated: FloatArray,
    evidence: FloatArray,
    log_prior: FloatArray,
    yes: FloatArray,
    calibration: Calibration,
    target: float,
    answers: NDArray[Any],
    left: NDArray[Any],
    asked: NDArray[Any],
    remaining: NDArray[Any],
    shared_difficulty: float = 0.0,
) -> FloatArray:
    """Probability that an item reaches the target once all answers that may come are in.

    Each of the likeliest classes is taken for the true one, against its strongest rival. The
    evidence between the two after the most telling answers that are left is normal: its mean grows
    by ``scale`` times the divergence of the answers, its variance by that of independent answers
    times ``1 + (m - 1) rho``. Optimistic in what is asked and in the rivals: few items are given
    up that would have reached the target.

    Parameters
    ----------
    stated
        Log posterior that is stated, one row per item.
    evidence
        Plain log likelihood of the answers so far, up to a constant per item.
    log_prior
        Of the classes.
    yes
        P(yes | class), one row per question.
    calibration
        How evidence is discounted.
    target
        Error to reach.
    answers, left
        Answers so far, and how many may come.
    asked, remaining
        The same for each question.
    shared_difficulty
        Correlation of answers to one question on one item.
    """
    parts = [
        _reach(
            stated[rows], evidence[rows], log_prior, yes, calibration, target,
            answers[rows], left[rows], asked[rows], remaining[rows], shared_difficulty,
        )
        for start in range(0, len(stated), CHUNK)
        for rows in (slice(start, start + CHUNK),)
    ]  # fmt: skip
    return np.concatenate(parts) if parts else np.zeros(0)


def _reach(
    stated: FloatArray,
    evidence: FloatArray,
    log_prior: FloatArray,
    yes: FloatArray,
    calibration: Calibration,
    target: float,
    answers: NDArray[Any],
    left: NDArray[Any],
    asked: NDArray[Any],
    remaining: NDArray[Any],
    rho: float,
) -> FloatArray:
    from scipy.special import ndtr

    row = np.arange(len(stated))[:, None]
    cls = np.argsort(-stated, axis=1, kind="stable")[:, : max(2, LEADERS)]
    rival = np.repeat(cls[:, :1], cls.shape[1], axis=1)
    rival[:, 0] = cls[:, 1]
    mean, variance = _to_come(yes, cls, rival, left, asked, remaining, rho)
    more = np.minimum(left, remaining.sum(axis=1))
    power = calibration.power(answers + more)[:, None]
    spread = 1 + np.maximum(more - 1, 0)[:, None] * calibration.dependence
    now = evidence[row, cls] - evidence[row, rival]
    lead = power * (now + calibration.scale * mean) + log_prior[cls] - log_prior[rival]
    short = np.log1p(-target) - np.log(target) - lead
    noise = power * np.sqrt(variance * spread)
    with np.errstate(divide="ignore", invalid="ignore"):
        chance = np.where(noise > 0, ndtr(-short / noise), short <= 0)
    weight = np.exp(stated[row, cls])
    return np.asarray((weight * chance).sum(axis=1) / weight.sum(axis=1))


def _to_come(
    yes: FloatArray,
    cls: NDArray[Any],
    rival: NDArray[Any],
    left: NDArray[Any],
    asked: NDArray[Any],
    remaining: NDArray[Any],
    rho: float,
) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of the evidence for a class against its rival in the answers to come."""
    log_yes, log_no, table = np.log(yes).T, np.log1p(-yes).T, yes.T
    mine = table[cls]
    said_yes, said_no = log_yes[cls] - log_yes[rival], log_no[cls] - log_no[rival]
    mean = mine * said_yes + (1 - mine) * said_no
    variance = mine * (1 - mine) * (said_yes - said_no) ** 2
    worth = remaining.astype(np.float64)
    if rho:  # answers to one question add up to fewer independent ones
        whole = asked + remaining
        worth = _independent(whole, rho) - _independent(asked, rho)
    count = np.broadcast_to(remaining[:, None, :], mean.shape)
    worth = np.broadcast_to(worth[:, None, :], mean.shape)
    if np.any(remaining.sum(axis=1) > left):  # the most telling questions, as many as there may be
        order = np.argsort(-mean, axis=2, kind="stable")
        mean, variance, count, worth = (
            np.take_along_axis(a, order, axis=2) for a in (mean, variance, count, worth)
        )
        before = np.cumsum(count, axis=2) - count
        taken = np.clip(left[:, None, None] - before, 0, count)
        worth = worth * taken / np.maximum(count, 1)
    return (worth * mean).sum(axis=2), (worth * variance).sum(axis=2)


def _independent(count: NDArray[Any], rho: float) -> FloatArray:
    return np.asarray(count / (1 + np.maximum(count - 1, 0) * rho))
