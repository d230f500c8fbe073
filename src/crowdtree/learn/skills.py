"""Error of each cell and skill of each worker: ``logit P(w errs) = logit(e[q, c]) - skill_w``.

Fitted by EM with Polya-Gamma weights (Polson, Scott and Windle 2013), which turn every logistic
term into a weighted square: each update is a division and none can lower the penalised
likelihood. A cell has a Beta prior whose mean is that of its question and whose strength is
estimated from how alike the cells of a question are; a skill has a normal prior around 0, whose
spread is estimated too. So thin cells and new workers borrow strength from the others.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from crowdtree.learn.answers import Answers

__all__ = [
    "CountSums",
    "Signs",
    "SkillFit",
    "SkillState",
    "Sums",
    "cell_of",
    "cell_prior",
    "finished",
    "fit_counts",
    "right_and_wrong",
    "settle",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int32]

LOWEST_ERROR = 1e-4
ROUNDS = 4  # the priors are estimated anew this many times
STEPS = 200
FIRST_STEPS = 10  # before the priors are estimated anew there is no need to settle
_ALONE = 1e-3
_STRENGTHS = np.geomspace(0.5, 500, 25)
_NODES = np.linspace(-3, 3, 9)  # where a question's mean is tried, in its standard deviations
_SPREADS = np.geomspace(0.02, 5, 80)
JEFFREYS = 0.5


class Signs(NamedTuple):
    """Which answer is right in each cell, and how sure that is.

    `sign` is +1 where the error-free answer is yes, -1 where it is no, 0 where it is open (`-`);
    `trust` is the probability of that sign, 1 where the table is known.
    """

    sign: NDArray[np.int8]
    trust: FloatArray

    @classmethod
    def known(cls, sign: NDArray[Any]) -> Signs:
        """Signs of a table that is known."""
        return cls(np.asarray(sign, np.int8), np.ones(sign.shape))


@dataclass(frozen=True, eq=False)
class SkillFit:
    """Cells, skills and how sure they are.

    `cell` is ``-logit(e)`` of a worker of skill 0; `wrong` and `right` are the Beta posterior of
    ``e`` (its mean is the estimate); `skill_sd` is the standard deviation. `strength` and
    `question_error` are the Beta prior, `spread` the standard deviation of skills in the crowd;
    `trust` is the probability that a cell's `sign` is right; `prior_size` is how many items of
    known class would tell the class shares as well; `peak` are the cells at the joint peak with
    the skills, where the objective was climbed to.
    """

    cell: FloatArray
    skill: FloatArray
    wrong: FloatArray
    right: FloatArray
    skill_sd: FloatArray
    question_error: FloatArray
    strength: float
    spread: float
    posterior: FloatArray
    sign: NDArray[np.int8]
    trust: FloatArray
    prior: FloatArray
    prior_size: FloatArray
    trace: tuple[float, ...] = ()
    answers: FloatArray = field(default_factory=lambda: np.zeros(0))
    peak: FloatArray = field(default_factory=lambda: np.zeros(0))

    @property
    def error(self) -> FloatArray:
        """Error of a worker of skill 0, per cell."""
        return np.asarray(1 / (1 + np.exp(self.cell)))


def cell_prior(wrong: FloatArray, total: FloatArray) -> tuple[FloatArray, float, float]:
    """Beta prior of the cells: a mean per question, one strength, and its doubt.

    A grid of strengths is weighed by the beta-binomial likelihood of the cells, the question's
    mean integrated out (it is fitted to the same cells: taking it for known would make them look
    more alike than they are). The mean itself has a prior of two answers at the mean of all
    questions. The strength averages its inverse, to which the variance of the cells is in
    proportion; the doubt is the variance of its logarithm.

    >>> mean, strength, doubt = cell_prior(np.array([[1.0, 1.0]]), np.array([[10.0, 10.0]]))
    >>> mean.round(1).tolist(), 2 < strength < 20, doubt > 0.5
    ([0.1], True, True)
    """
    from scipy.special import betaln, expit, logit

    overall = (wrong.sum() + 0.5) / (total.sum() + 2.5)
    rough = (wrong.sum(axis=1) + 2 * overall) / (total.sum(axis=1) + 2)
    middle = logit(np.clip(rough, 1e-3, 0.49))[:, None]
    unit = (rough * (1 - rough))[:, None]
    value, centre = np.empty(len(_STRENGTHS)), np.empty((len(_STRENGTHS), len(wrong)))
    for i, strength in enumerate(_STRENGTHS):
        told = unit * (np.sum(strength * total / (strength + total), axis=1, keepdims=True) + 2)
        at = middle + _NODES / np.sqrt(told)
        mean = np.clip(expit(at), 1e-4, 0.49)
        a, b = strength * mean[:, None], strength * (1 - mean[:, None])
        of_cells = betaln(a + wrong[..., None], b + (total - wrong)[..., None]) - betaln(a, b)
        log = of_cells.sum(axis=1)
        log += 2 * (overall * np.log(mean) + (1 - overall) * np.log1p(-mean))
        top = log.max(axis=1, keepdims=True)
        weight = np.exp(log - top)
        value[i] = float(np.sum(top + np.log(weight.sum(axis=1, keepdims=True) / np.sqrt(told))))
        centre[i] = (weight * mean).sum(axis=1) / weight.sum(axis=1)
    weight = np.exp(value - value.max())
    weight /= weight.sum()
    strength = float(1 / (weight / _STRENGTHS).sum())
    return weight @ centre, strength, float(weight @ np.log(_STRENGTHS / strength) ** 2)


def skill_spread(skill: FloatArray, held: FloatArray, spread: float) -> tuple[float, float]:
    """Spread of the skills in the crowd, and the variance of its logarithm.

    A grid is weighed by the normal likelihood of what each worker's answers alone say, their
    common mean integrated out. One pseudo-worker half a logit off keeps a tiny crowd from 0.

    Parameters
    ----------
    skill, spread
        Skills fitted with this spread.
    held
        What the answers of each worker tell about the skill (information).

    >>> rng = np.random.default_rng(0)
    >>> spread, doubt = skill_spread(rng.normal(0, 0.7, 200), np.full(200, 1e6), 1.0)
    >>> round(spread, 1), doubt < 0.01
    (0.7, True)
    """
    held = np.maximum(held, 1e-6)
    alone = skill * (held + spread**-2) / held
    whole = _SPREADS[:, None] ** 2 + 1 / held
    weight = 1 / whole
    mean = (weight * alone).sum(axis=1) / weight.sum(axis=1)
    value = -0.5 * (np.log(whole) + (alone - mean[:, None]) ** 2 / whole).sum(axis=1)
    value -= 0.5 * np.log(weight.sum(axis=1))
    value -= np.log(_SPREADS) + 0.125 / _SPREADS**2
    chance = np.exp(value - value.max())
    chance /= chance.sum()
    log = float(chance @ np.log(_SPREADS))
    return float(np.exp(log)), float(chance @ (np.log(_SPREADS) - log) ** 2)


class Sums(Protocol):
    """Weighted sums of a step."""

    def by_cell(self, state: SkillState) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Sums by cell (q, c, 4), by cell were its sign the other, and by worker (w, 4)."""

    def with_loss(self, state: SkillState) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The same, the last column filled: what doubt about the classes takes."""


class CountSums:
    """The same sums from expected counts of right and wrong answers (worker, class)."""

    def __init__(
        self, right: FloatArray, wrong: FloatArray, answers: Answers, posterior: FloatArray
    ) -> None:
        self.right, self.wrong = right, wrong
        self.answers, self.posterior = answers, posterior

    def lost(self, cell: FloatArray, skill: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Information lost to doubt about the classes, by class and by worker."""
        from crowdtree.learn import kernels

        by_class, by_worker = np.zeros(cell.shape[1]), np.zeros(len(skill))
        chance = np.ascontiguousarray(1 / (1 + np.exp(-cell - skill[:, None])))
        a = self.answers
        kernels.lost_pass(a.start, a.worker, a.label, self.posterior, chance, by_class, by_worker)
        return by_class[None], by_worker

    def by_cell(self, state: SkillState) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Sums by cell (1, c, 4), none for other signs, and by worker (w, 4)."""
        cell, skill = state.cell, state.skill
        total = self.right + self.wrong
        x = cell + skill[:, None]
        weight = total * _weight(x)
        chance = 1 / (1 + np.exp(-x))
        bend = total * chance * (1 - chance)
        half = (self.right - self.wrong) / 2
        none = np.zeros_like(bend)
        cells = [half - weight * skill[:, None], weight, bend, none]
        workers = [half - weight * cell, weight, bend, none]
        return (
            np.stack([part.sum(axis=0)[None] for part in cells], axis=-1),
            np.zeros((1, 0, 4)),
            np.stack([part.sum(axis=1) for part in workers], axis=-1),
        )

    def with_loss(self, state: SkillState) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The sums, with what doubt about the classes takes."""
        cells, others, workers = self.by_cell(state)
        cells[..., 3], workers[:, 3] = self.lost(state.cell, state.skill)
        return cells, others, workers


