"""Models of the answers to one question: what each believes about workers and about items.

Docs/model.md, section 9.1, has the formulas. A *channel* is what a model believes about workers
(:class:`Coin`, :class:`Leaning`, :class:`Confusion`), *effects* are what it believes about items. A
class and an effect together are a *state*. Models are fitted by variational Bayes: the bound on the
log evidence, which :attr:`FittedModel.trace` records, never falls.

References
----------
Dawid and Skene (1979); Hovy, Berg-Kirkpatrick, Vaswani and Hovy (2013); Minka (2000), estimating
a Dirichlet distribution; Whitehill and others (2009).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln

from crowdtree.core.arrays import FloatArray
from crowdtree.learning.passes import Votes

if TYPE_CHECKING:
    from crowdtree.learning.stating import CrowdMap

IntArray = NDArray[np.int32]

MAX_CELLS = 30_000_000
"""Numbers (worker, label, state) of a model; a larger one is left out."""
MAX_STEPS = 500
TOLERANCE = 1e-5
"""A fit has converged when a step adds less than this per answer to the bound."""
_INNER_STEPS = 3  # of the fixed-point iteration for what workers have in common
_NO_EFFECT_PRIOR, _EFFECT_PRIOR = 4.0, 0.25  # pseudo-counts of items without and with an effect
_HELD = 0.2  # pseudo-items per item that have the labels of the votes
_LEAST = 1e-300
_PRIOR_SHAPE, _PRIOR_RATE = 1.5, 0.25  # Gamma prior of the pseudo-counts that workers share


class Channel(Protocol):
    """What a model believes about workers."""

    @property
    def table(self) -> FloatArray:
        """Weight of each answer (worker, label, class): exp of its expected log probability."""
        ...

    @property
    def typical(self) -> FloatArray:
        """Probability of each answer (label, class) of a worker who was never seen."""
        ...

    def update(self, counts: FloatArray) -> float:
        """Take in expected answers (worker, label, class); the prior's part of the bound."""
        ...


class Coin:
    """Every worker is right with a probability of their own, whatever the class.

    Wrong answers are spread evenly, or with `shaped` as those of the whole crowd are.
    """

    def __init__(self, workers: int, labels: int, *, shaped: bool = False) -> None:
        self._shaped, self._labels = shaped, labels
        self._common = np.array([4.0, 2.0])
        self._wrong = _evenly(labels)
        self._rate = np.tile(self._common / self._common.sum(), (workers, 1))

    @property
    def table(self) -> FloatArray:
        """Weight of each answer (worker, label, class)."""
        return self._spread(self._rate)

    @property
    def typical(self) -> FloatArray:
        """Probability of each answer (label, class) of a new worker."""
        return np.asarray(self._spread((self._common / self._common.sum())[None])[0])

    def _spread(self, rate: FloatArray) -> FloatArray:
        table = rate[:, 1, None, None] * self._wrong
        at = np.arange(self._labels)
        table[:, at, at] = rate[:, 0, None]
        return np.asarray(table)

    def update(self, counts: FloatArray) -> float:
        """Take in expected answers; the prior's part of the bound."""
        right = np.einsum("wkk->w", counts)
        sums = np.stack([right, counts.sum(axis=(1, 2)) - right], axis=1)
        bound = 0.0
        if self._shaped and self._labels > 2:
            self._wrong, bound = _shape(counts.sum(axis=0))
        self._common, of_common = _common_counts(sums, self._common)
        log_rate, of_workers = _expected_log(sums, self._common)
        self._rate = np.exp(log_rate)
        return bound + of_common + of_workers


