"""How far the evidence of a table is discounted before a probability is stated."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.arrays import FloatArray
from crowdtree.core.calibration import FEW, Calibration
from crowdtree.core.loss import Decision
from crowdtree.learning.judging import Judge, difference_interval, interval_of_mean
from crowdtree.learning.refits import FOLDS, Another, refits_of, sheet_of
from crowdtree.learning.stating import CrowdMap

if TYPE_CHECKING:
    from crowdtree.learning.model import Learned

MAX_ITEMS = 4_000
"""Items that an interval is made of; more would not change it."""
DRAWS = 200
"""Calibrations that an interval of the accuracy is made of."""
ASSUMED = Calibration(dependence=0.1)
"""Calibration where no class is known."""


@dataclass(frozen=True, eq=False)
class TableDiscount:
    """How far the evidence about an item of a table is discounted before it is stated.

    The counterpart of :class:`crowdtree.learning.stating.CrowdMap`, which is about answers to one
    question. `log_posterior`, `answers`, `truth` and `weight` are those of items of known class,
    whose class the posteriors did not use; `spread` is that of the scale between people, where
    each item was answered by one.
    """

    log_prior: FloatArray
    log_posterior: FloatArray
    answers: NDArray[np.int64]
    truth: NDArray[np.int64]
    weight: FloatArray
    spread: float = 0.0

    @classmethod
    def of(cls, learned: Learned) -> TableDiscount:
        """From the known items of a result, each left out of the table that it is tried on."""
        prior = learned.problem.prior
        log_prior = np.log(prior / prior.sum())
        refits = refits_of(learned, sheet_of(learned).worker, FOLDS, 0)
        nothing = np.zeros((0, len(prior)))
        held = np.concatenate([[], *(part.held for part in refits.parts)]).astype(np.intp)
        posterior = np.concatenate([nothing, *(part.posterior(learned) for part in refits.parts)])
        count = np.diff(learned.answers.start)[held]
        truth = learned.gold[held].astype(np.int64)
        same = np.ones(len(held))
        weight = same if learned.gold_weight is None else learned.gold_weight[held]
        discount = cls(log_prior, _log(posterior), count, truth, weight)
        if not refits.by_person:
            return discount
        person = np.unique(sheet_of(learned).worker[held], return_inverse=True)[1]
        rows = log_prior, discount.log_posterior, count, truth, same, person
        return replace(discount, spread=Another.of(*discount.calibration.scale_of(*rows)).sd)

    @property
    def known(self) -> int:
        """Items of known class behind it."""
        return len(self.truth)

    @cached_property
    def calibration(self) -> Calibration:
        """What is stated by."""
        if not self.known:
            return ASSUMED
        rows = (self.log_posterior, self.answers, self.truth)
        return replace(Calibration.fit(self.log_prior, *rows, self.weight), spread=self.spread)

    def updated(
        self,
        posterior: FloatArray,
        answers: NDArray[Any],
        truth: NDArray[Any],
        weight: FloatArray | None = None,
    ) -> TableDiscount:
        """After more items of known class, whose class the posteriors did not use."""
        fresh = np.ones(len(truth)) if weight is None else weight
        return replace(
            self,
            log_posterior=np.concatenate([self.log_posterior, _log(posterior)]),
            answers=np.concatenate([self.answers, answers]),
            truth=np.concatenate([self.truth, truth]),
            weight=np.concatenate([self.weight, fresh]),
        )

    def stated(self, posterior: FloatArray, answers: NDArray[Any]) -> FloatArray:
        """Probabilities to state."""
        return self._discounted(self.calibration, _log(posterior), answers)

    def judged(
        self,
        posterior: FloatArray,
        answers: NDArray[Any],
        level: float,
        judge: Judge,
        made: Decision,
    ) -> tuple[float, float, float]:
        """Mean of what a judge says of the labels of some items, and its interval.

        From 20 known items on it is what is stated about these items, corrected by how far that is
        off on the known ones: it then holds whatever the calibration is worth. Below, and where
        each item was answered by one person, it is an average over what the calibration may be.
        """
        if self.known < FEW or self.spread:
            return self._averaged(posterior, answers, level, judge, made)
        stated, known = (
            self._discounted(self.calibration, *rows)
            for rows in ((_log(posterior), answers), (self.log_posterior, self.answers))
        )
        value, variance = judge.expected(stated, made)
        labelled = judge.decide(self.log_posterior, known)
        gap = judge.observed(self.truth, labelled) - judge.expected(known, labelled)[0]
        noise = float(np.sqrt(variance.sum())) / len(value)
        return difference_interval(float(value.mean()), gap, self.weight, noise, level, judge.most)

    def _averaged(
        self,
        posterior: FloatArray,
        answers: NDArray[Any],
        level: float,
        judge: Judge,
        made: Decision,
    ) -> tuple[float, float, float]:
        rng = np.random.default_rng(0)
        if len(posterior) > MAX_ITEMS:
            some = rng.choice(len(posterior), MAX_ITEMS, replace=False)
            posterior, answers = posterior[some], answers[some]
            made = Decision(made.label[some], made.risk[some], made.referred[some])
        draws = Calibration.draws(
            self.log_prior, self.log_posterior, self.answers, self.truth, DRAWS
        )
        factor = np.exp(self.spread * rng.standard_normal(DRAWS)).tolist()  # another person's scale
        logs = _log(posterior)
        values = (
            judge.expected(
                self._discounted(replace(draw, scale=min(draw.scale * much, 100.0)), logs, answers),
                made,
            )
            for draw, much in zip(draws, factor, strict=True)
        )
        parts = [(mean.mean(), np.sqrt(variance.sum()) / len(mean)) for mean, variance in values]
        mean, noise = (np.array(column) for column in zip(*parts, strict=True))
        value, *ends = interval_of_mean(mean, noise, np.ones(DRAWS), level)
        low, high = np.clip(ends, 0, judge.most).tolist()
        return value, low, high

    def _discounted(
        self, calibration: Calibration, log_posterior: FloatArray, answers: NDArray[Any]
    ) -> FloatArray:
        """Stated probability of each class."""
        return np.exp(calibration.discounted(self.log_prior, log_posterior, answers))


def _log(posterior: FloatArray) -> FloatArray:
    return np.log(np.maximum(posterior, 1e-300))


Discount = CrowdMap | TableDiscount
"""How far evidence is discounted before a probability is stated, and how well that is known."""