def _weight(x: FloatArray) -> FloatArray:
    """``tanh(x / 2) / (2 x)``, the mean of a Polya-Gamma variable."""
    safe = np.where(np.abs(x) > 1e-6, x, 1.0)
    return np.where(np.abs(x) > 1e-6, np.tanh(safe / 2) / (2 * safe), 0.25)


@dataclass
class SkillState:
    """Where a fit stands; `other` are the cells were their signs the other way (none if known)."""

    cell: FloatArray
    skill: FloatArray
    mean: FloatArray
    strength: float
    strength_doubt: float
    spread: float
    other: FloatArray
    spread_doubt: float = 0.0

    @classmethod
    def start(cls, wrong: FloatArray, total: FloatArray, workers: int) -> SkillState:
        """Start from expected wrong answers of each cell, with every worker a typical one."""
        mean, strength, doubt = cell_prior(wrong, total)
        error = (wrong + strength * mean[:, None]) / (total + strength)
        # a single worker is the crowd: nobody to differ from
        spread = 0.5 if workers > 1 else _ALONE
        none = np.zeros((len(mean), 0))
        return cls(cell_of(error), np.zeros(workers), mean, strength, doubt, spread, none)

    def step(self, sums: Sums) -> None:
        """New cells, then new skills: each raises the penalised likelihood."""
        cells, others, _ = sums.by_cell(self)
        self.cell, self.other = self._moved(self.cell, cells), self._moved(self.other, others)
        workers = sums.by_cell(self)[2]
        self.skill = workers[:, 0] / (workers[:, 1] + self.spread**-2)
        self._shift()

    def _moved(self, cell: FloatArray, sums: FloatArray) -> FloatArray:
        pull = sums[..., 0] + self.strength * (0.5 - self.mean[:, None])
        return np.asarray(pull / (sums[..., 1] + self.strength * _weight(cell)))

    def _shift(self) -> None:
        """Move all cells up and all skills down by what the priors like best.

        The likelihood does not notice, and without it the two crawl after each other.
        """
        before, old = self.penalty(), (self.cell, self.other, self.skill)
        cell, skill = np.concatenate([self.cell, self.other], axis=1), self.skill
        move = 0.0
        for _ in range(3):
            error = 1 / (1 + np.exp(cell + move))
            slope = self.strength * float(np.sum(error - self.mean[:, None]))
            slope += float(np.sum(skill - move)) / self.spread**2
            bend = self.strength * float(np.sum(error * (1 - error)))
            move += slope / (bend + len(skill) / self.spread**2)
        self.cell, self.other, self.skill = self.cell + move, self.other + move, skill - move
        if self.penalty() < before:
            self.cell, self.other, self.skill = old

    def penalty(self) -> float:
        """Log prior of cells and skills, up to what does not depend on them."""
        mean = self.mean[:, None]
        cell = np.concatenate([self.cell, self.other], axis=1)
        log_error = -np.logaddexp(0, cell)
        cells = self.strength * (mean * log_error + (1 - mean) * (log_error + cell))
        return float(cells.sum() - 0.5 * np.sum((self.skill / self.spread) ** 2))

    def refresh(self, sums: Sums) -> None:
        """Estimate the priors anew: spread of the skills, means and strength of the cells."""
        move = float(self.skill.mean())  # skill 0 is the typical worker
        self.cell, self.other, self.skill = self.cell + move, self.other + move, self.skill - move
        cells, others, workers = sums.with_loss(self)
        if len(self.skill) > 1:
            held = workers[:, 2] - workers[:, 3]
            self.spread, self.spread_doubt = skill_spread(self.skill, held, self.spread)
        error = 1 / (1 + np.exp(np.concatenate([self.cell, self.other], axis=1)))
        bend = np.concatenate([cells[..., 2], others[..., 2]], axis=1)
        total = bend / np.maximum(error * (1 - error), 1e-9)
        prior = self.strength * self.mean[:, None]
        wrong = np.clip(error * (total + self.strength) - prior, 0, total)
        self.mean, self.strength, self.strength_doubt = cell_prior(wrong, total)


