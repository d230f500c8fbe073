"""Skills where one question names the class: the skill model finds the classes for itself.

The labels come from the model of whole confusions (:mod:`crowdtree.learn.labels`), which has a
table a worker. Errors and skills come from a smaller model: worker w names an item's class k with
``sigmoid(cell[k] + skill[w])``, and otherwise one of the other labels in shares that class k has.
Fitted to counts that another model made, its intervals would take that model's classes for its
own. So EM goes on from there under the smaller model, provided that it accounts for the answers
as well: its evidence (Laplace) must reach the other's bound. Where it does not, as with workers
who lean to one label, the counts are used as they are. A small crowd is sampled in the end
(:mod:`crowdtree.learn.sampled`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from crowdtree.learn.answers import Answers
from crowdtree.learn.labels import LabelFit
from crowdtree.learn.skills import (
    FIRST_STEPS,
    ROUNDS,
    STEPS,
    CountSums,
    Signs,
    SkillFit,
    SkillState,
    finished,
    fit_counts,
    right_and_wrong,
)

__all__ = ["fit_named"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int32]

_TOLERANCE = 1e-8


def fit_named(answers: Answers, gold: IntArray, found: LabelFit) -> SkillFit:
    """Cells and skills of one question whose labels were found already."""
    if found.objective == "evidence bound" and found.types == 1 and (gold < 0).any():
        own = _Named(answers, gold, found)
        trace = own.fit()
        if own.log_evidence(trace[-1]) >= found.trace[-1]:
            return own.finished(tuple(trace))
    return fit_counts(answers, found.counts, found.posterior)


class _Named:
    """A fit under way."""

    def __init__(self, answers: Answers, gold: IntArray, found: LabelFit) -> None:
        self.answers, self.gold = answers, gold
        self.posterior, self.counts = found.posterior.copy(), found.counts.copy()
        self.mass = found.mass.copy()
        right, wrong = right_and_wrong(self.counts)
        total = (right + wrong).sum(axis=0)[None]
        self.state = SkillState.start(wrong.sum(axis=0)[None], total, answers.n_workers)

    @property
    def prior(self) -> FloatArray:
        return np.asarray((self.mass + 1) / (self.mass + 1).sum())

    def others(self) -> FloatArray:
        """Shares of the labels (row) that are named for a class (column) by who errs."""
        made = (self.counts.sum(axis=0) + 1) * (1 - np.eye(len(self.mass)))
        return np.asarray(made / made.sum(axis=0))

    def sums(self) -> CountSums:
        return CountSums(*right_and_wrong(self.counts), self.answers, self.posterior)

    def fit(self) -> list[float]:
        for round_ in range(ROUNDS):
            trace = self.climb(STEPS if round_ == ROUNDS - 1 else FIRST_STEPS)
            if round_ < ROUNDS - 1:
                self.state.refresh(self.sums())
        return trace

    def climb(self, steps: int) -> list[float]:
        """M-step, then E-step; the penalised log likelihood after each."""
        trace: list[float] = []
        for _ in range(steps):
            self.state.step(self.sums())
            trace.append(self.evidence(self.others(), self.prior))
            if len(trace) > 1 and trace[-1] - trace[-2] < _TOLERANCE * abs(trace[-1]):
                break
        return trace

    def evidence(self, others: FloatArray, prior: FloatArray) -> float:
        from crowdtree.learn import kernels

        logit = self.state.cell + self.state.skill[:, None]
        own = np.eye(len(prior), dtype=bool)
        missed = -np.logaddexp(0, logit)[:, None] + np.log(np.where(own, 1.0, others))
        log_answer = np.where(own, -np.logaddexp(0, -logit)[:, None], missed)
        total = kernels.label_pass(
            self.answers.start, self.answers.worker, self.answers.label,
            np.ascontiguousarray(log_answer), np.log(prior), self.gold,
            self.posterior, self.counts, self.mass,
        )  # fmt: skip
        shares = float(np.log(prior).sum() + np.log(others[~own]).sum())
        return float(total) + self.state.penalty() + shares

    def log_evidence(self, value: float) -> float:
        """Laplace estimate of the evidence: every unknown by its own information."""
        from scipy.special import betaln, gammaln

        state, classes = self.state, len(self.mass)
        cells, _, workers = self.sums().with_loss(state)
        error = 1 / (1 + np.exp(state.cell))
        mean = state.mean[:, None]
        held = np.maximum(cells[..., 2] - cells[..., 3], 0) + state.strength * error * (1 - error)
        value -= classes * float(betaln(state.strength * mean, state.strength * (1 - mean))[0, 0])
        value += 0.5 * float(np.sum(np.log(2 * np.pi / held)))
        told = np.maximum(workers[:, 2] - workers[:, 3], 0)
        value -= 0.5 * float(np.sum(np.log1p(state.spread**2 * told)))
        value += float(gammaln(classes)) + _shares_term(self.prior, len(self.posterior) + classes)
        if classes > 2:
            wrong = right_and_wrong(self.counts)[1].sum(axis=0) + classes - 1
            off = self.others()
            for k in range(classes):
                value += float(gammaln(classes - 1)) + _shares_term(
                    np.delete(off[:, k], k), wrong[k]
                )
        return value

    def finished(self, trace: tuple[float, ...]) -> SkillFit:
        from crowdtree.learn.sampled import refined

        signs = Signs.known(np.ones((1, len(self.mass))))
        fit = finished(
            self.answers, self.state, self.sums(), self.posterior, signs, self.prior, trace
        )
        return refined(fit, self.answers, self.gold, self.others(), self.state)


def _shares_term(share: FloatArray, size: float) -> float:
    """Log volume of a peak of shares known from `size` draws."""
    free = len(share) - 1
    return 0.5 * (free * float(np.log(2 * np.pi / size)) - float(np.log(share).sum()))
