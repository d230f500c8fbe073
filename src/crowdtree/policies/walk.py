"""Items on their way through a policy: one by its own steps, or many at once.

Both give the same labels for the same answers, which ``tests/simulation/test_simulate.py`` checks.
Answers come from a :class:`Source`, such as a simulated crowd or a table of recorded answers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.likelihood import UNSURE, AnswerModel, answers_before
from crowdtree.core.loss import Loss
from crowdtree.policies.base import (
    Answer,
    Asked,
    FloatArray,
    Label,
    Policy,
    label_errors,
    to_option,
)
from crowdtree.policies.item_prior import start_of

__all__ = [
    "MISSING",
    "REASONS",
    "Answers",
    "ItemLabels",
    "Items",
    "Round",
    "Source",
    "Walk",
    "label_items",
    "walk_items",
]

IntArray = NDArray[np.int64]
MISSING = -1
"""The value of an answer that cannot be had."""
REASONS = ("target", "budget", "questions", "leaf", "skipped", "undecided", "referred")


class Answers(NamedTuple):
    """Answers of one round, `MISSING` where there is none, and skills where they are known."""

    value: NDArray[np.int8]
    skill: FloatArray | None


Progress = Callable[[float], None]
"""Called with the share of the work that is done."""


class Round(NamedTuple):
    """One question about each of some items.

    `row` numbers the items, `option` is what is asked (:func:`crowdtree.policies.base.to_option`)
    and `repeat` how often that was asked about the item before: one of each per row, or one for all
    rows. `before()` counts the answers so far for sources that need them: ``[answer, row]``, with
    several sources those of all of them, ``[answer, row, source]``.
    """

    row: NDArray[Any]
    option: NDArray[Any]
    repeat: NDArray[Any]
    before: Callable[[], NDArray[Any]]


class Source(Protocol):
    """Where the answers about some items come from."""

    @property
    def prior(self) -> FloatArray | None:
        """Own prior of each item over the classes, one row each; None where all start alike."""
        ...

    def answer(self, asked: Round) -> Answers:
        """Answer the questions of a round."""
        ...


class Walk:
    """One item on its way through a policy's own steps, as a live campaign would take it.

    Questions that are handed out together are answered in the same order. A missing
    answer costs nothing, and its question is not asked about the item again.
    """

    def __init__(self, policy: Policy[Any], source: Source, row: int) -> None:
        self.policy, self.source, self.row = policy, source, np.array([row])
        self.prior = None if source.prior is None else source.prior[row]
        self.history: list[Answer | None] = []
        """Answers in their order; None where a plan went on without one."""
        self.out: list[tuple[Asked, int]] = []
        options = policy.problem.n_options
        self.counts = np.zeros((policy.problem.n_answers.max() + 1, options), dtype=np.int64)
        self.handed = np.zeros(options, dtype=np.int64)
        self.closed: set[Asked] = set()
        self.state = start_of(policy, self.prior)
        self.label: Label | None = None

    def step(self) -> Answer | None:
        """Hand out questions and take one answer, which may be missing, or give the label."""
        step = self.policy.ask(self.state, [q for q, _ in self.out], self.closed)
        if isinstance(step, Label):
            self.label = step
            return None
        if not step.questions and not self.out:  # all that could tell more are missing
            self.label = self.policy.conclude(self.state, "questions")
            return None
        problem = self.policy.problem
        for asked in step.asked:
            option = to_option(problem, asked)
            self.out.append((asked, int(self.handed[option])))
            self.handed[option] += 1
        asked, repeat = self.out.pop(0)
        option = to_option(problem, asked)
        value, skill = self._answer(option, repeat)
        if value == MISSING:
            self.out = [(other, turn) for other, turn in self.out if other != asked]
            if self.policy.has_alternatives:
                self.closed.add(asked)
            else:
                self._take(None)
            return None
        self.counts[-1 if value == UNSURE else value, option] += 1
        source, question = divmod(option, problem.n_questions)
        answer = Answer(question, value, skill, source=source)
        self._take(answer)
        return answer

    def _answer(self, option: int, repeat: int) -> tuple[int, float]:
        """Ask the source: value and skill."""
        asked = np.array([option])

        def before() -> NDArray[Any]:
            sources = len(self.policy.problem.sources)
            return answers_before(self.counts[:, None], np.zeros(1, np.int64), asked, sources)

        value, skill = self.source.answer(Round(self.row, asked, np.array([repeat]), before))
        return int(value[0]), 0.0 if skill is None else float(skill[0])

    def _take(self, answer: Answer | None) -> None:
        self.history.append(answer)
        self.state = self._after(self.state, answer)

    def _after(self, state: Any, answer: Answer | None) -> Any:
        if answer is None:
            return self.policy.pass_over(state)
        return self.policy.update(state, answer)

    def revise(self, policy: Policy[Any]) -> bool:
        """Go on with another policy, all answers kept; whether a labelled item is open again."""
        self.policy, state = policy, start_of(policy, self.prior)
        for answer in self.history:
            state = self._after(state, answer)
        self.state = state
        if self.label is None:
            return False
        step = policy.ask(state, (), self.closed)
        if isinstance(step, Label) or not step.questions:
            self.label = step if isinstance(step, Label) else policy.conclude(state, "questions")
            return False
        self.label = None
        return True


class ItemLabels(NamedTuple):
    """Labels of many items, and what they took."""

    label: IntArray
    answers: NDArray[np.int32]
    posterior_error: FloatArray
    reason: NDArray[np.int8]
    """Index into `REASONS`."""
    asked: IntArray
    """Answers to each question (with several sources: option), over all items."""
    stated_loss: FloatArray
    """Stated expected loss of each decision; for 0/1 loss the stated error."""

    @classmethod
    def blank(cls, items: int, options: int) -> ItemLabels:
        """Room for the labels of so many items."""
        return cls(
            label=np.full(items, -1, dtype=np.int64),
            answers=np.zeros(items, dtype=np.int32),
            posterior_error=np.zeros(items),
            reason=np.zeros(items, dtype=np.int8),
            asked=np.zeros(options, dtype=np.int64),
            stated_loss=np.zeros(items),
        )

    def write(self, walk: Walk) -> None:
        """Write the label of one item."""
        row, label, policy = walk.row[0], walk.label, walk.policy
        assert label is not None
        self.label[row] = label.label
        self.posterior_error[row] = self.stated_loss[row] = label.posterior_error
        loss = policy.problem.loss
        if loss is not None:
            posterior, referred = policy.posterior(walk.state), label.reason == "referred"
            self.stated_loss[row] = loss.risk_of(posterior, label.label, referred)
        self.reason[row] = REASONS.index(label.reason)
        self.answers[row] = walk.counts.sum()
        self.asked[:] += walk.counts.sum(axis=0)

    def state_errors(self, posterior: FloatArray, loss: Loss | None) -> None:
        """State the error and the expected loss of every label, given the posteriors."""
        self.posterior_error[:] = self.stated_loss[:] = label_errors(posterior, self.label)
        if loss is not None:
            referred = self.reason == REASONS.index("referred")
            self.stated_loss[:] = loss.risk_of(posterior, self.label, referred)


class Items:
    """Many items on their way through a policy at once: its rule in terms of arrays.

    :meth:`ask` labels what is ready and asks one question about each of the other items,
    :meth:`update` takes the answers.
    """

    def __init__(self, source: Source, items: int, options: int) -> None:
        self.source = source
        self.labels = ItemLabels.blank(items, options)
        self.item = np.arange(items)
        """Items without a label."""

    def ask(self) -> Round | None:
        """Ask one question about each open item; None when all have their labels."""
        raise NotImplementedError

    def update(self, asked: Round, answers: Answers) -> None:
        """Take the answers of a round."""
        raise NotImplementedError

    @property
    def share_done(self) -> float:
        """How far all items have come, from 0 to 1."""
        return 1 - len(self.item) / max(1, len(self.labels.label))

    def walk(self, progress: Progress | None = None) -> ItemLabels:
        """Ask and update until every item has its label."""
        while (asked := self.ask()) is not None:
            self.update(asked, self.source.answer(asked))
            if progress is not None:
                progress(self.share_done)
        return self.labels


def walk_items(
    policy: Policy[Any], source: Source, items: int, progress: Progress | None = None
) -> ItemLabels:
    """Label items: all at once where the policy knows how to, else one by one."""
    many = policy.many(source, items)
    if many is None:
        return label_items(policy, source, items, progress)
    return many.walk(progress)


def label_items(
    policy: Policy[Any], source: Source, items: int, progress: Progress | None = None
) -> ItemLabels:
    """Label items one by one through the policy's own steps, as a live campaign would."""
    labels = ItemLabels.blank(items, policy.problem.n_options)
    for row in range(items):
        walk = Walk(policy, source, row)
        while walk.label is None:
            walk.step()
        labels.write(walk)
        if progress is not None:
            progress((row + 1) / items)
    return labels


def answer_slots(value: NDArray[Any], slots: int) -> IntArray:
    """Places of answers in a tally or in counts: the last one is that of "can't tell"."""
    unsure = value == UNSURE
    return np.where(unsure, slots - 1, value) if unsure.any() else value


def finite_logs(model: AnswerModel) -> FloatArray:
    """Logarithms of the answers that are evidence, 0 for answers that a question does not have."""
    logs = model.logs[: len(model.answers)]
    return np.where(np.isfinite(logs), logs, 0.0)
