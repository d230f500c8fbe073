"""Error of each cell and skill of each worker: ``logit P(w errs) = logit(e[q, c]) - skill_w``.

Fitted by EM with Polya-Gamma weights (Polson, Scott and Windle 2013), which turn every logistic
term into a weighted square: each update is a division and none can lower the penalised
likelihood. A cell has a Beta prior whose mean is that of its question and whose strength is
estimated from how alike the cells of a question are; a skill has a normal prior around 0, whose
spread is estimated too. So thin cells and new workers borrow strength from the others.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from crowdtree.learn.answers import Answers

__all__ = ["SkillFit", "cell_prior", "fit_classes", "fit_counts"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int32]

LOWEST_ERROR = 1e-4
_ROUNDS = 4  # the priors are estimated anew this many times
_STEPS = 200
_FIRST_STEPS = 10  # before the priors are estimated anew there is no need to settle
_TOLERANCE = 1e-8
_ALONE = 1e-3
_STRENGTHS = np.geomspace(0.5, 500, 31)


@dataclass(frozen=True, eq=False)
class SkillFit:
    """Cells, skills and how sure they are.

    `cell` is ``-logit(e)`` of a worker of skill 0; `wrong` and `right` are the Beta posterior of
    ``e`` (its mean is the estimate); `skill_sd` is the Laplace standard deviation. `strength` and
    `question_error` are the Beta prior, `spread` the standard deviation of skills in the crowd.
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
    prior: FloatArray
    trace: tuple[float, ...] = ()
    answers: FloatArray = field(default_factory=lambda: np.zeros(0))

    @property
    def error(self) -> FloatArray:
        """Error of a worker of skill 0, per cell."""
        return np.asarray(1 / (1 + np.exp(self.cell)))


def cell_prior(wrong: FloatArray, total: FloatArray) -> tuple[FloatArray, float]:
    """Beta prior of the cells: a mean per question and one strength, by empirical Bayes.

    The question's mean is itself pulled to that of all questions with the weight of two answers.
    The strength weighs a grid by the beta-binomial likelihood of the cells and averages its
    inverse, which leans to the weak side where the cells cannot tell.

    >>> mean, strength = cell_prior(np.array([[1.0, 1.0]]), np.array([[10.0, 10.0]]))
    >>> mean.round(3).tolist(), 2 < strength < 20
    ([0.101], True)
    """
    from scipy.special import betaln

    overall = (wrong.sum() + 0.5) / (total.sum() + 2.5)
    mean = (wrong.sum(axis=1) + 2 * overall) / (total.sum(axis=1) + 2)
    mean = np.clip(mean, 1e-3, 0.49)
    value = np.empty(len(_STRENGTHS))
    for i, strength in enumerate(_STRENGTHS):
        a, b = strength * mean[:, None], strength * (1 - mean[:, None])
        value[i] = np.sum(betaln(a + wrong, b + total - wrong) - betaln(a, b))
    weight = np.exp(value - value.max())
    return mean, float(weight.sum() / (weight / _STRENGTHS).sum())


