"""How much answers count that share errors (docs/model.md, section 9.5).

Answers of a group (models, experts, the people of one source) share errors with each other, and
groups with each other. Answers are taken for signals of equal correlation, of which the best
weighted sum is asked for (Fisher 1936): equal ones count ``1 / (1 + (n - 1) rho)`` each, and beside
a strong one the weak ones count little, down to nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, logsumexp

from crowdtree.core.arrays import FloatArray

_SPREAD = 1.0  # standard deviation of a dependence before anything is seen, in logits
_LEAST_STRENGTH = 1e-6


class Dependence(NamedTuple):
    """How far the answers of each group hang together, and those of different groups."""

    within: FloatArray
    between: float


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


@dataclass(frozen=True, eq=False)
class Evidence:
    """What each answer says about its item: log likelihoods (answer, class), and how strongly."""

    items: int
    item: NDArray[np.integer]
    group: NDArray[np.integer]
    logs: FloatArray
    strength: FloatArray

    @cached_property
    def _order(self) -> tuple[NDArray[np.intp], NDArray[np.intp], FloatArray]:
        """Answers by item, group and strength: their place, their run and the strength."""
        strength = np.maximum(self.strength, _LEAST_STRENGTH)
        order = np.lexsort((-strength, self.group, self.item))
        new = (np.diff(self.item[order]) != 0) | (np.diff(self.group[order]) != 0)
        return order, np.append(0, np.cumsum(new))[: len(order)], strength[order]

    def weights(self, dependence: Dependence) -> FloatArray:
        """How much each answer counts."""
        if not len(self.item):
            return np.zeros(0)
        order, run, strength = self._order
        weight = discounts(strength, run, dependence.within[self.group[order]])
        whole = np.sqrt(np.bincount(run, weight * strength**2))  # strength of a group's answers
        item = self.item[order][np.searchsorted(run, np.arange(len(whole)))]
        by_item = np.lexsort((-whole, item))
        among = np.empty(len(whole))
        among[by_item] = discounts(whole[by_item], item[by_item], dependence.between)
        counted = np.empty(len(order))
        counted[order] = weight * among[run]
        return counted

    def combined(self, dependence: Dependence) -> FloatArray:
        """Weighted sums of the logs (item, class)."""
        weight = self.weights(dependence)
        sums = [np.bincount(self.item, weight * part, self.items) for part in self.logs.T]
        return np.stack(sums, axis=1)

    def posterior(self, log_prior: FloatArray, dependence: Dependence) -> FloatArray:
        """Log posteriors of the classes of the items."""
        score = log_prior + self.combined(dependence)
        return np.asarray(score - logsumexp(score, axis=1, keepdims=True))


class LeftOut(NamedTuple):
    """Items, what is said of them, and what was left out of that: their class, or an answer.

    `seen` is the probability of what was left out under each class (item, class).
    """

    items: NDArray[np.intp]
    evidence: Evidence
    log_share: FloatArray
    seen: FloatArray

    def posterior(self, dependence: Dependence) -> FloatArray:
        """Log posteriors of the items."""
        return self.evidence.posterior(self.log_share, dependence)

    def loss(self, dependence: Dependence) -> float:
        """Log loss of what was left out."""
        return -float(logsumexp(self.posterior(dependence), axis=1, b=self.seen).sum())


def fit_dependence(parts: list[LeftOut], usual: Dependence) -> Dependence:
    """Find the dependence by which what was left out is predicted best."""
    from scipy.optimize import minimize

    centre = logit(np.append(*usual))

    def loss(point: FloatArray) -> float:
        score = ((point - centre) ** 2).sum() / (2 * _SPREAD**2)
        return float(score + sum(part.loss(_dependence(point)) for part in parts))

    corners = np.vstack([centre, centre - np.eye(len(centre))])
    options: Any = {"initial_simplex": corners, "xatol": 0.02, "fatol": 0.01, "maxiter": 500}
    return _dependence(minimize(loss, centre, method="Nelder-Mead", options=options).x)


def _dependence(point: FloatArray) -> Dependence:
    share = expit(np.clip(point, -8, 8))
    return Dependence(share[:-1], float(share[-1]))
