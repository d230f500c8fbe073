"""How much answers count that share errors (docs/model.md, section 9.5).

Answers of a group (models, experts, the people of one source) to one question share errors with
each other, groups with each other, and questions about one item with each other. Answers are taken
for signals of equal correlation, of which the best weighted sum is asked for (Fisher 1936): equal
ones count ``1 / (1 + (n - 1) rho)`` each, and beside a strong one the weak ones count little, down
to nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from crowdtree.core.arrays import BoolArray, FloatArray

_SPREAD = 1.0  # standard deviation of a dependence before anything is seen, in logits
_LEAST_STRENGTH = 1e-6
_LEAST_CHANCE = 1e-300
_PRECISE = 0.03  # of a dependence, in logits
_NEAR = 0.2  # logits from a start to the result, about


class Dependence(NamedTuple):
    """How far answers hang together: of each group, of different groups, of different questions."""

    within: FloatArray
    between: float
    across: float = 0.0

    @property
    def logits(self) -> FloatArray:
        """The numbers in logits, that of questions only where it is not 0."""
        return np.asarray(logit([*self.within, self.between, *([self.across] * (self.across > 0))]))

    def at(self, logits: FloatArray) -> Dependence:
        """Others in place of these numbers."""
        share = expit(np.clip(logits, -8, 8))
        groups = len(self.within)
        return Dependence(share[:groups], *share[groups:].tolist())


def discounts(
    strength: FloatArray, run: NDArray[np.integer], correlation: FloatArray | float
) -> FloatArray:
    """Weights of signals of equal correlation, none below 0.

    `run` numbers what belongs together, in order; within it, `strength` (the square root of the
    information) falls.

    >>> discounts(np.ones(3), np.zeros(3, int), 0.5).tolist()
    [0.5, 0.5, 0.5]
    >>> discounts(np.array([1.0, 0.5]), np.zeros(2, int), 0.5).tolist()
    [1.0, 0.0]
    """
    rho = np.broadcast_to(correlation, strength.shape)
    start = np.searchsorted(run, run)
    reached = np.append(0.0, np.cumsum(strength))
    before, place = reached[:-1] - reached[start], np.arange(len(run)) - start
    used = strength * (1 + (place - 1) * rho) > rho * before
    count, total = (np.bincount(run, part * used)[run] for part in (np.ones(len(run)), strength))
    own = strength * (1 + (count - 1) * rho)
    return np.where(used, (1 - rho * total / own) / (1 - rho), 0.0).clip(0, None)


class _Joined(NamedTuple):
    """Signals of which some are joined to one: the new signal of each, and all of the new ones."""

    weight: FloatArray
    of: NDArray[np.intp]
    strength: FloatArray


def _joined(
    strength: FloatArray,
    key: NDArray[np.integer],
    correlation: FloatArray | float,
    order: NDArray[np.intp] | None = None,
) -> _Joined:
    """Join signals of the same key, each as far as it counts.

    New signals are in the order of the keys; `order` is that of the signals by key and strength.
    """
    order = np.lexsort((-strength, key)) if order is None else order
    run = np.cumsum(np.append(False, np.diff(key[order]) != 0))
    rho = np.broadcast_to(correlation, strength.shape)[order]
    counted = discounts(strength[order], run, rho)
    weight, of = np.empty(len(order)), np.empty(len(order), np.intp)
    weight[order], of[order] = counted, run
    return _Joined(weight, of, np.sqrt(np.bincount(run, counted * strength[order] ** 2)))


@dataclass(frozen=True, eq=False)
class Evidence:
    """What each answer says about its item: log likelihoods (answer, class), and how strongly."""

    items: int
    item: NDArray[np.integer]
    question: NDArray[np.integer]
    group: NDArray[np.integer]
    logs: FloatArray
    strength: FloatArray

    @cached_property
    def _keys(self) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
        """Group about a question of each answer, question of each such group, item of each."""
        asked = self.item.astype(np.int64) * (int(self.question.max()) + 1) + self.question
        both = asked * (int(self.group.max()) + 1) + self.group
        _, first, own = np.unique(both, return_index=True, return_inverse=True)
        _, second, question = np.unique(asked[first], return_index=True, return_inverse=True)
        return own, question, self.item[first[second]].astype(np.intp)

    @cached_property
    def _order(self) -> NDArray[np.intp]:
        """Answers by item, question, group and falling strength."""
        return np.lexsort((-self.strength, self._keys[0]))

    def weights(self, dependence: Dependence) -> FloatArray:
        """How much each answer counts."""
        if not len(self.item):
            return np.zeros(0)
        own, question, item = self._keys
        strength = np.maximum(self.strength, _LEAST_STRENGTH)
        answers = _joined(strength, own, dependence.within[self.group], self._order)
        groups = _joined(answers.strength, question, dependence.between)
        weight = answers.weight * groups.weight[answers.of]
        if not dependence.across:
            return weight
        questions = _joined(groups.strength, item, dependence.across)
        return np.asarray(weight * questions.weight[groups.of][answers.of])

    def combined(self, dependence: Dependence) -> FloatArray:
        """Weighted sums of the logs (item, class)."""
        weight = self.weights(dependence)
        sums = [np.bincount(self.item, weight * part, self.items) for part in self.logs.T]
        return np.stack(sums, axis=1)

    def posterior(self, log_prior: FloatArray, dependence: Dependence) -> FloatArray:
        """Log posteriors of the classes of the items."""
        score = log_prior + self.combined(dependence)
        return np.asarray(score - np.logaddexp.reduce(score, axis=1, keepdims=True))


class LeftOut(NamedTuple):
    """Items, what is said of them, and what was left out of that: their class, or an answer.

    `log_share` are the class shares without it, and `seen` is the probability of what was left out
    under each class (item, class).
    """

    items: NDArray[np.intp]
    evidence: Evidence
    log_share: FloatArray
    seen: FloatArray

    @classmethod
    def joined(cls, parts: list[LeftOut]) -> LeftOut:
        """All parts as one."""
        first = np.cumsum([0, *(len(part.items) for part in parts)])
        shifted = [
            replace(part.evidence, item=part.evidence.item + start)
            for part, start in zip(parts, first, strict=False)
        ]
        columns = ("item", "question", "group", "logs", "strength")
        evidence = Evidence(
            int(first[-1]),
            *(np.concatenate([getattr(part, name) for part in shifted]) for name in columns),
        )
        rows = [(part.items, part.log_share, part.seen) for part in parts]
        items, share, seen = (np.concatenate(column) for column in zip(*rows, strict=True))
        return cls(items, evidence, share, seen)

    def posterior(self, dependence: Dependence) -> FloatArray:
        """Log posteriors of the items."""
        return self.evidence.posterior(self.log_share, dependence)

    def losses(self, dependence: Dependence) -> FloatArray:
        """Log loss of what was left out of each item."""
        chance = np.einsum("ic,ic->i", np.exp(self.posterior(dependence)), self.seen)
        return np.asarray(-np.log(np.maximum(chance, _LEAST_CHANCE)))


def fit_dependence(
    left_out: LeftOut,
    usual: Dependence,
    counts: BoolArray | None = None,
    start: Dependence | None = None,
) -> Dependence:
    """Find the dependence by which what was left out is predicted best.

    `counts` says which items count; `start` is near the result.
    """
    from scipy.optimize import minimize

    centre = usual.logits
    first, step = (centre, 1.0) if start is None else (start.logits, _NEAR)

    def loss(point: FloatArray) -> float:
        losses = left_out.losses(usual.at(point))
        score = ((point - centre) ** 2).sum() / (2 * _SPREAD**2)
        return float(score + (losses if counts is None else losses[counts]).sum())

    corners = np.vstack([first, first - step * np.eye(len(first))])
    options: Any = {"initial_simplex": corners, "xatol": _PRECISE, "fatol": 0.01, "maxiter": 500}
    return usual.at(minimize(loss, first, method="Nelder-Mead", options=options).x)