class Leaning:
    """A worker either knows the class or answers by a habit, whatever the class (MACE)."""

    def __init__(self, workers: int, labels: int) -> None:
        self._knows_common, self._habit_common = np.array([2.0, 2.0]), np.ones(labels)
        self._knows = np.full((workers, 2), 0.5)
        self._habit = np.full((workers, labels), 1 / labels)

    @property
    def table(self) -> FloatArray:
        """Weight of each answer (worker, label, class)."""
        return _knowing(self._knows, self._habit)

    @property
    def typical(self) -> FloatArray:
        """Probability of each answer (label, class) of a new worker."""
        knows, habit = (part / part.sum() for part in (self._knows_common, self._habit_common))
        return np.asarray(_knowing(knows[None], habit[None])[0])

    def update(self, counts: FloatArray) -> float:
        """Take in expected answers; the prior's part of the bound."""
        right = np.einsum("wkk->wk", counts)
        weight = self._knows[:, :1]
        known = right * weight / (weight + self._knows[:, 1:] * self._habit)
        guessed = counts.sum(axis=2) - known
        sums = np.stack([known.sum(axis=1), guessed.sum(axis=1)], axis=1)
        self._knows_common, first = _common_counts(sums, self._knows_common)
        self._habit_common, second = _common_counts(guessed, self._habit_common)
        log_knows, third = _expected_log(sums, self._knows_common)
        log_habit, fourth = _expected_log(guessed, self._habit_common)
        self._knows, self._habit = np.exp(log_knows), np.exp(log_habit)
        return first + second + third + fourth


class Confusion:
    """Every worker has a row of probabilities per class (Dawid and Skene), near the crowd's."""

    def __init__(self, workers: int, labels: int) -> None:
        self._common = np.full((labels, labels), 1 / labels) + 2 * np.eye(labels)
        share = self._common / self._common.sum(axis=1, keepdims=True)
        self._rows = np.tile(share, (workers, 1, 1))

    @property
    def table(self) -> FloatArray:
        """Weight of each answer (worker, label, class)."""
        return np.asarray(self._rows.transpose(0, 2, 1))

    @property
    def typical(self) -> FloatArray:
        """Probability of each answer (label, class) of a new worker."""
        return np.asarray((self._common / self._common.sum(axis=1, keepdims=True)).T)

    def update(self, counts: FloatArray) -> float:
        """Take in expected answers; the prior's part of the bound."""
        rows = np.ascontiguousarray(counts.transpose(0, 2, 1))
        labels = len(self._common)
        shape = 1 + 0.1 / labels + 0.5 * np.eye(labels)
        self._common, bound = _common_counts(rows, self._common, shape)
        log_rows, of_workers = _expected_log(rows, self._common)
        self._rows = np.exp(log_rows)
        return bound + of_workers


@dataclass(frozen=True, eq=False)
class Effects:
    """What an item may do to all answers about it: `strength` (e), `target` (e, label).

    Effects of one `group` are equally likely; the first one is none.
    """

    strength: FloatArray
    target: FloatArray
    group: NDArray[np.intp]

    @classmethod
    def none(cls, labels: int) -> Effects:
        """Items are all alike."""
        return cls(np.zeros(1), np.full((1, labels), 1 / labels), np.zeros(1, np.intp))

    @classmethod
    def difficulty(cls, labels: int) -> Effects:
        """On a hard item people guess."""
        strength = np.array([0.0, 0.5, 0.9])
        return cls(strength, np.full((3, labels), 1 / labels), np.arange(3))

    @classmethod
    def decoys(cls, labels: int) -> Effects:
        """An item may look like a label that it need not have, to nearly everybody or to some."""
        levels = np.array([0.25, 0.5, 0.75, 0.9])
        strength = np.concatenate([[0.0], np.repeat(levels, labels)])
        target = np.concatenate([np.full((1, labels), 1 / labels), np.tile(np.eye(labels), (4, 1))])
        return cls(strength, target, np.concatenate([[0], np.repeat(np.arange(1, 5), labels)]))

    def __len__(self) -> int:
        return len(self.strength)


@dataclass(frozen=True, eq=False)
class FittedModel:
    """A fitted model.

    `table` (worker, label, state) and `typical` (label, state) are log probabilities of answers,
    `log_prior` is that of the states; states of one class are neighbours. `posterior` is (item,
    class); `affected` is the share of items under an effect; `trace` the bound after each step.
    """

    name: str
    table: FloatArray
    typical: FloatArray
    log_prior: FloatArray
    posterior: FloatArray
    affected: float
    trace: tuple[float, ...]
    converged: bool


