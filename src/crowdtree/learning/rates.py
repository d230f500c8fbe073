"""Rates of the cells of a table by empirical Bayes: what thin cells borrow from the others.

Docs/model.md, section 9.2: the rates of a question's cells are either *alike* (a Beta around the
mean of the question) or *clear* (every class gives an answer or does not, with an error: a U shape
cannot say that errors are small but not zero). Means and shares of classes are integrated out, and
how often each prior occurs is learned by EM across questions. The posterior of a cell is a mixture
of Betas. Its mean is reported: unlike a peak it stays right, on average, for cells that were chosen
because of their estimates.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from crowdtree.core.arrays import FloatArray

_STRENGTHS = np.geomspace(0.05, 200.0, 20)
_ERRORS = np.geomspace(0.01, 0.3, 7)
_ERROR_STRENGTHS = np.array([5.0, 20.0])  # expected counts look more alike than drawn ones
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

    def of(self, rows: slice) -> Counts:
        """Those of some questions, with an axis for priors."""
        return Counts(self.given[rows, :, None], self.total[rows, :, None])


def cell_rates(whole: Counts, told: Counts | None = None, centre: float | None = None) -> CellRates:
    """Posterior rates from counts, which need not be whole numbers.

    `whole` are the answers of each cell, as if the class of every item were known. Where it is not,
    `told` are the fewer answers about known items that would tell as much: they decide how much
    cells borrow, and the means follow from `whole`, so that updating both in turn is an EM
    algorithm. `centre` is the mean that questions share, worth two answers, where rates are errors;
    else None.

    >>> given = np.array([[0.0, 0.0, 3.0, 3.0, 2.0]])
    >>> cell_rates(Counts(given, np.full((1, 5), 3.0))).mean.round(2).tolist()
    [[0.07, 0.07, 0.93, 0.93, 0.73]]
    """
    told = whole if told is None else told
    kinds: list[_Alike | _Clear] = [_Alike.of(told, 0.5 if centre is None else centre)]
    if centre is None:
        kinds.append(_Clear.of(told))
    questions, classes = told.given.shape
    step = max(1, _BLOCK // (classes * sum(kind.width for kind in kinds)))
    blocks = [slice(i, i + step) for i in range(0, questions, step)]
    log_like = [np.concatenate([kind.log_likelihood(told, b) for b in blocks]) for kind in kinds]
    shares = _shares(log_like)
    mean, square = np.zeros(told.given.shape), np.zeros(told.given.shape)
    reported = mean if told is whole else np.zeros(told.given.shape)
    for kind, share in zip(kinds, shares, strict=True):
        for rows in blocks:
            first, second = kind.moments(told, rows, share[rows])
            mean[rows] += first
            square[rows] += second
            if told is not whole:
                reported[rows] += kind.moments(whole, rows, share[rows])[0]
    variance = square - mean**2
    mean = np.clip(reported, 1e-5, 1 - 1e-5)
    variance = np.clip(variance, 1e-12, mean * (1 - mean) * 0.99)
    size = mean * (1 - mean) / variance - 1
    return CellRates(mean, variance, _above_half(mean, size))


def _above_half(mean: FloatArray, size: FloatArray) -> FloatArray:
    """P(rate > 1/2) of each Beta, computed once for the many cells of equal counts."""
    from scipy.special import betaincc

    made, place = np.unique(mean.round(12) + 1j * size.round(9), return_inverse=True)
    above = betaincc(made.real * made.imag, (1 - made.real) * made.imag, 0.5)
    return np.asarray(above[place.reshape(mean.shape)], np.float64)


def _beta_moments(counts: Counts, a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and mean square of the posterior of each cell under each Beta prior."""
    alpha, size = counts.given + a, counts.total + a + b
    mean = alpha / size
    return mean, mean * (alpha + 1) / (size + 1)


def _beta_binomial(counts: Counts, a: FloatArray, b: FloatArray) -> FloatArray:
    """Log likelihood of the answers of each cell, one by one, under each Beta prior."""
    from scipy.special import betaln, gammaln

    other = counts.total - counts.given  # three gammas take half the time of a betaln
    made = gammaln(a + counts.given) + gammaln(b + other) - gammaln(a + b + counts.total)
    return np.asarray(made - betaln(a, b), np.float64)


def _around(rough: FloatArray, told: FloatArray, shared: float) -> tuple[FloatArray, FloatArray]:
    """Values of a share around its estimate from `told` observations, and their log weights.

    The prior of the share is worth two observations with mean `shared`.
    """
    from scipy.special import expit, logit

    width = (1 / np.sqrt(told * rough * (1 - rough)))[..., None]
    share = np.clip(expit(logit(rough)[..., None] + width * _NODES), _LEAST, 1 - _LEAST)
    prior = 2 * (shared * np.log(share) + (1 - shared) * np.log1p(-share))
    return share, prior + np.log(width)


