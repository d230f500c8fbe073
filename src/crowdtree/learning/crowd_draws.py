"""Draws from the posterior of a crowd: how sure everything is that was learned from it.

A Gibbs sampler over what :mod:`crowdtree.learning.crowd_model` fits: states of the items given the
crowd, logits of the workers given the states (normal around their peak, by Laplace's method), the
crowd they come from, and the class shares. It starts from the fit. Two chains are compared by the
split R-hat of Gelman and Rubin (1992); while they differ, they go on. Labels are those of the
fit; the draws tell how sure shares, errors and workers are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crowdtree.learning.answers import Answers
from crowdtree.learning.crowd_model import (
    CrowdModel,
    Told,
    crowd_mean,
    lean_of,
    leaning_variance,
    newton,
    pooled_variance,
)

__all__ = ["Draws", "draw_crowd", "split_rhat"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int32]

CHAINS = 2
BURN_IN = 30
KEPT = 50
"""Draws of each chain before the chains are compared; each batch has as many."""
BATCHES = 3
MOST_RHAT = 1.1
MOST_WORK = 2_000_000
"""Steps of a sweep, roughly, up to which a crowd is sampled: a few seconds in all."""
SEED = 1


@dataclass(frozen=True, eq=False)
class Draws:
    """A sample.

    One row per draw: `share` (class), `error` (class; the share of wrong answers to its items) and
    `worker_error` (worker; the probability of a wrong answer about an item of the crowd's).
    """

    share: FloatArray
    error: FloatArray
    worker_error: FloatArray
    rhat: float

    @property
    def converged(self) -> bool:
        """Whether the chains agree."""
        return self.rhat < MOST_RHAT


def draw_crowd(answers: Answers, gold: IntArray, model: CrowdModel) -> Draws | None:
    """Sample around a fitted model; None where that is too much work."""
    work = answers.n_answers * len(model.states) + 20 * answers.n_workers * len(answers.labels) ** 2
    if work > MOST_WORK:
        return None
    chains = [
        _Chain(answers, gold, model, rng) for rng in np.random.default_rng(SEED).spawn(CHAINS)
    ]
    for chain in chains:
        chain.run(BURN_IN)
        chain.forget()
    rhat = np.inf
    for _ in range(BATCHES):
        for chain in chains:
            chain.run(KEPT)
        rhat = max(
            split_rhat(np.array([chain.share for chain in chains])),
            split_rhat(np.array([chain.error for chain in chains])),
        )
        if rhat < MOST_RHAT:
            break
    return Draws(
        share=np.concatenate([chain.share for chain in chains]),
        error=np.concatenate([chain.error for chain in chains]),
        worker_error=np.concatenate([chain.worker_error for chain in chains]),
        rhat=rhat,
    )


class _Chain:
    """One chain: where it stands and what it has drawn."""

    def __init__(
        self, answers: Answers, gold: IntArray, model: CrowdModel, rng: np.random.Generator
    ) -> None:
        self.gold, self.states, self.rng = gold, model.states, rng
        self.votes = answers.votes
        self.logits, self.mean = model.logits, model.mean
        self.variance, self.share_now = model.variance, model.share
        self.lean, self.lean_variance = model.lean, model.lean_variance
        workers, labels = len(self.logits), self.states.labels
        self.given = np.empty((workers, labels, labels))
        self.asked = np.empty((workers, len(self.states)))
        self.forget()

    def forget(self) -> None:
        """Start the record anew."""
        self.share: list[FloatArray] = []
        self.error: list[FloatArray] = []
        self.worker_error: list[FloatArray] = []

    def run(self, sweeps: int) -> None:
        for _ in range(sweeps):
            items = self._draw_states()
            self._record()
            self._draw_workers()
            self._draw_crowd(items)

    def _draw_states(self) -> FloatArray:
        """Draw the states of the items; how many are of each class."""
        self.table = self.states.table(self.logits)
        prior, uniform = self.states.log_prior(self.share_now), self.rng.random(len(self.gold))
        return self.votes.draw(self.table, prior, self.gold, uniform, self.given, self.asked)

    def _draw_workers(self) -> None:
        """Draw the logits: two steps to their peak, then a normal draw around it."""
        for _ in range(2):
            told = Told.of(self.given, self.asked, self.table)
            around = self.mean + self.lean[:, None, :]
            step = newton(told, self.logits, around, self.variance)
            self.logits = self.logits + np.clip(step.move, -2, 2)
            self.table = self.states.table(self.logits)
        noise = self.rng.standard_normal(self.logits.shape)
        size = (step.side**2).sum(axis=2, keepdims=True)
        stretch = (1 / np.sqrt(np.maximum(1 - size, 1e-6)) - 1) / np.maximum(size, 1e-12)
        along = (step.side * noise).sum(axis=2, keepdims=True)
        self.logits = self.logits + (noise + stretch * step.side * along) / np.sqrt(step.precision)

    def _draw_crowd(self, items: FloatArray) -> None:
        """Draw class shares, and mean and variance of the crowd's logits."""
        workers = len(self.logits)
        self.share_now = np.maximum(self.rng.dirichlet(items + 1), 1e-12)
        normal, freedom = self.rng.standard_normal, workers + 5.0
        lean, spread = lean_of(self.logits - self.mean, self.variance, self.lean_variance)
        self.lean = lean + np.sqrt(spread) * normal(lean.shape)
        own = self.logits - self.lean[:, None, :]
        around = np.sqrt(self.variance / (workers + 1))
        self.mean = crowd_mean(own) + around * normal(around.shape)
        variance = pooled_variance(((own - self.mean) ** 2).sum(axis=0), workers)
        self.variance = variance * freedom / self.rng.chisquare(freedom, variance.shape)
        variance = leaning_variance((self.lean**2).sum(axis=0), workers)
        self.lean_variance = variance * freedom / self.rng.chisquare(freedom, variance.shape)

    def _record(self) -> None:
        given = self.given.sum(axis=0)
        self.share.append(self.share_now)
        self.error.append(1 - np.diagonal(given) / np.maximum(given.sum(axis=0), 1))
        by_state = np.tile(np.exp(self.states.weight), self.states.labels)
        right = self.table.expected(np.tile(by_state, (len(self.logits), 1)))
        self.worker_error.append(1 - np.einsum("wkk->wk", right) @ self.share_now)


def split_rhat(chains: FloatArray) -> float:
    """Largest split R-hat of chains (chain, draw, quantity); about 1 where they agree.

    >>> rng = np.random.default_rng(0)
    >>> same = rng.standard_normal((2, 400, 1))
    >>> bool(split_rhat(same) < 1.05 < split_rhat(same + [[[0.0]], [[3.0]]]))
    True
    """
    draws = chains.shape[1] // 2
    halves = np.concatenate([chains[:, :draws], chains[:, -draws:]])
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    between = draws * halves.mean(axis=1).var(axis=0, ddof=1)
    least = 1e-10  # quantities that do not move agree
    whole = (draws - 1) / draws * within + between / draws
    return float(np.sqrt((whole + least) / (within + least)).max())
