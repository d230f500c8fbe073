"""Classes of items from questions with several answers (docs/model.md, section 9.3).

Skill acts on right answers, ``P_s(a | c, q) ~ P(a | c, q) exp(s [a is right])``. So the table of a
cell (question, class) has two parts: whether an answer is right, which is the yes/no model of
:mod:`crowdtree.learning.classes` with ``logit P(right) = x[q, c] + s``, and which of the right or
of the wrong answers it is, which does not depend on skill:

    P_s(a | c, q) = sigmoid(+-(x[q, c] + s)) within[a, q, c].

The first part has the priors, the ascent and the doubt of yes/no questions. The shares `within`
have Dirichlet priors: their centre is the given table, corrected by how often other classes with
the same right answers give each answer; their strength is learned for each question (empirical
Bayes). In a cell that is open (``-``) no answer is right, skill has no effect, and `within` is the
whole table.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdtree.learning.answers import Answers
from crowdtree.learning.class_passes import ClassPasses
from crowdtree.learning.classes import Fit, settled
from crowdtree.learning.doubt import finished
from crowdtree.learning.skills import ClassFit

__all__ = ["AnswersFit", "fit_answers", "fit_open"]

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int32]

_STRENGTHS = np.geomspace(1.0, 200.0, 12)
_BORROWED = 2.0  # answers of the given table that the other classes are weighed against
_LEAST = 1e-3  # share of an answer in the centre of a prior
_TINY = 1e-12
_MAX_ROUNDS = 4
_SURE = 1 - 1e-12  # probability of a class that counts as known


class Within(NamedTuple):
    """Dirichlet pseudo-answers of the shares, and their sum: (answer, question, class)."""

    pseudo: FloatArray
    strength: FloatArray


class Groups:
    """Answers of each cell that share a Dirichlet: the right ones, and the wrong (or all) ones."""

    def __init__(self, right: BoolArray, exists: BoolArray, channel: FloatArray) -> None:
        self.masks = [right, exists & ~right]
        self.centre = self.shared(np.maximum(channel, _LEAST))
        self.kinds = [_kinds(mask) for mask in self.masks]

    def shared(self, values: FloatArray) -> FloatArray:
        """Values as shares of their group."""
        made = np.zeros_like(values)
        for mask in self.masks:
            part = np.where(mask, values, 0.0)
            made += part / np.maximum(part.sum(axis=0), _TINY)
        return made

    def prior(self, counts: FloatArray) -> Within:
        """Centre and strength of the Dirichlets, from expected answers."""
        pseudo, strength = np.zeros_like(counts), np.zeros_like(counts)
        for mask, kind in zip(self.masks, self.kinds, strict=True):
            n, given = (np.where(mask, part, 0.0) for part in (counts, self.centre))
            total = n.sum(axis=0)
            base = _BORROWED * given + _TINY
            # how much more often other classes with the same right answers give each answer
            more = (_of_others(n, kind) + base) / (_of_others(total * given, kind) + base)
            part = np.where(mask, given * more, 0.0)
            centre = part / np.maximum(part.sum(axis=0), _TINY)
            size = _strengths(n, centre, (mask.sum(axis=0) > 1) & (total > 0))[:, None]
            pseudo += size * centre
            strength += np.where(mask, size, 0.0)
        return Within(pseudo, strength)

    def totals(self, counts: FloatArray) -> FloatArray:
        """Sum over the group of each answer."""
        right, wrong = (np.where(mask, counts, 0.0).sum(axis=0) for mask in self.masks)
        return np.where(self.masks[0], right, np.where(self.masks[1], wrong, 0.0))


def _kinds(mask: BoolArray) -> NDArray[np.intp]:
    """Number of the kind of each cell: cells of a question whose groups have the same answers."""
    answers, questions, classes = mask.shape
    code = np.tensordot(1 << np.arange(answers), mask.astype(np.int64), axes=1)
    code += (np.arange(questions)[:, None]) << answers
    return np.unique(code, return_inverse=True)[1].reshape(questions, classes)


def _of_others(values: FloatArray, kind: NDArray[np.intp]) -> FloatArray:
    """Sums over the other classes of the same kind."""
    sums = np.stack([np.bincount(kind.ravel(), part.ravel())[kind] for part in values])
    return np.maximum(sums - values, 0.0)


def _strengths(n: FloatArray, centre: FloatArray, some: BoolArray) -> FloatArray:
    """Strength of the Dirichlets of each question, from some of its cells (empirical Bayes)."""
    from scipy.special import gammaln

    question, cls = np.nonzero(some)
    n, centre = n[:, question, cls], centre[:, question, cls]
    in_group, total = centre > 0, n.sum(axis=0)
    value = np.zeros((len(_STRENGTHS), len(some)))
    for place, size in enumerate(_STRENGTHS):
        alpha = np.where(in_group, size * centre, 1.0)
        cells = (gammaln(alpha + n) - gammaln(alpha)).sum(axis=0)
        cells -= gammaln(size + total) - gammaln(size)
        value[place] = np.bincount(question, cells, len(some))
    weight = np.exp(value - value.max(axis=0))
    return np.asarray(np.exp(np.log(_STRENGTHS) @ weight / weight.sum(axis=0)))


class SeveralPasses(ClassPasses):
    """Passes over answers of any number; `right` (answer, question, class) is False where open."""

    def __init__(self, answers: Answers, right: BoolArray) -> None:
        super().__init__(answers)
        self.right = np.moveaxis(right, 1, 0)
        self.definite = np.asarray(right.any(axis=0))
        self.log_within = np.zeros(self.right.shape)

    def _log_chances(self, z: FloatArray) -> FloatArray:
        side = np.where(self.right[self.question], 1.0, -1.0)
        chance = -np.logaddexp(0, -side * z[:, None])
        chance *= self.definite[self.question, None]
        return np.asarray(chance + self.log_within[self.question])

    def _slopes(self, p: FloatArray, flat: FloatArray | float) -> FloatArray:
        slope = self.right[self.question] - p[:, None]
        factor = np.asarray(flat * self.definite[self.question])
        return np.asarray(slope * factor[:, None])

    def _said_yes(self, posterior: FloatArray) -> FloatArray:
        said = np.where(self.definite[:, None], self.right, 0.5)[self.question]
        return self._over_answers(posterior, said.reshape(-1, posterior.shape[1]))

    def counts(self, posterior: FloatArray) -> FloatArray:
        """Expected answers (answer, question, class)."""
        mass = self._by_cell @ posterior
        found = np.zeros(self.right.shape)
        np.add.at(found, self.question, mass.reshape(-1, *found.shape[1:]))
        return np.moveaxis(found, 0, 1)


class SeveralFit(Fit):
    """A fit under way: that of right and wrong answers, and the shares within them."""

    passes: SeveralPasses

    def __init__(
        self,
        answers: Answers,
        gold: IntArray,
        right: BoolArray,
        channel: FloatArray,
        prior: FloatArray,
        alike: bool = False,
    ) -> None:
        definite = np.asarray(right.any(axis=0), np.int8)
        super().__init__(answers, gold, definite, prior, alike)
        self.passes = SeveralPasses(answers, right)
        exists = _exists(channel)
        self.groups = Groups(right, exists, channel)
        self.limit = 1 - right.sum(axis=0) / exists.sum(axis=0)
        self.spread_prior: Within
        self.within: FloatArray
        self._share(self.groups.centre)

    def _share(self, within: FloatArray) -> None:
        self.within = within
        self.passes.log_within = np.moveaxis(np.log(np.maximum(within, _TINY)), 1, 0)

    def start(self, error: FloatArray | None) -> None:
        """First rates: of the gold, or the errors that are assumed."""
        if error is None or (self.gold >= 0).any():
            super().start(None)
            return
        error = np.clip(error, 1e-4, np.maximum(self.limit - 1e-3, 1e-3))
        self.x = self.tilt * (np.log1p(-error) - np.log(error))

    def update_cells(self) -> None:
        """Rates of right answers, and shares within right and wrong ones."""
        super().update_cells()
        counts = self.passes.counts(self.posterior)
        self.spread_prior = self.groups.prior(counts)
        self._share(self.groups.shared(counts + self.spread_prior.pseudo))

    def objective(self) -> float:
        """Log posterior of rates, shares within cells, skills and class shares."""
        spread = self.spread_prior.pseudo * np.log(np.maximum(self.within, _TINY))
        return super().objective() + float(spread.sum())

    def state(self) -> list[FloatArray]:
        """Cells, skills, class shares, and shares within cells."""
        return [*super().state(), self.within]

    def move_to(self, state: list[FloatArray]) -> None:
        """Take a state."""
        super().move_to(state[:-1])
        self._share(state[-1])

    def directions(self) -> list[FloatArray]:
        """Steps of the parts of the state; that of the shares leads to the top of an EM step."""
        counts = self.passes.counts(self.posterior) + self.spread_prior.pseudo
        return [*super().directions(), self.groups.shared(counts) - self.within]


@dataclass(frozen=True, eq=False, kw_only=True)
class AnswersFit(ClassFit):
    """What was learned from questions with several answers.

    Rates are those of right answers: `sign` is 1 where some answers are right and others wrong, 0
    where the cell is open. `right_answer` says which are right, `within` their shares among the
    right, wrong or (in an open cell) all answers, `within_size` how many answers of its group
    would tell a share as well, and `log_none` the log probability that nobody gave an answer about
    an item of the class: each (answer, question, class).
    """

    right_answer: BoolArray
    within: FloatArray
    within_size: FloatArray
    log_none: FloatArray

    @property
    def table(self) -> FloatArray:
        """P(answer | class) of the crowd (answer, question, class)."""
        return self.at_error(self.error)

    def at_error(self, error: FloatArray, rng: np.random.Generator | None = None) -> FloatArray:
        """P(answer | class) at some error of each cell; with a generator, of drawn shares."""
        within = self.within
        if rng is not None:
            within = rng.gamma(np.maximum(within * self.within_size, 1e-9)) * (within > 0)
            right, wrong = (
                np.where(part, within, 0).sum(axis=0)
                for part in (self.right_answer, ~self.right_answer)
            )
            whole = np.where(self.right_answer, right, wrong)
            within = np.where(whole > 0, within / np.maximum(whole, _TINY), self.within)
        group = np.where(self.right_answer, 1 - error, error)
        return np.asarray(np.where(self.sign == 0, 1.0, group) * within)

    @property
    def table_counts(self) -> tuple[FloatArray, FloatArray]:
        """Beta posterior of each entry of the table, by its mean and variance."""
        group = np.where(self.right_answer, 1 - self.error, self.error)
        group = np.where(self.sign == 0, 1.0, group)
        wide = np.where(
            self.sign == 0, 0.0, self.error * (1 - self.error) / (self.wrong + self.right + 1)
        )
        own = self.within * (1 - self.within) / (self.within_size + 1)
        variance = np.maximum(wide * own + self.within**2 * wide + group**2 * own, 1e-12)
        mean = np.clip(group * self.within, 1e-9, 1 - 1e-9)
        size = np.maximum(mean * (1 - mean) / variance - 1, 1e-2)
        return mean * size, (1 - mean) * size

    def table_range(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Credible interval of each entry of the table, from 0 where nobody may give the answer.

        A Beta has no mass at 0. Where it may be, with more than the tail of the interval, that all
        who gave an answer did so about items of other classes, the answer may not occur at all.
        """
        from scipy.stats import beta

        tail, exists = (1 - level) / 2, self.within > 0
        yes, no = self.table_counts
        low, high = (np.where(exists, beta.ppf(q, yes, no), 0.0) for q in (tail, 1 - tail))
        return np.where(self.log_none > np.log(tail), 0.0, low), high

    def says_yes(self, question: Any, label: Any) -> BoolArray:
        """Whether an answer is right, for each class."""
        return np.asarray(self.right_answer[label, question])

    def count(self, question: int, label: int, mass: FloatArray) -> None:
        """Add an answer with some mass on each class to the shares within its groups."""
        moved = np.minimum(np.abs(mass), _SURE)
        self.log_none[label, question] += np.sign(mass) * np.log1p(-moved)
        right, within = self.right_answer[:, question], self.within[:, question]
        size = self.within_size[:, question]
        group = (right == right[label]) & np.asarray(within.any(axis=1))[:, None]
        answers = within * size
        answers[label] += mass
        answers = np.where(group, np.maximum(answers, 1e-6), 0.0)
        whole = answers.sum(axis=0)
        self.within[:, question] = np.where(group, answers / whole, within)
        self.within_size[:, question] = np.where(group, np.maximum(size + mass, 1e-3), size)

    def log_likelihood(
        self, question: NDArray[np.integer], skill: FloatArray, label: NDArray[np.integer]
    ) -> FloatArray:
        """Log probability of answers (one row each) given each class."""
        z = self.x[question] + self.tilt[question] * skill[:, None]
        side = np.where(self.says_yes(question, label), 1, -1)
        chance = np.where(self.sign[question] == 0, 0.0, -np.logaddexp(0, -side * z))
        return np.asarray(chance + np.log(np.maximum(self.within[label, question], _TINY)))


