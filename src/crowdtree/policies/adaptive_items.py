"""Many items on their way through an adaptive policy at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crowdtree.policies.base import FloatArray, Stated, decide, normalised
from crowdtree.policies.replay import Replayed, checkpoints
from crowdtree.policies.walk import MISSING, REASONS, Answers, Items, Round, Source, answer_slots

if TYPE_CHECKING:
    from crowdtree.policies.adaptive import AdaptivePolicy

__all__ = ["AdaptiveItems", "ReplayedItems", "TargetItems"]

IntArray = NDArray[np.int64]
OPEN = -1
TARGET, BUDGET, QUESTIONS, UNDECIDED, REFERRED = (
    REASONS.index(name) for name in ("target", "budget", "questions", "undecided", "referred")
)
CHUNK = 2048
"""Rows of posteriors scored at once: the scores of a chunk stay in the processor's cache."""


class AdaptiveItems(Items):
    """An adaptive policy for all items at once; its hypotheses may be sub-types.

    Items with the same prior and answers so far share one row of the tables, a state, until an
    answer separates them, so the first dozen steps cost almost nothing. Where answers are missing,
    items have different numbers of answers at the same time.
    """

    best: Stated
    """Decision about each state."""

    def __init__(self, policy: AdaptivePolicy, source: Source, items: int) -> None:
        super().__init__(source, items, policy.problem.n_options)
        self.policy = policy
        self.state = np.zeros(items, dtype=np.int64)
        """State of each open item."""
        self.prior: FloatArray | None = None
        """Prior of each state over the classes, where items have their own."""
        if source.prior is not None:
            rows, self.state = np.unique(source.prior, axis=0, return_inverse=True)
            self.prior = policy.own_prior(rows)
        self.log_posterior = np.atleast_2d(policy.log_start(self.prior))
        states = len(self.log_posterior)
        shape = (policy.model.slots, states, policy.problem.n_options)
        self.counts = np.zeros(shape, dtype=np.int16)
        self.answers = np.zeros(states, dtype=np.int64)
        self.closed: NDArray[np.bool_] | None = None
        """Questions about each state that got no answer; None as long as all did."""

    def ask(self) -> Round | None:
        """Label what is sure enough or cannot go on, and ask the best question about the rest."""
        reason = self.stop()
        question = self._questions(np.flatnonzero(reason == OPEN), self.log_posterior)
        few = self.answers < self.policy.least_answers
        lacking = np.flatnonzero((reason == OPEN) & few & (question < 0))
        if len(lacking):  # nothing is in doubt: ask what told most at first
            start = self.policy.log_start(self.prior)
            first = np.broadcast_to(start, self.log_posterior.shape)
            question[lacking] = self._questions(lacking, first)[lacking]
        reason[(reason == OPEN) & (question < 0)] = QUESTIONS
        if (reason != OPEN).any():
            self.close(reason, reason[self.state] != OPEN)
        if not len(self.item):
            return None
        self.question, states = question, np.arange(len(question))
        repeat = self.counts[:, states, question].sum(axis=0)

        def before() -> NDArray[Any]:
            counts = self.policy.model.before(self.counts, states, question)
            return counts.take(self.state, axis=1)

        return Round(self.item, question[self.state], repeat[self.state], before)

    def stop(self) -> IntArray:
        """Reason to label each state now, `OPEN` where there is none."""
        policy, posteriors = self.policy, self._decide()
        few = self.answers < policy.least_answers
        reason = np.where(policy.sure(self.best) & ~few, TARGET, OPEN)
        reason[(reason == OPEN) & (self.answers >= policy.max_answers)] = BUDGET
        if policy.may_give_up:
            rows = np.flatnonzero((reason == OPEN) & ~few)
            given_up = self._cannot_reach(rows, posteriors)
            reason[rows[given_up[:, 0]]] = UNDECIDED
        return reason

    def _decide(self) -> tuple[FloatArray, FloatArray]:
        """Decide about each state; return the stated and the plain log posterior of its classes."""
        by_class = self.policy.by_class(self.log_posterior)
        stated = self.policy.stated(by_class, self.answers, self.policy.log_prior_of(self.prior))
        self.best = decide(stated, self.policy.problem.loss)
        return stated, by_class

    def _cannot_reach(
        self,
        rows: NDArray[np.intp],
        posteriors: tuple[FloatArray, FloatArray],
        targets: Sequence[float] | None = None,
    ) -> NDArray[np.bool_]:
        """Whether some states are unlikely to reach each target."""
        stated, by_class = posteriors
        prior = self.policy.log_prior_of(None if self.prior is None else self.prior[rows])
        asked = self.counts[:, rows].sum(axis=0)
        return self.policy.cannot_reach_target(
            stated[rows], by_class[rows], asked, self.answers[rows], targets, prior
        )

    def close(self, reason: IntArray, done: NDArray[np.bool_]) -> None:
        """Label the open items that are done, and leave them."""
        best, (row, state) = self.best, self._leave(done)
        self.labels.label[row] = best.label[state]
        self.labels.posterior_error[row] = best.error[state]
        self.labels.stated_loss[row] = best.risk[state]
        self.labels.reason[row] = np.where(best.referred, REFERRED, reason)[state]
        self.labels.answers[row] = self.answers[state]

    def _leave(self, done: NDArray[np.bool_]) -> tuple[IntArray, IntArray]:
        """Leave the open items that are done: their numbers and states."""
        over, open_ = np.flatnonzero(done), np.flatnonzero(~done)
        left = self.item[over], self.state[over]
        self.item, self.state = self.item[open_], self.state[open_]
        return left

    def _questions(self, go_on: NDArray[np.intp], log_posterior: FloatArray) -> IntArray:
        """Next question of each of some states, -1 for the others and where none helps."""
        policy = self.policy
        question = np.full(len(log_posterior), -1, dtype=np.int64)
        left = np.minimum(policy.max_answers - self.answers[go_on], policy.endgame + 1)
        for rest in np.flatnonzero(np.bincount(left)).tolist():
            some = go_on[left == rest]
            for start in range(0, len(some), CHUNK):
                rows = some[start : start + CHUNK]
                counts = self.counts.take(rows, axis=1) if policy.counts_matter else None
                closed = None if self.closed is None else self.closed[rows]
                question[rows] = policy.choose(np.exp(log_posterior[rows]), counts, rest, closed)
        return question

    def update(self, asked: Round, answers: Answers) -> None:  # noqa: ARG002
        """Split the states by the answers and update the posterior of each."""
        states, model = len(self.question), self.policy.model
        if answers.skill is None:
            ways = len(self.counts) + 2  # answers, "can't tell", and none
            key = ways * self.state + answers.value + 2
            items = np.bincount(key, minlength=ways * states)
            used = np.flatnonzero(items)
            place = np.zeros(ways * states, dtype=np.int64)
            place[used] = np.arange(len(used))
            parent, value, items = used // ways, used % ways - 2, items[used]
            self.state = place[key]
        else:  # different people: every item has its own row
            parent, value = self.state, answers.value.astype(np.int64)
            self.state, items = np.arange(len(parent)), np.ones(len(parent), dtype=np.int64)
        self.split(parent)
        question, rows = self.question[parent], np.arange(len(parent))
        before = self.counts[:, :0, 0]
        if model.depends or answers.skill is not None:
            before = model.before(self.counts, rows, question)
        evidence = model.evidence(question, value, answers.skill, before)
        there, before_answer = value != MISSING, self.log_posterior
        if not there.all():
            gone = np.flatnonzero(~there)
            evidence[gone] = 0.0
            if self.closed is None:
                self.closed = np.zeros(self.counts.shape[1:], dtype=bool)
            self.closed[gone, question[gone]] = True
        self.log_posterior = normalised(before_answer + evidence)
        if not there.all():  # to the bit the same as before
            self.log_posterior = np.where(there[:, None], self.log_posterior, before_answer)
        slot = answer_slots(value, len(self.counts))
        self.counts[slot[there], rows[there], question[there]] += 1
        self.answers += there
        np.add.at(self.labels.asked, question[there], items[there])

    def split(self, parent: IntArray) -> None:
        """Give each new state what its parent has."""
        self.counts, self.answers = self.counts.take(parent, axis=1), self.answers[parent]
        self.log_posterior = self.log_posterior[parent]
        self.prior = None if self.prior is None else self.prior[parent]
        self.closed = None if self.closed is None else self.closed[parent]


