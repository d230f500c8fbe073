"""Passes over answers about classes: sums over all answers, without a compiler.

The model is that of docs/model.md, section 9.2. In an open cell, whose `x` and `tilt` are 0, each
answer counts as rated by half. A skill is known to a variance v only; its average over the logistic
curve is ``sigmoid(logit / sqrt(1 + pi tilt^2 v / 8))``. What an answer says depends only on who
answered which question, so everything is computed once per such pair, and summed over items by
products with a sparse matrix.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.arrays import FloatArray
from crowdtree.learning.answers import Answers

FLATTER = np.pi / 8
_BLOCK = 1 << 20  # cells (answer, class) that are computed together


class Sums(NamedTuple):
    """Sums over the answers: of each cell (q, c), and of each worker.

    `score` is the first derivative, `bend` the curvature, and `lost` the part of it that is lost
    because the class is not known for sure (Louis 1982, own terms only); `held` counts answers.
    """

    score: FloatArray
    bend: FloatArray
    held: FloatArray
    lost: FloatArray
    worker_score: FloatArray
    worker_bend: FloatArray
    worker_lost: FloatArray


class ClassPasses:
    """The answers, with the pairs of question and worker that occur.

    `pair` numbers the pair of each answer, and `cell` the pair with its answer (`width` times the
    pair and the answer's number). `rated` says how far an answer is one that the rate of its cell
    counts: 1, 0, or 1/2 in an open cell (answer, question, class).
    """

    log_within: FloatArray | None = None
    """Log shares of the answers among the rated, or the other, ones (question, answer, class), plus
    the log of 2 in an open cell; None where all are 0."""

    def __init__(self, answers: Answers, rated: FloatArray) -> None:
        from scipy.sparse import csr_array

        self.answers = answers
        self.n_questions = len(answers.questions)
        code = answers.question_column().astype(np.int64) * answers.n_workers + answers.worker
        pairs, self.pair = np.unique(code, return_inverse=True)
        self.question, self.worker = np.divmod(pairs, max(1, answers.n_workers))
        self.rated = np.moveaxis(rated, 1, 0)[self.question]
        self.width = len(rated)
        self.cell = self.width * self.pair + answers.label
        shape = answers.n_tasks, self.width * len(pairs)
        ones = np.ones(answers.n_answers)
        self._said: Any = csr_array((ones, self.cell, answers.start), shape=shape)
        self._by_cell: Any = self._said.T.tocsr()

    def _logits(
        self, x: FloatArray, tilt: FloatArray, skill: FloatArray, variance: FloatArray | None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Logit of a rated answer per pair and class, its tilt, and how much flatter the curve."""
        lean = tilt[self.question]
        flat = np.ones_like(lean)
        if variance is not None:
            flat = 1 / np.sqrt(1 + FLATTER * lean**2 * variance[self.worker, None])
        return flat * (x[self.question] + lean * skill[self.worker, None]), lean, flat

    def _log_chances(self, z: FloatArray) -> FloatArray:
        """Log probability of each answer (pair, answer, class), from the logits."""
        chance = self.rated * z[:, None] - np.logaddexp(0, z)[:, None]
        if self.log_within is not None:
            chance += self.log_within[self.question]
        return np.asarray(chance)

    def _slopes(self, p: FloatArray, flat: FloatArray) -> FloatArray:
        """Derivative of the log probability of each answer by the rate's logit."""
        return np.asarray((self.rated - p[:, None]) * flat[:, None])

    def counts(self, mass: FloatArray) -> FloatArray:
        """Expected answers (answer, question, class), or sums of another mass (item, class)."""
        cells = (self._by_cell @ mass).reshape(self.rated.shape)
        return np.moveaxis(self._of_question(cells), 0, 1)

    def classify(
        self,
        x: FloatArray,
        tilt: FloatArray,
        skill: FloatArray,
        variance: FloatArray | None,
        prior: FloatArray,
        gold: NDArray[np.int32],
    ) -> tuple[FloatArray, float]:
        """Class posterior of every item, and the log likelihood of the answers."""
        z, _, _ = self._logits(x, tilt, skill, variance)
        table = self._log_chances(z)
        score = self._said @ table.reshape(-1, len(prior)) + np.log(prior)
        known = np.flatnonzero(gold >= 0)
        total = float(score[known, gold[known]].sum())
        top = score.max(axis=1, keepdims=True)
        posterior = np.exp(score - top)
        whole = posterior.sum(axis=1, keepdims=True)
        open_ = gold < 0
        total += float((top + np.log(whole))[open_].sum())
        posterior /= whole
        posterior[known] = 0.0
        posterior[known, gold[known]] = 1.0
        return posterior, total

    def sums(
        self,
        x: FloatArray,
        tilt: FloatArray,
        skill: FloatArray,
        variance: FloatArray,
        posterior: FloatArray,
    ) -> Sums:
        """Scores and curvatures of cells and skills for given class posteriors."""
        z, lean, flat = self._logits(x, tilt, skill, variance)
        p = 1 / (1 + np.exp(-z))
        slope = self._slopes(p, flat)
        bend = flat**2 * p * (1 - p)
        mass = (self._by_cell @ posterior).reshape(slope.shape)
        unsure = (self._by_cell @ (posterior * (1 - posterior))).reshape(slope.shape)
        score, both = (mass * slope).sum(axis=1), mass.sum(axis=1)
        lost = (unsure * slope**2).sum(axis=1)
        pull = lean[:, None] * slope
        square = (mass * pull**2).sum(axis=(1, 2))
        mean = self._over_answers(posterior, pull.reshape(-1, posterior.shape[1]))
        workers = len(skill)
        worker_lost = np.bincount(self.worker, square, workers)
        worker_lost -= np.bincount(self.answers.worker, mean**2, workers)
        by_worker = [
            np.bincount(self.worker, part.sum(axis=1), workers)
            for part in (lean * score, lean**2 * both * bend)
        ]
        by_cell = [self._of_question(part) for part in (score, both * bend, both, lost)]
        return Sums._make((*by_cell, *by_worker, worker_lost))

    def _of_question(self, part: FloatArray) -> FloatArray:
        """Sum over the workers of each question."""
        found = np.zeros((self.n_questions, *part.shape[1:]))
        np.add.at(found, self.question, part)
        return found

    def _over_answers(self, posterior: FloatArray, table: FloatArray) -> FloatArray:
        """Mean over the classes, for each answer, of what a table says of its cell."""
        a, classes = self.answers, posterior.shape[1]
        task, found = a.task, np.empty(a.n_answers)
        step = max(1, _BLOCK // classes)
        for first in range(0, a.n_answers, step):
            at = slice(first, first + step)
            found[at] = np.einsum("ac,ac->a", posterior[task[at]], table[self.cell[at]])
        return found

    def residuals(
        self, x: FloatArray, tilt: FloatArray, skill: FloatArray, posterior: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Each answer less its expected value, and its variance, averaged over the classes."""
        p = 1 / (1 + np.exp(-self._logits(x, tilt, skill, None)[0]))
        classes = posterior.shape[1]
        apart = self._over_answers(posterior, (self.rated - p[:, None]).reshape(-1, classes))
        spread = self._over_answers(posterior, np.repeat(p * (1 - p), self.width, axis=0))
        return apart, spread

    def information(
        self,
        x: FloatArray,
        tilt: FloatArray,
        skill: FloatArray,
        posterior: FloatArray,
        prior: FloatArray,
        sure: float,
        size: int,
    ) -> tuple[FloatArray, FloatArray]:
        """Information on cells, skills and class shares were the classes known, and what is lost.

        Unknowns are numbered cells first (question by question), then workers, then classes. The
        loss is the covariance, given the answers, of the score that known classes would make (Louis
        1982); classes less likely than `sure` are left out.
        """
        z, lean, flat = self._logits(x, tilt, skill, None)
        p = 1 / (1 + np.exp(-z))
        likely = np.where(posterior >= sure, posterior, 0.0)
        mass = (self._by_cell @ likely).reshape(len(z), self.width, -1).sum(axis=1)
        classes = len(prior)
        first = x.size + len(skill)
        cell = self.question[:, None] * classes + np.arange(classes)
        who = np.broadcast_to(x.size + self.worker[:, None], cell.shape)
        whole = np.zeros((size, size))
        bend = mass * p * (1 - p)
        np.add.at(whole, (cell, cell), bend)
        np.add.at(whole, (who, who), lean**2 * bend)
        np.add.at(whole, (cell, who), lean * bend)
        np.add.at(whole, (who, cell), lean * bend)
        at = slice(first, first + classes)
        whole[at, at] += len(posterior) * (np.diag(prior) - np.outer(prior, prior))
        slope = self._slopes(p, flat).reshape(-1, classes)
        tilts = np.repeat(lean, self.width, axis=0)
        return whole, self._lost(likely, slope, tilts, prior, x.size, size)

    def _lost(
        self,
        posterior: FloatArray,
        slope: FloatArray,
        lean: FloatArray,
        prior: FloatArray,
        cells: int,
        size: int,
    ) -> FloatArray:
        """Covariance of the scores of items, over the classes that each may have."""
        from scipy.sparse import csr_array

        a, classes = self.answers, len(prior)
        open_ = (posterior > 0).sum(axis=1) > 1
        item, cls = np.nonzero((posterior > 0) & open_[:, None])
        if not len(item):
            return np.zeros((size, size))
        count = np.diff(a.start)[item]
        row = np.repeat(np.arange(len(item)), count)
        answer = np.repeat(a.start[item] - np.cumsum(count) + count, count) + np.arange(len(row))
        here, of_class = self.cell[answer], cls[row]
        told, tilted = slope[here, of_class], lean[here, of_class]
        column = [
            a.question_column()[answer] * classes + of_class,
            cells + a.worker[answer],
            np.tile(cells + a.n_workers + np.arange(classes), len(item)),
        ]
        share = np.equal.outer(cls, np.arange(classes)) - prior
        value = np.concatenate([told, tilted * told, share.ravel()])
        rows = np.concatenate([row, row, np.repeat(np.arange(len(item)), classes)])
        score: Any = csr_array((value, (rows, np.concatenate(column))), shape=(len(item), size))
        weight = posterior[item, cls]
        of_item: Any = csr_array(
            (weight, (item, np.arange(len(item)))), shape=(len(posterior), len(item))
        )
        mean = of_item @ score
        scaled = score.multiply(weight[:, None])
        return np.asarray((score.T @ scaled - mean.T @ mean).toarray())
