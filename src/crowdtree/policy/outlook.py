"""What an item may still reach: the evidence of the answers to come, discounted like the rest.

With a dependence above 0 the evidence of any number of answers is bounded, since
``n / (1 + (n - 1) rho) < 1 / rho``, and with a floor no stated error falls below it. So there are
items whose stated error cannot reach the target.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdtree.calibration import Calibration
from crowdtree.policy.base import FloatArray

__all__ = ["Outlook", "hopeless"]

UNLIKELY = 0.05
"""Probability of reaching the target below which an item may be given up."""
WORTH = 0.01
"""Rise of the probability that the label is right for which an answer is still worth asking."""
AHEAD = (4, 16)
"""Numbers of further answers whose worth is looked at, besides all that may come."""
LEADERS = 4
"""Classes that are taken in turn for the true one: the likeliest, which stand for the others."""
CHUNK = 256


class Outlook(NamedTuple):
    """What is known about some items and what may come, one row per item.

    Attributes
    ----------
    stated
        Log posterior that is stated.
    evidence
        Plain log likelihood of the answers so far, up to a constant per item.
    answers, left
        Answers so far, and how many may come.
    asked, remaining
        The same for each question.
    """

    stated: FloatArray
    evidence: FloatArray
    answers: NDArray[Any]
    left: NDArray[Any]
    asked: NDArray[Any]
    remaining: NDArray[Any]

    def rows(self, chosen: Any) -> Outlook:
        """Some of the items."""
        return Outlook(*(column[chosen] for column in self))


def hopeless(
    items: Outlook,
    log_prior: FloatArray,
    yes: FloatArray,
    calibration: Calibration,
    target: float,
    shared_difficulty: float = 0.0,
) -> NDArray[np.bool_]:
    """Whether an item is unlikely to reach the target, and more answers hardly help its label.

    Each of the likeliest classes is taken for the true one, against its strongest rival. The
    evidence between the two after the most informative answers left is normal: its mean grows
    by ``scale`` times the divergence of the answers, its variance by that of independent answers
    times ``1 + (m - 1) rho``. Optimistic in what is asked and in the rivals: few items are given
    up that would have reached the target.

    Parameters
    ----------
    items
        The items.
    log_prior
        Of the classes.
    yes
        P(yes | class), one row per question.
    calibration
        How evidence is discounted.
    target
        Error to reach.
    shared_difficulty
        Correlation of answers to one question on one item.
    """
    target = calibration.before_tail(target)
    found = np.zeros(len(items.stated), dtype=bool)
    for start in range(0, len(found), CHUNK):
        rows = np.arange(start, min(start + CHUNK, len(found)))
        part = items.rows(rows)
        reach, right = _ahead(part, log_prior, yes, calibration, target, shared_difficulty)
        given_up = reach < UNLIKELY
        given_up &= right < WORTH * part.left
        for count in AHEAD:
            at = np.flatnonzero(given_up)
            if len(at):
                few = part.rows(at)
                few = few._replace(left=np.minimum(few.left, count))
                _, right = _ahead(few, log_prior, yes, calibration, target, shared_difficulty)
                given_up[at] &= right < WORTH * few.left
        found[rows] = given_up
    return found


def _ahead(
    items: Outlook,
    log_prior: FloatArray,
    yes: FloatArray,
    calibration: Calibration,
    target: float,
    rho: float,
) -> tuple[FloatArray, FloatArray]:
    """Probability that the target is reached, and rise of the probability of a right label."""
    from scipy.special import ndtr

    row = np.arange(len(items.stated))[:, None]
    cls = np.argsort(-items.stated, axis=1, kind="stable")[:, : max(2, LEADERS)]
    rival = np.repeat(cls[:, :1], cls.shape[1], axis=1)
    rival[:, 0] = cls[:, 1]
    mean, variance = _to_come(yes, cls, rival, items, rho)
    more = np.minimum(items.left, items.remaining.sum(axis=1))
    power = calibration.power(items.answers + more)[:, None]
    inflation = 1 + np.maximum(more - 1, 0)[:, None] * calibration.dependence
    now = items.evidence[row, cls] - items.evidence[row, rival]
    lead = power * (now + calibration.scale * mean) + log_prior[cls] - log_prior[rival]
    noise = power * np.sqrt(variance * inflation)
    # what the discounted posterior must reach so that the target is kept above the floor
    enough = (1 - target - calibration.floor * np.exp(log_prior[cls])) / (1 - calibration.floor)
    weight = np.exp(items.stated[row, cls])
    weight /= weight.sum(axis=1, keepdims=True)
    needed = calibration.lead_for(enough)
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = np.where(noise > 0, ndtr((lead - needed) / noise), lead >= needed)
        wins = np.where(noise > 0, ndtr(lead / noise), lead >= 0)
    rise = (weight * wins).sum(axis=1) - weight[:, 0]
    return np.asarray((weight * reach).sum(axis=1)), np.asarray((1 - calibration.floor) * rise)


def _to_come(
    yes: FloatArray,
    cls: NDArray[Any],
    rival: NDArray[Any],
    items: Outlook,
    rho: float,
) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of the evidence for a class against its rival in the answers to come."""
    left, asked, remaining = items.left, items.asked, items.remaining
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
    if np.any(remaining.sum(axis=1) > left):  # the most informative questions within the budget
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