class _Sums:
    """Weighted sums of a step, from the answers themselves or from counts of right and wrong."""

    def __init__(self, answers: Answers, sign: NDArray[np.int8], posterior: FloatArray) -> None:
        self.answers, self.sign, self.posterior = answers, sign, posterior
        self.question = answers.question_column()

    def by_cell(self, cell: FloatArray, skill: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Sums by cell (q, c, 4) and by worker (w, 4); see the kernel."""
        from crowdtree.learn import kernels

        cells = np.zeros((*self.sign.shape, 4))
        workers = np.zeros((len(skill), 4))
        a = self.answers
        kernels.skill_pass(
            a.start, self.question, a.worker, a.label, self.sign, cell, skill, self.posterior,
            cells, workers,
        )  # fmt: skip
        return cells, workers


class _CountSums:
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

    def by_cell(self, cell: FloatArray, skill: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Sums by cell (1, c, 4) and by worker (w, 4)."""
        total = self.right + self.wrong
        x = cell + skill[:, None]
        weight = total * _weight(x)
        chance = 1 / (1 + np.exp(-x))
        bend = total * chance * (1 - chance)
        half = (self.right - self.wrong) / 2
        lost = np.zeros_like(bend)
        cells = [half - weight * skill[:, None], weight, bend, lost]
        workers = [half - weight * cell, weight, bend, lost]
        return (
            np.stack([part.sum(axis=0)[None] for part in cells], axis=-1),
            np.stack([part.sum(axis=1) for part in workers], axis=-1),
        )


def _weight(x: FloatArray) -> FloatArray:
    """``tanh(x / 2) / (2 x)``, the mean of a Polya-Gamma variable."""
    safe = np.where(np.abs(x) > 1e-6, x, 1.0)
    return np.where(np.abs(x) > 1e-6, np.tanh(safe / 2) / (2 * safe), 0.25)


@dataclass
class _State:
    cell: FloatArray
    skill: FloatArray
    mean: FloatArray
    strength: float
    spread: float

    @classmethod
    def start(cls, wrong: FloatArray, total: FloatArray, workers: int) -> _State:
        mean, strength = cell_prior(wrong, total)
        error = (wrong + strength * mean[:, None]) / (total + strength)
        # a single worker is the crowd: nobody to differ from
        spread = 0.5 if workers > 1 else _ALONE
        return cls(_cell_of(error), np.zeros(workers), mean, strength, spread)

    def step(self, sums: _Sums | _CountSums) -> None:
        """New cells, then new skills: each raises the penalised likelihood."""
        mean = self.mean[:, None]
        cells, _ = sums.by_cell(self.cell, self.skill)
        pull = cells[..., 0] + self.strength * (0.5 - mean)
        self.cell = pull / (cells[..., 1] + self.strength * _weight(self.cell))
        _, workers = sums.by_cell(self.cell, self.skill)
        self.skill = workers[:, 0] / (workers[:, 1] + self.spread**-2)
        self._shift()

    def _shift(self) -> None:
        """Move all cells up and all skills down by what the priors like best.

        The likelihood does not notice, and without it the two crawl after each other.
        """
        before, cell, skill = self.penalty(), self.cell, self.skill
        move = 0.0
        for _ in range(3):
            error = 1 / (1 + np.exp(cell + move))
            slope = self.strength * float(np.sum(error - self.mean[:, None]))
            slope += float(np.sum(skill - move)) / self.spread**2
            bend = self.strength * float(np.sum(error * (1 - error)))
            move += slope / (bend + len(skill) / self.spread**2)
        self.cell, self.skill = cell + move, skill - move
        if self.penalty() < before:
            self.cell, self.skill = cell, skill

    def penalty(self) -> float:
        """Log prior of cells and skills, up to what does not depend on them."""
        mean = self.mean[:, None]
        log_error = -np.logaddexp(0, self.cell)
        cells = self.strength * (mean * log_error + (1 - mean) * (log_error + self.cell))
        return float(cells.sum() - 0.5 * np.sum((self.skill / self.spread) ** 2))

    def refresh(self, sums: _Sums | _CountSums) -> None:
        """Estimate the priors anew: spread of the skills, means and strength of the cells."""
        move = float(self.skill.mean())  # skill 0 is the typical worker
        self.cell, self.skill = self.cell + move, self.skill - move
        cells, workers = sums.by_cell(self.cell, self.skill)
        variance = 1 / (workers[:, 2] + self.spread**-2)
        # one pseudo-worker half a logit off keeps the spread of a tiny crowd from 0
        squares = float(np.sum(self.skill**2 + variance))
        if len(self.skill) > 1:
            self.spread = float(np.sqrt((squares + 0.25) / (len(self.skill) + 1)))
        error = 1 / (1 + np.exp(self.cell))
        total = cells[..., 2] / np.maximum(error * (1 - error), 1e-9)
        prior = self.strength * self.mean[:, None]
        wrong = np.clip(error * (total + self.strength) - prior, 0, total)
        self.mean, self.strength = cell_prior(wrong, total)


def _cell_of(error: FloatArray) -> FloatArray:
    return np.asarray(-np.log(error) + np.log1p(-error))


def fit_counts(answers: Answers, counts: FloatArray, posterior: FloatArray) -> SkillFit:
    """Cells of one question and skills, from expected answers (worker, label, class)."""
    right = np.einsum("wll->wl", counts)
    total = counts.sum(axis=1)
    wrong = np.maximum(total - right, 0.0)
    state = _State.start(wrong.sum(axis=0)[None], total.sum(axis=0)[None], len(right))
    sums = _CountSums(right, wrong, answers, posterior)
    for round_ in range(_ROUNDS):
        for _ in range(_STEPS if round_ == _ROUNDS - 1 else _FIRST_STEPS):
            before = state.cell, state.skill
            state.step(sums)
            moved = max(np.abs(state.cell - before[0]).max(), np.abs(state.skill - before[1]).max())
            if moved < 1e-4:  # far below any standard deviation
                break
        if round_ < _ROUNDS - 1:
            state.refresh(sums)
    classes = right.shape[1]
    none = np.zeros((0, classes))
    sign = np.ones((1, classes), np.int8)
    return _finished(state, sums, none, sign, np.full(classes, 1 / classes), ())


def fit_classes(
    answers: Answers,
    gold: IntArray,
    sign: NDArray[np.int8],
    prior: FloatArray,
    *,
    learn_prior: bool,
    learn_sign: bool,
    cells: FloatArray | None = None,
) -> SkillFit:
    """Classes of items that were asked many questions, by EM where they are not known.

    Parameters
    ----------
    answers
        The answers, labels 0 and 1.
    gold
        Known class of each item, -1 where unknown.
    sign
        +1 where the error-free answer is yes, -1 where it is no, 0 where it is open.
    prior
        How often each class occurs; the start of the search when `learn_prior`.
    learn_sign
        Whether signs may turn: a turn is kept when it raises the objective.
    cells
        Errors to start from.
    """
    n_classes = len(prior)
    posterior = np.full((answers.n_tasks, n_classes), 1 / n_classes)
    known = gold >= 0
    posterior[known] = 0.0
    posterior[known, gold[known]] = 1.0
    wrong, total = _wrong_counts(answers, sign, posterior * known[:, None])
    state = _State.start(wrong, total, answers.n_workers)
    if cells is not None and not known.any():
        state.cell = _cell_of(np.clip(cells, LOWEST_ERROR, 0.499))
    all_known = bool(known.all())
    trace: list[float] = []
    for round_ in range(_ROUNDS):
        trace = []
        for _ in range(_STEPS if round_ == _ROUNDS - 1 else _FIRST_STEPS):
            value = _evidence(answers, gold, sign, state, prior, posterior, learn_prior)
            if trace and value - trace[-1] < _TOLERANCE * abs(value):
                trace.append(max(value, trace[-1]))
                break
            trace.append(value)
            if learn_prior:
                prior = (posterior.sum(axis=0) + 1) / (answers.n_tasks + n_classes)
            sums = _Sums(answers, sign, posterior)
            if learn_sign and not all_known:
                sign = _turned(answers, gold, sign, state, prior, posterior, learn_prior)
            state.step(sums if not learn_sign else _Sums(answers, sign, posterior))
        if round_ < _ROUNDS - 1:
            state.refresh(_Sums(answers, sign, posterior))
    return _finished(state, _Sums(answers, sign, posterior), posterior, sign, prior, tuple(trace))


def _evidence(
    answers: Answers,
    gold: IntArray,
    sign: NDArray[np.int8],
    state: _State,
    prior: FloatArray,
    posterior: FloatArray,
    learn_prior: bool,
) -> float:
    """E-step: posteriors in place, and the penalised log likelihood."""
    from crowdtree.learn import kernels

    total = kernels.class_pass(
        answers.start,
        answers.question_column(),
        answers.worker,
        answers.label,
        sign,
        np.ascontiguousarray(state.cell),
        state.skill,
        np.log(prior),
        gold,
        posterior,
    )
    return float(total) + state.penalty() + (float(np.log(prior).sum()) if learn_prior else 0.0)


def _turned(
    answers: Answers,
    gold: IntArray,
    sign: NDArray[np.int8],
    state: _State,
    prior: FloatArray,
    posterior: FloatArray,
    learn_prior: bool,
) -> NDArray[np.int8]:
    """Turn the signs of cells that err more often than not, if the objective gains by it."""
    bad = (state.cell < 0) & (sign != 0)
    if not bad.any():
        return sign
    scratch = posterior.copy()
    before = _evidence(answers, gold, sign, state, prior, scratch, learn_prior)
    trial = np.where(bad, -sign, sign).astype(np.int8)
    old = state.cell
    state.cell = np.where(bad, -old, old)
    if _evidence(answers, gold, trial, state, prior, scratch, learn_prior) >= before:
        posterior[:] = scratch
        return trial
    state.cell = old
    return sign


def _wrong_counts(
    answers: Answers, sign: NDArray[np.int8], posterior: FloatArray
) -> tuple[FloatArray, FloatArray]:
    from crowdtree.learn import kernels

    counts = np.zeros((*sign.shape, 2))
    kernels.cell_counts(answers.start, answers.question_column(), answers.label, posterior, counts)
    wrong = np.where(sign > 0, counts[..., 0], counts[..., 1])
    total = counts.sum(axis=2)
    return np.where(sign == 0, 0.0, wrong), np.where(sign == 0, 0.0, total)


def _finished(
    state: _State,
    sums: _Sums | _CountSums,
    posterior: FloatArray,
    sign: NDArray[np.int8],
    prior: FloatArray,
    trace: tuple[float, ...],
) -> SkillFit:
    """Turn curvatures into Beta posteriors of the cells and standard deviations of the skills.

    Cells and skills can shift against each other (all workers better, all questions harder), held
    by the prior of the skills alone (the mean of the cells is estimated); the variance of that
    direction is added to every skill, and to every cell.
    """
    cells, workers = sums.by_cell(state.cell, state.skill)
    error = np.clip(1 / (1 + np.exp(state.cell)), LOWEST_ERROR, 1 - LOWEST_ERROR)
    unit = error * (1 - error)
    if isinstance(sums, _CountSums):
        cells[..., 3], workers[:, 3] = sums.lost(state.cell, state.skill)
    own = np.maximum(cells[..., 2] - cells[..., 3], 0.02 * cells[..., 2])
    of_prior = state.strength * unit
    worker_own = np.maximum(workers[:, 2] - workers[:, 3], 0.02 * workers[:, 2])
    asked = cells[..., 2] > 0
    shift = state.spread**2 / len(workers)
    information = 1 / (1 / (own + of_prior) + np.where(asked, shift, 0.0))
    # the prior's mean is an estimate too: what a cell takes from it, it takes with its doubt
    told = np.sum(own * of_prior / (own + of_prior) / unit, axis=1, keepdims=True)
    borrowed = (of_prior / (own + of_prior)) ** 2 / (told + 1)
    size = 1 / (unit / information + borrowed)
    variance = 1 / (worker_own + state.spread**-2) + shift
    return SkillFit(
        cell=state.cell,
        skill=state.skill,
        wrong=error * size,
        right=(1 - error) * size,
        skill_sd=np.sqrt(variance),
        question_error=state.mean,
        strength=state.strength,
        spread=state.spread,
        posterior=posterior,
        sign=sign,
        prior=prior,
        trace=trace,
        answers=cells[..., 2] / unit,
    )
