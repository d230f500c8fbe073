"""What an item may still reach: the evidence of the answers to come, discounted like the rest.

With a dependence above 0 the evidence of any number of answers is bounded, since
``n / (1 + (n - 1) rho) < 1 / rho``, and with a floor no stated error falls below it. So there are
items whose stated error cannot reach the target.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.calibration import Calibration
from crowdtree.policies.base import FloatArray

__all__ = ["Contrasts", "Prospects", "cannot_reach_target"]

UNLIKELY = 0.05
"""Probability of reaching the target below which an item may be given up."""
WORTH = 0.01
"""Rise of the probability that the label is right for which an answer is still worth asking."""
AHEAD = (4, 16)
"""Numbers of further answers whose worth is looked at, besides all that may come."""
LEADERS = 4
"""Classes that are taken in turn for the true one: the likeliest, which stand for the others."""
CHUNK = 256


class Prospects(NamedTuple):
    """What is known about some items and what may come, one row per item.

    `stated` is the log posterior that is stated, `evidence` the plain log likelihood so far, up to
    a constant per item; `answers` were given and so many are `left`; `asked` and `remaining` are
    the same for each question.
    """

    stated: FloatArray
    evidence: FloatArray
    answers: NDArray[Any]
    left: NDArray[Any]
    asked: NDArray[Any]
    remaining: NDArray[Any]

    def rows(self, chosen: Any) -> Prospects:
        """Some of the items."""
        return Prospects(*(column[chosen] for column in self))


class Contrasts:
    """The questions that tell one class from another best, for pairs of classes as they come up.

    `answers` are P(answer | class), a table per answer with a row per question. The best `most`
    questions are kept per pair.
    """

    def __init__(self, answers: Sequence[FloatArray], most: int) -> None:
        self._answers = [np.ascontiguousarray(table.T) for table in answers]
        self._kept = min(most, len(answers[0]))
        none = np.zeros((0, self._kept))
        # pairs in order, and a row of each; replaced as a whole, so that another thread always
        # sees a consistent state
        self._known: tuple[NDArray[Any], ...] = np.zeros(0, np.int64), none.astype(int), none, none

    def __call__(
        self, cls: NDArray[Any], rival: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Questions, and mean and variance of the evidence of one answer to each."""
        known, pair = self._known, cls * np.int64(len(self._answers[0])) + rival
        new = np.setdiff1d(pair, known[0])
        if len(new):
            more = new, *self._contrast(*np.divmod(new, len(self._answers[0])))
            both = [np.concatenate(columns) for columns in zip(known, more, strict=True)]
            order = np.argsort(both[0])
            known = self._known = tuple(column[order] for column in both)
        at = np.searchsorted(known[0], pair)
        return known[1][at], known[2][at], known[3][at]

    def _contrast(self, cls: NDArray[Any], rival: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        mean = np.zeros((len(cls), self._answers[0].shape[1]))
        variance = mean.copy()
        before: list[tuple[NDArray[Any], NDArray[Any]]] = []
        for table in self._answers:
            mine, theirs = table[cls], table[rival]
            exists = mine > 0
            told = np.log(np.where(exists, mine, 1.0) / np.where(exists, theirs, 1.0))
            mean += mine * told
            for other, said in before:  # over pairs: no difference of large squares
                variance += mine * other * (told - said) ** 2
            before.append((mine, told))
        order = np.argsort(-mean, axis=1, kind="stable")[:, : self._kept]
        return order, *(np.take_along_axis(a, order, axis=1) for a in (mean, variance))


def cannot_reach_target(
    items: Prospects,
    log_prior: FloatArray,
    contrasts: Contrasts,
    calibration: Calibration,
    targets: Sequence[float],
    shared_difficulty: float = 0.0,
) -> NDArray[np.bool_]:
    """Whether an item is unlikely to reach each target, and more answers hardly help its label.

    Each of the likeliest classes is taken for the true one, against its strongest rival. The
    evidence between the two after the most informative answers left is normal: its mean grows by
    ``scale`` times the divergence of the answers, its variance by that of independent answers times
    ``1 + (m - 1) rho``. Optimistic in what is asked and in the rivals, so that few items are given
    up that would have reached the target. `targets` are errors to reach, one column of the result
    each.
    """
    to_reach = [calibration.before_tail(target) for target in targets]
    starts = np.broadcast_to(log_prior, items.stated.shape)
    model = contrasts, calibration, shared_difficulty
    given_up = np.zeros((len(items.stated), len(to_reach)), dtype=bool)
    for start in range(0, len(given_up), CHUNK):
        rows = np.arange(start, min(start + CHUNK, len(given_up)))
        part = items.rows(rows)
        reach, right = _ahead(part, to_reach, starts[rows], *model)
        given_up[rows] = (reach < UNLIKELY) & (right < WORTH * part.left)[:, None]
        for count in AHEAD:
            at = rows[given_up[rows].any(axis=1)]
            if len(at):
                few = items.rows(at)
                few = few._replace(left=np.minimum(few.left, count))
                _, right = _ahead(few, (), starts[at], *model)
                given_up[at] &= (right < WORTH * few.left)[:, None]
    return given_up


def _ahead(
    items: Prospects,
    targets: Sequence[float],
    log_prior: FloatArray,
    contrasts: Contrasts,
    calibration: Calibration,
    rho: float,
) -> tuple[FloatArray, FloatArray]:
    """Probability that each target is reached, and rise of the probability of a right label."""
    from scipy.special import ndtr

    row = np.arange(len(items.stated))[:, None]
    cls = np.argsort(-items.stated, axis=1, kind="stable")[:, : max(2, LEADERS)]
    rival = np.repeat(cls[:, :1], cls.shape[1], axis=1)
    rival[:, 0] = cls[:, 1]
    mean, variance = _to_come(contrasts(cls, rival), items, rho)
    more = np.minimum(items.left, items.remaining.sum(axis=1))
    power = calibration.power(items.answers + more)[:, None]
    inflation = 1 + np.maximum(more - 1, 0)[:, None] * calibration.dependence
    now = items.evidence[row, cls] - items.evidence[row, rival]
    lead = power * (now + calibration.scale * mean) + log_prior[row, cls] - log_prior[row, rival]
    noise = power * np.sqrt(variance * inflation)
    weight = np.exp(items.stated[row, cls])
    weight /= weight.sum(axis=1, keepdims=True)

    def chance(needed: FloatArray | float) -> FloatArray:
        """Probability that the lead is at least what is needed."""
        with np.errstate(divide="ignore", invalid="ignore"):
            made = np.where(noise > 0, ndtr((lead - needed) / noise), lead >= needed)
        return np.asarray((weight * made).sum(axis=1))

    reach = np.empty((len(row), len(targets)))
    for column, target in enumerate(targets):
        # what the discounted posterior must reach so that the target is kept above the floor
        blind = calibration.floor * np.exp(log_prior[row, cls])
        enough = (1 - target - blind) / (1 - calibration.floor)
        reach[:, column] = chance(calibration.lead_for(enough))
    return reach, (1 - calibration.floor) * (chance(0.0) - weight[:, 0])


def _to_come(
    contrast: tuple[NDArray[Any], NDArray[Any], NDArray[Any]], items: Prospects, rho: float
) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of the evidence for a class against its rival in the answers to come."""
    question, mean, variance = contrast
    row = np.arange(len(question))[:, None, None]
    asked, count = items.asked[row, question], items.remaining[row, question]
    worth = count.astype(np.float64)
    if rho:  # answers to one question add up to fewer independent ones
        worth = _independent(asked + count, rho) - _independent(asked, rho)
    before = np.cumsum(count, axis=2) - count  # the most informative within the budget
    taken = np.clip(items.left[:, None, None] - before, 0, count)
    worth = worth * taken / np.maximum(count, 1)
    return (worth * mean).sum(axis=2), (worth * variance).sum(axis=2)


def _independent(count: NDArray[Any], rho: float) -> FloatArray:
    return np.asarray(count / (1 + np.maximum(count - 1, 0) * rho))