def _exists(channel: FloatArray) -> BoolArray:
    """Whether a question has an answer of this number (answer, question, 1)."""
    return np.asarray((channel > 0).any(axis=2, keepdims=True))


def fit_answers(
    answers: Answers,
    gold: IntArray,
    right: BoolArray,
    channel: FloatArray,
    prior: FloatArray,
    error: FloatArray | None = None,
) -> AnswersFit:
    """Fit tables, skills and class shares, and the classes of the items with them.

    Parameters
    ----------
    gold
        Known class of each item, -1 where unknown.
    right
        Whether an answer is right (answer, question, class); none or all of an open cell.
    channel
        P(answer | class) around which answers are spread among the right and the wrong ones; 0
        beyond the last answer of a question.
    prior
        How often each class occurs, to start from.
    error
        Errors to start from, where no class is known.
    """
    right = right & ~np.asarray((right | ~_exists(channel)).all(axis=0))
    fit, trace, converged = settled(
        lambda alike: SeveralFit(answers, gold, right, channel, prior, alike), error
    )
    made = finished(fit, trace, converged)
    counts = fit.passes.counts(fit.posterior)
    wider = np.maximum((fit.rates.size + 1) / (made.wrong + made.right + 1), 1.0)
    size = fit.groups.totals(counts) + fit.spread_prior.strength
    return AnswersFit(
        **{field.name: getattr(made, field.name) for field in fields(made)},
        right_answer=right,
        within=fit.within,
        within_size=np.maximum((size + 1) / wider - 1, 0.02),
        log_none=fit.passes.counts(np.log1p(-np.minimum(fit.posterior, _SURE))),
    )


