"""Tables of workers and sources: P(answer | class) of each, which borrow from one another.

The table of a worker borrows from that of the source at the skill of the worker, this from that of
all sources of its kind, and this from one error per question (docs/model.md, section 9.5).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.arrays import BoolArray, FloatArray
from crowdtree.learning.answers import Answers
from crowdtree.learning.source_dependence import Evidence
from crowdtree.learning.within import TINY, shared, totals

if TYPE_CHECKING:
    from crowdtree.core.problem import Problem

IntArray = NDArray[np.int32]

_STRENGTHS = np.array([1.0, 3.0, 10.0, 30.0, 100.0])
"""Answers per class that tables may have of the one above them: as they differ from it."""
_ERROR = 0.3  # of an answer that names the class, before any is seen
_SPREAD, _SOURCE_SPREAD = 0.7, 1.5
"""Standard deviations of the skills of the workers of a source, and of sources, in logits."""
_SKILL_STEPS = 6


class Layout(NamedTuple):
    """What answers say about classes.

    `right` is whether an answer is right, `within` how often it is among the right, among the wrong
    or (in a cell without right ones) among all answers: (answer, question, class). `error`
    (question, class) and `prior` are assumed before any answer.
    """

    right: BoolArray
    within: FloatArray
    error: FloatArray
    prior: FloatArray

    @classmethod
    def of_labels(cls, labels: int) -> Layout:
        """One question whose answers name the classes."""
        own = np.eye(labels, dtype=bool)[:, None]
        within = np.where(own, 1.0, 1 / (labels - 1))
        return cls(own, within, np.full((1, labels), _ERROR), np.full(labels, 1 / labels))

    @classmethod
    def of_problem(cls, problem: Problem) -> Layout:
        """Questions whose right answers are given."""
        exists = np.arange(len(problem.right))[:, None, None] < problem.n_answers[:, None]
        right = problem.right & ~(problem.right | ~exists).all(axis=0)
        channel = problem.channel[0]
        given = np.where(totals(channel, right) > 0, channel, exists)
        within = shared(given.astype(np.float64), right)
        most = 1 - right.sum(axis=0) / exists.sum(axis=0)
        error = np.clip(problem.worker_error, 0.01, np.maximum(most, 0.02))
        return cls(right, within, error, problem.prior / problem.prior.sum())

    @property
    def definite(self) -> BoolArray:
        """Whether a cell has right and wrong answers (question, class)."""
        return np.asarray(self.right.any(axis=0))

    @property
    def several(self) -> bool:
        """Whether there are several questions."""
        return len(self.error) > 1

    def at_error(self, error: FloatArray) -> FloatArray:
        """P(answer | class) at some errors (question, class, or broadcast to them)."""
        group = np.where(self.right, 1 - error, error)
        return np.asarray(np.where(self.definite, group, 1.0) * self.within)

    def start(self, share: FloatArray) -> Tables:
        """The table that is assumed before any answer, for a single row and group."""
        return Tables(
            self.at_error(self.error)[None], np.zeros(1, np.int32), share, sources=1, known=True
        )


@dataclass(frozen=True, eq=False)
class Tables:
    """Tables of workers and what follows from them.

    `chance` is P(answer | class) of every worker, then of a typical worker of every source (row,
    answer, question, class), `share` that of the classes.
    """

    chance: FloatArray
    group: IntArray
    share: FloatArray
    sources: int
    known: bool

    @property
    def of_sources(self) -> FloatArray:
        """Tables of typical workers of the sources (source, answer, question, class)."""
        return self.chance[len(self.chance) - self.sources :]

    @cached_property
    def strength(self) -> FloatArray:
        """Square root of the information in an answer about the class (row, question).

        Without known items nobody is stronger than the median of the group: agreement does not tell
        a good source from one that others copy.
        """
        chance = np.maximum(self.chance, TINY)
        mean = chance @ self.share
        gain = (self.chance * np.log(chance / mean[..., None])) @ self.share
        strength = np.asarray(np.sqrt(np.maximum(gain.sum(axis=1), 0)))
        if not self.known:
            for code in np.unique(self.group):
                mine = self.group == code
                strength[mine] = np.minimum(strength[mine], np.median(strength[mine], axis=0))
        return strength

    def log_shares(self, items: int) -> FloatArray:
        """Logarithm of the class shares, a row for each of some items."""
        return np.tile(np.log(self.share), (items, 1))

    def evidence(self, answers: Answers, row: IntArray, items: NDArray[np.intp]) -> Evidence:
        """What the answers about some items say; `row` is that of each worker."""
        asked = answers.items(items)
        rows, question = row[asked.worker], asked.question_column()
        logs = np.log(np.maximum(self.chance[rows, asked.label, question], TINY))
        strength = self.strength[rows, question]
        return Evidence(len(items), asked.task, question, self.group[rows], logs, strength)


def tables_of_kinds(
    given: FloatArray, kinds: NDArray[Any], layout: Layout, known: bool
) -> FloatArray:
    """Tables of typical workers of the sources, from counts (source, answer, question, class).

    Where no class of one question is `known`, agreement does not tell the skill of a source.
    """
    table = np.zeros_like(given)
    for kind in np.unique(kinds):
        mine = kinds == kind
        whole = given[mine].sum(axis=0)
        wrong, count = (
            np.where(part & layout.definite, whole, 0.0).sum(axis=(0, 2))
            for part in (~layout.right, np.ones_like(layout.right))
        )
        error = (wrong.sum() + 0.5) / (count.sum() + 2)
        of_question = (wrong + 2 * error) / (count + 2)
        coin = layout.at_error(of_question[:, None])
        of_kind = borrowed(whole[None], coin)[0]
        if known or layout.several:
            table[mine] = drawn_to(given[mine], of_kind, layout.right, _SOURCE_SPREAD)
        else:
            table[mine] = borrowed(given[mine], of_kind)
    return table


def drawn_to(
    given: FloatArray, table: FloatArray, right: BoolArray, spread: float = _SPREAD
) -> FloatArray:
    """Tables of workers or sources (row), from their counts and the table that they have in common.

    It is taken at the skill of each; skills have the standard deviation `spread`.
    """
    return borrowed(given, _at_skill(given, table, right, spread))


def _at_skill(given: FloatArray, table: FloatArray, right: BoolArray, spread: float) -> FloatArray:
    """A table at the likeliest skill of each row (row, answer, question, class)."""
    chance = np.clip(np.where(right, table, 0.0).sum(axis=0), 1e-6, 1 - 1e-6)
    definite = right.any(axis=0)
    count = np.where(definite, given.sum(axis=1), 0.0)
    hits = np.where(right, given, 0.0).sum(axis=1)
    logit, skill, pull = np.log(chance) - np.log1p(-chance), np.zeros(len(given)), spread**-2
    for _ in range(_SKILL_STEPS):
        now = 1 / (1 + np.exp(-logit - skill[:, None, None]))
        slope = (hits - count * now).sum(axis=(1, 2)) - pull * skill
        step = slope / ((count * now * (1 - now)).sum(axis=(1, 2)) + pull)
        skill = skill + np.clip(step, -1, 1)
    now = 1 / (1 + np.exp(-logit - skill[:, None, None]))
    factor = np.where(right, (now / chance)[:, None], ((1 - now) / (1 - chance))[:, None])
    return np.asarray(table * np.where(definite, factor, 1.0))


def borrowed(given: FloatArray, table: FloatArray) -> FloatArray:
    """Shares of the answers in counts (row, answer, question, class), drawn to a table.

    The columns of a row are taken for draws from Dirichlet distributions around the table, whose
    strength is averaged over what it may be: less for a row that differs from the table.
    """
    from scipy.special import gammaln

    count, table = given.sum(axis=1), np.maximum(table, TINY)
    score = np.empty((len(_STRENGTHS), len(given)))
    for row, size in zip(score, _STRENGTHS, strict=True):
        cells = gammaln(given + size * table) - gammaln(size * table)
        columns = cells.sum(axis=1) + gammaln(size) - gammaln(count + size)
        row[:] = columns.sum(axis=(1, 2))
    weight = np.exp(score - score.max(axis=0))
    weight /= weight.sum(axis=0)
    share = np.zeros_like(given)
    for part, size in zip(weight, _STRENGTHS, strict=True):
        drawn = (given + size * table) / (count[:, None] + size)
        share += part[:, None, None, None] * drawn
    return share
