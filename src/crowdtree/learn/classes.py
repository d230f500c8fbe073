"""Classes of items that were asked many yes/no questions: EM where they are not known.

Where the table of outcomes is not known either, the sign of a cell (whether yes or no is right) is
one more thing to infer. A cell near one half cannot tell, and calling its sign would credit the
workers who happen to side with the majority. So both signs are held, each with its own error and
its probability (mean field: the objective is then a bound of the likelihood, and never falls).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from crowdtree.learn.answers import Answers
from crowdtree.learn.skills import (
    FIRST_STEPS,
    LOWEST_ERROR,
    ROUNDS,
    STEPS,
    Signs,
    SkillFit,
    SkillState,
    cell_of,
    finished,
)

__all__ = ["fit_classes"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int32]

_TOLERANCE = 1e-8
_CERTAIN = 1 - 1e-9  # a sign as sure as this is taken for known


class AnswerSums:
    """Weighted sums of a step, from the answers themselves."""

    def __init__(self, answers: Answers, signs: Signs, posterior: FloatArray) -> None:
        self.answers, self.signs, self.posterior = answers, signs, posterior

    def by_cell(self, state: SkillState) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Sums by cell (q, c, 4), by cell were its sign the other, and by worker (w, 4)."""
        from crowdtree.learn import kernels

        a, (sign, trust) = self.answers, self.signs
        cells, others = np.zeros((*sign.shape, 4)), np.zeros((*state.other.shape, 4))
        workers = np.zeros((len(state.skill), 4))
        rows = a.start, a.question_column(), a.worker, a.label
        kernels.skill_pass(
            *rows, sign, trust, state.cell, state.skill, self.posterior, cells, workers
        )
        if state.other.size and (trust < 1).any():
            kernels.skill_pass(
                *rows, -sign, 1 - trust, state.other, state.skill, self.posterior, others, workers
            )
        return cells, others, workers

    with_loss = by_cell  # the kernel counts the loss as it goes


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
    """Fit cells, skills and class shares, and the classes of the items with them.

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
        Whether `sign` is a guess to start from, rather than known.
    cells
        Errors to start from.
    """
    fit = _Fit(answers, gold, sign, prior, learn_prior, learn_sign)
    if cells is not None and not (gold >= 0).any():
        fit.state.cell = cell_of(np.clip(cells, LOWEST_ERROR, 0.499))
    for round_ in range(ROUNDS):
        trace = fit.climb(STEPS if round_ == ROUNDS - 1 else FIRST_STEPS)
        if round_ < ROUNDS - 1:
            fit.state.refresh(fit.sums())
    return finished(
        answers, fit.state, fit.sums(), fit.posterior, fit.signs, fit.prior, tuple(trace)
    )


class _Fit:
    """A fit under way."""

    def __init__(
        self,
        answers: Answers,
        gold: IntArray,
        sign: NDArray[np.int8],
        prior: FloatArray,
        learn_prior: bool,
        learn_sign: bool,
    ) -> None:
        self.answers, self.gold, self.prior = answers, gold, prior
        self.learn_prior, self.learn_sign = learn_prior, learn_sign
        self.signs = Signs.known(sign)
        known = gold >= 0
        self.posterior = np.full((answers.n_tasks, len(prior)), 1 / len(prior))
        self.posterior[known] = 0.0
        self.posterior[known, gold[known]] = 1.0
        wrong, total = _wrong_counts(answers, sign, self.posterior * known[:, None])
        self.state = SkillState.start(wrong, total, answers.n_workers)
        if learn_sign:
            self.state.other = np.repeat(cell_of(self.state.mean)[:, None], len(prior), axis=1)

    def sums(self) -> AnswerSums:
        return AnswerSums(self.answers, self.signs, self.posterior)

    def climb(self, steps: int) -> list[float]:
        """EM steps until nothing is gained; the objective after each."""
        trace: list[float] = []
        for _ in range(steps):
            value = self.evidence()
            if trace and value - trace[-1] < _TOLERANCE * abs(value):
                trace.append(max(value, trace[-1]))
                break
            trace.append(value)
            if self.learn_prior:
                count = self.posterior.sum(axis=0) + 1
                self.prior = count / count.sum()
            if self.learn_sign:
                self.weigh_signs()
            self.state.step(self.sums())
        return trace

    def evidence(self) -> float:
        """E-step: posteriors in place, and the penalised log likelihood (or its bound)."""
        from crowdtree.learn import kernels

        a, state, (sign, trust) = self.answers, self.state, self.signs
        total = kernels.class_pass(
            a.start, a.question_column(), a.worker, a.label, sign, trust,
            np.ascontiguousarray(state.cell), np.ascontiguousarray(state.other), state.skill,
            np.log(self.prior), self.gold, self.posterior,
        )  # fmt: skip
        open_ = trust[trust < 1]
        doubt = -float(np.sum(open_ * np.log(open_) + (1 - open_) * np.log1p(-open_)))
        shares = float(np.log(self.prior).sum()) if self.learn_prior else 0.0
        return float(total) + state.penalty() + shares + doubt

    def weigh_signs(self) -> None:
        """Probability of each sign given everything else; the likelier one is kept as the sign."""
        from crowdtree.learn import kernels

        a, state, sign = self.answers, self.state, self.signs.sign
        gain = np.zeros(sign.shape)
        kernels.sign_pass(
            a.start, a.question_column(), a.worker, a.label, sign,
            state.cell, state.other, state.skill, self.posterior, gain,
        )  # fmt: skip
        turn = gain < 0
        trust = 1 / (1 + np.exp(-np.abs(gain)))
        trust[(trust > _CERTAIN) | (sign == 0)] = 1.0
        state.cell, state.other = (
            np.where(turn, state.other, state.cell),
            np.where(turn, state.cell, state.other),
        )
        self.signs = Signs(np.where(turn, -sign, sign).astype(np.int8), trust)


def _wrong_counts(
    answers: Answers, sign: NDArray[np.int8], posterior: FloatArray
) -> tuple[FloatArray, FloatArray]:
    from crowdtree.learn import kernels

    counts = np.zeros((*sign.shape, 2))
    kernels.cell_counts(answers.start, answers.question_column(), answers.label, posterior, counts)
    wrong = np.where(sign > 0, counts[..., 0], counts[..., 1])
    total = counts.sum(axis=2)
    return np.where(sign == 0, 0.0, wrong), np.where(sign == 0, 0.0, total)