def cell_of(error: FloatArray) -> FloatArray:
    """Minus the logit of an error."""
    return np.asarray(-np.log(error) + np.log1p(-error))


def fit_counts(answers: Answers, counts: FloatArray, posterior: FloatArray) -> SkillFit:
    """Cells of one question and skills, from expected answers (worker, label, class)."""
    right, wrong = right_and_wrong(counts)
    state = SkillState.start(wrong.sum(axis=0)[None], (right + wrong).sum(axis=0)[None], len(right))
    sums = CountSums(right, wrong, answers, posterior)
    for round_ in range(ROUNDS):
        settle(state, sums, STEPS if round_ == ROUNDS - 1 else FIRST_STEPS)
        if round_ < ROUNDS - 1:
            state.refresh(sums)
    classes = right.shape[1]
    prior = (posterior.sum(axis=0) + 1) / (len(posterior) + classes)
    return finished(answers, state, sums, posterior, Signs.known(np.ones((1, classes))), prior, ())


def right_and_wrong(counts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Expected right and wrong answers (worker, class) from those by label."""
    right = np.einsum("wll->wl", counts)
    return right, np.maximum(counts.sum(axis=1) - right, 0.0)


def settle(state: SkillState, sums: Sums, steps: int) -> None:
    """Step until nothing moves by what matters."""
    for _ in range(steps):
        before = state.cell, state.skill
        state.step(sums)
        moved = max(np.abs(state.cell - before[0]).max(), np.abs(state.skill - before[1]).max())
        if moved < 1e-4:  # far below any standard deviation
            break


def _not_too_sure(
    wrong: FloatArray, right: FloatArray, answers: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Beta posteriors of cells; none surer than half a wrong answer among those of its question.

    Where next to no answer is wrong the estimate runs towards 0, where its curvature says nothing
    about the other side: a hundred right answers do not prove an error of a millionth. There the
    rule of Jeffreys holds. A cell without answers keeps what it borrows.

    >>> wrong, right = np.array([[0.001, 0.002]]), np.array([[1e5, 1e5]])
    >>> [part.tolist() for part in _not_too_sure(wrong, right, np.array([[50.0, 49.0]]))]
    [[[0.5, 0.5]], [[99.5, 99.5]]]
    """
    few = (wrong < JEFFREYS) & (answers >= 1)
    asked = answers.sum(axis=1, keepdims=True)
    mean = np.maximum(wrong / (wrong + right), JEFFREYS / (asked + 1))
    return np.where(few, JEFFREYS, wrong), np.where(few, JEFFREYS / mean - JEFFREYS, right)


def finished(
    answers: Answers,
    state: SkillState,
    sums: Sums,
    posterior: FloatArray,
    signs: Signs,
    prior: FloatArray,
    trace: tuple[float, ...],
) -> SkillFit:
    """Turn the information into Beta posteriors of the cells and deviations of the skills."""
    from crowdtree.learn import information

    cells, _, workers = sums.with_loss(state)
    error = 1 / (1 + np.exp(state.cell))
    asked = cells[..., 2] / np.maximum(error * (1 - error), 1e-12)
    unknowns = state.cell.size + len(workers) + len(prior) + len(cells)
    if information.fits_one_matrix(answers, unknowns):
        by_label = isinstance(sums, CountSums)
        doubt = information.joint_doubt(answers, signs, state, posterior, prior, by_label=by_label)
    else:
        doubt = information.own_doubt(state, cells, workers, prior, posterior)
    cell = state.cell + doubt.cell_move
    error = np.clip(1 / (1 + np.exp(cell)), LOWEST_ERROR, 1 - LOWEST_ERROR)
    size = 1 / (error * (1 - error) * doubt.cell)
    wrong, right = _not_too_sure(error * size, (1 - error) * size, asked)
    return SkillFit(
        cell=cell_of(wrong / (wrong + right)),
        skill=state.skill,
        wrong=wrong,
        right=right,
        skill_sd=np.sqrt(doubt.skill),
        question_error=state.mean,
        strength=state.strength,
        spread=state.spread,
        posterior=posterior,
        sign=signs.sign,
        trust=signs.trust,
        prior=prior,
        prior_size=1 / (doubt.prior * prior * (1 - prior)),
        trace=trace,
        answers=asked,
        peak=state.cell,
    )
