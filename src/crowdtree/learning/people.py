"""How people differ beyond their skill, and what the next people will therefore say.

A person may give the rated answers more often than others, and may read a question in a way of
their own. With few people such a difference does not average out, however many answers they gave:
it makes the answers of other people less certain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.arrays import FloatArray
from crowdtree.learning.skills import spread_of

if TYPE_CHECKING:
    from crowdtree.learning.classes import Fit


class Spread(NamedTuple):
    """A standard deviation in logits, and the variance of its logarithm."""

    value: float
    doubt: float

    def draws(self, draws: int, rng: np.random.Generator) -> FloatArray:
        """Values of it that are possible (draw, 1)."""
        scale = np.exp(np.sqrt(self.doubt) * rng.standard_normal((draws, 1)))
        return np.asarray(self.value * scale)


class People(NamedTuple):
    """How people differ, and how many answered.

    `skill` is between people over all questions, `lean` in how often they give rated answers, and
    `reading` in how often they give those to one question. `workers` is the effective number of
    people who answered, and `of_question` that of each question.
    """

    skill: Spread
    lean: Spread
    reading: Spread
    workers: float
    of_question: FloatArray

    def draws(
        self, draws: int, people: int | None, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Other people of the same kind, less those who answered, in logits.

        Their mean skill (draw, 1), and how much more often they give the rated answers to each
        question (draw, question). There are `people` of them, by default as many as answered.
        """
        next_ = 0.0 if people is None else 1 / people
        everywhere = np.sqrt(1 / self.workers + (next_ or 1 / self.workers))
        here = np.maximum(self.of_question, 1)
        of_question = np.sqrt(1 / here + (next_ or 1 / here))
        skill = rng.standard_normal((draws, 1)) * self.skill.draws(draws, rng)
        lean = rng.standard_normal((draws, 1)) * self.lean.draws(draws, rng)
        reading = rng.standard_normal((draws, len(here))) * self.reading.draws(draws, rng)
        return skill * everywhere, lean * everywhere + reading * of_question


def how_people_differ(fit: Fit) -> People:
    """Variation between people of what their answers say beyond the fit."""
    a, questions, answers = fit.answers, len(fit.x), fit.crowd.answers
    code = a.worker.astype(np.int64) * questions + a.question_column()
    pair, place, count = np.unique(code, return_inverse=True, return_counts=True)
    square = np.bincount(pair % questions, count.astype(np.float64) ** 2, questions)
    asked = np.bincount(pair % questions, count, questions)
    of_question = asked**2 / np.maximum(square, 1)
    effective = float(answers.sum() ** 2 / (answers @ answers))
    if not fit.crowd.spread:
        none = Spread(0.0, 0.0)
        return People(none, none, none, effective, of_question)
    residual, bend = fit.passes.residuals(fit.x, fit.tilt, fit.crowd.skill, fit.posterior)
    lean, reading = (_between(group, residual, bend) for group in (a.worker, place))
    skill = Spread(fit.crowd.spread, fit.crowd.spread_doubt)
    return People(skill, lean, reading, effective, of_question)


def _between(group: NDArray[np.integer], residual: FloatArray, bend: FloatArray) -> Spread:
    """Spread between groups of answers of what they say beyond the fit."""
    total = np.bincount(group, residual).astype(np.float64)
    held = np.bincount(group, bend).astype(np.float64)
    met = held > 0
    return Spread(*spread_of(total[met] / held[met], held[met]))