@dataclass(frozen=True, eq=False)
class _Alike:
    """Beta priors `a`, `b` (question, strength x mean) and the log weight of each mean."""

    a: FloatArray
    b: FloatArray
    log_node: FloatArray

    @classmethod
    def of(cls, told: Counts, shared: float) -> _Alike:
        """Priors around the means of the questions."""
        held = told.total.sum(axis=1)
        rough = (told.given.sum(axis=1) + 2 * shared) / (held + 2)
        rough = np.clip(rough, _LEAST, 1 - _LEAST)[:, None]
        questions, classes = told.given.shape
        if classes > _MANY_CLASSES:
            mean, log_node = rough[..., None], np.zeros((questions, len(_STRENGTHS), 1))
        else:
            total = told.total
            tell = [(s * total / (s + total)).sum(axis=1) for s in _STRENGTHS]
            mean, log_node = _around(rough, np.stack(tell, axis=1) + 2, shared)
        a = mean * _STRENGTHS[:, None]
        b = (1 - mean) * _STRENGTHS[:, None]
        return cls(a.reshape(questions, -1), b.reshape(questions, -1), log_node)

    @property
    def width(self) -> int:
        """Numbers per cell."""
        return int(self.a.shape[1])

    def log_likelihood(self, counts: Counts, rows: slice) -> FloatArray:
        """Of each question under each of its priors: (question, strength, mean)."""
        cells = _beta_binomial(counts.of(rows), self.a[rows, None], self.b[rows, None])
        log_node = self.log_node[rows]
        return np.asarray(cells.sum(axis=1).reshape(log_node.shape) + log_node)

    def moments(
        self, counts: Counts, rows: slice, share: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and mean square of the cells, times the probability of this kind of prior."""
        made = _beta_moments(counts.of(rows), self.a[rows, None], self.b[rows, None])
        weight = share.reshape(len(share), 1, -1)
        return (weight * made[0]).sum(axis=2), (weight * made[1]).sum(axis=2)


@dataclass(frozen=True, eq=False)
class _Clear:
    """Beta priors `a`, `b` of the errors; `usual` (question, share): share of classes that give it.

    `log_node` are the log weights of the shares.
    """

    a: FloatArray
    b: FloatArray
    usual: FloatArray
    log_node: FloatArray
    odds: dict[int, FloatArray] = field(default_factory=dict)
    """Log odds of giving it, by block of questions, kept from likelihood to moments."""

    @classmethod
    def of(cls, told: Counts) -> _Clear:
        """Priors of the errors, and shares around those of the questions."""
        error, strength = (v.ravel() for v in np.meshgrid(_ERRORS, _ERROR_STRENGTHS))
        classes = told.given.shape[1]
        sure = (told.given + 0.5) / (told.total + 1)  # gives it: a guess to place the nodes by
        rough = ((sure > 0.5) + 0.5 * (sure == 0.5)).sum(axis=1) + 1
        rough = rough / (classes + 2)
        if classes > _MANY_CLASSES:
            usual, log_node = rough[:, None], np.zeros((len(rough), 1))
        else:
            usual, log_node = _around(rough, np.full(len(rough), classes + 2.0), 0.5)
        return cls(error * strength, (1 - error) * strength, usual, log_node)

    @property
    def width(self) -> int:
        """Numbers per cell."""
        return len(self.a) * int(self.usual.shape[1])

    def _sides(self, counts: Counts, rows: slice) -> tuple[FloatArray, FloatArray]:
        """Log odds of giving it from the answers of each cell, and log likelihood if not."""
        from scipy.special import gammaln

        given, total = counts.of(rows)
        other = total - given
        wrong = gammaln(given + self.a) + gammaln(other + self.b)
        right = gammaln(given + self.b) + gammaln(other + self.a)
        size, kind = np.unique(self.a + self.b, return_inverse=True)
        whole = (gammaln(total + size) - gammaln(size))[..., kind]
        return right - wrong, wrong - gammaln(self.a) - gammaln(self.b) - whole

    def log_likelihood(self, counts: Counts, rows: slice) -> FloatArray:
        """Of each question under each of its priors: (question, error, share)."""
        odds, no = self._sides(counts, rows)
        self.odds[rows.start] = odds
        usual = self.usual[rows, None]
        found = np.stack(
            [
                (no + np.logaddexp(np.log(y) + odds, np.log1p(-y))).sum(axis=1)
                for y in np.moveaxis(usual[:, :, None, :], 3, 0)
            ],
            axis=2,
        )
        return np.asarray(found + self.log_node[rows, None])

    def moments(
        self, counts: Counts, rows: slice, share: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and mean square of the cells, times the probability of this kind of prior."""
        from scipy.special import expit, logit

        odds = self.odds.pop(rows.start, None)
        if odds is None:
            odds, _ = self._sides(counts, rows)
        side = logit(self.usual[rows])[:, None, None]  # (question, class, error, share)
        gives = (share[:, None] * expit(odds[..., None] + side)).sum(axis=3)
        not_given = share.sum(axis=2)[:, None] - gives
        cells = counts.of(rows)
        if_given, if_not = (
            _beta_moments(cells, self.b, self.a),
            _beta_moments(cells, self.a, self.b),
        )
        first, second = (
            (gives * y + not_given * n).sum(axis=2) for y, n in zip(if_given, if_not, strict=True)
        )
        return first, second


def _shares(log_like: list[FloatArray]) -> list[FloatArray]:
    """Posterior of each question's prior, by kind; how often each occurs is learned by EM.

    Log likelihoods are (question, prior, node); nodes of one prior share its frequency.
    """
    questions = len(log_like[0])
    top = np.max([part.max(axis=(1, 2)) for part in log_like], axis=0)
    like = [np.exp(part - top[:, None, None]) for part in log_like]
    by_prior = np.concatenate([part.sum(axis=2) for part in like], axis=1)
    # before any answer, both kinds are as likely
    first = np.concatenate([np.full(p.shape[1], 1 / p.shape[1]) for p in like]) / len(like)
    weight = first
    for _ in range(_EM_STEPS):
        share = by_prior * weight
        share /= share.sum(axis=1, keepdims=True)
        # one more question, which knows nothing, keeps every prior possible
        weight = (share.sum(axis=0) + first) / (questions + 1)
    scale = weight / (by_prior @ weight)[:, None]
    ends = np.cumsum([part.shape[1] for part in like])[:-1]
    return [
        part * s[..., None] for part, s in zip(like, np.split(scale, ends, axis=1), strict=True)
    ]