class TargetItems(AdaptiveItems):
    """Items that are labelled at each of several targets.

    Questions do not depend on the target, so that one walk serves all of them.
    """

    def __init__(
        self, policy: AdaptivePolicy, source: Source, items: int, targets: Sequence[float]
    ) -> None:
        super().__init__(policy, source, items)
        self.targets = targets
        shape = len(self.answers), len(targets)
        self._columns: tuple[NDArray[Any], ...] = (
            np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=bool), np.ones(shape, dtype=bool)
        )  # fmt: skip
        self.label = np.zeros((items, len(targets)), dtype=np.int64)
        """Label of each item at each target."""
        self.reached = np.zeros(self.label.shape, dtype=bool)
        """Whether it reached the target."""

    def stop(self) -> IntArray:
        """Note which states stop at which target; the reason where none is left."""
        policy, posteriors = self.policy, self._decide()
        enough = (self.answers >= policy.least_answers)[:, None]
        sure = np.stack([policy.sure(self.best, target) for target in self.targets], axis=1)
        label, reached, still = self._columns
        label = np.where(still, self.best.label[:, None], label)
        reached |= still & enough & sure
        over = sure
        if policy.may_give_up:
            rows = np.arange(len(sure))
            over = sure | self._cannot_reach(rows, posteriors, self.targets)
        still &= ~(enough & over)
        self._columns = label, reached, still
        over_all = ~still.any(axis=1) | (self.answers >= policy.max_answers)
        return np.where(over_all, TARGET, OPEN)

    def close(self, reason: IntArray, done: NDArray[np.bool_]) -> None:  # noqa: ARG002
        """Write the labels at all targets."""
        row, state = self._leave(done)
        self.label[row], self.reached[row] = self._columns[0][state], self._columns[1][state]

    def split(self, parent: IntArray) -> None:
        """Give each new state what its parent has."""
        super().split(parent)
        self._columns = tuple(column[parent] for column in self._columns)