def fit_open(answers: Answers, gold: IntArray, prior: FloatArray, certain: float) -> AnswersFit:
    """Fit where no right answers are given: those that are the likeliest with some certainty.

    Cells start open. A cell whose likeliest answer is known takes it for right, and the rest are
    fitted again with what that tells about the items, until no cell changes.
    """
    count = np.array([len(names) for names in answers.choices])
    width = int(count.max())
    exists = np.arange(width)[:, None, None] < count[:, None]
    channel = np.broadcast_to(exists / count[:, None], (width, len(count), len(prior)))
    posterior = np.zeros((answers.n_tasks, len(prior)))
    posterior[gold >= 0, gold[gold >= 0]] = 1.0
    right = np.zeros(channel.shape, bool)
    groups, passes = Groups(right, exists, channel), SeveralPasses(answers, right)
    for turn in range(_MAX_ROUNDS):
        counts = passes.counts(posterior)
        found = _likeliest(counts + groups.prior(counts).pseudo, exists, certain)
        if turn and np.array_equal(found, right):
            break
        right = found
        fit = fit_answers(answers, gold, right, channel, prior)
        posterior = fit.posterior
    return fit


def _likeliest(alpha: FloatArray, exists: BoolArray, certain: float) -> BoolArray:
    """The likeliest answer of each cell, none where it is not `certain` (a union bound)."""
    from scipy.special import betainc

    top = alpha.argmax(axis=0)[None]
    best = np.take_along_axis(alpha, top, axis=0)
    mine = np.arange(len(alpha))[:, None, None] == top
    beaten = np.where(exists & ~mine, betainc(best, np.maximum(alpha, _TINY), 0.5), 0.0)
    return np.asarray(mine & (1 - beaten.sum(axis=0) >= certain))
