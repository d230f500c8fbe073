"""Classes of items that were asked many questions: table, skills and classes together.

Docs/model.md, sections 9.2 and 9.3, has the model and its fit: first the priors are estimated, with
everything else in turn, until the table hardly moves. They are held from then on, each cell with
the Beta that has the mean of its mixture of priors, and the log posterior is maximised by EM steps
(a Newton step of cells and skills at once, then class shares), halved until it does not fall.
Uncertainty from the observed information is added at the end (:mod:`crowdtree.learning.doubt`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.arrays import BoolArray, FloatArray
from crowdtree.core.errors import CrowdtreeError, CrowdtreeWarning
from crowdtree.learning.answers import Answers
from crowdtree.learning.class_passes import ClassPasses, Sums
from crowdtree.learning.crowd import LEAST_LEFT, LONGEST_STEP, Crowd
from crowdtree.learning.doubt import finished
from crowdtree.learning.rates import CellRates, Counts, cell_rates
from crowdtree.learning.skills import ClassFit
from crowdtree.learning.within import TINY, Groups, Within, shared

IntArray = NDArray[np.int32]

MAX_STEPS = 5000
PRIOR_STEPS = 60
KNOWN_STEPS = 4
"""Steps in which the priors are estimated, at most, and the same where all classes are known."""
_PRIORS_SETTLED = 3e-3  # change of a rate after which the priors are held
_SETTLED = 1e-4  # change of a rate or a skill that is far below any standard deviation
_GAIN_SETTLED = 1e-9  # rise of the objective, relative to it, that is rounding
_MAX_HALVINGS = 30
_GAIN = 0.3  # share of the new in what decides how much cells borrow: at once, it swings
_LEAST_SIZE, _MORE = 0.1, 1.1  # pseudo-answers of a cell, and how many more than just enough
_LEAST_BEND = 1e-9
_MAX_ROUNDS = 4  # in which right answers are looked for


class Cells(NamedTuple):
    """What the cells of a table are before any answer.

    `rated` (answer, question, class) is as in :class:`ClassPasses`. `sign` (question, class) is +1
    where the rated answers are right, -1 where the others are, 0 where the cell is open; None where
    that is to be learned. `groups` are the answers that share a Dirichlet; None where every group
    has one answer.
    """

    rated: FloatArray
    sign: NDArray[np.int8] | None
    groups: Groups | None = None

    @classmethod
    def of(cls, right: BoolArray, channel: FloatArray | None) -> Cells:
        """Cells whose right answers are known."""
        definite = right.any(axis=0)
        if len(right) > 2:
            rated, side = right.astype(np.float64), definite
        else:
            rated, side = _second(definite.shape), np.where(right[1], 1, -1)
        sign = np.asarray(np.where(definite, side, 0), np.int8)
        groups = None if channel is None else Groups(right, _exists(channel), channel)
        return cls(np.where(definite, rated, 0.5), sign, groups)


class Fit:
    """A fit under way: rates, shares within their groups of answers, skills and classes."""

    def __init__(
        self,
        answers: Answers,
        gold: IntArray,
        cells: Cells,
        prior: FloatArray,
        alike: bool = False,
    ) -> None:
        self.answers, self.gold, self.prior = answers, gold, prior
        self.cells, self.sign = cells, cells.sign
        known = gold >= 0
        self.posterior = np.zeros((answers.n_tasks, len(prior)))
        self.posterior[known, gold[known]] = 1.0
        self.crowd = Crowd.start(answers, alike)
        self.x = np.zeros((len(answers.questions), len(prior)))
        self.tilt = np.zeros_like(self.x) if self.sign is None else self.sign.astype(np.float64)
        self.passes = ClassPasses(answers, cells.rated)
        self.now: Sums
        self.rates: CellRates
        self.pseudo: FloatArray
        self.told: Counts | None = None
        self.spread_prior: Within
        self.within = np.where(cells.rated == 0.5, 0.5, 1.0)
        if cells.groups is not None:
            self._share(cells.groups.centre)

    def _share(self, within: FloatArray) -> None:
        """Take shares of the answers within their groups."""
        self.within = within
        whole = np.where(self.tilt == 0, 2 * within, within)  # the rate of an open cell is 1/2
        self.passes.log_within = np.moveaxis(np.log(np.maximum(whole, TINY)), 1, 0)

    def sums(self) -> None:
        """Add up scores and curvatures at the present state."""
        crowd = self.crowd
        self.now = self.passes.sums(self.x, self.tilt, crowd.skill, crowd.variance, self.posterior)

    def classify(self) -> float:
        """Posteriors of the items; the log likelihood of the answers."""
        crowd = self.crowd
        self.posterior, total = self.passes.classify(
            self.x, self.tilt, crowd.skill, crowd.variance, self.prior, self.gold
        )
        return total

    def update_cells(self) -> None:
        """Rates of the cells from the sums, and shares within them.

        The answers of a cell count as those of typical workers with the same score and curvature
        (`whole`), and as those about known items with the same observed information (`told`).
        """
        score, bend, held, lost = self.now[:4]
        p = 1 / (1 + np.exp(-self.x))
        told = None
        if (self.gold < 0).any():
            told = self._counts(score, np.maximum(bend - lost, LEAST_LEFT * bend), held, p)
            if self.told is not None:
                told = Counts(*(_GAIN * new + (1 - _GAIN) * old
                                for new, old in zip(told, self.told, strict=True)))  # fmt: skip
            self.told = told
        whole = self._counts(score, bend, held, p)
        if self.sign is None:
            self.rates = cell_rates(whole, told)
            rate = self.rates.mean
            self.tilt = 2 * self.rates.above - 1
        else:
            overall = (whole.given.sum() + 0.5) / (whole.total.sum() + 2.5)
            self.rates = cell_rates(whole, told, min(float(overall), 0.45))
            rate = np.where(self.sign > 0, 1 - self.rates.mean, self.rates.mean)
            rate = np.where(self.sign == 0, 0.5, rate)
        self.x = np.log(rate) - np.log1p(-rate)
        if self.cells.groups is not None:
            counts = self.passes.counts(self.posterior)
            self.spread_prior = self.cells.groups.prior(counts)
            self._share(self._shares_within(counts))

    def _shares_within(self, counts: FloatArray) -> FloatArray:
        """Shares of the answers within their groups, from expected answers."""
        assert self.cells.groups is not None
        return shared(counts + self.spread_prior.pseudo, self.cells.groups.masks[0])

    def _counts(
        self, score: FloatArray, bend: FloatArray, held: FloatArray, p: FloatArray
    ) -> Counts:
        """Rated answers, or wrong ones where the table is known, with this score and bend."""
        total = bend / (p * (1 - p))
        share = np.clip(p + score / np.maximum(total, 1e-12), 0, 1)
        total = np.minimum(total, held)
        if self.sign is None:
            return Counts(share * total, total)
        share, total = np.where(self.sign > 0, 1 - share, share), total * (self.sign != 0)
        return Counts(share * total, total)

    def start(self, error: FloatArray | None) -> None:
        """First rates: of the gold, or the errors that are assumed."""
        if error is not None and self.sign is not None and not (self.gold >= 0).any():
            self.x = self.sign * (np.log1p(-error) - np.log(error))
            return
        self.sums()
        self.update_cells()

    def estimate_priors(self) -> None:
        """Update everything in turn until the rates hardly move, then hold the priors."""
        for _ in range(PRIOR_STEPS if (self.gold < 0).any() else KNOWN_STEPS):
            before = self.crowd.rate(self.x, self.tilt), self.posterior.copy()
            self.classify()
            self.prior = self._shares()
            self.sums()
            self.update_cells()
            self.sums()
            self.crowd.step(*self.now[4:])
            moved = max(
                float(np.abs(self.crowd.rate(self.x, self.tilt) - before[0]).max()),
                float(np.abs(self.posterior - before[1]).max()) / 10,
            )
            if moved < _PRIORS_SETTLED:
                break
        self.sums()
        score, bend, held = self.now[:3]
        p = 1 / (1 + np.exp(-self.x))
        # the pseudo-answers with which these rates are the peak, given these answers
        needed = _MORE * np.maximum(score / p, -score / (1 - p))
        size = self.rates.size - np.minimum(bend / (p * (1 - p)), held)
        size = np.maximum(np.maximum(size, needed), _LEAST_SIZE)
        rated = size * p - score
        closed = np.zeros_like(p) if self.sign is None else (self.sign == 0)
        self.pseudo = np.stack([rated, size - rated]) * (1 - closed)

    def _shares(self) -> FloatArray:
        """Class shares, with one more item of each class."""
        count = self.posterior.sum(axis=0) + 1
        return np.asarray(count / count.sum())

    def objective(self) -> float:
        """Log posterior of rates, skills and shares, up to a constant; fills the posteriors."""
        rated, other = self.pseudo
        value = self.classify() + float(np.log(self.prior).sum())
        value -= float((rated * np.logaddexp(0, -self.x) + other * np.logaddexp(0, self.x)).sum())
        if self.cells.groups is not None:
            value += float((self.spread_prior.pseudo * np.log(np.maximum(self.within, TINY))).sum())
        if self.crowd.spread:
            value -= 0.5 * float(self.crowd.precision @ self.crowd.skill**2)
        return value

    def ascend(self) -> tuple[list[float], bool]:
        """Maximise the objective; its value after every step, and whether it converged."""
        trace = [self.objective()]
        for _ in range(MAX_STEPS):
            before, up = self.state(), self.directions()
            for halving in range(_MAX_HALVINGS):
                part = 0.5**halving
                self.move_to([old + part * step for old, step in zip(before, up, strict=True)])
                value = self.objective()
                if value >= trace[-1]:
                    break
            else:  # no step rises: the top, up to rounding
                self.move_to(before)
                self.objective()
                return trace, True
            rate = 1 / (1 + np.exp(-self.x))
            moved = max(
                float(np.abs(part * up[0] * rate * (1 - rate)).max()),
                float(np.abs(part * up[1]).max(initial=0.0)) / 10,
                *(float(np.abs(part * step).max()) for step in up[2:]),
            )
            trace.append(value)
            if moved < _SETTLED or value - trace[-2] < _GAIN_SETTLED * abs(value):
                return trace, True
        return trace, False

    def state(self) -> list[FloatArray]:
        """What the objective depends on: cells, skills, class shares, and shares within cells."""
        within = [] if self.cells.groups is None else [self.within]
        return [self.x, self.crowd.skill, self.prior, *within]

    def move_to(self, state: list[FloatArray]) -> None:
        """Take a state."""
        self.x, self.crowd.skill, self.prior, *within = state
        for part in within:
            self._share(part)

    def directions(self) -> list[FloatArray]:
        """Steps of the parts of the state, each of which raises the objective."""
        self.sums()
        (rated, other), p = self.pseudo, 1 / (1 + np.exp(-self.x))
        score, bend = self.now.score, self.now.bend
        slope = score + rated - (rated + other) * p
        cells = slope / (bend + (rated + other) * p * (1 - p) + _LEAST_BEND)
        if self.sign is not None:
            cells = np.where(self.sign == 0, 0.0, cells)
        skills = np.zeros_like(self.crowd.skill)
        if self.crowd.spread:
            pull, precision = self.crowd.pull, self.crowd.precision
            held = self.now.worker_bend + precision
            skills = (self.now.worker_score - precision * self.crowd.skill) / held
            # skill 0 stays the centre: shared by all, a shift would undo what cells borrow
            skills -= pull / held * ((pull @ skills) / (pull @ (pull / held)))
        limit = LONGEST_STEP
        steps = np.clip(cells, -limit, limit), np.clip(skills, -limit, limit)
        up = [*steps, self._shares() - self.prior]
        if self.cells.groups is not None:  # to the top of an EM step
            up.append(self._shares_within(self.passes.counts(self.posterior)) - self.within)
        return up


def fit_classes(
    answers: Answers,
    gold: IntArray,
    right: BoolArray,
    prior: FloatArray,
    *,
    channel: FloatArray | None = None,
    error: FloatArray | None = None,
) -> ClassFit:
    """Fit tables, skills and class shares, and the classes of the items with them.

    `gold` is the known class of each item (-1: unknown), `right` says which answers are right
    (answer, question, class; none or all of an open cell), `prior` starts the class shares, and
    `error` the errors where no class is known. `channel` is P(answer | class), around which answers
    are spread among the right and the wrong ones, 0 beyond the last answer of a question; None for
    two answers. Where the fit does not converge, workers are taken as alike.
    """
    exists = np.ones_like(right) if channel is None else _exists(channel)
    right = right & ~np.asarray((right | ~exists).all(axis=0))
    if error is not None:
        most = 1 - right.sum(axis=0) / exists.sum(axis=0) - 1e-3
        error = np.clip(error, 1e-4, np.maximum(most, 1e-3))
    cells = Cells.of(right, channel)
    return _settled(lambda alike: Fit(answers, gold, cells, prior, alike), error)


def fit_open(answers: Answers, gold: IntArray, prior: FloatArray, certain: float) -> ClassFit:
    """Fit where the right answers are not given: the likeliest ones that are certain enough.

    Of two answers, tilts say how certain. Of more, cells start open, and those whose likeliest
    answer is certain are fitted again with it as the right one, until no cell changes.
    """
    width, shape = len(answers.labels), (len(answers.questions), len(prior))
    if width == 2:
        cells = Cells(_second(shape), None)
        return _settled(lambda alike: Fit(answers, gold, cells, prior, alike), None)
    posterior = np.zeros((answers.n_tasks, len(prior)))
    posterior[gold >= 0, gold[gold >= 0]] = 1.0
    right = np.zeros((width, *shape), bool)
    for turn in range(_MAX_ROUNDS):
        likeliest, channel = likeliest_answers(answers, posterior, certain)
        if turn and np.array_equal(likeliest, right):
            break
        right = likeliest
        fit = fit_classes(answers, gold, right, prior, channel=channel)
        posterior = fit.posterior
    return fit


def likeliest_answers(
    answers: Answers, posterior: FloatArray, certain: float
) -> tuple[BoolArray, FloatArray]:
    """The likeliest answer of each cell that is certain enough; answers that are all alike."""
    width, questions, classes = len(answers.labels), len(answers.questions), posterior.shape[1]
    count = np.array([len(names) for names in answers.choices] or [width] * questions)
    exists = np.arange(width)[:, None, None] < count[:, None]
    channel = np.broadcast_to(exists / count[:, None], (width, questions, classes))
    none = np.zeros(channel.shape, bool)
    counts = ClassPasses(answers, none.astype(float)).counts(posterior)
    pseudo = Groups(none, exists, channel).prior(counts).pseudo
    return _likeliest(counts + pseudo, exists, certain), channel


def _second(shape: tuple[int, ...]) -> FloatArray:
    """Rate the second of two answers in every cell."""
    return np.stack([np.zeros(shape), np.ones(shape)])


def _exists(channel: FloatArray) -> BoolArray:
    """Whether a question has an answer of this number (answer, question, 1)."""
    return np.asarray((channel > 0).any(axis=2, keepdims=True))


def _likeliest(alpha: FloatArray, exists: BoolArray, certain: float) -> BoolArray:
    """The likeliest answer of each cell, none where it is not `certain` (a union bound)."""
    from scipy.special import betainc

    top = alpha.argmax(axis=0)[None]
    best = np.take_along_axis(alpha, top, axis=0)
    mine = np.arange(len(alpha))[:, None, None] == top
    beaten = np.where(exists & ~mine, betainc(best, np.maximum(alpha, TINY), 0.5), 0.0)
    return np.asarray(mine & (1 - beaten.sum(axis=0) >= certain))


def _settled(make: Callable[[bool], Fit], error: FloatArray | None) -> ClassFit:
    """Fit with skills or, where that does not converge, without."""
    for alike in (False, True):
        fit = make(alike)
        fit.start(error)
        fit.estimate_priors()
        trace, at_the_top = fit.ascend()
        if at_the_top:
            fit.sums()
            return finished(fit, tuple(trace), not alike)
        if not alike:
            warnings.warn(
                f"learn: skills of workers did not converge in {MAX_STEPS} steps and are withheld; "
                "all other numbers are of a model in which workers are alike; give more gold, or "
                "more answers per item",
                CrowdtreeWarning,
                stacklevel=5,
            )
    raise CrowdtreeError(
        f"learn: no fit converged in {MAX_STEPS} steps, so that there are no numbers to use; give "
        "more gold, or more answers per item"
    )