class ReplayedItems(AdaptiveItems):
    """Items whose states are noted on the way and at the end.

    They go on to the end of the budget whatever the target, or to their label (`to_label`).
    """

    def __init__(
        self, policy: AdaptivePolicy, source: Source, items: int, *, to_label: bool = False
    ) -> None:
        super().__init__(policy, source, items)
        self.to_label = to_label
        self._kept = checkpoints(policy.max_answers)
        self._states: list[tuple[IntArray, IntArray, FloatArray]] = []

    @property
    def states(self) -> Replayed:
        """The states: at :func:`checkpoints` and at the end, or only those at the label."""
        return Replayed(*(np.concatenate(column) for column in zip(*self._states, strict=True)))

    def stop(self) -> IntArray:
        """Reason to leave each state now."""
        if self.to_label:
            return super().stop()
        return np.where(self.answers >= self.policy.max_answers, BUDGET, OPEN)

    def close(self, reason: IntArray, done: NDArray[np.bool_]) -> None:  # noqa: ARG002
        """Note the last states."""
        self._note(*self._leave(done))

    def update(self, asked: Round, answers: Answers) -> None:
        """Note the states in between."""
        super().update(asked, answers)
        if not self.to_label:
            kept = np.isin(self.answers[self.state], self._kept) & (answers.value != MISSING)
            self._note(self.item[kept], self.state[kept])

    def _note(self, item: IntArray, state: IntArray) -> None:
        log_posterior = self.policy.by_class(self.log_posterior[state])
        self._states.append((item, self.answers[state], log_posterior))