@dataclass(frozen=True, eq=False)
class LabelFit:
    """The fit of one question.

    `posterior` (item, class) is the average of the models, `blind` the same without any gold;
    `crowd_map` is what probabilities are stated by (None: as they are); `models` are the models
    that are averaged with the shares of the votes, `left_out` the names of those that did not
    converge; `row` is the row of each worker in their tables; `copies` are groups of workers whose
    answers count as one; `trace` is the sum of the models' bounds after each step.
    """

    posterior: FloatArray
    blind: FloatArray
    trace: tuple[float, ...] = ()
    crowd_map: CrowdMap | None = None
    models: tuple[FittedModel, ...] = ()
    left_out: tuple[str, ...] = ()
    row: IntArray = field(default_factory=lambda: np.zeros(0, np.int32))
    copies: tuple[tuple[int, ...], ...] = ()

    @property
    def converged(self) -> bool:
        """Whether every model converged."""
        return not self.left_out


class _Shares:
    """Class shares and weights of the groups of effects."""

    def __init__(self, effects: Effects, labels: int) -> None:
        self._effects, self._labels = effects, labels
        self._class_prior = np.ones(labels)
        groups = int(effects.group.max()) + 1
        self._size = np.bincount(effects.group)
        self._prior = np.full(groups, _EFFECT_PRIOR)
        self._prior[0] = _NO_EFFECT_PRIOR
        self._classes, self._groups = np.full(labels, 1 / labels), self._prior / self._prior.sum()

    def hold(self, votes: FloatArray) -> None:
        """Keep class shares near those of the votes, so that no class can take all items."""
        self._class_prior = 1 + _HELD * votes

    def start(self, posterior: FloatArray) -> FloatArray:
        """Posterior of the states from that of the classes."""
        weight = (self._groups / self._size)[self._effects.group]
        return np.asarray((posterior[:, :, None] * weight).reshape(len(posterior), -1))

    def update(self, mass: FloatArray) -> float:
        """Take in the items of each state; the prior's part of the bound."""
        items = mass.reshape(self._labels, -1)
        groups = np.bincount(self._effects.group, items.sum(axis=0)).astype(np.float64)
        log_classes, first = _expected_log(items.sum(axis=1)[None], self._class_prior)
        log_groups, second = _expected_log(groups[None], self._prior)
        self._classes, self._groups = np.exp(log_classes[0]), np.exp(log_groups[0])
        return first + second

    @property
    def log_prior(self) -> FloatArray:
        weight = (self._groups / self._size)[self._effects.group]
        return np.asarray(np.log(np.maximum(np.outer(self._classes, weight), _LEAST)).ravel())

    @property
    def affected(self) -> float:
        return float(1 - self._groups[0] / self._groups.sum())


class ModelFit:
    """A model and what it has learned so far; it can go on with more answers of the same workers.

    `channel` is what it believes about workers, `effects` about items.
    """

    def __init__(self, name: str, channel: Channel, effects: Effects, labels: int) -> None:
        self.name, self._channel, self._effects = name, channel, effects
        self._shares, self._started = _Shares(effects, labels), False

    def fit(
        self, votes: Votes, gold: IntArray, start: FloatArray, tolerance: float = TOLERANCE
    ) -> FittedModel:
        """Fit to answers.

        `gold` is the known class of each item, or -1, and `start` the posterior (item, class) to
        start from the first time. It converges when a step gains less than `tolerance` per answer.
        """
        channel, shares = self._channel, self._shares
        shares.hold(len(gold) * np.bincount(votes.label, minlength=votes.labels) / len(votes.label))
        posterior = np.array(start)
        if self._started:
            table = _log_table(channel.table, self._effects)
            counts = np.empty(table.shape)
            _, mass = votes.expect(table, shares.log_prior, gold, posterior, counts)
        else:
            state = shares.start(start)
            counts, mass = votes.counts(state), state.sum(axis=0)
        self._started = True
        trace: list[float] = []
        converged = False
        for _ in range(MAX_STEPS):
            own = _own(counts, channel.table, self._effects)
            bound = channel.update(own) + shares.update(mass)
            table = _log_table(channel.table, self._effects)
            evidence, mass = votes.expect(table, shares.log_prior, gold, posterior, counts)
            trace.append(evidence + bound)
            if len(trace) > 2 and trace[-1] - trace[-2] < tolerance * len(votes.worker):
                converged = True
                break
        typical = _log_table(channel.typical[None], self._effects)[0]
        return FittedModel(
            self.name, table, typical, shares.log_prior, posterior, shares.affected,
            tuple(trace), converged,
        )  # fmt: skip


