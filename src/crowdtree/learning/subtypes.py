"""Sub-types: classes whose items are of several kinds (docs/model.md, section 9.4).

Where a class holds different kinds (side and front views of a car), one answer tells which kind it
is and so what the next answers will be. Answers are independent given the sub-type; the likelihood
of held-out answers decides how many sub-types a class has.

References
----------
Goodman (1974), latent structure analysis; Smyth (2000), model selection for mixtures by
cross-validated likelihood.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.arrays import FloatArray
from crowdtree.core.errors import CrowdtreeError
from crowdtree.learning.learned_problem import make_problem

if TYPE_CHECKING:
    from crowdtree.core.problem import Problem
    from crowdtree.learning.model import Learned
    from crowdtree.policies.subtypes import SubtypePolicy


STEPS = 100
TOLERANCE = 1e-6
STARTS = 2
FOLDS = 3
WEIGHT = 1.0  # answers that the class's own rate is worth in every cell of a sub-type
LEAST_ITEMS = 4  # per sub-type
OPEN = 0.25
LEAST_RATE = 1e-4  # of an answer in a class
MAX_ITEMS = 5_000  # per class that are used


@dataclass(frozen=True, eq=False)
class Subtypes:
    """The sub-types of every class of a problem.

    `label` is the class of each sub-type, `share` how often it occurs, and `table` P(answer |
    sub-type) of the crowd (answer, question, sub-type): the learned one where a class has no
    sub-types.
    """

    problem: Problem
    label: NDArray[np.intp]
    share: FloatArray
    table: FloatArray

    @property
    def counts(self) -> NDArray[np.intp]:
        """Sub-types of each class."""
        return np.bincount(self.label, minlength=self.problem.n_classes)

    def policy(self, **options: Any) -> SubtypePolicy:
        """Ask adaptively by these sub-types; options as of :class:`AdaptivePolicy`."""
        from crowdtree.policies.subtypes import SubtypePolicy

        return SubtypePolicy(
            self.problem, label=self.label, share=self.share, table=self.table, **options
        )

    def as_problem(self) -> Problem:
        """Make a problem whose classes are the sub-types, for trees that know them.

        A leaf of such a tree is a sub-type; :attr:`label` is its class. A cell is ``-`` where no
        answer is given more often than three times in four.
        """
        problem, right = self.problem, self.table > 1 - OPEN
        number = np.concatenate([np.arange(1, n + 1) for n in self.counts])
        names = [
            problem.classes[c] if self.counts[c] == 1 else f"{problem.classes[c]} ({i})"
            for c, i in zip(self.label, number, strict=True)
        ]
        known = right.any(axis=0)
        return make_problem(
            tuple(names),
            self.share,
            problem.questions,
            right,
            np.where(known, 1 - self.table.max(axis=0), 0.5),
            answers=problem.answers,
            table=None if problem.is_yes_no else self.table,
            dash="inapplicable" if known.all() else "either",
        )

    def __repr__(self) -> str:
        if len(self.label) == self.problem.n_classes:
            return f"Subtypes(none found in {self.problem.n_classes} classes)"
        return f"Subtypes({len(self.label)} of {self.problem.n_classes} classes)"


class _Mixture(NamedTuple):
    share: FloatArray
    table: FloatArray  # (answer, question, sub-type)
    trace: tuple[float, ...]


class _Sheet(NamedTuple):
    """Answers about the items of one class (answer, item, question), and how surely of it."""

    given: FloatArray
    weight: FloatArray

    def part(self, rows: NDArray[Any]) -> _Sheet:
        return _Sheet(self.given[:, rows], self.weight[rows])


def find_subtypes(learned: Learned, most: int = 16, seed: int = 0) -> Subtypes:
    """Find the sub-types of every class among the items that were learned from.

    For each class 1, 2, 4, ... up to `most` sub-types are tried until the likelihood of held-out
    items (three folds) falls. Each mixture is fitted by EM; a cell of a sub-type borrows from the
    rate of its class.
    """
    if learned.kind != "classes":
        raise CrowdtreeError(
            "subtypes: expected questions about the classes, got one whose answers are the classes"
        )
    learned.problem.require_one_source("subtypes")
    if most < 1:
        raise CrowdtreeError(f"most: expected 1 sub-type or more, got {most!r}")
    rate = np.where(learned.table > 0, np.clip(learned.table, LEAST_RATE, 1 - LEAST_RATE), 0.0)
    rate /= rate.sum(axis=0)
    made = []
    for cls in range(learned.problem.n_classes):
        rng = np.random.default_rng([seed, cls])
        sheet = _sheet(learned, cls, rng)
        count = _best_count(sheet, rate[:, :, cls], most, rng)
        made.append(_fit(sheet, rate[:, :, cls], count, rng))
    prior = learned.problem.prior
    return Subtypes(
        problem=learned.problem,
        label=np.repeat(np.arange(len(made)), [len(m.share) for m in made]),
        share=np.concatenate([p * m.share for p, m in zip(prior, made, strict=True)]),
        table=np.concatenate([m.table for m in made], axis=2),
    )


def _sheet(learned: Learned, cls: int, rng: np.random.Generator) -> _Sheet:
    """Answers about the items that may be of this class, a sample of them where they are many."""
    a = learned.answers
    items = np.flatnonzero(learned.posterior[:, cls] > 0.01)
    if len(items) > MAX_ITEMS:
        items = np.sort(rng.choice(items, MAX_ITEMS, replace=False))
    place = np.full(a.n_tasks, -1)
    place[items] = np.arange(len(items))
    rows = place[a.task]
    mine = rows >= 0
    given = np.zeros((len(learned.table), len(items), learned.problem.n_questions))
    np.add.at(given, (a.label[mine], rows[mine], a.question_column()[mine]), 1.0)
    return _Sheet(given, learned.posterior[items, cls])


def _best_count(sheet: _Sheet, rate: FloatArray, most: int, rng: np.random.Generator) -> int:
    """Sub-types under which held-out items are likeliest: 1, 2, 4, ... until it gets worse."""
    items = len(sheet.weight)
    fold = rng.permutation(items) % FOLDS
    best, kept = -np.inf, 1
    count = 1
    while count <= most and (count == 1 or items >= LEAST_ITEMS * count):
        score = 0.0
        for k in range(FOLDS):
            mixture = _fit(sheet.part(fold != k), rate, count, rng, starts=1)
            held = sheet.part(fold == k)
            score += float(held.weight @ _log_likelihood(held, mixture)[1])
        if score <= best:
            break
        best, kept, count = score, count, 2 * count
    return kept


def _fit(
    sheet: _Sheet, rate: FloatArray, count: int, rng: np.random.Generator, starts: int = STARTS
) -> _Mixture:
    """Fit the likeliest of a few starts; one sub-type is the class itself."""
    if count == 1 or not len(sheet.weight):
        return _Mixture(np.ones(1), rate[:, :, None], ())
    tries = [_em(sheet, rate, count, rng) for _ in range(starts)]
    return max(tries, key=lambda m: m.trace[-1])


def _em(sheet: _Sheet, rate: FloatArray, count: int, rng: np.random.Generator) -> _Mixture:
    """EM from random memberships; the penalised likelihood never falls."""
    belongs = rng.dirichlet(np.full(count, 0.3), len(sheet.weight))
    trace: list[float] = []
    for _ in range(STEPS):
        weighted = belongs * sheet.weight[:, None]
        size = weighted.sum(axis=0)
        share = (size + 1) / (size.sum() + count)
        table = sheet.given.swapaxes(1, 2) @ weighted + WEIGHT * rate[:, :, None]
        table /= table.sum(axis=0)
        mixture = _Mixture(share, table, ())
        belongs, evidence = _log_likelihood(sheet, mixture)
        penalty = WEIGHT * (rate[:, :, None] * _log(table)).sum()
        trace.append(float(sheet.weight @ evidence + penalty + np.log(share).sum()))
        if len(trace) > 1 and trace[-1] - trace[-2] < TOLERANCE * abs(trace[-1]):
            break
    return _Mixture(share, table, tuple(trace))


def _log_likelihood(sheet: _Sheet, mixture: _Mixture) -> tuple[FloatArray, FloatArray]:
    """Membership of each item, and the logarithm of the probability of its answers."""
    joint = np.log(mixture.share) + (sheet.given @ _log(mixture.table)).sum(axis=0)
    top = joint.max(axis=1, keepdims=True)
    belongs = np.exp(joint - top)
    total = belongs.sum(axis=1, keepdims=True)
    return belongs / total, (top + np.log(total))[:, 0]


def _log(table: FloatArray) -> FloatArray:
    """Logarithms; of answers that a question does not have, of which nobody gives any, too."""
    return np.asarray(np.log(np.maximum(table, 1e-300)))
