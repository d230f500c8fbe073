"""The skills of a crowd while a table is fitted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdtree.core.arrays import FloatArray
from crowdtree.learning.answers import Answers
from crowdtree.learning.class_passes import FLATTER
from crowdtree.learning.skills import spread_of

LEAST_LEFT = 0.5
"""Share of the information that doubt about the classes leaves at the least."""
LONGEST_STEP = 1.0
"""Logits that a skill or a cell moves at a time."""
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

    def step(self, score: FloatArray, bend: FloatArray, lost: FloatArray) -> None:
        """Newton step of the skills, then their centre and spread.

        Cells can move against all skills, so skill 0 rests on the prior alone: it is the centre of
        the skills, in which a worker far away counts little.
        """
        if not self.spread:
            return
        before = self.skill
        held = np.maximum(bend - lost, LEAST_LEFT * bend) + 1e-6
        step = (score - self.precision * before) / (bend + self.precision)
        skill = before + np.clip(step, -LONGEST_STEP, LONGEST_STEP)
        self.skill = np.clip(skill - (self.pull @ skill) / self.pull.sum(), -_FARTHEST, _FARTHEST)
        alone = before + score / held  # what the answers of each worker tell by themselves
        self.spread, self.spread_doubt = spread_of(alone, held, self.pull)
        self.variance = 1 / (held + self.precision)
        square = (self.skill**2 + self.variance) / self.spread**2
        self.pull = (_DEGREES + 1) / (_DEGREES + square)

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
        """Rate of each cell of the crowd: the mean over the answers that its workers gave."""
        made = np.zeros_like(x)
        for share, skill, variance in zip(*self.groups(), strict=True):
            flat = np.sqrt(1 + FLATTER * tilt**2 * variance)
            made += share / (1 + np.exp(-(x + tilt * skill) / flat))
        return made