def _own(counts: FloatArray, channel: FloatArray, effects: Effects) -> FloatArray:
    """Expected answers (worker, label, class) that come from the workers, not from an effect."""
    if len(effects) == 1:
        return counts
    by_effect = counts.reshape(*channel.shape, -1)
    own = (1 - effects.strength) * channel[..., None]
    other = (effects.strength[:, None] * effects.target).T[:, None, :]
    return np.asarray((by_effect * own / np.maximum(own + other, _LEAST)).sum(axis=3))


def _log_table(channel: FloatArray, effects: Effects) -> FloatArray:
    """Log weight of each answer (worker, label, state)."""
    if len(effects) == 1:
        return np.log(np.maximum(channel, _LEAST))
    other = (effects.strength[:, None] * effects.target).T[:, None, :]
    weight = (1 - effects.strength) * channel[..., None] + other
    return np.log(np.maximum(weight, _LEAST)).reshape(*channel.shape[:2], -1)


def _evenly(labels: int) -> FloatArray:
    """Shares (label, class) of the wrong answers, all alike."""
    return np.asarray((1 - np.eye(labels)) / (labels - 1))


def _shape(counts: FloatArray) -> tuple[FloatArray, float]:
    """Shares (label, class) of the wrong answers of the crowd, and their log prior."""
    wrong = (counts + 1.0) * (1 - np.eye(len(counts)))
    share = wrong / wrong.sum(axis=0)
    return share, float(np.log(share + np.eye(len(counts))).sum())


def _knowing(knows: FloatArray, habit: FloatArray) -> FloatArray:
    """Weight of each answer (worker, label, class) of people who know or follow a habit."""
    labels = habit.shape[1]
    table = np.repeat((knows[:, 1:] * habit)[:, :, None], labels, axis=2)
    at = np.arange(labels)
    table[:, at, at] += knows[:, :1]
    return table


def _common_counts(
    counts: FloatArray, common: FloatArray, shape: FloatArray | float = _PRIOR_SHAPE
) -> tuple[FloatArray, float]:
    """Pseudo-counts that workers (first axis) have in common, and their log prior.

    The fixed-point iteration of Minka (2000) with a Gamma prior, which never lowers the evidence of
    the counts.
    """
    total = counts.sum(axis=-1)
    for _ in range(_INNER_STEPS):
        whole = common.sum(axis=-1)
        up = common * (digamma(counts + common) - digamma(common)).sum(axis=0) + shape - 1
        down = (digamma(total + whole) - digamma(whole)).sum(axis=0) + _PRIOR_RATE
        common = np.maximum(up / down[..., None], 1e-4)
    return common, float(((shape - 1) * np.log(common) - _PRIOR_RATE * common).sum())


def _expected_log(counts: FloatArray, common: FloatArray) -> tuple[FloatArray, float]:
    """Expected log probabilities under Dirichlet posteriors, and minus their divergence."""
    held = counts + common
    whole, prior = held.sum(axis=-1), np.broadcast_to(common, held.shape)
    log = digamma(held) - digamma(whole)[..., None]
    divergence = gammaln(whole) - gammaln(held).sum(axis=-1)
    divergence += gammaln(prior).sum(axis=-1) - gammaln(prior.sum(axis=-1))
    divergence += (counts * log).sum(axis=-1)
    return np.asarray(log), -float(divergence.sum())
