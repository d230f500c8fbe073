"""Answers of several sources that err together: causes that all sources have in common.

A wrong answer of a source is, with probability `share`, due to something about the item that would
mislead every source: a hard photograph, a misleading sentence. This is the beta-factor model of
common-cause failures, here with a cause for each wrong answer. Given the class:

- With chance ``t(d) = max_s P_s(d)`` the item has the cause ``d``, a wrong answer; otherwise none.
- Where it has, source ``s`` answers ``d`` with chance ``share P_s(d) / t(d)``.
- Otherwise it answers from the rest of its errors, ``(1 - share) P_s(wrong) / (1 - share e_s)``.

Each source alone keeps its ``P_s`` exactly, and the joint probability of the answers does not
depend on their order. Given the cause, answers of one source follow the urn of
:mod:`crowdtree.core.likelihood`.

References
----------
Fleming (1975), A reliability model for common mode failures in redundant safety systems.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.arrays import FloatArray

MAX_TOTAL = 0.999
"""Largest probability that an item has a cause at all."""
_TINY = 1e-300


class Causes(NamedTuple):
    """Causes of errors at one question, the first of which is "none".

    `log_weight`: logarithm of the chance of each cause, as ``[cause, class]``. `given`:
    ``P(answer | cause, class)`` of each source, as ``[cause, source, answer, class]``.
    """

    log_weight: FloatArray
    given: FloatArray

    @classmethod
    def of(cls, channel: FloatArray, wrong: NDArray[np.bool_], share: float) -> Causes:
        """Make the causes of a question from ``P(answer | class)``.

        `channel` is ``[source, answer, class]``, and `wrong` is ``[answer, class]``.

        >>> channel = np.array([[[0.9], [0.1]], [[0.8], [0.2]]])
        >>> causes = Causes.of(channel, np.array([[False], [True]]), 0.5)
        >>> weight = np.exp(causes.log_weight)[:, 0, None, None]
        >>> weight.ravel().round(3).tolist()
        [0.8, 0.2]
        >>> (weight * causes.given[..., 0]).sum(axis=0).round(3).tolist()
        [[0.9, 0.1], [0.8, 0.2]]
        """
        errors = np.where(wrong, channel, 0.0)
        cause = errors.max(axis=0)
        total = cause.sum(axis=0)
        cause = cause * np.minimum(1.0, MAX_TOTAL / np.maximum(total, _TINY))
        follow = np.where(cause > 0, share * errors / np.maximum(cause, _TINY), 0.0)
        follow = np.minimum(follow, 1.0)  # [source, cause, class]
        caused = cause * follow
        rest = (channel - caused) / (1 - caused.sum(axis=1))[:, None]
        answers = channel.shape[1]
        given = np.empty((answers + 1, *channel.shape))
        given[0] = rest
        for d in range(answers):
            given[1 + d] = (1 - follow[:, d])[:, None] * rest
            given[1 + d, :, d] += follow[:, d]
        weight = np.concatenate([1 - cause.sum(axis=0, keepdims=True), cause])
        used = np.flatnonzero((weight > 0).any(axis=1))  # a right answer is no cause
        return cls(np.log(np.maximum(weight[used], _TINY)), given[used])

    def after(self, counts: NDArray[np.int64], dependence: FloatArray) -> FloatArray:
        """Posterior of the causes after some answers, as ``[cause, item, class]``.

        `counts` are the answers so far, ``[source, answer, item]``; `dependence` is within each
        source.
        """
        found = self.joint(counts, dependence)
        found = np.exp(found - found.max(axis=0))
        return np.asarray(found / found.sum(axis=0))

    def joint(self, counts: NDArray[np.int64], dependence: FloatArray) -> FloatArray:
        """Log probability of the causes and some answers, as ``[cause, item, class]``.

        Up to the number of answers of each source, which no cause and no class changes.
        """
        source, answer = np.nonzero(counts.any(axis=2))
        times, rho = counts[source, answer], dependence[source, None, None]
        before = np.arange(times.max(initial=0))[:, None]
        share = self.given[:, source, answer][:, :, None]  # [cause, given, 1, class]
        term = np.log(np.maximum((1 - rho) * share + rho * before, _TINY))
        total = np.zeros((*term.shape[:2], len(before) + 1, term.shape[3]))
        np.cumsum(term, axis=2, out=total[:, :, 1:])
        found = total[:, np.arange(len(source))[:, None], times].sum(axis=1)
        return np.asarray(self.log_weight[:, None] + found)
