"""What every policy has in common: answers in, next questions or a label out.

A policy never changes. What is known about one item lives in a *state*: an immutable value, made
by :meth:`Policy.start`, moved on by :meth:`Policy.update`, written and read as JSON by
:meth:`Policy.dump` and :meth:`Policy.load`. The same answers in the same order always give the
same state and the same questions.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdtree.core.checking import describe_type, got
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.likelihood import UNSURE
from crowdtree.core.loss import Loss
from crowdtree.core.problem import Problem

if TYPE_CHECKING:
    from crowdtree.core.evaluation import Evaluation
    from crowdtree.core.fixed_plan import Plan
    from crowdtree.policies.replay import Replayed
    from crowdtree.policies.walk import Items, Source

__all__ = [
    "HANDED_OVER",
    "Answer",
    "Ask",
    "Asked",
    "FloatArray",
    "Label",
    "Policy",
    "Stated",
    "as_ask",
    "decide",
    "to_option",
]

FloatArray = NDArray[np.float64]
HANDED_OVER = ("undecided", "referred")
"""Reasons of labels that are only the best guess: somebody else must decide."""
ONE_THREAD = 1 << 18
FEWEST_ROWS = 32
"""Rows of a block, at least: narrow blocks take longer than their work."""
S = TypeVar("S")


class Answer(NamedTuple):
    """One worker's reply to one question about one item.

    `skill` is the worker's own reliability where it is known: the logit of the error falls by
    it (docs/model.md, section 9), 0 is the average worker. `weight` is how much of an answer it
    counts as: less than 1 for a person who has answered about the item before (section 13).
    `source` is who answered, where the problem has several sources.
    """

    question: int
    value: int
    skill: float = 0.0
    weight: float = 1.0
    source: int = 0


Asked = int | tuple[int, int]
"""A question, or with several sources a pair of a question and a source."""


class Ask(NamedTuple):
    """Questions to hand out now, on top of the outstanding ones; empty means wait for those.

    `sources` are those to ask, one per question; empty where the problem has one source.
    """

    questions: tuple[int, ...]
    sources: tuple[int, ...] = ()

    @property
    def asked(self) -> tuple[Asked, ...]:
        """The questions, as pairs with their sources where the problem has several."""
        if not self.sources:
            return self.questions
        return tuple(zip(self.questions, self.sources, strict=True))

    def __repr__(self) -> str:
        sources = f", sources={self.sources}" if self.sources else ""
        return f"Ask(questions={self.questions}{sources})"


def to_option(problem: Problem, asked: Asked) -> int:
    """Option of a question or of a pair of a question and a source."""
    question, source = asked if isinstance(asked, tuple) else (asked, 0)
    return source * problem.n_questions + question


def as_ask(problem: Problem, options: Sequence[int]) -> Ask:
    """Name the questions of some options, and their sources where there are several.

    >>> as_ask(Problem(["a", "b"], None, ["q"], [[0, 1]], 0.1), [0])
    Ask(questions=(0,))
    """
    if len(problem.sources) == 1:
        return Ask(tuple(options))
    pairs = [divmod(option, problem.n_questions) for option in options]
    return Ask(tuple(question for _, question in pairs), tuple(source for source, _ in pairs))


class Label(NamedTuple):
    """A decision: the label, the probability that it is wrong, and why it was given now.

    `reason` is one of ``"target"`` (sure enough), ``"budget"`` (no answers left), ``"questions"``
    (no question left that could tell more), ``"undecided"`` (all answers that may still come are
    unlikely to reach the target), ``"referred"`` (an expert costs less than the expected loss of
    any label), ``"leaf"`` (the plan's end), or what the caller of :meth:`Policy.conclude` said.
    The label of an undecided or referred item is the best guess.
    """

    label: int
    posterior_error: float
    reason: str


class Policy(Protocol[S]):
    """What to ask next about an item, and when to stop.

    What is not said otherwise holds for policies that choose each question by the answers so far.
    """

    problem: Problem
    """The problem whose classes are labels and whose questions are asked."""
    kind: Literal["tree", "adaptive"] = "adaptive"
    """``"tree"`` for a policy that follows a fixed tree, ``"adaptive"`` for any other."""
    plan: Plan | None = None
    """The plan, of a policy that follows a fixed tree."""
    max_answers: int | None = None
    """Limit of answers per item, where one is set; else it follows from the votes."""
    width: int | None = None
    """Most questions that are out for one item at once; None for all that are needed."""
    has_alternatives: bool = True
    """Whether another question can take the place of one that nobody can answer."""
    stops_at_target: bool = False
    """Whether an item is labelled as soon as its stated error, or loss, is low enough."""
    least_answers: int = 0
    """Answers before any label. A rule of the campaign, which the policy's document leaves out."""

    @property
    def voted(self) -> Plan | None:
        """The plan as it is voted, with the margins of a policy that stops by margin."""
        return None

    @property
    def most_answers(self) -> int:
        """Answers that an item takes at most, unless :meth:`at_least` requires more."""
        ...

    def many(self, source: Source, items: int) -> Items | None:  # noqa: ARG002
        """Walk of many items at once; None for a policy that goes item by item."""
        return None

    def questions_used(self) -> tuple[int, ...]:
        """Questions that may be asked, in the order of the tree from its root on."""
        return tuple(range(self.problem.n_questions))

    def evaluated(self) -> tuple[Evaluation, float] | None:
        """Exact evaluation and expected answers per item; None where only simulation tells."""
        return None

    def start(self, prior: ArrayLike | None = None) -> S:
        """State of an item without answers.

        `prior` is the item's own probability of each class, in place of the problem's prior.
        """
        ...

    def update(self, state: S, answer: Answer) -> S:
        """State after one more answer; unchanged by an answer that the policy does not want."""
        ...

    def wants(self, state: S, question: Any) -> bool:
        """Whether an answer to this question would count now."""
        ...

    def node(self, state: S) -> int | None:  # noqa: ARG002
        """Node of the tree where an item stands, ``~leaf`` at its end; None without a tree."""
        return None

    def pass_over(self, state: S) -> S:
        """State where the question asked gets no answer; unchanged with alternatives to it."""
        return state

    def ask(
        self, state: S, outstanding: Sequence[Any] = (), exclude: Collection[Any] = ()
    ) -> Ask | Label:
        """Questions to hand out next, or the label.

        `outstanding` are the questions (with repeats) that are out and may still be answered;
        `exclude` are questions that must not be handed out now, for example because this worker
        has answered them already. With several sources: pairs of a question and a source.
        """
        ...

    def conclude(self, state: S, reason: str) -> Label:
        """Give the best label on present evidence, whatever is still open."""
        ...

    def posterior(self, state: S) -> FloatArray:
        """Probability of each class, given the answers so far."""
        ...

    def at_least(self, answers: int) -> Self:
        """Return the policy with a least number of answers before any label (0 and 1: no limit).

        >>> import crowdtree as ct
        >>> policy = ct.policies.PlanPolicy(ct.design(ct.example("table1"))).at_least(2)
        >>> state = policy.update(policy.start(), ct.policies.Answer(question=0, value=1))
        >>> policy.ask(state)
        Ask(questions=(0,))
        >>> policy.ask(policy.update(state, ct.policies.Answer(0, 1))).reason
        'leaf'
        """
        answers = answers if answers > 1 else 0
        if answers == self.least_answers:
            return self
        made = copy.copy(self)
        object.__setattr__(made, "least_answers", answers)
        return made

    def warn_if_unreachable(self) -> None:
        """Warn, once per policy, that items will stay undecided because the target is too low."""
        return

    def end(self, values: NDArray[np.int8], prior: FloatArray | None = None) -> Replayed:
        """State of each recorded item (items x questions x repeats) when it is labelled."""
        ...

    def with_loose_calibration(self) -> Self:
        """Return the policy with a calibration that a later table of the same crowd may use."""
        ...

    def dump(self, state: S) -> dict[str, Any]:
        """Write a state as plain JSON."""
        ...

    def load(self, data: dict[str, Any]) -> S:
        """Read a state back, exactly."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Write the policy as plain JSON; :func:`crowdtree.policies.policy_from_dict` reads it."""
        ...


describe_type(
    Policy,
    "a policy",
    "make one with AdaptivePolicy(problem, target_error=0.05), or PlanPolicy(plan) for a tree or "
    "plan",
    needs=("start", "update", "ask", "conclude", "posterior", "pass_over"),
)


def check_answer(problem: Problem, answer: Answer) -> None:
    """Raise unless an answer is one of those to a question of the problem, or UNSURE."""
    if not isinstance(answer, Answer):
        raise CrowdtreeError(
            f"answer: expected Answer(question, value), both numbers, got {got(answer)}"
        )
    if not 0 <= answer.question < problem.n_questions:
        raise CrowdtreeError(
            f"answer: question {answer.question} does not exist; the problem has "
            f"{problem.n_questions}, counted from 0"
        )
    if not 0 <= answer.source < len(problem.sources):
        raise CrowdtreeError(
            f"answer: source {answer.source} does not exist; the problem has "
            f"{len(problem.sources)}, counted from 0"
        )
    names = problem.answers[answer.question]
    known = answer.value == UNSURE or answer.value in range(len(names))
    if isinstance(answer.value, bool | np.bool_) or not known:
        numbered = ", ".join(f"{number} ({name})" for number, name in enumerate(names))
        expected = " or ".join(numbered.rsplit(", ", 1)) if len(names) < 9 else numbered
        raise CrowdtreeError(f"answer: expected {expected}, got {answer.value!r}")
    if not math.isfinite(answer.skill):
        raise CrowdtreeError(f"answer: expected a finite skill of the worker, got {answer.skill}")


def product(left: FloatArray, right: FloatArray) -> FloatArray:
    """``left @ right``, a block at a time.

    NumPy's library starts a second thread from about 2**18 multiplications on. For matrices as
    small as most of ours that thread waits, at full load, longer than it works.

    >>> product(np.eye(2), np.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    rows = max(FEWEST_ROWS, ONE_THREAD // max(right.size, 1))
    if len(left) * right.size <= ONE_THREAD:
        return np.asarray(left @ right)
    wide = max(1, ONE_THREAD // (rows * len(right)))
    made = np.empty((len(left), right.shape[1]))
    for start in range(0, len(left), rows):
        some = slice(start, start + rows)
        for first in range(0, right.shape[1], wide):
            part = slice(first, first + wide)
            made[some, part] = left[some] @ right[:, part]
    return made


def normalised(log_posterior: FloatArray) -> FloatArray:
    """Shift logarithms so that the probabilities along the last axis add up to 1; read-only."""
    top = np.maximum.reduce(log_posterior, axis=-1, keepdims=True)
    total = np.add.reduce(np.exp(log_posterior - top), axis=-1, keepdims=True)
    shifted: FloatArray = log_posterior - (top + np.log(total))
    shifted.flags.writeable = False
    return shifted


class Stated(NamedTuple):
    """What is stated about each row: the label, its error, the expected loss, whether to refer.

    `risk` is the expected loss of the decision: for 0/1 loss the error, and the price of the
    expert where the item is referred.
    """

    label: NDArray[np.intp]
    error: FloatArray
    risk: FloatArray
    referred: NDArray[np.bool_]

    def as_label(self, reason: str) -> Label:
        """Label of the only row; the reason is ``"referred"`` where an expert is cheaper."""
        reason = "referred" if self.referred[0] else reason
        return Label(int(self.label[0]), float(self.error[0]), reason)


def decide(log_posterior: FloatArray, loss: Loss | None) -> Stated:
    """Best decision for each row of log posteriors: the only place where policies choose labels.

    For 0/1 loss the likeliest class (the first of equals, up to rounding). The error is summed over
    the other classes, so that tiny errors stay exact.

    >>> decide(np.log([[0.7, 0.3]]), None)
    Stated(label=array([0]), error=array([0.3]), risk=array([0.3]), referred=array([False]))
    """
    posterior = np.exp(log_posterior)
    if loss is None:
        top = log_posterior.max(axis=1, keepdims=True)
        label = np.argmax(log_posterior >= top - 1e-9, axis=1)
        error = label_errors(posterior, label)
        return Stated(label, error, error, np.zeros(len(label), dtype=bool))
    label, risk, referred = loss.decide(posterior)
    return Stated(label, label_errors(posterior, label), risk, referred)


def label_errors(posterior: FloatArray, label: NDArray[Any]) -> FloatArray:
    """Probability that each label is wrong, one row per item: summed over the other classes."""
    rest = posterior.copy()
    rest[np.arange(len(rest)), label] = 0.0
    return np.asarray(np.minimum(1.0, rest.sum(axis=1)))


def label_error(log_posterior: FloatArray, label: int) -> float:
    """Probability that a label is wrong."""
    return float(label_errors(np.exp(log_posterior)[None], np.array([label]))[0])
