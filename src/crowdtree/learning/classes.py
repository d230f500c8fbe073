"""Classes of items that were asked many yes/no questions: table, skills and classes together.

A cell (question, class) holds a rate and every worker a skill,

    logit P(worker w says yes) = x[q, c] + tilt[q, c] * skill[w].

Where the table of outcomes is known the tilt is +1 (yes is right) or -1 (no is right), the rate is
that of right answers, and cells of one question have similar errors. Where it is not known the
rate is that of yes, and the tilt is ``2 P(yes is the likelier answer) - 1``: a cell near one half
does not credit workers for siding with its majority. Rates have the priors of
:mod:`crowdtree.learning.rates`. Skills have a Student prior of few degrees of freedom, whose centre
is skill 0: a spammer is far from it and moves neither it nor the spread.

The rates that are reported are those of the crowd that answered: the mean over its workers, each
counted by the number of answers given. That is how often the next answer is yes, it is what the
counts of a cell estimate however workers differ, and with workers who are all alike it is exactly
the empirical Bayes estimate from the counts.

The fit has two parts. First the priors are estimated, with everything else in turn, until the table
hardly moves: how much cells borrow, the spread of the skills, the tilts. These are held from then
on, each cell with the Beta that has the mean which the mixture of its priors gives. What is left is
one objective, the log posterior

    log P(answers | x, skills, shares) + log prior(x) + log prior(skills) + log prior(shares),

and it is maximised by EM steps (a Newton step of cells and skills at once, then class shares),
halved until the objective does not fall. That is what the trace shows. Doubt about what the others
are is added to each at the end, from the observed information (:mod:`crowdtree.learning.doubt`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from crowdtree.errors import CrowdtreeError, CrowdtreeWarning
from crowdtree.learning.answers import Answers
from crowdtree.learning.class_passes import FLATTER, ClassPasses, Sums
from crowdtree.learning.doubt import LEAST_LEFT, finished
from crowdtree.learning.rates import CellRates, Counts, cell_rates
from crowdtree.learning.skills import ClassFit, spread_of

__all__ = ["Crowd", "Fit", "fit_classes", "settled"]

FloatArray = NDArray[np.float64]
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
_LONGEST_STEP = 1.0  # logits that a skill or a cell moves at a time
_LEAST_SIZE, _MORE = 0.1, 1.1  # pseudo-answers of a cell, and how many more than just enough
_LEAST_BEND = 1e-9
_FARTHEST = 10.0  # logits of a skill
_DEGREES = 8.0  # of freedom of the skills' prior
_GROUPS = 64  # of workers of like skill, where an average over workers is needed


@dataclass
class Crowd:
    """Skills of the workers: mean and variance of each, and the prior that they share.

    `pull` is how much the prior holds each worker, relative to one of typical skill: next to
    nothing where a skill is many spreads away (Student prior as a mixture of normals).
    """

    skill: FloatArray
    variance: FloatArray
    answers: FloatArray
    pull: FloatArray
    spread: float
    spread_doubt: float = 0.0

    @classmethod
    def start(cls, answers: Answers, alike: bool = False) -> Crowd:
        """Start with everybody typical; nobody differs where none answered twice, or one did."""
        count = np.bincount(answers.worker, minlength=answers.n_workers).astype(np.float64)
        spread = 0.5 if (count > 0).sum() > 1 and count.max() > 1 and not alike else 0.0
        none = np.zeros(len(count))
        return cls(none, np.full(len(count), spread**2), count, np.ones(len(count)), spread)

    @property
    def precision(self) -> FloatArray:
        """What the prior tells about each skill."""
        return np.asarray(self.pull / self.spread**2)

    @property
    def curvature(self) -> FloatArray:
        """Curvature of the Student prior: on average less than what holds a typical worker."""
        mean = (_DEGREES + 1) / (_DEGREES + 3)
        return np.asarray(np.minimum(self.pull, mean) / self.spread**2)

    def step(self, score: FloatArray, bend: FloatArray, lost: FloatArray) -> float:
        """Newton step of the skills, then their centre and spread; returns the largest move.

        Cells can move against all skills, so what skill 0 is rests on the prior alone: the centre
        of the skills, in which a worker far away counts little.
        """
        if not self.spread:
            return 0.0
        before = self.skill
        held = np.maximum(bend - lost, LEAST_LEFT * bend) + 1e-6
        step = (score - self.precision * before) / (bend + self.precision)
        skill = before + np.clip(step, -_LONGEST_STEP, _LONGEST_STEP)
        self.skill = np.clip(skill - (self.pull @ skill) / self.pull.sum(), -_FARTHEST, _FARTHEST)
        alone = before + score / held  # what the answers of each worker tell by themselves
        self.spread, self.spread_doubt = spread_of(alone, held, self.pull)
        self.variance = 1 / (held + self.precision)
        square = (self.skill**2 + self.variance) / self.spread**2
        self.pull = (_DEGREES + 1) / (_DEGREES + square)
        return float(np.abs(self.skill - before).max())

    def groups(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Shares, skills and variances of groups of workers, weighted by their answers."""
        met = np.flatnonzero(self.answers > 0)
        order = met[np.argsort(self.skill[met], kind="stable")]
        weight = self.answers[order] / self.answers[order].sum()
        skill, variance = self.skill[order], self.variance[order]
        if len(order) <= _GROUPS:
            return weight, skill, variance
        group = np.minimum((np.cumsum(weight) * _GROUPS).astype(int), _GROUPS - 1)
        share = np.bincount(group, weight, _GROUPS).astype(np.float64)
        size = np.maximum(share, 1e-300)
        mean = np.bincount(group, weight * skill, _GROUPS) / size
        square = np.bincount(group, weight * (skill**2 + variance), _GROUPS) / size
        return share, mean, square - mean**2

    def rate(self, x: FloatArray, tilt: FloatArray) -> FloatArray:
        """P(yes) per cell of the crowd: the mean over the answers that its workers gave."""
        made = np.zeros_like(x)
        for share, skill, variance in zip(*self.groups(), strict=True):
            flat = np.sqrt(1 + FLATTER * tilt**2 * variance)
            made += share / (1 + np.exp(-(x + tilt * skill) / flat))
        return made


