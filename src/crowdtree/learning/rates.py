"""Rates of the cells of a table by empirical Bayes: what thin cells borrow from the others.

Every question has a Beta prior for the rates of its cells (question, class). Its mean is that of
the question, integrated over what the answers leave open; its strength lies on a grid, from the
U shape of a question that most classes answer clearly, one way or the other, to a peak where all
classes answer alike. The distribution of strengths is shared by all questions and learned by EM,
so that every question is weighed by how likely it makes its own counts. The posterior of a cell is
a mixture of Betas, of which the mean is reported: unlike a peak it stays right, on average, for
cells that were chosen because of their estimates.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["CellRates", "Counts", "cell_rates"]

FloatArray = NDArray[np.float64]

_STRENGTHS = np.geomspace(0.05, 200.0, 20)
_NODES = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])  # of a question's mean, in standard deviations
_MANY_CLASSES = 30  # tell the mean of a question well enough to take it for known
_EM_STEPS = 50
_LEAST = 1e-3
_BLOCK = 2_000_000  # numbers held at once


class CellRates(NamedTuple):
    """Posterior of the rates (question, class): mean, variance, and P(rate > 1/2)."""

    mean: FloatArray
    variance: FloatArray
    above: FloatArray

    @property
    def size(self) -> FloatArray:
        """Answers that would tell the rate as well: the sum of the counts of the Beta."""
        return np.maximum(self.mean * (1 - self.mean) / self.variance - 1, 1e-2)


class Counts(NamedTuple):
    """How often an answer was given and how often the question was answered (question, class)."""

    given: FloatArray
    total: FloatArray


def cell_rates(whole: Counts, told: Counts | None = None, centre: float | None = None) -> CellRates:
    """Posterior rates from counts, which need not be whole numbers.

    Parameters
    ----------
    whole
        Answers of each cell, as if the class of every item were known.
    told
        Fewer, where it is not: answers about known items that would tell as much. They decide how
        much the cells borrow and how sure they are; the means follow from `whole`, so that
        updating counts and means in turn is an EM algorithm.
    centre
        Mean that questions share, worth two answers; by default nothing is shared (one yes and
        one no are added to those of a question).

    Examples
    --------
    Cells of a question that classes answer clearly stay clear; two of three means little:

    >>> yes = np.array([[0.0, 0.0, 3.0, 3.0, 2.0]])
    >>> cell_rates(Counts(yes, np.full((1, 5), 3.0))).mean.round(1).tolist()
    [[0.1, 0.1, 0.9, 0.9, 0.6]]
    """
    shared = 0.5 if centre is None else centre
    told = whole if told is None else told
    a, b, log_node = _priors(*told, shared)
    step = max(1, _BLOCK // (told.given.shape[1] * a.shape[1]))
    blocks = [slice(i, i + step) for i in range(0, len(a), step)]
    log_like = np.concatenate([_log_likelihood(*told, a, b, rows) for rows in blocks])
    share = _shares(log_like + log_node)
    mean, variance = np.empty(told.given.shape), np.empty(told.given.shape)
    for rows in blocks:
        weights = share[rows, None], a[rows, None], b[rows, None]
        mean[rows], variance[rows] = _moments(told, rows, *weights)
        if told is not whole:
            mean[rows] = _moments(whole, rows, *weights)[0]
    mean = np.clip(mean, 1e-5, 1 - 1e-5)
    variance = np.clip(variance, 1e-12, mean * (1 - mean) * 0.99)
    size = mean * (1 - mean) / variance - 1
    above = _above_half(mean, size)
    return CellRates(mean, variance, above)


def _above_half(mean: FloatArray, size: FloatArray) -> FloatArray:
    """P(rate > 1/2) of each Beta, computed once for the many cells of equal counts."""
    from scipy.special import betaincc

    made, place = np.unique(mean.round(12) + 1j * size.round(9), return_inverse=True)
    above = betaincc(made.real * made.imag, (1 - made.real) * made.imag, 0.5)
    return np.asarray(above[place.reshape(mean.shape)], np.float64)


def _moments(
    counts: Counts, rows: slice, share: FloatArray, a: FloatArray, b: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of the mixture of Betas that is the posterior of each cell."""
    alpha = counts.given[rows, :, None] + a
    size = counts.total[rows, :, None] + a + b
    mean = alpha / size
    square = mean * (alpha + 1) / (size + 1)
    middle = (share * mean).sum(axis=2)
    return middle, (share * square).sum(axis=2) - middle**2


def _priors(
    count: FloatArray, total: FloatArray, shared: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Beta priors to weigh (question, prior), and the log weight of each question's mean."""
    from scipy.special import expit, logit

    held = total.sum(axis=1)
    rough = np.clip((count.sum(axis=1) + 2 * shared) / (held + 2), _LEAST, 1 - _LEAST)[:, None]
    strength = _STRENGTHS[None]
    if count.shape[1] > _MANY_CLASSES:
        return rough * strength, (1 - rough) * strength, np.zeros((len(count), len(_STRENGTHS)))
    told = np.stack([(s * total / (s + total)).sum(axis=1) for s in _STRENGTHS], axis=1) + 2
    width = 1 / np.sqrt(told * rough * (1 - rough))
    mean = np.clip(expit(logit(rough)[..., None] + width[..., None] * _NODES), _LEAST, 1 - _LEAST)
    log_node = 2 * (shared * np.log(mean) + (1 - shared) * np.log1p(-mean)) + np.log(
        width[..., None]
    )
    shape = (len(count), -1)
    strength = np.broadcast_to(strength[..., None], mean.shape)
    return (
        (mean * strength).reshape(shape),
        ((1 - mean) * strength).reshape(shape),
        log_node.reshape(shape),
    )


def _log_likelihood(
    count: FloatArray, total: FloatArray, a: FloatArray, b: FloatArray, rows: slice
) -> FloatArray:
    """Beta-binomial log likelihood of the cells of a question, under each of its priors."""
    from scipy.special import betaln

    a, b = a[rows, None], b[rows, None]
    count, total = count[rows, :, None], total[rows, :, None]
    return np.asarray((betaln(a + count, b + total - count) - betaln(a, b)).sum(axis=1))


def _shares(log_like: FloatArray) -> FloatArray:
    """Posterior of each question's prior; how often strengths occur is learned by EM."""
    questions = len(log_like)
    like = np.exp(log_like - log_like.max(axis=1, keepdims=True))
    like = like.reshape(questions, len(_STRENGTHS), -1)
    weight = np.full(len(_STRENGTHS), 1 / len(_STRENGTHS))
    for _ in range(_EM_STEPS):
        share = like * weight[:, None]
        share /= share.sum(axis=(1, 2), keepdims=True)
        # one more question, which knows nothing, keeps every strength possible
        weight = (share.sum(axis=(0, 2)) + weight.size**-1) / (questions + 1)
    return np.asarray(share.reshape(questions, -1))