class Fit:
    """A fit under way."""

    def __init__(
        self,
        answers: Answers,
        gold: IntArray,
        sign: NDArray[np.int8] | None,
        prior: FloatArray,
        alike: bool = False,
    ) -> None:
        self.answers, self.gold, self.prior = answers, gold, prior
        self.sign = sign
        known = gold >= 0
        self.posterior = np.zeros((answers.n_tasks, len(prior)))
        self.posterior[known, gold[known]] = 1.0
        self.crowd = Crowd.start(answers, alike)
        shape = (len(answers.questions), len(prior))
        self.x = np.zeros(shape)
        self.tilt = np.zeros(shape) if sign is None else sign.astype(np.float64)
        self.passes = ClassPasses(answers)
        self.now: Sums
        self.rates: CellRates
        self.pseudo: FloatArray
        self.told: Counts | None = None

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
        """Rates of the cells from the sums.

        The answers of a cell count as those of typical workers that have the same score and
        curvature (`whole`), and as those about items of known class that have the same score and
        observed information (`told`); none counts as more than one.
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

    def _counts(
        self, score: FloatArray, bend: FloatArray, held: FloatArray, p: FloatArray
    ) -> Counts:
        """Yes answers, or wrong ones where the table is known, that have this score and bend."""
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
            error = np.clip(error, 1e-4, 0.499)
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
        yes = size * p - score
        closed = np.zeros_like(p) if self.sign is None else (self.sign == 0)
        self.pseudo = np.stack([yes, size - yes]) * (1 - closed)

    def _shares(self) -> FloatArray:
        """Class shares, with one more item of each class."""
        count = self.posterior.sum(axis=0) + 1
        return np.asarray(count / count.sum())

    def objective(self) -> float:
        """Log posterior of rates, skills and shares, up to a constant; fills the posteriors."""
        yes, no = self.pseudo
        value = self.classify() + float(np.log(self.prior).sum())
        value -= float((yes * np.logaddexp(0, -self.x) + no * np.logaddexp(0, self.x)).sum())
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
        """What the objective depends on: cells, skills and class shares."""
        return [self.x, self.crowd.skill, self.prior]

    def move_to(self, state: list[FloatArray]) -> None:
        """Take a state."""
        self.x, self.crowd.skill, self.prior = state

    def directions(self) -> list[FloatArray]:
        """Steps of the parts of the state, each of which raises the objective."""
        self.sums()
        (yes, no), p = self.pseudo, 1 / (1 + np.exp(-self.x))
        score, bend = self.now.score, self.now.bend
        slope = score + yes - (yes + no) * p
        cells = slope / (bend + (yes + no) * p * (1 - p) + _LEAST_BEND)
        if self.sign is not None:
            cells = np.where(self.sign == 0, 0.0, cells)
        skills = np.zeros_like(self.crowd.skill)
        if self.crowd.spread:
            pull, precision = self.crowd.pull, self.crowd.precision
            held = self.now.worker_bend + precision
            skills = (self.now.worker_score - precision * self.crowd.skill) / held
            # skill 0 stays the centre: shared by all, a shift would undo what cells borrow
            skills -= pull / held * ((pull @ skills) / (pull @ (pull / held)))
        limit = _LONGEST_STEP
        steps = np.clip(cells, -limit, limit), np.clip(skills, -limit, limit)
        return [*steps, self._shares() - self.prior]


AnyFit = TypeVar("AnyFit", bound=Fit)


def fit_classes(
    answers: Answers,
    gold: IntArray,
    sign: NDArray[np.int8] | None,
    prior: FloatArray,
    *,
    error: FloatArray | None = None,
) -> ClassFit:
    """Fit rates, skills and class shares, and the classes of the items with them.

    Parameters
    ----------
    gold
        Known class of each item, -1 where unknown.
    sign
        +1 where the error-free answer is yes, -1 where it is no, 0 where it is open; None where
        the table is to be learned.
    prior
        How often each class occurs, to start from.
    error
        Errors to start from, where no class is known.

    Returns
    -------
    ClassFit
        The fit. Where it does not converge, that of a model in which workers are alike, whose
        `converged` is False: it knows no skills.
    """
    fit, trace, converged = settled(lambda alike: Fit(answers, gold, sign, prior, alike), error)
    return finished(fit, trace, converged)


def settled(
    make: Callable[[bool], AnyFit], error: FloatArray | None
) -> tuple[AnyFit, tuple[float, ...], bool]:
    """Fit with skills or, where that does not converge, without: the fit, trace and which."""
    for alike in (False, True):
        fit = make(alike)
        fit.start(error)
        fit.estimate_priors()
        trace, at_the_top = fit.ascend()
        if at_the_top:
            fit.sums()
            return fit, tuple(trace), not alike
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
